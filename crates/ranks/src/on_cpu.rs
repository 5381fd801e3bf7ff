//! What the CPUs of ranks wait for each other: calls of gloo, and functions that send objects of Python.
//!
//! The nth call of a function on one rank belongs to the nth on each of the others of its group, where all of them call it equally often
//! and [nothing contradicts that](crate::cpu_gates). A rank waits from its own start until the last one joins, where it is still in the
//! call then: who has gone by then (a rank of a broadcast that has what it needs) did not wait for the last.
//!
//! The group is not recorded. It is all ranks, or the process groups of one size: the largest that no call contradicts.
//!
//! A rank may begin a call before another one's recording begins: the profiler starts later there. That call is left out.

use report::units::{plural, time};
use report::{Cell, Column, Row, Unit};
use serde::Serialize;
use timeline::intervals::Interval;

use crate::calls::RankCalls;
use crate::cpu_gates::{Way, are_one, last_start, leave_apart, nth};
use crate::groups::Group;
use crate::known::Known;

/// In these two ranks meet, and nothing tells which.
const PAIRS: [&str; 2] = ["send", "recv"];
const UNMATCHED: &str = "the calls of the ranks could not be matched";

/// A function on one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct CpuRow {
    call: String,
    rank: String,
    n: u64,
    total_ns: i64,
    waits_ns: Option<i64>,
    n_last: Option<u64>,
    most: String,
    most_ns: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CpuWaits {
    n_last: u64,
    ns: i64,
    /// By rank that comes last.
    of: Vec<i64>,
    /// The rank for which it waits most, and how long; `None` where it waits for none.
    most: Option<(String, i64)>,
}

impl Row for CpuRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "call",
            title: "Call",
            unit: Unit::Text,
            help: "The function, or the annotation of gloo.",
            cell: |row| row.call.as_str().into(),
        },
        Column {
            key: "rank",
            title: "Rank",
            unit: Unit::Text,
            help: "The rank.",
            cell: |row| row.rank.as_str().into(),
        },
        Column {
            key: "n",
            title: "Calls",
            unit: Unit::Count,
            help: "Calls, without those inside another one of these functions.",
            cell: |row| Cell::Count(row.n),
        },
        Column {
            key: "total_ns",
            title: "Time in it",
            unit: Unit::Time,
            help: "Sum of their durations on the CPU.",
            cell: |row| Cell::Ns(row.total_ns),
        },
        Column {
            key: "waits_ns",
            title: "Until the last rank joins",
            unit: Unit::Time,
            help: "Of it, the time before the last rank joins, in calls that are not over by then.",
            cell: |row| Cell::or_missing(row.waits_ns, Cell::Ns, UNMATCHED),
        },
        Column {
            key: "n_last",
            title: "Last to join",
            unit: Unit::Count,
            help: "Calls that this rank joins last.",
            cell: |row| Cell::or_missing(row.n_last, Cell::Count, UNMATCHED),
        },
        Column {
            key: "most",
            title: "Waits most for",
            unit: Unit::Text,
            help: "The rank for which it waits most.",
            cell: |row| row.most.as_str().into(),
        },
        Column {
            key: "most_ns",
            title: "Waits for that one",
            unit: Unit::Time,
            help: "Its waits for that rank.",
            cell: |row| Cell::or_missing(row.most_ns, Cell::Ns, UNMATCHED),
        },
    ];
}

/// The calls in which the CPUs of these ranks wait for each other, and a sentence on the function that takes most; `None` without any.
/// `known`: with the clocks that collectives of the GPU have shown to be one.
pub(crate) fn on_cpu(ranks: &[&RankCalls], known: &Known) -> Option<(String, Vec<CpuRow>)> {
    let mut names: Vec<&str> = Vec::new();
    for kind in ranks.iter().flat_map(|rank| &rank.on_cpu) {
        if !names.contains(&kind.name.as_str()) {
            names.push(&kind.name);
        }
    }
    let of_name = |name: &str| rows(ranks, name, known);
    let mut all: Vec<OfName> = names.into_iter().map(of_name).collect();
    let total =
        |one: &OfName| one.rows.iter().fold(0_i64, |sum, row| sum.saturating_add(row.total_ns));
    let most = (0..all.len()).reduce(|a, b| if total(&all[b]) > total(&all[a]) { b } else { a })?;
    // (The table begins with what the sentence is about.)
    all.swap(0, most);
    let sentence = sentence(&all[0]);
    let rows: Vec<CpuRow> = all.into_iter().flat_map(|one| one.rows).collect();
    Some((sentence, rows))
}

