//! Predicts the next key of an object from the previous objects.

use crate::{Ahead, Cursor, Stop, Text};

/// Longest text between two values that is stored.
const TEXT: usize = 32;
/// How many successors are stored for each text.
const WAYS: usize = 4;
/// How many texts are stored. Traces have some sixty; a file with more makes the table start again now and then.
const MOST: usize = 128;
/// No successor.
const NOWHERE: u8 = u8::MAX;

/// The start of an object, as an index of the stored texts.
const START: usize = 0;
/// A later position in an object, after text that is not stored.
const LATER: usize = 1;

/// Reads the keys of objects that resemble each other.
///
/// A program that writes thousands of objects writes the same text between two values each time:
/// `, "ts": `. Where the same bytes follow, the same key follows. One comparison then replaces reading a comma,
/// white space, a string and a colon, and looking up the key. Nine of ten keys are the one that came next the
/// last time.
///
/// Only strict JSON is stored. The first text of an object is stored separately from later texts,
/// because only the latter begin with a comma. `T` is the caller's value for a key.
#[derive(Debug)]
pub struct Keys<T> {
    known: Vec<Known<T>>,
    /// The text that was read last.
    last: usize,
}

/// The text between two values, from the end of one to the start of the next, or to the end of the object.
#[derive(Debug)]
struct Known<T> {
    text: [u64; TEXT / 8],
    /// Ones where `text` has bytes.
    mask: [u64; TEXT / 8],
    len: usize,
    /// `None` for the end of the object.
    key: Option<T>,
    /// Its successors, the latest first.
    ways: [u8; WAYS],
}

impl<T> Known<T> {
    /// Whether the text is what comes next.
    #[inline(always)]
    fn is_at(&self, ahead: &[u64; TEXT / 8]) -> bool {
        let differs = |n: usize| (ahead[n] ^ self.text[n]) & self.mask[n];
        differs(0) | differs(1) == 0 && (self.len <= 16 || differs(2) | differs(3) == 0)
    }
}

impl<T> Default for Keys<T> {
    fn default() -> Self {
        let place = || Known {
            text: [0; TEXT / 8],
            mask: [0; TEXT / 8],
            len: 0,
            key: None,
            ways: [NOWHERE; WAYS],
        };
        Self { known: vec![place(), place()], last: START }
    }
}

impl<T: Copy> Keys<T> {
    /// The next key of the object entered, with the cursor then at its value or white space before it; `None`
    /// past its end. `first` is true on the first call for this object. All objects must have the same `meaning`.
    ///
    /// # Errors
    /// See [`Stop`].
    // Inlined by force, as the cursor's small steps are.
    #[inline(always)]
    pub fn next(
        &mut self,
        cursor: &mut Cursor<'_>,
        first: bool,
        meaning: fn(Text<'_>) -> T,
    ) -> Result<Option<T>, Stop> {
        let mut ahead = cursor.ahead();
        match self.foreseen(&mut ahead, first) {
            Some(key) => {
                cursor.go_to(ahead);
                Ok(key)
            }
            None => self.unforeseen(cursor, first, meaning),
        }
    }

    /// The next key, as [`Keys::next`] returns it, if it is the one that came next the last time; otherwise
    /// [`Keys::unforeseen`] reads it.
    #[inline(always)]
    pub fn foreseen(&mut self, ahead: &mut Ahead<'_>, first: bool) -> Option<Option<T>> {
        if first {
            self.last = START;
        }
        let next = words(ahead.chunk()?);
        let way = usize::from(self.known[self.last].ways[0]);
        let known = self.known.get(way).filter(|known| known.is_at(&next))?;
        ahead.take(known.len)?;
        self.last = way;
        Some(known.key)
    }

    /// The next key, where [`Keys::foreseen`] did not find it.
    ///
    /// # Errors
    /// See [`Stop`].
    #[inline(never)]
    pub fn unforeseen(
        &mut self,
        cursor: &mut Cursor<'_>,
        first: bool,
        meaning: fn(Text<'_>) -> T,
    ) -> Result<Option<T>, Stop> {
        let mut ahead = cursor.ahead();
        if let Some(next) = ahead.chunk() {
            let next = words(next);
            let ways = self.known[self.last].ways;
            for (rank, way) in ways.into_iter().enumerate().skip(1) {
                let Some(known) = self.known.get(usize::from(way)) else { break };
                if known.is_at(&next) && ahead.take(known.len).is_some() {
                    cursor.go_to(ahead);
                    let key = known.key;
                    self.known[self.last].ways.swap(0, rank);
                    self.last = usize::from(way);
                    return Ok(key);
                }
            }
        }
        self.read(cursor, first, meaning)
    }

    /// Reads a key that was not predicted, and stores it.
    // In three functions: some 300 calls of one of twice the size let V8 compile it again.
    #[inline(never)]
    fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        first: bool,
        meaning: fn(Text<'_>) -> T,
    ) -> Result<Option<T>, Stop> {
        let start = cursor.pos();
        let doubts = cursor.take_doubts();
        let key = next_key(cursor, first);
        let sound = !cursor.needs_look();
        cursor.doubt_again(doubts);
        let key = key?;
        let plain = sound && key.is_none_or(|key| !key.is_escaped());
        let key = key.map(meaning);
        let text = &cursor.bytes()[start..cursor.pos()];
        // (At the end of the slice, white space before the value may be yet to come.)
        let is_whole = !cursor.rest().is_empty();
        self.last = match text.len() {
            1..=TEXT if plain && is_whole => self.remember(text, key, first),
            _ => LATER,
        };
        Ok(key)
    }

    /// Stores that `text` came next.
    #[inline(never)]
    fn remember(&mut self, text: &[u8], key: Option<T>, first: bool) -> usize {
        let (mut bytes, mut mask) = ([0; TEXT], [0; TEXT]);
        bytes[..text.len()].copy_from_slice(text);
        mask[..text.len()].fill(0xff);
        let (text, mask, len) = (words(&bytes), words(&mask), text.len());
        let known = self.known.iter().position(|it| it.len == len && it.text == text);
        let way = known.unwrap_or_else(|| {
            if self.known.len() == MOST {
                *self = Self::default();
                self.last = if first { START } else { LATER };
            }
            self.known.push(Known { text, mask, len, key, ways: [NOWHERE; WAYS] });
            self.known.len() - 1
        });
        let ways = &mut self.known[self.last].ways;
        ways.rotate_right(1);
        ways[0] = way as u8;
        way
    }
}

#[inline(never)]
fn next_key<'a>(cursor: &mut Cursor<'a>, first: bool) -> Result<Option<Text<'a>>, Stop> {
    cursor.next_key(first)
}

