//! How much sooner a device would be done if some work were gone: what advice is worth.
//!
//! GPU time that goes away shortens the wall time only where the GPU is what everything waits for. The model replays the
//! streams. The *lead of a stream* grows by the time that is removed from it; each slice limits it, because no slice begins
//! before its launch call is over, nor before the slice of another stream that it waited for (`Hold`). The *lead of the
//! CPU* follows where the CPU waited for the GPU (a synchronising call, a blocking copy): what it launches afterwards comes
//! sooner. Where the GPU waits for the CPU, the lead is lost. CPU time that goes away, with a launch or with an op, gives the CPU
//! a lead, too: where a stream is idle until its next launch, that slice begins sooner.
//!
//! The lead of the stream that ends last is an upper bound: waits that no time shows may hold up a slice, and nothing says
//! that all of the time goes away.
//!
//! Constraints of this crate:
//!
//! * a bound on work that goes away comes from here (docs/adr/0027-one-replay-for-bounds.md has the others);
//! * it knows no advice: what goes away with a change is its caller's matter.

#![warn(unreachable_pub)]

mod limits;

use catalog::RawKind;

use dialect::calls::launches_graph;
use limits::{Ends, Paused};
use timeline::gpu::{Extent, Gpu};
use timeline::intervals::{Interval, both, length, union, without};
use timeline::launches::Launches;
use timeline::percent;
use trace::{SmallIndex, TrackId};

/// A time that nothing limits.
const NO_LIMIT: i64 = i64::MAX;

/// An earlier step that takes this share of the span before the first slice that counts is no part of it, in percent.
const EARLIER_PCT: f64 = 1.0;
/// From this share of the span on, time that is lost to what the file does not hold makes bounds meaningless, in percent.
const UNREAL_PCT: f64 = 50.0;

/// What goes away with a change of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Removed {
    /// The slice that becomes shorter, or is gone.
    pub slice: u32,
    /// GPU time.
    pub gpu_ns: i64,
    /// CPU time of its launch, if that is gone.
    pub cpu_ns: i64,
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
    /// The thread of the call that shows the wait; `None` where none does.
    on: Option<TrackId>,
}

/// What of the device held up a slice.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// Its stream, by first appearance.
    stream: u32,
    /// How long its stream was idle before it for want of its launch, or of `after`; no limit where it is the stream's first.
    idle_ns: i64,
    /// The slice of another stream that it waited for; `None` where no time shows one.
    after: Option<SmallIndex>,
}

/// A time of each slice, where it is known, in eight bytes: `i64::MAX` is none, as no time of a trace is that long.
#[derive(Debug)]
struct Times(Vec<i64>);

impl Times {
    fn unknown(n: usize) -> Self {
        Self(vec![i64::MAX; n])
    }

    #[inline]
    fn get(&self, slice: usize) -> Option<i64> {
        self.0.get(slice).copied().filter(|ns| *ns != i64::MAX)
    }

    fn set(&mut self, slice: usize, ns: i64) {
        self.0[slice] = ns;
    }
}

/// The GPU slices of a device with what held up each of them.
#[derive(Debug)]
pub struct Wall {
    /// By slice: how much sooner it could begin for all its launch says, where the launch is recorded.
    slack_ns: Times,
    /// By slice: when its launch began, where it is recorded.
    launched_ns: Times,
    /// By slice: from the begin of its launch to the next launch on the same thread, where that is recorded and the call launched
    /// no other slice.
    spacing_ns: Times,
    /// Of that, the time of calls that allocate or free memory: (slice, ns), by slice, only where there is some.
    allocating_ns: Vec<(u32, i64)>,
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
    /// From the first start to the last end, without what is lost, without `one_off`, and without an earlier step; or of
    /// the warm iterations, without the same.
    pub span_ns: i64,
    /// Pauses that are no part of the program's rhythm, each above a tenth of the span.
    one_off: Vec<Interval>,
    /// How many warm iterations the span is of, if it is of these.
    n_warm: Option<usize>,
    /// Whether the GPU was idle with work queued: what ran then, if anything, is not in the file.
    blocked: bool,
    /// Whether it was so for most of the time.
    unreal: bool,
    /// Whether the GPU waited for set-up.
    set_up: bool,
    /// Whether the device first ran an earlier step, for a noticeable part of the time.
    earlier: bool,
    /// Whether launches are recorded: without them nothing limits the bound but the slices themselves.
    pub linked: bool,
}

