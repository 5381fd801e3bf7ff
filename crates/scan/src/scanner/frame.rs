//! The steps of the scanner outside of event arrays, one for each [`State`].

use super::{
    Defect, DefectKind, Doc, EXCERPT, Frame, Gap, KEY_TEXT, MEMBER_TEXT, Member, Place, Scanner,
    Sink, State, Stray,
};
use crate::{
    Cursor,
    skip::{Kind, Skip},
    string::unescape,
};

/// The input of one drive.
pub(super) struct Input<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// Offset of `bytes[0]` in the file.
    base: u64,
    /// Nothing follows `bytes`.
    pub(super) last: bool,
}

/// Whether to continue.
pub(super) enum Step {
    /// Bytes were consumed.
    Go,
    /// All is consumed, or nothing can be without more bytes.
    Wait,
}

impl<'a> Input<'a> {
    pub(super) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// The next byte after white space.
    #[inline]
    pub(super) fn significant(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                byte => return byte.copied(),
            }
        }
    }

    /// The first `n` bytes from `from` on that are not white space. `Err` when more bytes are needed.
    pub(super) fn ahead<const N: usize>(&self, from: usize) -> Result<[Option<u8>; N], Step> {
        let mut found = [None; N];
        let mut cursor = Cursor::new(self.bytes.get(from..).unwrap_or_default());
        for slot in &mut found {
            match cursor.peek() {
                Ok(byte) => *slot = Some(byte),
                Err(_) if self.last => break,
                Err(_) => return Err(Step::Wait),
            }
            cursor.enter();
        }
        Ok(found)
    }
}

impl Scanner {
    // The steps are never inlined; the crate's documentation explains why.
    /// Reads as much of `bytes` as can be read; returns how much was consumed.
    pub(super) fn drive(&mut self, bytes: &[u8], last: bool, sink: &mut impl Sink) -> usize {
        let mut input = Input { bytes, at: 0, base: self.offset, last };
        loop {
            let step = match &self.state {
                State::Start => self.start(&mut input, sink),
                State::Outside => self.outside(&mut input, sink),
                State::Key => self.key(&mut input, sink),
                State::Colon(_) => self.colon(&mut input, sink),
                State::Value(_) => self.value(&mut input, sink),
                State::Elements => self.elements(&mut input, sink),
                State::Damaged(_) => self.damaged(&mut input, sink),
                State::KeyText(_) | State::ValueText(..) | State::FrameJunk(_) | State::Junk(_) => {
                    self.skipping(&mut input, sink)
                }
            };
            if let Step::Wait = step {
                break;
            }
        }
        self.offset += input.at as u64;
        input.at
    }

    #[inline(never)]
    fn start(&mut self, input: &mut Input<'_>, sink: &mut impl Sink) -> Step {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let rest = input.rest();
        if rest.len() < MARK.len() && MARK.starts_with(rest) && !input.last {
            return Step::Wait;
        }
        if rest.starts_with(MARK) {
            self.report(sink, DefectKind::ByteOrderMark, input.offset(), MARK);
            input.at += MARK.len();
        }
        self.state = State::Outside;
        Step::Go
    }

    #[inline(never)]
    fn outside(&mut self, input: &mut Input<'_>, sink: &mut impl Sink) -> Step {
        let Some(byte) = input.significant() else {
            return Step::Wait;
        };
        if matches!(byte, b'{' | b'[') {
            let starts = match input.ahead::<2>(input.at) {
                Ok([_, next]) if byte == b'{' => matches!(next, Some(b'"' | b'}') | None),
                // A stray comma may stand before the first event, as in a first document.
                Ok([_, Some(b',')]) => match input.ahead::<3>(input.at) {
                    Ok([.., next]) => next == Some(b'{'),
                    Err(step) => return step,
                },
                Ok([_, next]) => matches!(next, Some(b'{' | b']') | None),
                Err(step) => return step,
            };
            // The first bracket of the file starts a document; after an end, text may contain brackets.
            if starts || (self.documents == 0 && self.stray.bytes == 0) {
                self.open_document(input, byte == b'{', sink);
                return Step::Go;
            }
        }
        if self.stray.bytes == 0 {
            self.stray.start = input.offset();
        }
        if self.stray.excerpt.len() < EXCERPT {
            self.stray.excerpt.push(byte);
        }
        self.stray.bytes += 1;
        input.at += 1;
        self.stray.end = input.offset();
        Step::Go
    }

    fn end_stray(&mut self, sink: &mut impl Sink) {
        let Stray { start, end, bytes, excerpt } = std::mem::take(&mut self.stray);
        if bytes > 0 {
            self.report_many(sink, DefectKind::Outside, start, end - start, bytes, &excerpt);
        }
    }

