//! The figures that the rules of the diagnosis read, by device.

mod idle;

use std::collections::BTreeMap;

use serde::Serialize;
use timeline::intervals::{Interval, both, length, union};

use crate::calls::is_of_graph;
use crate::class::Class;
use crate::links::{DeviceId, GpuSide, GpuSlice};
use crate::numbers::{HalfNs, median, micro, share};
use crate::slices::{Family, HostSlice, Slices};
use idle::causes;

pub use idle::{Covers, Idle, IdleWindow, loading};

/// Below this share of its window a device counts as idle enough to be limited by launches (`methodology` M2).
const LAUNCH_BOUND_BUSY: f64 = 0.8;
/// Median delay from launch to start, and median duration of a kernel, below which launches limit. ROCm's least delay is 14 to
/// 16 us, CUDA's 1 to 3 us.
const LAUNCH_BOUND_QUEUE: HalfNs = HalfNs(2 * 25_000);
const LAUNCH_BOUND_KERNEL: HalfNs = HalfNs(2 * 20_000);

/// Figures of all devices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdicts {
    /// By device.
    pub devices: BTreeMap<String, DeviceFigures>,
    /// Slices with `DataLoader` in their names.
    pub dataloader_named: Vec<Named>,
    /// Ranges of `torch.compile`.
    pub compile_named: BTreeMap<String, NamedSum>,
    /// Share of frames of Python among all slices.
    pub python_events_share: Option<f64>,
    /// The profiler's options, as the file has them.
    pub flags: BTreeMap<&'static str, serde_json::Value>,
}

/// Slices of one name and raw category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are the meaning")]
pub struct Named {
    pub name: String,
    pub cat: String,
    pub count: u64,
    pub sum_ns: i64,
}

/// A number of slices and the sum of their durations in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the type says it")]
pub struct NamedSum {
    pub count: u64,
    pub sum_ns: i64,
}

/// Figures of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceFigures {
    /// Idle time and what the host did in it.
    pub idle: Idle,
    /// Busy share of several windows.
    #[serde(rename = "M1")]
    pub busy: BTreeMap<Window, Busy>,
    /// Whether launches limit.
    #[serde(rename = "M2")]
    pub launches: LaunchBound,
    /// Short kernels.
    #[serde(rename = "M16_all")]
    pub short_all: Short,
    /// Short kernels whose launch is in the file.
    #[serde(rename = "M16_linked")]
    pub short_linked: Short,
    /// Graphs.
    #[serde(rename = "M17")]
    pub graphs: Graphs,
    /// Communication.
    #[serde(rename = "M10")]
    pub communication: Communication,
}

/// A window of time in which a busy share is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// From the first to the last GPU slice.
    GpuSpanAll,
    /// The same of slices whose launch is in the file, busy with them.
    GpuSpanLinked,
    /// The steps of the host, busy with all slices.
    CpuStepsAll,
    /// The same, busy with slices whose launch is in the file.
    CpuStepsLinked,
    /// The profiler's copies of the steps around GPU work, busy with all slices.
    GpuStepsAll,
    /// The same, busy with slices whose launch is in the file.
    GpuStepsLinked,
    /// From the first slice of the file to the last.
    XRangeAll,
    /// From the first to the last slice that each step launched, busy with slices whose launch is in the file.
    LaunchStepsLinked,
}

/// A window and the time in it that a device was busy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Busy {
    /// Length of the window, in ns.
    pub window_ns: i64,
    /// Busy time in it.
    pub busy_ns: i64,
    /// Their ratio, to six decimals.
    pub share: Option<f64>,
}

/// Whether launches limit a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaunchBound {
    /// The window that is judged.
    pub window: Option<Window>,
    /// Its busy share.
    pub busy_share: Option<f64>,
    /// Median of the delays from launch to start.
    pub median_q_ns: Option<HalfNs>,
    /// Median of the kernels' durations.
    pub median_kernel_ns: Option<HalfNs>,
    /// Busy below 80%, delay below 25 us and kernel below 20 us.
    pub launch_bound: Option<bool>,
}

