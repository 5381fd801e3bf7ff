//! The gaps of a device: pieces of idle time, and what ended each of them.

use dialect::calls::{launches_graph, synchronizes_device};
use trace::Row;

use super::{Host, Wait};
use timeline::gpu::Gpu;
use timeline::intervals::{Interval, length};
use timeline::launches::Launches;
use timeline::percent;

/// A gap shorter than this is the distance from one launch to the next, in ns. What takes longer is an event of its own.
pub(crate) const SHORT_NS: i64 = 1_000_000;
/// A kernel begins this long after its launch call at most where nothing is queued, in ns; what takes longer is another wait.
const LAUNCH_NS: i64 = 50_000;
/// A gap of this share of the window, and not a short one, is a pause of its own: it is listed, and no share of the rest
/// counts it, in percent.
pub(crate) const PAUSE_PCT: i64 = 10;

/// Idle time lies in a part of the window if this share of it does, in percent.
const CONFINED_PCT: i64 = 75;
/// Such a part is this share of the window at most, in percent.
const PART_PCT: i64 = 25;

/// A wait leaves the GPU idle if it is so for this share of it, in percent.
const WAITED_PCT: f64 = 10.0;

/// In ns.
const MICROSECOND: i64 = 1_000;

/// A piece of idle time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    pub(crate) times: Interval,
    /// The GPU slice that ends it.
    pub(crate) next: Option<usize>,
    /// The launch of that slice.
    pub(crate) launch: Option<Row>,
    /// Whether the launch launches a graph.
    pub(crate) graph: bool,
    /// Whether that slice was launched before the recording: it was queued all the time.
    pub(crate) before: bool,
    /// Whether the slice before it comes from the same launch: both are nodes of one graph.
    pub(crate) within: bool,
    /// Whether the launch was over only after the gap had begun: nothing was queued.
    pub(crate) late: bool,
    /// When the launch was called, and when it was over.
    pub(crate) called_ns: Option<i64>,
    pub(crate) launched_ns: Option<i64>,
    /// The call in which the launching thread waited for the GPU when the gap began; `None` if there is none.
    pub(crate) drained_by: Option<Interval>,
}

impl Gap {
    pub(crate) fn ns(&self) -> i64 {
        self.times.1.saturating_sub(self.times.0)
    }

    /// Whether the pace of the launches explains it, or what a wait of the CPU leaves of it: it is short.
    pub(crate) fn is_paced(&self) -> bool {
        self.late && self.ns() < SHORT_NS && self.drained().is_none_or(|own| own.1 < self.times.1)
    }

    /// What of it a wait of the CPU for the GPU explains: what comes before the end of the wait, and of a short gap as much again
    /// as the wait took. Without the wait, the CPU would have come that much sooner, and no more.
    pub(crate) fn drained(&self) -> Option<Interval> {
        let (from_ns, until_ns) = self.drained_by?;
        let again = if self.ns() < SHORT_NS { until_ns.saturating_sub(from_ns) } else { 0 };
        let until_ns = until_ns.max(self.times.0).saturating_add(again);
        Some((self.times.0, until_ns.min(self.times.1)))
    }

    /// When the part begins that no wait of the CPU explains.
    fn undrained_ns(&self) -> i64 {
        self.drained().map_or(self.times.0, |own| own.1)
    }

    /// What of it comes after the launch of the work that ends it: that work was queued. `None` below [`LAUNCH_NS`].
    pub(crate) fn queued(&self) -> Option<Interval> {
        if self.before {
            return (self.ns() >= LAUNCH_NS).then_some(self.times);
        }
        let since_ns = self.launched_ns?.max(self.times.0);
        let queued = self.times.1.saturating_sub(since_ns) >= LAUNCH_NS;
        queued.then_some((since_ns, self.times.1))
    }

    /// All of a short gap whose next work was queued long before: nodes of one graph, or a launch that was over before the gap
    /// began and [`LAUNCH_NS`] before its end. Whatever the CPU does meanwhile, it is not what the device waits for.
    pub(crate) fn between(&self) -> Option<Interval> {
        let early = |launched_ns: i64| self.times.1.saturating_sub(launched_ns) >= LAUNCH_NS;
        let was_queued =
            self.before || self.within || !self.late && self.launched_ns.is_some_and(early);
        (was_queued && self.ns() < LAUNCH_NS).then_some(self.times)
    }

