//! What the collectives of several traces of one run tell: one trace a rank.

use report::units::{count, plural, time};
use report::{Section, Table};
use serde::Serialize;
use timeline::intervals::{length, union};

use crate::begins::BeforeRecordings;
use crate::by_group::{groups, sentences};
use crate::calls::RankCalls;
use crate::matched::{Matched, not_compared};
use crate::on_cpu::{CpuRow, on_cpu};
use crate::rows::{GroupRow, RankRow};
use crate::runs::OneRun;
use crate::same_calls::{Matches, Unknown};
use crate::senders::for_senders;
use crate::unmatched::broadcasts;
use crate::waits::Waits;

/// The ranks of a run, compared: what a report has of them. Its JSON has the rows of its tables.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// What follows from the tables, and what could not be compared.
    sentences: Vec<String>,
    pub(crate) ranks: Vec<RankRow>,
    groups: Vec<GroupRow>,
    cpu_calls: Vec<CpuRow>,
}

/// A reservation on less than this part of the longest waits changes no figure that is printed: a hundredth.
const LEAST_PART: i64 = 100;

/// So many times as close are the ends of another kind, if most of what those of one are apart is no difference of clocks.
const MUCH_CLOSER: i64 = 4;
/// Of fewer calls the median tells nothing.
const LEAST_CALLS: usize = 5;

/// Whether `n` collectives that are off by `ns` each change a figure of waits of `waits_ns`.
fn changes(ns: i64, n: usize, waits_ns: i64) -> bool {
    ns.saturating_mul(n as i64).saturating_mul(LEAST_PART) >= waits_ns
}

/// How far apart the kernels of each call end at most, in ns, in the kind of the same ranks in which they are closest, beside `rough`. Kernels
/// of a call end together but for what the clocks differ by, and the longer they are, the further apart. `None` where the ranks have no
/// other such kind, or few calls of it.
fn closest_ends_ns(matches: &[Matches], rough: &Matches) -> Option<i64> {
    let is_told = |found: &&Matches| {
        !std::ptr::eq(*found, rough)
            && !found.is_broadcast
            && found.calls.len() >= LEAST_CALLS
            && rough.members.iter().all(|at| found.members.contains(at))
    };
    matches.iter().filter(is_told).filter_map(|found| found.ends_apart_ns().max()).min()
}

/// How sure the waits are, where some kernels end roughly together.
fn reservation(matches: &[Matches], waits_ns: i64) -> Option<String> {
    let rough = matches.iter().max_by_key(|found| found.rough_ns)?;
    let n_calls = matches.iter().map(|found| found.calls.len()).sum();
    let ns = rough.rough_ns;
    if ns == 0 || !changes(ns, n_calls, waits_ns) {
        return None;
    }
    let clocks = match closest_ends_ns(matches, rough) {
        Some(closest) if closest.saturating_mul(MUCH_CLOSER) <= ns => format!(
            "; little of that is a difference of clocks: those of another kind are at most {} apart",
            time(closest)
        ),
        _ => ", and the clocks of the ranks may differ by as much".to_owned(),
    };
    Some(format!(
        "The waits are estimates: the ends of kernels of one collective are up to {} apart{clocks}.",
        time(ns)
    ))
}

