//! Which slices of a thread cross, and which of each group of them leave.
//!
//! Crossing pairs form a graph; to leave no pair together is to choose a vertex cover. A greedy choice by
//! degree, compared group by group with the importer's own first-come choice and pruned, is small in
//! practice (it is optimal for chains and stars, the two shapes real traces have).

use std::collections::BinaryHeap;

use dialect::Records;
use trace::{Flags, Phase, Row, each_of};

use super::line::{Ends, Line};
use crate::perfetto::MAX_DEPTH;
use crate::perfetto::order::Stacked;
use crate::pile::Pile;
use crate::rows::RowSet;
use crate::types::CrossingGroup;

/// Crossing pairs kept per thread. Beyond (a staircase of tens of thousands of slices, each crossing the
/// next hundreds) the importer's own first-come choice is taken, which needs no pairs.
const MAX_PAIRS: usize = 2_000_000;

/// Open slices kept in the sweep, for the same reason.
const MAX_OPEN: usize = 50_000;

/// A slice in a crossing pair.
#[derive(Clone, Copy)]
pub(super) struct Node {
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

/// Slices that cross, and the pairs of them.
pub(super) struct Crossings {
    pub(super) nodes: Vec<Node>,
    /// (earlier, later), as indexes into the nodes.
    pub(super) pairs: Vec<(u32, u32)>,
    /// Whether these are all that can be wrong on the thread: there are complete slices alone, never too many open at once.
    pub(super) are_all: bool,
}

/// An open slice.
#[derive(Clone, Copy, Debug)]
struct Open {
    end: i64,
    row: Row,
    phase: Phase,
}

/// Goes through the events of a thread in the importer's order with the open slices sorted by end, the soonest last: where
/// slices nest, every step touches only the top.
struct Sweep<'a> {
    line: &'a Line<'a>,
    ends: &'a Ends,
    open: Pile<Open>,
    pairs: Vec<(Row, Row)>,
    swallowing: RowSet,
    /// The most slices with a length that are open at once.
    deepest: usize,
    empty: Empty,
    is_odd: bool,
    too_many: bool,
}

/// Slices without a length: those of one ns lie on each other.
#[derive(Default)]
struct Empty {
    ts: i64,
    n: usize,
    most: usize,
}

impl Sweep<'_> {
    #[inline(always)]
    fn slice(&mut self, row: Row, ts: i64, dur: i64) {
        let end = ts.saturating_add(dur);
        if end <= ts {
            return self.empty(ts);
        }
        if self.too_many {
            return;
        }
        while self.open.last().is_some_and(|top| top.end <= ts) {
            self.open.pop();
        }
        let open = Open { end, row, phase: Phase::Complete };
        match self.open.last() {
            Some(top) if top.end < end => self.cross(open),
            parent => {
                if let Some(parent) = parent {
                    self.swallow(row, parent.row);
                }
                self.open.push(open);
            }
        }
        self.deepest = self.deepest.max(self.open.len());
    }

    #[inline(never)]
    fn empty(&mut self, ts: i64) {
        let empty = &mut self.empty;
        empty.n = if empty.ts == ts { empty.n + 1 } else { 1 };
        empty.ts = ts;
        empty.most = empty.most.max(empty.n);
    }

    /// Any event but a complete slice of ordinary length.
    #[inline(never)]
    fn other(&mut self, event: Stacked) {
        let item = event.item(self.line.view);
        let end = match item.phase {
            Phase::Complete => {
                self.is_odd |= item.end == i64::MAX;
                item.end
            }
            Phase::Begin => {
                self.is_odd = true;
                self.ends.get(&item.row).map_or(item.ts, |(_, end)| *end)
            }
            Phase::Instant => item.ts,
            _ => return,
        };
        if end <= item.ts {
            return self.empty(item.ts);
        }
        if self.too_many {
            return;
        }
        while self.open.last().is_some_and(|top| top.end <= item.ts) {
            self.open.pop();
        }
        self.cross(Open { end, row: item.row, phase: item.phase });
        self.deepest = self.deepest.max(self.open.len());
    }

    /// Puts a slice among the open ones, and notes which of these it crosses.
    #[inline(never)]
    fn cross(&mut self, slice: Open) {
        let open = self.open.items();
        let at = open.partition_point(|other| other.end >= slice.end);
        for other in &open[at..] {
            // A complete slice across an open `B` is no error; the other way round it is.
            if slice.phase == Phase::Begin || other.phase == Phase::Complete {
                self.pairs.push((other.row, slice.row));
            }
        }
        if let Some(parent) = at.checked_sub(1).map(|parent| open[parent].row) {
            self.swallow(slice.row, parent);
        }
        self.open.insert(at, slice);
        self.too_many = self.pairs.len() > MAX_PAIRS || self.open.len() > MAX_OPEN;
    }

    /// Notes a kernel that lies in another one.
    #[inline(always)]
    fn swallow(&mut self, slice: Row, parent: Row) {
        let trace = self.line.view.trace;
        if trace.flags(slice).has(Flags::KERNEL) && trace.flags(parent).has(Flags::KERNEL) {
            self.swallowing.insert(parent);
        }
    }
}