    /// What of it comes before the end of a late launch.
    pub(crate) fn until_launch(&self) -> Option<Interval> {
        let until_ns = self.launched_ns?.min(self.times.1);
        let from_ns = self.undrained_ns();
        (self.is_paced() && from_ns < until_ns).then_some((from_ns, until_ns))
    }

    /// What of a longer gap lies in the late launch itself, where that is most of it: one call is the same cause however long it takes.
    pub(crate) fn in_launch(&self) -> Option<Interval> {
        let until_ns = self.launched_ns?.min(self.times.1);
        let from_ns = self.undrained_ns().max(self.called_ns?);
        let is_most = until_ns.saturating_sub(from_ns).saturating_mul(2) >= self.ns();
        (self.late && self.ns() >= SHORT_NS && is_most).then_some((from_ns, until_ns))
    }

    /// What of it comes after the end of a late launch: the way of the launch to the device. What takes longer than [`LAUNCH_NS`] is
    /// queued work.
    pub(crate) fn starting(&self) -> Option<Interval> {
        let launched_ns = self.launched_ns?;
        let from_ns = self.undrained_ns().max(launched_ns);
        let until_ns = launched_ns.saturating_add(LAUNCH_NS).min(self.times.1);
        (self.is_paced() && from_ns < until_ns).then_some((from_ns, until_ns))
    }
}

/// The gaps of `idle`, which is sorted.
#[inline(never)]
pub(crate) fn gaps(gpu: &Gpu<'_>, launches: &Launches, idle: &[Interval], host: &Host) -> Vec<Gap> {
    let trace = gpu.trace;
    let mut at = 0;
    // (Slices that were launched before may be left out; they end gaps nevertheless.)
    let mut beside = 0;
    // (After the first launch in the file, a launch that is not there may be a call that profilers do not record.)
    let first = (0..gpu.len()).find(|at| launches.of_slice(*at).is_some());
    let first_ns = first.map_or(i64::MAX, |at| gpu.slice(at).start_ns);
    let mut found = Vec::with_capacity(idle.len());
    for times in idle {
        while at < gpu.len() && gpu.slice(at).start_ns < times.1 {
            at += 1;
        }
        while beside < gpu.n_beside() && gpu.slice_beside(beside).start_ns < times.1 {
            beside += 1;
        }
        let left_out = beside < gpu.n_beside() && gpu.slice_beside(beside).start_ns == times.1;
        let next = Some(at).filter(|at| *at < gpu.len() && gpu.slice(*at).start_ns == times.1);
        let launch = next.and_then(|at| launches.of_slice(at).filter(|_| launches.is_sure(at)));
        let before = at.checked_sub(1).and_then(|before| launches.of_slice(before));
        let late = launch.is_some_and(|launch| trace.end_ns(launch) > times.0);
        let drained_by = launch.and_then(|launch| {
            let key = (trace.track(launch), times.0);
            let begun = host.waits.partition_point(|wait| (wait.track, wait.start_ns) <= key);
            let Wait { track, start_ns, end_ns, row } = *host.waits.get(begun.checked_sub(1)?)?;
            // (The launch of a copy that blocks is the wait itself.)
            let drains = track == key.0 && end_ns >= times.0 && row != launch;
            (drains && late).then_some((start_ns, end_ns))
        });
        found.push(Gap {
            times: *times,
            next,
            launch,
            graph: launch.is_some_and(|launch| launches_graph(trace.name_text(launch))),
            before: times.1 <= first_ns && next.map_or(left_out, |at| gpu.slice(at).before_window),
            within: launch.is_some() && launch == before,
            late,
            called_ns: launch.map(|launch| trace.ts_ns(launch)),
            launched_ns: launch.map(|launch| trace.end_ns(launch)),
            drained_by,
        });
    }
    found
}

