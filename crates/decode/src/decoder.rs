//! The push decoder: file bytes in, a trace out.

use ingest::gunzip::{Fault, FaultKind};
use ingest::{Beginning, Document, FileKind, Kind, Unpacked, Unpacker};
use scan::{Cursor, Defect, DefectKind, Frame, Member, Place, Scanner, Sink, Stop};
use trace::{Container, ImporterStop, Trace};

use crate::{
    NotATrace, Problem, ProblemKind,
    event::{Events, importer},
    layout::Frames,
};

/// A decoded file.
#[derive(Debug)]
pub struct Decoded {
    /// The trace.
    pub trace: Trace,
    /// What is wrong with the file, the worst first.
    pub problems: Vec<Problem>,
    /// The file itself.
    pub source: Source,
}

/// The file that was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Whether it is compressed with gzip.
    pub gzip: bool,
    /// Its size.
    pub file_bytes: u64,
    /// Its decompressed size, as far as it could be read.
    pub json_bytes: u64,
}

/// Decodes a file pushed in pieces of any size.
///
/// ```
/// let mut decoder = decode::Decoder::new();
/// decoder.push(br#"{"traceEvents":[{"ph":"X","name":"k","ts":1.5,"dur":"#)?;
/// decoder.push(br#"2,"pid":0,"tid":7}]}"#)?;
/// let decoded = decoder.finish()?;
/// assert_eq!(decoded.trace.ts_ns(0), 1_500);
/// assert!(decoded.problems.is_empty());
/// # Ok::<(), decode::NotATrace>(())
/// ```
#[derive(Debug, Default)]
pub struct Decoder {
    unpacker: Unpacker,
    json: Json,
}

impl Decoder {
    /// A decoder at the start of a file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next piece of the file.
    ///
    /// # Errors
    /// As soon as the file is known to be no trace; the rest need not be read then.
    pub fn push(&mut self, file_bytes: &[u8]) -> Result<(), NotATrace> {
        let Self { unpacker, json } = self;
        let mut result = Ok(());
        unpacker.push(file_bytes, &mut |plain| {
            if result.is_ok() {
                result = json.push(plain);
            }
        });
        result
    }

    /// Number of events so far.
    #[must_use]
    pub fn n_events(&self) -> usize {
        self.json.reader.events.builder.trace().len()
    }

    /// Number of decompressed bytes so far.
    #[must_use]
    pub fn json_bytes(&self) -> u64 {
        self.json.bytes
    }

    /// The file ends here.
    ///
    /// # Errors
    /// When it is no trace.
    pub fn finish(self) -> Result<Decoded, NotATrace> {
        let Self { unpacker, mut json } = self;
        let mut result = Ok(());
        let Unpacked { gzip, file_bytes, faults } =
            unpacker.finish(&mut |plain| result = json.push(plain));
        result?;
        let source = Source { gzip, file_bytes, json_bytes: json.bytes };
        let (trace, problems) = json.finish(&faults)?;
        Ok(Decoded { trace, problems, source })
    }
}

/// The decompressed side: looks at the first bytes, then scans.
#[derive(Debug, Default)]
struct Json {
    /// The first bytes of the file, kept to say what it is when it is no trace.
    beginning: Beginning,
    scanner: Option<Scanner>,
    reader: Reader,
    bytes: u64,
    /// The last bytes so far, to show where a file ends too early.
    tail: Vec<u8>,
}

/// Bytes of the end that are kept to be shown.
const TAIL: usize = 60;

impl Json {
    fn push(&mut self, bytes: &[u8]) -> Result<(), NotATrace> {
        self.bytes += bytes.len() as u64;
        let last = &bytes[bytes.len().saturating_sub(TAIL)..];
        self.tail.drain(..(self.tail.len() + last.len()).saturating_sub(TAIL));
        self.tail.extend_from_slice(last);
        let mut bytes = bytes;
        if self.scanner.is_none() {
            bytes = self.beginning.take(bytes);
            if !self.beginning.is_enough() {
                return Ok(());
            }
            self.start()?;
        }
        if let Some(scanner) = &mut self.scanner {
            scanner.push(bytes, &mut self.reader);
        }
        Ok(())
    }

