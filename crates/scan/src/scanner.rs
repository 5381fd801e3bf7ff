//! The push driver: reads the frame around the elements, and each element as soon as it is complete.

mod elements;
mod frame;

use crate::{Cursor, skip::Skip};

/// Receives what a [`Scanner`] finds, in file order. Offsets count from the first byte pushed.
pub trait Sink {
    /// An element of the event array begins at `offset`, and `cursor` is at its `{`.
    ///
    /// Reads exactly one value. Must have no effect unless it returns `Ok`, as an element that is
    /// incomplete is offered again.
    ///
    /// # Errors
    /// See [`Stop`](crate::Stop).
    fn element(&mut self, offset: u64, cursor: &mut Cursor<'_>) -> Result<(), crate::Stop>;

    /// A part of the frame was reached.
    fn frame(&mut self, frame: Frame);

    /// A member of an outermost object, except event arrays.
    fn member(&mut self, member: &Member<'_>);

    /// A defect of the frame or between elements.
    fn defect(&mut self, defect: &Defect<'_>);

    /// Whether an object whose first key is `key` (raw, without quotes) looks like an element, when
    /// reading starts again after damage.
    fn is_element_key(&self, key: &[u8]) -> bool;
}

/// A landmark of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A document begins at `offset`: an object, or else a bare array.
    Start {
        /// Offset of its bracket.
        offset: u64,
        /// Whether it is an object.
        object: bool,
    },
    /// An event array was opened; `offset` is just past its `[`.
    ArrayOpen {
        /// Offset just past the bracket.
        offset: u64,
    },
    /// The event array was closed.
    ArrayClose {
        /// Offset of the bracket.
        offset: u64,
    },
    /// The document ends at `offset`, just past its last bracket.
    End {
        /// Offset just past the bracket.
        offset: u64,
    },
}

/// One member of an outermost object.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The key as spelled, quotes included; its first 64 KiB.
    pub key: &'a [u8],
    /// Offset of the key.
    pub key_offset: u64,
    /// Length of the key in the file.
    pub key_len: u64,
    /// The value as spelled, at most its first 1 MiB.
    pub value: &'a [u8],
    /// Offset of the value.
    pub value_offset: u64,
    /// Length of the value in the file.
    pub value_len: u64,
    /// Whether it is before the document's event array.
    pub before_array: bool,
}

/// Where a [`Defect`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In an outermost object, before its event array.
    Before,
    /// In an event array.
    Among,
    /// In an outermost object, after its event array.
    After,
    /// Outside every document.
    Outside,
}

/// The kind of a [`Defect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefectKind {
    /// A UTF-8 byte order mark.
    ByteOrderMark,
    /// No comma where one belongs.
    MissingComma,
    /// A comma that separates nothing.
    ExtraComma,
    /// A comma before the closing bracket.
    TrailingComma,
    /// Text that is neither element nor member: skipped.
    Junk,
    /// An element that even a lenient reader cannot read: skipped.
    Malformed,
    /// The file ends inside an element or member: truncated.
    Truncated,
    /// The file ends before the event array does.
    UnclosedArray,
    /// The file ends before the outermost object does.
    UnclosedObject,
    /// `}` where `]` belongs, or the reverse.
    WrongBracket,
    /// Another event array in the same document.
    SecondArray,
    /// Another document after the first.
    SecondDocument,
    /// Text after the end of a document (or before the first).
    Outside,
}

/// One defect.
#[derive(Clone, Copy, Debug)]
pub struct Defect<'a> {
    /// The kind of a [`Defect`].
    pub kind: DefectKind,
    /// Where, roughly.
    pub place: Place,
    /// Where, exactly.
    pub offset: u64,
    /// Number of bytes concerned (white space between them included).
    pub len: u64,
    /// For [`DefectKind::Outside`], how many of these bytes are not white space; otherwise how many times.
    pub count: u64,
    /// The beginning of the text concerned; may be empty.
    pub excerpt: &'a [u8],
    /// The defect belongs to the element reported just before this.
    pub at_element: bool,
}

/// Members keep this much of their value.
const MEMBER_TEXT: usize = 1 << 20;
/// Keys keep this much.
const KEY_TEXT: usize = 1 << 16;
/// Skipped text keeps this much for the excerpt.
const EXCERPT: usize = 160;
/// A longer element counts as damage.
const ELEMENT_MAX: usize = 256 << 20;
/// How many unterminated elements may count as damage. Each costs a pass over everything up to
/// the end or [`ELEMENT_MAX`], so a hostile file must not repeat it without limit.
const ENDLESS_MAX: u32 = 8;
/// Below this many bytes no second attempt is made, whatever the chunks.
const CARRY_MIN: usize = 64;

