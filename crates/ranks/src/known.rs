//! What the collectives of several ranks show, found once: groups, clocks and matches.

use crate::calls::RankCalls;
use crate::clocks::{Clocks, OfKey, by_key};
use crate::groups::{Groups, MOST_RANKS};
use crate::same_calls::{Matches, Unknown, matches};

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
        let mut matches = known.matched(&known.on_one_clock(ranks));
        let mut unknown = Unknown::default();
        for found in &matches {
            unknown.n += found.unknown.n;
            unknown.most_ns = unknown.most_ns.saturating_add(found.unknown.most_ns);
        }
        matches.retain(|found| !found.calls.is_empty());
        Self { matches, unknown, ..known }
    }

    /// The ranks on one clock.
    pub(crate) fn on_one_clock<'a>(&'a self, ranks: &[&'a RankCalls]) -> Vec<&'a RankCalls> {
        let moved = |at: usize| self.moved.get(at).and_then(Option::as_ref);
        ranks.iter().enumerate().map(|(at, rank)| moved(at).unwrap_or(rank)).collect()
    }

    /// The collectives of ranks on one clock.
    fn matched(&self, ranks: &[&RankCalls]) -> Vec<Matches> {
        let of_files = ranks.iter().any(|rank| rank.shift_ns.is_some());
        let mut all: Vec<Matches> = Vec::new();
        for OfKey { is_broadcast, of_ranks } in by_key(ranks) {
            let shows_clock = all.iter().any(|found| !found.calls.is_empty());
            let slack =
                || self.clocks.slack_ns(&of_ranks.iter().map(|(at, _)| *at).collect::<Vec<_>>());
            for found in matches(&of_ranks, &self.groups, of_files.then(slack), true) {
                let is_one_clock =
                    if of_files { self.clocks.are_one(&found.members) } else { shows_clock };
                if !is_broadcast || is_one_clock {
                    all.push(found);
                }
            }
        }
        all
    }
}
