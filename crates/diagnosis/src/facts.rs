//! What the rules read.

mod buffers;
mod captures_again;
mod cold;
mod device;
mod first_step;
mod held;
mod known_code;
mod late_kernel;
mod launches;
mod loader;
mod long_calls;
pub(crate) mod on_cpu;
mod one_call;
mod pinned;
mod places;
mod ranges;
mod recording;
mod set_up;
mod silence;
mod timed;
pub(crate) mod unseen;
mod without;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use catalog::architectures;
use host::class::Class;
use host::idle::{IdlePlace, IdlePlaces, idle_places, waits_for_others_within};
use host::links::{DeviceId, GpuSide, GpuSlice};
use host::verdicts::loading;
use host::{HostIndex, HostReport, HostSlice, Slices};
use ranks::{Matched, OneRun};
use report::units::{percent, time};
use timeline::device::{Device as Properties, devices};
use timeline::first::First;
use timeline::intervals::{Interval, both, holds, length, union};
use timeline::uncached::uncached;
use trace::{Details, Row, Trace};
use triage::{StageWall, TriageReport, WallPart, WallRow};

use crate::Finding;
use crate::iterations::{Iteration, Iterations, Run, wall_within};
use crate::module_tree::ModuleTree;

pub(crate) use captures_again::CapturesAgain;
pub use device::Device;
pub(crate) use first_step::{FirstStep, SLOWS};
pub(crate) use held::Held;
pub(crate) use long_calls::OneWork;
pub(crate) use pinned::SMALL;
pub use ranges::InRanges;
pub use set_up::Sets;

/// A launch call that takes this long loads the code of its kernel first (measured: 130 to 330 ms on MI300X, 6.5 ms on MI250,
/// where other launches take 2 to 10 us).
const COLD_LAUNCH_NS: i64 = 1_000_000;
/// Of the busy time: with more work of its own, a recording has little from before it.
const MOST_OWN: f64 = 0.95;
/// Of the bar: with so much compute, the GPU waits for nothing.
pub(crate) const FULL_PCT: f64 = 99.0;

/// Launches of kernels that ran on their device before: they load no code. Sorted.
pub(crate) fn again(trace: &Trace, gpu: &GpuSide) -> Vec<Row> {
    let work = |one: &GpuSlice| (trace.name(one.slice.row).0, one.device);
    let kernels = gpu.slices.iter().filter(|one| one.is_kernel);
    let first = First::of(kernels.map(|one| (work(one), one.slice.start_ns)).collect());
    let again = gpu.slices.iter().filter_map(|one| {
        let launch = one.launch?;
        (first.of_key(&work(one))? < launch.start_ns).then_some(launch.row)
    });
    let mut again: Vec<Row> = again.collect();
    trace::sort(&mut again);
    again
}

