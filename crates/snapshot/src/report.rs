//! What a snapshot shows, as figures.

use std::collections::BTreeMap;

use serde::Serialize;

use report::Drawing;

use crate::chart::Chart;
use crate::classes::{ClassRow, Classes};
use crate::cut::{Cut, cut};
use crate::inside::{callers, inside};
use crate::leaks::{LeakRow, leaks};
use crate::model::{Action, Event, Reading, Segment, Snapshot};
use crate::modules::ModuleRow;
use crate::ooms::{OomRow, ooms};
use crate::releases::Releases;
use crate::replay::{Levels, Replay, replay};
use crate::site::{ByPhase, SiteRow, Sites, Sums, as_reference};
use crate::steps::StepRow;
use crate::totals::{FreeBytes, Totals, free_bytes, grouped, ratio, rounded, totals};
use crate::whatif::WhatIf;

/// Rows of the list of segments, and of that of blocks.
const MOST_SEGMENTS: usize = 10;

/// The figures of a snapshot. Its JSON has the keys of the reference program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SnapshotReport {
    /// By device number.
    pub devices: BTreeMap<String, DeviceReport>,
    /// What the file records.
    pub format: FormatFacts,
    /// What was read and what was not.
    pub reading: Reading,
    /// What the allocations are for, by the fact that tells it, by device whose events agree with its segments.
    pub(crate) classes: BTreeMap<String, Vec<ClassRow>>,
    /// When cached segments went back to the driver, by device where they did.
    pub(crate) cache_releases: BTreeMap<String, Releases>,
    /// Memory by module, by device whose stacks have functions `forward`.
    pub(crate) memory_by_module: BTreeMap<String, Vec<ModuleRow>>,
    /// Memory by step, by device whose steps are marked.
    pub(crate) memory_by_step: BTreeMap<String, Vec<StepRow>>,
    /// The peak that `classes` and findings are of, by device where it is another than the first of several that are equal.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) shown_peak: BTreeMap<String, ShownPeak>,
    /// What other settings of the allocator would have reserved, by device with events.
    pub(crate) what_if: BTreeMap<String, WhatIf>,
    /// What follows.
    pub findings: Vec<report::Finding>,
    /// Whether it has more than the figures of the reference program.
    #[serde(skip)]
    pub(crate) is_complete: bool,
}

/// A peak that is not the first of those that are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ShownPeak {
    /// It is the state before the event of this index.
    pub(crate) index: usize,
    /// Its number among the equal ones, from 1 on.
    pub(crate) nth: usize,
    /// Peaks that are equal to the byte.
    pub(crate) times: usize,
}

/// What the file records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FormatFacts {
    /// `frames`, or `history-legacy` for PyTorch of 2023 and older.
    pub block_format: &'static str,
    /// Whether events have a time.
    pub has_time: bool,
    /// Whether the settings of the allocator are recorded.
    pub has_settings: bool,
    /// Whether annotations are recorded.
    pub has_annotations: bool,
    /// Number of annotations.
    pub annotations: usize,
    /// Whether a segment is expandable.
    pub expandable: bool,
    /// Pools of the segments.
    pub pools: Vec<(i64, i64)>,
}

/// The figures of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceReport {
    pub(crate) totals: Totals,
    pub(crate) by_type: BTreeMap<String, Totals>,
    pub(crate) by_stream: BTreeMap<String, Totals>,
    pub(crate) by_pool: BTreeMap<String, Totals>,
    pub(crate) largest_segments: Vec<SegmentRow>,
    pub(crate) invariant_violations: BTreeMap<&'static str, u64>,
    pub(crate) live_by_site: Vec<SiteRow>,
    /// All of them, by cause.
    #[serde(skip)]
    pub(crate) live_sites: Vec<SiteRow>,
    #[serde(serialize_with = "as_reference")]
    pub(crate) live_by_phase: ByPhase,
    pub(crate) actions: BTreeMap<String, u64>,
    pub(crate) events: usize,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) timeline: Option<Timeline>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) leaks: Option<Vec<LeakRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) steps: Option<u64>,
    /// The rounded sizes of its largest blocks in use, the largest first.
    #[serde(skip)]
    pub(crate) largest_blocks: Vec<i64>,
    /// Free bytes with the page rule for expandable segments.
    #[serde(skip)]
    pub(crate) free: FreeBytes,
    /// The segments with their blocks.
    #[serde(skip)]
    pub(crate) segments_picture: Option<Drawing>,
}

