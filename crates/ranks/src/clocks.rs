//! By how much the clocks of ranks differ.
//!
//! The clocks of two machines differ by what their synchronisation leaves: 50 to 210 us on three runs of two machines with eight H200
//! each, and constant to 10 us over a recording. Ranks leave a collective together, so the differences of the ends tell that constant:
//! their median. It counts where the ends agree without it.
//!
//! Ranks whose collectives end together as they are have one clock, and stay as they are.

use std::borrow::Cow;

use report::units::time;
use timeline::intervals::Interval;

use crate::calls::{Kind, RankCalls, moved};
use crate::groups::Groups;
use crate::same_calls::{APART_BY_NAME_NS, LEAST_APART_NS, LEAST_TOGETHER_PCT, matches};

/// A larger difference is none of synchronised clocks.
const MOST_NS: i64 = 10_000_000;
/// Fewer calls show no constant.
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
        let keys = keys(ranks);
        let mut others: Vec<Vec<(usize, &Kind)>> = Vec::new();
        for (is_broadcast, key) in keys {
            let mut of_ranks = of_key(ranks, key);
            if !is_broadcast {
                for found in matches(&of_ranks, groups, Some(0)) {
                    clocks.join(&found.members, 0);
                    of_ranks.retain(|(at, _)| !found.members.contains(at));
                }
            }
            others.push(of_ranks);
        }
        for of_ranks in others {
            let is_broadcast = of_ranks.iter().any(|(_, kind)| kind.is_broadcast);
            let mut left = of_ranks;
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

    /// The ranks on one clock.
    pub(crate) fn applied<'a>(&self, ranks: &[&'a RankCalls]) -> Vec<Cow<'a, RankCalls>> {
        let one = |(at, rank): (usize, &&'a RankCalls)| match self.by_ns(at) {
            0 => Cow::Borrowed(*rank),
            by => Cow::Owned(rank.moved(by)),
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
                "Clocks that differ from those of the other ranks by a constant are corrected: {}. With that their collectives end together.",
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
        let mut by: Vec<(usize, i64)> = Vec::new();
        for host in &hosts {
            let ns = of_host(host).unwrap_or_default().saturating_sub(zero);
            by.extend(host.iter().map(|one| (one.2, ns)));
        }
        let most_apart = if is_broadcast { LEAST_APART_NS } else { APART_BY_NAME_NS };
        let by_of = |at: usize| by.iter().find(|one| one.0 == at).map_or(0, |one| one.1);
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
        let is_plausible = by.iter().all(|(_, ns)| ns.saturating_abs() <= MOST_NS);
        let n_agree = (0..n).filter(agrees).count();
        if !is_plausible || n_agree * 100 < n * LEAST_TOGETHER_PCT {
            return false;
        }
        for (at, ns) in by {
            self.join(&[first, at], ns);
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

/// The kinds of all ranks, each once; broadcasts last: the others show whether the clock is one.
pub(crate) fn keys<'a>(ranks: &[&'a RankCalls]) -> Vec<(bool, &'a str)> {
    let kinds = ranks.iter().flat_map(|rank| &rank.kinds);
    let mut keys: Vec<(bool, &str)> =
        kinds.map(|kind| (kind.is_broadcast, kind.key.as_str())).collect();
    trace::sort(&mut keys);
    keys.dedup();
    keys
}

/// The calls of one kind, by rank.
pub(crate) fn of_key<'a>(ranks: &[&'a RankCalls], key: &str) -> Vec<(usize, &'a Kind)> {
    let of_rank = |(at, rank): (usize, &&'a RankCalls)| {
        Some((at, rank.kinds.iter().find(|kind| kind.key == key)?))
    };
    ranks.iter().enumerate().filter_map(of_rank).collect()
}
