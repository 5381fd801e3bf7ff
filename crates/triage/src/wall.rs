//! How much sooner the window would end if some GPU time were gone: what advice is worth.
//!
//! GPU time that goes away shortens the wall time only where the GPU is what everything waits for. The model replays the
//! streams. The *lead of a stream* grows by the time that is removed from it; each slice limits it, because no slice begins
//! before its launch call is over, nor before the slice of another stream that it waited for ([`Hold`]). The *lead of the
//! CPU* follows where the CPU waited for the GPU (a synchronising call, a blocking copy): what it launches afterwards comes
//! sooner. Where the GPU waits for the CPU, the lead is lost. A launch that goes away gives the CPU a lead, too: where a
//! stream is idle until its next launch, that slice begins sooner.
//!
//! The lead of the stream that ends last is an upper bound: waits that no time shows may hold up a slice, and nothing says
//! that all of the time goes away.

use catalog::RawKind;
use dialect::calls::synchronizes;
use trace::{Flags, Phase, StringId, each_row};

use timeline::gpu::{Extent, Gpu};
use timeline::intervals::{Interval, both, length, union};
use timeline::launches::Launches;
use timeline::percent;

/// Below this share of the GPU span, in thousandths, nothing is advised.
pub(crate) const LEAST_PERMILLE: i64 = 5;
/// Below this time nothing is advised, in ns.
pub(crate) const LEAST_NS: i64 = 10_000;
/// Shares of the GPU span from which advice is of priority 1, 2 and 3, in thousandths.
const PRIORITIES: [(u8, i64); 3] = [(1, 50), (2, 20), (3, LEAST_PERMILLE)];

/// No limit, and no time.
const UNKNOWN: i64 = i64::MAX;

/// A pause of this share of the span may be one-off, in percent: a dialogue, a check point, the pause between two runs.
const ONE_OFF_PCT: i64 = 10;
/// An earlier step that takes this share of the span before the first slice that counts is no part of it, in percent.
const EARLIER_PCT: f64 = 1.0;
/// A stream that takes this share of the GPU time is one of several, in percent.
const STREAM_PCT: f64 = 5.0;
/// From this share of the span on, time that is lost to what the file does not hold makes bounds meaningless, in percent.
const UNREAL_PCT: f64 = 50.0;
/// As many pauses of a similar length belong to the program's rhythm.
const RHYTHM: usize = 3;
/// A call of the data loader that takes this long waits for its workers, in ns.
const LOADED_NS: i64 = 10_000_000;
/// Of a pause, what comes after a launch by this much is blocked, not waiting for the CPU.
const BLOCKED_NS: i64 = 1_000_000;
/// A slice that begins this much after its stream was free and its launch was over waited for something else: for the slice
/// of another stream that ended last, if one ended meanwhile. In ns; launches take a few microseconds to arrive.
const WAITED_NS: i64 = 10_000;

/// What goes away with a change of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Removed {
    /// The slice that becomes shorter, or is gone.
    pub(crate) slice: u32,
    /// GPU time.
    pub(crate) gpu_ns: i64,
    /// CPU time of its launch, if that is gone.
    pub(crate) cpu_ns: i64,
}

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

/// A thread that launches nothing for this long, and then no more than [`MOST_AFTER_NS`] after the GPU is done, waited for it.
const QUIET_NS: i64 = 1_000_000;
const MOST_AFTER_NS: i64 = 500_000;

/// A launch call that takes this long, in ns, with this many slices queued before its own, waits for a place in the queue. (The
/// driver of CUDA queues about a thousand launches.)
const BLOCKED_LAUNCH_NS: i64 = 100_000;
const FULL_QUEUE: usize = 200;

/// No slice.
const NONE: u32 = u32::MAX;

/// What of the device held up a slice.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// Its stream, by first appearance.
    stream: u32,
    /// How long its stream was idle before it for want of its launch, or of `after`; no limit where it is the stream's first.
    idle_ns: i64,
    /// The slice of another stream that it waited for; [`NONE`] where no time shows one.
    after: u32,
}

/// A launch call as (thread, start, launch, slice).
type Call = (trace::TrackId, i64, u32, u32);

/// The ends of the GPU slices of a device with their slices, sorted.
struct Ends(Vec<(i64, u32)>);

