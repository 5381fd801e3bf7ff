//! The steps inside an event array, and after damage.

use memchr::memchr;

use super::{
    Damage, DefectKind, ELEMENT_MAX, ENDLESS_MAX, EXCERPT, Gap, Scanner, Sink, State,
    frame::{Input, Step},
};
use crate::{
    Cursor, Stop,
    skip::{Kind, Skip},
};

impl Scanner {
    #[inline(never)]
    pub(super) fn elements(&mut self, input: &mut Input<'_>, sink: &mut impl Sink) -> Step {
        loop {
            let Some(byte) = input.significant() else {
                return Step::Wait;
            };
            let offset = input.offset();
            match byte {
                b'{' => {
                    let mut cursor = Cursor::new(input.rest());
                    match sink.element(offset, &mut cursor) {
                        Ok(()) => {
                            let len = cursor.pos();
                            self.commas_before(offset, &input.rest()[..len], true, sink);
                            input.at += len;
                        }
                        Err(stop) => return self.no_element(input, stop, cursor.pos(), sink),
                    }
                }
                b',' => {
                    self.gap.comma(offset);
                    input.at += 1;
                }
                b']' => {
                    input.at += 1;
                    self.close_array(offset, sink);
                    return Step::Go;
                }
                b'}' => return self.brace_among_elements(input, sink),
                b'/' => {
                    let kind = match input.bytes.get(input.at + 1) {
                        Some(b'/') => Kind::LineComment,
                        Some(b'*') => Kind::BlockComment,
                        None if !input.last => return Step::Wait,
                        _ => Kind::Token,
                    };
                    self.state = State::Junk(Skip::new(kind, offset, EXCERPT));
                    return Step::Go;
                }
                other => {
                    self.state = State::Junk(Skip::new(Kind::of(other), offset, EXCERPT));
                    return Step::Go;
                }
            }
        }
    }

    /// `}` in the event array: one too many, or the end with the `]` missing or misspelled.
    #[cold]
    fn brace_among_elements(&mut self, input: &mut Input<'_>, sink: &mut impl Sink) -> Step {
        let offset = input.offset();
        let [next, after] = match input.ahead::<2>(input.at + 1) {
            Ok(found) => found,
            // Nothing after the last brace of a file that is still arriving.
            Err(step) => return step,
        };
        input.at += 1;
        match (next, after) {
            (None, _) if self.doc.object => {
                self.report(sink, DefectKind::UnclosedArray, offset, b"}");
                self.close_array(offset, sink);
                self.close_document(offset + 1, sink);
            }
            (Some(b','), Some(b'"')) if self.doc.object => {
                self.report(sink, DefectKind::WrongBracket, offset, b"}");
                self.close_array(offset, sink);
            }
            _ => {
                self.report(sink, DefectKind::Junk, offset, b"}");
            }
        }
        Step::Go
    }

    /// An element that could not be read, `at` bytes into it.
    #[cold]
    fn no_element(
        &mut self,
        input: &mut Input<'_>,
        stop: Stop,
        at: usize,
        sink: &mut impl Sink,
    ) -> Step {
        let rest = input.rest();
        let start = input.offset();
        let mut was_string = false;
        let skipped = match stop {
            Stop::Malformed => match swallowed(rest, at, input.last, sink) {
                Found::At(brace) => {
                    was_string = true;
                    brace
                }
                Found::Perhaps(_) => return Step::Wait,
                Found::No => at.max(1),
            },
            Stop::Incomplete if !input.last && rest.len() < ELEMENT_MAX => return Step::Wait,
            Stop::Incomplete => {
                self.endless += 1;
                // Perhaps a bracket is missing, and the elements after it were read as its content.
                match next_element(rest, 1, b'{', true, sink) {
                    Found::At(found) if self.endless <= ENDLESS_MAX => found,
                    _ if input.last => {
                        self.report(sink, DefectKind::Truncated, start, rest);
                        input.at = input.bytes.len();
                        return Step::Wait;
                    }
                    _ => rest.len(),
                }
            }
        };
        let last = rest[..skipped].iter().rfind(|byte| !byte.is_ascii_whitespace());
        self.state = State::Damaged(Damage {
            start,
            excerpt: rest[..skipped.min(EXCERPT)].to_vec(),
            // (A colon of a string is before no value: `"name": "at::{"ph"`.)
            last: if was_string { b'"' } else { last.copied().unwrap_or(b'{') },
        });
        input.at += skipped;
        Step::Go
    }

