//! By how much the clocks of ranks differ.
//!
//! The clocks of two machines differ by what their synchronisation leaves: 50 to 210 us on three runs of two machines with eight H200
//! each, and constant to 10 us over a recording. Ranks leave a collective together, so the differences of the ends tell that constant:
//! their median. It counts where the ends agree without it.
//!
//! Ranks whose collectives end together as they are have one clock, and stay as they are.

use report::units::time;
use timeline::intervals::Interval;

use crate::calls::{DEEP_EP, Kind, RankCalls, moved};
use crate::groups::Groups;
use crate::same_calls::{APART_BY_NAME_NS, LEAST_APART_NS, LEAST_TOGETHER_PCT, matches};

/// A larger difference is none of synchronised clocks.
const MOST_NS: i64 = 10_000_000;
/// Fewer calls show no constant. Ends of calls that do not belong together differ by any part of the time between two calls, 1 ms and more
/// where it was measured; to agree within 10 us of a constant has a chance of about 1 in 50 for each call after the first. A run has up to
/// some ten thousand pairs of ranks and kinds: four agreements (1 in 6 million) leave none of these to chance, and two would not.
const LEAST_CALLS: usize = 5;

/// The clocks of several ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// By how much the times of each are moved, in ns.
    moved_ns: Vec<i64>,
    /// Which ranks are known to have one clock, after that: those of one number.
    of: Vec<usize>,
}

impl Clocks {
    pub(crate) fn of(ranks: &[&RankCalls], groups: &Groups) -> Self {
        // (The devices of a file have one.)
        if ranks.iter().any(|rank| rank.shift_ns.is_none()) {
            return Self::default();
        }
        let mut clocks = Self::apart(ranks.len());
        let mut others: Vec<Vec<(usize, &Kind)>> = Vec::new();
        for OfKey { is_broadcast, mut of_ranks } in by_key(ranks) {
            // (Pairs that send and receive need not end together.)
            if of_ranks.iter().any(|(_, kind)| kind.is_send_recv()) {
                continue;
            }
            if !is_broadcast {
                for found in matches(&of_ranks, groups, Some(0), false) {
                    clocks.join(&found.members, 0);
                    // (Where no groups are listed, these may be a part of one.)
                    of_ranks.retain(|(at, _)| !groups.is_known || !found.members.contains(at));
                }
            }
            others.push(of_ranks);
        }
        // (Where all wait before where some do, and the most calls first: an algorithm that ends late on some ranks shifts the median.)
        let weight = |of_ranks: &Vec<(usize, &Kind)>| {
            of_ranks.first().map(|(_, kind)| (!kind.is_broadcast, kind.calls.len()))
        };
        while let Some(most) = (0..others.len()).rev().max_by_key(|at| weight(&others[*at])) {
            let mut left = others.remove(most);
            let is_broadcast = left.iter().any(|(_, kind)| kind.is_broadcast);
            for group in &groups.all {
                let own = |(at, _): &&(usize, &Kind)| group.members.contains(at);
                let own: Vec<(usize, &Kind)> = left.iter().filter(own).copied().collect();
                if own.len() == group.members.len() && clocks.fit(&own, is_broadcast) {
                    left.retain(|(at, _)| !group.members.contains(at));
                }
            }
        }
        clocks.keep_most();
        clocks
    }

    /// Of so many ranks nothing is known.
    pub(crate) fn apart(n: usize) -> Self {
        Self { moved_ns: vec![0; n], of: (0..n).collect() }
    }

    /// Whether these are known to have one clock.
    pub(crate) fn are_one(&self, members: &[usize]) -> bool {
        members.iter().all(|at| self.of.get(*at) == self.of.get(members[0]))
    }

    /// By how much the clocks of these may differ after that, in ns: none of those that stayed as they are.
    pub(crate) fn slack_ns(&self, members: &[usize]) -> i64 {
        let mut moved = members.iter().map(|at| self.by_ns(*at));
        let first = moved.next().unwrap_or_default();
        if moved.all(|ns| ns == first) { 0 } else { LEAST_APART_NS }
    }