impl OneRun<'_> {
    /// What the collectives of its ranks tell of each other, and which files are not of it.
    #[must_use]
    pub fn compared(&self) -> Compared {
        let (ranks, known) = (self.ranks(), self.known());
        let on_one = known.on_one_clock(&ranks);
        let matched = Matched::of_all(&ranks, known, None);
        let of_group = groups(known);
        let before = BeforeRecordings::of(&on_one, &known.matches);
        let rows = of_group.iter().map(|group| group.row(&on_one, &before));
        let groups: Vec<GroupRow> = rows.collect();
        let row = |(at, rank): (usize, &&RankCalls)| RankRow {
            clock_ns: known.clocks.by_ns(at),
            groups: of_group
                .iter()
                .zip(&groups)
                .filter(|(group, _)| group.members.contains(&at))
                .map(|(_, row)| row.group.clone())
                .collect(),
            ..rank.row(&matched)
        };
        // (Without kernels there is nothing in a row.)
        let is_empty = ranks.len() > Matched::MOST_RANKS
            || ranks.iter().all(|rank| rank.kernels.is_empty() && rank.kinds.is_empty());
        let rows = match is_empty {
            true => Vec::new(),
            false => ranks.iter().enumerate().map(row).collect(),
        };
        let mut said = vec![matched.sentence()];
        let longest_ns = matched.devices().map(|(_, waits)| waits.exposed_ns).max();
        said.extend(longest_ns.and_then(|ns| before.sentence(&on_one, ns)));
        // (Where there are no others, the first sentence has it.)
        let not_compared = not_compared(&ranks);
        if !not_compared.is_empty() && matched.why_none() != not_compared {
            said.push(not_compared.to_owned());
        }
        said.extend(sentences(&of_group, &groups));
        let waits_ns = longest_ns.unwrap_or_default();
        said.extend(reservation(&known.matches, waits_ns));
        let unknown = Some(known.unknown).filter(|of| changes(of.most_ns, of.n, waits_ns));
        let unknown = unknown.and_then(|unknown| unknown.sentence(ranks.len()));
        said.extend(unknown.filter(|_| !known.matches.is_empty()));
        let unmatched = broadcasts(&ranks, &known.matches, waits_ns);
        said.extend(unmatched.filter(|_| !known.matches.is_empty()));
        if known.n_cut > 0 {
            said.push(format!(
                "Collectives that end before or after the time in which all ranks were recorded, or that a recording lacks at its end, are left \
                 out (up to {} per rank).",
                count(known.n_cut as u64)
            ));
        }
        if matched.is_part {
            said.push(format!("Some groups have ranks without a file. {}", Matched::OTHERS));
        }
        said.extend(known.clocks.sentence(&ranks));
        said.extend(for_senders(&on_one, &known.clocks));
        let (sentence, cpu_calls) = on_cpu(&on_one, known).unzip();
        said.extend(sentence);
        said.extend(self.left_out());
        let cpu_calls = cpu_calls.unwrap_or_default();
        Compared { sentences: said, ranks: rows, groups, cpu_calls }
    }

    /// The same as a section.
    #[must_use]
    pub fn section(&self) -> Section {
        self.compared().section()
    }
}

impl Compared {
    /// As a section of a report.
    #[must_use]
    pub fn section(&self) -> Section {
        let mut section = Section::new("ranks", "Ranks");
        section.intro.clone_from(&self.sentences);
        let title = match self.ranks.iter().any(|row| row.n > 0) {
            true => "Ranks, by the collectives that all of them call",
            false => "Ranks, each by itself",
        };
        let table = Table::of("ranks", title, &self.ranks)
            .without_missing(&["behind_ns", "exposed_ns", "saves_ns", "most_ns"])
            .without_zero(&["n", "n_last", "n_late_launches", "late_launch_ns", "clock_ns"]);
        // (Of one group the rows of its ranks say the same.)
        let is_one = self.groups.len() < 2;
        let table = if is_one { table.without("groups") } else { table };
        section.tables.push(table.when_empty("None."));
        if !is_one {
            let table = Table::of("rank_groups", "Groups of ranks", &self.groups);
            section.tables.push(table.without("ranks").without_zero(&["n_missing"]));
        }
        if !self.cpu_calls.is_empty() {
            let title = "Calls in which the CPUs wait for each other";
            let table = Table::of("cpu_waits", title, &self.cpu_calls);
            let table = table.without_missing(&["waits_ns", "n_last", "most_ns"]);
            section.tables.push(table.without_zero(&["n_unmatched"]));
        }
        section
    }
}

