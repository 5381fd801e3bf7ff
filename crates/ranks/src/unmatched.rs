//! Broadcasts that no figure has the waits of.

use report::units::{plural, time};
use timeline::intervals::Interval;

use crate::calls::{DEEP_EP, RankCalls};
use crate::same_calls::Matches;

/// One is said of from this part of a rank's calls on, or if its kernels last for this part of the waits: a tenth, a hundredth.
const LEAST_CALLS: usize = 10;
const LEAST_TIME: i64 = 100;

/// Calls of a rank, and how long their kernels last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Calls {
    n: usize,
    ns: i64,
}

impl Calls {
    fn of<'a>(times: impl Iterator<Item = &'a Interval>) -> Self {
        times.fold(Self::default(), |sum, (from, to)| Self {
            n: sum.n + 1,
            ns: sum.ns.saturating_add(to.saturating_sub(*from)),
        })
    }
}

/// That broadcasts are not among what was matched, in a sentence; `None` where they are, or are next to nothing. `waits_ns`: the longest waits of
/// a rank.
pub(crate) fn broadcasts(
    ranks: &[&RankCalls],
    matches: &[Matches],
    waits_ns: i64,
) -> Option<String> {
    let left = |(at, rank): (usize, &&RankCalls)| {
        let recorded = rank.kinds.iter().filter(|kind| kind.is_broadcast);
        let all = Calls::of(rank.broadcasts.iter().chain(recorded.flat_map(|kind| &kind.calls)));
        let matched = matches.iter().filter(|found| found.is_broadcast);
        let matched = matched.flat_map(|found| &found.calls).flatten();
        let matched = Calls::of(matched.filter(|(of, _)| *of == at).map(|(_, times)| times));
        let left = Calls {
            n: all.n.saturating_sub(matched.n),
            ns: all.ns.saturating_sub(matched.ns).max(0),
        };
        let compared = rank.kinds.iter().filter(|kind| kind.key != DEEP_EP && !kind.is_broadcast);
        let n_compared: usize = compared.map(|kind| kind.calls.len()).sum();
        let is_much = left.n.saturating_mul(LEAST_CALLS) >= n_compared
            || left.ns.saturating_mul(LEAST_TIME) >= waits_ns;
        Some(left).filter(|left| left.n > 0 && is_much)
    };
    let Calls { n, ns } = ranks.iter().enumerate().filter_map(left).max()?;
    Some(format!(
        "Not among these collectives: up to {} of a rank, whose {} {}. Who sends may go on before the others have joined.",
        plural(n as u64, "broadcast", "broadcasts"),
        if n == 1 { "kernel lasts" } else { "kernels last" },
        time(ns)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Kind;

    const US: i64 = 1_000;

    fn rank(n_broadcasts: i64, n_named: i64, n_others: i64) -> RankCalls {
        let calls = |n: i64| (0..n).map(|at| (at * 100 * US, at * 100 * US + 10 * US)).collect();
        let kind = |key: &str, is_broadcast: bool, n: i64| Kind {
            key: key.to_owned(),
            group_size: None,
            is_broadcast,
            calls: calls(n),
        };
        let kinds = vec![
            kind("ncclAllReduce", false, n_others),
            kind("broadcast;0", true, n_broadcasts),
            kind(DEEP_EP, false, 1_000),
        ];
        RankCalls { kinds, broadcasts: calls(n_named), ..RankCalls::default() }
    }

    #[test]
    fn calls_that_were_not_matched_are_told_of() {
        let (first, second) = (rank(3, 0, 5), rank(4, 3, 5));
        let text = broadcasts(&[&first, &second], &[], 1_000_000 * US).unwrap_or_default();
        let of = ": up to 7 broadcasts of a rank, whose kernels last 70.0 µs. Who sends may go on before the others have joined.";
        assert!(text.ends_with(of), "{text}");
        let calls = (0..3).map(|nth: i64| {
            let times = (nth * 100 * US, nth * 100 * US + 10 * US);
            vec![(0, times), (1, times)]
        });
        let all = Matches {
            members: vec![0, 1],
            n_missing: 0,
            is_broadcast: true,
            calls: calls.collect(),
            rough_ns: 0,
            unknown: crate::same_calls::Unknown::default(),
        };
        assert_eq!(broadcasts(&[&first], std::slice::from_ref(&all), 0), None);
        assert!(
            broadcasts(&[&first, &second], &[all], 0)
                .is_some_and(|text| text.contains(" 4 broadcasts"))
        );
        let few = rank(1, 0, 50);
        assert_eq!(broadcasts(&[&few], &[], 10_000 * US), None, "next to nothing");
        assert!(broadcasts(&[&few], &[], 900 * US).is_some(), "a hundredth of the waits");
    }
}
