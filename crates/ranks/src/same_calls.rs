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
//! it; this counts where collectives of the other kinds have shown that the clock is one. Send and receive tell nothing, except where
//! the kernels of all ranks fit, as those of an all-to-all do, which NCCL runs under the same name.
//!
//! Where the group is sure and the kernels of nearly all calls fit roughly, those calls count whose wait is long enough to be known
//! ([`roughly`]). The others are counted as calls of which the wait is not known.

use timeline::intervals::Interval;

use crate::calls::Kind;
use crate::groups::{Group, Groups};

/// What the names of NCCL's and RCCL's kernels begin with.
const NCCL: &str = "nccl";
/// Fewer calls may end together by chance, where nothing tells which ranks are a group: calls that do not belong together end within
/// [`APART_BY_NAME_NS`] of each other about once in 50 times where 1 ms lies between two calls, so four of them once in some million.
pub(crate) const LEAST_AMONG: usize = 4;

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

/// Kernels of one call may miss each other by so many ns, or end so far apart, where the call only has to be recognized and gives no wait:
/// short ones of four V100 on one machine miss each other by up to 48 us and end up to 137 us apart (PyTorch 2.1, 2023).
pub(crate) const ROUGHLY_NS: i64 = 200_000;
/// Fewer calls may fit roughly by chance: calls that do not belong together fit about four times in ten where 1 ms lies between two calls,
/// so eight of them once in 1,500 times.
const LEAST_ROUGHLY: usize = 8;
/// A part of the names of NCCL's kernels that send and receive, between two ranks or in an all-to-all.
const SEND_RECV: &str = "SendRecv";

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
    /// By how much the ends of its calls are apart at most, in ns, where they fit roughly ([`roughly`]); none of other calls.
    pub(crate) rough_ns: i64,
    /// Calls of which the wait is not known.
    pub(crate) unknown: Unknown,
}

/// Calls of which the wait is not known, because their kernels do not run at one time or end too far apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// How many.
    pub(crate) n: usize,
    /// What a rank waits in them at most, in ns: from the first start to the last, and what their ends are apart.
    pub(crate) most_ns: i64,
}

impl Kind {
    /// Whether its kernels send and receive, and may be those of pairs.
    pub(crate) fn is_send_recv(&self) -> bool {
        self.group_size.is_none() && self.key.contains(SEND_RECV)
    }
}

impl Matches {
    /// How far the kernels of each call end apart, in ns.
    pub(crate) fn ends_apart_ns(&self) -> impl Iterator<Item = i64> {
        self.calls.iter().map(|of_all| Fit::of(of_all).apart_ns)
    }
}