    fn open_document(&mut self, input: &mut Input<'_>, object: bool, sink: &mut impl Sink) {
        self.end_stray(sink);
        let offset = input.offset();
        self.documents += 1;
        if self.documents > 1 {
            let text = if object { &b"{"[..] } else { b"[" };
            self.report(sink, DefectKind::SecondDocument, offset, text);
        }
        self.doc = Doc { object, ..Doc::default() };
        self.gap = Gap::default();
        sink.frame(Frame::Start { offset, object });
        input.at += 1;
        if object {
            self.state = State::Key;
        } else {
            self.open_array(input, sink);
        }
    }

    fn open_array(&mut self, input: &Input<'_>, sink: &mut impl Sink) {
        self.doc.arrays += 1;
        self.gap = Gap::default();
        self.state = State::Elements;
        sink.frame(Frame::ArrayOpen { offset: input.offset() });
    }

    pub(super) fn close_array(&mut self, offset: u64, sink: &mut impl Sink) {
        self.trailing_commas(sink);
        sink.frame(Frame::ArrayClose { offset });
        self.gap = Gap { after_item: true, ..Gap::default() };
        self.state = State::Key;
        if !self.doc.object {
            self.close_document(offset + 1, sink);
        }
    }

    pub(super) fn close_document(&mut self, end: u64, sink: &mut impl Sink) {
        self.trailing_commas(sink);
        sink.frame(Frame::End { offset: end });
        self.state = State::Outside;
    }

    /// Commas between the last item and a closing bracket.
    fn trailing_commas(&mut self, sink: &mut impl Sink) {
        let Gap { after_item, commas, first_comma, last_comma } = std::mem::take(&mut self.gap);
        let trailing = u64::from(after_item).min(commas);
        if trailing > 0 {
            self.report(sink, DefectKind::TrailingComma, last_comma, b",");
        }
        if commas > trailing {
            let len = last_comma - first_comma + 1;
            let n = commas - trailing;
            self.report_many(sink, DefectKind::ExtraComma, first_comma, len, n, b",");
        }
    }

    /// Commas between two items, the second of which starts at `offset`.
    #[inline]
    pub(super) fn commas_before(
        &mut self,
        offset: u64,
        excerpt: &[u8],
        element: bool,
        sink: &mut impl Sink,
    ) {
        if self.gap.commas != u64::from(self.gap.after_item) {
            self.wrong_commas(offset, excerpt, element, sink);
        }
        self.gap.after_item = true;
        self.gap.commas = 0;
    }

    #[cold]
    fn wrong_commas(&self, offset: u64, excerpt: &[u8], at_element: bool, sink: &mut impl Sink) {
        let Gap { after_item, commas, first_comma, last_comma } = self.gap;
        let (kind, offset, len, count) = if commas == 0 {
            (DefectKind::MissingComma, offset, 0, 1)
        } else {
            let len = last_comma - first_comma + 1;
            (DefectKind::ExtraComma, first_comma, len, commas - u64::from(after_item))
        };
        let excerpt = &excerpt[..excerpt.len().min(EXCERPT)];
        let place = self.place();
        sink.defect(&Defect { kind, place, offset, len, count, excerpt, at_element });
    }

    #[inline(never)]
    fn key(&mut self, input: &mut Input<'_>, sink: &mut impl Sink) -> Step {
        let Some(byte) = input.significant() else {
            return Step::Wait;
        };
        let offset = input.offset();
        match byte {
            b',' => {
                self.gap.comma(offset);
                input.at += 1;
            }
            b'"' => self.state = State::KeyText(Skip::new(Kind::String, offset, KEY_TEXT)),
            b'}' => {
                input.at += 1;
                self.close_document(offset + 1, sink);
            }
            b']' => {
                let stray = match input.ahead::<1>(input.at + 1) {
                    Ok([next]) => matches!(next, Some(b'}' | b',' | b']')),
                    Err(step) => return step,
                };
                input.at += 1;
                if stray {
                    self.report(sink, DefectKind::Junk, offset, b"]");
                } else {
                    self.report(sink, DefectKind::WrongBracket, offset, b"]");
                    self.close_document(offset + 1, sink);
                }
            }
            _ => self.state = State::FrameJunk(Skip::new(Kind::of(byte), offset, EXCERPT)),
        }
        Step::Go
    }

    #[inline(never)]
    fn colon(&mut self, input: &mut Input<'_>, sink: &mut impl Sink) -> Step {
        let Some(byte) = input.significant() else {
            return Step::Wait;
        };
        let State::Colon(key) = std::mem::replace(&mut self.state, State::Key) else {
            return Step::Go;
        };
        if byte == b':' {
            input.at += 1;
            self.state = State::Value(key);
        } else {
            // A string that is not a key.
            self.frame_junk(&key, sink);
        }
        Step::Go
    }