/// The figures of a device with events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Timeline {
    pub(crate) replay: Replay,
    pub(crate) churn: Churn,
    pub(crate) alloc_by_site: Vec<SiteRow>,
    /// All of them, by cause.
    #[serde(skip)]
    pub(crate) alloc_sites: Vec<SiteRow>,
    pub(crate) ooms: Vec<OomRow>,
    /// What the allocations are for; empty where events and segments disagree.
    #[serde(skip)]
    pub(crate) classes: Classes,
    /// Whether the oldest events are lost.
    #[serde(skip)]
    pub(crate) cut: Option<Cut>,
    /// Memory by step; empty where no steps are marked, and where events and segments disagree.
    #[serde(skip)]
    pub(crate) by_step: Vec<StepRow>,
    /// Memory by module; empty where stacks do not tell, and where events and segments disagree.
    #[serde(skip)]
    pub(crate) by_module: Vec<ModuleRow>,
    /// Whether stacks allocate other sizes from step to step; `false` where fewer than two steps are marked.
    #[serde(skip)]
    pub(crate) has_varying_sizes: bool,
    #[serde(skip)]
    pub(crate) levels: Levels,
    /// Memory over the events.
    #[serde(skip)]
    pub(crate) picture: Option<Drawing>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SegmentRow {
    pub(crate) address: u64,
    pub(crate) total_size: i64,
    pub(crate) allocated_size: i64,
    pub(crate) active_size: i64,
    pub(crate) blocks: usize,
    #[serde(rename = "type")]
    pub(crate) segment_type: String,
    pub(crate) stream: i64,
}

/// How often memory is allocated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Churn {
    pub(crate) span_s: f64,
    pub(crate) alloc_count: u64,
    pub(crate) alloc_bytes: i64,
    pub(crate) allocs_per_s: Option<f64>,
    pub(crate) segment_allocs: u64,
    pub(crate) segment_frees: u64,
    pub(crate) cache_hit_rate: Option<f64>,
    /// Allocated bytes / peak.
    pub(crate) turnover: Option<f64>,
}

/// The figures of the reference program: what a person asks first, and what everything else is computed from.
pub(crate) fn figures(snapshot: &Snapshot) -> SnapshotReport {
    let sites = Sites::of(snapshot);
    let mut devices: Vec<i64> = snapshot.segments.iter().map(|segment| segment.device).collect();
    let traced = snapshot.traces.iter().enumerate().filter(|(_, trace)| !trace.is_empty());
    devices.extend(traced.filter_map(|(device, _)| i64::try_from(device).ok()));
    devices.sort_unstable();
    devices.dedup();
    let report = |device: i64| (device.to_string(), device_report(snapshot, device, &sites));
    SnapshotReport {
        devices: devices.into_iter().map(report).collect(),
        format: format_facts(snapshot),
        reading: snapshot.reading.clone(),
        cache_releases: BTreeMap::new(),
        memory_by_module: BTreeMap::new(),
        memory_by_step: BTreeMap::new(),
        classes: BTreeMap::new(),
        shown_peak: BTreeMap::new(),
        what_if: BTreeMap::new(),
        findings: Vec::new(),
        is_complete: false,
    }
}

#[inline(never)]
fn format_facts(snapshot: &Snapshot) -> FormatFacts {
    let mut pools: Vec<(i64, i64)> = snapshot.segments.iter().map(|segment| segment.pool).collect();
    pools.sort_unstable();
    pools.dedup();
    let has_history = snapshot.reading.has_history;
    FormatFacts {
        block_format: if has_history { "history-legacy" } else { "frames" },
        has_time: snapshot
            .traces
            .iter()
            .any(|trace| trace.first().is_some_and(|event| event.time().is_some())),
        has_settings: snapshot.settings.is_some(),
        has_annotations: snapshot.reading.has_annotations,
        annotations: snapshot.annotations.len(),
        expandable: snapshot.segments.iter().any(|segment| segment.is_expandable),
        pools,
    }
}

