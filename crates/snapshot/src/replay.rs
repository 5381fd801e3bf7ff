//! The timeline: a walk from the final state of the allocator back to the first event.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::iter::{Copied, Peekable};
use std::slice::Iter;

use serde::Serialize;

use crate::inside::{callers, inside};
use crate::model::{Action, Block, Event, Snapshot};
use crate::shown::{Shown, shown};
use crate::site::{ByPhase, NO_STACK, SiteRow, Sites, Sums, as_reference};
use crate::stacks::StackId;

/// What the replay finds. All levels are requested bytes, as the events record them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Replay {
    /// Allocations alive at the end of the trace that a block of the same address and requested size confirms.
    pub(crate) agree: u64,
    /// Allocations alive at the end of the trace.
    pub(crate) trace_live_end: u64,
    /// Allocations at an address that was in use.
    pub(crate) double_alloc: u64,
    /// Frees of blocks that were allocated before the first event.
    pub(crate) free_of_untraced: u64,
    /// Allocations whose end is nowhere.
    pub(crate) backward_orphan_allocs: u64,
    /// Frees of blocks that are in use afterwards.
    pub(crate) backward_double_frees: u64,
    /// Allocations of another size than their free or their block.
    pub(crate) size_mismatch: u64,
    /// The most by which live bytes exceed reserved bytes; 0 in a consistent file.
    pub(crate) max_live_over_reserved: i64,
    /// Levels below 0.
    pub(crate) negative_levels: u64,
    /// Whether there is more than one event.
    pub(crate) timeline_usable: bool,
    /// Whether trace and segments agree in everything above.
    pub(crate) trace_matches_snapshot: bool,
    pub(crate) start_requested: i64,
    pub(crate) end_requested: i64,
    pub(crate) start_reserved: i64,
    pub(crate) peak_requested: i64,
    /// The peak is the state before the event of this index.
    pub(crate) peak_index: usize,
    pub(crate) peak_time_us: Option<i64>,
    pub(crate) peak_reserved: i64,
    pub(crate) peak_reserved_index: usize,
    pub(crate) peak_reserved_time_us: Option<i64>,
    pub(crate) peak_live_count: u64,
    pub(crate) peak_live_bytes: i64,
    /// Bytes alive at the peak that were allocated before the first event.
    pub(crate) peak_untraced_bytes: i64,
    #[serde(serialize_with = "as_reference")]
    pub(crate) peak_by_phase: ByPhase,
    pub(crate) peak_by_site: Vec<SiteRow>,
    /// Of the peak that is shown: all of them, by cause.
    #[serde(skip)]
    pub(crate) peak_sites: Vec<SiteRow>,
    /// The peak that is shown; the first one is that of the figures above.
    #[serde(skip)]
    pub(crate) shown: Shown,
}

/// Call sites whose modules are looked into.
const SITES_WITH_INSIDE: usize = 3;

/// Live and reserved bytes before every event, and after the last one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) requested: Vec<i64>,
    pub(crate) reserved: Vec<i64>,
}

/// Faults that the walk back finds.
#[derive(Default)]
struct Faults {
    orphans: u64,
    double_frees: u64,
    mismatches: u64,
    /// Events without effect, by index, descending.
    ignored: Vec<usize>,
}

/// Events that are walked in one call. (V8 replaces a function by its optimised code between calls, not while it runs.)
const PIECE: usize = 2048;

#[derive(Default)]
struct Forward {
    live: HashMap<u64, usize>,
    double_alloc: u64,
    unknown_free: u64,
}

#[inline(never)]
fn forward(trace: &[Event]) -> Forward {
    let mut end = Forward::default();
    for (piece, events) in trace.chunks(PIECE).enumerate() {
        end.walk(piece * PIECE, events);
    }
    end
}

impl Forward {
    #[inline(never)]
    fn walk(&mut self, first: usize, events: &[Event]) {
        for (index, event) in (first..).zip(events) {
            match event.action {
                Action::Alloc => {
                    let before = self.live.insert(event.address, index);
                    self.double_alloc += u64::from(before.is_some());
                }
                Action::FreeCompleted => {
                    let birth = self.live.remove(&event.address);
                    self.unknown_free += u64::from(birth.is_none());
                }
                _ => {}
            }
        }
    }
}

/// Live blocks by address: requested bytes and, where the segments have it, the allocating stack.
type Live = HashMap<u64, (i64, StackId)>;

/// The blocks that are live after the last event.
#[inline(never)]
fn final_blocks(snapshot: &Snapshot, device: i64) -> Live {
    let blocks = snapshot.live_at_end(device).into_iter();
    blocks.map(|block| (block.address, (block.requested, block.stack))).collect()
}

/// The walk from the end to the first event.
struct Back {
    live: Live,
    requested: i64,
    reserved: i64,
    levels: Levels,
    faults: Faults,
}

#[inline(never)]
fn walk_back(trace: &[Event], live: Live, (requested, reserved): (i64, i64)) -> (Levels, Faults) {
    let n = trace.len();
    let levels = Levels { requested: vec![requested; n + 1], reserved: vec![reserved; n + 1] };
    let mut back = Back { live, requested, reserved, levels, faults: Faults::default() };
    for (piece, events) in trace.chunks(PIECE).enumerate().rev() {
        back.walk(piece * PIECE, events);
    }
    (back.levels, back.faults)
}

