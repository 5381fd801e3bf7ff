//! Memory by step, where annotations mark the steps.

use report::{Cell, Column, Row, Unit};
use serde::Serialize;

use crate::amounts::{amount, size};
use crate::cut::missing_steps;
use crate::leaks::step_ends;
use crate::model::{Action, Event, Snapshot};
use crate::replay::Levels;

/// A step of a device; bytes of requested sizes, except those reserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct StepRow {
    /// From 1 on; 0 is what follows the last step.
    pub(crate) step: u64,
    /// Whether it began before the first event.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_cut: bool,
    pub(crate) events: u64,
    pub(crate) peak_requested: i64,
    pub(crate) peak_reserved: i64,
    /// After its last event.
    pub(crate) end_requested: i64,
    pub(crate) allocations: u64,
    pub(crate) allocated_bytes: i64,
    /// Segments that came from the driver.
    pub(crate) segment_allocs: u64,
}

/// Steps that show whether memory grows, and snapshots that mark steps.
const LEAST_STEPS: usize = 3;

/// Steps are alike up to this part of their peak: a hundredth.
const MOST_CHANGE: i64 = 100;

/// What steps that are alike have in use, from the second one on; `None` where they differ, or are few.
pub(crate) fn flat(device: &str, rows: &[StepRow]) -> Option<String> {
    // The least and the most of both, over the steps from the second one on.
    let (mut n, mut peaks, mut ends) = (0, (i64::MAX, i64::MIN), (i64::MAX, i64::MIN));
    let is_whole = |row: &&StepRow| row.step > 1 && !row.is_cut;
    for row in rows.iter().filter(is_whole) {
        n += 1;
        peaks = (peaks.0.min(row.peak_requested), peaks.1.max(row.peak_requested));
        ends = (ends.0.min(row.end_requested), ends.1.max(row.end_requested));
    }
    let most = peaks.1 / MOST_CHANGE;
    // (A little more after each step is a leak, however slow.)
    let mut own = rows.iter().filter(is_whole).map(|row| row.end_requested);
    let rises = own.next().is_some_and(|first| {
        own.try_fold(first, |before, bytes| (bytes > before).then_some(bytes)).is_some()
    });
    if n < LEAST_STEPS || rises || ends.1 - ends.0 > most || peaks.1 - peaks.0 > most {
        return None;
    }
    let which = match rows.first().is_some_and(|row| row.is_cut) {
        true => "that are recorded as a whole",
        false => "after the first",
    };
    Some(format!(
        "Device {device}: memory does not grow. Each of the {n} steps {which} peaks at {} and ends with {} in use, to within 1% of the peak.",
        size(peaks.1),
        size(ends.1)
    ))
}

/// The steps of a device, and what follows the last; none where no step ends, or where events have no time.
#[inline(never)]
pub(crate) fn steps(snapshot: &Snapshot, device: i64, levels: &Levels) -> Vec<StepRow> {
    let trace = snapshot.trace(device);
    let mut ends = step_ends(snapshot, device);
    if ends.is_empty() {
        // (A program that looks at its memory in every iteration marks them.)
        let marks = trace.iter().filter(|event| event.action == Action::Snapshot);
        ends.extend(marks.filter_map(Event::time));
        if ends.len() < LEAST_STEPS {
            return Vec::new();
        }
    }
    if ends.is_empty() || !trace.iter().any(|event| event.time().is_some()) {
        return Vec::new();
    }
    // (Of a step that ends before the first event nothing is recorded, and the next one has lost its beginning.)
    let missing = missing_steps(trace, &ends);
    let mut rows = Vec::new();
    let mut from = 0;
    for (step, end) in ends.iter().enumerate().skip(missing) {
        let is_inside = |event: &&Event| event.time().is_none_or(|time| time <= *end);
        let n = trace.get(from..).unwrap_or_default().iter().take_while(is_inside).count();
        let is_cut = missing > 0 && step == missing;
        rows.push(StepRow { is_cut, ..row(step as u64 + 1, trace, from, from + n, levels) });
        from += n;
    }
    if from < trace.len() && !rows.is_empty() {
        rows.push(row(0, trace, from, trace.len(), levels));
    }
    rows
}