/// The matches of one kind, by group. Empty where a gate is shut. `slack_ns`: of ranks in files of their own,
/// of which some may be missing, what their clocks may differ by ([`Clocks::slack_ns`](crate::clocks::Clocks::slack_ns)).
/// `may_fit_roughly`: also those that show no clock.
pub(crate) fn matches(
    of_ranks: &[(usize, &Kind)],
    groups: &Groups,
    slack_ns: Option<i64>,
    may_fit_roughly: bool,
) -> Vec<Matches> {
    let of_files = slack_ns.is_some();
    let Some((_, first)) = of_ranks.first() else { return Vec::new() };
    let Kind { group_size, is_broadcast, .. } = first;
    let of_calls = |own: &[(usize, &Kind)], size, calls: Vec<Vec<(usize, Interval)>>, is_rough| {
        let apart = calls.iter().map(|of_all| Fit::of(of_all).apart_ns);
        let rough_ns = apart.max().filter(|_| is_rough).unwrap_or_default();
        let unknown = if *is_broadcast { Unknown::default() } else { unknown(own, &calls) };
        let members = own.iter().map(|(at, _)| *at).collect();
        let n_missing = usize::saturating_sub(size, own.len());
        Matches { members, n_missing, is_broadcast: *is_broadcast, calls, rough_ns, unknown }
    };
    let matched = |own: &[(usize, &Kind)], size: usize, most_apart: MostApart| {
        let calls = together(own, most_apart, slack_ns.unwrap_or_default());
        let is_rough = calls.is_empty() && may_fit_roughly && most_apart == MostApart::Recorded;
        let calls = if is_rough { roughly(own, true) } else { Some(calls) };
        let found = calls.filter(|calls| is_rough || !calls.is_empty());
        found.map(|calls| of_calls(own, size, calls, is_rough))
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
    let mut left: Vec<(usize, &Kind)> =
        if first.is_send_recv() { Vec::new() } else { of_ranks.to_vec() };
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
    // Where no groups are listed, or pairs may send and receive: those calls in which all wait for one rank.
    if let [Group { members, size }] = &groups.all[..]
        && found.is_empty()
        && may_fit_roughly
        && is_nccl
        && of_ranks.len() == members.len()
    {
        found.extend(roughly(of_ranks, false).map(|calls| of_calls(of_ranks, *size, calls, true)));
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
    if of_ranks.iter().any(|(_, kind)| kind.is_broadcast) {
        return (0..n).map(of_all).filter_map(|all| those_that_waited(all, slack_ns)).collect();
    }
    let run_together = |of_all: &Vec<(usize, Interval)>| {
        let fit = Fit::of(of_all);
        let most_apart = match most_apart {
            MostApart::ByName => APART_BY_NAME_NS,
            MostApart::Recorded => {
                LEAST_APART_NS.saturating_add(slack_ns).max(fit.waiting_ns / APART_PART)
            }
        };
        fit.missed_ns <= 0 && fit.apart_ns <= most_apart
    };
    let together: Vec<_> = (0..n).map(of_all).filter(run_together).collect();
    if together.len() * 100 < n * LEAST_TOGETHER_PCT { Vec::new() } else { together }
}

/// The calls whose wait is known, where the kernels of nearly all calls fit roughly; `None` where those are too few.
///
/// A rank's wait is known where its call waits five times as long as the ends of the kernels are apart: clocks that differ, and
/// kernels that are done at different times, then change the wait by a fifth at most. Of an all-to-all and of kernels that send and
/// receive, overlap shows that they are one call, because each rank leaves when it has its own data.
///
/// `is_sure`: whether these ranks are known to be one group. If not, only a call in which all wait for one rank shows it, because a group
/// without that rank would leave before it joins.
fn roughly(of_ranks: &[(usize, &Kind)], is_sure: bool) -> Option<Vec<Vec<(usize, Interval)>>> {
    let (_, first) = of_ranks.first()?;
    let n = first.calls.len();
    if n < LEAST_ROUGHLY
        || first.is_broadcast
        || of_ranks.len() < 2
        || of_ranks.iter().any(|(_, kind)| kind.calls.len() != n)
    {
        return None;
    }
    let is_each_its_own = first.is_send_recv() || first.key.contains("all_to_all");
    let is_one = |fit: &Fit| {
        let most_apart = ROUGHLY_NS.max(fit.waiting_ns.max(fit.shortest_ns) / APART_PART);
        fit.missed_ns <= 0 && is_each_its_own
            || fit.missed_ns <= ROUGHLY_NS && fit.apart_ns <= most_apart
    };
    let mut n_fit = 0;
    let mut known = Vec::new();
    for of_all in (0..n).map(|nth| of_call(of_ranks, nth)) {
        let fit = Fit::of(&of_all);
        n_fit += usize::from(is_one(&fit));
        let waiting_ns = if is_sure { fit.waiting_ns } else { fit.alone_ns };
        if fit.missed_ns <= 0 && fit.apart_ns.saturating_mul(APART_PART) <= waiting_ns {
            known.push(of_all);
        }
    }
    (n_fit * 100 >= n * LEAST_TOGETHER_PCT).then_some(known)
}

/// The calls of these ranks that are not in `known`.
fn unknown(of_ranks: &[(usize, &Kind)], known: &[Vec<(usize, Interval)>]) -> Unknown {
    let n = of_ranks.first().map_or(0, |(_, kind)| kind.calls.len());
    let mut left = Unknown::default();
    let mut known = known.iter().peekable();
    for of_all in (0..n).map(|nth| of_call(of_ranks, nth)) {
        // (Both are in the order of the calls.)
        if known.next_if_eq(&&of_all).is_none() {
            let fit = Fit::of(&of_all);
            left.n += 1;
            left.most_ns = left.most_ns.saturating_add(fit.waiting_ns).saturating_add(fit.apart_ns);
        }
    }
    left
}

/// How the kernels of a call fit together, in ns.
struct Fit {
    /// From the first end to the last start: none or less where all run at one moment.
    missed_ns: i64,
    /// From the first start to the last.
    waiting_ns: i64,
    /// From the next to last start to the last.
    alone_ns: i64,
    /// From the first end to the last.
    apart_ns: i64,
    /// The shortest kernel.
    shortest_ns: i64,
}

impl Fit {
    fn of(of_all: &[(usize, Interval)]) -> Self {
        let (mut first_start, mut before, mut last_start) = (i64::MAX, i64::MIN, i64::MIN);
        let (mut first_end, mut last_end, mut shortest_ns) = (i64::MAX, i64::MIN, i64::MAX);
        for (_, (from, to)) in of_all {
            first_start = first_start.min(*from);
            before = before.max(last_start.min(*from));
            last_start = last_start.max(*from);
            first_end = first_end.min(*to);
            last_end = last_end.max(*to);
            shortest_ns = shortest_ns.min(to.saturating_sub(*from));
        }
        Self {
            missed_ns: last_start.saturating_sub(first_end),
            waiting_ns: last_start.saturating_sub(first_start),
            alone_ns: last_start.saturating_sub(before),
            apart_ns: last_end.saturating_sub(first_end),
            shortest_ns,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::RankCalls;
    use crate::known::Known;

    const US: i64 = 1_000;
    const SEND: &str = "ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)";
    const SUM: &str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)";

    /// A rank with a file of its own, without a list of groups: its calls, in us.
    fn rank(rank: i64, name: &str, calls: &[Interval]) -> RankCalls {
        let calls: Vec<Interval> = calls.iter().map(|(from, to)| (from * US, to * US)).collect();
        let kind = Kind { key: name.to_owned(), group_size: None, is_broadcast: false, calls };
        RankCalls {
            name: rank.to_string(),
            rank,
            kinds: vec![kind],
            shift_ns: Some(0),
            ..RankCalls::default()
        }
    }

    fn known(ranks: &[RankCalls]) -> Known {
        Known::of(&ranks.iter().collect::<Vec<_>>())
    }

    /// Ten calls every 100 ms. In every second one rank 2 joins 18 ms after the others, of which the ends are up to `apart` us apart.
    fn long_and_short(name: &str, apart: i64) -> Vec<RankCalls> {
        let of = |own: i64| {
            let call = |nth: i64| {
                // (No constant makes them end together.)
                let place = if nth / 2 % 2 == 0 { own } else { 2 - own };
                let (at, spread) = (nth * 100_000, place * apart / 2);
                match nth % 2 {
                    0 => (at + if own == 2 { 18_000 } else { own }, at + 30_000 + spread),
                    // (It ends before the last one starts, by as much as the clocks differ.)
                    _ => (at + spread, at + 60 + spread),
                }
            };
            rank(own, name, &(0..10).map(call).collect::<Vec<_>>())
        };
        (0..3).map(of).collect()
    }

    #[test]
    fn a_wait_counts_where_it_is_long_and_nearly_all_calls_fit_roughly() {
        for name in [SEND, SUM] {
            let found = known(&long_and_short(name, 120));
            let [Matches { members, calls, .. }] = &found.matches[..] else { panic!("{name}") };
            assert_eq!((members.len(), calls.len()), (3, 5), "{name}: rank 2 is late in five");
            assert_eq!(found.matches[0].rough_ns, 120 * US, "{name}");
            assert!(calls.iter().all(|of_all| of_all[2].1.0 - of_all[0].1.0 == 18_000 * US));
            assert_eq!(found.unknown, Unknown { n: 5, most_ns: 5 * 240 * US }, "{name}");
            // Nothing shows one clock, and none is moved.
            assert!(!found.clocks.are_one(&[0, 1, 2]), "{name}");
            assert_eq!(found.clocks.by_ns(2), 0);
        }
    }

    #[test]
    fn calls_that_fit_not_even_roughly_are_refused() {
        // Short ones miss each other by more than clocks of one machine differ.
        assert!(known(&long_and_short(SUM, 600)).matches.is_empty());
        // One call of ten may be an exception, two may not.
        let mut ranks = long_and_short(SUM, 120);
        ranks[1].kinds[0].calls[1] = (110_000 * US, 110_060 * US);
        assert_eq!(known(&ranks).matches.len(), 1);
        ranks[1].kinds[0].calls[3] = (310_000 * US, 310_060 * US);
        assert!(known(&ranks).matches.is_empty());
        // Seven calls.
        let mut few = long_and_short(SUM, 120);
        few.iter_mut().for_each(|rank| rank.kinds[0].calls.truncate(7));
        assert!(known(&few).matches.is_empty());
    }

    #[test]
    fn ranks_that_may_be_of_two_groups_wait_only_where_all_wait_for_one() {
        // In each pair one rank is late, at nearly the same time.
        let of = |own: i64| {
            let call = |nth: i64| {
                let at = nth * 100_000;
                (at + own % 2 * 18_000 + own * 20, at + 30_000 + own * 40)
            };
            rank(own, SEND, &(0..10).map(call).collect::<Vec<_>>())
        };
        let ranks: Vec<RankCalls> = (0..4).map(of).collect();
        assert!(known(&ranks).matches.is_empty());
    }

    #[test]
    fn of_kernels_that_send_and_receive_overlap_is_enough() {
        // One all-to-all ends 9 ms later on a rank.
        let mut ranks = long_and_short(SEND, 120);
        for nth in [2, 4] {
            ranks[0].kinds[0].calls[nth].1 += 9_000 * US;
        }
        let found = known(&ranks);
        assert_eq!(found.matches.iter().map(|one| one.calls.len()).sum::<usize>(), 3);
        assert_eq!(found.unknown.n, 7);
    }
}