impl Back {
    #[inline(never)]
    fn walk(&mut self, first: usize, events: &[Event]) {
        for (at, event) in events.iter().enumerate().rev() {
            let index = first + at;
            match event.action {
                Action::Alloc => match self.live.remove(&event.address) {
                    None => {
                        self.faults.orphans += 1;
                        self.faults.ignored.push(index);
                    }
                    Some((size, _)) => {
                        self.faults.mismatches += u64::from(size != event.size);
                        self.requested = self.requested.saturating_sub(size);
                    }
                },
                Action::FreeCompleted => {
                    if let Entry::Vacant(place) = self.live.entry(event.address) {
                        place.insert((event.size, 0));
                        self.requested = self.requested.saturating_add(event.size);
                    } else {
                        self.faults.double_frees += 1;
                        self.faults.ignored.push(index);
                    }
                }
                Action::SegmentAlloc | Action::SegmentMap => {
                    self.reserved = self.reserved.saturating_sub(event.size);
                }
                Action::SegmentFree | Action::SegmentUnmap => {
                    self.reserved = self.reserved.saturating_add(event.size);
                }
                _ => {}
            }
            if let Some(level) = self.levels.requested.get_mut(index) {
                *level = self.requested;
            }
            if let Some(level) = self.levels.reserved.get_mut(index) {
                *level = self.reserved;
            }
        }
    }
}

/// The first index of the largest level, and that level.
fn peak(levels: &[i64]) -> (usize, i64) {
    let mut peak = (0, levels.first().copied().unwrap_or_default());
    for (index, level) in levels.iter().enumerate() {
        if *level > peak.1 {
            peak = (index, *level);
        }
    }
    peak
}

/// What is alive before the event `at`.
#[inline(never)]
fn live_at(trace: &[Event], at: usize, mut live: Live, ignored: &[usize]) -> Live {
    let mut ignored = ignored.iter().copied().peekable();
    for (piece, events) in trace.chunks(PIECE).enumerate().skip(at / PIECE).rev() {
        let first = piece * PIECE;
        undo(&mut live, first, at.saturating_sub(first), events, &mut ignored);
    }
    live
}

/// Takes back the events of a piece from its event `from` on.
#[inline(never)]
fn undo(
    live: &mut Live,
    first: usize,
    from: usize,
    events: &[Event],
    ignored: &mut Peekable<Copied<Iter<'_, usize>>>,
) {
    for (at, event) in events.iter().enumerate().skip(from).rev() {
        let index = first + at;
        while ignored.next_if(|ignored| *ignored > index).is_some() {}
        if ignored.peek() == Some(&index) {
            continue;
        }
        match event.action {
            Action::Alloc => {
                live.remove(&event.address);
            }
            // A free has the stack of the free, in newer files; the allocation's is not in the file.
            Action::FreeCompleted => {
                live.insert(event.address, (event.size, 0));
            }
            _ => {}
        }
    }
}

/// The call sites of what is alive at the peak; of the largest, what is inside of them and who calls them.
fn peak_sites(
    snapshot: &Snapshot,
    sites: &Sites,
    sums: &Sums<'_>,
    at_peak: &[(StackId, i64)],
    bytes: i64,
) -> Vec<SiteRow> {
    let mut rows = sums.rows();
    for row in rows.iter_mut().take(SITES_WITH_INSIDE) {
        let is_own = |(stack, _): &&(StackId, i64)| sites.name(sites.site(*stack)) == row.site;
        let own: Vec<_> = at_peak.iter().filter(is_own).copied().collect();
        row.inside = inside(&snapshot.stacks, &own);
        row.callers = callers(&snapshot.stacks, &own, bytes);
    }
    rows
}

/// What is in use at one level.
struct AtLevel {
    count: u64,
    bytes: i64,
    /// Bytes from before the first event.
    untraced: i64,
    /// Those of them without a stack.
    nameless: i64,
    by_phase: ByPhase,
    by_stack: Vec<(i64, u64)>,
    references: Vec<SiteRow>,
    sites: Vec<SiteRow>,
}

