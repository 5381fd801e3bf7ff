//! What the rules read.

mod places;
mod set_up;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use host::class::Class;
use host::gaps::DeviceGaps;
use host::idle::{IdlePlace, IdlePlaces, idle_places, waits_for_others_within};
use host::links::{DeviceId, GpuSide, GpuSlice};
use host::verdicts::{Busy, DeviceFigures, Window, loading};
use host::{HostIndex, HostReport, HostSlice, Slices};
use ranks::{Matched, OneRun};
use report::units::time;
use timeline::device::{Device as Properties, devices};
use timeline::first::First;
use timeline::intervals::{Interval, both, holds, length, union, without};
use timeline::uncached::uncached;
use trace::{Details, Row, Trace};
use triage::{TriageReport, WallPart, WallRow};

use crate::Finding;
use crate::iterations::{Iteration, Iterations, Run, wall_within};
use crate::module_tree::ModuleTree;

pub use set_up::Sets;

/// A launch call that takes this long loads the code of its kernel first (measured: 130 to 330 ms on MI300X, 6.5 ms on MI250,
/// where other launches take 2 to 10 us).
const COLD_LAUNCH_NS: i64 = 1_000_000;
/// From this share of the idle time on, first calls are what the recording shows.
const COLD_SHARE: f64 = 0.3;
/// Of first calls this part at least loads or compiles code.
const LOADS_PART: i64 = 20;
/// The next work was launched this long before it ran: it waits for work that the file does not hold.
const LONG_QUEUE_NS: i64 = 1_000_000;
/// From this share of the window on, such waits make the busy share meaningless.
const MISSING_SHARE: f64 = 0.2;

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
    /// When the warm iterations are, if only these count.
    warm: Option<Vec<Interval>>,
    /// Where the launching threads are while a device waits, in the warm iterations, if only these count.
    places: Option<BTreeMap<String, IdlePlaces>>,
    /// The calls that allocate and the tensors that are made, where PyTorch's cache of memory is off.
    pub uncached: Option<(u64, u64)>,
    /// By device: what its launching threads wait for others while it waits for them.
    others: Vec<(String, IdlePlace)>,
    /// By device: how much sooner it would be done without communication.
    sooner: OnceCell<Vec<i64>>,
    /// What collectives of several devices tell of each other.
    pub matched: Matched,
    /// Whether the file has devices of other ranks.
    has_others: bool,
}

