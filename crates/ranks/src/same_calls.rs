//! Which calls of several ranks are one collective.
//!
//! A kernel of a collective runs until every rank of its group has joined. The devices of a group call the same collectives in the
//! same order, so the nth call of a kind on one device belongs to the nth of that kind on each of the others. Until the last one
//! starts, a kernel waits; what it takes after that is transfer (`kineto::record_param_comms` names kind, group and ranks).
//!
//! Gates: all ranks of the group are in the file (of files of their own, those that are there), each called the kind equally often, and
//! the kernels of a match run at the same time at some moment and end together: that shows that the matches are right, and that the
//! devices have one clock.
//!
//! Of an engine's own kernels, and of kernels in graphs, nothing but the name is recorded. Those of one name that all ranks run equally often
//! are matched in the same way; they have to end together by a closer measure. If all do not, the ranks of each process group are tried.
//!
//! In a broadcast a rank waits only for those through which it gets the data. One that ends together with the last to join waited for
//! it; this counts where collectives of the other kinds have shown that the clock is one. Send and receive tell nothing.

use timeline::intervals::Interval;

use crate::calls::Kind;
use crate::groups::{Group, Groups};

/// What the names of NCCL's and RCCL's kernels begin with.
const NCCL: &str = "nccl";
/// Fewer calls may end together by chance, where nothing tells which ranks are a group: calls that do not belong together end within
/// [`APART_BY_NAME_NS`] of each other about once in 50 times where 1 ms lies between two calls, so four of them once in some million.
const LEAST_AMONG: usize = 4;

/// A broadcast that takes so many times as long as on the rank that joins last waited for most of it.
const WAITED: i64 = 2;
/// Of the matches of a kind so many percent may not run at the same time: clocks differ a little. Above that none of it counts.
pub(crate) const LEAST_TOGETHER_PCT: usize = 90;

/// The kernels of a match end together: at most so far apart, in ns, or this part of the longest waiting. Where they do not, their clocks may
/// differ, and who comes last is not known. The limit is more than twice the most that was measured where the clock is one (four MI300: up to
/// 21 us), and no more than the least difference between two machines' clocks that was measured (three pairs: 48 us, 83 us and 209 us), which
/// would pass for a spread otherwise. It cannot follow from the spread of the ends themselves: the constant is part of it.
pub(crate) const LEAST_APART_NS: i64 = 50_000;
/// The same of kernels of which only the name is recorded, however long they wait (measured on four GB300: up to 1.9 us).
pub(crate) const APART_BY_NAME_NS: i64 = 10_000;
const APART_PART: i64 = 5;

/// Calls of a group that were matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matches {
    /// The places of its ranks.
    pub(crate) members: Vec<usize>,
    /// Ranks of it that have no file: one of those may join later than all.
    pub(crate) n_missing: usize,
    /// Whether a rank may leave before all have joined.
    pub(crate) is_broadcast: bool,
    /// Of each call when its kernel runs on every rank.
    pub(crate) calls: Vec<Vec<(usize, Interval)>>,
}

/// The matches of one kind, by group. Empty where a gate is shut. `slack_ns`: of ranks in files of their own,
/// of which some may be missing, what their clocks may differ by ([`Clocks::slack_ns`](crate::clocks::Clocks::slack_ns)).
pub(crate) fn matches(
    of_ranks: &[(usize, &Kind)],
    groups: &Groups,
    slack_ns: Option<i64>,
) -> Vec<Matches> {
    let of_files = slack_ns.is_some();
    let Some((_, Kind { group_size, is_broadcast, .. })) = of_ranks.first() else {
        return Vec::new();
    };
    let matched = |own: &[(usize, &Kind)], size: usize, most_apart: MostApart| {
        let calls = together(own, most_apart, slack_ns.unwrap_or_default());
        let members = own.iter().map(|(at, _)| *at).collect();
        let n_missing = size.saturating_sub(own.len());
        let is_broadcast = *is_broadcast;
        (!calls.is_empty()).then_some(Matches { members, n_missing, is_broadcast, calls })
    };
    if of_ranks.iter().all(|(_, kind)| kind.group_size.is_some()) {
        let size = group_size.and_then(|n| usize::try_from(n).ok()).unwrap_or_default();
        let is_whole = of_ranks.len() == size || of_files && of_ranks.len() < size;
        return matched(of_ranks, size, MostApart::Recorded)
            .filter(|_| is_whole)
            .into_iter()
            .collect();
    }
    // (Of NCCL, where all ranks are the only group, the name says as much as a record.)
    let is_nccl = of_ranks.iter().all(|(_, kind)| kind.key.starts_with(NCCL));
    let recorded = groups.is_one() && is_nccl;
    let most_apart = if recorded { MostApart::Recorded } else { MostApart::ByName };
    let mut left: Vec<(usize, &Kind)> = of_ranks.to_vec();
    let mut found = Vec::new();
    for Group { members, size } in &groups.all {
        let own = left.iter().filter(|(at, _)| members.contains(at));
        let own: Vec<(usize, &Kind)> = own.copied().collect();
        if own.len() == members.len()
            && let Some(one) = matched(&own, *size, most_apart)
        {
            left.retain(|(at, _)| !members.contains(at));
            found.push(one);
        }
    }
    // Without a list of groups: those that end together with the first.
    while of_files && !groups.is_known && left.len() > 1 {
        let first = left.remove(0);
        let with = left.iter().filter(|one| {
            one.1.calls.len() >= LEAST_AMONG && !together(&[first, **one], most_apart, 0).is_empty()
        });
        let own: Vec<(usize, &Kind)> = std::iter::once(&first).chain(with).copied().collect();
        if own.len() > 1
            && let Some(one) = matched(&own, own.len(), most_apart)
        {
            left.retain(|(at, _)| !one.members.contains(at));
            found.push(one);
        }
    }
    found
}