#[inline(never)]
fn device_report(snapshot: &Snapshot, device: i64, sites: &Sites) -> DeviceReport {
    let segments: Vec<&Segment> =
        snapshot.segments.iter().filter(|segment| segment.device == device).collect();
    let trace = snapshot.trace(device);
    let mut live = Sums::new(sites);
    let mut blocks = Vec::new();
    let mut largest_blocks = Vec::new();
    for block in segments.iter().flat_map(|segment| snapshot.blocks_of(segment)) {
        if block.is_active() {
            live.add(block.stack, block.size);
            blocks.push((block.stack, block.size));
            largest_blocks.push(block.size);
        }
    }
    let mut live_sites = live.rows();
    if let Some(first) = live_sites.first_mut() {
        blocks.retain(|(stack, _)| sites.name(sites.site(*stack)) == first.site);
        let all = largest_blocks.iter().fold(0_i64, |sum, size| sum.saturating_add(*size));
        first.inside = inside(&snapshot.stacks, &blocks);
        first.callers = callers(&snapshot.stacks, &blocks, all);
    }
    largest_blocks.sort_unstable();
    largest_blocks.reverse();
    largest_blocks.truncate(MOST_SEGMENTS);
    let mut actions = BTreeMap::new();
    for event in trace {
        *actions.entry(event.action).or_insert(0u64) += 1;
    }
    let leaks = leaks(snapshot, device, sites);
    let pool = |segment: &Segment| format!("({}, {})", segment.pool.0, segment.pool.1);
    DeviceReport {
        totals: totals(snapshot, segments.iter().copied()),
        by_type: grouped(snapshot, &segments, |segment| segment.segment_type.clone()),
        by_stream: grouped(snapshot, &segments, |segment| segment.stream.to_string()),
        by_pool: grouped(snapshot, &segments, pool),
        largest_segments: largest(&segments),
        invariant_violations: violations(snapshot, &segments),
        live_by_site: live.references(),
        live_sites,
        live_by_phase: live.phases.clone(),
        actions: actions
            .into_iter()
            .map(|(action, count)| (snapshot.action_name(action).to_owned(), count))
            .collect(),
        events: trace.len(),
        timeline: (!trace.is_empty()).then(|| timeline(snapshot, device, sites)),
        steps: leaks.as_ref().map(|leaks| leaks.steps),
        leaks: leaks.map(|leaks| leaks.leaks),
        free: free_bytes(snapshot, &segments),
        largest_blocks,
        segments_picture: None,
    }
}

#[inline(never)]
fn largest(segments: &[&Segment]) -> Vec<SegmentRow> {
    let mut segments = segments.to_vec();
    segments.sort_by_key(|segment| (std::cmp::Reverse(segment.total_size), segment.address));
    let row = |segment: &Segment| SegmentRow {
        address: segment.address,
        total_size: segment.total_size,
        allocated_size: segment.allocated_size,
        active_size: segment.active_size,
        blocks: segment.blocks.len(),
        segment_type: segment.segment_type.clone(),
        stream: segment.stream,
    };
    segments.into_iter().take(MOST_SEGMENTS).map(row).collect()
}

/// Segments whose own sums differ from those of their blocks.
#[inline(never)]
fn violations(snapshot: &Snapshot, segments: &[&Segment]) -> BTreeMap<&'static str, u64> {
    let mut found = BTreeMap::new();
    for segment in segments {
        let own = totals(snapshot, [*segment]);
        let blocks = own.active.saturating_add(own.inactive);
        for (name, holds) in [
            ("sum_blocks!=total_size", blocks == segment.total_size),
            ("allocated_size", own.allocated == segment.allocated_size),
            ("active_size", own.active == segment.active_size),
        ] {
            if !holds {
                *found.entry(name).or_default() += 1;
            }
        }
    }
    found
}

#[inline(never)]
fn timeline(snapshot: &Snapshot, device: i64, sites: &Sites) -> Timeline {
    let trace = snapshot.trace(device);
    let (replay, levels) = replay(snapshot, device, sites);
    let mut allocations = Sums::new(sites);
    for event in trace.iter().filter(|event| event.action == Action::Alloc) {
        allocations.add(event.stack, event.size);
    }
    Timeline {
        churn: churn(trace, replay.peak_requested),
        alloc_by_site: allocations.references(),
        alloc_sites: allocations.rows(),
        ooms: ooms(snapshot, device, &levels, sites),
        classes: Classes::default(),
        cut: cut(snapshot, device).filter(|_| replay.trace_matches_snapshot),
        by_step: Vec::new(),
        by_module: Vec::new(),
        has_varying_sizes: false,
        picture: None,
        replay,
        levels,
    }
}