    /// Copies of the ranks whose times are moved, on the clock of the others; `None` of those that stay as they are.
    pub(crate) fn applied(&self, ranks: &[&RankCalls]) -> Vec<Option<RankCalls>> {
        let one = |(at, rank): (usize, &&RankCalls)| match self.by_ns(at) {
            0 => None,
            by => Some(rank.moved(by)),
        };
        ranks.iter().enumerate().map(one).collect()
    }

    /// By how much the times of a rank are moved, in ns.
    pub(crate) fn by_ns(&self, at: usize) -> i64 {
        self.moved_ns.get(at).copied().unwrap_or_default()
    }

    /// Which clocks were moved, in sentences; `None` where none was.
    pub(crate) fn sentence(&self, ranks: &[&RankCalls]) -> Option<String> {
        let mut told: Vec<(i64, Vec<&str>)> = Vec::new();
        for (ns, rank) in self.moved_ns.iter().zip(ranks).filter(|(ns, _)| **ns != 0) {
            match told.iter_mut().find(|one| one.0 == *ns) {
                Some(one) => one.1.push(&rank.name),
                None => told.push((*ns, vec![&rank.name])),
            }
        }
        let one = |(ns, names): (i64, Vec<&str>)| {
            let (way, ranks) = (if ns > 0 { "slow" } else { "fast" }, names.join(", "));
            format!("{} {way} (rank {ranks})", time(ns.saturating_abs()))
        };
        let told: Vec<String> = told.into_iter().map(one).collect();
        (!told.is_empty()).then(|| {
            format!(
                "Constant clock offsets from the other ranks are corrected: {}. With that their collectives end together.",
                told.join(", ")
            )
        })
    }

    /// Finds the constant by which the clocks of these calls differ; whether there is one.
    fn fit(&mut self, own: &[(usize, &Kind)], is_broadcast: bool) -> bool {
        let Some((first, Kind { calls, .. })) = own.first() else { return false };
        let (first, n) = (*first, calls.len());
        let members: Vec<usize> = own.iter().map(|(at, _)| *at).collect();
        if n < LEAST_CALLS
            || own.iter().any(|(_, kind)| kind.calls.len() != n)
            || self.are_one(&members)
        {
            return false;
        }
        // By rank: by how much it ends before the first, and which clock it has.
        let before = |(at, kind): &(usize, &Kind)| {
            let by = |(a, b): (&Interval, &Interval)| {
                let (own, first) = (self.moved_ns[*at], self.moved_ns[first]);
                a.1.saturating_add(first).saturating_sub(b.1.saturating_add(own))
            };
            let mut all: Vec<i64> = calls.iter().zip(&kind.calls).map(by).collect();
            Some((timeline::median(&mut all)?, self.of[*at], *at))
        };
        let Some(mut before) = own.iter().map(before).collect::<Option<Vec<_>>>() else {
            return false;
        };
        // What ends together, or has one clock already, is moved together.
        trace::sort(&mut before);
        let mut hosts: Vec<Vec<(i64, usize, usize)>> = Vec::new();
        for one in before {
            let is_its = |host: &&mut Vec<(i64, usize, usize)>| {
                host.iter().any(|other| other.1 == one.1)
                    || host.first().is_some_and(|other| one.0 - other.0 <= APART_BY_NAME_NS)
            };
            match hosts.iter_mut().find(is_its) {
                Some(host) => host.push(one),
                None => hosts.push(vec![one]),
            }
        }
        let of_host = |host: &Vec<(i64, usize, usize)>| {
            timeline::median(&mut host.iter().map(|one| one.0).collect::<Vec<i64>>())
        };
        let Some(at_first) = hosts.iter().find(|host| host.iter().any(|one| one.2 == first)) else {
            return false;
        };
        let zero = of_host(at_first).unwrap_or_default();
        // By place of the rank: by how much it is moved.
        let mut by: Vec<Option<i64>> = vec![None; self.of.len()];
        for host in &hosts {
            let ns = of_host(host).unwrap_or_default().saturating_sub(zero);
            host.iter().for_each(|one| by[one.2] = Some(ns));
        }
        let most_apart = if is_broadcast { LEAST_APART_NS } else { APART_BY_NAME_NS };
        let by_of = |at: usize| by[at].unwrap_or_default();
        let agrees = |nth: &usize| {
            let of = |(at, kind): &(usize, &Kind)| {
                moved(kind.calls[*nth], self.moved_ns[*at].saturating_add(by_of(*at)))
            };
            let (last_start, first_end) = own
                .iter()
                .map(of)
                .fold((i64::MIN, i64::MAX), |all, (from, to)| (all.0.max(from), all.1.min(to)));
            let last_end = own.iter().map(|one| of(one).1).max().unwrap_or_default();
            last_end.saturating_sub(first_end) <= most_apart
                && (is_broadcast || last_start <= first_end)
        };
        let is_plausible = by.iter().flatten().all(|ns| ns.saturating_abs() <= MOST_NS);
        let n_agree = (0..n).filter(agrees).count();
        if !is_plausible || n_agree * 100 < n * LEAST_TOGETHER_PCT {
            return false;
        }
        for (at, ns) in by.into_iter().enumerate() {
            ns.into_iter().for_each(|ns| self.join(&[first, at], ns));
        }
        true
    }

