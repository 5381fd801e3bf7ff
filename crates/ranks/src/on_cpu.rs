//! What the CPUs of ranks wait for each other: calls of gloo, and functions that send objects of Python.
//!
//! The nth call of a function on one rank belongs to the nth on each of the others, where all of them call it equally often and the
//! clocks are one. A rank waits from its own start until the last one joins, where it is still in the call then: who has gone by then (a
//! rank of a broadcast that has what it needs) did not wait for the last.

use report::units::{plural, time};
use report::{Cell, Column, Row, Table, Unit};
use timeline::intervals::Interval;

use crate::calls::RankCalls;

/// Of the matches of a function so many percent run on all ranks at some moment, where nothing else shows that the clocks are one.
const LEAST_TOGETHER_PCT: usize = 90;
const UNMATCHED: &str = "the calls of the ranks could not be matched";

/// A function on one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CpuRow {
    rank: String,
    call: String,
    n: u64,
    total_ns: i64,
    waits: Option<CpuWaits>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CpuWaits {
    n_last: u64,
    ns: i64,
    /// By rank that comes last.
    of: Vec<i64>,
    most: String,
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
            cell: |row| Cell::or_missing(row.waits.as_ref().map(|own| own.ns), Cell::Ns, UNMATCHED),
        },
        Column {
            key: "n_last",
            title: "Last to join",
            unit: Unit::Count,
            help: "Calls that this rank joins last.",
            cell: |row| {
                Cell::or_missing(row.waits.as_ref().map(|own| own.n_last), Cell::Count, UNMATCHED)
            },
        },
        Column {
            key: "most",
            title: "Most of it for",
            unit: Unit::Text,
            help: "The rank for which it waits most.",
            cell: |row| row.waits.as_ref().map_or("", |own| own.most.as_str()).into(),
        },
    ];
}

/// The calls in which the CPUs of these ranks wait for each other, and a sentence on the function that takes most; `None` without any.
/// `one_clock`: collectives of the GPU have shown that the clocks are one.
pub(crate) fn on_cpu(ranks: &[&RankCalls], one_clock: bool) -> Option<(String, Table)> {
    let mut names: Vec<&str> = Vec::new();
    for kind in ranks.iter().flat_map(|rank| &rank.on_cpu) {
        if !names.contains(&kind.name.as_str()) {
            names.push(&kind.name);
        }
    }
    let of_name = |name: &str| -> Vec<CpuRow> { rows(ranks, name, one_clock) };
    let mut all: Vec<Vec<CpuRow>> = names.into_iter().map(of_name).collect();
    let total =
        |rows: &[CpuRow]| rows.iter().fold(0_i64, |sum, row| sum.saturating_add(row.total_ns));
    let most = (0..all.len()).reduce(|a, b| if total(&all[b]) > total(&all[a]) { b } else { a })?;
    // (The table begins with what the sentence is about.)
    all.swap(0, most);
    let sentence = sentence(&all[0]);
    let rows: Vec<CpuRow> = all.into_iter().flatten().collect();
    Some((sentence, Table::of("cpu_waits", "Calls in which the CPUs wait for each other", &rows)))
}

fn rows(ranks: &[&RankCalls], name: &str, one_clock: bool) -> Vec<CpuRow> {
    let calls = |rank: &RankCalls| -> Vec<Interval> {
        let own = rank.on_cpu.iter().find(|kind| kind.name == name);
        own.map(|kind| kind.calls.clone()).unwrap_or_default()
    };
    let calls: Vec<Vec<Interval>> = ranks.iter().map(|rank| calls(rank)).collect();
    let waits = matched(&calls, one_clock);
    let row = |(at, own): (usize, &Vec<Interval>)| {
        let waits = waits.get(at).cloned().map(|own| CpuWaits { most: most(ranks, &own), ..own });
        let total_ns = own.iter().fold(0_i64, |sum, (from, to)| sum.saturating_add(to - from));
        let (rank, call) = (ranks[at].name.clone(), name.to_owned());
        (!own.is_empty()).then_some(CpuRow { rank, call, n: own.len() as u64, total_ns, waits })
    };
    calls.iter().enumerate().filter_map(row).collect()
}