/// Idle time that another run does not have, or that says nothing: no share counts it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lost<'a> {
    /// Idle with work queued.
    pub blocked: &'a [Interval],
    /// The set-up of a first run.
    pub set_up: &'a [Interval],
}

impl Wall {
    /// The slices of one device.
    #[inline(never)]
    pub fn of(gpu: &Gpu<'_>, launches: &Launches, lost: Lost<'_>) -> Self {
        let trace = gpu.trace;
        let mut extent = Extent::default();
        let n = gpu.len();
        let mut wall = Self {
            slack_ns: Times::unknown(n),
            launched_ns: Times::unknown(n),
            spacing_ns: Times::unknown(n),
            allocating_ns: Vec::new(),
            holds: Vec::with_capacity(n),
            ends_ns: Vec::new(),
            n_streams: 0,
            waits: Vec::new(),
            loaded_ns: Vec::new(),
            span_ns: 0,
            one_off: Vec::new(),
            n_warm: None,
            blocked: !lost.blocked.is_empty(),
            unreal: false,
            set_up: !lost.set_up.is_empty(),
            earlier: false,
            linked: false,
        };
        let by_graph = trace.strings.marked(&launches_graph);
        let mut paused = Paused::default();
        for at in 0..n {
            let slice = gpu.slice(at);
            extent.add(&slice);
            let is_paused = paused.before(&slice);
            let Some(launch) = launches.of_slice(at).filter(|_| launches.is_sure(at)) else {
                continue;
            };
            let (begun_ns, over_ns) = (trace.ts_ns(launch), trace.end_ns(launch));
            wall.linked = true;
            wall.launched_ns.set(at, begun_ns);
            // (A copy from pageable memory blocks the CPU, although its call may be over before the copy is.)
            let copies = gpu.works[slice.work].kind == RawKind::Memcpy;
            // (A blocking copy begins before its call is over: with less to wait for, it begins as soon as it is launched.)
            // (A call of a graph may still run when its kernels start: one that follows another without a pause may have been queued before.)
            let is_queued = by_graph[trace.name(launch).0 as usize] && !is_paused;
            let is_early = over_ns > slice.start_ns && (copies || is_queued);
            let from_ns = if is_early { begun_ns } else { over_ns };
            wall.slack_ns.set(at, slice.start_ns.saturating_sub(from_ns).max(0));
            if copies && over_ns > slice.start_ns {
                let waited_ns = over_ns.min(slice.end_ns()).saturating_sub(begun_ns).max(0);
                let on = Some(trace.track(launch));
                wall.waits.push(Wait { until_ns: over_ns, waited_ns, slice: at as u32, on });
            }
        }
        (0..gpu.n_beside()).for_each(|at| extent.add(&gpu.slice_beside(at)));
        wall.add_holds(gpu);
        let loads = wall.add_loader(gpu);
        let mut all = wall.add_pauses(gpu, extent.span_ns(), &loads);
        let ends = Ends::of(gpu);
        wall.add_synchronisations(gpu, &ends);
        wall.add_spacing(gpu, launches, &ends);
        all.extend(lost.blocked.iter().chain(lost.set_up));
        wall.unreal = percent(length(lost.blocked), extent.span_ns()) >= UNREAL_PCT;
        // (Slices that were launched before profiling, and that nothing counts, begin first.)
        let earlier =
            (extent.first_ns, if n == 0 { extent.first_ns } else { gpu.slice(0).start_ns });
        wall.earlier = percent(length(&[earlier]), extent.span_ns()) >= EARLIER_PCT;
        all.extend(Some(earlier).filter(|_| wall.earlier));
        wall.span_ns = extent.span_ns().saturating_sub(length(&union(all))).max(0);
        trace::sort(&mut wall.waits);
        wall
    }

