//! How much sooner a device would be done without some of its work, and without the ops that launch it: a replay.

use std::collections::BTreeMap;

use host::HostSlice;
use host::class::Class;
use host::links::GpuSlice;
use host::slices::ThreadId;
use timeline::Options;
use timeline::before_window::BeforeWindowSlices;
use timeline::device::platform;
use timeline::gpu::Gpu;
use timeline::intervals::{Interval, holds, length, union, without};
use timeline::launches::Launches;
use trace::Row;
use wall::{Lost, Removed, Wall};

use super::{Device, Facts};
use crate::Iteration;

/// The replay of a device, with the rows of its GPU slices, sorted, and their places in it.
pub(super) struct Replayed {
    device: String,
    wall: Wall,
    slices: Vec<(Row, u32)>,
}

impl Replayed {
    /// Those of a trace: of the slices that triage counts. (Pauses that no run has again change its span, and no saving.)
    #[inline(never)]
    pub(super) fn of(facts: &Facts<'_>) -> Vec<Self> {
        let trace = facts.trace;
        let before = BeforeWindowSlices::of(trace);
        let options = Options { without_before_window: true, ..Options::default() };
        let devices = Gpu::new(trace, platform(trace), &before, &options).by_device();
        let replayed = devices.iter().map(|gpu| {
            let mut slices = Vec::with_capacity(gpu.len());
            gpu.each_row(|row| slices.push((row, slices.len() as u32)));
            trace::sort(&mut slices);
            let wall = Wall::of(gpu, &Launches::of(gpu), Lost::default());
            Self { device: gpu.device().to_owned(), wall, slices }
        });
        replayed.collect()
    }
}

impl Facts<'_> {
    /// When the iterations that the bar is of are on the CPU; `None` where it is of all. (Where the CPU is ahead, the bar itself is of later
    /// times.)
    pub(super) fn told_on_cpu(&self) -> Option<Vec<Interval>> {
        let warm = self.warm.as_ref().and(self.iterations.as_ref());
        warm.map(|all| union(all.warm().map(Iteration::window).collect()))
    }
}

