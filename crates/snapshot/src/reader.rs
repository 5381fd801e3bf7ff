//! File bytes to a snapshot.

use std::fmt;

use ingest::{Beginning, FileKind, Kind, Unpacker};
use scan::{Part, PartSink, Splitter};

use crate::model::Snapshot;

const SEGMENTS: usize = 0;
const TRACES: usize = 1;
const ANNOTATIONS: usize = 2;

/// Inner lists of `device_traces` beyond this are damage: no machine has as many devices.
const MOST_DEVICES: usize = 1024;

/// The file is no memory snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotASnapshot {
    /// What it is; `None` for JSON without `segments` and `device_traces`.
    pub kind: Option<FileKind>,
}

impl fmt::Display for NotASnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Some(kind) => write!(f, "{}, not a memory snapshot as JSON. {}", kind.title(), kind.advice()),
            None => f.write_str(
                "no memory snapshot: the JSON has neither segments nor device_traces. Write one with: \
                 s = torch.cuda.memory._snapshot(); json.dump(s, gzip.open(\"snapshot.json.gz\", \"wt\"))",
            ),
        }
    }
}

impl std::error::Error for NotASnapshot {}

/// Decodes a memory snapshot that is pushed in pieces.
#[derive(Debug)]
pub struct Reader {
    unpacker: Unpacker,
    document: Document,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug)]
struct Document {
    beginning: Beginning,
    /// What the first bytes show, if not a snapshot.
    other: Option<FileKind>,
    is_judged: bool,
    splitter: Splitter,
    snapshot: Snapshot,
    is_snapshot: bool,
}

/// What a list of segments lacks to be a snapshot: the member that holds it.
const LIST_HEAD: &[u8] = b"{\"segments\":";
const LIST_END: &[u8] = b"}";

impl Reader {
    /// At the start of a file.
    #[must_use]
    pub fn new() -> Self {
        Self {
            unpacker: Unpacker::new(),
            document: Document {
                beginning: Beginning::new(),
                other: None,
                is_judged: false,
                splitter: Splitter::new(&[
                    ("segments", 2),
                    ("device_traces", 3),
                    ("external_annotations", 2),
                ]),
                snapshot: Snapshot::default(),
                is_snapshot: false,
            },
        }
    }

    /// At the start of a file of which only these events of each device are kept. What the others did to the memory in use is still
    /// exact.
    #[must_use]
    pub fn of_events(events: std::ops::Range<usize>) -> Self {
        let mut reader = Self::new();
        reader.document.snapshot.chosen = Some(events);
        reader
    }

    /// Reads the next bytes of the file, compressed or not.
    ///
    /// # Errors
    /// When its beginning shows that it is no snapshot.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), NotASnapshot> {
        let document = &mut self.document;
        self.unpacker.push(bytes, &mut |bytes| document.push(bytes));
        match self.document.other {
            Some(kind) => Err(NotASnapshot { kind: Some(kind) }),
            None => Ok(()),
        }
    }

    /// The file ends here.
    ///
    /// # Errors
    /// When it is no snapshot.
    pub fn finish(self) -> Result<Snapshot, NotASnapshot> {
        let Self { unpacker, mut document } = self;
        let end = unpacker.finish(&mut |bytes| document.push(bytes));
        document.judge();
        if document.other.is_some() {
            return Err(NotASnapshot { kind: document.other });
        }
        if !document.is_snapshot {
            return Err(NotASnapshot { kind: document.other_array() });
        }
        document.cut();
        if document.snapshot.reading.is_segment_list && document.splitter.cut_element().is_none() {
            document.split(LIST_END);
        }
        let Document { splitter, mut snapshot, .. } = document;
        let reading = &mut snapshot.reading;
        reading.is_cut = !splitter.is_complete();
        reading.damaged_elements += splitter.n_too_long();
        reading.bytes_after = splitter.n_after();
        reading.compression_faults = end.faults.len() as u64;
        snapshot.stacks.finish();
        Ok(snapshot)
    }
}