impl Ends {
    fn of(gpu: &Gpu<'_>) -> Self {
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
        (end_ns > begun_ns).then_some(Wait { until_ns, waited_ns, slice })
    }
}

/// The GPU slices of a device with what held up each of them.
#[derive(Debug)]
pub(crate) struct Wall {
    /// By slice: how much sooner it could begin for all its launch says; [`UNKNOWN`] where the launch is not recorded.
    slack_ns: Vec<i64>,
    /// By slice: when its launch began; [`UNKNOWN`] where it is not recorded.
    launched_ns: Vec<i64>,
    /// By slice: from the begin of its launch to the next launch on the same thread; [`UNKNOWN`] where that is not recorded, or
    /// one call launched several slices.
    spacing_ns: Vec<i64>,
    /// By slice.
    holds: Vec<Hold>,
    /// By stream: its last end.
    ends_ns: Vec<i64>,
    /// Streams that each take a noticeable part of the GPU time.
    n_streams: usize,
    /// By end.
    waits: Vec<Wait>,
    /// When the CPU went on after it waited for the workers of the data loader: a CPU that comes earlier waits longer.
    loaded_ns: Vec<i64>,
    /// From the first start to the last end, without what is lost, without `one_off_ns`, and without an earlier step.
    pub(crate) span_ns: i64,
    /// The sum of pauses that are no part of the program's rhythm, each above a tenth of the span.
    pub(crate) one_off_ns: i64,
    /// Whether the GPU was idle with work queued: what ran then, if anything, is not in the file.
    blocked: bool,
    /// Whether it was so for most of the time.
    unreal: bool,
    /// Whether the GPU waited for set-up.
    set_up: bool,
    /// Whether the device first ran an earlier step, for a noticeable part of the time.
    earlier: bool,
    /// Whether launches are recorded: without them nothing limits the bound but the slices themselves.
    pub(crate) linked: bool,
}

/// Idle time that another run does not have, or that says nothing: no share counts it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost<'a> {
    /// Idle with work queued.
    pub(crate) blocked: &'a [Interval],
    /// The set-up of a first run.
    pub(crate) set_up: &'a [Interval],
}

impl Wall {
    /// The slices of one device.
    #[inline(never)]
    pub(crate) fn of(gpu: &Gpu<'_>, launches: &Launches, lost: Lost<'_>) -> Self {
        let trace = gpu.trace;
        let mut extent = Extent::default();
        let n = gpu.len();
        let mut wall = Self {
            slack_ns: vec![UNKNOWN; n],
            launched_ns: vec![UNKNOWN; n],
            spacing_ns: vec![UNKNOWN; n],
            holds: Vec::with_capacity(n),
            ends_ns: Vec::new(),
            n_streams: 0,
            waits: Vec::new(),
            loaded_ns: Vec::new(),
            span_ns: 0,
            one_off_ns: 0,
            blocked: !lost.blocked.is_empty(),
            unreal: false,
            set_up: !lost.set_up.is_empty(),
            earlier: false,
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
            // (A copy from pageable memory blocks the CPU, although its call may be over before the copy is.)
            let copies = gpu.works[slice.work].kind == RawKind::Memcpy;
            // (A blocking copy begins before its call is over: with less to wait for, it begins as soon as it is launched.)
            let from_ns = if copies && over_ns > slice.start_ns { begun_ns } else { over_ns };
            wall.slack_ns[at] = slice.start_ns.saturating_sub(from_ns).max(0);
            if copies && over_ns > slice.start_ns {
                let waited_ns = over_ns.min(slice.end_ns()).saturating_sub(begun_ns).max(0);
                wall.waits.push(Wait { until_ns: over_ns, waited_ns, slice: at as u32 });
            }
        }
        (0..gpu.n_beside()).for_each(|at| extent.add(&gpu.slice_beside(at)));
        wall.add_holds(gpu);
        let loads = wall.add_loader(gpu);
        let mut all = wall.add_pauses(gpu, extent.span_ns(), &loads);
        let ends = Ends::of(gpu);
        wall.add_spacing(gpu, launches, &ends);
        all.extend(lost.blocked.iter().chain(lost.set_up));
        wall.unreal = percent(length(lost.blocked), extent.span_ns()) >= UNREAL_PCT;
        // (Slices that were launched before profiling, and that nothing counts, begin first.)
        let earlier =
            (extent.first_ns, if n == 0 { extent.first_ns } else { gpu.slice(0).start_ns });
        wall.earlier = percent(length(&[earlier]), extent.span_ns()) >= EARLIER_PCT;
        all.extend(Some(earlier).filter(|_| wall.earlier));
        wall.span_ns = extent.span_ns().saturating_sub(length(&union(all))).max(0);
        wall.add_synchronisations(gpu, &ends);
        trace::sort(&mut wall.waits);
        wall
    }