/// Short kernels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Short {
    /// Kernels.
    pub n: usize,
    /// Sum of durations, in ns.
    pub ns: i64,
    /// Their median.
    pub median_dur_ns: Option<HalfNs>,
    /// Kernels below 5 us.
    pub lt_5us: Below,
    /// Kernels below 10 us.
    pub lt_10us: Below,
}

/// Kernels below a duration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Below {
    /// Kernels.
    pub n: usize,
    /// Sum of durations, in ns.
    pub ns: i64,
    /// Share of all by number.
    pub share_n: Option<f64>,
    /// Share of all by time.
    pub share_ns: Option<f64>,
}

/// Graphs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Graphs {
    /// Calls that launch a graph.
    pub graph_launch_calls: u64,
    /// Kernels of graphs.
    pub kernels_in_graphs: usize,
    /// Sum of their durations, in ns.
    pub kernels_in_graphs_ns: i64,
    /// Kernels whose launch is in the file.
    pub kernels_linked: usize,
    /// Share of the first among the second.
    pub share_n: Option<f64>,
}

/// Communication by the names of kernels (`is_collective_by_name`): what other tools count, too. The catalog knows more kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Communication {
    /// The pattern.
    pub regex: &'static str,
    /// Time that they cover, in ns.
    pub comm_union_ns: i64,
    /// The part in which no other kernel runs.
    pub exposed_ns: i64,
    /// Sum of durations.
    pub comm_sum_ns: i64,
    /// Kernels.
    pub n: usize,
}

/// The pattern of collectives' names, in any letter case.
const COLLECTIVES: &str =
    "nccl|rccl|cross_device_reduce|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|multimem_";

/// Whether a name matches the pattern of collectives.
#[must_use]
pub(crate) fn is_collective_by_name(name: &str) -> bool {
    /// What the pattern stands for.
    const SPELLINGS: [&str; 14] = [
        "nccl",
        "rccl",
        "cross_device_reduce",
        "allreduce",
        "all_reduce",
        "allgather",
        "all_gather",
        "reducescatter",
        "reduce_scatter",
        "alltoall",
        "all_toall",
        "allto_all",
        "all_to_all",
        "multimem_",
    ];
    let lower = name.to_ascii_lowercase();
    SPELLINGS.iter().any(|spelling| lower.contains(spelling))
}

/// The figures of every device.
#[must_use]
pub fn verdicts(slices: &Slices<'_>, gpu: &GpuSide) -> Verdicts {
    let trace = slices.trace;
    let causes = causes(slices, gpu);
    let device = |id: usize| {
        let one = Device { slices, gpu, id: id as DeviceId };
        (gpu.devices[id].clone(), one.figures(&causes))
    };
    let n = slices.all.len() as f64;
    let flag =
        |key: &'static str| Some((key, serde_json::from_str(trace.metadata.get(key)?).ok()?));
    Verdicts {
        devices: (0..gpu.devices.len()).map(device).collect(),
        dataloader_named: loaders(slices),
        compile_named: compiled(slices),
        python_events_share: (!slices.all.is_empty())
            .then(|| micro(slices.frames.slices.len() as f64 / n)),
        flags: ["with_stack", "record_shapes", "profile_memory", "with_flops", "with_modules"]
            .into_iter()
            .filter_map(flag)
            .collect(),
    }
}

fn loaders(slices: &Slices<'_>) -> Vec<Named> {
    let mut found: BTreeMap<(&str, String), NamedSum> = BTreeMap::new();
    let names = slices.names_with("DataLoader");
    for (slice, _) in &slices.all {
        let name = slices.name(slice);
        if names[slices.trace.name(slice.row).0 as usize] {
            let cat = slices.trace.raw_category_text(slice.row).to_ascii_lowercase();
            let sum = found.entry((name, cat)).or_default();
            sum.count += 1;
            sum.sum_ns += slice.dur_ns();
        }
    }
    let named = |((name, cat), NamedSum { count, sum_ns }): ((&str, String), NamedSum)| Named {
        name: name.to_owned(),
        cat,
        count,
        sum_ns,
    };
    found.into_iter().map(named).take(12).collect()
}