/// A run, with every figure that a rule reads.
pub struct Facts<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Its arguments.
    pub details: &'a Details,
    /// The figures of the host.
    pub host: &'a HostReport,
    /// The tables of triage.
    pub triage: &'a TriageReport,
    /// The slices of the host.
    pub slices: &'a Slices<'a>,
    /// GPU slices and their launches.
    pub gpu: &'a GpuSide,
    /// Launches that load the code of their kernel first, and how long they take in ns.
    pub first_launches: (u64, i64),
    /// When code is compiled or loaded, or memory allocated or freed: what first calls do.
    cold: Vec<Interval>,
    /// The same without memory: what only first calls do.
    loads: Vec<Interval>,
    /// When compilers and imports run.
    set_up: set_up::Times,
    /// The iterations of the run, where it has any.
    pub iterations: Option<Iterations>,
    /// The modules, where their frames are recorded.
    pub modules: Option<ModuleTree>,
    /// Where the wall time of each device goes: of the warm iterations where cold ones can be told apart, else of the window.
    pub wall: Vec<WallRow>,
    /// The same of each stage.
    pub wall_stages: Vec<StageWall>,
    /// When the warm iterations are, if only these count.
    warm: Option<Vec<Interval>>,
    /// Where the launching threads are while a device waits, in the iterations or steps that its bar is of, if it is of any.
    places: Option<BTreeMap<String, IdlePlaces>>,
    /// Whether its iterations have few launches.
    few_launches: OnceCell<bool>,
    /// The calls that allocate memory of the driver, and their name, where PyTorch's cache of memory is off.
    pub uncached: Option<(u64, trace::StringId)>,
    /// By device: what its launching threads wait for others while it waits for them.
    others: Vec<(String, IdlePlace)>,
    /// By device: how much sooner it would be done without communication.
    sooner: OnceCell<Vec<i64>>,
    /// By device: an iteration without the profiler against the recording.
    timed: OnceCell<Vec<Option<timed::Timed>>>,
    /// By device: its replay.
    replayed: OnceCell<Vec<without::Replayed>>,
    /// By device: when a data loader holds it up.
    held_by_loader: OnceCell<Vec<Vec<Interval>>>,
    /// By device: what the CPU does in one long call while it waits.
    long_calls: OnceCell<Vec<long_calls::LongCalls>>,
    /// By device: its idle time in annotations.
    in_ranges: OnceCell<Vec<Option<InRanges>>>,
    /// By device: where the launching threads are before late launches.
    late_places: OnceCell<Vec<Option<IdlePlaces>>>,
    /// What collectives of several devices tell of each other.
    pub matched: Matched,
    /// Whether the file has devices of other ranks.
    has_others: bool,
    /// What an iteration takes without the profiler, in ns, where a person has timed it.
    pub iteration_ns: Option<i64>,
}

impl<'a> Facts<'a> {
    /// The facts of a run.
    #[must_use]
    #[inline(never)]
    pub fn of(
        index: &'a HostIndex<'a>,
        details: &'a Details,
        host: &'a HostReport,
        triage: &'a TriageReport,
    ) -> Self {
        let HostIndex { slices, gpu } = index;
        let trace = slices.trace;
        let again = again(trace, gpu);
        let uncached = uncached(trace);
        let loads_code = |call: &&HostSlice| match slices.class(call) {
            Class::Launch => {
                call.dur_ns() >= COLD_LAUNCH_NS && again.binary_search(&call.row).is_err()
            }
            Class::ModuleLoad => true,
            _ => false,
        };
        // (Without the cache every step allocates.)
        let of_memory = |call: &&HostSlice| {
            uncached.is_none() && matches!(slices.class(call), Class::Malloc | Class::Free)
        };
        let set_up = set_up::Times::of(slices);
        let launches = slices.calls.iter().filter(loads_code);
        let launches = launches.filter(|call| slices.class(call) == Class::Launch);
        let first_launches =
            launches.fold((0, 0_i64), |(n, ns), call| (n + 1, ns.saturating_add(call.dur_ns())));
        let own = slices.calls.iter().filter(loads_code).map(HostSlice::interval);
        let loads = union(own.chain(set_up.all()).collect());
        let own = slices.calls.iter().filter(of_memory).map(HostSlice::interval);
        let cold = union(own.chain(loads.iter().copied()).collect());
        let (wall, wall_stages) = (triage.wall.clone(), triage.wall_stages.clone());
        let (iterations, warm) = (None, None);
        let modules = ModuleTree::of(trace, slices, gpu, details);
        let mut facts = Self {
            trace,
            details,
            host,
            triage,
            slices,
            gpu,
            cold,
            first_launches,
            loads,
            set_up,
            iterations,
            modules,
            wall,
            wall_stages,
            warm,
            places: None,
            few_launches: OnceCell::new(),
            uncached,
            others: Vec::new(),
            sooner: OnceCell::new(),
            timed: OnceCell::new(),
            replayed: OnceCell::new(),
            held_by_loader: OnceCell::new(),
            long_calls: OnceCell::new(),
            in_ranges: OnceCell::new(),
            late_places: OnceCell::new(),
            matched: Matched::default(),
            has_others: false,
            iteration_ns: None,
        };
        facts.iterations = Iterations::of(&Run { trace, slices, gpu, triage, details });
        let (unseen, is_capture) = (unseen::left_out(&facts), facts.is_capture());
        if let Some(iterations) = &mut facts.iterations {
            iterations.left_out = unseen;
            // (Where most work is not in the file, nothing tells when the GPU runs dry.)
            iterations.pace.take_if(|_| is_capture);
        }
        facts.warm = facts.iterations.as_ref().and_then(|found| found.warm_windows.clone());
        // (Of the time that the bar is of.)
        facts.matched = Matched::of(slices, gpu, details, facts.warm.as_deref());
        if let Some(warm) = &facts.warm {
            facts.wall = wall_within(&triage.wall_times, warm);
            let stages = triage.wall_times.iter();
            facts.wall_stages = stages.flat_map(|times| times.stage_walls(Some(warm))).collect();
        }
        let fills_gpu = facts.computes_in_iterations();
        let is_cold_told = facts.cold_changes_bar();
        if let Some(iterations) = &mut facts.iterations {
            iterations.fills_gpu = fills_gpu;
            iterations.is_cold_told = is_cold_told;
        }
        let windows = facts.warm.clone().or_else(|| facts.steps_of_bars());
        facts.places = windows.map(|windows| idle_places(slices, gpu, Some(&windows)));
        facts.others = facts.waits_for_others();
        facts
    }

