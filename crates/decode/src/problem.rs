//! Everything that can be wrong with a file, as one table.

use ingest::gunzip::FaultKind;
use scan::{DefectKind, Quirk};
use trace::Row;

use crate::excerpt::excerpt;

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing is lost anywhere.
    Info,
    /// Something is lost or misread, here or in Perfetto.
    Warning,
    /// Perfetto rejects the file or the event, or data is gone.
    Error,
}

/// One kind of problem of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub kind: ProblemKind,
    /// How many times.
    pub count: u64,
    /// Where it occurs first, in the decompressed file (for gzip damage outside the compressed data: the
    /// number of bytes decompressed before it).
    pub first_offset: u64,
    /// The first event concerned, when it is an event.
    pub first_row: Option<Row>,
    /// The text there, printable, at most 120 characters.
    pub excerpt: String,
}

/// Declares the kinds, and with them the table.
macro_rules! problems {
    ($($kind:ident $id:literal $severity:ident $title:literal $help:literal;)*) => {
        /// What can be wrong with a file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum ProblemKind {
            $(#[doc = $title] $kind,)*
        }

        impl ProblemKind {
            /// Every kind, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            const ROWS: &'static [(&'static str, Severity, &'static str, &'static str)] =
                &[$(($id, Severity::$severity, $title, $help),)*];
        }
    };
}

