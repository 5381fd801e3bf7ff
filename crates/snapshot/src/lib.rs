//! GPU memory snapshots of PyTorch (`torch.cuda.memory._snapshot()` as JSON): their decoder and what they show.
//!
//! Constraints of this crate:
//!
//! * no I/O: bytes are pushed, in pieces of any size; it contains nothing about traces of the profiler;
//! * a pickle is refused, never opened;
//! * stacks are interned while they are read, so memory follows the number of events and not the text;
//! * sizes of events are requested bytes, sizes of blocks are rounded bytes; they are never added to each other;
//! * a timeline that contradicts the segments is reported as inconsistent.
//!
//! [`Reader`] decodes, [`figures`] answers first, [`analyze`] in full.

#![warn(unreachable_pub)]

mod amounts;
mod births;
mod chart;
mod claim;
mod classes;
mod compare;
mod cut;
mod element;
mod explore;
mod findings;
mod flame;
mod headline;
mod inside;
mod intro;
mod leader;
mod leaks;
mod library;
mod model;
mod modules;
mod ooms;
mod over_time;
mod phase;
mod pictures;
mod reader;
mod releases;
mod replay;
mod report;
mod rest;
mod run;
mod sections;
mod shown;
mod site;
mod spelling;
mod stacking;
mod stacks;
mod state;
mod steps;
mod timeline;
mod totals;
mod walk;
mod whatif;

pub use chart::{By, Chart, Column, Layer, Mark, Stack};
pub use compare::{Comparison, Summary, compare};
pub use explore::Explorer;
pub use model::{
    Action, Annotation, Block, BlockState, Event, LeftOut, Reading, Segment, Snapshot,
};
pub use over_time::{DeviceOverTime, OverTime};
pub use reader::{NotASnapshot, Reader};
pub use report::{DeviceReport, FormatFacts, SnapshotReport};
pub use run::{Allocated, Asked, Question, RunFacts};
pub use stacking::Stacking;
pub use stacks::{Frame, StackId, Stacks};
pub use state::{AllocatorState, state_before};
pub use timeline::{
    CategoryRow, MemoryTimeline, NotATimeline, Step, TimelineReader, TimelineReport,
};
pub use walk::{Held, Range, Walk};

/// Computes the figures of a snapshot and what follows from them.
#[must_use]
pub fn analyze(snapshot: &Snapshot) -> SnapshotReport {
    complete(snapshot, figures(snapshot))
}

/// Computes what a person asks first: totals, call sites, the peak, failed allocations. [`complete`] adds the rest.
#[must_use]
pub fn figures(snapshot: &Snapshot) -> SnapshotReport {
    report::figures(snapshot)
}

/// Adds to [`figures`] of the same snapshot what the allocations are for, other settings of the allocator, pictures and findings.
#[must_use]
pub fn complete(snapshot: &Snapshot, figures: SnapshotReport) -> SnapshotReport {
    rest::complete(snapshot, figures)
}

/// Writes down what a trace of the same run is recognised by, and what it is asked about. `report` is [`analyze`]'s of the snapshot.
#[must_use]
pub fn run_facts(snapshot: &Snapshot, report: &SnapshotReport) -> RunFacts {
    run::run_facts(snapshot, report)
}
