//! Calls of runtimes and drivers, and what they waited for.

use std::collections::BTreeMap;

use dialect::Records;
use serde::Serialize;
use timeline::absolute_ns;
use timeline::intervals::{holds, union};

use crate::by_name::ByName;
use crate::class::{Class, is_blocking_copy};
use crate::links::{GpuSide, GpuSlice};
use crate::numbers::{DelayFigures, Delays};
use crate::slices::{Family, HostSlice, Slices};

/// The table of calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calls {
    /// Calls.
    pub n: usize,
    /// By time, the longest first.
    pub names: Vec<CallRow>,
    /// By class.
    pub classes: BTreeMap<Class, Count>,
    /// Calls that wait for the GPU.
    pub sync: Syncs,
    /// Copies that block by their names.
    pub blocking_memcpy: BlockingCopies,
    /// Calls of copies by what the GPU's side says of the copy.
    pub memcpy_calls_by_kind: BTreeMap<String, CallCount>,
    /// Allocations and frees in steps.
    pub alloc_calls_in_cpu_step: Sum,
    /// How long launched work waited before it ran.
    pub queue: Queue,
    /// Work of the profiler itself, and lazy loading.
    pub overhead: BTreeMap<String, Count>,
}

/// All calls of one name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallRow {
    /// Name.
    pub name: String,
    /// What such calls do.
    pub class: Class,
    /// Whether they copy and block, by their name.
    pub blocking_memcpy: bool,
    /// Calls.
    pub count: u64,
    /// Sum of durations, in ns.
    pub total_ns: i64,
    /// Calls by raw category, in lower case.
    pub cats: BTreeMap<String, u64>,
}

/// A number of events and the sum of their durations in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the type says it")]
pub struct Count {
    pub count: u64,
    pub total_ns: i64,
}

/// A number of events and the sum of their durations in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the type says it")]
pub struct Sum {
    pub n: u64,
    pub total_ns: i64,
}

impl Sum {
    fn of<'a>(slices: impl IntoIterator<Item = &'a HostSlice>) -> Self {
        slices.into_iter().fold(Self::default(), |sum, slice| Self {
            n: sum.n + 1,
            total_ns: sum.total_ns + slice.dur_ns(),
        })
    }
}

/// GPU slices, and the sum of the durations of their calls in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the type says it")]
pub struct CallCount {
    pub count: u64,
    pub call_ns: i64,
}

/// Copies that block by their names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockingCopies {
    /// All of them.
    #[serde(flatten)]
    pub all: Sum,
    /// Those that start in a step.
    pub in_cpu_step: Sum,
}

/// Calls that wait for the GPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Syncs {
    /// All of them.
    pub all: Sum,
    /// Waits for a device before the first, or after the last, call that makes work: the edges of the recording.
    pub cut_capture_edges: Vec<CallAt>,
    /// All without these.
    pub trimmed: Sum,
    /// Those that start in a step.
    pub trimmed_in_cpu_step: Sum,
    /// The five longest.
    pub longest: Vec<CallAt>,
    /// The profiler's own records of waits.
    pub cuda_sync_cat: Sum,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallAt {
    /// Name.
    pub name: String,
    /// Start, on the clock of the file.
    pub ts_ns: Option<i64>,
    /// Duration.
    pub dur_ns: i64,
}

/// Delays between launching calls and their GPU slices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Queue {
    /// All GPU slices with a launch.
    pub all: Delays,
    /// Kernels.
    pub kernels: Delays,
    /// Kernels that no graph launched.
    pub kernels_not_graph: Delays,
}

/// Calls that wait for the GPU, told apart: the edges of the recording, and all others. Both by start.
#[must_use]
pub fn syncs(slices: &Slices<'_>) -> (Vec<HostSlice>, Vec<HostSlice>) {
    let work = slices.calls.iter().filter(|call| slices.class(call).makes_work());
    let starts = work.map(|call| call.start_ns);
    let (first, last) =
        starts.fold((i64::MAX, i64::MIN), |(first, last), at| (first.min(at), last.max(at)));
    let mut syncs: Vec<HostSlice> =
        slices.calls.iter().filter(|call| slices.class(call) == Class::Sync).copied().collect();
    trace::sort_by_key(&mut syncs, |call| (call.start_ns, call.row));
    syncs.into_iter().partition(|call| {
        dialect::calls::synchronizes_device(slices.name(call))
            && (call.start_ns <= first || call.start_ns >= last)
    })
}

