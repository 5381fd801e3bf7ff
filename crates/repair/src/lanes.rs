//! Which slices leave their thread, and onto which lanes.
//!
//! On one thread slices must nest or be apart. Where two cross, one has to leave; the fewest should, and
//! the right ones: of a bogus 20 ms kernel that swallows nine hundred, the bogus one; of an annotation and
//! the builtin frame it was opened in, the annotation. Nothing is cut, snapped or rounded.
//!
//! Crossing pairs form a graph; to leave no pair together is to choose a vertex cover. A greedy choice by
//! degree, compared group by group with the importer's own first-come choice and pruned, is small in
//! practice (it is optimal for chains and stars, the two shapes real traces have).

use std::collections::{BTreeMap, BinaryHeap, HashMap};

use dialect::Records;
use trace::{BuildIdHasher, ByRawCategory, Flags, Phase, Row, Trace, TrackId, each_of};

use crate::first_fit::FirstFit;
use crate::perfetto::Survey;
use crate::perfetto::begins::OpenBegins;
use crate::perfetto::nesting::{self, Trouble};
use crate::perfetto::order::{self, Plain, Stacked};
use crate::perfetto::threads::{Folded, Threads};
use crate::rows::RowSet;
use crate::split::{self, FreeTids};
use crate::types::{CrossingGroup, Lane, LaneKind, RepairPlan, Rule};
use crate::view::View;

/// Crossing pairs kept per thread. Beyond (a staircase of tens of thousands of slices, each crossing the
/// next hundreds) the importer's own first-come choice is taken, which needs no pairs.
const MAX_PAIRS: usize = 2_000_000;
/// Open slices kept in the sweep, for the same reason.
const MAX_OPEN: usize = 50_000;

/// A slice in a crossing pair.
#[derive(Clone, Copy)]
struct Node {
    row: Row,
    ts: i64,
    preference: u8,
}

/// The highest [`preference`].
const MOST_WILLING: u8 = 5;

/// Which slice of an evenly matched pair leaves: the higher.
#[inline(never)]
fn preference(records: Option<Records>, swallows: bool) -> u8 {
    match records {
        Some(Records::Annotation | Records::GpuAnnotation) => MOST_WILLING,
        Some(Records::Sync | Records::Overhead) => 4,
        _ if swallows => 3,
        Some(Records::Frame) => 2,
        _ => 1,
    }
}

fn is_annotation(records: Option<Records>) -> bool {
    matches!(records, Some(Records::Annotation | Records::GpuAnnotation))
}

/// Plans the lanes of every thread that needs some.
#[inline(never)]
pub(crate) fn plan(trace: &Trace, plan: &mut RepairPlan, work: &Survey, tids: &mut FreeTids) {
    if work.troubles().next().is_none() {
        return;
    }
    let mut moves: Vec<Move> = Vec::new();
    let mut lanes: Vec<Lane> = Vec::new();
    let mut groups: Vec<CrossingGroup> = Vec::new();
    {
        let view = View::after(trace, plan);
        let named = named_tracks(trace, &work.threads);
        let records = trace.by_raw_category(dialect::known);
        for (thread, trouble) in work.troubles() {
            let line = Line { view: &view, threads: &work.threads, thread, records: &records };
            let ends = if trouble.has_begins { ends_of_begins(&line) } else { Ends::default() };
            let (evicted, mut found) = choose(&line, &ends, trouble);
            groups.append(&mut found);
            place(&line, &named, &ends, &evicted, tids, &mut lanes, &mut moves);
        }
    }
    carry_out(moves, plan);
    plan.lanes.append(&mut lanes);
    trace::sort_by_key(&mut groups, |group| {
        (std::cmp::Reverse(group.pairs), group.leaving.first().copied().unwrap_or_default())
    });
    plan.crossings = groups;
}

/// An event, the lane that it moves to, why, and the slice that made it necessary.
type Move = (Row, u32, Rule, Option<Row>);

#[inline(never)]
fn carry_out(moves: Vec<Move>, plan: &mut RepairPlan) {
    for (row, tid, rule, because_of) in moves {
        plan.change(row, rule, because_of, |edit| edit.tid = Some(tid));
    }
}

/// One thread of the trace, as the importer orders it.
struct Line<'a> {
    view: &'a View<'a>,
    threads: &'a Threads,
    thread: u32,
    /// What each event records.
    records: &'a ByRawCategory<Option<Records>>,
}

impl Line<'_> {
    fn events(&self) -> &[Stacked] {
        self.threads.events(self.thread)
    }
}