fn compiled(slices: &Slices<'_>) -> BTreeMap<String, NamedSum> {
    const PARTS: [&str; 3] = ["CompiledFxGraph", "Torch-Compiled Region", "TorchDynamo"];
    let mut found: BTreeMap<String, NamedSum> = BTreeMap::new();
    let names = PARTS.map(|part| slices.names_with(part));
    for (slice, family) in &slices.all {
        let name = slices.name(slice);
        let id = slices.trace.name(slice.row).0 as usize;
        let known = matches!(family, Family::Annotation | Family::Op);
        if known && names.iter().any(|names| names[id]) {
            let sum = found.entry(without_hashes(name)).or_default();
            sum.count += 1;
            sum.sum_ns += slice.dur_ns();
        }
    }
    found.into_iter().take(12).collect()
}

/// A name with `*` for each run of 40 or more lower-case letters and digits.
fn without_hashes(name: &str) -> String {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let (mut text, mut run) = (String::new(), String::new());
    for letter in name.chars().map(Some).chain([None]) {
        match letter {
            Some(letter) if is_part(letter) => run.push(letter),
            other => {
                text.push_str(if run.len() >= 40 { "*" } else { &run });
                run.clear();
                text.extend(other);
            }
        }
    }
    text
}

struct Device<'a, 's> {
    slices: &'s Slices<'a>,
    gpu: &'s GpuSide,
    id: DeviceId,
}

impl Device<'_, '_> {
    fn figures(&self, causes: &Covers<Vec<Interval>>) -> DeviceFigures {
        let busy = self.busy();
        let kernels = |linked: bool| {
            let those = self.gpu.on(self.id).filter(|one| one.is_kernel);
            let mut values: Vec<i64> = those
                .filter(|one| !linked || one.launch.is_some())
                .map(|one| one.slice.dur_ns())
                .collect();
            trace::sort(&mut values);
            values
        };
        let linked = kernels(true);
        DeviceFigures {
            idle: self.idle(causes),
            launches: self.launch_bound(&busy, &linked),
            busy,
            short_all: Short::of(&kernels(false)),
            short_linked: Short::of(&linked),
            graphs: self.graphs(linked.len()),
            communication: self.communication(),
        }
    }

    fn busy(&self) -> BTreeMap<Window, Busy> {
        let mut found = BTreeMap::new();
        let (all, linked) = (self.gpu.busy(self.id), self.gpu.busy_linked(self.id));
        let mut add = |window: Window, busy: &[Interval], spans: Vec<Interval>| {
            let spans = union(spans);
            let (window_ns, busy_ns) = (length(&spans), length(&both(busy, &spans)));
            found.insert(window, Busy { window_ns, busy_ns, share: share(busy_ns, window_ns) });
        };
        let span = |of: &mut dyn Iterator<Item = &GpuSlice>| -> Option<Interval> {
            of.map(|one| one.slice.interval())
                .reduce(|(start, end), (other, over)| (start.min(other), end.max(over)))
        };
        if let Some(whole) = span(&mut self.gpu.on(self.id)) {
            add(Window::GpuSpanAll, all, vec![whole]);
        }
        let mut own = self.gpu.linked().filter(|one| one.device == self.id);
        if let Some(whole) = span(&mut own) {
            add(Window::GpuSpanLinked, linked, vec![whole]);
        }
        let intervals = |steps: &[HostSlice]| -> Vec<Interval> {
            steps.iter().map(HostSlice::interval).collect()
        };
        if !self.slices.steps.is_empty() {
            add(Window::CpuStepsAll, all, intervals(&self.slices.steps));
            add(Window::CpuStepsLinked, linked, intervals(&self.slices.steps));
        }
        // (The copies of a device's steps have its number as their pid.)
        let device = &self.gpu.devices[self.id as usize];
        let pid =
            |step: &HostSlice| &self.slices.threads[self.slices.thread(step.row) as usize].pid;
        let own: Vec<HostSlice> =
            self.slices.step_copies.iter().filter(|step| pid(step) == device).copied().collect();
        let copies = if own.is_empty() { &self.slices.step_copies } else { &own };
        if !copies.is_empty() {
            add(Window::GpuStepsAll, all, intervals(copies));
            add(Window::GpuStepsLinked, linked, intervals(copies));
        }
        let mut range = self.slices.all.iter().map(|(slice, _)| slice.interval());
        if let Some(first) = range.next() {
            let whole =
                range.fold(first, |(start, end), (other, over)| (start.min(other), end.max(over)));
            add(Window::XRangeAll, all, vec![whole]);
        }
        let launched = self.launched_by_steps();
        if !launched.is_empty() {
            add(Window::LaunchStepsLinked, linked, launched);
        }
        found
    }

