//! The data model of a trace: slices, tracks, streams, flows, and the file they came from.
//!
//! Constraints of this crate, on which all others rely:
//!
//! * no I/O, no clocks, no JSON: a [`Trace`] is plain data, filled once by `decode` and then only read;
//! * times are integer nanoseconds ([`TimeNs`]), parsed from decimal text, never through a float;
//! * events are stored in columns of fixed segments, so that a trace needs a little under 48 bytes per event
//!   and never doubles while it grows (wasm memory cannot shrink);
//! * names are interned ([`StringId`]); equal text has an equal id;
//! * every event has its byte span in the (decompressed) file ([`ByteSpan`]), so that repair can
//!   splice the original bytes and triage can read the arguments again;
//! * nothing here iterates a hash map: the same file gives the same trace, always.

#![warn(unreachable_pub)]

mod blocks;
mod columns;
pub mod decimal;
mod details;
mod event;
mod index;
mod layout;
mod order;
mod strings;
mod track;

pub use blocks::{each_of, each_row};
pub use columns::Segmented;
pub use details::{Collective, Details, LaunchConfig, MemoryEvent, OpInputs, Sequence, StreamWait};
pub use event::{Bind, Event, Flags, ImporterNs, Phase};
pub use index::SmallIndex;
pub use layout::{ArraySpan, Container, ImporterStop, Layout, Member, Metadata, Producer};
pub use order::{sort, sort_by, sort_by_key, sort_numbers};
pub use strings::{BuildIdHasher, IdHasher, StringId, StringTable, same_bytes};
pub use track::{IdToken, Process, ProcessId, Stream, StreamId, Track, TrackId};

mod store;
pub use store::{ByRawCategory, Row, Trace, TraceBuilder, TracePart};

/// A point in time or a length of time in integer nanoseconds.
///
/// Points are relative to [`Trace::origin_ns`], which is 0 unless the file's times overflow `i64`.
pub type TimeNs = i64;

/// A run of bytes of the decompressed file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ByteSpan {
    /// Offset of the first byte.
    pub start: u64,
    /// Number of bytes.
    pub len: u64,
}

impl ByteSpan {
    /// The span from `start` up to, not including, `end`.
    #[must_use]
    pub fn new(start: u64, end: u64) -> Self {
        Self { start, len: end.saturating_sub(start) }
    }

    /// Offset just past the last byte.
    #[must_use]
    pub fn end(self) -> u64 {
        self.start + self.len
    }
}
