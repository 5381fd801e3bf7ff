//! Which calls of several ranks are one collective.
//!
//! A kernel of a collective runs until every rank of its group has joined. The devices of a group call the same collectives in the
//! same order, so the nth call of a kind on one device belongs to the nth of that kind on each of the others. Until the last one
//! starts, a kernel waits; what it takes after that is transfer (`kineto::record_param_comms` names kind, group and ranks).
//!
//! Gates: all ranks of the group are in the file, each called the kind equally often, and the kernels of a match run at the same time
//! at some moment and end together: that shows that the matches are right, and that the devices have one clock.
//!
//! Of an engine's own kernels, and of kernels in graphs, nothing but the name is recorded. Those of one name that all ranks run equally often
//! are matched in the same way; they have to end together by a closer measure.
//!
//! In a broadcast a rank waits only for those through which it gets the data. One that ends together with the last to join waited for
//! it; this counts where collectives of the other kinds have shown that the clock is one. Send and receive tell nothing.

use timeline::intervals::Interval;

use crate::calls::Kind;

/// A broadcast that takes so many times as long as on the rank that joins last waited for most of it.
const WAITED: i64 = 2;
/// Of the matches of a kind so many percent may not run at the same time: clocks differ a little. Above that none of it counts.
const LEAST_TOGETHER_PCT: usize = 90;

/// The kernels of a match end together: at most so far apart, in ns (measured on four MI300: up to 21 us), or this part of the
/// longest waiting. Where they do not, their clocks may differ, and who comes last is not known.
const LEAST_APART_NS: i64 = 50_000;
/// The same of kernels of which only the name is recorded, however long they wait (measured on four GB300: up to 1.9 us).
const APART_BY_NAME_NS: i64 = 10_000;
const APART_PART: i64 = 5;

/// The matches of one kind, of `n_ranks` in all: of each call when its kernel runs on every rank. Empty where a gate is shut.
pub(crate) fn matches(of_ranks: &[(usize, &Kind)], n_ranks: usize) -> Vec<Vec<(usize, Interval)>> {
    let Some((_, Kind { group_size, calls, .. })) = of_ranks.first() else { return Vec::new() };
    let n = calls.len();
    let group_size = match group_size {
        Some(n) => usize::try_from(*n).unwrap_or_default(),
        None => n_ranks,
    };
    let is_whole = of_ranks.len() == group_size && group_size > 1;
    let by_name = of_ranks.iter().any(|(_, kind)| kind.group_size.is_none());
    if !is_whole || of_ranks.iter().any(|(_, kind)| kind.calls.len() != n) {
        return Vec::new();
    }
    let of_all = |nth: usize| -> Vec<(usize, Interval)> {
        of_ranks.iter().map(|(at, kind)| (*at, kind.calls[nth])).collect()
    };
    let run_together = |of_all: &Vec<(usize, Interval)>| {
        let starts = || of_all.iter().map(|(_, call)| call.0);
        let ends = || of_all.iter().map(|(_, call)| call.1);
        let (first_start, last_start) = (starts().min(), starts().max());
        let (first_end, last_end) = (ends().min(), ends().max());
        let (waiting, apart) = (last_start.zip(first_start), last_end.zip(first_end));
        let difference = |of: Option<(i64, i64)>| of.map_or(0, |(a, b)| a.saturating_sub(b));
        let most_apart = match by_name {
            true => APART_BY_NAME_NS,
            false => LEAST_APART_NS.max(difference(waiting) / APART_PART),
        };
        last_start <= first_end && difference(apart) <= most_apart
    };
    if of_ranks.iter().any(|(_, kind)| kind.is_broadcast) {
        return (0..n).map(of_all).filter_map(those_that_waited).collect();
    }
    let together: Vec<_> = (0..n).map(of_all).filter(run_together).collect();
    if together.len() * 100 < n * LEAST_TOGETHER_PCT { Vec::new() } else { together }
}

/// Of a broadcast, the rank that joins last and those that waited for it; `None` where nobody did.
fn those_that_waited(of_all: Vec<(usize, Interval)>) -> Option<Vec<(usize, Interval)>> {
    let (last, (joined, end)) =
        of_all.iter().copied().max_by_key(|(at, (start, _))| (*start, *at))?;
    let transfer = end.saturating_sub(joined);
    let waited = |(own_start, own_end): Interval| {
        let own = own_end.saturating_sub(own_start);
        own_end >= joined
            && own_end.abs_diff(end) <= LEAST_APART_NS.unsigned_abs()
            && own >= transfer.saturating_mul(WAITED)
    };
    let own: Vec<_> =
        of_all.into_iter().filter(|(at, times)| *at == last || waited(*times)).collect();
    (own.len() > 1).then_some(own)
}
