//! Call stacks, interned while the file is read.

use std::collections::HashMap;

use memchr::memchr_iter;

use scan::{Cursor, Stop, Value};

use crate::spelling::{integer, text};

/// A stack; 0 is the empty one.
pub type StackId = u32;

/// One frame of a stack, as indexes of [`Stacks::text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// Function.
    pub name: u32,
    /// File.
    pub filename: u32,
    /// Line; 0 where it is not known.
    pub line: i64,
}

/// A stack whose text is longer is read without a guess.
const MOST_TEXT: usize = 64 << 10;

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Whether two texts are equal. (The comparison of the library goes byte by byte in WebAssembly. A function of its own, as others
/// here that go over text, because V8 replaces a function between calls and not while it runs.)
#[inline(never)]
fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let differs =
        |(a, b): (&[u8; 16], &[u8; 16])| u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b);
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    // Four at a time, because a branch per word takes as long as the comparison.
    let ((fours, words), (b_fours, b_words)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    let is_same =
        |(a, b): (&[_; 4], &[_; 4])| a.iter().zip(b).fold(0, |sum, pair| sum | differs(pair)) == 0;
    fours.iter().zip(b_fours).all(is_same)
        && words.iter().zip(b_words).all(|pair| differs(pair) == 0)
        && a_rest == b_rest
}

/// Places of the words that [`spot`] looks at. Stacks differ in their inner frames or, if they have frames of C++, behind them.
const SPOTS: [usize; 8] = [32, 80, 128, 192, 256, 384, 512, 768];

/// Stacks that are found by [`spot`].
const MOST_SPOTTED: usize = 1 << 12;