/// The rank for which one waits most.
fn most(ranks: &[&RankCalls], own: &CpuWaits) -> String {
    let most = own.of.iter().zip(ranks).filter(|(ns, _)| **ns > 0).max_by_key(|(ns, _)| **ns);
    most.map(|(ns, rank)| format!("{} ({})", rank.name, time(*ns))).unwrap_or_default()
}

/// What each rank waits; empty where the calls cannot be matched.
fn matched(calls: &[Vec<Interval>], one_clock: bool) -> Vec<CpuWaits> {
    let n = calls.first().map_or(0, Vec::len);
    if n == 0 || calls.iter().any(|own| own.len() != n) {
        return Vec::new();
    }
    let of_all = |nth: usize| calls.iter().map(move |own| own[nth]);
    let last_start = |nth: usize| of_all(nth).map(|(from, _)| from).max().unwrap_or_default();
    let is_together = |nth: &usize| of_all(*nth).all(|(_, to)| to >= last_start(*nth));
    if !one_clock && (0..n).filter(is_together).count() * 100 < n * LEAST_TOGETHER_PCT {
        return Vec::new();
    }
    let mut waits = vec![CpuWaits { of: vec![0; calls.len()], ..CpuWaits::default() }; calls.len()];
    for nth in 0..n {
        let joined = last_start(nth);
        // (Of equal starts the last rank counts as the last, as it does on the GPU.)
        let mut own = of_all(nth).enumerate().filter(|(_, (from, _))| *from == joined);
        let Some((last, _)) = own.next_back() else { continue };
        waits[last].n_last += 1;
        for (own, (from, to)) in waits.iter_mut().zip(of_all(nth)) {
            if to > joined {
                let ns = joined.saturating_sub(from);
                own.ns = own.ns.saturating_add(ns);
                own.of[last] = own.of[last].saturating_add(ns);
            }
        }
    }
    waits
}

fn sentence(rows: &[CpuRow]) -> String {
    let between = |all: Vec<i64>| {
        let (least, most) = (all.iter().min(), all.iter().max());
        let (least, most) = (time(*least.unwrap_or(&0)), time(*most.unwrap_or(&0)));
        if least == most { most } else { format!("{least} to {most}") }
    };
    let call = rows.first().map_or("", |row| row.call.as_str());
    let all = between(rows.iter().map(|row| row.total_ns).collect());
    let waits: Vec<i64> = rows.iter().filter_map(|row| Some(row.waits.as_ref()?.ns)).collect();
    let last = rows.iter().filter_map(|row| Some((row.waits.as_ref()?.n_last, row)));
    // (Of equal ones the first.)
    let last = last.reduce(|a, b| if b.0 > a.0 { b } else { a });
    let mut text =
        format!("The CPUs wait for each other in {call}: a rank is in it for {all} in all");
    if let Some((n_last, row)) = last {
        let (waits, calls) = (between(waits), plural(row.n, "call", "calls"));
        text += &format!(
            ", {waits} of that before the last rank joins. Rank {} is the last in {n_last} of {calls}",
            row.rank
        );
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::CpuKind;

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
        let found = rows(&ranks, "broadcast_pyobj", true);
        let waits = |row: &CpuRow| row.waits.clone().map(|own| (own.n_last, own.ns, own.most));
        assert_eq!(
            found.iter().filter_map(waits).collect::<Vec<_>>(),
            [
                (0, 170 * us, "1 (170 µs)".to_owned()),
                (2, 0, String::new()),
                (0, 80 * us, "1 (80.0 µs)".to_owned()),
            ]
        );
        let (said, table) = on_cpu(&ranks, true).expect("there are calls");
        assert_eq!(
            said,
            "The CPUs wait for each other in broadcast_pyobj: a rank is in it for 36.0 µs to 200 µs in all, 0 ns to 170 µs of that before the \
             last rank joins. Rank 1 is the last in 2 of 2 calls."
        );
        assert_eq!(table.n_rows(), 3);
        // Without one clock, calls that do not overlap on all ranks tell nothing of who is late.
        let unmatched = rows(&ranks, "broadcast_pyobj", false);
        assert!(unmatched.iter().all(|row| row.waits.is_none()));
        assert_eq!(
            sentence(&unmatched),
            "The CPUs wait for each other in broadcast_pyobj: a rank is in it for 36.0 µs to 200 µs in all."
        );
        assert!(on_cpu(&[&RankCalls::default()], true).is_none());
    }
}
