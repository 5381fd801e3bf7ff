//! What held up the slices of a device, and where the CPU waited: read from their times.

use dialect::calls::{Does, does, synchronizes};
use dialect::kineto;
use trace::{Flags, Phase, SmallIndex, StringId, Trace, TrackId, each_row};

use super::{Hold, NO_LIMIT, Wait, Wall};
use timeline::gpu::{Gpu, GpuSlice};
use timeline::intervals::{Interval, both, length, union};
use timeline::launches::Launches;
use timeline::percent;

/// A pause of this share of the span may be one-off, in percent: a dialogue, a check point, the pause between two runs.
const ONE_OFF_PCT: i64 = 10;
/// A stream that takes this share of the GPU time is one of several, in percent.
const STREAM_PCT: f64 = 5.0;
/// As many pauses of a similar length belong to the program's rhythm.
const RHYTHM: usize = 3;
/// A call of the data loader that takes this long waits for its workers, in ns.
const LOADED_NS: i64 = 10_000_000;
/// Of a pause, what comes after a launch by this much is blocked, not waiting for the CPU.
const BLOCKED_NS: i64 = 1_000_000;
/// A slice that begins this much after its stream was free and its launch was over waited for something else: for the slice
/// of another stream that ended last, if one ended meanwhile. In ns; launches take a few microseconds to arrive.
const WAITED_NS: i64 = 10_000;

/// A thread that launches nothing for this long, and then no more than [`MOST_AFTER_NS`] after the GPU is done, waited for it.
const QUIET_NS: i64 = 1_000_000;
const MOST_AFTER_NS: i64 = 500_000;

/// A launch call that takes this long, in ns, with this many slices queued before its own, waits for a place in the queue. (The
/// driver of CUDA queues about a thousand launches.)
const BLOCKED_LAUNCH_NS: i64 = 100_000;
const FULL_QUEUE: usize = 200;

/// A launch call as (thread, start, launch, slice).
type Call = (TrackId, i64, u32, u32);

/// The ends of the GPU slices of a device with their slices, sorted.
pub(super) struct Ends(Vec<(i64, u32)>);

impl Ends {
    pub(super) fn of(gpu: &Gpu<'_>) -> Self {
        let mut ends: Vec<(i64, u32)> =
            (0..gpu.len()).map(|at| (gpu.slice(at).end_ns(), at as u32)).collect();
        trace::sort(&mut ends);
        Self(ends)
    }

    /// How many slices are over at a time.
    fn n_until(&self, ns: i64) -> usize {
        self.0.partition_point(|(end_ns, _)| *end_ns <= ns)
    }

    /// The wait from `begun_ns` to `until_ns` for the slice that ended last; `None` if none ended meanwhile.
    fn awaited(&self, begun_ns: i64, until_ns: i64) -> Option<Wait> {
        let (end_ns, slice) = *self.0.get(self.n_until(until_ns).checked_sub(1)?)?;
        let waited_ns = end_ns.saturating_sub(begun_ns);
        (end_ns > begun_ns).then_some(Wait { until_ns, waited_ns, slice, on: None })
    }
}

/// The last end of each stream so far.
#[derive(Default)]
pub(super) struct Paused(Vec<(Option<trace::StreamId>, i64)>);

impl Paused {
    /// Whether the stream of a slice stood still before it, and not only for what it takes from one kernel to the next. Slices come in the
    /// order of their starts.
    pub(super) fn before(&mut self, slice: &GpuSlice) -> bool {
        let end_ns = slice.end_ns();
        match self.0.iter_mut().find(|(stream, _)| *stream == slice.stream) {
            Some((_, last_ns)) => {
                let idle_ns = slice.start_ns.saturating_sub(*last_ns);
                *last_ns = end_ns.max(*last_ns);
                idle_ns >= WAITED_NS
            }
            None => {
                self.0.push((slice.stream, end_ns));
                true
            }
        }
    }
}