    /// Whether the device of the iterations computes for all the time of its bar.
    fn computes_in_iterations(&self) -> bool {
        let name = self.iterations.as_ref().and_then(|found| found.device.as_deref());
        let device = self.devices().find(|device| Some(device.name) == name);
        let row = device.as_ref().and_then(|device| device.wall(WallPart::Compute));
        row.is_some_and(|row| row.share_pct >= FULL_PCT)
    }

    /// When the steps are that the bars are of; `None` where they are of the span of the GPU's work.
    fn steps_of_bars(&self) -> Option<Vec<Interval>> {
        let parts = self.triage.wall_times.iter().flat_map(|times| &times.parts);
        let of_steps = self.wall.iter().any(|row| row.of_steps);
        of_steps.then(|| union(parts.flat_map(|(_, times)| times).copied().collect()))
    }

    /// When a device is in these parts of its bar.
    fn times(&self, device: &str, parts: &[WallPart]) -> Vec<Interval> {
        let one = self.gpu.devices.len() == 1;
        let mut all = self.triage.wall_times.iter();
        let Some(times) = all.find(|times| one || times.device == device) else {
            return Vec::new();
        };
        let own = union(parts.iter().flat_map(|part| times.part(*part)).copied().collect());
        self.warm.as_ref().map_or_else(|| own.clone(), |warm| both(&own, warm))
    }

    /// What the launching threads wait for others in the time that the bar gives to late launches.
    fn waits_for_others(&self) -> Vec<(String, IdlePlace)> {
        let of_device = |(id, name): (DeviceId, &String)| {
            let late = self.times(name, &[WallPart::Launch, WallPart::HostCompute]);
            let place = waits_for_others_within(self.slices, self.gpu, id, &late)?;
            Some((name.clone(), place))
        };
        (0..).zip(&self.gpu.devices).filter_map(of_device).collect()
    }

    /// The same as one of several ranks in files of their own.
    #[must_use]
    pub fn in_run(mut self, run: &OneRun<'_>) -> Self {
        if let [device] = &self.gpu.devices[..]
            && let Some(matched) = run.of_rank(device, self.warm.as_deref())
        {
            self.matched = matched;
        }
        self
    }

    /// The same as one rank of a file with several, whose collectives `matched` has.
    #[must_use]
    pub fn among(self, matched: Matched) -> Self {
        Self { matched, has_others: true, ..self }
    }