// What Perfetto does: trace processor v51 to v58 as measured, docs of the importer model in `repair`.
problems! {
    // ---- the compressed file ----
    GzipTruncated "gzip-truncated" Error
        "The gzip file is truncated"
        "The download or copy stopped early, or the writer was killed. Everything before the cut is kept. Copy the file again if you can; Perfetto stops with \"GZIP stream incomplete\".";
    GzipCorrupt "gzip-corrupt" Error
        "The gzip data is damaged"
        "Decompression failed in the middle. Everything before that place is kept. Copy the file again from its source, in binary mode.";
    GzipCrc "gzip-crc" Error
        "The gzip checksum does not match"
        "The data was decompressed, but some bytes are wrong. Copy the file again; individual figures of this file may be wrong.";
    GzipLength "gzip-length" Warning
        "The gzip length field does not match"
        "The size in the file differs from the size of its content. Copy the file again if you can.";
    GzipTrailing "gzip-trailing" Warning
        "The gzip data is followed by other bytes"
        "They are ignored. This is harmless if the events are complete.";
    // ---- the document ----
    ByteOrderMark "bom" Error
        "The file starts with a byte order mark"
        "Perfetto rejects the file (\"Unknown trace type\"). The repaired file has none.";
    Truncated "truncated" Error
        "The file ends in the middle of an event"
        "The writer was probably killed. Every complete event is kept; the incomplete last one is dropped. Perfetto reports \"JSON trace file is incomplete\".";
    UnclosedArray "unclosed-array" Warning
        "The event array is never closed"
        "The file ends without the closing ]. No complete event is lost. Perfetto accepts this for a bare array only; otherwise it reports \"JSON trace file is incomplete\".";
    UnclosedObject "unclosed-object" Warning
        "The outermost object is never closed"
        "The file ends without the closing }. All events are there. Perfetto reports \"JSON trace file is incomplete\".";
    TrailingComma "trailing-comma" Info
        "A comma precedes a closing bracket"
        "Perfetto and this reader accept it between events; strict JSON readers do not.";
    ExtraComma "extra-comma" Error
        "Two commas instead of one"
        "Perfetto rejects the whole file if there are two commas in a row between events. The repaired file has one.";
    MissingComma "missing-comma" Warning
        "A comma is missing between two events"
        "Perfetto and this reader accept it; strict JSON readers do not.";
    Junk "junk-between-events" Error
        "Text between the events is not an event"
        "For example null, a number or a comment. Kinetoscope skips it; Perfetto rejects the whole file.";
    FrameJunk "junk-in-frame" Error
        "Text outside the events is not a key and value"
        "Text in the outermost object that does not belong to a key. Kinetoscope skips it and omits it from the repaired file.";
    FrameType "frame-type" Error
        "A top-level value has the wrong type"
        "Perfetto rejects the file if displayTimeUnit or systemTraceEvents is not text, or traceEvents is not an array. The repaired file keeps the value under \"original KEY\".";
    Malformed "malformed-event" Error
        "An event is not readable JSON"
        "Kinetoscope skips to the next readable event. Perfetto rejects the whole file or loses everything after this event.";
    WrongBracket "wrong-bracket" Warning
        "A bracket is closed by the wrong kind of bracket"
        "For example [1,2}. Kinetoscope reads it as [1,2]. Inside an event's arguments Perfetto loads the event and loses its arguments silently.";
    EventComma "comma-in-event" Warning
        "A comma is missing or repeated inside an event"
        "Kinetoscope reads the event. Perfetto accepts a trailing comma inside an event; other readers reject the file.";
    SecondArray "second-event-array" Warning
        "The document has more than one traceEvents array"
        "The events of all of them are read, as one trace.";
    Concatenated "concatenated" Error
        "Several documents follow each other in one file"
        "The events of all of them are read, as one trace. Perfetto shows only the first one, without a message. If they come from different processes or ranks, split the file to compare them.";
    TrailingText "trailing-text" Warning
        "The document is followed by other text"
        "Kinetoscope ignores it. Perfetto also ignores it, or stops with \"tried to parse data after EOF\", depending on how the bytes arrive.";
    // ---- the text ----
    InvalidUtf8 "invalid-utf8" Warning
        "Some text is not UTF-8"
        "Bytes in another encoding, often in file names or process names. They appear as \u{fffd} here and in the repaired file, because JSON must be UTF-8.";
    ControlCharacter "control-character" Warning
        "A string contains a raw control character"
        "For example a newline. JSON requires an escape. Perfetto accepts raw control characters in events, but rejects a file with one in a top-level value.";
    SurrogateEscape "surrogate-escape" Error
        "A character is escaped as a surrogate"
        "For example \\ud83d\\ude00 for an emoji, as Python's json writes it. In a name, it makes Perfetto reject the whole file; in args, Perfetto loses that argument and every later one of the event.";
    BadEscape "bad-escape" Warning
        "A backslash does not start a JSON escape"
        "Often an unescaped Windows path. The backslash is kept.";
    NonFinite "non-finite-number" Error
        "A value is NaN or Infinity"
        "JSON has no such numbers. As a time, one makes Perfetto reject the whole file; in args, Perfetto loses that argument and every later one of the event. The repaired file contains them as text.";
    OddNumber "odd-number" Error
        "A number has an invalid spelling"
        "For example 01, +5, .5, or 5. without a digit after the point. Perfetto rejects the whole file.";
    DuplicateKey "duplicate-key" Info
        "An event has the same key twice"
        "The last readable value counts, as in Perfetto.";
    // ---- events ----
    EmptyEvent "empty-event" Warning
        "An event is an empty object"
        "Perfetto up to v56 counts each {} as an error (json_tokenizer_failure). The repaired file does not contain them.";
    EmptyLastEvent "empty-last-event" Info
        "The list of events ends with an empty object"
        "The profiler of JAX and TensorFlow (XLA) ends its list like this; no data is missing. Perfetto up to v56 counts the {} as an error (json_tokenizer_failure). The repaired file does not contain it.";
    UnreadablePhase "unreadable-phase" Error
        "An event has no readable ph"
        "Every event needs a phase, one letter of text, such as \"X\".";
    MissingTs "missing-ts" Error
        "An event has no ts"
        "An event needs a time. Perfetto drops it (json_tokenizer_failure).";
    UnreadableTs "unreadable-ts" Error
        "The ts of an event is not a number"
        "An event without a time cannot be placed. Perfetto drops it; if the ts is NaN, it rejects the whole file.";
    NegativeTs "negative-ts" Error
        "The ts of an event is negative"
        "Perfetto drops it (trace_sorter_negative_timestamp_dropped). The repair uses a time base that avoids negative times.";
    MissingDur "missing-dur" Error
        "A complete event (X) has no dur"
        "Its duration was not recorded. Perfetto drops it (json_parser_failure).";
    UnreadableDur "unreadable-dur" Error
        "The dur of an event is not a number"
        "For example null. Perfetto aborts the import there: \"JSON trace file is incomplete\".";
    NegativeDur "negative-dur" Error
        "The dur of an event is negative"
        "The clock of the device or the profiler was wrong. Perfetto drops it (slice_negative_duration).";
    UnreadableThreadTime "unreadable-thread-time" Error
        "The tts or tdur of an event is not a number"
        "Perfetto aborts the import there.";
    SubNs "sub-ns-digits" Info
        "A time has digits below one nanosecond"
        "Kinetoscope truncates them. Perfetto rounds, and misreads more than 18 decimals.";
    TimeOutOfRange "time-out-of-range" Error
        "A time does not fit 64 bits of nanoseconds"
        "It is more than 292 years away from the other times. Possibly nanoseconds were written as microseconds.";
    StringTime "string-time" Info
        "A time is written as text"
        "\"ts\": \"123\" instead of \"ts\": 123. Kinetoscope and Perfetto read it as a number.";
    RejectedTime "rejected-time" Error
        "A time is text that Perfetto does not read as a number"
        "For example \"+5\" or \"5.\". Perfetto drops the event; for a dur, it stops the whole import. The repaired file contains a plain number.";
    UnreadableFlowId "unreadable-flow-id" Error
        "The id of a flow event cannot be read"
        "Perfetto requires an integer or hexadecimal text (flow_invalid_id). The arrow is lost.";
    FlowWithoutDirection "flow-without-direction" Warning
        "A slice has a bind_id but neither flow_in nor flow_out"
        "Perfetto cannot draw that arrow (flow_without_direction).";
    MissingAsyncId "missing-async-id" Error
        "An async event has no id or no pid"
        "Events b, n and e need a pid and an id to be matched. Perfetto drops them (json_parser_failure).";
    UnreadableSample "unreadable-sample" Error
        "The id of a V8 sample (P) cannot be read"
        "Perfetto requires an integer or hexadecimal text. It drops the event (json_tokenizer_failure).";
    IgnoredPhase "ignored-phase" Info
        "Perfetto does not show events of this phase"
        "Its importer skips unknown phases without an error. The events stay in the repaired file unchanged.";
    CounterArgument "counter-argument" Error
        "A counter's argument is not a number"
        "Or the counter has no arguments. Perfetto counts each as an error (json_parser_failure).";
    MetadataArgument "metadata-argument" Warning
        "A metadata event has an argument of the wrong type"
        "thread_name and process_name require args.name as text that is not empty, the sort indexes require a number. Perfetto counts each as an error (json_parser_failure).";
    InstantScope "instant-scope" Error
        "The scope of an instant event is unknown"
        "The scope s must be t, p or g. Perfetto reads anything else as t (thread), which the repaired file states explicitly.";
    EventTooLong "event-too-long" Error
        "An event is too long, or there are too many"
        "An event of 4 GiB or more, or more than 4 billion events. They are skipped.";
    TooManyStreams "too-many-streams" Warning
        "There are more than 65,535 GPU streams"
        "The field is probably not a stream number. Events of further streams are counted but not assigned to a stream.";
}

