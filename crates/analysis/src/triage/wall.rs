//! How much sooner the window would end if some GPU time were gone: what advice is worth.
//!
//! GPU time that goes away shortens the wall time only where the GPU is what everything waits for. The model replays
//! the window with two delays. The *GPU's lead* grows by the time that is removed; each slice limits it, because no slice
//! begins before its launch call is over. The *CPU's lead* follows where the CPU waited for the GPU (a synchronising call,
//! a blocking copy): what it launches afterwards comes sooner. Where the GPU waits for the CPU, the lead is lost.
//!
//! The lead at the end of the window is an upper bound: slices of other streams may hold up the rest, and nothing says
//! that all of the time goes away.

use catalog::RawKind;
use trace::{Flags, Phase, StringId, each_row};

use crate::gpu::{Extent, Gpu};
use crate::launches::Launches;

/// Below this share of the GPU span, in thousandths, nothing is advised.
pub(crate) const LEAST_PERMILLE: i64 = 5;
/// Below this time nothing is advised, in ns.
pub(crate) const LEAST_NS: i64 = 10_000;
/// Shares of the GPU span from which advice is of priority 1, 2 and 3, in thousandths.
const PRIORITIES: [(u8, i64); 3] = [(1, 50), (2, 20), (3, LEAST_PERMILLE)];

/// No limit, and no time.
const UNKNOWN: i64 = i64::MAX;

/// A wait of the CPU for the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wait {
    /// When the CPU went on.
    until_ns: i64,
    /// How long it had waited when the slice ended.
    waited_ns: i64,
    /// The slice that it waited for.
    slice: u32,
}

/// The GPU slices of a device with what held up each of them.
#[derive(Debug)]
pub(crate) struct Wall {
    /// By slice: how much sooner it could begin for all its launch says; [`UNKNOWN`] where the launch is not recorded.
    slack_ns: Vec<i64>,
    /// By slice: when its launch began; [`UNKNOWN`] where it is not recorded.
    launched_ns: Vec<i64>,
    /// By end.
    waits: Vec<Wait>,
    /// From the first start to the last end, without `blocked_ns`.
    pub(crate) span_ns: i64,
    /// How long the GPU was idle with work queued: what ran then, if anything, is not in the file.
    pub(crate) blocked_ns: i64,
    /// Whether launches are recorded: without them nothing limits the bound but the slices themselves.
    pub(crate) linked: bool,
}

impl Wall {
    /// The slices of one device.
    #[inline(never)]
    pub(crate) fn of(gpu: &Gpu<'_>, launches: &Launches, blocked_ns: i64) -> Self {
        let trace = gpu.trace;
        let mut extent = Extent::default();
        let n = gpu.len();
        let mut wall = Self {
            slack_ns: vec![UNKNOWN; n],
            launched_ns: vec![UNKNOWN; n],
            waits: Vec::new(),
            span_ns: 0,
            blocked_ns,
            linked: false,
        };
        for at in 0..n {
            let slice = gpu.slice(at);
            extent.add(&slice);
            let Some(launch) = launches.of_slice(at).filter(|_| launches.is_sure(at)) else {
                continue;
            };
            let (begun_ns, over_ns) = (trace.ts_ns(launch), trace.end_ns(launch));
            wall.linked = true;
            wall.launched_ns[at] = begun_ns;
            // (A blocking copy begins before its call is over.)
            wall.slack_ns[at] = slice.start_ns.saturating_sub(over_ns).max(0);
            // (A copy from pageable memory blocks the CPU, although its call may be over before the copy is.)
            let copies = gpu.works[slice.work].kind == RawKind::Memcpy;
            if copies && over_ns > slice.start_ns {
                let waited_ns = over_ns.min(slice.end_ns()).saturating_sub(begun_ns).max(0);
                wall.waits.push(Wait { until_ns: over_ns, waited_ns, slice: at as u32 });
            }
        }
        wall.span_ns = extent.span_ns().saturating_sub(blocked_ns).max(0);
        wall.add_synchronisations(gpu);
        trace::sort(&mut wall.waits);
        wall
    }