    /// Enough of the file is here to look at it.
    fn start(&mut self) -> Result<(), NotATrace> {
        let head = self.beginning.bytes();
        match self.beginning.kind() {
            (Kind::Trace(producer), _) => {
                self.reader.events.builder.trace_mut().producer = producer
            }
            (Kind::Other(kind), at) => {
                return Err(NotATrace::new(kind, at as u64, &head[at..]));
            }
        }
        let mut scanner = Scanner::new("traceEvents");
        scanner.push(head, &mut self.reader);
        self.scanner = Some(scanner);
        Ok(())
    }

    fn finish(mut self, faults: &[Fault]) -> Result<(Trace, Vec<Problem>), NotATrace> {
        if self.scanner.is_none() {
            if self.beginning.is_blank() {
                let kind = if faults.is_empty() { FileKind::Empty } else { FileKind::DamagedGzip };
                return Err(NotATrace::new(kind, 0, self.beginning.bytes()));
            }
            self.start()?;
        }
        let Self { beginning, scanner, mut reader, bytes, tail } = self;
        let head = beginning.bytes();
        if let Some(scanner) = scanner {
            scanner.finish(&mut reader);
        }
        reader.frames.finish(bytes);
        let cut =
            faults.iter().any(|it| matches!(it.kind, FaultKind::Truncated | FaultKind::Corrupt));
        let whole = reader.frames.any_end && !cut;
        if let Some(kind) = reader.is_no_trace(&beginning, whole) {
            let blanks = head.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            return Err(NotATrace::new(kind, blanks as u64, &head[blanks..]));
        }
        let last = reader.last_row();
        if reader.frames.layout.importer_rows == reader.last_row().map(|row| row + 1) {
            reader.frames.layout.importer_rows = None;
        }
        reader.frames.layout.importer_stop = importer_stop(head, &reader);
        let Reader { events, frames } = reader;
        let has_correlated_work = events.has_correlated_work;
        let mut problems = events.problems;
        problems.forgive_empty_last(last);
        for fault in faults {
            let shown = if fault.plain_offset == bytes { &tail[..] } else { b"" };
            problems.note(ProblemKind::from(fault.kind), 1, fault.plain_offset, None, shown);
        }
        problems.show_end(bytes, &tail);
        let mut builder = events.builder;
        let trace = builder.trace_mut();
        trace.layout = frames.layout;
        trace.metadata = frames.metadata;
        let mut trace = builder.finish();
        if !has_correlated_work {
            crate::pairs::link(&mut trace);
        }
        Ok((trace, problems.into_list()))
    }
}

/// The importer reads a file in pieces of this size, and what follows the first document in a later one is an error.
const IMPORTER_CHUNK: u64 = 32 << 20;

/// The first place at which Perfetto's importer gives up on the file, or may.
fn importer_stop(head: &[u8], reader: &Reader) -> Option<ImporterStop> {
    let layout = &reader.frames.layout;
    let at = |offset, reason| Some(ImporterStop { offset, reason });
    if !importer::knows(head) {
        return at(0, "the file does not start with {\" or [{\": \"Unknown trace type\"");
    }
    if reader.events.importer_stop.is_some() {
        return reader.events.importer_stop.clone();
    }
    let open = layout.documents == 1 && !reader.frames.any_end;
    if open && layout.container == Container::Object {
        return at(layout.file_len, "the file ends too early: \"JSON trace file is incomplete\"");
    }
    let more = layout.documents > 1 || layout.trailing_bytes > 0;
    if more && layout.file_len > IMPORTER_CHUNK {
        return at(
            layout.file_len,
            "text after the first document may be an error to Perfetto, depending on how the bytes arrive",
        );
    }
    None
}

/// Receives what the scanner finds.
#[derive(Debug, Default)]
struct Reader {
    events: Events,
    frames: Frames,
}