/// Whether a call allocates or frees memory.
fn allocates(slices: &Slices<'_>, call: &HostSlice) -> bool {
    matches!(slices.class(call), Class::Malloc | Class::Free)
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
        let is_cold = |call: &&HostSlice| match slices.class(call) {
            Class::Launch => {
                call.dur_ns() >= COLD_LAUNCH_NS && again.binary_search(&call.row).is_err()
            }
            Class::ModuleLoad => true,
            // (Without the cache every step allocates.)
            Class::Malloc | Class::Free => uncached.is_none(),
            _ => false,
        };
        let of = |memory: bool| {
            let own = slices.calls.iter().filter(is_cold);
            own.filter(move |call| allocates(slices, call) == memory).map(HostSlice::interval)
        };
        let set_up = set_up::Times::of(slices);
        let loads = union(of(false).chain(set_up.all()).collect());
        let cold = union(of(true).chain(loads.iter().copied()).collect());
        let wall = triage.wall.clone();
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
            loads,
            set_up,
            iterations,
            modules,
            wall,
            warm,
            places: None,
            uncached,
            others: Vec::new(),
            sooner: OnceCell::new(),
            matched: Matched::default(),
            has_others: false,
        };
        facts.iterations = Iterations::of(&Run { trace, slices, gpu, triage, details });
        facts.warm = facts.iterations.as_ref().and_then(Iterations::warm_windows);
        // (Of the time that the bar is of.)
        facts.matched = Matched::of(slices, gpu, details, facts.warm.as_deref());
        if let Some(warm) = &facts.warm {
            facts.wall = wall_within(&triage.wall_times, warm);
            facts.places = Some(idle_places(slices, gpu, Some(warm)));
        }
        facts.others = facts.waits_for_others();
        facts
    }

    /// What the launching threads wait for others in the time that the bar gives to late launches.
    fn waits_for_others(&self) -> Vec<(String, IdlePlace)> {
        let one = self.gpu.devices.len() == 1;
        let of_device = |(id, name): (DeviceId, &String)| {
            let mut all = self.triage.wall_times.iter();
            let times = all.find(|times| one || times.device == *name)?;
            let late = [WallPart::Launch, WallPart::HostCompute];
            let late = union(late.into_iter().flat_map(|part| times.part(part).to_vec()).collect());
            let late = self.warm.as_ref().map_or_else(|| late.clone(), |warm| both(&late, warm));
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
    pub fn has_one_device(&self) -> bool {
        self.gpu.devices.len() == 1 && !self.has_others
    }

    /// How long one of those that set code up works.
    #[must_use]
    pub fn set_up_ns(&self, sets: Sets) -> i64 {
        length(self.set_up.get(sets))
    }

    /// How many iterations are left out as cold, and how many there are, if the bar is of the others.
    #[must_use]
    pub fn left_out(&self) -> Option<(usize, usize)> {
        self.warm.as_ref()?;
        self.iterations.as_ref().map(|of| (of.n_cold(), of.list.len()))
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
    pub fn in_one_iteration(&self, parts: &[WallPart]) -> String {
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

    /// The device that a finding is about.
    #[must_use]
    pub fn device_of(&self, finding: &Finding) -> Option<Device<'_>> {
        self.devices().find(|device| Some(device.name) == finding.device.as_deref())
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

    /// Whether most launches have no work in the file, as in the capture of a graph.
    #[must_use]
    pub fn is_capture(&self) -> bool {
        let links = &self.host.links;
        let without: u64 =
            links.runtime_calls_without_gpu_slice.get(&Class::Launch).copied().unwrap_or(0);
        without > links.linked as u64
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
    pub fn has_graphs(&self) -> bool {
        self.host.verdicts.devices.values().any(|device| device.graphs.kernels_in_graphs > 0)
    }

    /// Whether the data loader loads in the step itself, without workers.
    #[must_use]
    pub fn loads_in_step(&self) -> bool {
        let named = &self.host.verdicts.dataloader_named;
        named.iter().any(|row| row.name.contains("SingleProcessDataLoaderIter"))
    }
}

/// A device, with its figures.
pub struct Device<'f> {
    facts: &'f Facts<'f>,
    id: DeviceId,
    /// As the file spells it.
    pub name: &'f str,
    /// The figures that rules read.
    pub figures: &'f DeviceFigures,
    /// Its gaps.
    pub gaps: &'f DeviceGaps,
}

impl Device<'_> {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> DeviceId {
        self.id
    }

    /// `Device 2`; `The GPU` where there is one.
    #[must_use]
    pub fn title(&self) -> String {
        if self.facts.has_one_device() { "The GPU".into() } else { format!("Device {}", self.name) }
    }

    /// The window that its busy share is told of: what the steps launched, else the span of work with a launch, else of all.
    #[must_use]
    pub fn busy(&self) -> Option<(Window, Busy)> {
        [Window::LaunchStepsLinked, Window::GpuSpanLinked, Window::GpuSpanAll]
            .into_iter()
            .find_map(|window| Some((window, *self.figures.busy.get(&window)?)))
    }

    /// Its busy share; 1 where there is none.
    #[must_use]
    pub fn busy_share(&self) -> f64 {
        self.busy().and_then(|(_, busy)| busy.share).unwrap_or(1.0)
    }

    /// Its busy time and the window of it, as the bar of the wall time has them: one share in all sentences. `None` without a bar.
    #[must_use]
    pub fn busy_told(&self) -> Option<(i64, i64)> {
        let own = || WallPart::ALL.into_iter().filter_map(|part| self.wall(part));
        let sum = |busy: bool| -> i64 {
            own().filter(|row| !busy || !row.part.is_idle()).map(|row| row.total_ns).sum()
        };
        Some((sum(true), sum(false))).filter(|(_, window_ns)| *window_ns > 0)
    }

    /// The time in which the next work had been launched long before it ran, if that is so much of the window that the busy share
    /// says nothing: the work in between is not in the file.
    #[must_use]
    pub fn missing_ns(&self) -> Option<i64> {
        let queued = self.gaps.all.ten.iter().filter_map(|gap| gap.launched.as_ref());
        let ns: i64 = queued.map(|launch| launch.queued_ns).filter(|ns| *ns >= LONG_QUEUE_NS).sum();
        let (_, busy) = self.busy()?;
        (ns as f64 >= MISSING_SHARE * busy.window_ns as f64 && ns > 0).then_some(ns)
    }

    /// Its gaps, those of warm iterations where only these count.
    #[must_use]
    pub fn gaps_told(&self) -> Vec<Interval> {
        let gaps = host::gaps::between(self.facts.gpu.busy(self.id));
        self.facts.warm.as_ref().map_or_else(|| gaps.clone(), |warm| both(&gaps, warm))
    }

    /// The time in its gaps that first calls cover, and all of it, if these are what the recording shows.
    #[must_use]
    pub fn cold(&self) -> Option<(i64, i64)> {
        let gaps = self.gaps_told();
        let of = |times: &[Interval]| length(&both(&gaps, times));
        let (covered, loads, all) = (of(&self.facts.cold), of(&self.facts.loads), length(&gaps));
        // (Memory alone is allocated again where it is full.)
        let is_first = loads.saturating_mul(LOADS_PART) >= covered;
        (is_first && covered as f64 >= COLD_SHARE * all as f64 && covered >= COLD_LAUNCH_NS)
            .then_some((covered, all))
    }

    /// Its GPU slices.
    pub fn slices(&self) -> impl Iterator<Item = &host::links::GpuSlice> {
        self.facts.gpu.on(self.id)
    }

    /// From its first GPU slice to the last.
    #[must_use]
    pub fn span_ns(&self) -> i64 {
        let busy = self.facts.gpu.busy(self.id);
        busy.first().zip(busy.last()).map_or(0, |(first, last)| last.1 - first.0)
    }

    /// A part of its wall time: the row of the bar.
    #[must_use]
    pub fn wall(&self, part: WallPart) -> Option<&WallRow> {
        let wall = &self.facts.wall;
        let one = self.facts.gpu.devices.len() == 1;
        wall.iter().find(|row| row.part == part && (one || row.device == self.name))
    }

    /// The time of the bar in which the CPU's launches, or its work before them, keep the device waiting, and its share of the
    /// bar's window in percent. No other cause has that time; what the launching threads wait for others is not the CPU's work.
    #[must_use]
    pub fn late(&self) -> (i64, f64) {
        let parts = [WallPart::Launch, WallPart::HostCompute];
        let rows = parts.into_iter().filter_map(|part| self.wall(part));
        let (ns, pct) =
            rows.fold((0_i64, 0.0), |(ns, pct), row| (ns + row.total_ns, pct + row.share_pct));
        let others_ns = self.waits_for_others().map_or(0, |place| place.total_ns.min(ns));
        let own_ns = ns - others_ns;
        (own_ns, if ns > 0 { pct * own_ns as f64 / ns as f64 } else { pct })
    }

    /// The window of its bar without the time in which code is loaded and libraries are set up, in ns.
    #[must_use]
    pub fn without_set_up_ns(&self) -> i64 {
        let told = WallPart::ALL.into_iter().filter(|part| *part != WallPart::Loading);
        told.filter_map(|part| self.wall(part)).map(|row| row.total_ns).sum()
    }

    /// The same with the way of the late launches to the device, which goes away with the launches.
    #[must_use]
    pub fn late_with_start(&self) -> (i64, f64) {
        let (ns, pct) = self.late();
        self.wall(WallPart::Start).map_or((ns, pct), |row| (ns + row.total_ns, pct + row.share_pct))
    }

    /// Communication that no other kernel hides, and the span of the device.
    #[must_use]
    pub fn exposed_communication(&self) -> (i64, i64) {
        (length(&self.exposed()), self.span_ns())
    }

    /// How much sooner it would be done without that, at most: its own launches come no earlier. Of the time that its bar is of.
    #[must_use]
    pub fn sooner_without_communication_ns(&self) -> i64 {
        let facts = self.facts;
        let of_device = |device: usize| {
            let index = (facts.slices, facts.gpu);
            let warm = facts.warm.as_deref();
            ranks::sooner_without_communication_ns(index, facts.details, device, warm)
        };
        let all = || (0..facts.gpu.devices.len()).map(of_device).collect();
        facts.sooner.get_or_init(all).get(self.id as usize).copied().unwrap_or_default()
    }

    /// Communication that no other kernel hides, in the time that its bar is of, and the length of that.
    #[must_use]
    pub fn exposed_told(&self) -> (i64, i64) {
        let exposed = self.exposed();
        let told_ns = self
            .facts
            .warm
            .as_ref()
            .map_or_else(|| length(&exposed), |warm| length(&both(&exposed, warm)));
        let parts = WallPart::ALL.into_iter().filter_map(|part| self.wall(part));
        (told_ns, parts.map(|row| row.total_ns).sum())
    }

    /// When communication runs that no other kernel hides.
    #[must_use]
    pub fn exposed(&self) -> Vec<Interval> {
        let (communication, others) = self.communication();
        without(&communication, &others)
    }

    /// When its kernels communicate, and when others work.
    fn communication(&self) -> (Vec<Interval>, Vec<Interval>) {
        self.facts.gpu.communication(self.facts.trace, Some(self.id))
    }

    /// The time in which other kernels run and no communication: all that communication can hide behind.
    #[must_use]
    pub fn exposed_compute(&self) -> i64 {
        let (communication, others) = self.communication();
        length(&without(&others, &communication))
    }

    /// Whether its busy share says something: the work that the file's calls launched is in the file.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.missing_ns().is_none() && !self.facts.is_capture()
    }

    /// Whether the host may be what limits it: it is not busy, no work is missing and no first calls run.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        self.busy_share() < 0.8 && self.is_told() && self.cold().is_none()
    }

    /// Whether launches limit it.
    #[must_use]
    pub fn is_launch_bound(&self) -> bool {
        self.figures.launches.launch_bound == Some(true) && self.is_starved()
    }
}
