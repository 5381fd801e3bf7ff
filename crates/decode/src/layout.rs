//! The document around the events, built from what the scanner meets.

use scan::{
    Defect, DefectKind, Frame, Place,
    strict::{self, Found},
    string::unescape,
};
use trace::{ArraySpan, ByteSpan, Container, Layout, Member, Metadata};

use crate::event::importer;
use crate::problem::{ProblemKind, Problems};

/// Builds the [`Layout`] and the [`Metadata`].
#[derive(Debug, Default)]
pub(crate) struct Frames {
    pub(crate) layout: Layout,
    pub(crate) metadata: Metadata,
    /// The first top-level keys, to say what a file without events is.
    pub(crate) keys: Vec<String>,
    /// The document being read is the one that holds the first event array.
    in_base: bool,
    /// The document being read is an object.
    object: bool,
    n_members: u64,
    text_len: usize,
    /// Some document was read to its end.
    pub(crate) any_end: bool,
    /// What is read now lies behind the first document.
    pub(crate) behind: bool,
}

/// Members kept in all: a trace has some twenty, but a log file of JSON lines has millions.
const MEMBERS: u64 = 1 << 17;
/// Bytes of their texts kept in all.
const TEXTS: usize = 32 << 20;
/// Top-level keys remembered to say what a file is.
const KEYS: usize = 64;

impl Frames {
    pub(crate) fn frame(&mut self, frame: Frame) {
        match frame {
            Frame::Start { object, .. } => {
                self.layout.documents += 1;
                self.behind |= self.layout.documents > 1;
                self.object = object;
                if self.layout.array.is_none() {
                    self.layout.container =
                        if object { Container::Object } else { Container::Array };
                }
            }
            Frame::ArrayOpen { offset } => {
                if self.layout.array.is_none() {
                    self.layout.array = Some(ArraySpan { open: offset, close: None });
                    self.in_base = true;
                    // A document without events stands before this one, and its members with ours.
                    self.layout.prefix_needs_rewrite |= self.layout.documents > 1;
                } else {
                    self.layout.gaps_need_rewrite = true;
                }
            }
            Frame::ArrayClose { offset } => {
                if self.in_base
                    && let Some(array) = &mut self.layout.array
                    && array.close.is_none()
                {
                    array.close = Some(offset);
                }
            }
            Frame::End { offset } => {
                if self.in_base {
                    self.layout.end = Some(offset);
                }
                self.in_base = false;
                self.any_end = true;
                self.behind = true;
            }
        }
    }

