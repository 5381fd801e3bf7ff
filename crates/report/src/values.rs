//! How a table stores its cells: by column, as bytes that cross to the page as they are (ADR 16).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Cell, RowKey};

/// The cells of one column, or the keys of the rows: a kind and eight bytes each.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Values {
    #[serde(with = "serde_bytes")]
    kinds: Vec<u8>,
    /// Little-endian: a number, the bits of a share, or a place in [`Texts`].
    #[serde(with = "serde_bytes")]
    bits: Vec<u8>,
}

/// Bytes of a value.
const WIDTH: usize = 8;

/// What a value is. The numbers are those of this build alone: page and worker are of one build.
const TEXT: u8 = 0;
const NS: u8 = 1;
const INSTANT: u8 = 2;
const COUNT: u8 = 3;
const PERCENT: u8 = 4;
const BYTES: u8 = 5;
const FILE_BYTES: u8 = 6;
const FLAG: u8 = 7;
const WORD: u8 = 8;
const MISSING: u8 = 9;
const KEY_EVENT: u8 = 10;
const KEY_KERNEL: u8 = 11;
const KEY_KERNEL_OF_DEVICE: u8 = 12;
const KEY_OP: u8 = 13;
const NO_KEY: u8 = 14;

impl Values {
    pub(crate) fn with_capacity(n: usize) -> Self {
        Self { kinds: Vec::with_capacity(n), bits: Vec::with_capacity(n * WIDTH) }
    }

    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    fn push(&mut self, kind: u8, bits: u64) {
        self.kinds.push(kind);
        self.bits.extend_from_slice(&bits.to_le_bytes());
    }

    fn at(&self, row: usize) -> Option<(u8, u64)> {
        let bits = self.bits.get(row * WIDTH..(row + 1) * WIDTH)?;
        Some((*self.kinds.get(row)?, u64::from_le_bytes(bits.try_into().ok()?)))
    }

    pub(crate) fn of_shares(shares: &[f64]) -> Self {
        let mut values = Self::with_capacity(shares.len());
        shares.iter().for_each(|share| values.push(PERCENT, share.to_bits()));
        values
    }

    pub(crate) fn push_cell(&mut self, cell: &Cell<'_>, texts: &mut TextsBuilder) {
        let (kind, bits) = match cell {
            Cell::Text(text) => (TEXT, texts.text(text).into()),
            Cell::Ns(ns) => (NS, ns.cast_unsigned()),
            Cell::Instant(ns) => (INSTANT, ns.cast_unsigned()),
            Cell::Count(count) => (COUNT, *count),
            Cell::Percent(percent) => (PERCENT, percent.to_bits()),
            Cell::Bytes(bytes) => (BYTES, *bytes),
            Cell::FileBytes(bytes) => (FILE_BYTES, *bytes),
            Cell::Flag(flag) => (FLAG, (*flag).into()),
            Cell::Word { id, label, meaning } => (WORD, texts.triple([id, label, meaning]).into()),
            Cell::Missing { reason } => (MISSING, texts.text(reason).into()),
        };
        self.push(kind, bits);
    }

    pub(crate) fn cell<'a>(&self, row: usize, texts: &'a Texts) -> Option<Cell<'a>> {
        let (kind, bits) = self.at(row)?;
        Some(match kind {
            TEXT => Cell::Text(Cow::Borrowed(texts.text(bits)?)),
            NS => Cell::Ns(bits.cast_signed()),
            INSTANT => Cell::Instant(bits.cast_signed()),
            COUNT => Cell::Count(bits),
            PERCENT => Cell::Percent(f64::from_bits(bits)),
            BYTES => Cell::Bytes(bits),
            FILE_BYTES => Cell::FileBytes(bits),
            FLAG => Cell::Flag(bits != 0),
            WORD => {
                let [id, label, meaning] = texts.triple(bits)?.map(Cow::Borrowed);
                Cell::Word { id, label, meaning }
            }
            MISSING => Cell::Missing { reason: Cow::Borrowed(texts.text(bits)?) },
            _ => return None,
        })
    }

    pub(crate) fn push_key(&mut self, key: Option<RowKey<'_>>, texts: &mut TextsBuilder) {
        let (kind, bits) = match key {
            None => (NO_KEY, 0),
            Some(RowKey::Op(name)) => (KEY_OP, texts.triple(["", "", name]).into()),
            Some(RowKey::Event(event)) => (KEY_EVENT, u64::from(event)),
            Some(RowKey::Kernel { stage, device: None, name }) => {
                (KEY_KERNEL, texts.triple([stage, "", name]).into())
            }
            Some(RowKey::Kernel { stage, device: Some(device), name }) => {
                (KEY_KERNEL_OF_DEVICE, texts.triple([stage, device, name]).into())
            }
        };
        self.push(kind, bits);
    }

    pub(crate) fn key<'a>(&self, row: usize, texts: &'a Texts) -> Option<RowKey<'a>> {
        let (kind, bits) = self.at(row)?;
        match kind {
            KEY_OP => texts.triple(bits).map(|[_, _, name]| RowKey::Op(name)),
            KEY_EVENT => Some(RowKey::Event(u32::try_from(bits).ok()?)),
            KEY_KERNEL | KEY_KERNEL_OF_DEVICE => {
                let [stage, device, name] = texts.triple(bits)?;
                let device = (kind == KEY_KERNEL_OF_DEVICE).then_some(device);
                Some(RowKey::Kernel { stage, device, name })
            }
            _ => None,
        }
    }
}