/// Calls that allocate or free memory as (thread, start, duration), sorted.
#[inline(never)]
fn memory_calls(trace: &Trace) -> Vec<(TrackId, i64, i64)> {
    let of = |id: u32| {
        let name = trace.strings.get(StringId(id));
        let is_call = name.starts_with("cu") || name.starts_with("hip");
        is_call && matches!(does(name), Some(Does::Allocate | Does::Free))
    };
    let names: Vec<bool> = (0..trace.strings.len() as u32).map(of).collect();
    let mut found = Vec::new();
    if names.contains(&true) {
        each_row(trace, |row| {
            let complete = trace.phase(row) == Phase::Complete;
            if names[trace.name(row).0 as usize] && complete && trace.flags(row).has(Flags::HAS_TS)
            {
                let ns = trace.end_ns(row).saturating_sub(trace.ts_ns(row));
                found.push((trace.track(row), trace.ts_ns(row), ns));
            }
        });
        trace::sort(&mut found);
    }
    found
}

fn ns(pause: &Interval) -> i64 {
    pause.1.saturating_sub(pause.0)
}

/// The profiler's steps, and the pauses of the device in them.
struct Steps {
    /// By start. A step lasts until the next one begins.
    starts_ns: Vec<i64>,
    /// With the time of the first step before the first work, and that of the last one after the last.
    pauses: Vec<Interval>,
}

impl Steps {
    /// The steps of a trace. `worked` is from the first start to the last end on the device.
    #[inline(never)]
    fn of(trace: &Trace, worked: Interval, mut pauses: Vec<Interval>) -> Self {
        let names = 0..trace.strings.len() as u32;
        let is_step: Vec<bool> =
            names.map(|id| kineto::is_step(trace.strings.get(StringId(id)))).collect();
        let mut found: Vec<(u32, i64, i64)> = Vec::new();
        each_row(trace, |row| {
            let name = trace.name(row).0;
            let complete = trace.phase(row) == Phase::Complete;
            if is_step[name as usize]
                && complete
                && trace.flags(row).has(Flags::HAS_TS)
                && !kineto::is_gpu_side(trace.raw_category_text(row))
            {
                found.push((name, trace.ts_ns(row), trace.end_ns(row)));
            }
        });
        // (One step may stand on several threads.)
        trace::sort(&mut found);
        found.dedup_by_key(|(name, ..)| *name);
        let begin_ns = found.iter().map(|(_, start_ns, _)| *start_ns).min();
        let end_ns = found.iter().map(|(.., end_ns)| *end_ns).max();
        if let (Some(begin_ns), Some(end_ns)) = (begin_ns, end_ns) {
            pauses.push((begin_ns, worked.0));
            pauses.push((worked.1, end_ns));
        }
        let mut starts_ns: Vec<i64> = found.iter().map(|(_, start_ns, _)| *start_ns).collect();
        trace::sort(&mut starts_ns);
        Self { starts_ns, pauses }
    }

    /// Whether each of several steps has a pause of about this length.
    fn each_has(&self, of_ns: i64) -> bool {
        let alike = |pause: &&Interval| ns(pause) >= of_ns / 2 && ns(pause) / 2 <= of_ns;
        let middle = |pause: &Interval| pause.0.midpoint(pause.1);
        let within = |from: i64, to: i64| {
            self.pauses.iter().filter(alike).any(|pause| (from..to).contains(&middle(pause)))
        };
        let ends = self.starts_ns.iter().skip(1).copied().chain([i64::MAX]);
        self.starts_ns.len() > 1
            && self.starts_ns.iter().zip(ends).all(|(from, to)| within(*from, to))
    }
}