    /// Whether these are the facts of all ranks of the file.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.has_others
    }

    /// Whether the file has one device.
    #[must_use]
    pub(crate) fn has_one_device(&self) -> bool {
        self.gpu.devices.len() == 1 && !self.has_others
    }

    /// How long one of those that set code up works.
    #[must_use]
    pub fn set_up_ns(&self, sets: Sets) -> i64 {
        length(self.set_up.get(sets))
    }

    /// What the file has of a device. Where it lists devices of one kind only, a device that is not listed is of it: processes
    /// that see one GPU number it 0, and kernels have its number in the machine.
    #[must_use]
    pub fn properties(&self, id: &str) -> Option<Properties> {
        let mut all = devices(self.trace);
        if let Some(own) = all.iter().position(|known| known.id == id) {
            return Some(all.swap_remove(own));
        }
        let first = all.first()?.clone();
        let is_same = |other: &Properties| {
            (&other.name, other.n_units, other.memory_bytes)
                == (&first.name, first.n_units, first.memory_bytes)
        };
        all.iter().all(is_same).then_some(first)
    }

    /// The compute capability of a device times ten, as the file has it, or that of the device's name.
    pub(crate) fn capability(&self, id: &str) -> Option<u32> {
        let own = self.properties(id)?;
        let Some(text) = own.compute else {
            return architectures::of_device(&own.name)?.strip_prefix("sm_")?.parse().ok();
        };
        let (major, minor) = text.split_once('.')?;
        Some(major.parse::<u32>().ok()?.checked_mul(10)?.saturating_add(minor.parse().ok()?))
    }

    /// The longest bar of a device in ns; without bars the longest window of a busy share.
    #[must_use]
    pub fn wall_ns(&self) -> i64 {
        let bars = self.wall.chunk_by(|a, b| a.device == b.device);
        let bars = bars.map(|rows| rows.iter().map(|row| row.total_ns).sum::<i64>());
        let busy = || self.devices().filter_map(|device| Some(device.busy()?.1.window_ns)).max();
        bars.max().or_else(busy).unwrap_or_default().max(1)
    }

    /// That one iteration of several has most of these parts of the wall time; empty where none does.
    #[must_use]
    pub(crate) fn in_one_iteration(&self, parts: &[WallPart]) -> String {
        // (Of the iterations that the bar is of.)
        let list = self.iterations.iter().flat_map(|iterations| &iterations.list);
        let list: Vec<&Iteration> =
            list.filter(|one| self.warm.is_none() || one.cold.is_none()).collect();
        let of = |one: &Iteration| {
            let ns = parts.iter().filter_map(|part| one.parts.get(part.id()));
            ns.sum::<i64>()
        };
        let all: i64 = list.iter().map(|one| of(one)).sum();
        let most = list.iter().max_by_key(|one| of(one)).filter(|_| list.len() > 2);
        match most.filter(|one| of(one).saturating_mul(2) > all) {
            None => String::new(),
            Some(one) => format!(" {} alone has {} of it.", one.name, time(of(one))),
        }
    }

    /// What shares of the wall time are of: "the steps".
    #[must_use]
    pub fn whole(&self) -> &'static str {
        match (self.left_out(), self.wall.first()) {
            (Some(_), _) => "the warm iterations",
            (None, Some(row)) if !row.of_steps => "its span",
            _ => "the steps",
        }
    }

    /// The devices of the file with their figures.
    pub fn devices(&self) -> impl Iterator<Item = Device<'_>> {
        (0..).zip(&self.gpu.devices).filter_map(|(id, name)| {
            Some(Device {
                facts: self,
                id,
                name,
                figures: self.host.verdicts.devices.get(name)?,
                gaps: self.host.gaps.get(name)?,
            })
        })
    }

    /// Something of each device, by its number.
    fn of_each<T: Default>(&self, of: impl Fn(&Device<'_>) -> T) -> Vec<T> {
        let device = |id: usize| self.devices().find(|device| device.id as usize == id);
        let all = 0..self.gpu.devices.len();
        all.map(|id| device(id).map(|device| of(&device)).unwrap_or_default()).collect()
    }

    /// The device that a finding is about.
    #[must_use]
    pub fn device_of(&self, finding: &Finding) -> Option<Device<'_>> {
        self.devices().find(|device| Some(device.name) == finding.device.as_deref())
    }

    /// The busy time of all devices, with work that was launched before the recording.
    #[must_use]
    pub fn busy_ns(&self) -> i64 {
        self.devices().map(|device| length(self.gpu.busy(device.id()))).sum()
    }

    /// A share of the busy time in words; where work from before the recording is much of that, the share of the rest, too: that of ops is in
    /// the rest only.
    #[must_use]
    pub fn of_busy(&self, ns: i64) -> String {
        let of = |busy_ns: i64| percent(timeline::percent(ns.min(busy_ns), busy_ns.max(1)));
        let busy_ns = self.busy_ns();
        let own = |device: &Device<'_>| {
            let own = device.slices().filter(|one| one.launch.is_some());
            length(&union(own.map(|one| one.slice.interval()).collect()))
        };
        let own_ns: i64 = self.devices().map(|device| own(&device)).sum();
        let is_much = self.triage.before_window.n_slices > 0
            && own_ns as f64 <= MOST_OWN * busy_ns as f64
            && own_ns > 0;
        match is_much {
            true => format!(
                "{} of the busy time, {} without work from before the recording",
                of(busy_ns),
                of(own_ns)
            ),
            false => format!("{} of the busy time", of(busy_ns)),
        }
    }

    /// Whether the file has work of a GPU.
    #[must_use]
    pub fn has_gpu(&self) -> bool {
        !self.gpu.slices.is_empty()
    }

    /// Time of the steps in which the host is in the data loader, and the length of the steps.
    #[must_use]
    pub fn loading(&self) -> (i64, i64) {
        let steps = union(self.slices.steps.iter().map(HostSlice::interval).collect());
        (length(&both(&steps, &loading(self.slices))), length(&steps))
    }

    /// Whether most launches have no work in the file, as in the capture of a graph. (Without any work none was recorded. Where the recording was cut, up to the cut they have.)
    #[must_use]
    pub fn is_capture(&self) -> bool {
        let links = &self.host.links;
        let without: u64 =
            links.runtime_calls_without_gpu_slice.get(&Class::Launch).copied().unwrap_or(0);
        self.has_gpu() && without > links.linked as u64 && self.triage.cut.is_none()
    }

    /// The share of the kernels' time whose launches the profiler did not record, in percent, where that is most of it: work of an engine
    /// that launches by itself. (What was launched before the recording is work like the rest. Copies bring the engine its inputs, whoever
    /// launches them.)
    #[must_use]
    pub(crate) fn launched_elsewhere(&self) -> Option<f64> {
        let before_ns = self.triage.before_window.total_ns;
        let sum = |only: bool| {
            let kernels = self.gpu.slices.iter().filter(|one| one.is_kernel);
            let own = kernels.filter(|one| !only || one.launch.is_none());
            let ns = own.map(|one| one.slice.dur_ns()).fold(0, i64::saturating_add);
            ns.saturating_sub(before_ns)
        };
        let (own_ns, all_ns) = (sum(true), sum(false));
        (own_ns > 0 && own_ns.saturating_mul(2) > all_ns).then(|| timeline::percent(own_ns, all_ns))
    }

    /// Whether compiled regions launched at least half of the GPU slices.
    #[must_use]
    pub fn is_compiled(&self) -> bool {
        const PARTS: [&str; 2] = ["CompiledFxGraph", "Torch-Compiled Region"];
        let names = PARTS.map(|part| self.slices.names_with(part));
        let is_region = |slice: &&HostSlice| {
            let name = self.trace.name(slice.row).0 as usize;
            names.iter().any(|names| names[name])
        };
        let all = self.slices.annotations.iter().chain(&self.slices.ops.slices);
        let regions = union(all.filter(is_region).map(HostSlice::interval).collect());
        let launches = self.gpu.linked().filter_map(|one| one.launch);
        let n = launches.filter(|launch| holds(&regions, launch.start_ns)).count();
        n > 0 && 2 * n >= self.host.links.linked
    }

    /// Whether graphs run.
    #[must_use]
    pub(crate) fn has_graphs(&self) -> bool {
        self.host.verdicts.devices.values().any(|device| device.graphs.kernels_in_graphs > 0)
    }

    /// Whether the data loader loads in the step itself, without workers.
    #[must_use]
    pub(crate) fn loads_in_step(&self) -> bool {
        let named = &self.host.verdicts.dataloader_named;
        named.iter().any(|row| row.name.contains("SingleProcessDataLoaderIter"))
    }
}