/// The `E` and the end of every `B`; an unclosed `B` lasts for ever.
#[inline(never)]
fn ends_of_begins(line: &Line<'_>) -> Ends {
    let mut ends = HashMap::default();
    let mut open = OpenBegins::default();
    for event in line.events() {
        let item = event.item(line.view);
        match item.phase {
            Phase::Begin => {
                ends.insert(item.row, (None, i64::MAX));
                open.open(line.view.trace, item.row, item.row as usize);
            }
            Phase::End => {
                if let Some(begin) = open.close(line.view.trace, item.row) {
                    ends.insert(begin as Row, (Some(item.row), item.ts));
                }
            }
            _ => {}
        }
    }
    ends
}

type Ends = HashMap<Row, (Option<Row>, i64), BuildIdHasher>;

/// The slices that leave, in no particular order of merit, with the reason; and the crossing groups.
#[inline(never)]
fn choose(line: &Line<'_>, ends: &Ends, trouble: &Trouble) -> (Evicted, Vec<CrossingGroup>) {
    let mut evicted = Evicted::new();
    let mut groups = Vec::new();
    if !trouble.crossing.is_empty() || !trouble.misplaced.is_empty() {
        match crossing_pairs(line, ends) {
            Some((nodes, pairs)) => {
                let mut dropped = RowSet::default();
                for (row, _) in &trouble.crossing {
                    dropped.insert(*row);
                }
                groups = cover(&nodes, &pairs, &dropped);
                for group in &groups {
                    for row in &group.leaving {
                        evicted.insert(*row, (Rule::CrossingSlice, group.staying.first().copied()));
                    }
                }
            }
            None => {
                for (row, other) in &trouble.crossing {
                    evicted.insert(*row, (Rule::CrossingSlice, Some(*other)));
                }
            }
        }
    }
    // What is still wrong leaves too: slices too deep, and whatever the pairs did not explain.
    loop {
        let mut gone = RowSet::default();
        for row in evicted.keys() {
            gone.insert(*row);
            if let Some((Some(end), _)) = ends.get(row) {
                gone.insert(*end);
            }
        }
        let left = nesting::walk(line.view, line.events(), &gone).trouble;
        if left.is_none() {
            return (evicted, groups);
        }
        let n_before = evicted.len();
        for (row, other) in left.crossing {
            evicted.insert(row, (Rule::CrossingSlice, Some(other)));
        }
        for row in left.too_deep {
            evicted.insert(row, (Rule::TooDeep, None));
        }
        for row in left.misplaced {
            evicted.entry(row).or_insert((Rule::CrossingSlice, None));
        }
        if evicted.len() == n_before {
            return (evicted, groups);
        }
    }
}

/// Slices that leave, with the rule and the slice that made it necessary.
type Evicted = BTreeMap<Row, (Rule, Option<Row>)>;

/// All pairs (earlier, later) that cross, as indexes into the nodes. `None` when there are too many.
///
/// A sweep in the importer's order with the open slices sorted by end, the soonest last: on a thread that
/// nests, every step touches only the tail.
#[allow(clippy::type_complexity)]
#[inline(never)]
fn crossing_pairs(line: &Line<'_>, ends: &Ends) -> Option<(Vec<Node>, Vec<(u32, u32)>)> {
    struct Open {
        end: i64,
        row: Row,
        phase: Phase,
    }
    let trace = line.view.trace;
    let mut open: Vec<Open> = Vec::new();
    let mut pairs: Vec<(Row, Row)> = Vec::new();
    let mut swallowing = RowSet::default();
    let mut too_many = false;
    each_of(line.events(), |event| {
        let item = event.item(line.view);
        let end = match item.phase {
            Phase::Complete => item.end,
            Phase::Begin => ends.get(&item.row).map_or(item.ts, |(_, end)| *end),
            _ => return,
        };
        if end <= item.ts || too_many {
            return;
        }
        while open.last().is_some_and(|top| top.end <= item.ts) {
            open.pop();
        }
        let is_inside = |other: &Open| other.end >= end;
        let at = if open.last().is_none_or(is_inside) {
            // (Nearly always.)
            open.len()
        } else {
            let at = open.partition_point(is_inside);
            for other in &open[at..] {
                // A complete slice across an open `B` is no error; the other way round it is.
                if item.phase == Phase::Begin || other.phase == Phase::Complete {
                    pairs.push((other.row, item.row));
                }
            }
            at
        };
        if trace.flags(item.row).has(Flags::KERNEL)
            && let Some(parent) = at.checked_sub(1).map(|parent| open[parent].row)
            && trace.flags(parent).has(Flags::KERNEL)
        {
            swallowing.insert(parent);
        }
        open.insert(at, Open { end, row: item.row, phase: item.phase });
        too_many = pairs.len() > MAX_PAIRS || open.len() > MAX_OPEN;
    });
    if too_many {
        return None;
    }
    let mut rows = RowSet::default();
    for (a, b) in &pairs {
        rows.insert(*a);
        rows.insert(*b);
    }
    let nodes: Vec<Node> = rows
        .to_vec()
        .into_iter()
        .map(|row| Node {
            row,
            ts: line.view.importer_times(row).0,
            preference: preference(*line.records.of(trace, row), swallowing.contains(row)),
        })
        .collect();
    let index = |row: Row| nodes.partition_point(|node| node.row < row) as u32;
    let pairs = pairs.iter().map(|(a, b)| (index(*a), index(*b))).collect();
    Some((nodes, pairs))
}

