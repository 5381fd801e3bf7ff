//! Results of several calls that are in use at once, because a name keeps the last one until the next one is bound to it.

use super::Class;
use super::falls::{Held, Levels, Lives};
use crate::site::Sites;

/// Calls whose results are looked for.
const MOST_CALLS: usize = 8;

/// Equal results of several calls at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rebound {
    /// Calls.
    pub(crate) calls: usize,
    /// The call site that frees the oldest of them.
    pub(crate) freed_by: String,
    /// The peak where each is freed before the next call allocates, and the event that it comes before.
    pub(crate) rest: (i64, usize),
    /// The call site that holds most of that peak but for these, what it holds there, and the peak without it, too.
    pub(crate) left: Option<(String, i64, i64)>,
}

impl Lives {
    /// Looks for calls with equal results among what is in use at a level. `is_own`: what is looked at.
    #[inline(never)]
    pub(super) fn rebound(
        &self,
        levels: Levels<'_>,
        at: usize,
        is_own: &dyn Fn(&Held) -> bool,
        sites: &Sites,
    ) -> Option<Rebound> {
        let is_there = |held: &&Held| held.from <= at && at <= held.to && is_own(held);
        let own = self.0.iter().enumerate().filter(|(_, held)| is_there(held));
        // (A type that is sorted elsewhere, too: each costs 2 kB.)
        let mut own: Vec<(u64, usize)> = own.map(|(n, held)| (held.from as u64, n)).collect();
        own.sort_unstable();
        let own: Vec<&Held> = own.iter().filter_map(|(_, n)| self.0.get(*n)).collect();
        let is_fit =
            |calls: &usize| own.len().is_multiple_of(*calls) && self.are_calls(&own, *calls, sites);
        let calls = (2..=MOST_CALLS.min(own.len())).find(is_fit)?;
        let call = own.get(..own.len() / calls)?;
        let freed_by = sites.site(call.last()?.freed_by);
        if !sites.is_line(freed_by) {
            return None;
        }
        // Of what a call makes, a block that it makes once tells where the next call begins.
        // (Loops of a program, as for warming up, call from several lines.)
        let is_same =
            |a: &Held, b: &Held| a.size == b.size && sites.site(a.stack) == sites.site(b.stack);
        let kind = |held: &Held| (held.size as u64, sites.site(held.stack));
        let mut kinds: Vec<(u64, usize)> = call.iter().map(|held| kind(held)).collect();
        kinds.sort_unstable();
        let n_like = |held: &Held| {
            let (from, key) = (kinds.partition_point(|it| *it < kind(held)), kind(held));
            kinds.get(from..).unwrap_or_default().iter().take_while(|it| **it == key).count()
        };
        let leader = call.iter().find(|held| n_like(held) == 1)?;
        let mut begins: Vec<usize> =
            self.0.iter().filter(|held| is_same(held, leader)).map(|held| held.from).collect();
        begins.sort_unstable();
        // What each call makes from there on.
        let made = call.iter().filter(|it| it.from >= leader.from).map(|it| kind(it));
        let mut made: Vec<(u64, usize)> = made.collect();
        made.sort_unstable();
        // (What the binding of the next result frees, too, is of the old one: it waits for the last call that begins before.)
        let is_result = |held: &Held| {
            held.from > 0 && held.class == Class::Unknown && sites.site(held.freed_by) == freed_by
        };
        let kept = |_: usize, held: &Held| {
            let is_of_call = is_own(held) && made.binary_search(&kind(held)).is_ok();
            let next = match is_of_call {
                true => begins.partition_point(|from| *from <= held.from),
                false if is_result(held) => {
                    begins.partition_point(|from| *from < held.to).checked_sub(1)?
                }
                false => return None,
            };
            let next = begins.get(next).copied()?;
            let is_left = held.from < next && next <= held.to;
            is_left.then_some((next, held.to, held.size))
        };
        let rest = self.peak_with(levels, &kept);
        let most = self.most_at(rest.1, &|held| !is_own(held) && !held.class.is_kept(), sites);
        let left = most.map(|(site, bytes)| {
            let both = |n: usize, held: &Held| match sites.site(held.stack) == site {
                true => Some(held.whole()),
                false => kept(n, held),
            };
            (sites.name(site).to_owned(), bytes, self.peak_with(levels, &both).0)
        });
        Some(Rebound { calls, freed_by: sites.name(freed_by).to_owned(), rest, left })
    }

    /// The graph of the call before the recording that is in use at a level with the one of the recorded call.
    #[inline(never)]
    pub(super) fn older_graph(
        &self,
        levels: Levels<'_>,
        at: usize,
        sites: &Sites,
    ) -> Option<Rebound> {
        let is_older = |held: &Held| held.from == 0 && held.to != usize::MAX;
        let older = self.sum(at, &|held| held.is_unused && is_older(held));
        let newer = self.sum(at, &|held| held.is_unused && held.to == usize::MAX);
        if older == 0 || newer < older / 2 {
            return None;
        }
        let mut sums = vec![0_i64; sites.len()];
        for held in self.0.iter().filter(|held| is_older(held)) {
            if let Some(sum) = sums.get_mut(sites.site(held.freed_by)) {
                *sum = sum.saturating_add(held.size);
            }
        }
        let most = sums.iter().enumerate().max_by_key(|(_, sum)| **sum)?.0;
        sites.is_line(most).then(|| Rebound {
            calls: 2,
            freed_by: sites.name(most).to_owned(),
            rest: self.peak_without(levels, &is_older),
            left: None,
        })
    }

    /// Whether blocks, in the order of their allocations, are those of some calls: each call has the same sizes, and is freed behind the
    /// call before and behind an allocation of the call after next.
    fn are_calls(&self, own: &[&Held], calls: usize, sites: &Sites) -> bool {
        let n = own.len() / calls;
        let mut pairs = own.chunks(n).zip(own.chunks(n).skip(1));
        pairs.all(|(older, newer)| {
            let has_sizes = older.iter().zip(newer).all(|(a, b)| a.size == b.size);
            let last = older.iter().map(|held| held.to).max().unwrap_or_default();
            let first = newer.iter().map(|held| held.to).min().unwrap_or_default();
            let follows = |held: &Held| {
                older.first().is_some_and(|it| {
                    it.size == held.size && sites.site(it.stack) == sites.site(held.stack)
                }) && (last..first).contains(&held.from)
            };
            has_sizes && last < first && self.0.iter().any(follows)
        })
    }

    /// The call site that holds most at a level of what is asked for.
    fn most_at(
        &self,
        at: usize,
        is_in: &dyn Fn(&Held) -> bool,
        sites: &Sites,
    ) -> Option<(usize, i64)> {
        let mut sums = vec![0_i64; sites.len()];
        for held in self.0.iter().filter(|held| held.from <= at && at <= held.to && is_in(held)) {
            if let Some(sum) = sums.get_mut(sites.site(held.stack)) {
                *sum = sum.saturating_add(held.size);
            }
        }
        let named =
            sums.into_iter().enumerate().filter(|(site, sum)| *sum > 0 && sites.is_line(*site));
        named.max_by_key(|(_, sum)| *sum)
    }
}
