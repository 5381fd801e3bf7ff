//! The ranges of the CPU that are iterations, and which of them are cold.
//!
//! Triage counts advice over the warm ones, and the diagnosis tells of them: both find them here.
//!
//! Rules, in order: two steps of the profiler or more; at least three passes of a serving engine, by their annotations; at least
//! three steps of an optimizer, by PyTorch's annotations; at least three ranges of one name that fill 80% of the time from the first to
//! the last; a single step. Ranges must hold half of the launches (of the ops, without a GPU). Nothing is told from the rhythm of
//! kernels.

mod cold;
mod find;

use host::class::Class;
use host::links::{DeviceId, GpuSide};
use host::{HostSlice, Slices};
use report::units;
use timeline::gpu::Gpu;
use timeline::intervals::{Interval, both, holds, length, touching, union, without};
use timeline::launches::Launches;

use crate::WallTimes;

pub use cold::Cold;
pub use find::{Kind, class};

/// Of fewer warm ones no figure is.
const FEWEST: usize = 3;

/// What iterations are found in.
#[derive(Clone, Copy)]
struct Run<'a> {
    slices: &'a Slices<'a>,
    gpu: &'a GpuSide,
}

/// One iteration.
#[derive(Clone, Debug)]
pub struct Range {
    /// Its range on the CPU.
    pub slice: HostSlice,
    /// `decode`, `extend`, `mixed`; of other iterations their name without numbers.
    pub class: String,
    /// GPU slices that its calls launched, on any thread.
    pub launched: usize,
    /// From the first of them to the end of the last.
    pub on_gpu: Option<Interval>,
    /// Time that they cover.
    pub gpu_busy_ns: i64,
    /// Whether most of that is after it: what the device does meanwhile is other work.
    pub is_ahead: bool,
    /// Why it is cold; `None` if it is not, or if that cannot be told.
    pub cold: Option<Cold>,
    /// Whether no range of the file marks it: it is what comes before the first one, and the slice has the event of that one.
    pub is_unmarked: bool,
    /// Ops whose launches that work is.
    pub(crate) n_ops: usize,
    /// Time that it covers without communication, which may only wait for another rank.
    pub(crate) compute_ns: i64,
    /// How long the CPU waits while the device has earlier work, from its begin until its own first work.
    pub(crate) behind_ns: i64,
}

/// The iterations of a run, by start.
#[derive(Clone, Debug)]
pub struct Ranges {
    /// What they are told by.
    pub kind: Kind,
    /// The device with most work that they launched; `None` without a GPU.
    pub device: Option<DeviceId>,
    /// By start.
    pub list: Vec<Range>,
}

impl Ranges {
    /// The iterations of a run, none of them marked as cold yet; `None` where the file has none.
    #[must_use]
    #[inline(never)]
    pub fn of(slices: &Slices<'_>, gpu: &GpuSide) -> Option<Self> {
        let run = Run { slices, gpu };
        let (kind, found) = find::iterations(&run)?;
        let device = busiest(gpu, &found);
        let is_wait = |call: &&HostSlice| slices.class(call) == Class::Sync || slices.blocks(call);
        let waits = slices.calls.iter().filter(is_wait).map(HostSlice::interval);
        let waits = union(waits.collect());
        let range = |slice: &HostSlice| {
            let launched = device.map_or_else(Vec::new, |device| gpu.launched_in(device, slice));
            let first = launched.iter().map(|(start, _)| *start).min();
            let last = launched.iter().map(|(_, end)| *end).max();
            let n_launched = launched.len();
            let own = union(launched);
            let within = length(&both(&own, &[slice.interval()]));
            Range {
                slice: *slice,
                class: class(slices.name(slice)),
                launched: n_launched,
                on_gpu: first.zip(last),
                gpu_busy_ns: length(&own),
                is_ahead: within.saturating_mul(2) < length(&own),
                cold: None,
                is_unmarked: false,
                n_ops: 0,
                compute_ns: 0,
                behind_ns: 0,
            }
            .measured(gpu, device, &waits)
        };
        let mut list: Vec<Range> = found.iter().map(range).collect();
        let is_by_profiler = kind == Kind::ProfilerSteps && list.len() >= FEWEST;
        let before = is_by_profiler.then(|| find::before(&run, &found)).flatten();
        if let Some(before) = before {
            list.insert(0, Range { is_unmarked: true, ..range(&before) });
        }
        Some(Self { kind, device, list })
    }

