//! What the CPU did while the GPU was idle.
//!
//! A cause explains idle time only by the idle time that it covers: the intersection of the idle time with the union of
//! its slices, over all threads. Covers overlap each other (a synchronising call runs within an op); [`cause`] deals the idle
//! time out, each moment to one cause.

pub(crate) mod cause;
pub(crate) mod intervals;

use trace::{Flags, Phase, Row, StringId, Trace, each_row};

use self::intervals::{Collector, Interval, length, union, without};
use crate::before_window::is_gpu;
use crate::gpu::Gpu;
use crate::launches::Launches;

/// Launch calls that take this long load GPU code first, in ns.
const LONG_NS: i64 = 1_000_000;

/// What a slice of the CPU is, where it may explain idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cover {
    /// A data loader: an annotation or op whose name has `DataLoader`.
    DataLoader,
    /// `cudaMalloc`, `cudaFree` and the like.
    Allocation,
    /// The load of a module of GPU code.
    ModuleLoad,
    /// Work of the profiler, and of lazy loading, that it records as overhead.
    Overhead,
    /// A call that waits for the GPU.
    Sync,
    /// A copy whose call is not asynchronous by its name.
    BlockingCopy,
    /// The call of a copy from or to pageable memory, or to the host.
    HostCopy,
    /// Any call of a copy.
    Copy,
    /// A launch of a kernel or a graph.
    Launch,
    /// A launch call of [`LONG_NS`] or more: the first launch of a kernel loads its code.
    LongLaunch,
    /// Any call of the runtime or the driver.
    Runtime,
    /// An op.
    Op,
    /// A frame of Python.
    Python,
}

impl Cover {
    const COUNT: usize = Self::Python as usize + 1;
}

/// The slices of the CPU that may explain idle time: for each kind the union of its times.
pub(crate) struct Host {
    covers: [Vec<Interval>; Cover::COUNT],
}

/// What a name is.
#[derive(Clone, Copy, Default)]
struct Named {
    step: bool,
    loader: bool,
    call: Option<Cover>,
    blocks: bool,
}

/// What a raw category is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Op,
    Python,
    Runtime,
    Annotation,
    Overhead,
    GpuAnnotation,
    Other,
}

fn kind(raw_category: &str) -> Kind {
    match raw_category.to_ascii_lowercase().as_str() {
        "cpu_op" | "operator" => Kind::Op,
        "python_function" => Kind::Python,
        "cuda_runtime" | "cuda_driver" | "runtime" | "driver" | "hip_runtime" | "hip_driver"
        | "xpu_runtime" | "xpu_driver" => Kind::Runtime,
        "user_annotation" => Kind::Annotation,
        "overhead" => Kind::Overhead,
        "gpu_user_annotation" => Kind::GpuAnnotation,
        _ => Kind::Other,
    }
}

/// What a call of the runtime does, by its name; the first row that is part of it.
const CALLS: &[(&str, Option<Cover>)] = &[
    ("GraphLaunch", Some(Cover::Launch)),
    ("Synchronize", Some(Cover::Sync)),
    ("LaunchHostFunc", None),
    ("Launch", Some(Cover::Launch)),
    ("Memcpy", Some(Cover::Copy)),
    ("Memset", None),
    ("Malloc", Some(Cover::Allocation)),
    ("HostAlloc", Some(Cover::Allocation)),
    ("MemAlloc", Some(Cover::Allocation)),
    ("MemCreate", Some(Cover::Allocation)),
    ("MemMap", Some(Cover::Allocation)),
    ("AddressReserve", Some(Cover::Allocation)),
    ("HostRegister", Some(Cover::Allocation)),
    ("Free", Some(Cover::Allocation)),
    ("MemRelease", Some(Cover::Allocation)),
    ("MemUnmap", Some(Cover::Allocation)),
    ("HostUnregister", Some(Cover::Allocation)),
    ("Event", None),
    ("ModuleLoad", Some(Cover::ModuleLoad)),
    ("LibraryLoad", Some(Cover::ModuleLoad)),
];