    /// Why the importer stops at a member of the first document, if it does.
    pub(crate) fn importer_stop(&self, member: &scan::Member<'_>) -> Option<&'static str> {
        let is_whole = |text: &[u8], len: u64| text.len() as u64 == len;
        let whole =
            is_whole(member.key, member.key_len) && is_whole(member.value, member.value_len);
        if whole && !importer::reads_member(member.key, member.value) {
            return Some(
                "a top-level member is not valid JSON to Perfetto, which rejects the whole file",
            );
        }
        match (member.key, member.value.first()) {
            (b"\"traceEvents\"", _) => {
                Some("\"traceEvents\" is not an array: Perfetto rejects the whole file")
            }
            (b"\"displayTimeUnit\"", first) if first != Some(&b'"') => {
                Some("\"displayTimeUnit\" is not text: Perfetto rejects the whole file")
            }
            (b"\"systemTraceEvents\"", _) => Some(
                "\"systemTraceEvents\" contains lines in another format, which Kinetoscope does not check",
            ),
            _ => None,
        }
    }

    pub(crate) fn member(&mut self, member: &scan::Member<'_>, problems: &mut Problems) {
        let raw = member.key.get(1..).unwrap_or_default();
        let key = unescape(raw.strip_suffix(b"\"").unwrap_or(raw)).into_owned();
        let mut strict = true;
        for (text, start) in [(member.key, member.key_offset), (member.value, member.value_offset)]
        {
            // What is too long to keep is not looked into.
            let whole = text.len() as u64
                == if start == member.key_offset { member.key_len } else { member.value_len };
            if whole {
                for Found { quirk, count, first } in strict::quirks(text) {
                    strict = false;
                    let shown = &text[first.start.saturating_sub(20)..];
                    let at = start + first.start as u64;
                    problems.note(ProblemKind::from(quirk), count, at, None, shown);
                }
            }
        }
        let whole = member.value.len() as u64 == member.value_len;
        let text = (whole && self.text_len + member.value.len() <= TEXTS).then(|| {
            self.text_len += member.value.len();
            let mut text = Vec::with_capacity(member.value.len());
            strict::rewrite(member.value, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        });

        // Strict JSON that the importer does not take.
        let wrong_type = match (&*key, member.value.first()) {
            ("displayTimeUnit" | "systemTraceEvents", first) => first != Some(&b'"'),
            ("traceEvents", _) => true,
            _ => false,
        };
        let any_delete = [member.key, member.value].iter().any(|text| has_delete(text));
        for (found, kind) in
            [(wrong_type, ProblemKind::FrameType), (any_delete, ProblemKind::ControlCharacter)]
        {
            if found {
                strict = false;
                problems.note(kind, 1, member.key_offset, None, member.key);
            }
        }
        let text = text.map(|text| match has_delete(text.as_bytes()) {
            true => text.replace('\x7f', "\\u007f"),
            false => text,
        });
        let key = if wrong_type { format!("original {key}") } else { key };
        if self.n_members >= MEMBERS {
            return;
        }
        self.n_members += 1;
        if self.keys.len() < KEYS {
            self.keys.push(key.clone());
        }
        if let Some(text) = &text {
            self.metadata.members.push((key.clone(), text.clone()));
        }
        let kept = Member {
            key,
            key_span: ByteSpan { start: member.key_offset, len: member.key_len },
            value_span: ByteSpan { start: member.value_offset, len: member.value_len },
            text,
        };
        if self.layout.array.is_none() {
            self.layout.before.push(kept);
            self.layout.prefix_needs_rewrite |= !strict;
        } else if self.in_base {
            self.layout.after.push(kept);
            self.layout.suffix_needs_rewrite |= !strict;
        }
    }

    pub(crate) fn defect(&mut self, defect: &Defect<'_>) {
        let layout = &mut self.layout;
        match (defect.place, defect.kind) {
            (_, DefectKind::ByteOrderMark) => layout.start = defect.offset + defect.len,
            (Place::Outside, DefectKind::Outside) => layout.trailing_bytes += defect.count,
            (Place::Outside, _) => {}
            (Place::Among, DefectKind::UnclosedArray | DefectKind::WrongBracket) => {
                if self.in_base {
                    layout.suffix_needs_rewrite = true;
                }
            }
            (Place::Among, _) => {
                layout.gaps_need_rewrite = true;
                if defect.kind == DefectKind::Truncated {
                    layout.lost_tail_bytes = defect.len;
                }
            }
            (Place::Before, _) if layout.array.is_none() => layout.prefix_needs_rewrite = true,
            (_, kind) if self.in_base => {
                layout.suffix_needs_rewrite = true;
                layout.gaps_need_rewrite |= kind == DefectKind::SecondArray;
            }
            // Another document's frame is part of a gap.
            _ => layout.gaps_need_rewrite = true,
        }
    }

    /// The file ends after `len` bytes.
    pub(crate) fn finish(&mut self, len: u64) {
        self.layout.file_len = len;
        self.layout.suffix_needs_rewrite |= self.layout.end.is_none();
    }

    /// Whether the first document is an object.
    pub(crate) fn starts_with_object(&self) -> bool {
        self.layout.container == Container::Object
    }
}
// (A loop over text, which may be long, in a function of its own: a browser compiles twice what loops, with all that is around it.)
#[inline(never)]
fn has_delete(text: &[u8]) -> bool {
    text.contains(&0x7f)
}