impl Wall {
    /// What of the device held up each slice.
    #[inline(never)]
    pub(super) fn add_holds(&mut self, gpu: &Gpu<'_>) {
        let mut streams: Vec<Option<trace::StreamId>> = Vec::new();
        // By stream: its last end so far.
        let mut last: Vec<Option<i64>> = Vec::new();
        // Slices of all streams that are not over yet, and the one that ended last.
        let mut running: std::collections::BinaryHeap<std::cmp::Reverse<(i64, u32)>> =
            std::collections::BinaryHeap::new();
        let mut over: Option<(i64, u32)> = None;
        for at in 0..gpu.len() {
            let slice = gpu.slice(at);
            let known = streams.iter().position(|stream| *stream == slice.stream);
            let stream = known.unwrap_or_else(|| {
                streams.push(slice.stream);
                last.push(None);
                streams.len() - 1
            });
            while let Some(std::cmp::Reverse(ended)) = running.peek().copied()
                && ended.0 <= slice.start_ns
            {
                over = Some(ended);
                running.pop();
            }
            let free_ns = last[stream].unwrap_or(i64::MIN);
            let slack_ns = self.slack_ns.get(at);
            let launched_ns =
                slack_ns.map_or(i64::MIN, |slack_ns| slice.start_ns.saturating_sub(slack_ns));
            let idle_ns = slice.start_ns.saturating_sub(free_ns).max(0);
            // (One that was free to begin earlier waited for what ended last before it began.)
            let ready_ns = free_ns.max(launched_ns);
            let waited = slice.start_ns.saturating_sub(ready_ns) >= WAITED_NS;
            let after = over.filter(|(end_ns, _)| waited && *end_ns > ready_ns);
            let late_ns = launched_ns.saturating_sub(free_ns);
            self.holds.push(Hold {
                stream: stream as u32,
                idle_ns: match after {
                    _ if last[stream].is_none() => NO_LIMIT,
                    Some(_) => idle_ns,
                    // (Of a launch that came late, its way to the device; what takes longer is another wait.)
                    None if late_ns > 0 => idle_ns.min(late_ns.saturating_add(WAITED_NS)),
                    None => 0,
                },
                after: after.and_then(|(_, other)| SmallIndex::new(other)),
            });
            if slice.end_ns() >= free_ns {
                last[stream] = Some(slice.end_ns());
            }
            running.push(std::cmp::Reverse((slice.end_ns(), at as u32)));
        }
        // (Each stream has a slice.)
        self.ends_ns = last.into_iter().flatten().collect();
        let mut total_ns = vec![0_i64; self.ends_ns.len()];
        for (at, hold) in self.holds.iter().enumerate() {
            let sum = &mut total_ns[hold.stream as usize];
            *sum = sum.saturating_add(gpu.slice(at).dur_ns);
        }
        let all_ns = total_ns.iter().fold(0_i64, |all, ns| all.saturating_add(*ns));
        let takes_part = |ns: &&i64| percent(**ns, all_ns) >= STREAM_PCT;
        self.n_streams = total_ns.iter().filter(takes_part).count();
    }

    /// The pauses of the device that are one-off.
    #[inline(never)]
    pub(super) fn add_pauses(
        &mut self,
        gpu: &Gpu<'_>,
        span_ns: i64,
        loads: &[Interval],
    ) -> Vec<Interval> {
        let mut beside = (0..gpu.n_beside()).map(|at| gpu.slice_beside(at)).peekable();
        let mut busy_until: Option<i64> = None;
        // Long pauses, each without what of it is blocked.
        let mut long: Vec<Interval> = Vec::new();
        for at in 0..gpu.len() {
            let slice = gpu.slice(at);
            while let Some(other) = beside.next_if(|other| other.start_ns < slice.start_ns) {
                busy_until = busy_until.max(Some(other.end_ns()));
            }
            let idle_ns = busy_until.map_or(0, |ns| slice.start_ns.saturating_sub(ns)).max(0);
            let queued_ns = self.slack_ns.get(at).map_or(0, |slack_ns| slack_ns.min(idle_ns));
            let free_ns = if queued_ns >= BLOCKED_NS { idle_ns - queued_ns } else { idle_ns };
            let gap = busy_until.map(|ns| (ns, slice.start_ns));
            let is_long = i128::from(free_ns) * 100 > i128::from(span_ns) * i128::from(ONE_OFF_PCT);
            // (A step that waits for its batch does so each time.)
            if is_long && gap.is_none_or(|gap| length(&both(&[gap], loads)) < idle_ns / 2) {
                long.extend(busy_until.map(|ns| (ns, ns.saturating_add(free_ns))));
            }
            busy_until = busy_until.max(Some(slice.end_ns()));
        }
        let similar = |of: i64| long.iter().filter(|other| ns(other) >= of / 2).count();
        let mut one_off: Vec<Interval> =
            long.iter().copied().filter(|pause| similar(ns(pause)) < RHYTHM).collect();
        if let (false, Some(until_ns)) = (one_off.is_empty(), busy_until) {
            let first_ns = gpu.slice(0).start_ns;
            let steps = Steps::of(gpu.trace, (first_ns, until_ns), long);
            one_off.retain(|pause| !steps.each_has(ns(pause)));
        }
        self.one_off.clone_from(&one_off);
        one_off
    }