fn named(name: &str) -> Named {
    let number =
        name.strip_prefix("ProfilerStep").map(|rest| rest.strip_prefix('#').unwrap_or(rest));
    let call = CALLS.iter().find(|(word, _)| name.contains(word)).and_then(|(_, cover)| *cover);
    Named {
        step: number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())),
        loader: name.contains("DataLoader"),
        call,
        blocks: call == Some(Cover::Copy) && !name.contains("Async"),
    }
}

impl Host {
    /// Reads the CPU's slices of a trace.
    #[inline(never)]
    pub(crate) fn of(trace: &Trace) -> Self {
        let names: Vec<Named> = (0..trace.strings.len() as u32)
            .map(|id| named(trace.strings.get(StringId(id))))
            .collect();
        let kinds = trace.by_raw_category(kind);
        let mut covers: [Collector; Cover::COUNT] = std::array::from_fn(|_| Collector::default());
        each_row(trace, |row| {
            let flags = trace.flags(row);
            if trace.phase(row) != Phase::Complete || !flags.has(Flags::HAS_TS) || is_gpu(flags) {
                return;
            }
            let (start, end) = (trace.ts_ns(row), trace.end_ns(row));
            let name = names[trace.name(row).0 as usize];
            let kind = *kinds.of(trace, row);
            let mut add = |cover: Cover| covers[cover as usize].add(start, end);
            match kind {
                Kind::Op => add(Cover::Op),
                Kind::Python => add(Cover::Python),
                Kind::Overhead => add(Cover::Overhead),
                Kind::Runtime => {
                    add(Cover::Runtime);
                    if let Some(call) = name.call {
                        add(call);
                    }
                    if name.blocks {
                        add(Cover::BlockingCopy);
                    }
                    if name.call == Some(Cover::Launch) && end.saturating_sub(start) >= LONG_NS {
                        add(Cover::LongLaunch);
                    }
                }
                Kind::Annotation => {}
                Kind::GpuAnnotation | Kind::Other => return,
            }
            if name.loader && matches!(kind, Kind::Op | Kind::Annotation) {
                covers[Cover::DataLoader as usize].add(start, end);
            }
        });
        Self { covers: covers.map(Collector::union) }
    }

    /// Adds the calls of [`host_copies`].
    pub(crate) fn add_host_copies(&mut self, calls: &[Interval]) {
        let known = &mut self.covers[Cover::HostCopy as usize];
        known.extend(calls);
        *known = union(std::mem::take(known));
    }

    /// The times of one kind.
    pub(crate) fn cover(&self, cover: Cover) -> &[Interval] {
        &self.covers[cover as usize]
    }
}

/// The calls of copies from or to pageable memory, and to the host: the copies say what they are.
#[inline(never)]
pub(crate) fn host_copies(gpu: &Gpu<'_>, launches: &Launches) -> Vec<Interval> {
    let mut calls = Vec::new();
    for at in 0..gpu.len() {
        let work = &gpu.works[gpu.slice(at).work];
        if work.kind != catalog::RawKind::Memcpy {
            continue;
        }
        let name = gpu.trace.strings.get(work.name);
        if (name.contains("Pageable") || name.contains("DtoH"))
            && let Some(launch) = launches.of_slice(at)
        {
            calls.push((gpu.trace.ts_ns(launch), gpu.trace.end_ns(launch)));
        }
    }
    calls
}

/// The profiler's steps on the CPU.
#[inline(never)]
pub(crate) fn cpu_steps(trace: &Trace) -> Vec<Interval> {
    let names: Vec<bool> = (0..trace.strings.len() as u32)
        .map(|id| named(trace.strings.get(StringId(id))).step)
        .collect();
    let mut steps = Collector::default();
    if names.contains(&true) {
        let kinds = trace.by_raw_category(kind);
        each_row(trace, |row| {
            if names[trace.name(row).0 as usize]
                && trace.phase(row) == Phase::Complete
                && trace.flags(row).has(Flags::HAS_TS)
                && *kinds.of(trace, row) != Kind::GpuAnnotation
            {
                steps.add(trace.ts_ns(row), trace.end_ns(row));
            }
        });
    }
    steps.union()
}

