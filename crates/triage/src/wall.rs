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

mod limits;

use catalog::RawKind;

use crate::priority::Priority;
use limits::Ends;
use timeline::gpu::{Extent, Gpu};
use timeline::intervals::{Interval, length, union};
use timeline::launches::Launches;
use timeline::percent;
use trace::SmallIndex;

/// Below this share of the GPU span, in thousandths, nothing is advised.
pub(crate) const LEAST_PERMILLE: i64 = 5;
/// Below this time nothing is advised, in ns.
pub(crate) const LEAST_NS: i64 = 10_000;
/// Shares of the GPU span from which advice is of priority 1, 2 and 3, in thousandths.
const PRIORITIES: [(Priority, i64); 3] =
    [(Priority::P1, 50), (Priority::P2, 20), (Priority::P3, LEAST_PERMILLE)];

/// A time that nothing limits.
const NO_LIMIT: i64 = i64::MAX;

/// An earlier step that takes this share of the span before the first slice that counts is no part of it, in percent.
const EARLIER_PCT: f64 = 1.0;
/// From this share of the span on, time that is lost to what the file does not hold makes bounds meaningless, in percent.
const UNREAL_PCT: f64 = 50.0;

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
pub(crate) struct Wall {
    /// By slice: how much sooner it could begin for all its launch says, where the launch is recorded.
    slack_ns: Times,
    /// By slice: when its launch began, where it is recorded.
    launched_ns: Times,
    /// By slice: from the begin of its launch to the next launch on the same thread, where that is recorded and the call launched
    /// no other slice.
    spacing_ns: Times,
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
            slack_ns: Times::unknown(n),
            launched_ns: Times::unknown(n),
            spacing_ns: Times::unknown(n),
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
            wall.launched_ns.set(at, begun_ns);
            // (A copy from pageable memory blocks the CPU, although its call may be over before the copy is.)
            let copies = gpu.works[slice.work].kind == RawKind::Memcpy;
            // (A blocking copy begins before its call is over: with less to wait for, it begins as soon as it is launched.)
            let from_ns = if copies && over_ns > slice.start_ns { begun_ns } else { over_ns };
            wall.slack_ns.set(at, slice.start_ns.saturating_sub(from_ns).max(0));
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

    /// The CPU time that a launch of these slices takes: the median time to the next launch of their thread. `None` where it is
    /// not recorded.
    pub(crate) fn launch_ns(&self, slices: impl Iterator<Item = u32>) -> Option<i64> {
        let of = |at: u32| self.spacing_ns.get(at as usize);
        let mut times: Vec<i64> = slices.filter_map(of).collect();
        let middle = times.len().checked_sub(1)? / 2;
        trace::sort(&mut times);
        times.get(middle).copied()
    }

    /// The CPU time from the launch of a slice to the next one; no limit where it is not recorded.
    pub(crate) fn spacing_ns(&self, slice: u32) -> i64 {
        self.spacing_ns.get(slice as usize).unwrap_or(NO_LIMIT)
    }

    /// Whether a slice has a launch call of its own.
    pub(crate) fn is_launched_alone(&self, slice: u32) -> bool {
        self.spacing_ns.get(slice as usize).is_some()
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
            if let Some(launched_ns) = self.launched_ns.get(at) {
                while let Some(wait) = waits.next_if(|wait| wait.until_ns <= launched_ns) {
                    // (A CPU that comes earlier only waits longer.)
                    cpu_ns = lead_of(wait.slice).min(cpu_ns.saturating_add(wait.waited_ns));
                }
                while loaded.next_if(|ns| **ns <= launched_ns).is_some() {
                    cpu_ns = 0;
                }
            }
            let mut lead_ns = of_streams[hold.stream as usize];
            let slack_ns = self.slack_ns.get(at);
            if let Some(after) = hold.after {
                let free_ns = lead_ns.saturating_add(hold.idle_ns);
                lead_ns = lead_of(after.get()).min(free_ns);
                if let Some(slack_ns) = slack_ns {
                    lead_ns = lead_ns.min(cpu_ns.saturating_add(slack_ns));
                }
            } else if let Some(slack_ns) = slack_ns {
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

    /// What the model may leave out: how long the CPU waits for the GPU in all while several streams do much of the work. Which of
    /// them a wait is for is not recorded, so the model follows the one that ended last. No other answer saves more than all waits.
    pub(crate) fn unsure_ns(&self) -> i64 {
        if self.n_streams <= 1 {
            return 0;
        }
        self.waits.iter().fold(0_i64, |sum, wait| sum.saturating_add(wait.waited_ns))
    }

    /// Whether most of the time is lost to something that the file does not hold: another client of the GPU, a slow clock. What
    /// a change saves in such a run says nothing of another one.
    pub(crate) fn is_unreal(&self) -> bool {
        self.unreal
    }

    /// The priority of advice that saves this much at most; `None` if it is not worth it.
    pub(crate) fn priority(&self, saved_ns: i64) -> Option<Priority> {
        priority(saved_ns, self.span_ns)
    }
}

/// The priority of advice that saves `saved_ns` of `span_ns` at most: 1 from 5%, 2 from 2%, 3 from 0.5%; `None` below that,
/// and below 10 µs.
pub(crate) fn priority(saved_ns: i64, span_ns: i64) -> Option<Priority> {
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