    /// The same with shares of warm iterations: `n` of them, within `windows`. What goes away is in them alone, too.
    #[must_use]
    pub fn of_warm(mut self, windows: &[Interval], n: usize, lost: Lost<'_>) -> Self {
        self.one_off = both(&self.one_off, windows);
        // (A little of it is neither left out nor worth a word.)
        let much = |times: &[Interval]| {
            let own = both(times, windows);
            if percent(length(&own), length(windows)) < EARLIER_PCT { Vec::new() } else { own }
        };
        let (blocked, set_up) = (much(lost.blocked), much(lost.set_up));
        (self.blocked, self.set_up) = (!blocked.is_empty(), !set_up.is_empty());
        self.earlier = false;
        let all = [&blocked[..], &set_up[..], &self.one_off[..]].concat();
        self.span_ns = length(&without(windows, &union(all)));
        self.n_warm = Some(n);
        self
    }

    /// The CPU time that a launch of these slices takes: the median of [`Self::spacing_ns`]. `None` where it is not recorded.
    pub fn launch_ns(&self, slices: impl Iterator<Item = u32>) -> Option<i64> {
        let of = |at: &u32| self.is_launched_alone(*at);
        let mut times: Vec<i64> = slices.filter(of).map(|at| self.spacing_ns(at)).collect();
        let middle = times.len().checked_sub(1)? / 2;
        trace::sort(&mut times);
        times.get(middle).copied()
    }

    /// The CPU time from the launch of a slice to the next one of its thread, without calls that allocate or free memory: these stay
    /// where a launch goes away. No limit where it is not recorded.
    pub fn spacing_ns(&self, slice: u32) -> i64 {
        let Some(ns) = self.spacing_ns.get(slice as usize) else { return NO_LIMIT };
        let known = self.allocating_ns.binary_search_by_key(&slice, |(of, _)| *of);
        ns.saturating_sub(known.map_or(0, |at| self.allocating_ns[at].1)).max(0)
    }

    /// Whether the next launch of its thread comes this long after that of a slice.
    pub fn is_next_after(&self, slice: u32, apart_ns: i64) -> bool {
        self.spacing_ns.get(slice as usize) == Some(apart_ns)
    }

    /// Whether memory is allocated or freed between launches.
    pub fn allocates(&self) -> bool {
        !self.allocating_ns.is_empty()
    }

    /// Whether a slice has a launch call of its own.
    pub fn is_launched_alone(&self, slice: u32) -> bool {
        self.spacing_ns.get(slice as usize).is_some()
    }

    /// How much sooner the window ends without this GPU time: `removed` is (slice, ns), sorted by slice.
    pub fn saved_ns(&self, removed: &[(u32, i64)]) -> i64 {
        let of =
            |(slice, gpu_ns): &(u32, i64)| Removed { slice: *slice, gpu_ns: *gpu_ns, cpu_ns: 0 };
        self.saved_without(&removed.iter().map(of).collect::<Vec<_>>())
    }

    /// The same, with the launches that go away. `removed` is sorted by slice.
    pub fn saved_without(&self, removed: &[Removed]) -> i64 {
        self.saved_with_ops(removed, &[])
    }

