//! What the CPUs of ranks wait for each other: calls of gloo, and functions that send objects of Python.
//!
//! The nth call of a function with messages of one size on one rank belongs to the nth on each of the others of its group, where all of
//! them call it equally often and [nothing contradicts that](crate::cpu_gates). A rank waits from its own start until the last one joins,
//! where it is still in the call then: who has gone by then (a rank of a broadcast that has what it needs) did not wait for the last.
//!
//! Two threads of gloo begin calls of one group in any order, and calls of two groups have an order on no thread. Sizes tell most of those
//! apart. They are not recorded everywhere, and some functions send and receive different sizes; where not every size is matched, the order
//! of all calls is tried. The order in which calls of one rank that run at one time began may be that of the others or not: what depends on
//! it is called an estimate.
//!
//! The group is not recorded. It is all ranks, or the process groups of one size: the largest that no call contradicts.
//!
//! A rank may begin a call before another one's recording begins: the profiler starts later there. That call is left out.

use report::units::{plural, time};
use report::{Cell, Column, Row, Unit};
use serde::Serialize;
use timeline::intervals::Interval;

use crate::calls::{CpuKind, RankCalls};
use crate::cpu_gates::Way;
use crate::cpu_waits::{CpuWaits, InOrder, in_order};
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
    n_unmatched: u64,
    most: String,
    most_ns: Option<i64>,
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
            key: "n_unmatched",
            title: "Not matched",
            unit: Unit::Count,
            help: "Calls without a matching call on every other rank, or from before every rank was recorded.",
            cell: |row| Cell::Count(row.n_unmatched),
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
    /// How many groups call it, and of how many ranks; 0 where that is not known, or several things.
    groups: (usize, usize),
    /// Calls of a rank that begin before the last recording, at most.
    n_before: usize,
    /// Whether the match rests on the order of calls that run at one time.
    is_estimate: bool,
}

fn rows(ranks: &[&RankCalls], name: &str, known: &Known) -> OfName {
    let mut sizes: Vec<&str> = Vec::new();
    for kind in ranks.iter().flat_map(|rank| &rank.on_cpu).filter(|kind| kind.name == name) {
        if !sizes.contains(&&*kind.size) {
            sizes.push(&kind.size);
        }
    }
    let calls = |size: Option<&str>| -> Vec<Vec<Interval>> {
        let of_rank = |rank: &&RankCalls| {
            let is_own =
                |kind: &&CpuKind| kind.name == name && size.is_none_or(|size| kind.size == size);
            let own = rank.on_cpu.iter().filter(is_own);
            let mut calls: Vec<Interval> = own.flat_map(|kind| kind.calls.clone()).collect();
            trace::sort(&mut calls);
            calls
        };
        ranks.iter().map(of_rank).collect()
    };
    let since = ranks.iter().filter_map(|rank| Some(rank.recorded?.0)).max().unwrap_or(i64::MIN);
    let is_pair = PAIRS.iter().any(|part| name.contains(part));
    let matched = |calls: &[Vec<Interval>]| match is_pair {
        true => None,
        false => in_order(calls, Way::of(name), known, since),
    };
    let all = calls(None);
    let of_sizes: Vec<Option<InOrder>> = match sizes.len() {
        1 => Vec::new(),
        _ => sizes.iter().map(|size| matched(&calls(Some(size)))).collect(),
    };
    let is_whole = !of_sizes.is_empty() && of_sizes.iter().all(Option::is_some);
    let found = match if is_whole { None } else { matched(&all) } {
        Some(all) => vec![all],
        None => of_sizes.into_iter().flatten().collect(),
    };
    let mut of_name = OfName {
        n_before: found.iter().map(|one| one.n_before).sum(),
        is_estimate: found.iter().any(|one| one.is_estimate),
        ..OfName::default()
    };
    if let [first, rest @ ..] = &*found
        && rest.iter().all(|one| one.groups == first.groups)
    {
        of_name.groups = first.groups;
    }
    let row = |(at, own): (usize, &Vec<Interval>)| {
        let total_ns = own.iter().fold(0_i64, |sum, (from, to)| sum.saturating_add(to - from));
        let waits = found.iter().filter_map(|one| one.waits[at].as_ref());
        let waits = waits.cloned().reduce(CpuWaits::and);
        let (waits_ns, n_last) = waits.as_ref().map(|own| (own.ns, own.n_last)).unzip();
        let (most, most_ns) = waits.as_ref().and_then(|own| most(ranks, own)).unzip();
        let (rank, call, n) = (ranks[at].name.clone(), name.to_owned(), own.len() as u64);
        let n_unmatched = n.saturating_sub(waits.map_or(0, |own| own.n));
        let most = most.unwrap_or_default();
        let row = CpuRow { call, rank, n, total_ns, waits_ns, n_last, n_unmatched, most, most_ns };
        (!own.is_empty()).then_some(row)
    };
    of_name.rows = all.iter().enumerate().filter_map(row).collect();
    of_name
}

