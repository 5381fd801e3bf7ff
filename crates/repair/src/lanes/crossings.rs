//! Which slices of a thread cross, and which of each group of them leave.
//!
//! Crossing pairs form a graph; to leave no pair together is to choose a vertex cover. A greedy choice by
//! degree, compared group by group with the importer's own first-come choice and pruned, is small in
//! practice (it is optimal for chains and stars, the two shapes real traces have).

use std::collections::BinaryHeap;

use dialect::Records;
use trace::{Flags, Phase, Row, each_of};

use super::line::{Ends, Line};
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

/// All pairs (earlier, later) that cross, as indexes into the nodes. `None` when there are too many.
///
/// A sweep in the importer's order with the open slices sorted by end, the soonest last: on a thread that
/// nests, every step touches only the tail.
#[allow(clippy::type_complexity)]
#[inline(never)]
pub(super) fn crossing_pairs(line: &Line<'_>, ends: &Ends) -> Option<(Vec<Node>, Vec<(u32, u32)>)> {
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
pub(super) fn cover(nodes: &[Node], pairs: &[(u32, u32)], dropped: &RowSet) -> Vec<CrossingGroup> {
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
