//! What the collectives of several ranks show, found once: groups, clocks and matches.

use crate::calls::{Kind, Launched, RankCalls};
use crate::clocks::{Clocks, OfKey, by_key};
use crate::groups::{Groups, MOST_RANKS};
use crate::same_calls::{LEAST_AMONG, Matches, ROUGHLY_NS, Unknown, matches};

/// What is known of several ranks. It does not depend on which rank is asked about, so a run of many ranks computes it once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Which of them may call a collective together.
    pub(crate) groups: Groups,
    /// Their clocks.
    pub(crate) clocks: Clocks,
    /// Those whose clock is moved, on the clock of the others.
    pub(crate) moved: Vec<Option<RankCalls>>,
    /// Their collectives, on one clock.
    pub(crate) matches: Vec<Matches>,
    /// Their collectives of which the wait is not known.
    pub(crate) unknown: Unknown,
    /// Calls that were left out because not all ranks were recorded: of the rank with the most.
    pub(crate) n_cut: usize,
}

impl Known {
    /// Of these ranks; of more than are matched nothing.
    pub(crate) fn of(ranks: &[&RankCalls]) -> Self {
        if ranks.len() > MOST_RANKS {
            return Self::default();
        }
        let groups = Groups::of(ranks);
        let clocks = Clocks::of(ranks, &groups);
        let moved = clocks.applied(ranks);
        let known = Self { groups, clocks, moved, ..Self::default() };
        let (mut matches, n_cut) = known.matched(&known.on_one_clock(ranks));
        let mut unknown = Unknown::default();
        for found in &matches {
            unknown.n += found.unknown.n;
            unknown.most_ns = unknown.most_ns.saturating_add(found.unknown.most_ns);
        }
        matches.retain(|found| !found.calls.is_empty());
        Self { matches, unknown, n_cut, ..known }
    }

    /// The ranks on one clock.
    pub(crate) fn on_one_clock<'a>(&'a self, ranks: &[&'a RankCalls]) -> Vec<&'a RankCalls> {
        let moved = |at: usize| self.moved.get(at).and_then(Option::as_ref);
        ranks.iter().enumerate().map(|(at, rank)| moved(at).unwrap_or(rank)).collect()
    }

    /// The collectives of ranks on one clock, and how many calls of a rank are left out because not all ranks were recorded.
    fn matched(&self, ranks: &[&RankCalls]) -> (Vec<Matches>, usize) {
        let of_files = ranks.iter().any(|rank| rank.shift_ns.is_some());
        let mut all: Vec<Matches> = Vec::new();
        let mut cut_of = vec![0; ranks.len()];
        for OfKey { is_broadcast, of_ranks } in by_key(ranks) {
            let shows_clock = all.iter().any(|found| !found.calls.is_empty());
            let slack =
                || self.clocks.slack_ns(&of_ranks.iter().map(|(at, _)| *at).collect::<Vec<_>>());
            let found =
                |own: &[(usize, &Kind)]| matches(own, &self.groups, of_files.then(slack), true);
            let mut own = found(&of_ranks);
            if own.is_empty() && !is_broadcast {
                let mut cut = in_common(&of_ranks, ranks);
                let found = |cut: &[(usize, Kind)]| {
                    found(&cut.iter().map(|(at, kind)| (*at, kind)).collect::<Vec<_>>())
                };
                own = found(&cut);
                if own.is_empty() {
                    cut = without_lost_end(cut);
                    own = found(&cut);
                }
                let pairs = of_ranks.iter().zip(&cut).filter(|_| !own.is_empty());
                pairs.for_each(|((at, kind), one)| {
                    cut_of[*at] += kind.calls.len() - one.1.calls.len();
                });
            }
            for found in own {
                let is_one_clock =
                    if of_files { self.clocks.are_one(&found.members) } else { shows_clock };
                if !is_broadcast || is_one_clock {
                    all.push(found);
                }
            }
        }
        (all, cut_of.into_iter().max().unwrap_or_default())
    }
}

/// The calls that end while all of these ranks are recorded: from the latest first kernel to the earliest end of a last one. Ranks leave a
/// collective together, so each of these has a kernel on all of them. Empty where that are too few to be no chance.
fn in_common(of_ranks: &[(usize, &Kind)], ranks: &[&RankCalls]) -> Vec<(usize, Kind)> {
    let kernels = || of_ranks.iter().map(|(at, _)| &ranks[*at].kernels);
    let from = kernels().filter_map(|own| own.first()).map(|one| one.times.0).max();
    let last = |own: &Vec<Launched>| own.iter().map(|one| one.times.1).max();
    let to = kernels().filter_map(last).min();
    let Some((from, to)) = from.zip(to) else { return Vec::new() };
    let of = |(at, kind): &(usize, &Kind)| {
        let mut kind = (*kind).clone();
        kind.calls.retain(|call| call.1 >= from && call.1 <= to.saturating_add(ROUGHLY_NS));
        (*at, kind)
    };
    let own: Vec<(usize, Kind)> = of_ranks.iter().map(of).collect();
    if own.iter().any(|(_, kind)| kind.calls.len() < LEAST_AMONG) { Vec::new() } else { own }
}

/// So many percent of its calls a rank may lack at the end.
const MOST_LOST_PCT: usize = 10;

/// The calls without the last ones of the ranks that have more of them: the profiler may lose work at the end of a recording, although it
/// has later work of other kinds. Empty where the ranks have equally many, or differ by much.
fn without_lost_end(mut of_ranks: Vec<(usize, Kind)>) -> Vec<(usize, Kind)> {
    let counts = || of_ranks.iter().map(|(_, kind)| kind.calls.len());
    let (Some(least), Some(most)) = (counts().min(), counts().max()) else { return Vec::new() };
    if least == most || 100 * (most - least) > MOST_LOST_PCT * most {
        return Vec::new();
    }
    of_ranks.iter_mut().for_each(|(_, kind)| kind.calls.truncate(least));
    of_ranks
}

#[cfg(test)]
mod tests {
    use timeline::intervals::Interval;

