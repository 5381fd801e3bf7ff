//! What other settings of the allocator would have reserved.
//!
//! A model of the allocator ([`pools`]) replays the recorded allocations. It is checked first: under the recorded settings it must
//! place every block at its recorded address, ask the driver for the recorded sizes and reach the recorded peak. If it does not, no
//! figure is given, only the first event that differs.

mod advice;
mod other;
mod pools;
mod recorded;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::amounts::{percent, size};
use crate::model::{Action, Event, MIB, Segment, Snapshot};
use crate::replay::{Levels, Replay};
use crate::stacks::StackId;
use crate::state::{Ranges, end};
use pools::{Pool, Pools};

pub(crate) use advice::advice;
pub(crate) use other::Limit;
use other::needs;

/// Where segments that were not recorded are placed: above every address of a device.
const ELSEWHERE: u64 = 1 << 60;
/// Address space between expandable segments that were not recorded.
const APART: u64 = 1 << 50;

/// The settings that the model knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    is_expandable: bool,
    /// Bytes; `i64::MAX` without a limit.
    max_split_size: i64,
    roundup_power2_divisions: Divisions,
}

/// Into how many parts each power of two is divided, by the power: up to 2 MiB, up to 4 MiB..., from 32 GiB on. With 0 or 1, sizes are
/// rounded to 512 bytes only.
pub(crate) type Divisions = [i64; 16];

/// What other settings would have reserved on one device, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct WhatIf {
    /// Whether the model reproduces the recorded run.
    pub(crate) reproduced: bool,
    /// Why no figure is given.
    pub(crate) withheld: Option<String>,
    /// The first event that differs from the model.
    pub(crate) first_difference: Option<usize>,
    /// The recorded peak of reserved memory.
    pub(crate) recorded_peak_reserved: i64,
    /// Reserved before the first event: it stays as it is under every setting.
    pub(crate) start_reserved: i64,
    /// Allocations that failed in the recorded run: they are not repeated.
    pub(crate) ooms: u64,
    /// Whether the settings are recorded; else the defaults were assumed.
    pub(crate) settings_recorded: bool,
    /// How often the driver refused memory, and the allocator gave its cache back and tried again with success.
    pub(crate) retries: u64,
    /// The least that the driver refused, in all; `None` where that is not recorded. Then each setting is replayed with the limit of
    /// the recorded peak, which the driver granted.
    pub(crate) refused: Option<i64>,
    pub(crate) runs: Vec<Run>,
    /// How many sizes the large blocks of the run have.
    #[serde(skip)]
    pub(crate) n_sizes: usize,
}

/// The peak under one setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Run {
    /// As in `PYTORCH_CUDA_ALLOC_CONF`.
    pub(crate) setting: String,
    /// Bytes.
    pub(crate) peak_reserved: i64,
    /// The recorded peak less this one, in bytes.
    pub(crate) saved: i64,
    /// How often the cache is given back to stay within the limit; `None` without a limit.
    pub(crate) retries: Option<u64>,
    /// Whether the limit is kept.
    pub(crate) fits: bool,
    /// The failed allocations for which there is room, as indexes of events.
    pub(crate) served_ooms: Vec<usize>,
    /// How many sizes the large blocks have.
    #[serde(skip)]
    pub(crate) n_sizes: usize,
}

/// Where more of the reserved memory stands before the first event, in percent, a replay says nothing of the settings.
const MOST_STANDING: f64 = 90.0;

/// Why the model does not apply, and the event that shows it.
type Refusal = (String, Option<usize>);

/// What stands before the first event.
struct Start {
    ranges: Ranges,
    /// Blocks in use by address, at least so many bytes, and whether that is exact.
    live: BTreeMap<u64, (i64, bool)>,
    /// Bytes that blocks of inexact size have beyond it, where a later block shows them.
    rests: BTreeMap<u64, i64>,
}

