//! Open `B` events and the `E` events that close them, in constant time each however many stay open.

use std::collections::HashMap;

use trace::{BuildIdHasher, Row, StringId, Trace};

use crate::perfetto::nesting::NO_NAME;

/// The open `B` events of one thread, each with a number that the caller chose.
#[derive(Default)]
pub(crate) struct OpenBegins {
    /// Every `B`: its number, and whether it is still open.
    begins: Vec<(usize, bool)>,
    /// Places in `begins`, by the name and category that an `E` may ask for.
    by_key: HashMap<(Option<StringId>, Option<StringId>), Vec<usize>, BuildIdHasher>,
}

/// A name as `E` events are compared with: a `B` without one is called `[No name]`.
fn name_of(trace: &Trace, row: Row) -> StringId {
    let name = trace.name(row);
    if trace.strings.get(name) == NO_NAME { StringId::EMPTY } else { name }
}

impl OpenBegins {
    /// Notes a `B`.
    pub fn open(&mut self, trace: &Trace, begin: Row, number: usize) {
        let (name, category) = (name_of(trace, begin), trace.raw_category(begin));
        let at = self.begins.len();
        self.begins.push((number, true));
        for name in [None, Some(name)] {
            for category in [None, Some(category)] {
                self.by_key.entry((name, category)).or_default().push(at);
            }
        }
    }

    /// The number of the innermost `B` that an `E` closes: names and categories that the `E` has must be equal.
    pub fn close(&mut self, trace: &Trace, end: Row) -> Option<usize> {
        let has_name = trace.name(end) != StringId::EMPTY;
        let category = trace.raw_category(end);
        let key = (
            has_name.then(|| name_of(trace, end)),
            (category != StringId::EMPTY).then_some(category),
        );
        let places = self.by_key.get_mut(&key)?;
        while let Some(at) = places.pop() {
            let (number, is_open) = &mut self.begins[at];
            if std::mem::take(is_open) {
                return Some(*number);
            }
        }
        None
    }
}