    use super::*;

    const US: i64 = 1_000;

    /// Two ranks whose files list their one group: their calls in us, of which rank 1 joins late by the second number.
    fn ranks(calls: [&[Interval]; 2]) -> [RankCalls; 2] {
        let of = |at: usize| {
            let calls: Vec<Interval> =
                calls[at].iter().map(|(from, to)| (from * US, to * US)).collect();
            let kernel = |times: &Interval| Launched {
                times: *times,
                launch_ns: None,
                stream: trace::TrackId(0),
            };
            let kind = Kind {
                key: "ncclAllReduceRingLLKernel_sum_f32".to_owned(),
                group_size: None,
                is_broadcast: false,
                calls: calls.clone(),
            };
            RankCalls {
                name: at.to_string(),
                rank: at as i64,
                kernels: calls.iter().map(kernel).collect(),
                kinds: vec![kind],
                groups: vec![vec![0, 1]],
                shift_ns: Some(0),
                ..RankCalls::default()
            }
        };
        [of(0), of(1)]
    }

    #[test]
    fn calls_outside_the_time_that_all_recorded_are_cut_before_they_are_counted() {
        // Rank 0 is recorded from the first call to the ninth, rank 1 from the third to the twelfth.
        let calls = |nths: std::ops::RangeInclusive<i64>, wait: i64| -> Vec<Interval> {
            nths.map(|nth| (nth * 10_000 - wait, nth * 10_000)).collect()
        };
        let found = |own: [&[Interval]; 2]| {
            let ranks = ranks(own);
            Known::of(&ranks.iter().collect::<Vec<_>>())
        };
        let (first, second) = (calls(1..=9, 900), calls(3..=12, 100));
        let known = found([&first, &second]);
        assert_eq!(known.matches.iter().map(|one| one.calls.len()).collect::<Vec<_>>(), [7]);
        assert_eq!(known.n_cut, 3);
        // One call is missing in the middle: which ones belong together is open.
        let mut missing = second.clone();
        missing.remove(3);
        let known = found([&first, &missing]);
        assert_eq!((known.matches.len(), known.n_cut), (0, 0));
        // Three in common may fit by chance.
        assert!(found([&first, &calls(7..=12, 100)]).matches.is_empty());
    }

    #[test]
    fn calls_that_a_recording_lost_at_its_end_are_left_out() {
        let calls = |n: i64, wait: i64| -> Vec<Interval> {
            (1..=n).map(|nth| (nth * 10_000 - wait, nth * 10_000)).collect()
        };
        let found = |own: [&[Interval]; 2]| {
            let mut ranks = ranks(own);
            // (Later work of another kind is there.)
            for rank in &mut ranks {
                let times = (400_000 * US, 400_010 * US);
                rank.kernels.push(Launched { times, launch_ns: None, stream: trace::TrackId(0) });
            }
            let known = Known::of(&ranks.iter().collect::<Vec<_>>());
            (known.matches.iter().map(|one| one.calls.len()).sum::<usize>(), known.n_cut)
        };
        assert_eq!(found([&calls(20, 900), &calls(18, 100)]), (18, 2));
        assert_eq!(found([&calls(20, 900), &calls(16, 100)]), (0, 0), "a fifth is too much");
        let mut first = calls(20, 100);
        first.drain(..2);
        assert_eq!(found([&calls(20, 900), &first]), (18, 2), "cut at the begin");
        let mut middle = calls(20, 100);
        middle.drain(8..10);
        assert_eq!(found([&calls(20, 900), &middle]), (0, 0));
    }
}