impl RankCalls {
    /// Its row, but for its clock and groups.
    fn row(&self, matched: &Matched) -> RankRow {
        let busy = union(self.kernels.iter().map(|kernel| kernel.times).collect());
        let row = RankRow {
            rank: self.name.clone(),
            busy_ns: length(&busy),
            communication_ns: length(&self.exposed),
            ..RankRow::default()
        };
        let Some(waits) = matched.device(&self.name) else { return row };
        let most = waits.most();
        RankRow {
            n: waits.n as u64,
            n_last: waits.n_last as u64,
            behind_ns: Some(waits.behind_ns),
            n_late_launches: waits.n_late_launches as u64,
            late_launch_ns: waits.late_launch_ns,
            exposed_ns: Some(waits.exposed_ns),
            saves_ns: waits.saves_ns,
            most: most.map(|wait| wait.last.clone()).unwrap_or_default(),
            most_ns: most.map(|wait| wait.ns),
            ..row
        }
    }
}

impl Unknown {
    /// How many collectives it is, in a sentence. (Of two ranks one joins last.)
    fn sentence(self, n_ranks: usize) -> Option<String> {
        let why = match n_ranks {
            ..3 => "do not run at the same time, or end too far apart for so short a wait",
            _ => {
                "do not run at the same time, end too far apart for so short a wait, or wait for several ranks that join together, which need not be of their group"
            }
        };
        (self.n > 0).then(|| {
            format!(
                "Of the kinds of collectives that were matched, the waits exclude {}, because {} kernels {why}: a rank waits at most {} there.",
                plural(self.n as u64, "more call", "more calls"),
                if self.n == 1 { "its" } else { "their" },
                time(self.most_ns)
            )
        })
    }
}

impl Matched {
    fn sentence(&self) -> String {
        let late = self.latest().and_then(|(name, _)| Some((name, self.device(name)?)));
        match late {
            Some((name, late)) => {
                let waits = self.devices().filter_map(|(_, waits)| waits.exposed_for(name));
                let waits: Vec<i64> = waits.map(|wait| wait.ns).collect();
                let (least, most) = (waits.iter().min(), waits.iter().max());
                let (least, most) = (time(*least.unwrap_or(&0)), time(*most.unwrap_or(&0)));
                let each = match least == most {
                    true => most,
                    false => format!("each for {least} to {most} in which nothing else runs"),
                };
                let n_others = self.devices().count() - 1;
                let others = match waits.len() {
                    n if n == n_others && n > 1 => "The other ranks wait".to_owned(),
                    1 if n_others == 1 => "The other rank waits".to_owned(),
                    1 => "One other rank waits".to_owned(),
                    n => format!("{n} of the {n_others} other ranks wait"),
                };
                let last = if self.is_part { "the last of the ranks given" } else { "the last" };
                format!(
                    "{others} for rank {name}, {last} to join {} of {}: {each}.{}",
                    count(late.n_last as u64),
                    plural(late.n as u64, "collective", "collectives"),
                    self.cpu_limits(Some(name))
                )
            }
            None if self.devices().next().is_some() => {
                let none = "No rank causes most of the waiting.";
                format!("{none}{}", self.cpu_limits(None))
            }
            None => format!("No collective could be matched. {}", self.why_none()),
        }
    }

