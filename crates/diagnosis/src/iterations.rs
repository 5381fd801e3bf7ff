//! Iterations: the profiler's steps, an engine's passes, or a range that comes again and again; where the time of each goes, which
//! are cold, and why the slowest is slow. Triage finds them ([`triage::Ranges`]).

mod others;
mod pace;
mod period;
mod sections;
mod slow;

use std::collections::BTreeMap;

use host::Slices;
use host::links::{DeviceId, GpuSide};
use host::numbers::Stats;
use serde::Serialize;
use timeline::inputs::{entries, numbers};
use timeline::intervals::Interval;
use trace::{Details, Trace};
pub use triage::{Cold, Kind};
use triage::{Range, Ranges, TriageReport, WallPart, WallRow, WallTimes};

pub use slow::OnlyWaits;

/// The slowest iteration is told of from this much above the median on, in percent.
const SLOW_PCT: f64 = 10.0;
/// Of fewer iterations of a class nothing is said about the slowest.
const FEWEST: usize = 3;
/// An op is named as the cause if it has one of so many parts of the difference.
const OP_PARTS: i64 = 5;
/// So many ops of an iteration are looked at for its input.
const MOST_OPS: usize = 1_000;

/// What iterations are found in.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) slices: &'a Slices<'a>,
    pub(crate) gpu: &'a GpuSide,
    pub(crate) triage: &'a TriageReport,
    pub(crate) details: &'a Details,
}

/// The iterations of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Iterations {
    /// What they are told by.
    pub kind: Kind,
    /// The device whose time is told of; `None` without a GPU.
    pub device: Option<String>,
    /// Whether the file has work of other devices, too.
    #[serde(skip)]
    pub is_one_of_several: bool,
    /// Ranks in the file, of which these are the iterations of one; 1 where it has no others.
    #[serde(skip)]
    pub n_ranks: usize,
    /// By class, in order of first appearance.
    pub classes: Vec<Class>,
    /// By start.
    pub list: Vec<Iteration>,
    /// The slowest against the median one, where it is much slower.
    pub slowest: Option<Slowest>,
    /// What goes into each of them, if that is the same in all warm ones of a class.
    pub input: Option<Input>,
    /// That the GPU runs dry although its work is launched ahead.
    #[serde(skip)]
    pub(crate) pace: Option<pace::Pace>,
    /// That work without a launch in the file is left out, where that is much.
    #[serde(skip)]
    pub(crate) left_out: Option<String>,
    /// Whether the GPU computes all the time of the bar: then nothing follows from how far ahead the CPU launches.
    #[serde(skip)]
    pub(crate) fills_gpu: bool,
    /// Whether the first sentence of a report tells of the cold ones.
    #[serde(skip)]
    pub(crate) is_cold_told: bool,
    /// Whether the cold ones are the first ones.
    #[serde(skip)]
    begin_cold: bool,
    /// When the warm ones are: see [`Ranges::warm_windows`].
    #[serde(skip)]
    pub(crate) warm_windows: Option<Vec<Interval>>,
}

/// The first tensor that the first op of each iteration takes; of an embedding its indices, since its first tensor is a weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Input {
    /// Name of the op.
    pub op: String,
    /// Sizes of the tensor.
    pub dims: Vec<i64>,
    /// Sizes of the weight, of an embedding: models differ in them.
    pub weight: Option<Vec<i64>>,
}

/// Iterations of one kind of work: prefill and decode are two.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Class {
    /// `decode`, `extend`, `mixed`; of other iterations their name without numbers.
    pub name: String,
    /// Iterations.
    pub n: usize,
    /// Cold ones among them, which the figures leave out.
    pub cold: usize,
    /// Durations on the CPU, of those that are not cold.
    pub cpu: Stats,
    /// From the first to the last GPU work that each launched.
    pub gpu_span: Stats,
    /// From the first GPU work of one to that of the next, the median in ns, where the GPU is full and that is longer than the span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<i64>,
    /// Of how many such times that is the median.
    #[serde(skip)]
    pub(crate) n_periods: usize,
}

