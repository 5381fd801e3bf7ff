//! Raw categories, of which each event has one of a few.

use dialect::class;
use scan::{Spelling, Text, Value};
use trace::{Flags, Phase, StringId, StringTable, same_bytes};

use super::draft::{Draft, Field};
use super::{intern, other_text_id, text_field};

/// The raw categories of late, by length: a trace has some twenty, and each event one of them.
#[derive(Debug, Default)]
pub(super) struct Categories([Option<Category>; 16]);

#[derive(Clone, Copy, Debug)]
struct Category {
    text: [u8; 24],
    len: usize,
    id: StringId,
    class: Flags,
}

impl Categories {
    /// The id of a category, and whether it is one of the GPU's.
    #[inline(never)]
    pub(super) fn find(
        &mut self,
        strings: &mut StringTable,
        draft: &Draft<'_>,
        phase: Phase,
    ) -> (StringId, Flags) {
        let value = text_field(draft, phase, Field::Cat);
        let Some(Value::String(text @ Text { raw, spelling: Spelling::Plain })) = value else {
            let id = other_text_id(strings, value);
            return (id, class(strings.get(id)));
        };
        let last = raw.last().copied().unwrap_or_default();
        let slot = (raw.len() ^ usize::from(last)) & 15;
        if let Some(known) = &self.0[slot]
            && same_bytes(&known.text[..known.len], raw)
        {
            return (known.id, known.class);
        }
        self.find_anew(strings, text, slot)
    }

    #[inline(never)]
    fn find_anew(
        &mut self,
        strings: &mut StringTable,
        text: Text<'_>,
        slot: usize,
    ) -> (StringId, Flags) {
        let raw = text.raw;
        let id = intern(strings, text);
        let class = class(strings.get(id));
        let mut text = [0; 24];
        if let Some(place) = text.get_mut(..raw.len()) {
            place.copy_from_slice(raw);
            self.0[slot] = Some(Category { text, len: raw.len(), id, class });
        }
        (id, class)
    }
}