    /// From the first to the last slice that each step launched.
    fn launched_by_steps(&self) -> Vec<Interval> {
        let span = |step: &HostSlice| {
            let launched = self.gpu.launched_in(self.id, step);
            let start = launched.iter().map(|(start, _)| *start).min()?;
            Some((start, launched.iter().map(|(_, end)| *end).max()?))
        };
        self.slices.steps.iter().filter_map(span).collect()
    }

    fn launch_bound(&self, busy: &BTreeMap<Window, Busy>, kernels: &[i64]) -> LaunchBound {
        let window = [Window::LaunchStepsLinked, Window::GpuSpanLinked]
            .into_iter()
            .find(|window| busy.contains_key(window));
        let busy_share = window.and_then(|window| busy.get(&window)?.share);
        let own = self.gpu.linked().filter(|one| one.device == self.id);
        let mut delays: Vec<i64> = own.filter_map(GpuSlice::queue_ns).collect();
        trace::sort(&mut delays);
        let (median_q_ns, median_kernel_ns) = (median(&delays), median(kernels));
        let launch_bound =
            busy_share.zip(median_q_ns).zip(median_kernel_ns).map(|((busy, delay), kernel)| {
                busy < LAUNCH_BOUND_BUSY
                    && delay < LAUNCH_BOUND_QUEUE
                    && kernel < LAUNCH_BOUND_KERNEL
            });
        LaunchBound { window, busy_share, median_q_ns, median_kernel_ns, launch_bound }
    }

    fn graphs(&self, kernels_linked: usize) -> Graphs {
        let class = |call: &&HostSlice| self.slices.class(call) == Class::GraphLaunch;
        let those: Vec<i64> = self
            .gpu
            .on(self.id)
            .filter(|one| one.is_kernel && is_of_graph(self.slices, one))
            .map(|one| one.slice.dur_ns())
            .collect();
        Graphs {
            graph_launch_calls: self.slices.calls.iter().filter(class).count() as u64,
            kernels_in_graphs: those.len(),
            kernels_in_graphs_ns: those.iter().sum(),
            kernels_linked,
            share_n: share(those.len() as i64, kernels_linked as i64),
        }
    }

    fn communication(&self) -> Communication {
        let of = |wanted: &dyn Fn(&GpuSlice) -> bool| -> Vec<Interval> {
            let those = self.gpu.on(self.id).filter(|one| wanted(one));
            those.map(|one| one.slice.interval()).collect()
        };
        let is_collective = |one: &GpuSlice| is_collective_by_name(self.slices.name(&one.slice));
        let own = of(&is_collective);
        let (n, sum) = (own.len(), own.iter().map(|(start, end)| end - start).sum());
        let covered = union(own);
        let compute = union(of(&|one| one.is_kernel && !is_collective(one)));
        let comm_union_ns = length(&covered);
        Communication {
            regex: COLLECTIVES,
            comm_union_ns,
            exposed_ns: comm_union_ns - length(&both(&covered, &compute)),
            comm_sum_ns: sum,
            n,
        }
    }
}

impl Short {
    fn of(sorted: &[i64]) -> Self {
        let ns: i64 = sorted.iter().sum();
        let below = |limit: i64| {
            let n = sorted.partition_point(|dur| *dur < limit);
            let part: i64 = sorted[..n].iter().sum();
            Below {
                n,
                ns: part,
                share_n: share(n as i64, sorted.len() as i64),
                share_ns: share(part, ns),
            }
        };
        Self {
            n: sorted.len(),
            ns,
            median_dur_ns: median(sorted),
            lt_5us: below(5_000),
            lt_10us: below(10_000),
        }
    }
}
