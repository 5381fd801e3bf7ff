//! Which slices leave their thread, and onto which lanes.
//!
//! On one thread slices must nest or be apart. Where two cross, one has to leave; the fewest should, and
//! the right ones: of a bogus 20 ms kernel that swallows nine hundred, the bogus one; of an annotation and
//! the builtin frame it was opened in, the annotation. Nothing is cut, snapped or rounded.

mod crossings;
mod line;
mod place;

use std::collections::BTreeMap;

use trace::{Row, Trace};

use crate::perfetto::Survey;
use crate::perfetto::nesting::{self, Trouble};
use crate::rows::RowSet;
use crate::split::FreeTids;
use crate::types::{CrossingGroup, Lane, RepairPlan, Rule};
use crate::view::View;
use crossings::{Crossings, cover, crossing_pairs};
use line::{Ends, Line, ends_of_begins};
use place::{named_tracks, place};

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

/// The slices that leave, in no particular order of merit, with the reason; and the crossing groups.
#[inline(never)]
fn choose(line: &Line<'_>, ends: &Ends, trouble: &Trouble) -> (Evicted, Vec<CrossingGroup>) {
    let mut evicted = Evicted::new();
    let mut groups = Vec::new();
    if !trouble.crossing.is_empty() || !trouble.misplaced.is_empty() {
        match crossing_pairs(line, ends) {
            Some(Crossings { nodes, pairs, are_all }) => {
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
                if are_all {
                    // No two cross that stay, which is all that the importer would find.
                    return (evicted, groups);
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