/// All pairs that cross. `None` when there are too many.
#[inline(never)]
pub(super) fn crossing_pairs(line: &Line<'_>, ends: &Ends) -> Option<Crossings> {
    let (open, pairs, swallowing) = (Pile::default(), Vec::new(), RowSet::default());
    let (deepest, empty, is_odd, too_many) = (0, Empty::default(), false, false);
    let mut sweep = Sweep { line, ends, open, pairs, swallowing, deepest, empty, is_odd, too_many };
    each_of(line.events(), |event| match event.as_slice() {
        Some((ts, dur)) => sweep.slice(event.row, ts, dur),
        None => sweep.other(event),
    });
    if sweep.too_many || sweep.deepest > MAX_OPEN {
        return None;
    }
    let trace = line.view.trace;
    let mut rows = RowSet::default();
    for (a, b) in &sweep.pairs {
        rows.insert(*a);
        rows.insert(*b);
    }
    let nodes: Vec<Node> = rows
        .to_vec()
        .into_iter()
        .map(|row| Node {
            row,
            ts: line.view.importer_times(row).0,
            preference: preference(*line.records.of(trace, row), sweep.swallowing.contains(row)),
        })
        .collect();
    let index = |row: Row| nodes.partition_point(|node| node.row < row) as u32;
    let pairs = sweep.pairs.iter().map(|(a, b)| (index(*a), index(*b))).collect();
    // (Beyond that, ends wrap.)
    let is_far = line.events().last().is_some_and(|last| last.item(line.view).ts > i64::MAX / 2);
    let are_all = !sweep.is_odd && !is_far && sweep.deepest + sweep.empty.most < MAX_DEPTH;
    Some(Crossings { nodes, pairs, are_all })
}

/// The slices that each slice crosses, in the order of the pairs. (A list of its own for each would be an allocation each.)
struct Neighbours {
    /// Where the list of each begins, and where the last one ends.
    starts: Vec<u32>,
    all: Vec<u32>,
}