/// How a device's idle time is spread over gaps.
pub(crate) struct Gaps {
    pub(crate) all: Vec<Gap>,
    /// When in them the thread that launches next computes on tensors of the CPU, sorted.
    pub(crate) on_cpu: Vec<Interval>,
    /// The window of the idle time, from its begin to its end; `None` where it is empty.
    pub(crate) window: Option<Interval>,
    /// Its length.
    pub(crate) window_ns: i64,
    /// Time in which a launching thread waited for the GPU, in the window without its pauses.
    pub(crate) waiting_ns: i64,
    /// The calls in which it did, within the GPU span.
    pub(crate) waits: Vec<Wait>,
    /// Calls that wait for the whole device after the last launch, which are not among them.
    pub(crate) n_at_end: u64,
}

impl Gaps {
    /// How much of the pauses between queued work rounding may make, where times are whole microseconds and that is most of them, in ns.
    /// (Start and duration are cut: a kernel that begins where another ends can seem to begin 1 µs later, and no more.)
    pub(crate) fn rounded_ns(&self) -> Option<i64> {
        let is_whole = |gap: &Gap| gap.times.0 % MICROSECOND == 0 && gap.times.1 % MICROSECOND == 0;
        let pauses = || self.all.iter().filter(|gap| gap.between().is_some());
        if !self.all.iter().all(is_whole) {
            return None;
        }
        let (mut all_ns, mut short_ns) = (0_i64, 0_i64);
        for ns in pauses().map(Gap::ns) {
            all_ns = all_ns.saturating_add(ns);
            if ns <= MICROSECOND {
                short_ns = short_ns.saturating_add(ns);
            }
        }
        (short_ns.saturating_mul(2) >= all_ns && short_ns > 0).then_some(short_ns)
    }

    #[inline(never)]
    pub(crate) fn of(gpu: &Gpu<'_>, launches: &Launches, idle: &super::Idle, host: &Host) -> Self {
        let all = gaps(gpu, launches, &idle.idle, host);
        let of_gap = |gap: &Gap| Some(host.on_cpu(gpu.trace.track(gap.launch?), gap.times));
        let on_cpu = all.iter().filter_map(of_gap).flatten().collect();
        let mut found = Self {
            all,
            on_cpu,
            window: idle.window.first().zip(idle.window.last()).map(|(a, b)| (a.0, b.1)),
            window_ns: idle.window_ns,
            waiting_ns: 0,
            waits: Vec::new(),
            n_at_end: 0,
        };
        let mut threads: Vec<trace::TrackId> =
            (0..gpu.len()).filter_map(|at| Some(gpu.trace.track(launches.of_slice(at)?))).collect();
        trace::sort(&mut threads);
        threads.dedup();
        // (After the last launch the CPU waits for the end of the run, as the profiler itself does.)
        let launched =
            (0..gpu.len()).filter_map(|at| Some(gpu.trace.ts_ns(launches.of_slice(at)?)));
        let last_launch_ns = launched.max().unwrap_or(i64::MAX);
        let first = (0..gpu.len()).map(|at| gpu.slice(at).start_ns).min();
        let last = (0..gpu.len()).map(|at| gpu.slice(at).end_ns()).max();
        let span: Vec<Interval> = first.zip(last).into_iter().collect();
        let at_end = |wait: &Wait| {
            let of_device = synchronizes_device(gpu.trace.name_text(wait.row));
            of_device && wait.start_ns > last_launch_ns
        };
        let (end, waits) = host
            .waits
            .iter()
            .filter(|wait| threads.binary_search(&wait.track).is_ok())
            .filter(|wait| span.iter().any(|(from, to)| wait.start_ns < *to && wait.end_ns > *from))
            .copied()
            .partition::<Vec<Wait>, _>(at_end);
        found.n_at_end = end.len() as u64;
        found.waits = waits;
        found.waiting_ns = found.waiting_within(found.waits.iter(), &span);
        found
    }