    /// Where the CPU gets its next batch from a data loader. Where it waits for worker processes, time that it saves is lost.
    #[inline(never)]
    pub(super) fn add_loader(&mut self, gpu: &Gpu<'_>) -> Vec<Interval> {
        let trace = gpu.trace;
        let of = |id: u32| {
            let name = trace.strings.get(StringId(id));
            (name.contains("DataLoader"), name.contains("_MultiProcessingDataLoaderIter"))
        };
        let names: Vec<(bool, bool)> = (0..trace.strings.len() as u32).map(of).collect();
        let mut loads = Vec::new();
        if !names.iter().any(|(loads, _)| *loads) {
            return loads;
        }
        each_row(trace, |row| {
            let (is_loader, has_workers) = names[trace.name(row).0 as usize];
            let complete = trace.phase(row) == Phase::Complete;
            if !is_loader || !complete || !trace.flags(row).has(Flags::HAS_TS) {
                return;
            }
            let call = (trace.ts_ns(row), trace.end_ns(row));
            loads.push(call);
            if has_workers && call.1.saturating_sub(call.0) >= LOADED_NS {
                self.loaded_ns.push(call.1);
            }
        });
        trace::sort(&mut self.loaded_ns);
        union(loads)
    }

    /// How long the CPU takes from one launch to the next, by slice.
    #[inline(never)]
    pub(super) fn add_spacing(&mut self, gpu: &Gpu<'_>, launches: &Launches, ends: &Ends) {
        let trace = gpu.trace;
        let of_slice = |at: usize| {
            let launch = launches.of_slice(at).filter(|_| launches.is_sure(at))?;
            Some((trace.track(launch), trace.ts_ns(launch), launch, at as u32))
        };
        let mut calls: Vec<_> = (0..gpu.len()).filter_map(of_slice).collect();
        trace::sort(&mut calls);
        self.add_unrecorded_waits(gpu, ends, &calls);
        self.add_full_queues(gpu, ends, &calls);
        let memory = memory_calls(trace);
        for (at, (track, ts_ns, launch, slice)) in calls.iter().enumerate() {
            let is_other = |next: &&(_, _, u32, u32)| next.2 != *launch;
            let alone = at.checked_sub(1).is_none_or(|before| calls[before].2 != *launch);
            let next = calls.get(at + 1).filter(is_other);
            if let Some((_, next_ns, ..)) = next.filter(|(on, ..)| on == track && alone) {
                self.spacing_ns.set(*slice as usize, next_ns.saturating_sub(*ts_ns));
                let from = memory.partition_point(|(on, at, _)| (on, at) < (track, ts_ns));
                let own =
                    memory[from..].iter().take_while(|call| (call.0, call.1) < (*track, *next_ns));
                // (A call of the runtime may hold one of the driver.)
                let outer = own.scan(i64::MIN, |until_ns, (_, at_ns, ns)| {
                    let is_inner = at_ns < until_ns;
                    *until_ns = (*until_ns).max(at_ns.saturating_add(*ns));
                    Some(if is_inner { 0 } else { *ns })
                });
                let ns = outer.fold(0_i64, |sum, ns| sum.saturating_add(ns));
                self.allocating_ns.extend((ns > 0).then_some((*slice, ns)));
            }
        }
        trace::sort(&mut self.allocating_ns);
    }

