//! Processes, tracks and GPU streams, to which events belong.

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
    /// A number that is not a 64-bit integer; the id of its JSON text.
    Number(StringId),
}

impl IdToken {
    /// The token as text; empty when missing.
    #[must_use]
    pub fn display(self, strings: &StringTable) -> String {
        match self {
            Self::Missing => String::new(),
            Self::Int(value) => value.to_string(),
            Self::Text(id) | Self::Number(id) => strings.get(id).to_owned(),
        }
    }
}

/// Index of a track in [`crate::Trace::tracks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackId(pub u32);

/// One (pid, tid) pair of the file, with the values of its metadata events.
#[derive(Clone, Copy, Debug)]
pub struct Track {
    /// The process it belongs to.
    pub process: ProcessId,
    /// `tid` as spelled.
    pub tid: IdToken,
    /// `thread_name` of the last such event.
    pub name: Option<StringId>,
    /// `thread_sort_index` of the last such event.
    pub sort_index: Option<i64>,
    /// Number of events with a time on this track (metadata events do not count).
    pub n_timed: u32,
}

/// Index of a process in [`crate::Trace::processes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// One `pid` of the file, with the values of its metadata events.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// `pid` as spelled.
    pub pid: IdToken,
    /// `process_name` of the last such event.
    pub name: Option<StringId>,
    /// `process_labels` of the last such event.
    pub labels: Option<StringId>,
    /// `process_sort_index` of the last such event.
    pub sort_index: Option<i64>,
}

/// Index of a GPU stream in [`crate::Trace::streams`].
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