/// Smaller blocks come from segments of their own, and do not make gaps that matter, in bytes.
const LEAST_BLOCK: i64 = 1 << 20;

/// Whether a stack that allocates in two consecutive steps allocates other sizes in the second one.
#[inline(never)]
pub(crate) fn has_varying_sizes(trace: &[Event], rows: &[StepRow]) -> bool {
    let (mut from, mut before) = (0, Vec::new());
    for row in rows.iter().filter(|row| row.step > 0) {
        let to = from + row.events as usize;
        if row.is_cut {
            from = to;
            continue;
        }
        let events = trace.get(from..to).unwrap_or_default().iter();
        let is_large = |event: &&Event| event.action == Action::Alloc && event.size > LEAST_BLOCK;
        let mut sizes: Vec<_> =
            events.filter(is_large).map(|event| (event.stack, event.size)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let is_known = |stack| {
            let has = |list: &[_]| list.binary_search_by_key(&stack, |it: &(_, i64)| it.0).is_ok();
            stack != 0 && has(&sizes) && has(&before)
        };
        let differs = |own: &[_], other: &[_]| {
            own.iter().any(|it: &(_, i64)| is_known(it.0) && other.binary_search(it).is_err())
        };
        if differs(&sizes, &before) || differs(&before, &sizes) {
            return true;
        }
        (from, before) = (to, sizes);
    }
    false
}

fn row(step: u64, trace: &[Event], from: usize, to: usize, levels: &Levels) -> StepRow {
    let events = trace.get(from..to).unwrap_or_default();
    let allocations = || events.iter().filter(|event| event.action == Action::Alloc);
    let is_new = |event: &&Event| matches!(event.action, Action::SegmentAlloc | Action::SegmentMap);
    let most = |levels: &[i64]| {
        levels.get(from..=to).unwrap_or_default().iter().copied().max().unwrap_or_default()
    };
    StepRow {
        step,
        is_cut: false,
        events: events.len() as u64,
        peak_requested: most(&levels.requested),
        peak_reserved: most(&levels.reserved),
        end_requested: levels.requested.get(to).copied().unwrap_or_default(),
        allocations: allocations().count() as u64,
        allocated_bytes: allocations().fold(0, |sum, event| sum.saturating_add(event.size)),
        segment_allocs: events.iter().filter(is_new).count() as u64,
    }
}

impl Row for StepRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "step",
            title: "Step",
            unit: Unit::Text,
            help: "In the order of the recording: a step ends with its ProfilerStep annotation, else with Optimizer.step, else with a snapshot. Of a step that began before the first event only the end is recorded.",
            cell: |row| match row.step {
                0 => "after the last".into(),
                step if row.is_cut => Cell::Text(format!("{step} (its end)").into()),
                step => Cell::Text(step.to_string().into()),
            },
        },
        Column {
            key: "peak_requested",
            title: "Peak in use",
            unit: Unit::Bytes,
            help: "The most requested bytes in use in the step.",
            cell: |row| amount(row.peak_requested),
        },
        Column {
            key: "peak_reserved",
            title: "Peak reserved",
            unit: Unit::Bytes,
            help: "The most reserved bytes in the step.",
            cell: |row| amount(row.peak_reserved),
        },
        Column {
            key: "end_requested",
            title: "In use at its end",
            unit: Unit::Bytes,
            help: "Requested bytes in use after the step. They grow from step to step where memory leaks.",
            cell: |row| amount(row.end_requested),
        },
        Column {
            key: "allocations",
            title: "Allocations",
            unit: Unit::Count,
            help: "Allocations in the step.",
            cell: |row| Cell::Count(row.allocations),
        },
        Column {
            key: "allocated_bytes",
            title: "Allocated",
            unit: Unit::Bytes,
            help: "Requested bytes of the allocations.",
            cell: |row| amount(row.allocated_bytes),
        },
        Column {
            key: "segment_allocs",
            title: "From the driver",
            unit: Unit::Count,
            help: "Segments, or pages of expandable ones, that had to come from the driver. After the first steps there should be none.",
            cell: |row| Cell::Count(row.segment_allocs),
        },
        Column {
            key: "events",
            title: "Events",
            unit: Unit::Count,
            help: "Recorded events of the step.",
            cell: |row| Cell::Count(row.events),
        },
    ];
}