    #[cold]
    pub(super) fn damaged(&mut self, input: &mut Input<'_>, sink: &mut impl Sink) -> Step {
        let State::Damaged(damage) = &mut self.state else {
            return Step::Go;
        };
        let rest = input.rest();
        let (skipped, found) = match next_element(rest, 0, damage.last, input.last, sink) {
            Found::At(at) => (at, true),
            Found::Perhaps(at) => (at, false),
            Found::No => (rest.len(), false),
        };
        let skipped_text = &rest[..skipped];
        let room = EXCERPT - damage.excerpt.len();
        damage.excerpt.extend_from_slice(&skipped_text[..skipped.min(room)]);
        if let Some(byte) = skipped_text.iter().rfind(|byte| !byte.is_ascii_whitespace()) {
            damage.last = *byte;
        }
        input.at += skipped;
        if !found {
            return Step::Wait;
        }
        self.end_damage(input.offset(), sink);
        self.gap = Gap { after_item: true, commas: 1, ..Gap::default() };
        self.state = State::Elements;
        Step::Go
    }

    pub(super) fn end_damage(&mut self, end: u64, sink: &mut impl Sink) {
        if let State::Damaged(Damage { start, excerpt, .. }) = &mut self.state {
            let (start, excerpt) = (*start, std::mem::take(excerpt));
            let len = end - start;
            self.report_many(sink, DefectKind::Malformed, start, len, 1, &excerpt);
        }
    }
}

/// The result of [`next_element`].
enum Found {
    /// An element starts here.
    At(usize),
    /// One may start here, if the bytes that follow agree.
    Perhaps(usize),
    /// No element starts in these bytes.
    No,
}

/// A string that a cut left open ends with the quote of the next element's first key, and holds its brace: `"cat": "Ker { "ph": "X"`.
/// That element begins before the place, `at`, where reading stopped.
fn swallowed(bytes: &[u8], at: usize, last: bool, sink: &impl Sink) -> Found {
    let Some(read) = bytes.get(..at) else { return Found::No };
    let Some(brace) = read.iter().rposition(|byte| *byte == b'{').filter(|brace| *brace > 0) else {
        return Found::No;
    };
    if read[brace + 1..].trim_ascii() != b"\"" {
        return Found::No;
    }
    let mut cursor = Cursor::new(&bytes[brace..]);
    cursor.enter();
    match cursor.next_key(true) {
        Ok(Some(key)) if sink.is_element_key(key.raw) => Found::At(brace),
        Err(Stop::Incomplete) if !last && bytes.len() - brace < LONGEST_KEY => {
            Found::Perhaps(brace)
        }
        _ => Found::No,
    }
}

/// A key is short: a long string is not one.
const LONGEST_KEY: usize = 256;

/// Finds the next `{ "key" :` that may be an element: not the value of a member (no colon before it),
/// and with a key that elements have.
fn next_element(bytes: &[u8], from: usize, mut before: u8, last: bool, sink: &impl Sink) -> Found {
    let mut at = from;
    while let Some(step) = memchr(b'{', &bytes[at..]) {
        let brace = at + step;
        let blank = |byte: &&u8| !byte.is_ascii_whitespace();
        before = bytes[at..brace].iter().rfind(blank).copied().unwrap_or(before);
        at = brace + 1;
        if before != b':' {
            let mut cursor = Cursor::new(&bytes[brace..]);
            cursor.enter();
            match cursor.next_key(true) {
                Ok(Some(key)) if sink.is_element_key(key.raw) => return Found::At(brace),
                Err(Stop::Incomplete) if !last && bytes.len() - brace < LONGEST_KEY => {
                    return Found::Perhaps(brace);
                }
                _ => {}
            }
        }
        before = b'{';
    }
    Found::No
}