/// The rank for which one waits most.
fn most(ranks: &[&RankCalls], own: &CpuWaits) -> Option<(String, i64)> {
    let most = own.of.iter().zip(ranks).filter(|(ns, _)| **ns > 0).max_by_key(|(ns, _)| **ns);
    most.map(|(ns, rank)| (rank.name.clone(), *ns))
}

fn sentence(OfName { rows, groups, n_before, is_estimate }: &OfName) -> String {
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
            (between(waits), plural(row.n.saturating_sub(row.n_unmatched), "call", "calls"));
        text += &format!(
            ", {waits} of that before the last rank joins. Rank {} is the last in {n_last} of {calls}",
            row.rank
        );
    }
    text += ".";
    if *is_estimate {
        text += " The waits are estimates: calls of one rank run at one time, and are matched by the order of their starts.";
    }
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
            let name_of_call = "broadcast_pyobj".to_owned();
            let kind = CpuKind { name: name_of_call, calls, ..CpuKind::default() };
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
                on_cpu: vec![CpuKind { name: function.to_owned(), calls, ..CpuKind::default() }],
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
    fn calls_that_begin_in_another_order_on_another_rank_are_matched_by_size() {
        let ms = 1_000_000;
        let rank = |name: &str, kinds: &[(&str, &[Interval])]| {
            let kind = |(size, calls): &(&str, &[Interval])| CpuKind {
                name: "gloo:all_reduce".to_owned(),
                size: (*size).to_owned(),
                calls: calls.iter().map(|(from, to)| (from * ms, to * ms)).collect(),
            };
            let on_cpu = kinds.iter().map(kind).collect();
            RankCalls { name: name.to_owned(), on_cpu, ..RankCalls::default() }
        };
        // Rank 1 is 4 ms late for the large one and 1 ms early for the small one, of which it begins first.
        let by = |sizes: [&str; 2]| {
            let [large, small] = sizes;
            let ranks = [
                rank("0", &[(large, &[(0, 9), (20, 29)]), (small, &[(3, 9), (23, 29)])]),
                rank("1", &[(large, &[(4, 9), (24, 29)]), (small, &[(2, 9), (22, 29)])]),
            ];
            let ranks: Vec<&RankCalls> = ranks.iter().collect();
            let known = on_clocks(&ranks, Clocks::default());
            let found = rows(&ranks, "gloo:all_reduce", &known);
            let waits = found.rows.iter().map(|row| row.waits_ns.map(|ns| ns / ms));
            (waits.collect::<Vec<_>>(), sentence(&found))
        };
        let (waits, text) = by(["[[80]]", "[[8]]"]);
        assert_eq!(waits, [Some(8), Some(2)]);
        assert!(text.ends_with("Rank 0 is the last in 2 of 4 calls."), "{text}");
        // Without sizes the order is all there is.
        let (waits, text) = by(["", ""]);
        assert_eq!(waits, [Some(6), Some(0)]);
        assert!(text.contains("The waits are estimates"), "{text}");
    }

    #[test]
    fn calls_of_sizes_that_no_other_rank_has_are_matched_by_order() {
        let rank = |name: &str, sizes: [&str; 3]| {
            let kind = |(at, size): (i64, &str)| CpuKind {
                name: "gloo:all_to_all".to_owned(),
                size: size.to_owned(),
                calls: vec![(at * 100 + name.len() as i64, at * 100 + 50)],
            };
            let on_cpu = (0..).zip(sizes).map(kind).collect();
            RankCalls { name: name.to_owned(), on_cpu, ..RankCalls::default() }
        };
        let ranks = [rank("0", ["a", "b", "c"]), rank("10", ["a", "c", "d"])];
        let ranks: Vec<&RankCalls> = ranks.iter().collect();
        let found = rows(&ranks, "gloo:all_to_all", &on_clocks(&ranks, Clocks::default()));
        let of = |row: &CpuRow| (row.waits_ns, row.n_last, row.n_unmatched);
        let of_all: Vec<_> = found.rows.iter().map(of).collect();
        assert_eq!(of_all, [(Some(3), Some(0), 0), (Some(0), Some(3), 0)]);
        assert!(!found.is_estimate);
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