/// A number below [`MOST_SPOTTED`] by a few words of a text; `None` if it is short.
fn spot(text: &[u8]) -> Option<usize> {
    let mut sum = 0_u64;
    for at in SPOTS {
        let word = text.get(at..)?.first_chunk::<8>()?;
        sum = (sum.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(ODD);
    }
    Some((sum >> 52) as usize)
}

/// A number that differs for most texts that differ; equal ones are compared.
#[inline(never)]
fn fingerprint(text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks::<16>();
    let (mut a, mut b) = (text.len() as u64, ODD);
    let half = |word: &[u8]| word.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    for word in words {
        let word = u128::from_le_bytes(*word);
        a = (a.rotate_left(5) ^ word as u64).wrapping_mul(ODD);
        b = (b.rotate_left(5) ^ (word >> 64) as u64).wrapping_mul(ODD);
    }
    for word in rest.chunks(8) {
        a = (a.rotate_left(5) ^ half(word)).wrapping_mul(ODD);
    }
    a ^ b.rotate_left(32)
}

/// The interned stacks.
///
/// JSON repeats the frames of every event: 71 to 99% of a file. A stack whose text was seen before is found without reading it:
/// most often it is the one that followed the previous stack the last time, or the last one with the same words in a few places;
/// else its end is guessed and its text looked up. A complete array is no prefix of another one, so equal text is an equal stack.
#[derive(Debug)]
pub struct Stacks {
    texts: Vec<Box<str>>,
    text_ids: HashMap<Box<str>, u32>,
    frames: Vec<Frame>,
    /// Per stack, the end of its frames; they begin where those of the stack before end.
    ends: Vec<usize>,
    /// Per stack, its text in the file.
    raw: Vec<Box<[u8]>>,
    /// By fingerprint of that text; the next number where two texts have one fingerprint.
    raw_ids: HashMap<u64, StackId>,
    /// The stack that [`Stacks::known_at`] found last: the element that has it is read after that.
    seen: StackId,
    /// Where it found a stack last, and which. (Reading an element changes `seen`.)
    found: (u64, StackId),
    /// Where the element starts that is read.
    element_at: u64,
    /// By [`spot`], the stack that was found last.
    spotted: Vec<StackId>,
    /// Where the next stack may be looked for: behind what the last search that found nothing has read.
    not_before: u64,
    /// Per stack, which one came after it the last time.
    following: Vec<StackId>,
    last: StackId,
}

impl Default for Stacks {
    fn default() -> Self {
        Self {
            texts: Vec::new(),
            text_ids: HashMap::new(),
            frames: Vec::new(),
            ends: vec![0],
            raw: vec![Box::from(&b"[]"[..])],
            raw_ids: HashMap::new(),
            seen: 0,
            found: (u64::MAX, 0),
            element_at: 0,
            spotted: Vec::new(),
            not_before: 0,
            following: vec![0],
            last: 0,
        }
    }
}

impl Stacks {
    /// How many stacks there are, with the empty one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is only the empty stack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    /// The frames of a stack, innermost first.
    #[must_use]
    pub fn frames(&self, stack: StackId) -> &[Frame] {
        let stack = stack as usize;
        let start = stack.checked_sub(1).and_then(|before| self.ends.get(before));
        let end = self.ends.get(stack).copied().unwrap_or_default();
        self.frames.get(start.copied().unwrap_or_default()..end).unwrap_or_default()
    }

    /// A text of a frame.
    #[must_use]
    pub fn text(&self, id: u32) -> &str {
        self.texts.get(id as usize).map_or("", |text| text)
    }

    /// Drops what only reading needs.
    pub(crate) fn finish(&mut self) {
        self.text_ids = HashMap::new();
        self.raw_ids = HashMap::new();
        self.raw = Vec::new();
        self.following = Vec::new();
        self.spotted = Vec::new();
    }

    /// The element that is read next starts here.
    pub(crate) fn element_at(&mut self, at: u64) {
        self.element_at = at;
    }

    fn known(&self, rest: &[u8], stack: StackId) -> bool {
        let raw = self.raw.get(stack as usize);
        raw.is_some_and(|raw| rest.get(..raw.len()).is_some_and(|own| same(own, raw)))
    }

    /// The stack with this text.
    fn by_text(&self, raw: &[u8]) -> Option<StackId> {
        let mut print = fingerprint(raw);
        loop {
            let stack = *self.raw_ids.get(&print)?;
            if self.raw.get(stack as usize).is_some_and(|known| same(known, raw)) {
                return Some(stack);
            }
            print = print.wrapping_add(1);
        }
    }

    /// How many bytes the stack at the beginning of `rest` has, if its text was seen before; else 0.
    #[inline(never)]
    pub(crate) fn known_at(&mut self, rest: &[u8], at: u64) -> usize {
        let guess = self.following.get(self.seen as usize).copied().unwrap_or_default();
        let mut found = [guess, self.seen].into_iter().find(|stack| self.known(rest, *stack));
        let spot = if found.is_none() { spot(rest) } else { None };
        if let Some(stack) = spot.and_then(|spot| self.spotted.get(spot)) {
            // (A comparison ends where the texts differ, before the end of this one.)
            found = Some(*stack).filter(|stack| *stack != 0 && self.known(rest, *stack));
        }
        // Each byte of the file is searched once at most, whatever is in it.
        if found.is_none() && rest.starts_with(b"[{") && at >= self.not_before {
            let near = rest.get(..MOST_TEXT).unwrap_or(rest);
            let end = memchr_iter(b']', near).find(|end| near.get(end - 1) == Some(&b'}'));
            let text = end.map_or(near, |end| near.get(..=end).unwrap_or_default());
            found = self.by_text(text);
            match found {
                Some(found) => self.remember(spot, found),
                None => self.not_before = at + text.len() as u64,
            }
        }
        let Some(found) = found else { return 0 };
        (self.seen, self.found) = (found, (at, found));
        self.raw.get(found as usize).map_or(0, |raw| raw.len())
    }

    fn remember(&mut self, spot: Option<usize>, stack: StackId) {
        if self.spotted.is_empty() {
            self.spotted = vec![0; MOST_SPOTTED];
        }
        if let Some(place) = spot.and_then(|spot| self.spotted.get_mut(spot)) {
            *place = stack;
        }
    }

    /// Reads the array of frames at the cursor.
    #[inline(never)]
    pub(crate) fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<StackId, Stop> {
        cursor.skip_ws();
        let (found_at, found) = self.found;
        if found_at == self.element_at + cursor.pos() as u64 {
            cursor.advance(self.raw.get(found as usize).map_or(0, |raw| raw.len()));
            self.seen = found;
            return Ok(self.follow(found));
        }
        let rest = cursor.rest();
        let guess = self.following.get(self.last as usize).copied().unwrap_or_default();
        for stack in [self.seen, guess, self.last, 0] {
            // A complete array is no prefix of another one.
            if self.known(rest, stack) {
                cursor.advance(self.raw.get(stack as usize).map_or(0, |raw| raw.len()));
                return Ok(self.follow(stack));
            }
        }
        let start = cursor.pos();
        cursor.skip_value()?;
        let raw = cursor.bytes().get(start..cursor.pos()).unwrap_or_default();
        let stack = match self.by_text(raw) {
            Some(stack) => stack,
            None => self.add(raw),
        };
        self.seen = stack;
        Ok(self.follow(stack))
    }

    fn follow(&mut self, stack: StackId) -> StackId {
        if stack != 0 {
            if let Some(following) = self.following.get_mut(self.last as usize) {
                *following = stack;
            }
            self.last = stack;
        }
        stack
    }

    #[inline(never)]
    fn add(&mut self, raw: &[u8]) -> StackId {
        let mut cursor = Cursor::whole(raw);
        let before = self.frames.len();
        // What can be read of a damaged stack is kept.
        let _: Result<(), Stop> = self.read_frames(&mut cursor);
        if self.frames.len() == before {
            return 0;
        }
        let stack = u32::try_from(self.ends.len()).unwrap_or_default();
        self.ends.push(self.frames.len());
        self.following.push(stack);
        self.raw.push(raw.into());
        let mut print = fingerprint(raw);
        while self.raw_ids.contains_key(&print) {
            print = print.wrapping_add(1);
        }
        self.raw_ids.insert(print, stack);
        stack
    }

    fn read_frames(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        if cursor.peek()? != b'[' {
            return Ok(());
        }
        cursor.enter();
        let mut first = true;
        while cursor.next(first, false)? {
            first = false;
            if cursor.peek()? == b'{' {
                cursor.enter();
                let frame = self.read_frame(cursor)?;
                self.frames.push(frame);
            } else {
                cursor.skip_value()?;
            }
        }
        Ok(())
    }

    fn read_frame(&mut self, cursor: &mut Cursor<'_>) -> Result<Frame, Stop> {
        let empty = self.intern("");
        let mut frame = Frame { name: empty, filename: empty, line: 0 };
        let mut first = true;
        while let Some(key) = cursor.next_key(first)? {
            first = false;
            let value = cursor.value()?;
            match (key.raw, value) {
                (b"name", Value::String(value)) => frame.name = self.intern(&text(value)),
                (b"filename", Value::String(value)) => frame.filename = self.intern(&text(value)),
                (b"line", Value::Number(line)) => {
                    frame.line = integer(line).unwrap_or_default();
                }
                _ => {}
            }
        }
        Ok(frame)
    }

    fn intern(&mut self, text: &str) -> u32 {
        if let Some(id) = self.text_ids.get(text) {
            return *id;
        }
        let id = u32::try_from(self.texts.len()).unwrap_or_default();
        self.texts.push(text.into());
        self.text_ids.insert(text.into(), id);
        id
    }
}