    /// What of the device held up each slice.
    #[inline(never)]
    fn add_holds(&mut self, gpu: &Gpu<'_>) {
        let mut streams: Vec<Option<trace::StreamId>> = Vec::new();
        // By stream: the slice that ended last, and its end.
        let mut last: Vec<(u32, i64)> = Vec::new();
        // Slices of all streams that are not over yet, and the one that ended last.
        let mut running: std::collections::BinaryHeap<std::cmp::Reverse<(i64, u32)>> =
            std::collections::BinaryHeap::new();
        let mut over: Option<(i64, u32)> = None;
        for at in 0..gpu.len() {
            let slice = gpu.slice(at);
            let known = streams.iter().position(|stream| *stream == slice.stream);
            let stream = known.unwrap_or_else(|| {
                streams.push(slice.stream);
                last.push((NONE, i64::MIN));
                streams.len() - 1
            });
            while let Some(std::cmp::Reverse(ended)) = running.peek().copied()
                && ended.0 <= slice.start_ns
            {
                over = Some(ended);
                running.pop();
            }
            let (before, free_ns) = last[stream];
            let slack_ns = self.slack_ns[at];
            let launched_ns = match slack_ns {
                UNKNOWN => i64::MIN,
                slack_ns => slice.start_ns.saturating_sub(slack_ns),
            };
            let idle_ns = slice.start_ns.saturating_sub(free_ns).max(0);
            // (One that was free to begin earlier waited for what ended last before it began.)
            let ready_ns = free_ns.max(launched_ns);
            let waited = slice.start_ns.saturating_sub(ready_ns) >= WAITED_NS;
            let after = over.filter(|(end_ns, _)| waited && *end_ns > ready_ns);
            let late_ns = launched_ns.saturating_sub(free_ns);
            self.holds.push(Hold {
                stream: stream as u32,
                idle_ns: match after {
                    _ if before == NONE => UNKNOWN,
                    Some(_) => idle_ns,
                    // (Of a launch that came late, its way to the device; what takes longer is another wait.)
                    None if late_ns > 0 => idle_ns.min(late_ns.saturating_add(WAITED_NS)),
                    None => 0,
                },
                after: after.map_or(NONE, |(_, other)| other),
            });
            if slice.end_ns() >= free_ns {
                last[stream] = (at as u32, slice.end_ns());
            }
            running.push(std::cmp::Reverse((slice.end_ns(), at as u32)));
        }
        self.ends_ns = last.into_iter().map(|(_, end_ns)| end_ns).collect();
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
    fn add_pauses(&mut self, gpu: &Gpu<'_>, span_ns: i64, loads: &[Interval]) -> Vec<Interval> {
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
            let slack_ns = self.slack_ns[at];
            let is_blocked = slack_ns != UNKNOWN && slack_ns.min(idle_ns) >= BLOCKED_NS;
            let free_ns = if is_blocked { idle_ns - slack_ns.min(idle_ns) } else { idle_ns };
            let gap = busy_until.map(|ns| (ns, slice.start_ns));
            let is_long = i128::from(free_ns) * 100 > i128::from(span_ns) * i128::from(ONE_OFF_PCT);
            // (A step that waits for its batch does so each time.)
            if is_long && gap.is_none_or(|gap| length(&both(&[gap], loads)) < idle_ns / 2) {
                long.extend(busy_until.map(|ns| (ns, ns.saturating_add(free_ns))));
            }
            busy_until = busy_until.max(Some(slice.end_ns()));
        }
        let ns = |pause: &Interval| pause.1.saturating_sub(pause.0);
        let similar = |of: i64| long.iter().filter(|other| ns(other) >= of / 2).count();
        let one_off: Vec<Interval> =
            long.iter().copied().filter(|pause| similar(ns(pause)) < RHYTHM).collect();
        self.one_off_ns = length(&one_off);
        one_off
    }

