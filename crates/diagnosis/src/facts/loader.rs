//! The data loader on the critical path: where a thread that launches loads, what it launches next cannot run earlier, whether the device
//! stands still meanwhile or communicates for a rank that comes later.

use std::collections::BTreeMap;

use host::HostSlice;
use host::class::Class;
use host::slices::ThreadId;
use timeline::batches::taken_over_ns;
use timeline::intervals::{Interval, both, holds, length, length_within, union, without};
use trace::TrackId;

use super::Device;

/// What is launched this soon after the loader waits for nothing else.
const SOON_NS: i64 = 1_000_000;

/// Frames that unpickle a batch, or rebuild a tensor of it.
const RECEIVES: [&str; 3] = [
    "<built-in function loads>",
    "multiprocessing/reductions.py",
    "multiprocessing/resource_sharer.py",
];

impl<'f> Device<'f> {
    /// How long data loaders run on the threads that launch its work, in the time that its bar is of.
    #[must_use]
    pub(crate) fn loads_ns(&self) -> i64 {
        let loaders = self.loaders().into_iter().map(HostSlice::interval).collect();
        length(&both(&union(loaders), &self.window()))
    }

    /// By how much what follows would come earlier, at most, if the device's work during the loaders did: each time that work, or the time
    /// in which the device is idle until the next call that waits for it has returned. After that call the CPU is as late with the loader as
    /// without: it waited for the work.
    #[must_use]
    pub(crate) fn earlier_without_loader_ns(&self) -> i64 {
        let slices = self.facts.slices;
        let (window, busy) = (self.window(), self.facts.gpu.busy(self.id));
        let busy = both(busy, &window);
        let loaders = self.loaders();
        let is_wait = |call: &&HostSlice| slices.class(call) == Class::Sync || slices.blocks(call);
        let mut earlier_ns = 0_i64;
        for thread in self.launching_threads() {
            let on_it = |one: &&HostSlice| slices.thread(one.row) == thread;
            let loads = loaders.iter().copied().filter(on_it).map(HostSlice::interval);
            let loads = union(loads.collect());
            let waits = slices.calls.iter().filter(is_wait).filter(on_it).map(HostSlice::interval);
            let mut waits: Vec<Interval> = waits.collect();
            trace::sort(&mut waits);
            let idle = without(&without(&window, &busy), &loads);
            // (Loaders before one wait share the idle time before it.)
            let wait = |load: &Interval| waits.partition_point(|(start_ns, _)| *start_ns < load.1);
            let of_wait = loads.chunk_by(|a, b| wait(a) == wait(b)).map(|own| {
                let (Some(first), Some(last)) = (own.first(), own.last()) else { return 0 };
                let until_ns = waits.get(wait(last)).map_or(i64::MAX, |(_, end_ns)| *end_ns);
                let during = own.iter().map(|load| length_within(&busy, *load));
                during.sum::<i64>().min(length_within(&idle, (first.1, until_ns)))
            });
            let sum_ns = of_wait.fold(0, i64::saturating_add);
            earlier_ns = earlier_ns.saturating_add(sum_ns);
        }
        earlier_ns
    }

    /// The data loaders on the threads that launch its work.
    fn loaders(&self) -> Vec<&HostSlice> {
        let slices = self.facts.slices;
        let names = slices.names_with("DataLoader");
        let launching = self.launching_threads();
        let loads = |slice: &&HostSlice| {
            names[slices.trace.name(slice.row).0 as usize]
                && launching.contains(&slices.thread(slice.row))
        };
        slices.annotations.iter().chain(&slices.ops.slices).filter(loads).collect()
    }

    /// How long the threads that launch its work take over, in data loaders, what workers have loaded: they unpickle batches, and receive
    /// the memory of each tensor. Without frames an estimate.
    #[must_use]
    pub(crate) fn receives_ns(&self) -> i64 {
        let slices = self.facts.slices;
        if !self.receives_in_frames() {
            return self.receives_by_ops();
        }
        // (`multiprocessing/queues.py`: `get` waits for the bytes of a batch first, and calls `loads` when it has them.)
        let names = RECEIVES.map(|part| slices.names_with(part));
        let loaders = union(self.loaders().into_iter().map(HostSlice::interval).collect());
        let launching = self.launching_threads();
        let receives = |frame: &&HostSlice| {
            let name = slices.trace.name(frame.row).0 as usize;
            names.iter().any(|names| names[name]) && launching.contains(&slices.thread(frame.row))
        };
        let frames = slices.frames.slices.iter().filter(receives).map(HostSlice::interval);
        length(&both(&both(&union(frames.collect()), &loaders), &self.window()))
    }

    /// Whether frames tell how long that takes.
    #[must_use]
    pub(crate) fn receives_in_frames(&self) -> bool {
        !self.facts.slices.frames.slices.is_empty()
    }

    /// The same by the ops that give tensors their memory.
    fn receives_by_ops(&self) -> i64 {
        let trace = self.facts.slices.trace;
        let of_workers = self.facts.slices.names_with("MultiProcessing");
        let calls: Vec<(TrackId, Interval)> = self
            .loaders()
            .into_iter()
            .filter(|one| of_workers[trace.name(one.row).0 as usize])
            .map(|one| (trace.track(one.row), one.interval()))
            .collect();
        let window = self.window();
        let within = |(taken_ns, (_, call)): (i64, &(TrackId, Interval))| {
            taken_ns.min(length(&both(&[*call], &window)))
        };
        let taken = taken_over_ns(trace, &calls).into_iter().zip(&calls);
        taken.map(within).fold(0, i64::saturating_add).min(self.loads_ns())
    }

    /// When it computes nothing from the begin of a data loader on a thread that launches its work to what that thread launches soon after it:
    /// of loaders that end while it computes nothing. (Where it still computes, the loader is hidden. So it is where a collective outlasts it,
    /// and what is launched next waits for that.)
    #[must_use]
    pub(crate) fn held_by_loader(&self) -> &'f [Interval] {
        let facts = self.facts;
        let all =
            facts.held_by_loader.get_or_init(|| facts.of_each(|device| device.loader_holds()));
        all.get(self.id as usize).map_or(&[], Vec::as_slice)
    }

    fn loader_holds(&self) -> Vec<Interval> {
        let slices = self.facts.slices;
        // By thread: when it launches, and when what it launches starts.
        let mut starts: BTreeMap<ThreadId, Vec<(i64, i64)>> = BTreeMap::new();
        for one in self.slices() {
            if let Some(launch) = one.launch {
                let own = starts.entry(slices.thread(launch.row)).or_default();
                own.push((launch.start_ns, one.slice.start_ns));
            }
        }
        starts.values_mut().for_each(|own| trace::sort(own));
        let (communication, compute) = self.communication();
        let held = self.loaders().into_iter().filter_map(|loader| {
            let own = starts.get(&slices.thread(loader.row))?;
            let next = own.partition_point(|(launch_ns, _)| *launch_ns < loader.end_ns);
            let (launch_ns, start_ns) = own.get(next)?;
            let waits = start_ns.saturating_sub(*launch_ns) >= SOON_NS;
            let is_hidden =
                holds(&compute, loader.end_ns) || (waits && holds(&communication, *launch_ns));
            let is_soon = start_ns.saturating_sub(loader.end_ns) < SOON_NS;
            let until_ns = if is_soon { loader.end_ns.max(*start_ns) } else { loader.end_ns };
            (!is_hidden).then_some((loader.start_ns, until_ns))
        });
        let held = without(&union(held.filter(|(from, to)| from < to).collect()), &compute);
        both(&held, &self.window())
    }
}