/// One iteration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Iteration {
    /// Its name, as the file has it; "before ProfilerStep#2" of one that no range marks.
    pub name: String,
    /// Its class: see [`Class::name`].
    pub class: String,
    /// Start, on the clock of the file.
    pub ts_ns: Option<i64>,
    /// Duration on the CPU.
    pub dur_ns: i64,
    /// GPU slices that its calls launched, on any thread.
    pub launched: usize,
    /// From the first of them to the end of the last; `None` without any.
    pub gpu_span_ns: Option<i64>,
    /// Time that they cover.
    pub gpu_busy_ns: i64,
    /// Why it is cold; `None` if it is not, or if that cannot be told.
    pub cold: Option<Cold>,
    /// Parts of the wall time while it lasts on the CPU, in ns; work of an earlier iteration may run in it.
    pub parts: BTreeMap<&'static str, i64>,
    /// The rest of its duration: before the first or after the last GPU work of the file.
    pub outside_ns: i64,
    /// Its number among all, from 1, where another one has the same name.
    #[serde(skip)]
    number: Option<usize>,
    /// Whether no range of the file marks it.
    #[serde(skip)]
    pub(crate) is_unmarked: bool,
    /// When it is, on the clock of the trace.
    #[serde(skip)]
    window: Interval,
    /// Whether most of the GPU work that it launched runs after it: the parts are those of other work.
    #[serde(skip)]
    is_ahead: bool,
    /// From the first GPU work that it launched to the end of the last, on the clock of the trace.
    #[serde(skip)]
    on_gpu: Option<Interval>,
}

impl Iteration {
    /// When it is, on the clock of the trace.
    #[must_use]
    pub fn window(&self) -> Interval {
        self.window
    }

    /// Its name, with its number where others have the same.
    #[must_use]
    pub fn shown_name(&self) -> String {
        self.number.map_or_else(|| self.name.clone(), |number| format!("{} ({number})", self.name))
    }
}

/// The slowest warm iteration of the class that takes most time, against the median one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slowest {
    /// Its number in [`Iterations::list`].
    pub at: usize,
    /// That of the median one (of two in the middle the shorter).
    pub median_at: usize,
    /// How much longer it takes, in ns.
    pub longer_ns: i64,
    /// The part that grew most, and by how much; `None` where none did.
    pub part: Option<(WallPart, i64)>,
    /// The range, op or call whose time on the CPU grew most, and by how much, if that is half of the difference; of several around each
    /// other the innermost. `None` without a GPU.
    pub on_cpu: Option<(String, i64)>,
    /// Without a GPU the op whose own CPU time grew most, and by how much, if that is a fifth of the difference.
    pub op: Option<(String, i64)>,
    /// GPU slices that it launched more, or fewer.
    pub launched_more: i64,
    /// How it waits longer for the GPU, where the GPU's work is the same in both and the GPU is not idle for longer: nothing is slow.
    pub only_waits: Option<OnlyWaits>,
}

impl Iterations {
    /// The iterations of a run; `None` where the file has none.
    #[must_use]
    pub(crate) fn of(run: &Run<'_>) -> Option<Self> {
        let mut ranges = Ranges::of(run.slices, run.gpu)?;
        let device = ranges.device;
        let times = device.and_then(|device| times_of(run, device));
        ranges.mark(times);
        let (kind, warm_windows) = (ranges.kind, ranges.warm_windows());
        let begin_cold = ranges.begin_cold();
        let rows = ranges.list.into_iter().map(|range| iteration(run, range, times));
        let mut list: Vec<Iteration> = rows.collect();
        number(&mut list);
        let classes = classes(&list, times);
        let slowest = slowest(run, &list, &classes);
        let pace = times.and_then(|times| pace::Pace::of(run, &list, times));
        let is_one_of_several = run.gpu.devices.len() > 1;
        let device = device.and_then(|device| run.gpu.devices.get(device as usize).cloned());
        let input = input(run, &list);
        let n_ranks = 1;
        Some(Self {
            kind,
            device,
            is_one_of_several,
            n_ranks,
            classes,
            list,
            slowest,
            input,
            pace,
            left_out: None,
            fills_gpu: false,
            is_cold_told: false,
            begin_cold,
            warm_windows,
        })
    }

    /// Those that are not cold.
    pub fn warm(&self) -> impl Iterator<Item = &Iteration> {
        self.list.iter().filter(|one| one.cold.is_none())
    }

    /// Cold ones.
    #[must_use]
    pub fn n_cold(&self) -> usize {
        self.list.len() - self.warm().count()
    }

    /// Where the cold ones are, if one place can be named.
    pub(crate) fn cold_place(&self) -> &'static str {
        if self.begin_cold { ", at the beginning," } else { "" }
    }
}