impl Reader {
    /// What the file is, when it is no trace.
    fn is_no_trace(&self, beginning: &Beginning, is_whole: bool) -> Option<FileKind> {
        let layout = &self.frames.layout;
        let has_records = !self.events.builder.trace().is_empty();
        // A bare array is a trace when anything in it looks like an event; an empty one is an empty trace.
        let strange_array = layout.container == Container::Array
            && !self.events.any_phase
            && (has_records || layout.gaps_need_rewrite || !is_whole);
        let document = Document {
            beginning,
            keys: &self.frames.keys,
            is_object: self.frames.starts_with_object(),
            has_records,
            is_whole,
        };
        (layout.array.is_none() || strange_array).then(|| document.kind())
    }

    /// Why the importer stops at a defect, if it does. (What the end of the file lacks is in the layout.)
    fn importer_stop(&self, defect: &Defect<'_>) -> Option<&'static str> {
        use DefectKind::{
            ByteOrderMark, ExtraComma, Junk, Malformed, MissingComma, Outside, SecondArray,
            SecondDocument, TrailingComma, Truncated, UnclosedArray, UnclosedObject, WrongBracket,
        };
        let trace = self.events.builder.trace();
        let leading =
            defect.count == 1 && (trace.is_empty() || defect.offset < trace.span(0).start);
        match (defect.kind, defect.place) {
            (ExtraComma, Place::Among) if leading => None,
            (ExtraComma, Place::Among) => {
                Some("two commas in a row: Perfetto rejects the whole file")
            }
            (Junk | Malformed, Place::Among) => {
                Some("something among the events is not an event: Perfetto rejects the whole file")
            }
            (WrongBracket, Place::Among) => Some(
                "the event array is closed by the wrong bracket: Perfetto rejects the whole file",
            ),
            (Truncated, Place::Among) if !importer::reads_start(defect.excerpt) => {
                Some("the last event is not valid JSON to Perfetto, which rejects the whole file")
            }
            // Commas between members do not matter to it.
            (ExtraComma | TrailingComma, Place::Before | Place::After) => None,
            (Junk | Malformed | WrongBracket | MissingComma, Place::Before | Place::After) => {
                Some("the document around the events is not valid JSON: Perfetto may stop there")
            }
            (SecondArray | MissingComma | TrailingComma | Truncated, _) => None,
            // The first bytes and the end are looked at by themselves.
            (ByteOrderMark | UnclosedArray | UnclosedObject | SecondDocument | Outside, _) => None,
            (Junk | Malformed | WrongBracket | ExtraComma, Place::Outside) => None,
        }
    }

    fn last_row(&self) -> Option<u32> {
        u32::try_from(self.events.builder.trace().len().checked_sub(1)?).ok()
    }
}

impl Sink for Reader {
    #[inline]
    fn element(&mut self, offset: u64, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        self.events.read(offset, cursor)
    }

    fn frame(&mut self, frame: Frame) {
        if matches!(frame, Frame::End { .. }) && !self.frames.behind {
            self.frames.layout.importer_rows =
                self.last_row().map_or(Some(0), |row| row.checked_add(1));
        }
        self.frames.frame(frame);
        self.events.behind = self.frames.behind;
    }

    fn member(&mut self, member: &Member<'_>) {
        if !self.frames.behind
            && let Some(reason) = self.frames.importer_stop(member)
        {
            self.events.stop(member.key_offset, reason);
        }
        self.frames.member(member, &mut self.events.problems);
    }

    fn defect(&mut self, defect: &Defect<'_>) {
        if let Some(reason) = self.importer_stop(defect) {
            self.events.stop(defect.offset, reason);
        }
        self.frames.defect(defect);
        let kind = match (defect.kind, defect.place) {
            (DefectKind::Junk, Place::Before | Place::After) => ProblemKind::FrameJunk,
            (kind, _) => ProblemKind::from(kind),
        };
        let row = if defect.at_element { self.last_row() } else { None };
        let count = if kind == ProblemKind::TrailingText { 1 } else { defect.count };
        self.events.problems.note(kind, count, defect.offset, row, defect.excerpt);
    }

    fn is_element_key(&self, key: &[u8]) -> bool {
        Events::is_event_key(key)
    }
}