impl ProblemKind {
    fn row(self) -> (&'static str, Severity, &'static str, &'static str) {
        Self::ROWS[self as usize]
    }

    /// A short name that stays, for files and tests.
    #[must_use]
    pub fn id(self) -> &'static str {
        self.row().0
    }

    /// How bad it is.
    #[must_use]
    pub fn severity(self) -> Severity {
        self.row().1
    }

    /// What is wrong, in a few words.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.row().2
    }

    /// What it means, for Perfetto and here, and what to do.
    #[must_use]
    pub fn help(self) -> &'static str {
        self.row().3
    }
}

impl From<Quirk> for ProblemKind {
    fn from(quirk: Quirk) -> Self {
        match quirk {
            Quirk::Control => Self::ControlCharacter,
            Quirk::Surrogate => Self::SurrogateEscape,
            Quirk::BadEscape => Self::BadEscape,
            Quirk::Utf8 => Self::InvalidUtf8,
            Quirk::NonFinite => Self::NonFinite,
            Quirk::OddNumber => Self::OddNumber,
            Quirk::ExtraComma | Quirk::MissingComma => Self::EventComma,
            Quirk::WrongBracket => Self::WrongBracket,
            Quirk::NotJson => Self::FrameJunk,
        }
    }
}

impl From<DefectKind> for ProblemKind {
    fn from(kind: DefectKind) -> Self {
        match kind {
            DefectKind::ByteOrderMark => Self::ByteOrderMark,
            DefectKind::MissingComma => Self::MissingComma,
            DefectKind::ExtraComma => Self::ExtraComma,
            DefectKind::TrailingComma => Self::TrailingComma,
            DefectKind::Junk => Self::Junk,
            DefectKind::Malformed => Self::Malformed,
            DefectKind::Truncated => Self::Truncated,
            DefectKind::UnclosedArray => Self::UnclosedArray,
            DefectKind::UnclosedObject => Self::UnclosedObject,
            DefectKind::WrongBracket => Self::WrongBracket,
            DefectKind::SecondArray => Self::SecondArray,
            DefectKind::SecondDocument => Self::Concatenated,
            DefectKind::Outside => Self::TrailingText,
        }
    }
}