/// What is in use before the event `at`. `end`: the blocks after the last event, and the events without effect.
#[inline(never)]
fn at_level(
    snapshot: &Snapshot,
    (trace, sites): (&[Event], &Sites),
    at: usize,
    (end, ignored): (Live, &[usize]),
) -> AtLevel {
    let live = live_at(trace, at, end, ignored);
    let before = forward(trace.get(..at).unwrap_or_default()).live;
    let mut live: Vec<(u64, (i64, StackId))> = live.into_iter().collect();
    live.sort_unstable();
    let mut sums = Sums::new(sites);
    let (mut bytes, mut untraced, mut nameless) = (0i64, 0i64, 0i64);
    let mut blocks: Vec<(StackId, i64)> = Vec::new();
    let mut by_stack = vec![(0, 0); snapshot.stacks.len()];
    for (address, (size, stack)) in &live {
        bytes = bytes.saturating_add(*size);
        let birth = before.get(address).and_then(|index| trace.get(*index));
        if birth.is_none() {
            untraced = untraced.saturating_add(*size);
            let is_nameless = sites.name(sites.site(*stack)) == NO_STACK;
            nameless = nameless.saturating_add(if is_nameless { *size } else { 0 });
        }
        let stack = birth.map_or(*stack, |event| event.stack);
        sums.add(stack, *size);
        blocks.push((stack, *size));
        if let Some((sum, count)) = by_stack.get_mut(stack as usize) {
            (*sum, *count) = (size.saturating_add(*sum), *count + 1);
        }
    }
    AtLevel {
        count: live.len() as u64,
        bytes,
        untraced,
        nameless,
        sites: peak_sites(snapshot, sites, &sums, &blocks, bytes),
        by_phase: sums.phases.clone(),
        by_stack,
        references: sums.references(),
    }
}

/// Replays the events of a device.
#[inline(never)]
pub(crate) fn replay(snapshot: &Snapshot, device: i64, sites: &Sites) -> (Replay, Levels) {
    let trace = snapshot.trace(device);
    let segments = || snapshot.segments.iter().filter(|segment| segment.device == device);
    let end = final_blocks(snapshot, device);
    let Forward { live: traced, double_alloc, unknown_free } = forward(trace);
    let mut traced: Vec<(u64, usize)> = traced.into_iter().collect();
    traced.sort_unstable();
    let agree = traced.iter().filter(|(address, index)| {
        end.get(address).map(|block| block.0) == trace.get(*index).map(|event| event.size)
    });
    let agree = agree.count() as u64;
    let mut final_live: Vec<(u64, i64)> = end.iter().map(|(a, block)| (*a, block.0)).collect();
    final_live.sort_unstable();
    let requested = final_live.iter().fold(0i64, |sum, (_, size)| sum.saturating_add(*size));
    let reserved = segments().fold(0i64, |sum, segment| sum.saturating_add(segment.total_size));
    let later = snapshot.later_of(device);
    let reserved = later.map_or(reserved, |later| later.reserved_before(reserved));
    let blocks = segments().flat_map(|segment| snapshot.blocks_of(segment)).copied();
    let later_faults = later.map_or(0, |later| later.faults(blocks.filter(Block::is_active)));
    let (levels, faults) = walk_back(trace, end.clone(), (requested, reserved));
    let pairs = levels.requested.iter().zip(&levels.reserved);
    let over = pairs.map(|(live, reserved)| live.saturating_sub(*reserved)).max();
    let over = over.unwrap_or_default().max(0);
    let negative =
        levels.requested.iter().chain(&levels.reserved).filter(|level| **level < 0).count();
    let time = |index: usize| trace.get(index.saturating_sub(1)).and_then(Event::time);
    let (peak_index, peak_requested) = peak(&levels.requested);
    let (peak_reserved_index, peak_reserved) = peak(&levels.reserved);

    let ends = (end, &*faults.ignored);
    let at_peak = at_level(snapshot, (trace, sites), peak_index, ends.clone());
    let faulty = double_alloc + faults.orphans + faults.double_frees + faults.mismatches > 0
        || later_faults > 0
        || negative > 0
        || over > 0;
    let is_matching = agree == traced.len() as u64 && !faulty;
    let mut shown = Shown { index: peak_index, nth: 1, times: 1, ..Shown::default() };
    if is_matching {
        shown = self::shown((trace, sites), &levels.requested, (peak_index, peak_requested));
    }
    let other = shown.index != peak_index;
    let other = other.then(|| at_level(snapshot, (trace, sites), shown.index, ends));
    let of_shown = other.as_ref().unwrap_or(&at_peak);
    shown.untraced_bytes = of_shown.untraced;
    shown.nameless_bytes = of_shown.nameless;
    shown.by_phase.clone_from(&of_shown.by_phase);
    shown.by_stack.clone_from(&of_shown.by_stack);
    let peak_sites = of_shown.sites.clone();
    let replay = Replay {
        agree,
        trace_live_end: traced.len() as u64,
        double_alloc,
        free_of_untraced: unknown_free,
        backward_orphan_allocs: faults.orphans,
        backward_double_frees: faults.double_frees,
        size_mismatch: faults.mismatches,
        max_live_over_reserved: over,
        negative_levels: negative as u64,
        timeline_usable: trace.len() > 1,
        trace_matches_snapshot: is_matching,
        start_requested: levels.requested.first().copied().unwrap_or_default(),
        end_requested: requested,
        start_reserved: levels.reserved.first().copied().unwrap_or_default(),
        peak_requested,
        peak_index,
        peak_time_us: time(peak_index),
        peak_reserved,
        peak_reserved_index,
        peak_reserved_time_us: time(peak_reserved_index),
        peak_live_count: at_peak.count,
        peak_live_bytes: at_peak.bytes,
        peak_untraced_bytes: at_peak.untraced,
        peak_by_phase: at_peak.by_phase,
        peak_by_site: at_peak.references,
        peak_sites,
        shown,
    };
    (replay, levels)
}