/// Computes the peaks of a device.
#[inline(never)]
pub(crate) fn what_if(
    snapshot: &Snapshot,
    device: i64,
    (replay, levels): (&Replay, &Levels),
    retries: &[(usize, usize)],
) -> WhatIf {
    let trace = snapshot.trace(device);
    let mut answer = WhatIf {
        reproduced: false,
        withheld: None,
        first_difference: None,
        recorded_peak_reserved: replay.peak_reserved,
        start_reserved: replay.start_reserved,
        ooms: trace.iter().filter(|event| event.action == Action::Oom).count() as u64,
        settings_recorded: false,
        retries: 0,
        refused: None,
        runs: Vec::new(),
        n_sizes: 0,
    };
    let limit = Limit::of(snapshot, device, levels, retries);
    answer.retries = limit.n_retries();
    match runs(snapshot, device, replay, limit, &mut answer) {
        Ok(runs) => {
            answer.reproduced = true;
            answer.runs = runs;
            // "No change" under every setting would look like a result.
            let standing = percent(replay.start_reserved, replay.peak_reserved);
            if standing > MOST_STANDING {
                answer.runs = Vec::new();
                let rest = replay.peak_reserved.saturating_sub(replay.start_reserved);
                let part = if rest == 0 {
                    "all reserved memory".to_owned()
                } else {
                    format!("all reserved memory but {}", size(rest))
                };
                answer.withheld = Some(format!(
                    "{part} exists before the first event, and a setting changes only what is reserved later; record from the start of \
                     the process"
                ));
            }
        }
        Err((why, event)) => {
            answer.withheld = Some(why);
            answer.first_difference = event;
        }
    }
    answer
}

#[inline(never)]
fn runs(
    snapshot: &Snapshot,
    device: i64,
    replay: &Replay,
    mut limit: Limit,
    answer: &mut WhatIf,
) -> Result<Vec<Run>, Refusal> {
    let refuse = |why: &str| Err((why.to_owned(), None));
    if snapshot.reading.is_partial() {
        return refuse("a part of the file is missing or damaged");
    }
    if snapshot.later_of(device).is_some() {
        return refuse("events after the chosen range were left out");
    }
    if !replay.timeline_usable {
        return refuse("the file records no timeline");
    }
    if !replay.trace_matches_snapshot {
        return refuse("the events contradict the segments");
    }
    let segments: Vec<&Segment> = snapshot.segments.iter().filter(|s| s.device == device).collect();
    if segments.iter().any(|segment| segment.pool != (0, 0)) {
        return refuse("there are private pools, and events do not record their pool");
    }
    let is_recorded = &mut answer.settings_recorded;
    let mut recorded = recorded::settings(snapshot.settings.as_deref(), is_recorded)?;
    if !*is_recorded {
        recorded.is_expandable = segments.iter().any(|segment| segment.is_expandable);
    }
    let trace = snapshot.trace(device);
    let start = start(snapshot, device, &segments, recorded);
    let peak = check(trace, &start, recorded)?;
    if peak != replay.peak_reserved {
        let why = format!("the model reserves {peak} bytes, the run {}", replay.peak_reserved);
        return Err((why, None));
    }
    limit.check(trace, &start, recorded);
    answer.refused = limit.refused;
    answer.n_sizes = n_sizes(trace, recorded);
    let mut runs = Vec::new();
    for (setting, settings) in alternatives(recorded, start.ranges.ranges.is_empty()) {
        // pytorch: the setting is ignored where CUDA's virtual memory functions are not used, as on Windows.
        if settings.is_expandable && is_windows(snapshot) {
            continue;
        }
        let Some(needs) = needs(trace, &start, settings, &limit) else { continue };
        runs.push(Run {
            setting,
            peak_reserved: needs.peak,
            saved: replay.peak_reserved - needs.peak,
            retries: limit.refused.map(|_| needs.retries),
            fits: needs.fits,
            served_ooms: needs.serves,
            n_sizes: n_sizes(trace, settings),
        });
    }
    Ok(runs)
}

