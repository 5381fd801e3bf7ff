//! Rules 5, 6 and 8: which slices leave their thread, and onto which lanes.
//!
//! On one thread slices must nest or be apart. Where two cross, one has to leave; the fewest should, and
//! the right ones: of a bogus 20 ms kernel that swallows nine hundred, the bogus one; of an annotation and
//! the builtin frame it was opened in, the annotation. Nothing is cut, snapped or rounded.
//!
//! Crossing pairs form a graph; to leave no pair together is to choose a vertex cover. A greedy choice by
//! degree, compared group by group with the importer's own first-come choice and pruned, is small in
//! practice (it is optimal for chains and stars, the two shapes real traces have).

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};

use trace::{BuildIdHasher, Flags, Phase, Row, Trace, each_of};

use crate::perfetto::nesting::{self, Trouble, closes};
use crate::perfetto::order::{self, Item};
use crate::perfetto::threads::{Folded, Threads};
use crate::perfetto::{MAX_DEPTH, Survey, threads};
use crate::plan::{Lane, LaneKind, RepairPlan, Rule};
use crate::split::{self, FreeTids};
use crate::view::View;

/// Crossing pairs kept per thread. Beyond (a staircase of tens of thousands of slices, each crossing the
/// next hundreds) the importer's own first-come choice is taken, which needs no pairs.
const MAX_PAIRS: usize = 2_000_000;
/// Open slices kept in the sweep, for the same reason.
const MAX_OPEN: usize = 50_000;

/// A slice that leaves with the slices it crosses: one place worth drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossingGroup {
    /// The slices that leave, in time order.
    pub leaving: Vec<Row>,
    /// The slices that stay.
    pub staying: Vec<Row>,
    /// Number of crossing pairs among all of them.
    pub pairs: usize,
}

/// A slice in a crossing pair.
#[derive(Clone, Copy)]
struct Node {
    row: Row,
    ts: i64,
    preference: u8,
}

/// Which slice of an evenly matched pair leaves: the higher.
fn preference(trace: &Trace, row: Row, swallows: bool) -> u8 {
    if is_annotation(trace, row) {
        return 5;
    }
    match trace.raw_category_text(row) {
        "cuda_sync" | "overhead" => 4,
        _ if swallows => 3,
        "python_function" => 2,
        _ => 1,
    }
}

fn is_annotation(trace: &Trace, row: Row) -> bool {
    matches!(trace.raw_category_text(row), "user_annotation" | "gpu_user_annotation")
}

/// Plans the lanes of every thread that needs some.
#[inline(never)]
pub(crate) fn plan(trace: &Trace, plan: &mut RepairPlan, work: &Survey, tids: &mut FreeTids) {
    if work.troubles.is_empty() {
        return;
    }
    let mut moves: Vec<(Row, u32, Rule, Option<Row>)> = Vec::new();
    let mut lanes: Vec<Lane> = Vec::new();
    let mut groups: Vec<CrossingGroup> = Vec::new();
    {
        let view = View::after(trace, plan);
        for (thread, trouble) in &work.troubles {
            let line = Line { view: &view, threads: &work.threads, thread: *thread };
            let ends = if trouble.has_begins { ends_of_begins(&line) } else { Ends::default() };
            let (evicted, mut found) = choose(&line, &ends, trouble);
            groups.append(&mut found);
            place(&line, &ends, &evicted, tids, &mut lanes, &mut moves);
        }
    }
    for (row, tid, rule, because_of) in moves {
        plan.edit_mut(row).tid = Some(tid);
        plan.note(row, rule, because_of);
    }
    plan.lanes.append(&mut lanes);
    groups.sort_by_key(|group| {
        (std::cmp::Reverse(group.pairs), group.leaving.first().copied().unwrap_or_default())
    });
    plan.crossings = groups;
}

/// One thread of the trace, as the importer orders it.
struct Line<'a> {
    view: &'a View<'a>,
    threads: &'a Threads,
    thread: usize,
}

impl Line<'_> {
    fn rows(&self) -> &[Row] {
        self.threads.rows(self.thread)
    }

    fn items(&self) -> impl Iterator<Item = Item> + '_ {
        self.threads.items(self.view, self.thread)
    }
}