    /// Where most of the idle time lies, if that is a small part of the window: how much, in ns, and the shortest such part.
    pub(crate) fn confined(&self) -> Option<(i64, Interval)> {
        let (from_ns, to_ns) = self.window?;
        let all_ns = self.all.iter().map(Gap::ns).sum::<i64>();
        let least_ns = all_ns.saturating_mul(CONFINED_PCT) / 100;
        // From each gap on, up to the one with which so much has come.
        let (mut begin, mut sum_ns) = (0, 0_i64);
        let mut found: Option<(i64, Interval)> = None;
        for gap in &self.all {
            sum_ns = sum_ns.saturating_add(gap.ns());
            while let Some(first) = self.all.get(begin).filter(|_| sum_ns >= least_ns) {
                let part = (first.times.0, gap.times.1);
                let length = |(from, to): Interval| to.saturating_sub(from);
                if found.is_none_or(|(_, best)| length(part) < length(best)) {
                    found = Some((sum_ns, part));
                }
                sum_ns -= first.ns();
                begin += 1;
            }
        }
        found.filter(|(_, (from, to))| {
            let window_ns = to_ns.saturating_sub(from_ns);
            to.saturating_sub(*from).saturating_mul(100) <= window_ns.saturating_mul(PART_PCT)
        })
    }

    /// The calls in which the CPU waits and the GPU is idle, in or right after them, for [`WAITED_PCT`] of their time or more. (A wait that the
    /// GPU works through costs nothing.)
    pub(crate) fn costly_waits(&self) -> impl Iterator<Item = &Wait> {
        self.waits.iter().filter(|wait| {
            let from = self.all.partition_point(|gap| gap.times.1 < wait.start_ns);
            let gaps = self.all.get(from..).unwrap_or_default().iter();
            let own = gaps.take_while(|gap| gap.times.0 <= wait.end_ns);
            // (What comes before the wait is not for it.)
            let idle_ns = own.fold(0_i64, |sum, gap| {
                let from_ns = gap.times.0.max(wait.start_ns);
                sum.saturating_add(gap.times.1.saturating_sub(from_ns).max(0))
            });
            percent(idle_ns, wait.end_ns.saturating_sub(wait.start_ns)) >= WAITED_PCT
        })
    }

    /// The gaps of the GPU span, of a trace alone.
    #[cfg(test)]
    pub(crate) fn alone(gpu: &Gpu<'_>, launches: &Launches) -> Self {
        let idle = super::Idle::of(gpu, &[], None);
        Self::of(gpu, launches, &idle, &Host::of(gpu.trace))
    }

    /// For how long the CPU is in some of these calls, in the window without its pauses.
    pub(crate) fn waiting_in_ns(&self, waits: &[&Wait]) -> i64 {
        self.waiting_within(waits.iter().copied(), self.window.as_slice())
    }

    /// The same within other bounds.
    fn waiting_within<'a>(
        &self,
        waits: impl Iterator<Item = &'a Wait>,
        bounds: &[Interval],
    ) -> i64 {
        let times = waits.map(|wait| (wait.start_ns, wait.end_ns));
        let pauses: Vec<Interval> = self.pauses().map(|gap| gap.times).collect();
        let within = timeline::intervals::both(&super::union(times.collect()), bounds);
        length(&super::without(&within, &pauses))
    }

    /// Whether the CPU waits for the GPU for much of the time: then it does not limit the run by its launches.
    pub(crate) fn cpu_waits(&self) -> bool {
        percent(self.waiting_ns, self.paced_window_ns()) >= super::cause::WAITING_PCT
    }

    /// Whether a gap is a pause of its own.
    pub(crate) fn is_pause(&self, gap: &Gap) -> bool {
        gap.ns() >= SHORT_NS
            && gap.ns().saturating_mul(100) >= self.window_ns.saturating_mul(PAUSE_PCT)
    }

    /// The pauses, in order.
    pub(crate) fn pauses(&self) -> impl Iterator<Item = &Gap> {
        self.all.iter().filter(|gap| self.is_pause(gap))
    }

    /// The window without its pauses.
    pub(crate) fn paced_window_ns(&self) -> i64 {
        let pauses_ns = self.pauses().fold(0_i64, |sum, gap| sum.saturating_add(gap.ns()));
        self.window_ns.saturating_sub(pauses_ns)
    }
}