/// The texts of a table, each once.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Texts {
    /// All of them, one after the other.
    #[serde(with = "utf8")]
    all: String,
    /// Where each ends: `u32`, little-endian.
    #[serde(with = "serde_bytes")]
    ends: Vec<u8>,
    /// Places of three texts each: the words and the keys.
    #[serde(with = "serde_bytes")]
    triples: Vec<u8>,
}

/// Bytes of a place.
const PLACE: usize = 4;

fn place(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at * PLACE..(at + 1) * PLACE)?;
    usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
}

impl Texts {
    fn text(&self, at: u64) -> Option<&str> {
        let at = usize::try_from(at).ok()?;
        let start = at.checked_sub(1).map_or(Some(0), |before| place(&self.ends, before))?;
        self.all.get(start..place(&self.ends, at)?)
    }

    fn triple(&self, at: u64) -> Option<[&str; 3]> {
        let at = usize::try_from(at).ok()? * 3;
        let text = |of: usize| self.text(place(&self.triples, at + of)? as u64);
        Some([text(0)?, text(1)?, text(2)?])
    }

    fn n_texts(&self) -> usize {
        self.ends.len() / PLACE
    }
}

/// Texts that grow: finds a text that is there already by its hash.
#[derive(Debug, Default)]
pub(crate) struct TextsBuilder {
    texts: Texts,
    places: BTreeMap<u64, u32>,
    triples: BTreeMap<[u32; 3], u32>,
}

impl TextsBuilder {
    pub(crate) fn finish(self) -> Texts {
        self.texts
    }

    fn text(&mut self, text: &str) -> u32 {
        let hash = hash(text);
        if let Some(at) = self.places.get(&hash).copied()
            && self.texts.text(at.into()) == Some(text)
        {
            return at;
        }
        self.add(text, hash)
    }

    // Not inlined, as it is rarer than a text that is known.
    #[inline(never)]
    fn add(&mut self, text: &str, hash: u64) -> u32 {
        let at = self.texts.n_texts() as u32;
        self.texts.all.push_str(text);
        self.texts.ends.extend_from_slice(&(self.texts.all.len() as u32).to_le_bytes());
        // Of two texts with one hash only the first is found again.
        self.places.entry(hash).or_insert(at);
        at
    }

    fn triple(&mut self, texts: [&str; 3]) -> u32 {
        let places = texts.map(|text| self.text(text));
        match self.triples.get(&places) {
            Some(at) => *at,
            None => self.add_triple(places),
        }
    }

    #[inline(never)]
    fn add_triple(&mut self, places: [u32; 3]) -> u32 {
        let next = (self.texts.triples.len() / (3 * PLACE)) as u32;
        for place in places {
            self.texts.triples.extend_from_slice(&place.to_le_bytes());
        }
        self.triples.insert(places, next);
        next
    }
}

/// FNV-1a, 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Text as bytes: as a string, every character would be converted to UTF-16 and back.
mod utf8 {
    use serde::de::Error;
    use serde::{Deserializer, Serializer};
    use serde_bytes::ByteBuf;

    pub(super) fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(text.as_bytes())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
        let bytes: ByteBuf = serde::Deserialize::deserialize(from)?;
        String::from_utf8(bytes.into_vec()).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stands_once_and_reads_back() {
        let mut texts = TextsBuilder::default();
        let mut values = Values::default();
        let word = Cell::Word { id: "a".into(), label: "A".into(), meaning: "".into() };
        let cells = [
            Cell::from("gemm"),
            Cell::from(""),
            word.clone(),
            Cell::from("gemm"),
            word,
            Cell::Ns(-5),
            Cell::Percent(f64::NAN),
            Cell::Flag(true),
            Cell::missing("gemm"),
        ];
        for cell in &cells {
            values.push_cell(cell, &mut texts);
        }
        let texts = texts.finish();
        assert_eq!((texts.all.as_str(), texts.n_texts(), texts.triples.len()), ("gemmaA", 4, 12));
        let read: Vec<Cell> = (0..9).filter_map(|row| values.cell(row, &texts)).collect();
        assert_eq!(read[..6], cells[..6]);
        assert!(matches!(read[6], Cell::Percent(percent) if percent.is_nan()));
        assert_eq!(read[7..], cells[7..]);
        assert_eq!(values.cell(9, &texts), None);
    }
}
