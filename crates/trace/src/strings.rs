//! Interned text.

use std::hash::{BuildHasherDefault, Hasher};

/// Index of a text in a [`StringTable`].
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
    /// The id of `text`, which is added if it is new.
    pub fn intern(&mut self, text: &str) -> StringId {
        let found = self.look_up(text.as_bytes());
        found.unwrap_or_else(|(slot, hash)| self.insert(slot, hash, text))
    }

    /// The id of `text`, which is added if it is new; `None` when it is not UTF-8.
    ///
    /// Only new text is checked: a text that equals one in the table is valid UTF-8, and nearly every
    /// text of a trace is already in the table.
    pub fn intern_utf8(&mut self, text: &[u8]) -> Option<StringId> {
        match self.look_up(text) {
            Ok(id) => Some(id),
            Err((slot, hash)) => Some(self.insert(slot, hash, std::str::from_utf8(text).ok()?)),
        }
    }

    /// The id of `text`, or its free slot, and its hash.
    #[inline]
    fn look_up(&self, text: &[u8]) -> Result<StringId, (usize, u32)> {
        let hash = hash(text);
        let mut slot = hash as usize & (self.slots.len() - 1);
        loop {
            let Some(index) = self.slots[slot].checked_sub(1) else {
                return Err((slot, hash));
            };
            if self.hashes[index as usize] == hash && same_bytes(self.bytes(index as usize), text) {
                return Ok(StringId(index));
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    #[cold]
    fn insert(&mut self, slot: usize, hash: u32, text: &str) -> StringId {
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

    /// The id of `text`; `None` when it is not in the table.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<StringId> {
        self.look_up(text.as_bytes()).ok()
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

    /// Which of the texts are so, by id: read once per text, not once per event.
    #[must_use]
    pub fn marked(&self, is_so: &dyn Fn(&str) -> bool) -> Vec<bool> {
        (0..self.len() as u32).map(|id| is_so(self.get(StringId(id)))).collect()
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

/// Whether two texts are equal, eight bytes a step: without a C library (wasm), slices are compared
/// byte by byte.
#[inline]
#[must_use]
pub fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    let ((a_words, _), (b_words, _)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    a.len() == b.len()
        && a_words
            .iter()
            .zip(b_words)
            .all(|(a, b)| u64::from_le_bytes(*a) == u64::from_le_bytes(*b))
        && last_word(a) == last_word(b)
}

/// The last eight bytes as a word; of fewer bytes a word that no others of as many have. (Copying them into one, byte by byte,
/// becomes a call out of wasm.)
#[inline]
fn last_word(bytes: &[u8]) -> u64 {
    if let Some(last) = bytes.last_chunk() {
        return u64::from_le_bytes(*last);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
    }
    let byte = |at: usize| u64::from(bytes.get(at).copied().unwrap_or_default());
    byte(0) | byte(1) << 8 | byte(2) << 16
}

/// A multiply-and-fold hash over sixteen bytes a step, in two independent lanes.
/// Kernel names are hundreds of bytes long and looked up once per event, so a byte-wise hash (or SipHash)
/// would cost more than the scan.
#[inline]
fn hash(bytes: &[u8]) -> u32 {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let fold = |state: u64, word: &[u8; 8]| {
        let state = (state ^ u64::from_le_bytes(*word)).wrapping_mul(K);
        state ^ (state >> 29)
    };
    let (mut left, mut right) = (K ^ bytes.len() as u64, K.rotate_left(32));
    let (words, _) = bytes.as_chunks::<8>();
    let (pairs, odd) = words.as_chunks::<2>();
    for [first, second] in pairs {
        left = fold(left, first);
        right = fold(right, second);
    }
    for word in odd {
        left = fold(left, word);
    }
    right = fold(right, &last_word(bytes).to_le_bytes());
    let state = fold(left ^ right.rotate_left(17), &[0; 8]);
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
    fn texts_are_the_same_where_every_byte_is() {
        for n in 0..40 {
            let text: Vec<u8> = (0..n).collect();
            assert!(same_bytes(&text, &text.clone()));
            assert!(!same_bytes(&text, &text[..usize::from(n.saturating_sub(1))]) || n == 0);
            for at in 0..usize::from(n) {
                let mut other = text.clone();
                other[at] ^= 0x40;
                assert!(!same_bytes(&text, &other), "{n} bytes, {at}");
            }
        }
    }

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
        assert_eq!(table.intern_utf8(b"kernel_7"), Some(ids[7]));
        assert_eq!(table.intern_utf8(b"caf\xe9"), None);
        assert_eq!(table.len(), 5001);
    }
}