/// What is expected next.
#[derive(Debug)]
enum State {
    /// The first bytes of the file.
    Start,
    /// A document, or text outside of any.
    Outside,
    /// In an outermost object: a key, a comma or the end.
    Key,
    /// Inside a key.
    KeyText(Skip),
    /// The colon after a key.
    Colon(Skip),
    /// The value after a key.
    Value(Skip),
    /// Inside a value, the second one; the first is the key.
    ValueText(Skip, Skip),
    /// Inside text in an outermost object that is not a member.
    FrameJunk(Skip),
    /// In an event array: an element, a comma or the end.
    Elements,
    /// Inside text in the event array that is not an element.
    Junk(Skip),
    /// After damage: searching for the next element. Contains the offset where the damage began.
    Damaged(Damage),
}

#[derive(Debug)]
struct Damage {
    start: u64,
    excerpt: Vec<u8>,
    /// The last byte that was not white space.
    last: u8,
}

/// The document being read.
#[derive(Debug, Default)]
struct Doc {
    object: bool,
    /// Event arrays opened so far.
    arrays: u32,
    /// Members so far, event arrays included.
    members: u64,
}

/// The commas since the last element or member.
#[derive(Debug, Default)]
struct Gap {
    /// Whether an item precedes the gap.
    after_item: bool,
    commas: u64,
    first_comma: u64,
    last_comma: u64,
}

impl Gap {
    fn comma(&mut self, offset: u64) {
        if self.commas == 0 {
            self.first_comma = offset;
        }
        self.last_comma = offset;
        self.commas += 1;
    }
}

/// Text outside of every document, while it lasts.
#[derive(Debug, Default)]
struct Stray {
    start: u64,
    end: u64,
    bytes: u64,
    excerpt: Vec<u8>,
}

/// Reads `{"..": .., "<array key>": [elements], ..}` or a bare array out of bytes pushed in any pieces.
#[derive(Debug)]
pub struct Scanner {
    array_key: &'static str,
    state: State,
    /// Offset of the next byte that is not consumed.
    offset: u64,
    /// Bytes that could not be consumed without more.
    carry: Vec<u8>,
    /// Length the carry must reach before the next attempt. Doubling it keeps the time linear.
    want: usize,
    doc: Doc,
    documents: u32,
    gap: Gap,
    stray: Stray,
    endless: u32,
}

impl Scanner {
    /// A scanner for objects whose elements are in the member `array_key`.
    #[must_use]
    pub fn new(array_key: &'static str) -> Self {
        Self {
            array_key,
            state: State::Start,
            offset: 0,
            carry: Vec::new(),
            want: 0,
            doc: Doc::default(),
            documents: 0,
            gap: Gap::default(),
            stray: Stray::default(),
            endless: 0,
        }
    }

    /// Reads the next piece of the file.
    pub fn push(&mut self, chunk: &[u8], sink: &mut impl Sink) {
        let mut chunk = chunk;
        while !self.carry.is_empty() {
            let carried = self.carry.len();
            // Enough for an element of an ordinary size, but not the whole chunk.
            let take = chunk.len().min((self.want - carried.min(self.want)).max(1024));
            self.carry.extend_from_slice(&chunk[..take]);
            if self.carry.len() < self.want {
                return;
            }
            let carry = std::mem::take(&mut self.carry);
            let used = self.drive(&carry, false, sink);
            self.carry = carry;
            if used >= carried {
                // The rest is in the chunk, too, and is read there.
                chunk = &chunk[used - carried..];
                self.carry.clear();
                break;
            }
            chunk = &chunk[take..];
            self.carry.drain(..used);
            self.want = (self.carry.len() * 2).max(CARRY_MIN);
            if chunk.is_empty() {
                return;
            }
        }
        if self.carry.capacity() > 1 << 20 {
            self.carry = Vec::new();
        }
        let used = self.drive(chunk, false, sink);
        self.carry.extend_from_slice(&chunk[used..]);
        self.want = (self.carry.len() * 2).max(CARRY_MIN);
    }

    /// Reads the rest; nothing follows. Returns the number of bytes pushed.
    pub fn finish(mut self, sink: &mut impl Sink) -> u64 {
        let carry = std::mem::take(&mut self.carry);
        let used = self.drive(&carry, true, sink);
        debug_assert_eq!(used, carry.len(), "the last drive leaves nothing");
        self.end(sink);
        self.offset
    }

    fn place(&self) -> Place {
        match (&self.state, self.doc.arrays) {
            (State::Start | State::Outside, _) => Place::Outside,
            (State::Elements | State::Junk(_) | State::Damaged(_), _) => Place::Among,
            (_, 0) => Place::Before,
            _ => Place::After,
        }
    }

    fn report(&self, sink: &mut impl Sink, kind: DefectKind, offset: u64, excerpt: &[u8]) {
        self.report_many(sink, kind, offset, excerpt.len() as u64, 1, excerpt);
    }

    fn report_many(
        &self,
        sink: &mut impl Sink,
        kind: DefectKind,
        offset: u64,
        len: u64,
        count: u64,
        excerpt: &[u8],
    ) {
        let excerpt = &excerpt[..excerpt.len().min(EXCERPT)];
        let place = self.place();
        sink.defect(&Defect { kind, place, offset, len, count, excerpt, at_element: false });
    }
}

#[cfg(test)]
mod tests;