    /// The same, with ops of launching threads that go away: disjoint times, sorted. (Of launches in them `cpu_ns` is 0.)
    #[inline(never)]
    pub fn saved_with_ops(&self, removed: &[Removed], ops: &[Interval]) -> i64 {
        let first = match (removed.first(), ops) {
            (None, []) => return 0,
            (Some(gone), []) => gone.slice as usize,
            _ => 0,
        };
        let mut left = removed.iter().peekable();
        // The leads of slices from the first one on at their ends, and of streams. Before it nothing changes.
        let mut of_slices: Vec<i64> = Vec::with_capacity(self.holds.len().saturating_sub(first));
        let mut of_streams = vec![0_i64; self.ends_ns.len()];
        let mut cpu = Cpu::of(self, ops);
        for (at, hold) in self.holds.iter().enumerate().skip(first) {
            let lead_of = |slice: u32| {
                let place = (slice as usize).checked_sub(first);
                place.and_then(|place| of_slices.get(place)).copied().unwrap_or_default()
            };
            if let Some(launched_ns) = self.launched_ns.get(at) {
                cpu.go_on(launched_ns, lead_of);
            }
            let mut lead_ns = of_streams[hold.stream as usize];
            let slack_ns = self.slack_ns.get(at);
            if let Some(after) = hold.after {
                let free_ns = lead_ns.saturating_add(hold.idle_ns);
                lead_ns = lead_of(after.get()).min(free_ns);
                if let Some(slack_ns) = slack_ns {
                    lead_ns = lead_ns.min(cpu.lead_ns.saturating_add(slack_ns));
                }
            } else if let Some(slack_ns) = slack_ns {
                let launched_ns = cpu.lead_ns.min(lead_ns.saturating_add(hold.idle_ns));
                lead_ns = lead_ns.min(cpu.lead_ns.saturating_add(slack_ns)).max(launched_ns);
            }
            while let Some(gone) = left.next_if(|gone| gone.slice as usize == at) {
                lead_ns = lead_ns.saturating_add(gone.gpu_ns);
                cpu.lead_ns = cpu.lead_ns.saturating_add(gone.cpu_ns);
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
    pub fn span(&self) -> String {
        let excluded = [
            (self.earlier, "the earlier step"),
            (self.blocked, "the blocked time"),
            (self.set_up, "set-up"),
            (!self.one_off.is_empty(), "one-off pauses"),
        ];
        let excluded: Vec<&str> =
            excluded.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect();
        let whole = match self.n_warm {
            Some(n) => format!("the {n} warm iterations"),
            None => "the GPU span".to_owned(),
        };
        match excluded.as_slice() {
            [] => whole,
            [only] => format!("{whole} without {only}"),
            [first @ .., last] => format!("{whole} without {} and {last}", first.join(", ")),
        }
    }

    /// What the model may leave out: how long the CPU waits for the GPU in all while several streams do much of the work. Which of
    /// them a wait is for is not recorded, so the model follows the one that ended last. No other answer saves more than all waits.
    pub fn unsure_ns(&self) -> i64 {
        if self.n_streams <= 1 {
            return 0;
        }
        self.waits.iter().fold(0_i64, |sum, wait| sum.saturating_add(wait.waited_ns))
    }

    /// Whether most of the time is lost to something that the file does not hold: another client of the GPU, a slow clock. What
    /// a change saves in such a run says nothing of another one.
    pub fn is_unreal(&self) -> bool {
        self.unreal
    }
}

/// The lead of the CPU, from one launch to the next.
struct Cpu<'a> {
    lead_ns: i64,
    waits: &'a [Wait],
    loaded_ns: &'a [i64],
    ops: &'a [Interval],
}

impl<'a> Cpu<'a> {
    fn of(wall: &'a Wall, ops: &'a [Interval]) -> Self {
        Self { lead_ns: 0, waits: &wall.waits, loaded_ns: &wall.loaded_ns, ops }
    }

    /// What it does until a launch begins. `lead_of` tells the lead of a slice.
    fn go_on(&mut self, until_ns: i64, lead_of: impl Fn(u32) -> i64) {
        loop {
            let op_ns = self.ops.first().map_or(NO_LIMIT, |(_, to)| *to);
            let wait_ns = self.waits.first().map_or(NO_LIMIT, |wait| wait.until_ns);
            let loaded_ns = self.loaded_ns.first().copied().unwrap_or(NO_LIMIT);
            let next_ns = op_ns.min(wait_ns).min(loaded_ns);
            if next_ns > until_ns || next_ns == NO_LIMIT {
                return;
            }
            match (self.ops, self.waits) {
                ([(from, to), rest @ ..], _) if op_ns == next_ns => {
                    self.lead_ns = self.lead_ns.saturating_add(to.saturating_sub(*from));
                    self.ops = rest;
                }
                // (A CPU that comes earlier only waits longer.)
                (_, [wait, rest @ ..]) if wait_ns == next_ns => {
                    let waited_ns = self.lead_ns.saturating_add(wait.waited_ns);
                    self.lead_ns = lead_of(wait.slice).min(waited_ns);
                    self.waits = rest;
                }
                _ => {
                    self.lead_ns = 0;
                    self.loaded_ns = self.loaded_ns.get(1..).unwrap_or_default();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