/// How many sizes the blocks of the large pool have. (Small ones share segments of 2 MiB, whatever their sizes.)
#[inline(never)]
fn n_sizes(trace: &[Event], settings: Settings) -> usize {
    let large = trace.iter().filter(|event| event.action == Action::Alloc && event.size > MIB);
    let mut sizes: Vec<i64> = large.map(|event| settings.rounded(event.size)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.len()
}

/// Whether a stack has a path with a drive letter. (The file records no platform.)
#[inline(never)]
fn is_windows(snapshot: &Snapshot) -> bool {
    let is_path = |text: &[u8]| matches!(text, [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic());
    let stacks = 0..snapshot.stacks.len() as StackId;
    stacks
        .flat_map(|stack| snapshot.stacks.frames(stack))
        .any(|frame| is_path(snapshot.stacks.text(frame.filename).as_bytes()))
}

/// The settings to compare with. One setting changes at a time.
fn alternatives(recorded: Settings, starts_empty: bool) -> Vec<(String, Settings)> {
    let mut others = Vec::new();
    if recorded.is_expandable {
        // Without expandable segments the allocator does not use the ones that stand already.
        if starts_empty {
            let other = Settings { is_expandable: false, ..recorded };
            others.push(("expandable_segments:False".to_owned(), other));
        }
    } else if recorded.max_split_size == i64::MAX {
        // Both settings together can grow without bound (pytorch#193400), so each is tried alone.
        let other = Settings { is_expandable: true, ..recorded };
        others.push(("expandable_segments:True".to_owned(), other));
        for mib in [64, 128, 256, 512] {
            let other = Settings { max_split_size: mib * MIB, ..recorded };
            others.push((format!("max_split_size_mb:{mib}"), other));
        }
    }
    for parts in [0, 4] {
        let other = Settings { roundup_power2_divisions: [parts; 16], ..recorded };
        if other != recorded {
            others.push((format!("roundup_power2_divisions:{parts}"), other));
        }
    }
    others
}

#[inline(never)]
fn start(snapshot: &Snapshot, device: i64, segments: &[&Segment], settings: Settings) -> Start {
    let trace = snapshot.trace(device);
    let mut ranges = Ranges::at_end(snapshot, device);
    let blocks = segments.iter().flat_map(|segment| snapshot.blocks_of(segment));
    let mut live: BTreeMap<u64, (i64, bool)> = blocks
        .filter(|block| block.is_active())
        .map(|block| (block.address, (block.size, true)))
        .collect();
    for event in trace.iter().rev() {
        match event.action {
            Action::Alloc => {
                live.remove(&event.address);
            }
            Action::FreeCompleted => {
                live.insert(event.address, (settings.rounded(event.size), false));
            }
            _ => ranges.undo(event),
        }
    }
    let rests = rests(&live, trace);
    Start { ranges, live, rests }
}

/// A request gets the start of a free block: the first block that is placed behind another one shows where that one ends.
#[inline(never)]
fn rests(live: &BTreeMap<u64, (i64, bool)>, trace: &[Event]) -> BTreeMap<u64, i64> {
    let mut rests = BTreeMap::new();
    let mut unsure: BTreeMap<u64, u64> = live
        .iter()
        .filter(|(_, (_, is_exact))| !is_exact)
        .map(|(address, (size, _))| (*address, end(*address, *size)))
        .collect();
    let mut live: BTreeSet<u64> = live.keys().copied().collect();
    for event in trace {
        if unsure.is_empty() {
            break;
        }
        match event.action {
            Action::Alloc => {
                let before = live.range(..event.address).next_back();
                if let Some((address, high)) = before.and_then(|at| unsure.remove_entry(at))
                    && let Ok(rest) = i64::try_from(event.address.saturating_sub(high))
                {
                    rests.insert(address, rest);
                }
                live.insert(event.address);
            }
            Action::FreeCompleted => {
                live.remove(&event.address);
                unsure.remove(&event.address);
            }
            _ => {}
        }
    }
    rests
}

impl Start {
    /// The allocator before the first event.
    fn pools(&self, settings: Settings) -> Result<Pools, Refusal> {
        let mut pools = Pools::new(settings);
        for (low, (high, (stream, kind, _, is_expandable))) in &self.ranges.ranges {
            let pool: Pool = (*stream, kind == "small");
            let size = i64::try_from(high.saturating_sub(*low)).unwrap_or(i64::MAX);
            if *is_expandable {
                if !pools.has_expandable(pool) {
                    pools.add_expandable(*low, pool);
                }
                pools.map(*low, size, pool);
            } else {
                pools.add_segment(*low, size, pool);
            }
        }
        let faulty = |address: &u64| {
            (
                format!(
                    "the block at {address:#x}, allocated before the first event, lies in no free range"
                ),
                None,
            )
        };
        for (address, (size, _)) in &self.live {
            if !pools.occupy(*address, *size) {
                return Err(faulty(address));
            }
        }
        // A rest of at most 1 MiB in the large pool is not split off, so it belongs to the block before it.
        for (address, _) in self.live.iter().filter(|(_, (_, is_exact))| !is_exact) {
            let tag = self.ranges.tag_of(*address);
            if tag.is_some_and(|tag| tag.1 == "small" || tag.3) {
                continue;
            }
            let gap = pools.gap_behind(*address);
            let rest = if gap <= MIB { Some(gap) } else { self.rests.get(address).copied() };
            if let Some(rest) = rest.filter(|rest| *rest <= MIB) {
                pools.widen(*address, rest);
            }
        }
        Ok(pools)
    }
}

/// Replays the run under its own settings and compares every event; returns the peak of reserved memory.
#[inline(never)]
fn check(trace: &[Event], start: &Start, settings: Settings) -> Result<i64, Refusal> {
    let mut pools = start.pools(settings)?;
    let mut peak = pools.reserved;
    let mut waiting: Vec<(u64, i64)> = Vec::new();
    let mut releases = false;
    for (index, event) in trace.iter().enumerate() {
        let differs = |what: String| Err((format!("event {index}: {what}"), Some(index)));
        let is_release = matches!(event.action, Action::SegmentFree | Action::SegmentUnmap);
        if releases && !is_release && !pools.returnable_ranges().is_empty() {
            return differs("only a part of the cached segments was released before it".to_owned());
        }
        releases = is_release;
        let mut is_known = true;
        match event.action {
            Action::SegmentAlloc | Action::SegmentMap => waiting.push((event.address, event.size)),
            Action::Alloc => {
                let grown: i64 = waiting.iter().fold(0, |sum, (_, size)| sum.saturating_add(*size));
                let first = waiting.first().map(|(address, _)| *address);
                waiting.clear();
                let placed = pools.allocate(event.size, event.stream, |_| first.ok_or(()));
                let Ok(placed) = placed else {
                    return differs("the model needs a new segment, the run did not".to_owned());
                };
                if placed.grown != grown {
                    return differs(format!(
                        "the model reserves {} bytes, the run {grown}",
                        placed.grown
                    ));
                }
                if placed.address != event.address {
                    return differs(format!(
                        "the model places the block at {:#x}, the run at {:#x}",
                        placed.address, event.address
                    ));
                }
            }
            Action::FreeCompleted => {
                is_known = pools.release_block(event.address);
            }
            _ if is_release => {
                is_known = pools.return_range(event.address, event.size);
            }
            _ => {}
        }
        if !is_known {
            let what =
                if is_release { "released range is not free" } else { "freed block is not in use" };
            return differs(format!("the {what} in the model"));
        }
        peak = peak.max(pools.reserved);
    }
    Ok(peak)
}
