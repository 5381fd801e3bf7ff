//! When TorchScript compiles. No event of its own says so: a call of [`FALLBACK`] that compiles takes far longer than one that does not, or
//! its thread does nothing that is recorded for long before the first call of a kernel that TorchScript has fused.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dialect::Records;
use dialect::torchscript::{FALLBACK, is_fused};
use trace::{Flags, Phase, StringId, Trace, TrackId, each_row};

use crate::intervals::{Interval, union};

/// A call that compiles takes this long or longer, in ns.
const LONG_NS: i64 = 1_000_000;
/// And this many times the mean of the shorter ones.
const TIMES: i64 = 10;
/// Of fewer shorter ones the mean says nothing. (Where more are long than short, these are of a graph that takes long.)
const FEWEST: i64 = 3;

/// The category of ops since PyTorch 1.10.
const OPS: &str = "cpu_op";
/// A thread that does nothing for so long before the first call of a fused kernel has compiled it, in ns.
const BEFORE_NS: i64 = 10_000_000;

/// The times, sorted and disjoint. Of a compiled graph in another, each has a call; they count once.
#[must_use]
pub fn compiling(trace: &Trace) -> Vec<Interval> {
    let is_fallback = trace.strings.marked(&|name| name == FALLBACK);
    if !is_fallback.contains(&true) {
        return Vec::new();
    }
    let mut all = in_calls(trace, &is_fallback);
    all.extend(before_calls(trace, &is_fallback));
    union(all)
}

/// The calls that take far longer than the others.
fn in_calls(trace: &Trace, is_fallback: &[bool]) -> Vec<Interval> {
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
    if n < FEWEST || !are_few { Vec::new() } else { long }
}

/// What comes before the first call of each fused kernel, where that is long: from the last begin or end of an op or call of its thread.
fn before_calls(trace: &Trace, is_fallback: &[bool]) -> Vec<Interval> {
    let is_fused = trace.strings.marked(&is_fused);
    // (Profilers before 1.10 write ranges as ops, of another category: what a range around a call does is not known to be TorchScript's.)
    let is_told = trace
        .by_raw_category(|raw| raw == OPS || matches!(dialect::known(raw), Some(Records::Call(_))));
    let mut own: Vec<(TrackId, i64, Reverse<i64>, StringId)> = Vec::new();
    each_row(trace, |row| {
        let is_slice = trace.phase(row) == Phase::Complete && trace.flags(row).has(Flags::HAS_TS);
        if is_slice && *is_told.of(trace, row) {
            let times = (trace.ts_ns(row), Reverse(trace.end_ns(row)));
            own.push((trace.track(row), times.0, times.1, trace.name(row)));
        }
    });
    trace::sort(&mut own);
    // By kernel the begin of each call, and what lies before it.
    let mut calls: Vec<(StringId, i64, Option<Interval>)> = Vec::new();
    for of_thread in own.chunk_by(|a, b| a.0 == b.0) {
        // When anything of the thread has begun or ended last, and the call of a compiled graph that is open with what lies before it.
        let mut open: BinaryHeap<Reverse<i64>> = BinaryHeap::new();
        let (mut last_ns, mut call) = (None::<i64>, None::<(i64, Option<Interval>)>);
        for (_, start, Reverse(end), name) in of_thread {
            while let Some(Reverse(at)) = open.peek().copied().filter(|Reverse(at)| at <= start) {
                last_ns = last_ns.max(Some(at));
                open.pop();
            }
            // (One in another one is a part of it.)
            let is_outermost = call.is_none_or(|(ends, _)| ends <= *start);
            if is_fallback[name.0 as usize] && is_outermost {
                // (In an op that is open: what its caller does before is none of TorchScript's.)
                let within = last_ns.filter(|_| !open.is_empty());
                call = Some((*end, within.map(|last_ns| (last_ns, *start))));
            }
            if is_fused[name.0 as usize] {
                let before = call.filter(|(ends, _)| end <= ends).and_then(|(_, before)| before);
                calls.push((*name, *start, before));
            }
            open.push(Reverse(*end));
            last_ns = last_ns.max(Some(*start));
        }
    }
    trace::sort(&mut calls);
    let first = calls.chunk_by(|a, b| a.0 == b.0).filter_map(|of_kernel| of_kernel.first()?.2);
    first.filter(|(from, to)| to - from >= BEFORE_NS).collect()
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, slice};

    use super::*;

    #[test]
    fn a_thread_that_does_nothing_before_the_first_call_of_a_fused_kernel_compiles() {
        const MS: i64 = 1_000_000;
        let of = |ops: &str, before_ns: i64, name: &str, is_called: bool| {
            let mut fixture = Fixture::default();
            if is_called {
                fixture.push(slice(ops, "delta").at(0, 200 * MS).on(1, 1));
            }
            fixture.push(slice(ops, "aten::cat").at(MS, MS).on(1, 1));
            for n in 0..2 {
                let at = (n + 1) * (2 * MS + before_ns);
                fixture.push(slice(ops, FALLBACK).at(at, MS).on(1, 1));
                // (A graph in a graph.)
                fixture.push(slice(ops, FALLBACK).at(at + 5_000, MS - 9_000).on(1, 1));
                fixture.push(slice(ops, name).at(at + 10_000, MS / 2).on(1, 1));
            }
            compiling(&fixture.finish())
        };
        let with = |before_ns: i64, name: &str| of("cpu_op", before_ns, name, true);
        let fused = "fused__autocast_to__15680171862954066917";
        assert_eq!(with(50 * MS, fused), [(2 * MS, 52 * MS)], "once");
        assert_eq!(with(5 * MS, fused), []);
        assert_eq!(with(50 * MS, "aten::mul"), []);
        assert_eq!(of("cpu_op", 50 * MS, fused, false), [], "what the caller does");
        assert_eq!(of("Operator", 50 * MS, fused, true), [], "it may be a range");
    }

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
