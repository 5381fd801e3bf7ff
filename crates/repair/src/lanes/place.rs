//! Onto which lanes leaving slices go, and what these lanes are called.

use dialect::Records;
use trace::{Row, Trace, TrackId};

use super::line::{Ends, Line};
use super::{Evicted, Move};
use crate::first_fit::FirstFit;
use crate::perfetto::order::{self, Plain, Stacked};
use crate::perfetto::threads::{Folded, Threads};
use crate::split::{self, FreeTids};
use crate::types::{Lane, LaneKind, Rule};

fn is_annotation(records: Option<Records>) -> bool {
    matches!(records, Some(Records::Annotation | Records::GpuAnnotation))
}

/// Lanes of one kind being filled.
#[derive(Default)]
struct Filling {
    lanes: FirstFit,
    tids: Vec<u32>,
}

/// First fit, nest-aware, in the importer's order.
#[inline(never)]
pub(super) fn place(
    line: &Line<'_>,
    named: &[Option<TrackId>],
    ends: &Ends,
    evicted: &Evicted,
    tids: &mut FreeTids,
    lanes: &mut Vec<Lane>,
    moves: &mut Vec<Move>,
) {
    let mut overlap = Filling::default();
    let mut annotations = Filling::default();
    let leaving = in_order(line, evicted);
    let starts = if line.threads.are_in_file_order() { starts(line, &leaving) } else { Vec::new() };
    for event in leaving {
        let item = event.item(line.view);
        let Some((rule, because_of)) = evicted.get(&item.row).copied() else { continue };
        let (closing, end) = match ends.get(&item.row) {
            Some((closing, end)) => (*closing, *end),
            None => (None, item.end),
        };
        let own = (item.ts, item.row);
        let holds = closing.is_some_and(|closing| holds_start(&starts, (end, closing), own));
        let end = end.saturating_add(i64::from(holds));
        let annotation = is_annotation(*line.records.of(line.view.trace, item.row))
            && rule == Rule::CrossingSlice;
        let (filling, kind) = if annotation {
            (&mut annotations, LaneKind::Annotations)
        } else {
            (&mut overlap, LaneKind::Overlap)
        };
        let at = filling.lanes.place(item.ts, end);
        if at == filling.tids.len() {
            let lane = new_lane(line, named, item.row, kind, at + 1, tids);
            filling.tids.push(lane.tid);
            lanes.push(lane);
        }
        let tid = filling.tids[at];
        moves.push((item.row, tid, rule, because_of));
        if let Some(closing) = closing {
            moves.push((closing, tid, rule, because_of));
        }
    }
}

/// Slices that leave, in the importer's order.
#[inline(never)]
fn in_order(line: &Line<'_>, evicted: &Evicted) -> Vec<Stacked> {
    let mut leaving: Vec<Stacked> =
        evicted.keys().map(|row| Stacked::of(&line.view.event(*row))).collect();
    order::sort(line.view, &mut leaving, &Plain::default());
    leaving
}

#[inline(never)]
fn starts(line: &Line<'_>, events: &[Stacked]) -> Vec<(i64, Row)> {
    events.iter().map(|event| event.item(line.view)).map(|it| (it.ts, it.row)).collect()
}

/// Where the order of the file counts, a slice that starts at the ns of an end, but before it in the file, starts inside of
/// the slice that ends there (`own`).
#[inline(never)]
fn holds_start(starts: &[(i64, Row)], end: (i64, Row), own: (i64, Row)) -> bool {
    let n = starts.partition_point(|start| *start < end);
    let last = n.checked_sub(1).and_then(|last| starts.get(last));
    last.is_some_and(|last| last.0 == end.0 && *last != own)
}

/// The `nth` lane of its kind beside the thread that `row` is on.
#[inline(never)]
fn new_lane(
    line: &Line<'_>,
    named: &[Option<TrackId>],
    row: Row,
    kind: LaneKind,
    nth: usize,
    tids: &mut FreeTids,
) -> Lane {
    let parent = line.view.trace.track(row);
    let (tid, name, sort_index) = home(line, named, row);
    Lane {
        kind,
        process: line.view.trace.track_info(parent).process,
        parent,
        tid: tids.take(tid),
        name: Some(lane_name(&name, kind, nth)),
        sort_index,
    }
}

/// The last track with a name of each thread: threads that fold into one share the name that was said last.
pub(super) fn named_tracks(trace: &Trace, threads: &Threads) -> Vec<Option<TrackId>> {
    let mut named = vec![None; threads.all().len()];
    for (track, thread) in threads.by_track() {
        if trace.track_info(track).name.is_some() {
            named[thread as usize] = Some(track);
        }
    }
    named
}

/// The thread a lane belongs to: its tid, name and sort index, as Perfetto shows them.
fn home(line: &Line<'_>, named: &[Option<TrackId>], row: Row) -> (u32, String, Option<i64>) {
    let trace = line.view.trace;
    let track = trace.track(row);
    let info = trace.track_info(track);
    // A split thread already has its new tid.
    let tid = match line.view.edit(row).and_then(|edit| edit.tid) {
        Some(tid) => tid,
        None => split::shown_tid(trace, track),
    };
    let key = line.threads.key(line.thread);
    let named = named.get(line.thread as usize).copied().flatten();
    let name = match info.name.or_else(|| trace.track_info(named?).name) {
        Some(name) => trace.strings.get(name).trim_end().to_owned(),
        None => match key.1 {
            Some(Folded::Text(text)) => trace.strings.get(text).to_owned(),
            _ => format!("Thread {tid}"),
        },
    };
    let sort_index = info.sort_index.or_else(|| trace.track_info(named?).sort_index);
    (tid, name, sort_index)
}

fn lane_name(parent: &str, kind: LaneKind, nth: usize) -> String {
    match (kind, nth) {
        (LaneKind::Annotations, 1) => format!("{parent} (annotations)"),
        (LaneKind::Annotations, nth) => format!("{parent} (annotations {nth})"),
        (_, nth) => format!("{parent} (overlap {nth})"),
    }
}