/// Chooses, group by connected group, the slices that leave.
#[inline(never)]
fn cover(nodes: &[Node], pairs: &[(u32, u32)], dropped: &RowSet) -> Vec<CrossingGroup> {
    let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    for (a, b) in pairs {
        neighbours[*a as usize].push(*b);
        neighbours[*b as usize].push(*a);
    }
    let mut chosen = greedy(nodes, &neighbours);
    let by_arrival: Vec<bool> = nodes.iter().map(|node| dropped.contains(node.row)).collect();
    let mut seen = vec![false; nodes.len()];
    (0..nodes.len() as u32)
        .filter_map(|start| connected(start, &neighbours, &mut seen))
        .map(|members| group(nodes, &neighbours, members, &mut chosen, &by_arrival))
        .collect()
}

/// Everything that hangs together with `start`; nothing if that was seen before.
#[inline(never)]
fn connected(start: u32, neighbours: &[Vec<u32>], seen: &mut [bool]) -> Option<Vec<u32>> {
    if std::mem::replace(&mut seen[start as usize], true) {
        return None;
    }
    let mut members = vec![start];
    let mut next = 0;
    while let Some(member) = members.get(next).copied() {
        next += 1;
        for other in &neighbours[member as usize] {
            if !std::mem::replace(&mut seen[*other as usize], true) {
                members.push(*other);
            }
        }
    }
    Some(members)
}

/// Who leaves of a connected group: the `chosen`, or the `other` choice where that covers all and is smaller.
#[inline(never)]
fn group(
    nodes: &[Node],
    neighbours: &[Vec<u32>],
    mut members: Vec<u32>,
    chosen: &mut [bool],
    other: &[bool],
) -> CrossingGroup {
    let is_covered = |member: &u32, by: &[bool]| {
        by[*member as usize] || neighbours[*member as usize].iter().all(|it| by[*it as usize])
    };
    let count = |by: &[bool]| members.iter().filter(|member| by[**member as usize]).count();
    if members.iter().all(|member| is_covered(member, other)) && count(other) < count(chosen) {
        members.iter().for_each(|member| chosen[*member as usize] = other[*member as usize]);
    }
    let start = |member: u32| (nodes[member as usize].ts, member);
    trace::sort_numbers(&mut members, &|a, b| start(a).cmp(&start(b)));
    // Whoever crosses none but those that leave anyway stays, the least willing to leave first.
    for preference in 0..=MOST_WILLING {
        for member in members.iter().map(|member| *member as usize) {
            if nodes[member].preference == preference && chosen[member] {
                chosen[member] = !neighbours[member].iter().all(|it| chosen[*it as usize]);
            }
        }
    }
    let pairs = members.iter().map(|member| neighbours[*member as usize].len()).sum::<usize>() / 2;
    let mut group = CrossingGroup { leaving: Vec::new(), staying: Vec::new(), pairs };
    for member in members.iter().map(|member| *member as usize) {
        let rows = if chosen[member] { &mut group.leaving } else { &mut group.staying };
        rows.push(nodes[member].row);
    }
    group
}

/// Takes the slice that crosses most others, again and again, until nothing crosses.
#[inline(never)]
fn greedy(nodes: &[Node], neighbours: &[Vec<u32>]) -> Vec<bool> {
    let mut degree: Vec<usize> = neighbours.iter().map(Vec::len).collect();
    let mut chosen = vec![false; nodes.len()];
    let rank =
        |index: usize, degree: usize| (degree, nodes[index].preference, nodes[index].ts, index);
    let mut heap: BinaryHeap<_> =
        (0..nodes.len()).map(|index| rank(index, degree[index])).collect();
    while let Some((at_push, _, _, index)) = heap.pop() {
        if chosen[index] || at_push != degree[index] || at_push == 0 {
            continue;
        }
        chosen[index] = true;
        for other in &neighbours[index] {
            let other = *other as usize;
            if !chosen[other] {
                degree[other] -= 1;
                heap.push(rank(other, degree[other]));
            }
        }
    }
    chosen
}

/// Lanes of one kind being filled.
#[derive(Default)]
struct Filling {
    lanes: FirstFit,
    tids: Vec<u32>,
}

/// First fit, nest-aware, in the importer's order.
#[inline(never)]
fn place(
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
fn named_tracks(trace: &Trace, threads: &Threads) -> Vec<Option<TrackId>> {
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