/// The table of calls.
#[must_use]
pub fn calls(slices: &Slices<'_>, gpu: &GpuSide) -> Calls {
    let trace = slices.trace;
    let steps = union(slices.steps.iter().map(HostSlice::interval).collect());
    let in_step = |call: &&HostSlice| holds(&steps, call.start_ns);
    let mut names: ByName<Vec<HostSlice>> = ByName::new(trace);
    for call in &slices.calls {
        names.entry(trace.name(call.row)).push(*call);
    }
    let mut rows = Vec::new();
    let mut classes: BTreeMap<Class, Count> = BTreeMap::new();
    for (name, calls) in names.iter() {
        let name = trace.strings.get(name);
        let Sum { n: count, total_ns } = Sum::of(calls);
        let class = Class::of(name);
        let sum = classes.entry(class).or_default();
        sum.count += count;
        sum.total_ns += total_ns;
        let mut cats = BTreeMap::new();
        for call in calls {
            *cats.entry(trace.raw_category_text(call.row).to_ascii_lowercase()).or_default() += 1;
        }
        let blocking_memcpy = is_blocking_copy(name);
        rows.push(CallRow { name: name.to_owned(), class, blocking_memcpy, count, total_ns, cats });
    }
    trace::sort_by(&mut rows, |a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
    let blocking = slices.calls.iter().filter(|call| slices.blocks(call));
    let allocations = slices
        .calls
        .iter()
        .filter(|call| matches!(slices.class(call), Class::Malloc | Class::Free));
    Calls {
        n: slices.calls.len(),
        names: rows,
        classes,
        sync: syncs_table(slices, in_step),
        blocking_memcpy: BlockingCopies {
            all: Sum::of(blocking.clone()),
            in_cpu_step: Sum::of(blocking.filter(in_step)),
        },
        memcpy_calls_by_kind: copies_by_kind(slices, gpu),
        alloc_calls_in_cpu_step: Sum::of(allocations.filter(in_step)),
        queue: queue(slices, gpu),
        overhead: overhead(slices),
    }
}

fn syncs_table(slices: &Slices<'_>, in_step: impl Fn(&&HostSlice) -> bool) -> Syncs {
    let (edges, others) = syncs(slices);
    let mut longest = others.clone();
    trace::sort_by_key(&mut longest, |call| (std::cmp::Reverse(call.dur_ns()), call.start_ns));
    longest.truncate(5);
    let at = |call: &HostSlice| CallAt {
        name: slices.name(call).to_owned(),
        ts_ns: absolute_ns(slices.trace, call.start_ns),
        dur_ns: call.dur_ns(),
    };
    let is_record = slices.trace.by_raw_category(|raw| dialect::known(raw) == Some(Records::Sync));
    let records = slices.all.iter().map(|(slice, _)| slice);
    Syncs {
        all: Sum::of(edges.iter().chain(&others)),
        cut_capture_edges: edges.iter().map(at).collect(),
        trimmed: Sum::of(&others),
        trimmed_in_cpu_step: Sum::of(others.iter().filter(in_step)),
        longest: longest.iter().map(at).collect(),
        cuda_sync_cat: Sum::of(records.filter(|slice| *is_record.of(slices.trace, slice.row))),
    }
}

fn copies_by_kind(slices: &Slices<'_>, gpu: &GpuSide) -> BTreeMap<String, CallCount> {
    let mut found: BTreeMap<String, CallCount> = BTreeMap::new();
    for one in gpu.linked().filter(|one| crate::copies::is_copy(slices, one)) {
        let Some(launch) = one.launch else { continue };
        let kind = format!("{} <- {}", slices.name(&one.slice), slices.name(&launch));
        let sum = found.entry(kind).or_default();
        sum.count += 1;
        sum.call_ns += launch.dur_ns();
    }
    found
}

fn overhead(slices: &Slices<'_>) -> BTreeMap<String, Count> {
    let is_overhead =
        slices.trace.by_raw_category(|raw| dialect::known(raw) == Some(Records::Overhead));
    let mut found: BTreeMap<String, Count> = BTreeMap::new();
    for (slice, family) in &slices.all {
        if *family == Family::Other && *is_overhead.of(slices.trace, slice.row) {
            let sum = found.entry(slices.name(slice).to_owned()).or_default();
            sum.count += 1;
            sum.total_ns += slice.dur_ns();
        }
    }
    found
}

/// Whether a graph launched the slice.
#[must_use]
pub(crate) fn is_of_graph(slices: &Slices<'_>, one: &GpuSlice) -> bool {
    one.launch.is_some_and(|launch| slices.class(&launch) == Class::GraphLaunch)
}

fn queue(slices: &Slices<'_>, gpu: &GpuSide) -> Queue {
    let delays = |wanted: &dyn Fn(&GpuSlice) -> bool| {
        let chosen = || gpu.linked().filter(|one| wanted(one));
        let count = |is: &dyn Fn(&GpuSlice, HostSlice) -> bool| {
            let those = chosen().filter(|one| one.launch.is_some_and(|launch| is(one, launch)));
            those.count() as u64
        };
        let values: Vec<i64> = chosen().filter_map(GpuSlice::queue_ns).collect();
        Delays {
            n: values.len(),
            figures: DelayFigures::of(values),
            before_launch_start: count(&|one, launch| one.slice.start_ns < launch.start_ns),
            neg_memcpy: count(&|one, launch| {
                one.slice.start_ns < launch.end_ns && crate::copies::is_copy(slices, one)
            }),
        }
    };
    Queue {
        all: delays(&|_| true),
        kernels: delays(&|one| one.is_kernel),
        kernels_not_graph: delays(&|one| one.is_kernel && !is_of_graph(slices, one)),
    }
}