/// The bar of each device within some windows; its parts add up to what of the windows has GPU work before and after it.
pub(crate) fn wall_within(all: &[WallTimes], windows: &[Interval]) -> Vec<WallRow> {
    let of_device = |times: &WallTimes| {
        let mut sums: BTreeMap<WallPart, i64> = BTreeMap::new();
        for window in windows {
            for (part, ns) in times.within(*window) {
                *sums.entry(part).or_default() += ns;
            }
        }
        WallRow::bar(&times.device, &sums.into_iter().collect::<Vec<_>>(), true)
    };
    all.iter().flat_map(of_device).collect()
}

/// When each part of a device's wall time is.
fn times_of<'a>(run: &Run<'a>, device: DeviceId) -> Option<&'a WallTimes> {
    let all = &run.triage.wall_times;
    let name = run.gpu.devices.get(device as usize)?;
    let own = all.iter().find(|times| times.device == *name);
    own.or_else(|| all.first().filter(|_| run.gpu.devices.len() == 1))
}

fn iteration(run: &Run<'_>, range: Range, times: Option<&WallTimes>) -> Iteration {
    let Range { slice, class, launched, on_gpu, gpu_busy_ns, is_ahead, cold, is_unmarked, .. } =
        range;
    let parts = times.map_or_else(Vec::new, |times| times.within(slice.interval()));
    let told: i64 = parts.iter().map(|(_, ns)| ns).sum();
    Iteration {
        class,
        name: [if is_unmarked { "before " } else { "" }, run.slices.name(&slice)].concat(),
        ts_ns: timeline::absolute_ns(run.trace, slice.start_ns),
        dur_ns: slice.dur_ns(),
        launched,
        gpu_span_ns: on_gpu.map(|(first, last)| last - first),
        on_gpu,
        gpu_busy_ns,
        cold,
        parts: parts.into_iter().map(|(part, ns)| (part.id(), ns)).collect(),
        number: None,
        is_unmarked,
        window: slice.interval(),
        is_ahead,
        outside_ns: if times.is_some() { slice.dur_ns() - told } else { 0 },
    }
}

/// Numbers iterations that share a name with another one.
fn number(list: &mut [Iteration]) {
    let mut times: BTreeMap<&str, i64> = BTreeMap::new();
    for one in &*list {
        *times.entry(&one.name).or_default() += 1;
    }
    let shared: Vec<bool> = list.iter().map(|one| times[&*one.name] > 1).collect();
    for (at, one) in list.iter_mut().enumerate() {
        one.number = shared[at].then_some(at + 1);
    }
}

fn classes(list: &[Iteration], times: Option<&WallTimes>) -> Vec<Class> {
    let mut names: Vec<&str> = Vec::new();
    for one in list {
        if !names.contains(&&*one.class) {
            names.push(&one.class);
        }
    }
    let class = |name: &str| {
        let own = || list.iter().filter(|one| one.class == name);
        let warm = || own().filter(|one| one.cold.is_none());
        let gpu_span = Stats::of(warm().filter_map(|one| one.gpu_span_ns).collect());
        let period = period::period(list, name, &gpu_span, times);
        Class {
            name: name.to_owned(),
            n: own().count(),
            cold: own().count() - warm().count(),
            cpu: Stats::of(warm().map(|one| one.dur_ns).collect()),
            period_ns: period.map(|(ns, _)| ns),
            n_periods: period.map_or(0, |(_, n)| n),
            gpu_span,
        }
    };
    names.into_iter().map(class).collect()
}

/// The first tensor of the first op with one, of every warm iteration; `None` where they differ, or no sizes are recorded.
fn input(run: &Run<'_>, list: &[Iteration]) -> Option<Input> {
    let ops = &run.slices.ops.slices;
    let mut by_start: Vec<(i64, usize)> =
        ops.iter().enumerate().map(|(at, op)| (op.start_ns, at)).collect();
    by_start.sort_unstable();
    let mut found: Option<Input> = None;
    for one in list.iter().filter(|one| one.cold.is_none()) {
        let from = by_start.partition_point(|(start, _)| *start < one.window.0);
        let inside = by_start[from..].iter().take_while(|(start, _)| *start < one.window.1);
        // (Ops before the first one with a tensor make empty tensors and the like; those that fill are of the gradients.)
        let names = inside.map(|(_, at)| (run.slices.name(&ops[*at]), *at));
        let others = names.filter(|(name, _)| !matches!(*name, "aten::zero_" | "aten::fill_"));
        let first = others.take(MOST_OPS).find_map(|(name, at)| {
            let inputs = run.details.inputs(ops[at].row)?;
            let all = entries(run.details.texts.get(inputs.dims));
            let dims = |which: usize| numbers(all.get(which)?).filter(|dims| !dims.is_empty());
            let (dims, weight) = match name {
                "aten::embedding" => (dims(1)?, dims(0)),
                // (A bag of indices is an item; where bags are ranges of one list, another list has their starts.)
                "aten::embedding_bag" => (dims(2).or_else(|| dims(1))?, dims(0)),
                _ => (dims(0)?, None),
            };
            Some(Input { op: name.to_owned(), dims, weight })
        })?;
        match &found {
            Some(known) if *known != first => return None,
            _ => found = Some(first),
        }
    }
    found
}