    /// Calls that wait until the GPU is done.
    #[inline(never)]
    fn add_synchronisations(&mut self, gpu: &Gpu<'_>) {
        let trace = gpu.trace;
        let names = 0..trace.strings.len() as u32;
        let waits: Vec<bool> =
            names.map(|id| is_synchronisation(trace.strings.get(StringId(id)))).collect();
        if !waits.contains(&true) || gpu.len() == 0 {
            return;
        }
        let mut ends: Vec<(i64, u32)> =
            (0..gpu.len()).map(|at| (gpu.slice(at).end_ns(), at as u32)).collect();
        trace::sort(&mut ends);
        let mut found = Vec::new();
        each_row(trace, |row| {
            let complete = trace.phase(row) == Phase::Complete;
            if waits[trace.name(row).0 as usize] && complete && trace.flags(row).has(Flags::HAS_TS)
            {
                found.push((trace.ts_ns(row), trace.end_ns(row)));
            }
        });
        for (begun_ns, over_ns) in found {
            let done = ends.partition_point(|(end_ns, _)| *end_ns <= over_ns);
            let Some((end_ns, slice)) = done.checked_sub(1).and_then(|at| ends.get(at)) else {
                continue;
            };
            if *end_ns > begun_ns {
                let waited_ns = end_ns.saturating_sub(begun_ns);
                self.waits.push(Wait { until_ns: over_ns, waited_ns, slice: *slice });
            }
        }
    }

    /// How much sooner the window ends without this time: `removed` is (slice, ns), sorted by slice.
    #[inline(never)]
    pub(crate) fn saved_ns(&self, removed: &[(u32, i64)]) -> i64 {
        let Some((first, _)) = removed.first() else { return 0 };
        let mut left = removed.iter().peekable();
        let mut waits = self.waits.iter().peekable();
        // The lead of the GPU at each slice that the CPU waits for.
        let mut leads: Vec<(u32, i64)> = Vec::new();
        let mut awaited: Vec<u32> = self.waits.iter().map(|wait| wait.slice).collect();
        awaited.sort_unstable();
        awaited.dedup();
        let mut awaited = awaited.into_iter().skip_while(|at| at < first).peekable();
        let (mut gpu_ns, mut cpu_ns) = (0_i64, 0_i64);
        for at in *first as usize..self.slack_ns.len() {
            let launched_ns = self.launched_ns[at];
            while launched_ns != UNKNOWN
                && let Some(wait) = waits.next_if(|wait| wait.until_ns <= launched_ns)
            {
                let known = leads.binary_search_by_key(&wait.slice, |(slice, _)| *slice);
                let lead_ns = known.map_or(0, |at| leads[at].1);
                cpu_ns = cpu_ns.max(lead_ns.min(cpu_ns.saturating_add(wait.waited_ns)));
            }
            if self.slack_ns[at] != UNKNOWN {
                gpu_ns = gpu_ns.min(cpu_ns.saturating_add(self.slack_ns[at]));
            }
            while let Some((_, ns)) = left.next_if(|(slice, _)| *slice as usize == at) {
                gpu_ns = gpu_ns.saturating_add(*ns);
            }
            if awaited.next_if(|slice| *slice as usize == at).is_some() {
                leads.push((at as u32, gpu_ns));
            }
        }
        gpu_ns.max(0)
    }

    /// What shares are of, in words.
    pub(crate) fn span(&self) -> &'static str {
        if self.blocked_ns > 0 { "the GPU span without the blocked time" } else { "the GPU span" }
    }

    /// The priority of advice that saves this much at most; `None` if it is not worth it.
    pub(crate) fn priority(&self, saved_ns: i64) -> Option<u8> {
        priority(saved_ns, self.span_ns)
    }
}

/// The priority of advice that saves `saved_ns` of `span_ns` at most: 1 from 5%, 2 from 2%, 3 from 0.5%; `None` below that,
/// and below 10 µs.
pub(crate) fn priority(saved_ns: i64, span_ns: i64) -> Option<u8> {
    let at_least =
        |permille: i64| i128::from(saved_ns) * 1000 >= i128::from(span_ns) * i128::from(permille);
    let worth = saved_ns >= LEAST_NS && span_ns > 0;
    PRIORITIES
        .iter()
        .find(|(_, permille)| worth && at_least(*permille))
        .map(|(priority, _)| *priority)
}

