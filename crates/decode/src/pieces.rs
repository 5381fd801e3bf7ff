//! Cuts the texts of events out of a file that is read again in pieces.

use std::borrow::Cow;

use trace::ByteSpan;

/// Longest text that is cut out, in bytes: what a piece boundary cuts is held until it is whole.
const MOST_TEXT: u64 = 1 << 20;

/// Where a reading is: pieces come in order, and so do the spans that are asked for.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// Decompressed bytes before the current piece.
    offset: u64,
    /// The beginning of the next text, when a piece boundary cut it.
    held: Vec<u8>,
}

/// The text of a span, as far as the current piece goes.
pub(crate) enum Cut<'a> {
    /// It ends in a later piece, or begins there.
    Later,
    /// It is too long to be held.
    TooLong,
    /// All of it.
    Whole(Cow<'a, [u8]>),
}

impl Pieces {
    /// The text of `span`, the next one in the file.
    #[inline]
    pub(crate) fn text<'a>(&mut self, span: ByteSpan, piece: &'a [u8]) -> Cut<'a> {
        let end = self.offset + piece.len() as u64;
        if span.start >= end {
            return Cut::Later;
        }
        if span.len > MOST_TEXT {
            return Cut::TooLong;
        }
        // (Spans lie in order, so what begins before this piece is held.)
        let from = span.start.saturating_sub(self.offset) as usize;
        let to = (span.end().min(end) - self.offset) as usize;
        let Some(part) = piece.get(from..to) else { return Cut::Later };
        if span.end() <= end && self.held.is_empty() {
            return Cut::Whole(Cow::Borrowed(part));
        }
        self.held.extend_from_slice(part);
        match span.end() > end {
            true => Cut::Later,
            false => Cut::Whole(Cow::Owned(std::mem::take(&mut self.held))),
        }
    }

    /// The current piece is over.
    pub(crate) fn pass(&mut self, piece: &[u8]) {
        self.offset += piece.len() as u64;
    }
}