    /// Where the CPU gets its next batch from a data loader. Where it waits for worker processes, time that it saves is lost.
    #[inline(never)]
    fn add_loader(&mut self, gpu: &Gpu<'_>) -> Vec<Interval> {
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
    fn add_spacing(&mut self, gpu: &Gpu<'_>, launches: &Launches, ends: &Ends) {
        let trace = gpu.trace;
        let of_slice = |at: usize| {
            let launch = launches.of_slice(at).filter(|_| launches.is_sure(at))?;
            Some((trace.track(launch), trace.ts_ns(launch), launch, at as u32))
        };
        let mut calls: Vec<_> = (0..gpu.len()).filter_map(of_slice).collect();
        trace::sort(&mut calls);
        self.add_unrecorded_waits(gpu, ends, &calls);
        self.add_full_queues(gpu, ends, &calls);
        for (at, (track, ts_ns, launch, slice)) in calls.iter().enumerate() {
            let is_other = |next: &&(_, _, u32, u32)| next.2 != *launch;
            let alone = at.checked_sub(1).is_none_or(|before| calls[before].2 != *launch);
            let next = calls.get(at + 1).filter(is_other);
            if let Some((_, next_ns, ..)) = next.filter(|(on, ..)| on == track && alone) {
                self.spacing_ns[*slice as usize] = next_ns.saturating_sub(*ts_ns);
            }
        }
    }

    /// Launch calls that wait because the queue of the device is full.
    #[inline(never)]
    fn add_full_queues(&mut self, gpu: &Gpu<'_>, ends: &Ends, calls: &[Call]) {
        for (_, begun_ns, launch, at) in calls {
            let until_ns = gpu.trace.end_ns(*launch);
            let queued = (*at as usize).saturating_sub(ends.n_until(until_ns));
            if until_ns.saturating_sub(*begun_ns) >= BLOCKED_LAUNCH_NS && queued >= FULL_QUEUE {
                self.waits.extend(ends.awaited(*begun_ns, until_ns));
            }
        }
    }

    /// Waits that no call shows: a thread launches nothing for long, and then just after the GPU is done. `calls` are
    /// sorted.
    #[inline(never)]
    fn add_unrecorded_waits(&mut self, gpu: &Gpu<'_>, ends: &Ends, calls: &[Call]) {
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
                until_ns.saturating_sub(begun_ns.saturating_add(wait.waited_ns)) <= most_ns
            };
            self.waits.extend(ends.awaited(begun_ns, *until_ns).filter(soon));
        }
    }

    /// The CPU time that a launch of these slices takes: the median time to the next launch of their thread. `None` where it is
    /// not recorded.
    pub(crate) fn launch_ns(&self, slices: impl Iterator<Item = u32>) -> Option<i64> {
        let of = |at: u32| self.spacing_ns.get(at as usize).copied();
        let mut times: Vec<i64> = slices.filter_map(of).filter(|ns| *ns != UNKNOWN).collect();
        let middle = times.len().checked_sub(1)? / 2;
        trace::sort(&mut times);
        times.get(middle).copied()
    }

    /// The CPU time from the launch of a slice to the next one; no limit where it is not recorded.
    pub(crate) fn spacing_ns(&self, slice: u32) -> i64 {
        self.spacing_ns.get(slice as usize).copied().unwrap_or(UNKNOWN)
    }

    /// Whether a slice has a launch call of its own.
    pub(crate) fn is_launched_alone(&self, slice: u32) -> bool {
        self.spacing_ns.get(slice as usize).is_some_and(|ns| *ns != UNKNOWN)
    }

    /// Calls that wait until the GPU is done.
    #[inline(never)]
    fn add_synchronisations(&mut self, gpu: &Gpu<'_>, ends: &Ends) {
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
                found.push((trace.ts_ns(row), trace.end_ns(row)));
            }
        });
        let awaited =
            found.into_iter().filter_map(|(begun_ns, over_ns)| ends.awaited(begun_ns, over_ns));
        self.waits.extend(awaited);
    }

    /// How much sooner the window ends without this GPU time: `removed` is (slice, ns), sorted by slice.
    pub(crate) fn saved_ns(&self, removed: &[(u32, i64)]) -> i64 {
        let of =
            |(slice, gpu_ns): &(u32, i64)| Removed { slice: *slice, gpu_ns: *gpu_ns, cpu_ns: 0 };
        self.saved_without(&removed.iter().map(of).collect::<Vec<_>>())
    }

    /// The same, with the launches that go away. `removed` is sorted by slice.
    #[inline(never)]
    pub(crate) fn saved_without(&self, removed: &[Removed]) -> i64 {
        let Some(Removed { slice: first, .. }) = removed.first() else { return 0 };
        let first = *first as usize;
        let mut left = removed.iter().peekable();
        let mut waits = self.waits.iter().peekable();
        let mut loaded = self.loaded_ns.iter().peekable();
        // The leads of slices from the first one on at their ends, and of streams. Before it nothing changes.
        let mut of_slices: Vec<i64> = Vec::with_capacity(self.holds.len().saturating_sub(first));
        let mut of_streams = vec![0_i64; self.ends_ns.len()];
        let mut cpu_ns = 0_i64;
        for (at, hold) in self.holds.iter().enumerate().skip(first) {
            let lead_of = |slice: u32| {
                let place = (slice as usize).checked_sub(first);
                place.and_then(|place| of_slices.get(place)).copied().unwrap_or_default()
            };
            let launched_ns = self.launched_ns[at];
            while launched_ns != UNKNOWN
                && let Some(wait) = waits.next_if(|wait| wait.until_ns <= launched_ns)
            {
                // (A CPU that comes earlier only waits longer.)
                cpu_ns = lead_of(wait.slice).min(cpu_ns.saturating_add(wait.waited_ns));
            }
            while launched_ns != UNKNOWN && loaded.next_if(|ns| **ns <= launched_ns).is_some() {
                cpu_ns = 0;
            }
            let mut lead_ns = of_streams[hold.stream as usize];
            let slack_ns = self.slack_ns[at];
            if hold.after != NONE {
                let free_ns = lead_ns.saturating_add(hold.idle_ns);
                lead_ns = lead_of(hold.after).min(free_ns);
                if slack_ns != UNKNOWN {
                    lead_ns = lead_ns.min(cpu_ns.saturating_add(slack_ns));
                }
            } else if slack_ns != UNKNOWN {
                let launched_ns = cpu_ns.min(lead_ns.saturating_add(hold.idle_ns));
                lead_ns = lead_ns.min(cpu_ns.saturating_add(slack_ns)).max(launched_ns);
            }
            while let Some(gone) = left.next_if(|gone| gone.slice as usize == at) {
                lead_ns = lead_ns.saturating_add(gone.gpu_ns);
                cpu_ns = cpu_ns.saturating_add(gone.cpu_ns);
            }
            of_streams[hold.stream as usize] = lead_ns;
            of_slices.push(lead_ns);
        }
        let end_ns = self.ends_ns.iter().copied().max().unwrap_or_default();
        let sooner_ns =
            self.ends_ns.iter().zip(&of_streams).map(|(ns, lead_ns)| ns.saturating_sub(*lead_ns));
        end_ns.saturating_sub(sooner_ns.max().unwrap_or(end_ns)).max(0)
    }

    /// What shares are of, in words.
    pub(crate) fn span(&self) -> String {
        let excluded = [
            (self.earlier, "the earlier step"),
            (self.blocked, "the blocked time"),
            (self.set_up, "set-up"),
            (self.one_off_ns > 0, "one-off pauses"),
        ];
        let excluded: Vec<&str> =
            excluded.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect();
        match excluded.as_slice() {
            [] => "the GPU span".to_owned(),
            [only] => format!("the GPU span without {only}"),
            [first @ .., last] => {
                format!("the GPU span without {} and {last}", first.join(", "))
            }
        }
    }

    /// Whether the CPU waits for the GPU while several streams do much of the work. Which of them a wait is for is not
    /// recorded, so the model follows the one that ended last, and may be wrong by more than a factor of two.
    pub(crate) fn is_vague(&self) -> bool {
        self.n_streams > 1 && !self.waits.is_empty()
    }

    /// Whether most of the time is lost to something that the file does not hold: another client of the GPU, a slow clock. What
    /// a change saves in such a run says nothing of another one.
    pub(crate) fn is_unreal(&self) -> bool {
        self.unreal
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

#[cfg(test)]
mod tests;