impl From<FaultKind> for ProblemKind {
    fn from(kind: FaultKind) -> Self {
        match kind {
            FaultKind::Truncated => Self::GzipTruncated,
            FaultKind::Crc => Self::GzipCrc,
            FaultKind::Length => Self::GzipLength,
            FaultKind::Corrupt => Self::GzipCorrupt,
            FaultKind::Trailing => Self::GzipTrailing,
        }
    }
}

/// Counts problems as they are met.
#[derive(Debug)]
pub(crate) struct Problems([Option<Problem>; ProblemKind::ALL.len()]);

impl Default for Problems {
    fn default() -> Self {
        Self([const { None }; ProblemKind::ALL.len()])
    }
}

impl Problems {
    /// Counts `count` more of a kind; `text` is the file's text from there on.
    #[cold]
    pub(crate) fn note(
        &mut self,
        kind: ProblemKind,
        count: u64,
        offset: u64,
        row: Option<Row>,
        text: &[u8],
    ) {
        match &mut self.0[kind as usize] {
            Some(problem) => problem.count += count,
            none => {
                *none = Some(Problem {
                    kind,
                    count,
                    first_offset: offset,
                    first_row: row,
                    excerpt: excerpt(text),
                });
            }
        }
    }

    /// One empty event at the end of others is how a producer ends its list, not damage.
    pub(crate) fn forgive_empty_last(&mut self, last: Option<Row>) {
        let empty = &mut self.0[ProblemKind::EmptyEvent as usize];
        let ends = |problem: &mut Problem| {
            problem.count == 1 && last > Some(0) && problem.first_row == last
        };
        if let Some(problem) = empty.take_if(ends) {
            let kind = ProblemKind::EmptyLastEvent;
            self.0[kind as usize] = Some(Problem { kind, ..problem });
        }
    }

    /// Problems of the end of the file show its last bytes.
    pub(crate) fn show_end(&mut self, end: u64, tail: &[u8]) {
        for problem in self.0.iter_mut().flatten() {
            if problem.excerpt.is_empty() && problem.first_offset == end {
                problem.excerpt = excerpt(tail);
            }
        }
    }

    /// All that were met, the worst first, then in the order of the table.
    pub(crate) fn into_list(self) -> Vec<Problem> {
        let mut list: Vec<_> = self.0.into_iter().flatten().collect();
        trace::sort_by_key(&mut list, |problem| {
            (std::cmp::Reverse(problem.kind.severity()), problem.kind)
        });
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let mut ids: Vec<_> = ProblemKind::ALL.iter().map(|kind| kind.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ProblemKind::ALL.len(), "ids are unique");
        for (index, kind) in ProblemKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index);
            assert!(kind.id().bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')));
            assert!(!kind.title().ends_with('.') && kind.title().len() < 70, "{}", kind.title());
            assert!(kind.help().ends_with(['.', '?']), "{}", kind.help());
        }
    }
}