/// Whether a call waits for the GPU: `cudaStreamSynchronize`, `hipDeviceSynchronize`, `cudaEventSynchronize`.
pub(crate) fn is_synchronisation(name: &str) -> bool {
    name.contains("Synchronize")
        && (name.starts_with("cuda") || name.starts_with("hip") || name.starts_with("cu"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::before_window::BeforeWindowSlices;
    use crate::fixture::{Fixture, kernel, slice};

    const US: i64 = 1_000;

    /// Kernels as (launched, begun, duration) in µs, each launch of 1 µs, and calls that synchronise as (start, end).
    fn wall(kernels: &[(i64, i64, i64)], waits: &[(i64, i64)]) -> Wall {
        let mut fixture = Fixture::default();
        for (link, (launched, begun, dur)) in (1..).zip(kernels) {
            let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(link);
            fixture.push(launch.at(launched * US, US));
            fixture.push(kernel("k").at(begun * US, dur * US).link(link));
        }
        for (from, to) in waits {
            let call = slice("cuda_runtime", "cudaDeviceSynchronize").on(1, 1);
            fixture.push(call.at(from * US, (to - from) * US));
        }
        let trace = fixture.finish();
        let before = BeforeWindowSlices::of(&trace);
        let gpu = Gpu::new(&trace, catalog::Platform::Cuda, &before, &Options::default());
        Wall::of(&gpu, &Launches::of(&gpu), 0)
    }

    #[test]
    fn time_counts_where_work_is_queued() {
        // All launched at once, run one after the other.
        let queued = wall(&[(0, 10, 100), (1, 110, 100), (2, 210, 100)], &[]);
        assert_eq!(queued.span_ns, 300 * US);
        assert_eq!(queued.saved_ns(&[(0, 50 * US)]), 50 * US);
        assert_eq!(queued.saved_ns(&[(0, 50 * US), (1, 60 * US)]), 110 * US);
        assert_eq!(queued.saved_ns(&[]), 0);
    }

    #[test]
    fn time_is_lost_where_the_gpu_waits_for_the_cpu() {
        // Each is launched long after the one before it was done.
        let starved = wall(&[(0, 2, 10), (100, 102, 10), (200, 202, 10)], &[]);
        assert_eq!(starved.saved_ns(&[(0, 9 * US)]), US, "a launch takes its microsecond");
        assert_eq!(starved.saved_ns(&[(2, 9 * US)]), 9 * US, "the last one ends the window");
    }

    #[test]
    fn a_cpu_that_waits_for_the_gpu_launches_sooner() {
        let kernels = [(0, 2, 100), (110, 112, 10), (200, 202, 10)];
        assert_eq!(wall(&kernels, &[]).saved_ns(&[(0, 50 * US)]), US);
        // It waits for the first kernel, and goes on to launch the others.
        assert_eq!(wall(&kernels, &[(2, 103)]).saved_ns(&[(0, 50 * US)]), 51 * US - US);
        // It waited for the last two microseconds only.
        assert_eq!(wall(&kernels, &[(100, 103)]).saved_ns(&[(0, 50 * US)]), 3 * US);
    }

    #[test]
    fn a_copy_from_pageable_memory_holds_up_the_cpu() {
        let saved_ns = |call_us: i64| {
            let mut fixture = Fixture::default();
            let copy = slice("cuda_runtime", "cudaMemcpyAsync").on(1, 1).link(1);
            fixture.push(copy.at(0, call_us * US));
            let name = "Memcpy HtoD (Pageable -> Device)";
            fixture.push(slice("gpu_memcpy", name).at(20 * US, 100 * US).link(1));
            let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(2);
            fixture.push(launch.at(130 * US, US));
            fixture.push(kernel("k").at(132 * US, 10 * US).link(2));
            let trace = fixture.finish();
            let before = BeforeWindowSlices::of(&trace);
            let gpu = Gpu::new(&trace, catalog::Platform::Cuda, &before, &Options::default());
            Wall::of(&gpu, &Launches::of(&gpu), 0).saved_ns(&[(0, 80 * US)])
        };
        assert_eq!(saved_ns(118), 81 * US - US, "its call is over a little before the copy");
        assert_eq!(saved_ns(10), US, "one that only queues it");
    }

    #[test]
    fn without_launches_nothing_limits_it() {
        let mut fixture = Fixture::default();
        fixture.push(kernel("k").at(0, 100 * US));
        fixture.push(kernel("k").at(500 * US, 100 * US));
        let trace = fixture.finish();
        let before = BeforeWindowSlices::of(&trace);
        let gpu = Gpu::new(&trace, catalog::Platform::Cuda, &before, &Options::default());
        let wall = Wall::of(&gpu, &Launches::of(&gpu), 0);
        assert!(!wall.linked);
        assert_eq!(wall.saved_ns(&[(0, 40 * US)]), 40 * US);
    }

    #[test]
    fn priorities_are_shares_of_the_span() {
        let of = |ns| priority(ns, 18_900 * US);
        assert_eq!(of(31 * US), None, "0.16%");
        assert_eq!(of(95 * US), Some(3));
        assert_eq!(of(400 * US), Some(2));
        assert_eq!(of(945 * US), Some(1));
        assert_eq!(priority(9 * US, 20 * US), None, "too short to measure");
        assert_eq!(priority(9 * US, 0), None);
    }
}