    /// Marks the cold ones, and leaves out what no range marks unless that is cold: else it may be a part of an iteration. `times` are those of
    /// their device.
    pub fn mark(&mut self, times: Option<&WallTimes>) {
        if self.list.first().is_some_and(|first| first.is_unmarked) {
            let mut marked = self.list.clone();
            cold::mark(&mut marked, times);
            if marked.first().is_some_and(|first| first.cold.is_some()) {
                self.list = marked;
                return;
            }
            self.list.remove(0);
        }
        cold::mark(&mut self.list, times);
    }

    /// Cold ones.
    #[must_use]
    pub fn n_cold(&self) -> usize {
        self.list.iter().filter(|one| one.cold.is_some()).count()
    }

    /// Whether all cold ones come before all others. (The first decode of an engine may come after its prefills.)
    #[must_use]
    pub fn begin_cold(&self) -> bool {
        self.list.iter().take(self.n_cold()).all(|one| one.cold.is_some())
    }

    /// When the warm ones are, on the clock of the trace, if there are cold ones and at least three warm ones. Where the CPU is ahead
    /// in most of them, that is when the GPU runs what they launched: on the CPU they are over before.
    #[must_use]
    pub fn warm_windows(&self) -> Option<Vec<Interval>> {
        let warm = || self.list.iter().filter(|one| one.cold.is_none());
        let n_warm = warm().count();
        if n_warm == self.list.len() || n_warm < FEWEST {
            return None;
        }
        let n_ahead = warm().filter(|one| one.is_ahead).count();
        if 2 * n_ahead <= n_warm {
            return Some(union(warm().map(|one| one.slice.interval()).collect()));
        }
        let mut windows: Vec<Interval> = warm().filter_map(|one| one.on_gpu).collect();
        // (Between two that follow each other the GPU waits for the second one.)
        let warm = |one: &Range| one.on_gpu.filter(|_| one.cold.is_none());
        windows.extend(self.list.windows(2).filter_map(|pair| {
            let (before, after) = (warm(&pair[0])?, warm(&pair[1])?);
            (before.1 < after.0).then_some((before.1, after.0))
        }));
        Some(union(windows))
    }
}

impl Range {
    /// With the figures by which other work is told from a cold iteration.
    fn measured(self, gpu: &GpuSide, device: Option<DeviceId>, waits: &[Interval]) -> Self {
        let Some(device) = device else { return self };
        let work = || gpu.work_of(device, &self.slice);
        let mut ops: Vec<usize> = work().filter_map(|one| one.owner).collect();
        trace::sort(&mut ops);
        ops.dedup();
        let compute = work().filter(|one| !one.is_communication);
        let compute_ns = length(&union(compute.map(|one| one.slice.interval()).collect()));
        let (begun_ns, ended_ns) = self.slice.interval();
        let behind = self.on_gpu.map(|(first_ns, _)| (begun_ns, first_ns.min(ended_ns)));
        let behind = behind.filter(|(from, to)| from < to);
        let behind_ns = behind.map_or(0, |times| {
            let own = both(touching(waits, times), &[times]);
            length(&both(touching(gpu.busy(device), times), &own))
        });
        Self { n_ops: ops.len(), compute_ns, behind_ns, ..self }
    }
}

/// The device with most work that the iterations launched.
fn busiest(gpu: &GpuSide, slices: &[HostSlice]) -> Option<DeviceId> {
    let n = |device: DeviceId| -> usize {
        slices.iter().map(|slice| gpu.launched_in(device, slice).len()).sum()
    };
    let devices = (0..gpu.devices.len()).map(|device| device as DeviceId);
    devices
        .map(|device| (n(device), device))
        .filter(|(n, _)| *n > 0)
        .max_by_key(|(n, device)| (*n, std::cmp::Reverse(*device)))
        .map(|(_, device)| device)
}