/// Whether an iteration is the first or the last, and most of what it takes longer than the median one lies outside of the GPU's work in the
/// file: the profiler starts in the first and stops in the last, which is none of the run.
fn is_edge(list: &[Iteration], at: usize, median_at: usize) -> bool {
    let (one, median) = (&list[at], &list[median_at]);
    let outside_ns = one.outside_ns - median.outside_ns;
    let longer_ns = one.dur_ns - median.dur_ns;
    (at == 0 || at + 1 == list.len())
        && !one.parts.is_empty()
        && outside_ns > 0
        && outside_ns.saturating_mul(2) >= longer_ns
}

fn slowest(run: &Run<'_>, list: &[Iteration], classes: &[Class]) -> Option<Slowest> {
    let sum = |class: &&Class| class.cpu.figures.as_ref().map_or(0, |figures| figures.sum_ns);
    let class = classes.iter().max_by_key(sum)?;
    let own = list.iter().enumerate().filter(|(_, one)| one.class == class.name);
    let mut warm: Vec<(i64, usize)> =
        own.filter(|(_, one)| one.cold.is_none()).map(|(at, one)| (one.dur_ns, at)).collect();
    if warm.len() < FEWEST {
        return None;
    }
    trace::sort(&mut warm);
    let (median_ns, median_at) = *warm.get((warm.len() - 1) / 2)?;
    let (slow_ns, at) = *warm.iter().rev().find(|(_, at)| !is_edge(list, *at, median_at))?;
    let longer_ns = slow_ns - median_ns;
    if longer_ns as f64 <= SLOW_PCT / 100.0 * median_ns as f64 {
        return None;
    }
    let (slow, median) = (list.get(at)?, list.get(median_at)?);
    // (Its time on the CPU delays nothing, and what the GPU does meanwhile is not its work.)
    if slow.is_ahead || median.is_ahead {
        return None;
    }
    let of = |one: &Iteration, part: WallPart| one.parts.get(part.id()).copied().unwrap_or(0);
    let grew = WallPart::ALL.into_iter().map(|part| (part, of(slow, part) - of(median, part)));
    let part = grew.filter(|(_, ns)| *ns > 0).max_by_key(|(_, ns)| *ns);
    let launched_more = slow.launched as i64 - median.launched as i64;
    let has_gpu = !slow.parts.is_empty();
    let on_cpu = if has_gpu { slow::on_cpu(run, slow, median, longer_ns) } else { None };
    let op = if has_gpu { None } else { slow::op(run, slow.window, median.window) };
    let op = op.filter(|(_, ns)| ns.saturating_mul(OP_PARTS) >= longer_ns);
    // (What the GPU does meanwhile is a consequence where the CPU has the cause, and no cause of what the CPU does not wait for.)
    let outside_ns = slow.outside_ns - median.outside_ns;
    let part = part.filter(|(part, ns)| {
        let is_much = ns.saturating_mul(2) >= longer_ns;
        let is_cause = if on_cpu.is_some() { is_much } else { part.is_idle() };
        let delays = slow::is_of_cpu(*part) || {
            // (The iteration takes longer on the CPU: the GPU is why only as far as the CPU waits for it; and more work only if it
            // launched more.)
            let waits_ns = slow::waits_ns(run, slow) - slow::waits_ns(run, median);
            let work_ns = slow.gpu_busy_ns - median.gpu_busy_ns;
            waits_ns.saturating_mul(2) >= *ns
                && (part.is_idle() || work_ns.saturating_mul(2) >= *ns)
        };
        is_cause && delays && *ns >= outside_ns && *ns <= longer_ns.saturating_mul(2)
    });
    let only_waits = if has_gpu {
        slow::only_waits(run, (list.get(at.wrapping_sub(1)), slow), median, longer_ns)
    } else {
        None
    };
    // (What the CPU does while it waits is no cause.)
    let (part, on_cpu) = if only_waits.is_some() { (None, None) } else { (part, on_cpu) };
    Some(Slowest { at, median_at, longer_ns, part, on_cpu, op, launched_more, only_waits })
}