#[inline(always)]
fn words(bytes: &[u8; TEXT]) -> [u64; TEXT / 8] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|n| words.get(n).map_or(0, |word| u64::from_le_bytes(*word)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every key of the object at the start of `text` with the offset of its value, and whether a closer check is needed.
    type Read = (Result<Vec<(usize, usize)>, Stop>, usize, bool);

    fn read(
        text: &[u8],
        mut next: impl FnMut(&mut Cursor<'_>, bool) -> Result<Option<usize>, Stop>,
    ) -> Read {
        let mut cursor = Cursor::new(text);
        let mut keys = Vec::new();
        cursor.enter();
        let mut read = || {
            while let Some(key) = next(&mut cursor, keys.is_empty())? {
                cursor.skip_ws();
                keys.push((key, cursor.pos()));
                cursor.skip_value()?;
            }
            Ok(())
        };
        let result = read();
        (result.map(|()| keys), cursor.pos(), cursor.needs_look())
    }

    fn meaning(key: Text<'_>) -> usize {
        key.raw.iter().fold(key.raw.len(), |sum, byte| sum.wrapping_mul(31) + usize::from(*byte))
    }

    fn check(objects: &[String]) {
        let mut keys = Keys::default();
        // What follows the object lets the last keys be compared, too.
        let follows = " ".repeat(2 * TEXT);
        for object in objects.iter().chain(objects) {
            let text = [object.as_bytes(), follows.as_bytes()].concat();
            let got = read(&text, |cursor, first| keys.next(cursor, first, meaning));
            let plain = read(&text, |cursor, first| Ok(cursor.next_key(first)?.map(meaning)));
            assert_eq!(got, plain, "{object} of {objects:?}");
            assert!(keys.known.len() <= MOST);
        }
    }

    #[test]
    fn a_comma_is_missed_where_none_was_before() {
        let long = "k".repeat(TEXT);
        check(&[
            format!("{{\"{long}\": 1, \"b\": 2}}"),
            "{, \"b\": 2}".to_owned(),
            "{\"b\": 2 \"b\": 3}".to_owned(),
            "{\"b\": 2, \"b\": 3, \"b\": 4}".to_owned(),
            "{\"b\": 2,, \"b\": 3}".to_owned(),
        ]);
    }

    #[test]
    fn more_keys_than_are_remembered() {
        let object = |from: usize| {
            let members: Vec<_> = (from..from + 90).map(|n| format!("\"k{n}\": {n}")).collect();
            format!("{{{}}}", members.join(", "))
        };
        let objects: Vec<_> = (0..9).map(|n| object(n * 37)).collect();
        check(&objects);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn reads_as_without_a_memory(objects in proptest::collection::vec(object(), 1..12)) {
            check(&objects);
        }
    }

    fn object() -> impl Strategy<Value = String> {
        let part = |of: &'static [&'static str]| proptest::sample::select(of);
        let gap = part(&[", ", ", ", ", ", ",", ",\n  ", "", " ", ",,", " , "]);
        let key = part(&[
            "\"ph\"",
            "\"ts\"",
            "\"ts\"",
            "\"n\\u0061me\"",
            "\"a key that is a little longer\"",
            "\"a key that is much longer than is remembered\"",
            "\"\u{1}\"",
            "\"\u{e9}\"",
            "\"\n\"",
            "\"\"",
            "key",
        ]);
        let colon = part(&[": ", ": ", ":", " : ", " "]);
        let value = part(&["1", "\"x\"", "{}", "[1]", "\"\u{e9}\"", "01", "-1.5", "null"]);
        let member = (gap, key, colon, value).prop_map(|(a, b, c, d)| format!("{a}{b}{c}{d}"));
        let end = part(&["}", "}", "\n}", ",}", "]", ""]);
        (any::<bool>(), proptest::collection::vec(member, 0..6), end).prop_map(
            |(tidy, members, end)| {
                let members = members.concat();
                let start = if tidy { ", \n" } else { "" };
                format!("{{{}{end}", members.trim_start_matches(|it| start.contains(it)))
            },
        )
    }
}
