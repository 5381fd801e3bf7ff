//! Equal collectives: what the slow ones take more than the fast ones.
//!
//! A kernel of a collective runs until every rank has joined. Calls with the same sizes, number format and group move the same
//! bytes, so what one takes above the fast ones is mostly waiting for a rank that comes later. It is an estimate: other traffic on the
//! link, and kernels that run at the same time, slow a collective, too.

use crate::intervals::{Interval, union};

/// Fewer equal calls do not show how long such a call takes without waiting.
const LEAST_CALLS: usize = 3;
/// Of the equal calls, the one that counts as not waiting: one in ten is faster, so that of fewer than eleven it is the fastest.
const FAST_SHARE: usize = 10;

/// Equal calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equal<K> {
    /// What they have in common.
    pub key: K,
    /// How many there are: three or more.
    pub n: usize,
    /// What they take.
    pub total_ns: i64,
    /// The shortest and the longest.
    pub shortest_ns: i64,
    #[allow(missing_docs, reason = "said above")]
    pub longest_ns: i64,
    /// What they take above the fast ones.
    pub excess_ns: i64,
    /// When that is, as if each waited first.
    pub waits: Vec<Interval>,
}

/// The groups of three equal calls or more, in the order of their keys.
pub fn equal<K: Ord + Copy>(calls: impl Iterator<Item = (K, Interval)>) -> Vec<Equal<K>> {
    let mut all: Vec<(K, Interval)> = calls.collect();
    trace::sort(&mut all);
    let groups = all.chunk_by(|(a, _), (b, _)| a == b).filter_map(|calls| {
        let (key, _) = *calls.first()?;
        let calls = || calls.iter().map(|(_, call)| *call);
        let mut times: Vec<i64> = calls().map(|(start, end)| end - start).collect();
        trace::sort(&mut times);
        let fast_ns = *times.get(times.len() / FAST_SHARE)?;
        let sum = |times: &mut dyn Iterator<Item = i64>| times.fold(0, i64::saturating_add);
        let waits = calls().map(|(start, end)| (start, end - fast_ns));
        let group = Equal {
            key,
            n: times.len(),
            total_ns: sum(&mut times.iter().copied()),
            shortest_ns: *times.first()?,
            longest_ns: *times.last()?,
            excess_ns: sum(&mut times.iter().map(|ns| (ns - fast_ns).max(0))),
            waits: union(waits.filter(|(start, end)| start < end).collect()),
        };
        (group.n >= LEAST_CALLS).then_some(group)
    });
    groups.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_equal_calls_take_above_the_fast_ones_comes_first() {
        let of = |calls: &[Interval]| equal(calls.iter().map(|call| ("all", *call)));
        let found = of(&[(0, 10), (20, 50), (60, 72)]);
        assert_eq!((found[0].n, found[0].total_ns, found[0].excess_ns), (3, 52, 22));
        assert_eq!((found[0].shortest_ns, found[0].longest_ns), (10, 30));
        assert_eq!(found[0].waits, [(20, 40), (60, 62)]);
        assert!(of(&[(0, 10), (20, 50)]).is_empty(), "two calls");
        // (Of many calls a tenth may be faster.)
        let many: Vec<Interval> =
            (0..20).map(|n| (n * 100, n * 100 + if n < 2 { 1 } else { 50 })).collect();
        assert_eq!(of(&many)[0].excess_ns, 0);
    }
}