    #[inline(never)]
    fn frame_junk(&mut self, skip: &Skip, sink: &mut impl Sink) {
        self.gap = Gap { after_item: true, ..Gap::default() };
        self.report_many(sink, DefectKind::Junk, skip.start, skip.len, 1, &skip.kept);
    }

    #[inline(never)]
    fn value(&mut self, input: &mut Input<'_>, sink: &mut impl Sink) -> Step {
        let Some(byte) = input.significant() else {
            return Step::Wait;
        };
        let State::Value(key) = std::mem::replace(&mut self.state, State::Key) else {
            return Step::Go;
        };
        if matches!(byte, b',' | b'}' | b']' | b':') {
            self.frame_junk(&key, sink);
            if byte == b':' {
                input.at += 1;
            }
            return Step::Go;
        }
        self.commas_before(key.start, &key.kept, false, sink);
        self.doc.members += 1;
        if byte == b'[' && self.is_array_key(&key) {
            if self.doc.arrays > 0 {
                self.report(sink, DefectKind::SecondArray, key.start, &key.kept);
            }
            input.at += 1;
            self.open_array(input, sink);
        } else {
            let value = Skip::new(Kind::of(byte), input.offset(), MEMBER_TEXT);
            self.state = State::ValueText(key, value);
        }
        Step::Go
    }

    fn is_array_key(&self, key: &Skip) -> bool {
        key.kept_all()
            && key.kept.len() >= 2
            && unescape(&key.kept[1..key.kept.len() - 1]) == self.array_key
    }

    /// The states that only skip.
    #[inline(never)]
    fn skipping(&mut self, input: &mut Input<'_>, sink: &mut impl Sink) -> Step {
        let (State::KeyText(skip)
        | State::ValueText(_, skip)
        | State::FrameJunk(skip)
        | State::Junk(skip)) = &mut self.state
        else {
            return Step::Go;
        };
        let (used, done) = skip.feed(input.rest());
        input.at += used;
        if !done {
            return Step::Wait;
        }
        let next = match &self.state {
            State::Junk(_) => State::Elements,
            _ => State::Key,
        };
        match std::mem::replace(&mut self.state, next) {
            State::KeyText(key) => self.state = State::Colon(key),
            State::ValueText(key, value) => self.member(&key, &value, sink),
            State::FrameJunk(skip) => self.frame_junk(&skip, sink),
            State::Junk(skip) => {
                if !skip.is_comment() {
                    self.gap = Gap { after_item: true, ..Gap::default() };
                }
                self.report_many(sink, DefectKind::Junk, skip.start, skip.len, 1, &skip.kept);
            }
            _ => {}
        }
        Step::Go
    }

    #[inline(never)]
    fn member(&mut self, key: &Skip, value: &Skip, sink: &mut impl Sink) {
        sink.member(&Member {
            key: &key.kept,
            key_offset: key.start,
            key_len: key.len,
            value: &value.kept,
            value_offset: value.start,
            value_len: value.len,
            before_array: self.doc.arrays == 0,
        });
    }

    /// The end of the file, with everything consumed.
    pub(super) fn end(&mut self, sink: &mut impl Sink) {
        self.end_stray(sink);
        self.end_damage(self.offset, sink);
        let place = self.place();
        let end = self.offset;
        let tail = match &self.state {
            State::Start | State::Outside => return,
            State::Key | State::Elements | State::Damaged(_) => None,
            State::KeyText(skip) | State::FrameJunk(skip) | State::Junk(skip) => Some(skip),
            State::Colon(key) | State::Value(key) | State::ValueText(key, _) => Some(key),
        };
        // A bare word may touch the end of the file; anything else is truncated.
        if let Some(skip) = tail {
            self.report_many(
                sink,
                DefectKind::Truncated,
                skip.start,
                end - skip.start,
                1,
                &skip.kept,
            );
        }
        let kind = match place {
            Place::Among => DefectKind::UnclosedArray,
            _ => DefectKind::UnclosedObject,
        };
        if place == Place::Among {
            self.extra_commas(sink);
        }
        self.report(sink, kind, end, b"");
    }

    /// Commas too many at the end of the file, or before an element that it cuts off.
    fn extra_commas(&self, sink: &mut impl Sink) {
        let Gap { after_item, commas, first_comma, last_comma } = self.gap;
        let extra = commas.saturating_sub(u64::from(after_item));
        if extra > 0 {
            let len = last_comma - first_comma + 1;
            self.report_many(sink, DefectKind::ExtraComma, first_comma, len, extra, b",");
        }
    }
}
