//! Who an event belongs to: process, thread, GPU stream.

use crate::{StringId, StringTable};

/// A `pid`, `tid`, device or stream as the file spells it. Perfetto folds some of these together; this
/// type never does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdToken {
    /// The key is absent (or null).
    Missing,
    /// An integer.
    Int(i64),
    /// A string.
    Text(StringId),
    /// A number that is no 64-bit integer; the id of its JSON spelling.
    Number(StringId),
}

impl IdToken {
    /// The token as a person reads it; empty when missing.
    #[must_use]
    pub fn display(self, strings: &StringTable) -> String {
        match self {
            Self::Missing => String::new(),
            Self::Int(value) => value.to_string(),
            Self::Text(id) | Self::Number(id) => strings.get(id).to_owned(),
        }
    }
}

/// Names one track of [`crate::Trace::tracks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackId(pub u32);

/// One (pid, tid) pair of the file, with what its metadata events say.
#[derive(Clone, Copy, Debug)]
pub struct Track {
    /// The process it belongs to.
    pub process: ProcessId,
    /// `tid` as spelled.
    pub tid: IdToken,
    /// `thread_name`, the last one said.
    pub name: Option<StringId>,
    /// `thread_sort_index`, the last one said.
    pub sort_index: Option<i64>,
    /// Number of events with a time on this track (metadata events do not count).
    pub n_timed: u32,
}

/// Names one process of [`crate::Trace::processes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// One `pid` of the file, with what its metadata events say.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// `pid` as spelled.
    pub pid: IdToken,
    /// `process_name`, the last one said.
    pub name: Option<StringId>,
    /// `process_labels`, the last one said.
    pub labels: Option<StringId>,
    /// `process_sort_index`, the last one said.
    pub sort_index: Option<i64>,
}

/// Names one GPU stream of [`crate::Trace::streams`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u16);

/// One GPU stream: `args.device` (else `args["Device Id"]`, else the pid) and `args.stream` (else
/// `args.Stream`, else the tid), as the reference figures define it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The device.
    pub device: IdToken,
    /// The stream on that device.
    pub stream: IdToken,
}