    /// That the waiting is no cause, where the ranks launch late themselves; empty where it is, or where that cannot be told.
    fn cpu_limits(&self, late: Option<&str>) -> String {
        let others = || {
            let others = self.devices().filter(|(name, _)| Some(*name) != late);
            others.map(|(_, waits)| waits)
        };
        let saves: Option<Vec<i64>> = others().map(|waits| waits.saves_ns).collect();
        let least_waiting = others().map(|waits| waits.exposed_ns).min().unwrap_or_default();
        let most = saves.and_then(|saves| saves.into_iter().max());
        // (Where most of it is transfer, that is what the launches wait for.)
        let sum = |of: fn(&Waits) -> i64| others().map(of).sum::<i64>();
        let is_transfer = sum(|waits| waits.transfer_ns) > sum(|waits| waits.exposed_ns);
        let why = match is_transfer {
            true => "in these collectives the ranks transfer for longer than they wait",
            false => "its own launches come no earlier, so the CPU limits all ranks",
        };
        match most.filter(|ns| ns.saturating_mul(2) < least_waiting) {
            Some(ns) => format!(
                " Without the waiting a rank would finish at most {} sooner: {why}.",
                time(ns)
            ),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_names_collectives_only_where_some_were_matched() {
        let title = |n: u64| {
            let ranks = vec![RankRow { n, ..RankRow::default() }];
            let (sentences, groups, cpu_calls) = (Vec::new(), Vec::new(), Vec::new());
            Compared { sentences, ranks, groups, cpu_calls }.section().tables[0].title.clone()
        };
        assert_eq!(title(3), "Ranks, by the collectives that all of them call");
        assert_eq!(title(0), "Ranks, each by itself");
    }

    #[test]
    fn a_reservation_is_told_from_a_hundredth_of_the_waits_on() {
        assert!(changes(100_000, 4, 40_000_000));
        assert!(!changes(72_000, 11, 2_990_000_000), "0.8 ms of 3 s");
        assert!(changes(1, 1, 0));
    }

    #[test]
    fn ends_of_another_kind_bound_what_the_clocks_differ_by() {
        // Calls of two ranks, of which the second ends so much later.
        let of = |members: &[usize], apart: &[i64]| {
            let call = |apart_ns: &i64| {
                members.iter().map(|at| (*at, (0, 1_000 + *at as i64 * apart_ns))).collect()
            };
            Matches {
                members: members.to_vec(),
                n_missing: 0,
                is_broadcast: false,
                calls: apart.iter().map(call).collect(),
                rough_ns: 0,
                unknown: Unknown::default(),
            }
        };
        let long = Matches { rough_ns: 2_000, ..of(&[0, 1], &[900, 100, 2_000, 1_500, 1_200]) };
        let short = of(&[0, 1], &[40, 30, 38, 35, 38]);
        let said = |all: &[Matches]| reservation(all, 0).expect("it is rough");
        let of_clocks = "the clocks of the ranks may differ by as much";
        assert!(said(std::slice::from_ref(&long)).contains(of_clocks), "there is no other kind");
        let told = said(&[long.clone(), short.clone()]);
        assert!(told.ends_with("those of another kind are at most 40 ns apart."), "{told}");
        // Of few calls, of a broadcast, or of other ranks, nothing follows; nor where one is as far apart.
        let few = of(&[0, 1], &[1, 2, 3, 4]);
        let root = Matches { is_broadcast: true, ..short.clone() };
        let others = of(&[2, 3], &[40, 30, 38, 35, 38]);
        let steps = of(&[0, 1], &[40, 30, 900, 35, 38]);
        for other in [few, root, others, steps] {
            assert!(said(&[long.clone(), other]).contains(of_clocks));
        }
        assert_eq!(reservation(&[short], 0), None);
    }

    #[test]
    fn collectives_without_a_known_wait_are_counted() {
        assert_eq!(Unknown::default().sentence(3), None);
        assert_eq!(
            Unknown { n: 2, most_ns: 240_000 }.sentence(3).as_deref(),
            Some(
                "Of the kinds of collectives that were matched, the waits exclude 2 more calls, because their kernels do not run at the \
                 same time, end too far apart for so short a wait, or wait for several ranks that join together, which need not be of their \
                 group: a rank waits at most 240 µs there."
            )
        );
        let of_two = Unknown { n: 2, most_ns: 240_000 }.sentence(2).unwrap_or_default();
        assert!(!of_two.contains("several ranks"), "{of_two}");
    }
}