impl Device<'_> {
    fn replayed(&self) -> Option<&Replayed> {
        let all = self.facts.replayed.get_or_init(|| Replayed::of(self.facts));
        all.iter().find(|one| one.device == *self.name || all.len() == 1)
    }

    /// How much sooner it would be done without these ops and the GPU work that they launch, at most, in ns: of the ops in the iterations
    /// that its bar is of.
    #[must_use]
    pub(crate) fn saved_without_ops_ns(&self, ops: &[usize]) -> i64 {
        let told = self.told(ops.iter().copied());
        let all = &self.facts.slices.ops.slices;
        let beside = self.launching_beside_others();
        let is_of =
            |op: &HostSlice| beside.is_none_or(|thread| self.facts.slices.thread(op.row) == thread);
        let own = told.iter().map(|at| &all[*at]).filter(|op| is_of(op));
        let gone = union(own.map(HostSlice::interval).collect());
        let gone = match self.facts.uncached {
            Some(_) => gone,
            // (PyTorch's cache of memory grows once, for whatever comes first.)
            None => without(&gone, &self.allocations(&gone)),
        };
        self.saved_ns(told.iter().map(|at| (*at, 1.0)), &gone)
    }

    /// When the threads that launch its work allocate memory of the driver within these times, or free it.
    fn allocations(&self, times: &[Interval]) -> Vec<Interval> {
        let (slices, threads) = (self.facts.slices, self.launching_threads());
        let allocates = |call: &&HostSlice| {
            matches!(slices.class(call), Class::Malloc | Class::Free)
                && threads.contains(&slices.thread(call.row))
                && holds(times, call.start_ns)
        };
        union(slices.calls.iter().filter(allocates).map(HostSlice::interval).collect())
    }

    /// How much sooner it would be done if the GPU work that these ops launch took less time, at most, in ns: each op with the part of its
    /// time that goes away.
    #[must_use]
    pub(crate) fn saved_by_faster_ns(&self, ops: &[(usize, f64)]) -> i64 {
        let told = self.told(ops.iter().map(|(at, _)| *at));
        let is_told = |at: &usize| told.binary_search(at).is_ok();
        self.saved_ns(ops.iter().copied().filter(|(at, _)| is_told(at)), &[])
    }

    /// How much sooner it would be done without what the CPU does in these times and the GPU work that it launches then, at most, in ns:
    /// disjoint times of threads that launch, sorted.
    #[must_use]
    pub(crate) fn saved_without_times_ns(&self, times: &[Interval]) -> i64 {
        self.replay(times, |one| one.launch.filter(|call| holds(times, call.start_ns)).map(|_| 1.0))
    }

    /// How much sooner it would be done without calls of a kind on the threads that launch its work, at most, in ns: of the calls in the
    /// iterations that its bar is of.
    #[must_use]
    pub(crate) fn saved_without_calls_ns(&self, is_gone: impl Fn(&HostSlice) -> bool) -> i64 {
        let slices = self.facts.slices;
        let windows = self.facts.told_on_cpu();
        let beside = self.launching_beside_others();
        let threads = beside.map_or_else(|| self.launching_threads(), |thread| [thread].into());
        // (What comes before its first work is no part of its wall time.)
        let first_ns = self.facts.gpu.busy(self.id).first().map_or(i64::MIN, |first| first.0);
        let gone = slices.calls.iter().filter(|call| {
            is_gone(call)
                && call.start_ns >= first_ns
                && windows.as_ref().is_none_or(|windows| holds(windows, call.start_ns))
                && threads.contains(&slices.thread(call.row))
        });
        self.saved_without_times_ns(&union(gone.map(HostSlice::interval).collect()))
    }

    /// Those of the ops in the iterations that its bar is of, sorted. (The bar may be of times of the GPU, when an op is over.)
    fn told(&self, ops: impl Iterator<Item = usize>) -> Vec<usize> {
        let windows = self.facts.told_on_cpu();
        let start_ns = |at: usize| self.facts.slices.ops.slices[at].start_ns;
        let is_told =
            |at: &usize| windows.as_ref().is_none_or(|windows| holds(windows, start_ns(*at)));
        let mut told: Vec<usize> = ops.filter(is_told).collect();
        trace::sort(&mut told);
        told.dedup();
        told
    }

    /// The thread that launches most of its work, where others launch beside it and do not take turns with it, as the threads of the forward
    /// and the backward pass do: then what another thread is spared brings its launches no sooner.
    fn launching_beside_others(&self) -> Option<ThreadId> {
        let slices = self.facts.slices;
        let call = |one: &GpuSlice| {
            let launch = one.launch?;
            Some((launch.start_ns, slices.thread(launch.row), one.slice.dur_ns()))
        };
        let mut calls: Vec<(i64, ThreadId, i64)> = self.slices().filter_map(call).collect();
        trace::sort(&mut calls);
        let mut of_threads: BTreeMap<ThreadId, i64> = BTreeMap::new();
        for (_, thread, ns) in &calls {
            let sum = of_threads.entry(*thread).or_default();
            *sum = sum.saturating_add(*ns);
        }
        let (most, _) = of_threads.into_iter().max_by_key(|(_, ns)| *ns)?;
        let n_others = calls.iter().filter(|(_, thread, _)| *thread != most).count();
        let n_turns = calls.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
        (n_turns > n_others).then_some(most)
    }

    /// The replay without a part of the GPU work of ops, and without the times `gone` of the CPU.
    fn saved_ns(&self, ops: impl Iterator<Item = (usize, f64)>, gone: &[Interval]) -> i64 {
        let own = &self.facts.slices.ops;
        let mut parts = vec![0.0_f64; own.slices.len()];
        ops.for_each(|(at, part)| parts[at] = part);
        self.replay(gone, |one| own.chain(one.owner?).map(|at| parts[at]).find(|part| *part > 0.0))
    }

    /// The replay without a part of each slice, and without the times `gone` of the CPU.
    fn replay(&self, gone: &[Interval], part: impl Fn(&GpuSlice) -> Option<f64>) -> i64 {
        let Some(replayed) = self.replayed() else { return 0 };
        let removed = self.slices().filter_map(|one| {
            let part = part(one)?;
            let known = replayed.slices.binary_search_by_key(&one.slice.row, |(row, _)| *row);
            let (_, slice) = replayed.slices[known.ok()?];
            let gpu_ns = (one.slice.dur_ns() as f64 * part) as i64;
            Some(Removed { slice, gpu_ns, cpu_ns: 0 })
        });
        let mut removed: Vec<Removed> = removed.collect();
        trace::sort(&mut removed);
        let saved_ns = replayed.wall.saved_with_ops(&removed, gone);
        match self.is_slowed_by_stacks() {
            true => saved_ns.max(self.alone_ns(&part)),
            false => saved_ns,
        }
    }

    /// The time in which the parts of slices run alone, in ns: all that they cost a run whose launches hold nothing up.
    fn alone_ns(&self, part: &impl Fn(&GpuSlice) -> Option<f64>) -> i64 {
        let (mut own, mut others, mut gpu_ns) = (Vec::new(), Vec::new(), 0_i64);
        for one in self.slices() {
            match part(one) {
                Some(part) => {
                    own.push(one.slice.interval());
                    gpu_ns = gpu_ns.saturating_add((one.slice.dur_ns() as f64 * part) as i64);
                }
                None => others.push(one.slice.interval()),
            }
        }
        length(&without(&union(own), &union(others))).min(gpu_ns)
    }
}
