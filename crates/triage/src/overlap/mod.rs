//! Computes exposed and hidden time per kernel, and what could be done about exposed time.
//!
//! `sweep` measures, `risk` and `waits` look at the neighbours of each instance, `verdict` decides, `groups` chooses
//! the kernels, `table` puts the rows together. Advice comes from [`catalog::remedies`] alone.

mod context;
mod edges;
mod explain;
mod groups;
mod note;
mod risk;
mod row;
mod savings;
mod sweep;
mod table;
mod verdict;
mod waits;
mod window;
mod window_rows;

#[cfg(test)]
mod tests;

use catalog::remedies::RunFacts;
use trace::Details;

use super::facts::Regions;
use wall::Wall;

pub use context::{NextTo, OverlapContext};
pub use risk::Risk;
pub use row::OverlapRow;
pub(crate) use sweep::SliceOverlap;
pub(crate) use table::overlap;
pub use verdict::Verdict;
pub use window::{OverlapWindow, WindowLane, WindowSlice, overlap_windows};

/// What a person may choose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverlapOptions<'a> {
    /// The places in Python come from another trace than the times.
    pub pair: bool,
    /// Captures of its graphs tell the places.
    pub captures: bool,
    /// Kernels below this share of the stage's busy time get no row.
    pub min_share_pct: f64,
    /// Arguments of the trace, which say what streams waited for.
    pub details: Option<&'a Details>,
    /// What time is worth; without it nothing is advised.
    pub wall: Option<&'a Wall>,
    /// What holds for the whole run.
    pub facts: RunFacts,
    /// Where DistributedDataParallel starts its all-reduces.
    pub gradient_hooks: Option<&'a Regions>,
    /// By GPU slice: whether its name may be another one's; may be shorter.
    pub displaced: &'a [bool],
}

impl Default for OverlapOptions<'_> {
    fn default() -> Self {
        Self {
            pair: false,
            captures: false,
            min_share_pct: 1.0,
            details: None,
            wall: None,
            facts: RunFacts::default(),
            gradient_hooks: None,
            displaced: &[],
        }
    }
}

/// How much ran at once, over all devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Concurrency {
    /// At least one slice ran.
    pub busy_ns: i64,
    /// At least two streams of a device ran.
    pub overlapped_ns: i64,
    /// The most streams of a device that ran at once.
    pub peak_streams: u64,
}

impl Concurrency {
    /// Counts another device.
    pub(crate) fn add(&mut self, other: Self) {
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        self.overlapped_ns = self.overlapped_ns.saturating_add(other.overlapped_ns);
        self.peak_streams = self.peak_streams.max(other.peak_streams);
    }

    fn of(per_slice: &SliceOverlap) -> Self {
        let mut all = Self::default();
        for device in &per_slice.devices {
            all.busy_ns = all.busy_ns.saturating_add(device.busy_ns);
            all.overlapped_ns = all.overlapped_ns.saturating_add(device.overlapped_ns);
            all.peak_streams = all.peak_streams.max(device.peak_streams as u64);
        }
        all
    }
}

/// What the overlap analysis found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlap {
    /// What is advised, the most wall time first; then the others by priority and exposed time.
    pub rows: Vec<OverlapRow>,
    /// How much ran at once.
    pub concurrency: Concurrency,
    /// What to know before reading the rows: how it was judged, and where it could not be.
    pub note: String,
    /// The time of every GPU slice, parallel to [`timeline::gpu::Gpu`]'s order.
    pub per_slice: SliceOverlap,
}