    /// The first and the others have one clock, where those of the others are moved.
    fn join(&mut self, members: &[usize], by_ns: i64) {
        let Some((first, others)) = members.split_first() else { return };
        for other in others {
            let (to, from) = (self.of[*first], self.of[*other]);
            if to == from {
                continue;
            }
            for (of, ns) in self.of.iter_mut().zip(&mut self.moved_ns) {
                if *of == from {
                    *of = to;
                    *ns = ns.saturating_add(by_ns);
                }
            }
        }
    }

    /// Of each clock, most ranks stay as they are.
    fn keep_most(&mut self) {
        for clock in 0..self.of.len() {
            let own = || self.of.iter().zip(&self.moved_ns).filter(|(of, _)| **of == clock);
            let n_of = |ns: i64| own().filter(|(_, other)| **other == ns).count();
            // (Of equal ones those of the lowest rank.)
            let most =
                own().map(|(_, ns)| *ns).reduce(|a, b| if n_of(b) > n_of(a) { b } else { a });
            let Some(most) = most.filter(|most| *most != 0) else { continue };
            for (of, ns) in self.of.iter().zip(&mut self.moved_ns) {
                if *of == clock {
                    *ns = ns.saturating_sub(most);
                }
            }
        }
    }
}

/// The calls of one kind.
pub(crate) struct OfKey<'a> {
    pub(crate) is_broadcast: bool,
    /// By place of the rank, in their order.
    pub(crate) of_ranks: Vec<(usize, &'a Kind)>,
}

