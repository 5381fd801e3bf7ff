//! When calls of the runtime are missing in the middle of a file: matrix products and convolutions go on of which each launches a kernel
//! elsewhere, and no thread makes a call. The profiler lost the buffers of that time, and with them what ran on the GPU.
//!
//! While `torch.compile` traces a model, its ops run on tensors without data and launch nothing: they are not counted.

use std::collections::BTreeMap;

use dialect::Records;
use trace::{Flags, Phase, StringId, Trace, TrackId, each_row};

use crate::intervals::{Collector, Interval, touching, union};

/// A shorter time without calls is a pause between launches, in ns.
const LONG_NS: i64 = 1_000_000;
/// Fewer products may be on the CPU.
const FEWEST: usize = 5;
/// Of the products of a name elsewhere, so many percent at least have a call.
const LAUNCH_PCT: u64 = 90;
/// Ops that launch, unless they work on tensors of the CPU.
const PRODUCTS: [&str; 9] = [
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::cudnn_convolution",
    "aten::cudnn_convolution_backward",
    "aten::convolution_backward",
    "aten::miopen_convolution",
    "aten::miopen_convolution_backward",
];

/// The times, sorted and disjoint: each from one call to the next.
#[must_use]
pub fn lost_calls(trace: &Trace) -> Vec<Interval> {
    let is_product = trace.strings.marked(&|name| PRODUCTS.contains(&name));
    if !is_product.contains(&true) {
        return Vec::new();
    }
    let records = trace.by_raw_category(dialect::known);
    let compiles = trace.strings.marked(&dialect::inductor::sets_up);
    let (mut calls, mut products) = (Collector::default(), Vec::new());
    let mut compiling = Vec::new();
    each_row(trace, |row| {
        if trace.phase(row) != Phase::Complete || !trace.flags(row).has(Flags::HAS_TS) {
            return;
        }
        if compiles[trace.name(row).0 as usize] {
            compiling.push((trace.track(row), (trace.ts_ns(row), trace.end_ns(row))));
        }
        match records.of(trace, row) {
            Some(Records::Call(_)) => calls.add(trace.ts_ns(row), trace.end_ns(row)),
            Some(Records::Op) if is_product[trace.name(row).0 as usize] => {
                let times = (trace.ts_ns(row), trace.end_ns(row));
                products.push((trace.name(row), trace.track(row), times));
            }
            _ => {}
        }
    });
    // (Of its own thread: another may compile meanwhile.)
    trace::sort(&mut compiling);
    let of_tracks = compiling.chunk_by(|a, b| a.0 == b.0);
    let of_tracks: Vec<(TrackId, Vec<Interval>)> = of_tracks
        .filter_map(|own| Some((own.first()?.0, union(own.iter().map(|(_, of)| *of).collect()))))
        .collect();
    products.retain(|(_, track, times)| {
        let own = of_tracks.iter().find(|(of, _)| of == track);
        own.is_none_or(|(_, own)| touching(own, *times).is_empty())
    });
    let calls = calls.union();
    let between = calls.windows(2).map(|pair| (pair[0].1, pair[1].0));
    let quiet: Vec<Interval> = between.filter(|(from, to)| to - from >= LONG_NS).collect();
    // By name: the products outside these times, and those among them with a call.
    let mut elsewhere: BTreeMap<StringId, (u64, u64)> = BTreeMap::new();
    let mut within: Vec<(StringId, usize)> = Vec::new();
    for (name, _, times) in &products {
        match touching(&quiet, *times) {
            [stretch] if stretch.0 <= times.0 && times.1 <= stretch.1 => {
                within.push((*name, quiet.partition_point(|other| other.0 < stretch.0)));
            }
            _ => {
                let (n, n_with) = elsewhere.entry(*name).or_default();
                *n += 1;
                *n_with += u64::from(!touching(&calls, *times).is_empty());
            }
        }
    }
    let launches = |name: &StringId| {
        elsewhere
            .get(name)
            .is_some_and(|(n, n_with)| n_with.saturating_mul(100) >= n.saturating_mul(LAUNCH_PCT))
    };
    let mut n_lost = vec![0_usize; quiet.len()];
    within.iter().filter(|(name, _)| launches(name)).for_each(|(_, at)| n_lost[*at] += 1);
    // (Where that is most of them, they work on the CPU.)
    if n_lost.iter().sum::<usize>().saturating_mul(2) > products.len() {
        return Vec::new();
    }
    let lost = quiet.into_iter().zip(n_lost).filter(|(_, n)| *n >= FEWEST);
    lost.map(|(stretch, _)| stretch).collect()
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, slice};

    use super::*;

    /// Forty products, one each ms; those of `quiet` without a call.
    fn with(quiet: std::ops::Range<i64>) -> Vec<Interval> {
        within("mine", quiet)
    }

    /// The same inside a range of a name.
    fn within(name: &str, quiet: std::ops::Range<i64>) -> Vec<Interval> {
        let mut fixture = Fixture::default();
        let (at, dur) = (quiet.start * 1_000_000, (quiet.end - quiet.start) * 1_000_000);
        fixture.push(slice("user_annotation", name).at(at, dur).on(1, 1));
        for n in 0..40 {
            let at = n * 1_000_000;
            fixture.push(slice("cpu_op", "aten::mm").at(at, 500_000).on(1, 1));
            if !quiet.contains(&n) {
                let call = slice("cuda_runtime", "cudaLaunchKernel").at(at + 100_000, 10_000);
                fixture.push(call.on(1, 1));
            }
        }
        lost_calls(&fixture.finish())
    }

    #[test]
    fn products_that_launch_elsewhere_lost_their_calls() {
        assert_eq!(with(10..16), [(9_110_000, 16_100_000)]);
        assert_eq!(with(10..14), [], "few");
        assert_eq!(with(1..39), [], "most of them work on the CPU");
        assert_eq!(with(0..0), []);
    }

    #[test]
    fn products_that_torch_compile_traces_launch_nothing() {
        assert_eq!(within("bytecode_tracing (dynamo_timed)", 10..16), []);
        assert_ne!(within("Torch-Compiled Region: 0/0", 10..16), []);
    }
}