/// A function on all ranks that call it.
#[derive(Default)]
struct OfName {
    rows: Vec<CpuRow>,
    /// How many groups call it, and of how many ranks; 0 where that is not known.
    groups: (usize, usize),
    /// Calls of a rank that begin before the last recording, at most.
    n_before: usize,
}

fn rows(ranks: &[&RankCalls], name: &str, Known { groups, clocks, .. }: &Known) -> OfName {
    let calls = |rank: &RankCalls| -> Vec<Interval> {
        let own = rank.on_cpu.iter().find(|kind| kind.name == name);
        own.map(|kind| kind.calls.clone()).unwrap_or_default()
    };
    let calls: Vec<Vec<Interval>> = ranks.iter().map(|rank| calls(rank)).collect();
    let since = ranks.iter().filter_map(|rank| Some(rank.recorded?.0)).max().unwrap_or(i64::MIN);
    let way = Way::of(name);
    let mut waits: Vec<Option<CpuWaits>> = vec![None; ranks.len()];
    let mut found = OfName::default();
    let is_pair = PAIRS.iter().any(|part| name.contains(part));
    for family in groups.families().iter().filter(|_| !is_pair) {
        let callers = || (0..ranks.len()).filter(|at| !calls[*at].is_empty());
        let is_whole = callers().all(|at| family.iter().any(|one| one.members.contains(&at)));
        let of_group = |group: &&'_ Group| -> Option<Vec<&[Interval]>> {
            let own: Vec<&[Interval]> = group.members.iter().map(|at| &*calls[*at]).collect();
            let is_one_clock = clocks.are_one(&group.members);
            let slack_ns = is_one_clock.then(|| clocks.slack_ns(&group.members));
            are_one(&own, way, slack_ns).then_some(own)
        };
        let own: Option<Vec<_>> = family.iter().map(of_group).collect();
        let Some(own) = own.filter(|own| is_whole && !own.is_empty()) else { continue };
        // (Calls of all ranks look like those of any smaller group, unless these go their own ways.)
        if own.len() > 1 && way == Way::All && !leave_apart(&own) {
            continue;
        }
        found.groups = (own.len(), family[0].members.len());
        for (Group { members, .. }, own) in family.iter().zip(own) {
            let (of_members, n_before) = matched(&own, since);
            found.n_before = found.n_before.max(n_before);
            for (at, own) in members.iter().zip(of_members) {
                waits[*at] = Some(CpuWaits { most: most(ranks, members, &own), ..own });
            }
        }
        break;
    }
    let row = |((at, own), waits): ((usize, &Vec<Interval>), Option<CpuWaits>)| {
        let total_ns = own.iter().fold(0_i64, |sum, (from, to)| sum.saturating_add(to - from));
        let (waits_ns, n_last) = waits.as_ref().map(|own| (own.ns, own.n_last)).unzip();
        let (most, most_ns) = waits.and_then(|own| own.most).unzip();
        let most = most.unwrap_or_default();
        let (rank, call, n) = (ranks[at].name.clone(), name.to_owned(), own.len() as u64);
        let row = CpuRow { call, rank, n, total_ns, waits_ns, n_last, most, most_ns };
        (!own.is_empty()).then_some(row)
    };
    found.rows = calls.iter().enumerate().zip(waits).filter_map(row).collect();
    found
}

/// The rank for which one waits most.
fn most(ranks: &[&RankCalls], members: &[usize], own: &CpuWaits) -> Option<(String, i64)> {
    let most = own.of.iter().zip(members).filter(|(ns, _)| **ns > 0).max_by_key(|(ns, _)| **ns);
    most.map(|(ns, at)| (ranks[*at].name.clone(), *ns))
}

/// What each rank waits, and how many calls were left out because they began before `since`.
fn matched(calls: &[&[Interval]], since: i64) -> (Vec<CpuWaits>, usize) {
    let n = calls.first().map_or(0, |own| own.len());
    let mut waits = vec![CpuWaits { of: vec![0; calls.len()], ..CpuWaits::default() }; calls.len()];
    let mut n_before = 0;
    for at in 0..n {
        if nth(calls, at).any(|(from, _)| from < since) {
            n_before += 1;
            continue;
        }
        let joined = last_start(calls, at);
        // (Of equal starts the last rank counts as the last, as it does on the GPU.)
        let mut own = nth(calls, at).enumerate().filter(|(_, (from, _))| *from == joined);
        let Some((last, _)) = own.next_back() else { continue };
        waits[last].n_last += 1;
        for (own, (from, to)) in waits.iter_mut().zip(nth(calls, at)) {
            if to > joined {
                let ns = joined.saturating_sub(from);
                own.ns = own.ns.saturating_add(ns);
                own.of[last] = own.of[last].saturating_add(ns);
            }
        }
    }
    (waits, n_before)
}