/// The calls of all ranks by kind, without those that are not compared; broadcasts last: the others show whether the clock is one.
pub(crate) fn by_key<'a>(ranks: &[&'a RankCalls]) -> Vec<OfKey<'a>> {
    let of_rank = |(at, rank): (usize, &&'a RankCalls)| {
        let compared = rank.kinds.iter().filter(|kind| kind.key != DEEP_EP);
        compared.map(|kind| (at, kind)).collect::<Vec<_>>()
    };
    let mut all: Vec<(usize, &Kind)> = ranks.iter().enumerate().flat_map(of_rank).collect();
    let key = |(at, kind): &(usize, &'a Kind)| (kind.is_broadcast, kind.key.as_str(), *at);
    trace::sort_by(&mut all, |a, b| key(a).cmp(&key(b)));
    let is_one = |a: &(usize, &Kind), b: &(usize, &Kind)| a.1.key == b.1.key;
    let of_key = |own: &[(usize, &'a Kind)]| OfKey {
        is_broadcast: own.iter().any(|(_, kind)| kind.is_broadcast),
        of_ranks: own.to_vec(),
    };
    all.chunk_by(is_one).map(of_key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::Known;
    use crate::matched::Matched;

    const US: i64 = 1_000;

    /// Ranks with files of their own: each call from its start to the common end, on a clock that is late by so much.
    pub(crate) fn rank(rank: i64, groups: &[&[i64]], calls: &[Interval]) -> RankCalls {
        let calls: Vec<Interval> = calls.iter().map(|(from, to)| (from * US, to * US)).collect();
        let key = "ncclDevKernel_AllReduce_Sum_bf16_TREE_LL".to_owned();
        RankCalls {
            name: rank.to_string(),
            rank,
            exposed: vec![(i64::MIN / 4, i64::MAX / 4)],
            kinds: vec![Kind { key, group_size: None, is_broadcast: false, calls }],
            groups: groups.iter().map(|ranks| ranks.to_vec()).collect(),
            shift_ns: Some(0),
            ..RankCalls::default()
        }
    }

    /// Eight calls that end every 1,000 us. The last rank joins 100 us before the end, the others 300 us.
    fn ranks(n: i64, late: impl Fn(i64, i64) -> i64) -> Vec<RankCalls> {
        let of = |own: i64| {
            let call = |nth: i64| {
                let (end, before) =
                    (nth * 1_000 + late(own, nth), if own == n - 1 { 100 } else { 300 });
                (end - before, end)
            };
            rank(own, &[], &(1..=8).map(call).collect::<Vec<_>>())
        };
        (0..n).map(of).collect()
    }

    fn found(ranks: &[RankCalls]) -> (Vec<i64>, Matched) {
        let ranks: Vec<&RankCalls> = ranks.iter().collect();
        let known = Known::of(&ranks);
        let matched = Matched::of_all(&ranks, &known, None);
        (known.clocks.moved_ns, matched)
    }

    #[test]
    fn a_clock_that_differs_by_a_constant_is_moved_and_the_wait_is_told_on_it() {
        // Two of five ranks are on a machine whose clock is 83 us behind; ends vary by 3 us.
        let all = ranks(5, |rank, nth| if rank < 3 { nth % 3 } else { nth % 2 - 83 });
        let (moved, matched) = found(&all);
        assert_eq!((&moved[..3], moved[3] == moved[4]), (&[0, 0, 0][..], true));
        assert!((82 * US..=84 * US).contains(&moved[4]), "{moved:?}");
        let wait = matched.device("0").cloned().unwrap_or_default();
        assert!((1_580 * US..1_620 * US).contains(&wait.exposed_ns), "{wait:?}");
        assert_eq!(matched.latest().map(|(last, _)| last), Some("4"));
        let refs: Vec<&RankCalls> = all.iter().collect();
        let known = Known::of(&refs);
        let said = known.clocks.sentence(&refs).unwrap_or_default();
        assert!(said.contains("slow (rank 3, 4)"), "{said}");
        // What one rank waits is told on its own clock: the sixth call is the last of this window.
        let window = [(0, (6_000 - 83 - 50) * US)];
        let own = Matched::of_rank(&refs, &known, 3, ("7", Some(&window)));
        assert_eq!(own.device("7").map(|waits| waits.n), Some(6));
    }

    #[test]
    fn clocks_that_agree_stay_and_no_other_difference_is_corrected() {
        let (moved, matched) = found(&ranks(4, |rank, _| rank * 2));
        assert_eq!((moved, matched.devices().count()), (vec![0; 4], 4));
        // Ends that vary by 40 us.
        let (moved, matched) = found(&ranks(2, |rank, nth| rank * (nth % 2 * 40 - 83)));
        assert_eq!((moved, matched.devices().count()), (vec![0; 2], 0));
        // 20 ms.
        let (moved, matched) = found(&ranks(2, |rank, _| rank * 20_000));
        assert_eq!((moved, matched.devices().count()), (vec![0; 2], 0));
        // Four calls.
        let mut few = ranks(2, |rank, _| rank * 83);
        few.iter_mut().for_each(|rank| rank.kinds[0].calls.truncate(4));
        assert_eq!(found(&few).1.devices().count(), 0);
    }

    #[test]
    fn each_process_group_is_matched_by_itself_also_where_ranks_are_missing() {
        let calls = |first: i64, n: i64, wait: i64| -> Vec<Interval> {
            (first..first + n).map(|nth| (nth * 1_000 - wait, nth * 1_000)).collect()
        };
        // Two groups of three that call it as often, not at one time; the last has one file less.
        let (one, other): (&[i64], &[i64]) = (&[0, 1, 2], &[3, 4, 5]);
        let world: &[i64] = &[0, 1, 2, 3, 4, 5];
        let all = [
            rank(0, &[world, one], &calls(1, 5, 300)),
            rank(1, &[world, one], &calls(1, 5, 300)),
            rank(2, &[world, one], &calls(1, 5, 100)),
            rank(3, &[world, other], &calls(20, 5, 100)),
            rank(5, &[world, other], &calls(20, 5, 400)),
        ];
        let (moved, matched) = found(&all);
        assert_eq!((moved, matched.is_part), (vec![0; 5], true));
        let most = |rank| matched.device(rank)?.most().map(|wait| (wait.last.clone(), wait.ns));
        assert_eq!(most("0"), Some(("2".to_owned(), 1_000 * US)));
        assert_eq!(most("5"), Some(("3".to_owned(), 1_500 * US)));
        // With all files of a group, and unequal counts.
        let mut whole = all[..4].to_vec();
        whole.pop();
        assert!(!found(&whole).1.is_part);
        // Without groups, those that end together.
        let mut unlisted = all.to_vec();
        unlisted.iter_mut().for_each(|rank| rank.groups.clear());
        unlisted[3].kinds[0].calls.pop();
        unlisted[4].kinds[0].calls.pop();
        let (_, matched) = found(&unlisted);
        assert_eq!(matched.device("1").map(|waits| waits.exposed_ns), Some(1_000 * US));
        assert_eq!(matched.device("5").map(|waits| waits.exposed_ns), Some(1_200 * US));
    }

    #[test]
    fn a_receiver_waits_for_the_sender_of_a_broadcast_on_another_clock() {
        // The receiver starts 500 us before the sender, whose clock is 50 us behind. Nothing else connects them.
        let of = |own: i64, wait: i64, late: i64| {
            let call = |nth: i64| {
                let end = nth * 1_000 + late + nth % 2 * 15;
                (end - wait, end)
            };
            let mut rank = rank(own, &[&[0, 1]], &(1..=6).map(call).collect::<Vec<_>>());
            rank.kinds[0].is_broadcast = true;
            rank.kinds[0].group_size = Some(2);
            rank
        };
        let all = [of(0, 500, 0), of(1, 6, -50)];
        let (moved, matched) = found(&all);
        assert_eq!(moved, [0, 50 * US]);
        let wait = matched.device("0").and_then(|waits| waits.most().cloned()).unwrap_or_default();
        assert_eq!((wait.last.as_str(), wait.ns), ("1", 6 * 494 * US));
        let refs: Vec<&RankCalls> = all.iter().collect();
        let known = Known::of(&refs);
        assert_eq!(
            crate::senders::for_senders(&known.on_one_clock(&refs), &known.clocks).as_deref(),
            Some(
                "In broadcasts between two ranks, as between the stages of a pipeline, one waits until the other sends: rank 0 for rank 1 \
                 (2.96 ms)."
            )
        );
        // Data that take long may hold the sender, too.
        let all = [of(0, 500, 0), of(1, 200, -50)];
        let refs: Vec<&RankCalls> = all.iter().collect();
        assert_eq!(crate::senders::for_senders(&refs, &Clocks::default()), None);
    }
}