/// How far apart the ends of a match may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MostApart {
    Recorded,
    ByName,
}

/// The calls of these ranks that run at one time and end together; empty where those are too few.
fn together(
    of_ranks: &[(usize, &Kind)],
    most_apart: MostApart,
    slack_ns: i64,
) -> Vec<Vec<(usize, Interval)>> {
    let n = of_ranks.first().map_or(0, |(_, kind)| kind.calls.len());
    if of_ranks.len() < 2 || of_ranks.iter().any(|(_, kind)| kind.calls.len() != n) {
        return Vec::new();
    }
    let of_all = |nth: usize| of_call(of_ranks, nth);
    let run_together = |of_all: &Vec<(usize, Interval)>| {
        let starts = || of_all.iter().map(|(_, call)| call.0);
        let ends = || of_all.iter().map(|(_, call)| call.1);
        let (first_start, last_start) = (starts().min(), starts().max());
        let (first_end, last_end) = (ends().min(), ends().max());
        let (waiting, apart) = (last_start.zip(first_start), last_end.zip(first_end));
        let difference = |of: Option<(i64, i64)>| of.map_or(0, |(a, b)| a.saturating_sub(b));
        let most_apart = match most_apart {
            MostApart::ByName => APART_BY_NAME_NS,
            MostApart::Recorded => {
                LEAST_APART_NS.saturating_add(slack_ns).max(difference(waiting) / APART_PART)
            }
        };
        last_start <= first_end && difference(apart) <= most_apart
    };
    if of_ranks.iter().any(|(_, kind)| kind.is_broadcast) {
        return (0..n).map(of_all).filter_map(|all| those_that_waited(all, slack_ns)).collect();
    }
    let together: Vec<_> = (0..n).map(of_all).filter(run_together).collect();
    if together.len() * 100 < n * LEAST_TOGETHER_PCT { Vec::new() } else { together }
}

/// The nth call on each of these ranks.
pub(crate) fn of_call(of_ranks: &[(usize, &Kind)], nth: usize) -> Vec<(usize, Interval)> {
    of_ranks.iter().filter_map(|(at, kind)| Some((*at, *kind.calls.get(nth)?))).collect()
}

/// Of a broadcast, the rank that joins last and those that waited for it; `None` where nobody did. Their clocks may differ by `slack_ns`.
pub(crate) fn those_that_waited(
    of_all: Vec<(usize, Interval)>,
    slack_ns: i64,
) -> Option<Vec<(usize, Interval)>> {
    let (last, (joined, end)) =
        of_all.iter().copied().max_by_key(|(at, (start, _))| (*start, *at))?;
    let transfer = end.saturating_sub(joined);
    let waited = |(own_start, own_end): Interval| {
        let own = own_end.saturating_sub(own_start);
        own_end.saturating_add(slack_ns) >= joined
            && own_end.abs_diff(end) <= LEAST_APART_NS.unsigned_abs()
            && own >= transfer.max(slack_ns).saturating_mul(WAITED)
    };
    let own: Vec<_> =
        of_all.into_iter().filter(|(at, times)| *at == last || waited(*times)).collect();
    (own.len() > 1).then_some(own)
}
