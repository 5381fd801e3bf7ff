//! Allocations that failed, and what was free at them.

use serde::Serialize;

use crate::model::{Action, SMALL, Snapshot, segment_of};
use crate::replay::Levels;
use crate::site::Sites;
use crate::state::{AllocatorState, Gaps, states_before};

/// An allocation that failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct OomRow {
    pub(crate) index: usize,
    pub(crate) time_us: Option<i64>,
    pub(crate) size: i64,
    pub(crate) device_free: Option<i64>,
    pub(crate) live_requested: i64,
    pub(crate) reserved: i64,
    pub(crate) cached_free: i64,
    pub(crate) largest_cached_free: i64,
    pub(crate) cached_free_same_stream: i64,
    pub(crate) fits_if_defragmented: bool,
    pub(crate) site: String,
    #[serde(skip)]
    pub(crate) stream: i64,
    /// The free ranges of the stream in the default pool, of the segment type that the request uses.
    #[serde(skip)]
    pub(crate) gaps: Gaps,
    /// Whether no block is freed behind it, so that the sizes of free ranges are exact.
    #[serde(skip)]
    pub(crate) is_exact: bool,
}

impl OomRow {
    /// The segment that the allocator asks the driver for.
    pub(crate) fn segment(&self) -> i64 {
        segment_of(self.size)
    }

    /// Whether the device had room for the segment, so that a limit of the process refused it: the allocator compares what it has
    /// reserved with the limit before it asks the driver (`alloc_block`).
    pub(crate) fn is_limited(&self) -> bool {
        self.device_free.is_some_and(|free| free >= self.segment())
    }
}

#[inline(never)]
pub(crate) fn ooms(
    snapshot: &Snapshot,
    device: i64,
    levels: &Levels,
    sites: &Sites,
) -> Vec<OomRow> {
    let trace = snapshot.trace(device);
    let failed: Vec<usize> = trace
        .iter()
        .enumerate()
        .filter(|(_, event)| event.action == Action::Oom)
        .map(|(index, _)| index)
        .collect();
    let last_free = trace.iter().rposition(|event| event.action == Action::FreeCompleted);
    let states = states_before(snapshot, device, &failed);
    let device_index = usize::try_from(device).unwrap_or(usize::MAX);
    let row = |state: &AllocatorState| {
        let event = trace.get(state.index)?;
        let same = state.cached_free_by_stream.get(&event.stream).copied().unwrap_or_default();
        let free = snapshot.device_free.get(&(device_index, state.index)).copied();
        let kind = if event.size <= SMALL { "small" } else { "large" };
        let pool = (event.stream, kind.to_owned(), (0, 0));
        let at = state.index;
        Some(OomRow {
            index: at,
            time_us: event.time(),
            size: event.size,
            device_free: free,
            live_requested: levels.requested.get(at).copied().unwrap_or_default(),
            reserved: levels.reserved.get(at).copied().unwrap_or_default(),
            cached_free: state.cached_free,
            largest_cached_free: state.largest_cached_free,
            cached_free_same_stream: same,
            fits_if_defragmented: event.size <= same.saturating_add(free.unwrap_or_default()),
            site: sites.name(sites.site(event.stack)).to_owned(),
            stream: event.stream,
            gaps: state.gaps_by_pool.get(&pool).copied().unwrap_or_default(),
            is_exact: last_free.is_none_or(|last| last < at),
        })
    };
    states.iter().filter_map(row).collect()
}