fn sentence(OfName { rows, groups, n_before }: &OfName) -> String {
    let between = |all: Vec<i64>| {
        let (least, most) = (all.iter().min(), all.iter().max());
        let (least, most) = (time(*least.unwrap_or(&0)), time(*most.unwrap_or(&0)));
        if least == most { most } else { format!("{least} to {most}") }
    };
    let call = rows.first().map_or("", |row| row.call.as_str());
    let all = between(rows.iter().map(|row| row.total_ns).collect());
    let waits: Vec<i64> = rows.iter().filter_map(|row| row.waits_ns).collect();
    let last = rows.iter().filter_map(|row| Some((row.n_last?, row)));
    // (Of equal ones the first.)
    let last = last.reduce(|a, b| if b.0 > a.0 { b } else { a });
    let mut text =
        format!("The CPUs wait for each other in {call}: a rank is in it for {all} in all");
    if let Some((n_last, row)) = last {
        if groups.0 > 1 {
            text += &format!(" (in {} groups of {})", groups.0, groups.1);
        }
        let (waits, calls) =
            (between(waits), plural(row.n.saturating_sub(*n_before as u64), "call", "calls"));
        text += &format!(
            ", {waits} of that before the last rank joins. Rank {} is the last in {n_last} of {calls}",
            row.rank
        );
    }
    text += ".";
    if *n_before > 0 {
        text += &format!(
            " Calls that began before every rank was recorded are left out of the waits (up to {n_before} per rank)."
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::CpuKind;
    use crate::clocks::Clocks;
    use crate::groups::Groups;

    /// Ranks whose clocks are known so far.
    fn on_clocks(ranks: &[&RankCalls], clocks: Clocks) -> Known {
        Known { groups: Groups::of(ranks), clocks, ..Known::default() }
    }

    #[test]
    fn a_rank_waits_until_the_last_one_joins_unless_it_has_gone_by_then() {
        let us = 1_000;
        let rank = |name: &str, calls: &[Interval]| {
            let calls = calls.iter().map(|(from, to)| (from * us, to * us)).collect();
            let kind = CpuKind { name: "broadcast_pyobj".to_owned(), calls };
            RankCalls { name: name.to_owned(), on_cpu: vec![kind], ..RankCalls::default() }
        };
        // The second rank is late for both; the third has the second object before that.
        let ranks = [
            rank("0", &[(0, 100), (200, 300)]),
            rank("1", &[(90, 105), (280, 301)]),
            rank("2", &[(10, 104), (190, 220)]),
        ];
        let ranks: Vec<&RankCalls> = ranks.iter().collect();
        let one_clock = on_clocks(&ranks, Clocks::default());
        let found = rows(&ranks, "broadcast_pyobj", &one_clock).rows;
        let waits =
            |row: &CpuRow| Some((row.n_last?, row.waits_ns?, row.most.clone(), row.most_ns));
        assert_eq!(
            found.iter().filter_map(waits).collect::<Vec<_>>(),
            [
                (0, 170 * us, "1".to_owned(), Some(170 * us)),
                (2, 0, String::new(), None),
                (0, 80 * us, "1".to_owned(), Some(80 * us)),
            ]
        );
        let (said, rows_of_all) = on_cpu(&ranks, &one_clock).expect("there are calls");
        assert_eq!(
            said,
            "The CPUs wait for each other in broadcast_pyobj: a rank is in it for 36.0 µs to 200 µs in all, 0 ns to 170 µs of that before the \
             last rank joins. Rank 1 is the last in 2 of 2 calls."
        );
        assert_eq!(rows_of_all.len(), 3);
        // Without one clock, calls that do not overlap on all ranks tell nothing of who is late.
        let unmatched = rows(&ranks, "broadcast_pyobj", &on_clocks(&ranks, Clocks::apart(3)));
        assert!(unmatched.rows.iter().all(|row| row.waits_ns.is_none()));
        assert_eq!(
            sentence(&unmatched),
            "The CPUs wait for each other in broadcast_pyobj: a rank is in it for 36.0 µs to 200 µs in all."
        );
        assert!(on_cpu(&[&RankCalls::default()], &one_clock).is_none());
    }

    /// Four ranks that call it in the pairs 0 with 2 and 1 with 3, in us.
    fn pairs(function: &str, groups: &[&[i64]]) -> Vec<RankCalls> {
        let us = 1_000;
        // In the first call rank 1 has left before rank 0 joins. In the last, rank 3 begins before rank 0 is recorded.
        let calls: [[Interval; 3]; 4] = [
            [(2_500, 3_000), (5_000, 9_000), (20_000, 20_100)],
            [(1_000, 2_000), (5_000, 6_000), (20_000, 20_100)],
            [(1_500, 3_010), (8_900, 9_010), (20_050, 20_110)],
            [(1_900, 2_010), (5_900, 6_010), (20_050, 20_110)],
        ];
        let of = |(rank, calls): (i64, &[Interval; 3])| {
            let calls = calls.iter().map(|(from, to)| (from * us, to * us)).collect();
            RankCalls {
                name: rank.to_string(),
                rank,
                recorded: Some((0, 30_000 * us)),
                on_cpu: vec![CpuKind { name: function.to_owned(), calls }],
                groups: groups
                    .iter()
                    .filter(|one| one.contains(&rank))
                    .map(|one| one.to_vec())
                    .collect(),
                shift_ns: Some(0),
                ..RankCalls::default()
            }
        };
        (0..).zip(&calls).map(of).collect()
    }

    fn said(ranks: &[RankCalls]) -> (Vec<Option<(i64, String)>>, String) {
        let ranks: Vec<&RankCalls> = ranks.iter().collect();
        let (sentence, _) =
            on_cpu(&ranks, &on_clocks(&ranks, Clocks::apart(4))).expect("there are calls");
        let found = rows(&ranks, &ranks[0].on_cpu[0].name, &on_clocks(&ranks, Clocks::apart(4)));
        let waits = |row: &CpuRow| Some((row.waits_ns? / 1_000, row.most.clone()));
        (found.rows.iter().map(waits).collect(), sentence)
    }

    #[test]
    fn a_rank_that_leaves_before_another_joins_is_of_another_group() {
        let (world, tensor): (&[i64], [&[i64]; 2]) = (&[0, 1, 2, 3], [&[0, 1], &[2, 3]]);
        let groups: Vec<&[i64]> = [&[world][..], &tensor, &[&[0, 2], &[1, 3]]].concat();
        let (waits, sentence) = said(&pairs("gloo:all_reduce", &groups));
        let wait = |us: i64, whom: &str| Some((us, whom.to_owned()));
        assert_eq!(waits, [wait(3_950, "2"), wait(1_850, "3"), wait(1_000, "0"), wait(0, "")]);
        assert!(sentence.contains("(in 2 groups of 2), 0 ns to 3.95 ms of that"), "{sentence}");
        // Where no listed group can be the one, only the time is told; nor whom a receiver waits for.
        let (waits, sentence) = said(&pairs("gloo:all_reduce", &[world, tensor[0], tensor[1]]));
        assert_eq!(waits, [None, None, None, None]);
        assert!(sentence.ends_with("in all."), "{sentence}");
        assert_eq!(said(&pairs("gloo:recv", &groups)).0, [None, None, None, None]);
    }

    #[test]
    fn json_keys_are_column_keys() {
        testkit::assert_keys(&CpuRow::default(), CpuRow::COLUMNS.iter().map(|one| one.key));
    }

    #[test]
    fn a_call_that_begins_before_the_last_recording_is_left_out() {
        let groups: [&[i64]; 2] = [&[0, 2], &[1, 3]];
        let mut ranks = pairs("gloo:all_reduce", &groups);
        ranks[3].recorded = Some((2_000_000, 30_000_000));
        let (waits, sentence) = said(&ranks);
        assert_eq!(waits[2].as_ref().map(|own| own.0), Some(0), "1 ms of it was in the first call");
        assert_eq!(waits[0].as_ref().map(|own| own.0), Some(3_950));
        assert!(
            sentence.ends_with(
                "Calls that began before every rank was recorded are left out of the waits (up to 1 per rank)."
            ),
            "{sentence}"
        );
    }
}