/// The `E` and the end of every `B`; an unclosed `B` lasts for ever.
#[inline(never)]
fn ends_of_begins(line: &Line<'_>) -> Ends {
    let mut ends = HashMap::default();
    let mut open: Vec<Row> = Vec::new();
    for item in line.items() {
        match item.phase {
            Phase::Begin => {
                ends.insert(item.row, (None, i64::MAX));
                open.push(item.row);
            }
            Phase::End => {
                let matching = |begin: &Row| closes(line.view.trace, item.row, *begin);
                if let Some(at) = open.iter().rposition(matching) {
                    ends.insert(open.remove(at), (Some(item.row), item.ts));
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
                let dropped: BTreeSet<Row> = trouble.crossing.iter().map(|pair| pair.0).collect();
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
        let mut gone: HashSet<Row, BuildIdHasher> = evicted.keys().copied().collect();
        for row in evicted.keys() {
            gone.extend(ends.get(row).and_then(|(end, _)| *end));
        }
        let (left, _) = nesting::walk(line.view, line.rows(), |row| gone.contains(&row));
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
        item: Item,
    }
    let trace = line.view.trace;
    let mut open: Vec<Open> = Vec::new();
    let mut pairs: Vec<(Row, Row)> = Vec::new();
    let mut swallowing: HashSet<Row, BuildIdHasher> = HashSet::default();
    let mut too_many = false;
    each_of(line.rows(), |row| {
        let item = order::item(line.view, row);
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
        let at = open.partition_point(|other| other.end >= end);
        for other in &open[at..] {
            // A complete slice across an open `B` is no error; the other way round it is.
            if item.phase == Phase::Begin || other.item.phase == Phase::Complete {
                pairs.push((other.item.row, item.row));
            }
        }
        if let Some(parent) = at.checked_sub(1).map(|parent| &open[parent])
            && trace.flags(parent.item.row).has(Flags::KERNEL)
            && trace.flags(item.row).has(Flags::KERNEL)
        {
            swallowing.insert(parent.item.row);
        }
        open.insert(at, Open { end, item });
        too_many = pairs.len() > MAX_PAIRS || open.len() > MAX_OPEN;
    });
    if too_many {
        return None;
    }
    let rows: BTreeSet<Row> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let nodes: Vec<Node> = rows
        .iter()
        .map(|row| Node {
            row: *row,
            ts: line.view.importer_times(*row).0,
            preference: preference(trace, *row, swallowing.contains(row)),
        })
        .collect();
    let index = |row: Row| nodes.partition_point(|node| node.row < row) as u32;
    let pairs = pairs.iter().map(|(a, b)| (index(*a), index(*b))).collect();
    Some((nodes, pairs))
}

/// Chooses, group by connected group, the slices that leave.
#[inline(never)]
fn cover(nodes: &[Node], pairs: &[(u32, u32)], dropped: &BTreeSet<Row>) -> Vec<CrossingGroup> {
    let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    for (a, b) in pairs {
        neighbours[*a as usize].push(*b);
        neighbours[*b as usize].push(*a);
    }
    let mut group_of = vec![usize::MAX; nodes.len()];
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for start in 0..nodes.len() {
        if group_of[start] != usize::MAX {
            continue;
        }
        let mut members = vec![start as u32];
        group_of[start] = groups.len();
        let mut next = 0;
        while let Some(member) = members.get(next).copied() {
            next += 1;
            for other in &neighbours[member as usize] {
                if group_of[*other as usize] == usize::MAX {
                    group_of[*other as usize] = groups.len();
                    members.push(*other);
                }
            }
        }
        groups.push(members);
    }
    let by_degree = greedy(nodes, &neighbours);
    let by_arrival: Vec<bool> = nodes.iter().map(|node| dropped.contains(&node.row)).collect();
    groups
        .into_iter()
        .map(|members| {
            let count = |chosen: &[bool]| members.iter().filter(|m| chosen[**m as usize]).count();
            let covers = |chosen: &[bool]| {
                members.iter().all(|member| {
                    chosen[*member as usize]
                        || neighbours[*member as usize].iter().all(|other| chosen[*other as usize])
                })
            };
            let arrival_wins = covers(&by_arrival) && count(&by_arrival) < count(&by_degree);
            let chosen = if arrival_wins { &by_arrival } else { &by_degree };
            let leaving = prune(nodes, &neighbours, &members, chosen);
            let pairs = members.iter().map(|m| neighbours[*m as usize].len()).sum::<usize>() / 2;
            let mut group = CrossingGroup { leaving: Vec::new(), staying: Vec::new(), pairs };
            let mut members = members;
            members.sort_by_key(|member| (nodes[*member as usize].ts, *member));
            for member in members {
                let row = nodes[member as usize].row;
                if leaving.contains(&member) { &mut group.leaving } else { &mut group.staying }
                    .push(row);
            }
            group
        })
        .collect()
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

/// Takes back every chosen slice whose neighbours all leave anyway, the least willing first.
fn prune(
    nodes: &[Node],
    neighbours: &[Vec<u32>],
    members: &[u32],
    chosen: &[bool],
) -> BTreeSet<u32> {
    let mut leaving: BTreeSet<u32> =
        members.iter().copied().filter(|member| chosen[*member as usize]).collect();
    let mut candidates: Vec<u32> = leaving.iter().copied().collect();
    candidates.sort_by_key(|member| {
        let node = nodes[*member as usize];
        (node.preference, node.ts, *member)
    });
    for member in candidates {
        if neighbours[member as usize].iter().all(|other| leaving.contains(other)) {
            leaving.remove(&member);
        }
    }
    leaving
}

/// A lane being filled: the ends of its open slices.
struct Filling {
    tid: u32,
    open: Vec<(i64, i64)>,
}

impl Filling {
    fn takes(&mut self, ts: i64, end: i64) -> bool {
        while self.open.last().is_some_and(|(open_ts, open_end)| {
            *open_end < ts || (*open_end == ts && !(open_ts == open_end && ts == end))
        }) {
            self.open.pop();
        }
        // They nest, so the last ends first.
        let crosses =
            self.open.last().is_some_and(|(_, open_end)| ts < *open_end && end > *open_end);
        if crosses || self.open.len() >= MAX_DEPTH {
            return false;
        }
        self.open.push((ts, end));
        true
    }
}

/// First fit, nest-aware, in the importer's order.
#[inline(never)]
fn place(
    line: &Line<'_>,
    ends: &Ends,
    evicted: &Evicted,
    tids: &mut FreeTids,
    lanes: &mut Vec<Lane>,
    moves: &mut Vec<(Row, u32, Rule, Option<Row>)>,
) {
    let trace = line.view.trace;
    let mut overlap: Vec<Filling> = Vec::new();
    let mut annotations: Vec<Filling> = Vec::new();
    let mut leaving: Vec<(Item, (Rule, Option<Row>))> =
        evicted.iter().map(|(row, reason)| (order::item(line.view, *row), *reason)).collect();
    leaving.sort_by_key(|(item, _)| item.key());
    for (item, (rule, because_of)) in leaving {
        let (closing, end) = match ends.get(&item.row) {
            Some((closing, end)) => (*closing, *end),
            None => (None, item.end),
        };
        let annotation = is_annotation(trace, item.row) && rule == Rule::CrossingSlice;
        let (filling, kind) = if annotation {
            (&mut annotations, LaneKind::Annotations)
        } else {
            (&mut overlap, LaneKind::Overlap)
        };
        let lane = filling.iter_mut().position(|lane| lane.takes(item.ts, end));
        let lane = lane.unwrap_or_else(|| {
            let parent = home(line, item.row);
            let tid = tids.take(parent.0);
            lanes.push(Lane {
                kind,
                process: trace.track_info(trace.track(item.row)).process,
                parent: trace.track(item.row),
                tid,
                name: Some(lane_name(&parent.1, kind, filling.len() + 1)),
                sort_index: parent.2,
            });
            filling.push(Filling { tid, open: vec![(item.ts, end)] });
            filling.len() - 1
        });
        let tid = filling[lane].tid;
        moves.push((item.row, tid, rule, because_of));
        if let Some(closing) = closing {
            moves.push((closing, tid, rule, because_of));
        }
    }
}

/// The thread a lane belongs to: its tid, name and sort index, as Perfetto shows them.
fn home(line: &Line<'_>, row: Row) -> (u32, String, Option<i64>) {
    let trace = line.view.trace;
    let track = trace.track(row);
    let info = trace.track_info(track);
    // A split thread already has its new tid.
    let tid = match line.view.edit(row).and_then(|edit| edit.tid) {
        Some(tid) => tid,
        None => split::shown_tid(trace, track),
    };
    // Threads that fold into one share the name that was said last.
    let key = line.threads.key(line.thread);
    let named = (0..trace.tracks.len() as u32).rev().map(trace::TrackId).find(|id| {
        let other = trace.track_info(*id);
        other.name.is_some()
            && threads::thread_key(trace.process_of(*id).pid, other.tid, trace) == key
    });
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
