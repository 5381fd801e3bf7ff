//! Whether the CPU stays ahead of a GPU that runs iterations after they have ended on the CPU. A serving engine marks only the launch of a
//! pass: what its scheduler does between two passes is in no iteration, and the GPU may run dry meanwhile.

use dialect::calls::synchronizes_device;
use host::numbers::Stats;
use report::units::{count, plural, time};
use timeline::intervals::length_within;
use triage::{WallPart, WallTimes};

use super::{Iteration, Run, slow};

/// An iteration is launched late if the GPU stands still before its work ends for one of so many parts of the time until then.
const DRY_PARTS: i64 = 100;

/// The loop of the launching threads, where the GPU runs dry in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Iterations before or in which the GPU stands still until late launches.
    n_late: usize,
    /// For how long, in all.
    late_ns: i64,
    /// How much of that the data loader takes.
    loading_ns: i64,
    /// From the start of an iteration on the CPU to the start of the next, the median.
    loop_ns: i64,
    /// For how long the launching threads wait for the GPU in that time, the median.
    waits_ns: i64,
    /// So many loops.
    n: usize,
    /// How many of them hold a call that waits for all of the device, and how much of the idle time is of these.
    n_drained: usize,
    drained_ns: i64,
}

const AHEAD: &str = "most GPU work of an iteration runs after the iteration has ended on the CPU.";
/// Why parts of the wall time are left out.
const LEFT_OUT: &str = "What the GPU runs meanwhile belongs to earlier iterations and is excluded.";

/// That the CPU launches ahead; or how far it does not, where the GPU runs dry in the loop around `n` iterations.
pub(super) fn ahead(pace: Option<Pace>, n: usize) -> String {
    let Some(pace) = pace else { return format!("The CPU launches ahead: {AHEAD} {LEFT_OUT}") };
    // (Launching further ahead makes no batch sooner, and a median is of neither the iterations that wait for one nor the others.)
    if pace.loading_ns.saturating_mul(2) >= pace.late_ns {
        return format!(
            "The CPU launches ahead: {AHEAD} In {} of {} the GPU runs dry, for {} in all; for {} of that the CPU is in the data loader.",
            count(pace.n_late as u64),
            plural(n as u64, "iteration", "iterations"),
            time(pace.late_ns),
            time(pace.loading_ns),
        );
    }
    // (Behind such a call nothing is queued: however far ahead the CPU was, the GPU waits for its next launch.)
    let is_most = pace.drained_ns.saturating_mul(2) > pace.late_ns;
    if pace.n_drained.saturating_mul(2) > pace.n && is_most {
        return format!(
            "In {} of {} iterations the CPU waits for all of the GPU's work (cudaDeviceSynchronize or the like): nothing is queued then, and the \
             GPU is idle until the next launches, for {} in all. Where the call is only for timing, remove it.",
            count(pace.n_drained as u64),
            count(pace.n as u64),
            time(pace.drained_ns),
        );
    }
    format!(
        "The CPU runs ahead of the GPU, but not by enough: {AHEAD} In {} of {} the GPU goes idle before their work ends ({} in all), because \
         launches come late. On the CPU, an iteration starts every {} (median of {}); the launching thread waits {} of that for the GPU \
         (median).",
        count(pace.n_late as u64),
        plural(n as u64, "iteration", "iterations"),
        time(pace.late_ns),
        time(pace.loop_ns),
        count(pace.n as u64),
        time(pace.waits_ns),
    )
}

impl Pace {
    /// `None` where an iteration is not ahead, or where the GPU never waits for late launches. Of all iterations but cold ones.
    pub(super) fn of(run: &Run<'_>, all: &[Iteration], times: &WallTimes) -> Option<Self> {
        let list: Vec<&Iteration> = all.iter().filter(|one| one.cold.is_none()).collect();
        if !list.iter().all(|one| one.is_ahead) {
            return None;
        }
        let late = [WallPart::Launch, WallPart::HostCompute, WallPart::DataLoading];
        let late = late.map(|part| times.part(part));
        let mut found = Self {
            n_late: 0,
            late_ns: 0,
            loading_ns: 0,
            loop_ns: 0,
            waits_ns: 0,
            n: 0,
            n_drained: 0,
            drained_ns: 0,
        };
        let (first, last) = list.first().zip(list.last())?;
        let awaited = slow::awaited(run, (first.window.0, last.window.0));
        let (_, mut drains) = host::calls::syncs(run.slices);
        drains.retain(|call| synchronizes_device(run.slices.name(call)));
        let (mut loops, mut waits) = (Vec::new(), Vec::new());
        for pair in list.windows(2) {
            let (from, to) = (pair[0].window.0, pair[1].window.0);
            loops.push(to.saturating_sub(from));
            waits.push(length_within(&awaited, (from, to)));
            let next = drains.partition_point(|call| call.start_ns < from);
            let is_drained = drains.get(next).is_some_and(|call| call.start_ns < to);
            found.n_drained += usize::from(is_drained);
            let Some(((_, before), (_, end))) = pair[0].on_gpu.zip(pair[1].on_gpu) else {
                continue;
            };
            let [launch_ns, cpu_ns, loading_ns] = late.map(|own| length_within(own, (before, end)));
            let late_ns = launch_ns.saturating_add(cpu_ns).saturating_add(loading_ns);
            if late_ns.saturating_mul(DRY_PARTS) >= end.saturating_sub(before).max(1) {
                found.n_late += 1;
                found.late_ns = found.late_ns.saturating_add(late_ns);
                let drained_ns = if is_drained { late_ns } else { 0 };
                found.drained_ns = found.drained_ns.saturating_add(drained_ns);
                found.loading_ns = found.loading_ns.saturating_add(loading_ns);
            }
        }
        found.n = loops.len();
        let median = |times: Vec<i64>| Stats::of(times).figures.map(|figures| figures.p50_ns);
        (found.loop_ns, found.waits_ns) = (median(loops)?, median(waits)?);
        (found.n_late > 0).then_some(found)
    }
}