/// Idle time of a device within a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Idle {
    pub(crate) window_ns: i64,
    /// Whether the window is the profiler's steps on the CPU. Else it is the GPU span.
    pub(crate) of_steps: bool,
    pub(crate) idle: Vec<Interval>,
}

impl Idle {
    /// Idle time within `window`, which is sorted and disjoint.
    pub(crate) fn within(gpu: &Gpu<'_>, window: &[Interval]) -> Self {
        let idle = without(window, &busy(gpu));
        Self { window_ns: length(window), of_steps: false, idle }
    }

    /// Idle time within the profiler's steps on the CPU, else within the GPU span: a step begins before its first kernel,
    /// and what the GPU waits for there counts.
    #[inline(never)]
    pub(crate) fn of(gpu: &Gpu<'_>, steps: &[Interval]) -> Self {
        if !steps.is_empty() {
            return Self { of_steps: true, ..Self::within(gpu, steps) };
        }
        let busy = busy(gpu);
        let span = busy.first().zip(busy.last()).map(|(first, last)| (first.0, last.1));
        let span: Vec<Interval> = span.into_iter().collect();
        Self { window_ns: length(&span), of_steps: false, idle: without(&span, &busy) }
    }

    /// Its length.
    pub(crate) fn ns(&self) -> i64 {
        length(&self.idle)
    }
}

/// When the device did anything, counted in tables or not.
#[inline(never)]
fn busy(gpu: &Gpu<'_>) -> Vec<Interval> {
    let mut busy = Collector::default();
    for at in 0..gpu.len() {
        let slice = gpu.slice(at);
        busy.add(slice.start_ns, slice.end_ns());
    }
    for at in 0..gpu.n_beside() {
        let slice = gpu.slice_beside(at);
        busy.add(slice.start_ns, slice.end_ns());
    }
    busy.union()
}

/// The rows whose name and kind are those of `cover`, that are open at `ns`, of which the outermost.
#[inline(never)]
pub(crate) fn outermost_at(trace: &Trace, cover: Cover, instants: &[i64]) -> Vec<Option<Row>> {
    let names: Vec<Named> =
        (0..trace.strings.len() as u32).map(|id| named(trace.strings.get(StringId(id)))).collect();
    let kinds = trace.by_raw_category(kind);
    let mut found: Vec<Option<Row>> = vec![None; instants.len()];
    each_row(trace, |row| {
        let flags = trace.flags(row);
        if trace.phase(row) != Phase::Complete || !flags.has(Flags::HAS_TS) || is_gpu(flags) {
            return;
        }
        let name = names[trace.name(row).0 as usize];
        let kind = *kinds.of(trace, row);
        let is = match cover {
            Cover::Op => matches!(kind, Kind::Op | Kind::Annotation) && !name.step,
            Cover::DataLoader => name.loader && matches!(kind, Kind::Op | Kind::Annotation),
            Cover::Python => kind == Kind::Python,
            Cover::Overhead => kind == Kind::Overhead,
            Cover::Runtime => kind == Kind::Runtime,
            Cover::LongLaunch => {
                let long = trace.end_ns(row).saturating_sub(trace.ts_ns(row)) >= LONG_NS;
                kind == Kind::Runtime && name.call == Some(Cover::Launch) && long
            }
            Cover::BlockingCopy => kind == Kind::Runtime && name.blocks,
            Cover::HostCopy => kind == Kind::Runtime && name.call == Some(Cover::Copy),
            _ => kind == Kind::Runtime && name.call == Some(cover),
        };
        if !is {
            return;
        }
        let (start, end) = (trace.ts_ns(row), trace.end_ns(row));
        let from = instants.partition_point(|ns| *ns < start);
        for (at, ns) in instants.iter().enumerate().skip(from) {
            if *ns >= end {
                break;
            }
            let first = found[at].is_none_or(|known| trace.ts_ns(known) > start);
            if first {
                found[at] = Some(row);
            }
        }
    });
    found
}

#[cfg(test)]
mod tests;
