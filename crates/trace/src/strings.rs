//! Interned text.

use std::hash::{BuildHasherDefault, Hasher};

/// Names one text of a [`StringTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringId(pub u32);

impl StringId {
    /// The empty text, present in every table.
    pub const EMPTY: Self = Self(0);
}

/// Every distinct text once, in one arena, found by an open-addressing table.
///
/// Text is what the JSON string *means* (escapes resolved, invalid UTF-8 replaced), not its spelling.
#[derive(Clone, Debug)]
pub struct StringTable {
    arena: Vec<u8>,
    /// End offset of each text; text `i` is `arena[ends[i - 1]..ends[i]]`.
    ends: Vec<u32>,
    hashes: Vec<u32>,
    /// Index + 1 into `ends`, 0 = free. Length is a power of two.
    slots: Vec<u32>,
}

impl Default for StringTable {
    fn default() -> Self {
        let mut table =
            Self { arena: Vec::new(), ends: Vec::new(), hashes: Vec::new(), slots: vec![0; 1024] };
        table.intern("");
        table
    }
}

impl StringTable {
    /// The id of `text`, new or known.
    pub fn intern(&mut self, text: &str) -> StringId {
        let hash = hash(text.as_bytes());
        let mut slot = hash as usize & (self.slots.len() - 1);
        loop {
            match self.slots[slot] {
                0 => break,
                found => {
                    let index = found as usize - 1;
                    if self.hashes[index] == hash && self.bytes(index) == text.as_bytes() {
                        return StringId(index as u32);
                    }
                }
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        let index = self.ends.len() as u32;
        self.arena.extend_from_slice(text.as_bytes());
        self.ends.push(self.arena.len() as u32);
        self.hashes.push(hash);
        self.slots[slot] = index + 1;
        if self.ends.len() * 2 > self.slots.len() {
            self.grow();
        }
        StringId(index)
    }

    /// The id of `text` when it is known.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<StringId> {
        let hash = hash(text.as_bytes());
        let mut slot = hash as usize & (self.slots.len() - 1);
        loop {
            let index = self.slots[slot].checked_sub(1)? as usize;
            if self.hashes[index] == hash && self.bytes(index) == text.as_bytes() {
                return Some(StringId(index as u32));
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// The text of `id`; empty for an id of another table.
    #[must_use]
    pub fn get(&self, id: StringId) -> &str {
        let index = id.0 as usize;
        if index >= self.ends.len() {
            return "";
        }
        std::str::from_utf8(self.bytes(index)).unwrap_or_default()
    }

    /// Number of distinct texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Never true: the empty text is always present.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes held on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.arena.capacity()
            + 4 * (self.ends.capacity() + self.hashes.capacity() + self.slots.capacity())
    }

    fn bytes(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.arena[start..self.ends[index] as usize]
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![0_u32; self.slots.len() * 2];
        let mask = slots.len() - 1;
        for (index, hash) in self.hashes.iter().enumerate() {
            let mut slot = *hash as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = index as u32 + 1;
        }
        self.slots = slots;
    }
}

/// A multiply-and-fold hash over eight bytes a step. Kernel names are hundreds of bytes long and
/// looked up once per event, so a byte-wise hash (or SipHash) would cost more than the scan.
#[inline]
fn hash(bytes: &[u8]) -> u32 {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut state = K ^ bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        state = (state ^ u64::from_le_bytes(*word)).wrapping_mul(K);
        state ^= state >> 29;
    }
    let mut last = [0_u8; 8];
    last[..rest.len()].copy_from_slice(rest);
    state = (state ^ u64::from_le_bytes(last)).wrapping_mul(K);
    (state ^ (state >> 32)) as u32
}

/// A fast hasher for the small integer keys of this project's lookup maps (never iterated).
#[derive(Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    fn write_i64(&mut self, value: i64) {
        self.write_u64(value as u64);
    }
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }
}

/// `BuildHasher` of [`IdHasher`].
pub type BuildIdHasher = BuildHasherDefault<IdHasher>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_text_has_an_equal_id() {
        let mut table = StringTable::default();
        assert_eq!(table.intern(""), StringId::EMPTY);
        let ids: Vec<_> = (0..5000).map(|n| table.intern(&format!("kernel_{n}"))).collect();
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(table.intern(&format!("kernel_{n}")), *id);
            assert_eq!(table.get(*id), format!("kernel_{n}"));
            assert_eq!(table.find(&format!("kernel_{n}")), Some(*id));
        }
        assert_eq!(table.find("absent"), None);
        assert_eq!(table.len(), 5001);
    }
}