impl Neighbours {
    #[inline(never)]
    fn of(n_nodes: usize, pairs: &[(u32, u32)]) -> Self {
        let mut starts = vec![0; n_nodes + 2];
        for (a, b) in pairs {
            starts[*a as usize + 2] += 1;
            starts[*b as usize + 2] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        // Each start moves to its end, which is the start of the next.
        let mut all = vec![0; pairs.len() * 2];
        for (a, b) in pairs {
            for (from, to) in [(*a, *b), (*b, *a)] {
                let place = &mut starts[from as usize + 1];
                all[*place as usize] = to;
                *place += 1;
            }
        }
        Self { starts, all }
    }

    fn list(&self, node: usize) -> &[u32] {
        &self.all[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// The other one, if this slice crosses one alone, which crosses no other: nearly all that cross are such pairs.
    #[inline(never)]
    fn only(&self, node: u32) -> Option<u32> {
        match self.list(node as usize) {
            [other] if self.list(*other as usize).len() == 1 => Some(*other),
            _ => None,
        }
    }
}

/// Chooses, group by connected group, the slices that leave.
#[inline(never)]
pub(super) fn cover(nodes: &[Node], pairs: &[(u32, u32)], dropped: &RowSet) -> Vec<CrossingGroup> {
    let neighbours = Neighbours::of(nodes.len(), pairs);
    let mut chosen = greedy(nodes, &neighbours);
    let by_arrival: Vec<bool> = nodes.iter().map(|node| dropped.contains(node.row)).collect();
    let mut seen = vec![false; nodes.len()];
    let mut groups = Vec::new();
    for start in 0..nodes.len() as u32 {
        match neighbours.only(start) {
            Some(other) => groups.extend(pair(nodes, &chosen, start, other)),
            None => groups.extend(
                connected(start, &neighbours, &mut seen)
                    .map(|members| group(nodes, &neighbours, members, &mut chosen, &by_arrival)),
            ),
        }
    }
    groups
}

/// The group of two slices that cross each other alone, as the first of them asks.
#[inline(never)]
fn pair(nodes: &[Node], chosen: &[bool], start: u32, other: u32) -> Option<CrossingGroup> {
    if other < start {
        return None;
    }
    let (leaving, staying) = if chosen[start as usize] { (start, other) } else { (other, start) };
    let rows = |node: u32| vec![nodes[node as usize].row];
    Some(CrossingGroup { leaving: rows(leaving), staying: rows(staying), pairs: 1 })
}

/// Everything that hangs together with `start`; nothing if that was seen before.
#[inline(never)]
fn connected(start: u32, neighbours: &Neighbours, seen: &mut [bool]) -> Option<Vec<u32>> {
    if std::mem::replace(&mut seen[start as usize], true) {
        return None;
    }
    let mut members = vec![start];
    let mut next = 0;
    while let Some(member) = members.get(next).copied() {
        next += 1;
        for other in neighbours.list(member as usize) {
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
    neighbours: &Neighbours,
    mut members: Vec<u32>,
    chosen: &mut [bool],
    other: &[bool],
) -> CrossingGroup {
    let is_covered = |member: &u32, by: &[bool]| {
        by[*member as usize] || neighbours.list(*member as usize).iter().all(|it| by[*it as usize])
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
                chosen[member] = !neighbours.list(member).iter().all(|it| chosen[*it as usize]);
            }
        }
    }
    let pairs =
        members.iter().map(|member| neighbours.list(*member as usize).len()).sum::<usize>() / 2;
    let mut group = CrossingGroup { leaving: Vec::new(), staying: Vec::new(), pairs };
    for member in members.iter().map(|member| *member as usize) {
        let rows = if chosen[member] { &mut group.leaving } else { &mut group.staying };
        rows.push(nodes[member].row);
    }
    group
}

/// Chooses who leaves of every two that cross each other alone; and the slices that are no such pair. (Most are, and that a
/// browser optimises the heap for few others would take longer than it.)
#[inline(never)]
fn choose_of_pairs(nodes: &[Node], neighbours: &Neighbours) -> (Vec<bool>, Vec<usize>) {
    let (mut chosen, mut others) = (vec![false; nodes.len()], Vec::new());
    for (index, leaves) in chosen.iter_mut().enumerate() {
        match neighbours.only(index as u32) {
            Some(other) => *leaves = leaves_rather(nodes, index, other as usize),
            None => others.push(index),
        }
    }
    (chosen, others)
}

/// Whether the first of two that cross as many others is taken before the second.
#[inline(never)]
fn leaves_rather(nodes: &[Node], first: usize, second: usize) -> bool {
    let rank = |index: usize| (nodes[index].preference, nodes[index].ts, index);
    rank(first) > rank(second)
}

/// Takes the slice that crosses most others, again and again, until nothing crosses.
#[inline(never)]
fn greedy(nodes: &[Node], neighbours: &Neighbours) -> Vec<bool> {
    let (mut chosen, others) = choose_of_pairs(nodes, neighbours);
    let mut degree: Vec<usize> = (0..nodes.len()).map(|node| neighbours.list(node).len()).collect();
    let rank =
        |index: usize, degree: usize| (degree, nodes[index].preference, nodes[index].ts, index);
    let mut heap: BinaryHeap<_> =
        others.into_iter().map(|index| rank(index, degree[index])).collect();
    while let Some((at_push, _, _, index)) = heap.pop() {
        if chosen[index] || at_push != degree[index] || at_push == 0 {
            continue;
        }
        chosen[index] = true;
        for other in neighbours.list(index) {
            let other = *other as usize;
            if !chosen[other] {
                degree[other] -= 1;
                heap.push(rank(other, degree[other]));
            }
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Who leaves by the heap alone: the one that crosses most others, again and again.
    fn by_heap(nodes: &[Node], pairs: &[(u32, u32)]) -> Vec<bool> {
        let mut chosen = vec![false; nodes.len()];
        loop {
            let crosses = |index: usize| {
                let of = |(a, b): &&(u32, u32)| {
                    (*a as usize == index && !chosen[*b as usize])
                        || (*b as usize == index && !chosen[*a as usize])
                };
                pairs.iter().filter(of).count()
            };
            let left = (0..nodes.len()).filter(|index| !chosen[*index] && crosses(*index) > 0);
            let rank = |index: &usize| {
                (crosses(*index), nodes[*index].preference, nodes[*index].ts, *index)
            };
            match left.max_by_key(rank) {
                Some(index) => chosen[index] = true,
                None => return chosen,
            }
        }
    }

    proptest! {
        #[test]
        fn pairs_are_chosen_from_as_by_the_heap(
            slices in prop::collection::vec((0..4_u8, 0..6_i64), 2..24),
            pairs in prop::collection::btree_set((0..24_u32, 0..24_u32), 0..14),
        ) {
            let node = |(row, (preference, ts)): (u32, &(u8, i64))| Node {
                row,
                ts: *ts,
                preference: *preference,
            };
            let nodes: Vec<Node> = (0..).zip(&slices).map(node).collect();
            let pairs: Vec<(u32, u32)> =
                pairs.into_iter().filter(|(a, b)| a < b && (*b as usize) < nodes.len()).collect();
            let neighbours = Neighbours::of(nodes.len(), &pairs);
            prop_assert_eq!(greedy(&nodes, &neighbours), by_heap(&nodes, &pairs));
            let all = cover(&nodes, &pairs, &RowSet::default());
            let mut rows: Vec<Row> =
                all.iter().flat_map(|group| group.leaving.iter().chain(&group.staying)).copied().collect();
            rows.sort_unstable();
            prop_assert_eq!(rows, (0..nodes.len() as Row).collect::<Vec<_>>(), "each is in one group");
        }
    }
}