/// Puts parts of the file into the snapshot.
struct Parts<'a> {
    snapshot: &'a mut Snapshot,
    is_snapshot: &'a mut bool,
}

impl PartSink for Parts<'_> {
    fn part(&mut self, part: Part<'_>) {
        let Self { snapshot, is_snapshot } = self;
        match part {
            Part::Array { array: ANNOTATIONS } => snapshot.reading.has_annotations = true,
            Part::Array { .. } => **is_snapshot = true,
            Part::Element { array, list, bytes, at } => {
                snapshot.stacks.element_at(at);
                element(snapshot, array, list, bytes);
            }
            Part::Member { key: b"allocator_settings", value } => {
                snapshot.settings = Some(String::from_utf8_lossy(value).trim().to_owned());
            }
            Part::Member { key, .. } => {
                let key = String::from_utf8_lossy(key).into_owned();
                *snapshot.reading.unknown_keys.entry(key).or_default() += 1;
            }
        }
    }

    fn known(&mut self, rest: &[u8], at: u64) -> usize {
        self.snapshot.stacks.known_at(rest, at)
    }
}

impl Document {
    fn push(&mut self, bytes: &[u8]) {
        self.snapshot.reading.bytes += bytes.len() as u64;
        let mut rest = bytes;
        if !self.is_judged {
            rest = self.beginning.take(bytes);
            if !self.beginning.is_enough() {
                return;
            }
            self.judge();
        }
        if self.other.is_none() {
            self.split(rest);
        }
    }

    /// Decides by the first bytes, and then reads them.
    fn judge(&mut self) {
        if self.is_judged {
            return;
        }
        self.is_judged = true;
        let kind = self.beginning.kind().0;
        match kind {
            Kind::Other(FileKind::MemorySnapshot) | Kind::Trace(_) => {
                let head = self.beginning.bytes().to_vec();
                let first = head.iter().find(|byte| matches!(byte, b'{' | b'['));
                if kind == Kind::Other(FileKind::MemorySnapshot) && first == Some(&b'[') {
                    self.snapshot.reading.is_segment_list = true;
                    self.split(LIST_HEAD);
                }
                self.split(&head);
            }
            Kind::Other(kind) => self.other = Some(kind),
        }
    }

    /// What a document is that is an array, as a trace may be: only its end shows that it holds no events.
    fn other_array(&self) -> Option<FileKind> {
        let beginning = &self.beginning;
        let first = beginning.bytes().iter().find(|byte| !byte.is_ascii_whitespace());
        let document = ingest::Document {
            beginning,
            keys: &[],
            is_object: false,
            has_records: false,
            is_whole: self.splitter.is_complete(),
        };
        let is_named = |kind: &FileKind| {
            !matches!(kind, FileKind::JsonWithoutEvents | FileKind::CutBeforeEvents)
        };
        first.filter(|byte| **byte == b'[').map(|_| document.kind()).filter(is_named)
    }

    fn split(&mut self, bytes: &[u8]) {
        let Self { splitter, snapshot, is_snapshot, .. } = self;
        splitter.push(bytes, &mut Parts { snapshot, is_snapshot });
    }

    /// The element that the end of the file cuts: of a segment its whole blocks are read, an event is left out.
    fn cut(&mut self) {
        let Self { splitter, snapshot, is_snapshot, .. } = self;
        if let Some(part) = splitter.cut_element() {
            Parts { snapshot, is_snapshot }.part(part);
        }
    }
}

#[inline(never)]
fn element(snapshot: &mut Snapshot, array: usize, list: usize, bytes: &[u8]) {
    match array {
        SEGMENTS => snapshot.read_segment(bytes),
        TRACES if list < MOST_DEVICES => {
            while snapshot.traces.len() <= list {
                snapshot.traces.push(Vec::new());
            }
            snapshot.read_event(list, bytes);
        }
        TRACES => snapshot.reading.damaged_elements += 1,
        _ => snapshot.read_annotation(bytes),
    }
}