/// The warm iterations of a run that has cold ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warm {
    /// When they are, on the clock of the trace: disjoint, sorted.
    pub(crate) windows: Vec<Interval>,
    /// From the first of them to the end of the last iteration on the CPU, without cold ones.
    launching: Vec<Interval>,
    /// When the cold ones are on the CPU.
    cold: Vec<Interval>,
    /// Cold ones, and all.
    pub(crate) n_cold: usize,
    pub(crate) n: usize,
    /// Whether the cold ones are the first ones.
    begin_cold: bool,
}

impl Warm {
    /// Those of ranges whose device has these times; `None` where no iteration is cold, or too few are warm.
    pub(crate) fn of(ranges: &Ranges, times: Option<&WallTimes>) -> Option<Self> {
        let mut ranges = ranges.clone();
        ranges.mark(times);
        let windows = ranges.warm_windows()?;
        let ends = ranges.list.iter().map(|one| one.slice.end_ns).max()?;
        let warm = ranges.list.iter().filter(|one| one.cold.is_none());
        let from = warm.map(|one| one.slice.start_ns).min()?;
        let cold = ranges.list.iter().filter(|one| one.cold.is_some());
        let cold = union(cold.map(|one| one.slice.interval()).collect());
        // (What an engine launches between its passes belongs to them.)
        let launching = without(&[(from, ends)], &cold);
        let (n_cold, n) = (ranges.n_cold(), ranges.list.len());
        Some(Self { windows, launching, cold, n_cold, n, begin_cold: ranges.begin_cold() })
    }

    /// By GPU slice: whether the warm iterations launched it. One without a launch is theirs if it begins while they run.
    pub(crate) fn slices(&self, gpu: &Gpu<'_>, launches: &Launches) -> Vec<bool> {
        let is_theirs = |at: usize| match launches.of_slice(at) {
            Some(launch) => holds(&self.launching, gpu.trace.ts_ns(launch)),
            None => holds(&self.windows, gpu.slice(at).start_ns),
        };
        (0..gpu.len()).map(is_theirs).collect()
    }

    /// By GPU slice: whether a cold iteration launched it. One without a launch is theirs if it begins while they run.
    pub(crate) fn in_cold(&self, gpu: &Gpu<'_>, launches: &Launches) -> Vec<bool> {
        let began = |at: usize| match launches.of_slice(at) {
            Some(launch) => gpu.trace.ts_ns(launch),
            None => gpu.slice(at).start_ns,
        };
        (0..gpu.len()).map(|at| holds(&self.cold, began(at))).collect()
    }

    /// When the first of them begins, if the cold ones come before it.
    pub(crate) fn begins_ns(&self) -> Option<i64> {
        self.windows.first().map(|(from, _)| *from).filter(|_| self.begin_cold)
    }

    /// "all 6 iterations, including the cold one at the beginning".
    pub(crate) fn all(&self) -> String {
        let n = units::count(self.n as u64);
        let place = if self.begin_cold { " at the beginning" } else { "" };
        match self.n_cold {
            1 => format!("all {n} iterations, including the cold one{place}"),
            cold => {
                let cold = units::count(cold as u64);
                format!("all {n} iterations, including the {cold} cold ones{place}")
            }
        }
    }

    /// Warm ones.
    pub(crate) fn n_warm(&self) -> usize {
        self.n - self.n_cold
    }

    /// "The cold iteration at the beginning has", "The 2 cold iterations have".
    pub(crate) fn cold_have(&self) -> String {
        let place = if self.begin_cold { " at the beginning" } else { "" };
        match self.n_cold {
            1 => format!("The cold iteration{place} has"),
            n => format!("The {} cold iterations{place} have", units::count(n as u64)),
        }
    }

    /// "the 5 warm iterations".
    pub(crate) fn told(&self) -> String {
        format!("the {} warm iterations", units::count(self.n_warm() as u64))
    }
}

/// The warm iterations of a run with what they launched on a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarmSlices<'a> {
    pub(crate) warm: &'a Warm,
    /// By GPU slice.
    pub(crate) slices: &'a [bool],
}

impl WarmSlices<'_> {
    /// Whether they launched a GPU slice.
    pub(crate) fn has(self, at: usize) -> bool {
        self.slices.get(at).copied().unwrap_or_default()
    }
}
