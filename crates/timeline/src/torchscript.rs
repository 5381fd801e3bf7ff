//! When TorchScript compiles. No event of its own says so: a call of [`FALLBACK`] that compiles takes far longer than one that does not.

use dialect::Records;
use dialect::torchscript::FALLBACK;
use trace::{Flags, Phase, Trace, each_row};

use crate::intervals::{Interval, union};

/// A call that compiles takes this long or longer, in ns.
const LONG_NS: i64 = 1_000_000;
/// And this many times the mean of the shorter ones.
const TIMES: i64 = 10;
/// Of fewer shorter ones the mean says nothing. (Where more are long than short, these are of a graph that takes long.)
const FEWEST: i64 = 3;

/// The times, sorted and disjoint. Of a compiled graph in another, each has a call; they count once.
#[must_use]
pub fn compiling(trace: &Trace) -> Vec<Interval> {
    let is_fallback = trace.strings.marked(&|name| name == FALLBACK);
    if !is_fallback.contains(&true) {
        return Vec::new();
    }
    let is_op = trace.by_raw_category(|raw| dialect::known(raw) == Some(Records::Op));
    let (mut n, mut short_ns, mut long) = (0_i64, 0_i64, Vec::new());
    each_row(trace, |row| {
        let is_slice = trace.phase(row) == Phase::Complete && trace.flags(row).has(Flags::HAS_TS);
        if !is_slice || !is_fallback[trace.name(row).0 as usize] || !*is_op.of(trace, row) {
            return;
        }
        let (start, end) = (trace.ts_ns(row), trace.end_ns(row));
        let dur_ns = end.saturating_sub(start);
        if dur_ns >= LONG_NS {
            long.push((start, end));
        } else {
            (n, short_ns) = (n + 1, short_ns.saturating_add(dur_ns));
        }
    });
    let compiles = |(start, end): &Interval| {
        end.saturating_sub(*start).saturating_mul(n) >= short_ns.saturating_mul(TIMES)
    };
    long.retain(compiles);
    let are_few = i64::try_from(long.len()).is_ok_and(|n_long| n_long < n);
    if n < FEWEST || !are_few { Vec::new() } else { union(long) }
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, slice};

    use super::*;

    #[test]
    fn calls_that_take_far_longer_than_the_others_compile() {
        let with = |n_short: i64, short_ns: i64| {
            let mut fixture = Fixture::default();
            let call = || slice("cpu_op", FALLBACK).on(1, 1);
            for n in 0..n_short {
                fixture.push(call().at(n * 1_000_000, short_ns));
            }
            fixture.push(call().at(20_000_000, 9_000_000));
            fixture.push(call().at(20_100_000, 8_000_000));
            fixture.push(slice("python_function", FALLBACK).at(40_000_000, 9_000_000).on(1, 1));
            compiling(&fixture.finish())
        };
        assert_eq!(with(3, 300_000), [(20_000_000, 29_000_000)]);
        assert_eq!(with(2, 300_000), [], "two others say nothing");
        assert_eq!(with(9, 950_000), [], "these take long for what they run");
    }
}