    /// Launch calls that wait because the queue of the device is full. (What one call launches waits for nothing of itself: a graph of many
    /// kernels takes long to launch.)
    #[inline(never)]
    fn add_full_queues(&mut self, gpu: &Gpu<'_>, ends: &Ends, calls: &[Call]) {
        let firsts = calls.chunk_by(|one, next| one.2 == next.2).filter_map(|own| own.first());
        for (_, begun_ns, launch, at) in firsts {
            let until_ns = gpu.trace.end_ns(*launch);
            let queued = (*at as usize).saturating_sub(ends.n_until(until_ns));
            if until_ns.saturating_sub(*begun_ns) >= BLOCKED_LAUNCH_NS && queued >= FULL_QUEUE {
                self.waits.extend(ends.awaited(*begun_ns, until_ns));
            }
        }
    }

    /// Waits that no call shows: a thread launches nothing for long, and then just after the GPU is done. `calls` are
    /// sorted. (Where a call shows that the CPU waited then, it worked before that call.)
    #[inline(never)]
    fn add_unrecorded_waits(&mut self, gpu: &Gpu<'_>, ends: &Ends, calls: &[Call]) {
        let known = self.waits.iter().filter_map(|wait| Some((wait.on?, wait.until_ns)));
        let mut known: Vec<(TrackId, i64)> = known.collect();
        trace::sort(&mut known);
        let is_known = |on: TrackId, from_ns: i64, to_ns: i64| {
            let next = known.get(known.partition_point(|wait| *wait < (on, from_ns)));
            next.is_some_and(|wait| *wait <= (on, to_ns))
        };
        for pair in calls.windows(2) {
            let [(track, _, before, _), (on, until_ns, launch, next)] = pair else { continue };
            let begun_ns = gpu.trace.end_ns(*before);
            let quiet_ns = until_ns.saturating_sub(begun_ns);
            // (While anything runs or is queued, the GPU is not done.)
            let done = ends.n_until(*until_ns) >= *next as usize;
            if track != on || before == launch || quiet_ns < QUIET_NS || !done {
                continue;
            }
            let most_ns = MOST_AFTER_NS.min(quiet_ns / 10);
            let soon = |wait: &Wait| {
                let end_ns = begun_ns.saturating_add(wait.waited_ns);
                until_ns.saturating_sub(end_ns) <= most_ns && !is_known(*on, end_ns, *until_ns)
            };
            self.waits.extend(ends.awaited(begun_ns, *until_ns).filter(soon));
        }
    }

    /// Calls that wait until the GPU is done.
    #[inline(never)]
    pub(super) fn add_synchronisations(&mut self, gpu: &Gpu<'_>, ends: &Ends) {
        let trace = gpu.trace;
        let names = 0..trace.strings.len() as u32;
        let waits: Vec<bool> =
            names.map(|id| synchronizes(trace.strings.get(StringId(id)))).collect();
        if !waits.contains(&true) || gpu.is_empty() {
            return;
        }
        let mut found = Vec::new();
        each_row(trace, |row| {
            let complete = trace.phase(row) == Phase::Complete;
            if waits[trace.name(row).0 as usize] && complete && trace.flags(row).has(Flags::HAS_TS)
            {
                found.push((trace.track(row), trace.ts_ns(row), trace.end_ns(row)));
            }
        });
        let awaited = found.into_iter().filter_map(|(track, begun_ns, over_ns)| {
            Some(Wait { on: Some(track), ..ends.awaited(begun_ns, over_ns)? })
        });
        self.waits.extend(awaited);
    }
}