#[inline(never)]
fn churn(trace: &[Event], peak: i64) -> Churn {
    let mut times = trace.iter().filter_map(Event::time);
    let span_us = match (times.next(), times.next_back()) {
        (Some(first), Some(last)) => last.saturating_sub(first),
        _ => 0,
    };
    let span_s = span_us as f64 / 1e6;
    let count = |wanted: &[Action]| {
        trace.iter().filter(|event| wanted.contains(&event.action)).count() as u64
    };
    let allocations = trace.iter().filter(|event| event.action == Action::Alloc);
    let bytes = allocations.fold(0i64, |sum, event| sum.saturating_add(event.size));
    let n = count(&[Action::Alloc]);
    let segment_allocs = count(&[Action::SegmentAlloc, Action::SegmentMap]);
    Churn {
        span_s,
        alloc_count: n,
        alloc_bytes: bytes,
        allocs_per_s: (span_us != 0).then(|| rounded(n as f64 / span_s, 6)),
        segment_allocs,
        segment_frees: count(&[Action::SegmentFree, Action::SegmentUnmap]),
        cache_hit_rate: (n > 0).then(|| rounded(1.0 - segment_allocs.min(n) as f64 / n as f64, 9)),
        turnover: (peak != 0).then(|| rounded(ratio(bytes, peak), 6)),
    }
}

impl DeviceReport {
    /// Whether an allocation failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.timeline.as_ref().is_some_and(|timeline| !timeline.ooms.is_empty())
    }
}

impl Timeline {
    /// Whether most of what was in use at a failed allocation was free when the snapshot was written: the error unwound.
    pub(crate) fn is_unwound(&self) -> bool {
        let last = self.ooms.last();
        last.is_some_and(|oom| self.replay.end_requested.saturating_mul(2) < oom.live_requested)
    }
}

impl SnapshotReport {
    /// Whether another device ran out of memory, and this one did not.
    pub(crate) fn is_bystander(&self, figures: &DeviceReport) -> bool {
        !figures.has_failed() && self.devices.values().any(DeviceReport::has_failed)
    }

    /// Whether an allocation of a device failed, or was served only after the cache was given back.
    pub(crate) fn is_pressed(&self, device: &str) -> bool {
        self.devices.get(device).is_some_and(DeviceReport::has_failed)
            || self.cache_releases.get(device).is_some_and(|it| it.retries > 0)
    }

    /// The event before which a device's requested memory peaks: of equal peaks the one that is shown. `None` without a usable timeline.
    #[must_use]
    pub fn peak_index(&self, device: &str) -> Option<usize> {
        let replay = &self.devices.get(device)?.timeline.as_ref()?.replay;
        (replay.timeline_usable && !self.reading.is_partial() && replay.trace_matches_snapshot)
            .then_some(replay.shown.index)
    }

    /// The chart of a device; `None` where it has no events, or events that contradict the segments.
    #[must_use]
    pub fn chart(&self, snapshot: &Snapshot, device: i64) -> Option<Chart> {
        let timeline = self.devices.get(&device.to_string())?.timeline.as_ref()?;
        let Timeline { replay, levels, .. } = timeline;
        let sites = Sites::of(snapshot);
        timeline
            .is_usable()
            .then(|| Chart::new(snapshot.trace(device), levels.clone(), replay, &sites))
    }

    /// Number of events of a device.
    #[must_use]
    pub fn n_events(&self, device: &str) -> usize {
        self.devices.get(device).map_or(0, |figures| figures.events)
    }

    /// Requested bytes of the live blocks of a device before an event.
    #[must_use]
    pub fn live_requested(&self, device: &str, index: usize) -> Option<i64> {
        let timeline = self.devices.get(device)?.timeline.as_ref()?;
        timeline.levels.requested.get(index).copied()
    }
}
