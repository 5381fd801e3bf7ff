//! What the CPU did while the GPU was idle.
//!
//! A cause explains idle time only by the idle time that it covers: the intersection of the idle time with the union of
//! its slices, over all threads. Covers overlap each other (a synchronising call runs within an op); [`cause`] deals the idle
//! time out, each moment to one cause.

pub(crate) mod cause;
mod first_calls;
pub(crate) mod gaps;
mod loading;
mod ops;
mod overhead;
pub(crate) mod place;
pub(crate) mod sentences;
mod window;
pub(crate) mod words;

use dialect::calls::{self, Does};
use dialect::inductor::is_compiled;
use dialect::{Accelerator, Records, kineto};
use trace::{Flags, Phase, Row, StringId, Trace, TrackId, each_row};

use self::first_calls::{Calls, loads_first};
use self::loading::{LongLaunch, loading};
use timeline::gpu::Gpu;
use timeline::intervals::{Collector, Interval, both, union, without};
use timeline::launches::Launches;
use timeline::recorded::is_gpu;

pub(crate) use window::{Idle, busy, cpu_steps, until_last_work};

/// Launch calls that take this long load GPU code first, in ns.
const LONG_NS: i64 = 1_000_000;

/// A call that frees memory for this long sets up the runtime or a library, in ns: cuDNN's first call, which frees
/// nothing to have a context.
const LONG_ALLOCATION_NS: i64 = 100_000_000;

/// An op that takes this long and launches nothing computes on the CPU, in ns.
const LONG_OP_NS: i64 = 50_000;

/// Ops that are looked at before a moment for one that holds it: ops nest a few levels.
const ENCLOSING: usize = 16;

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
    /// The same without copies to pinned memory, whose calls return at once.
    WaitingCopy,
    /// Any call of a copy.
    Copy,
    /// A launch of a kernel or a graph.
    Launch,
    /// A launch call of [`LONG_NS`] or more, of a kernel that did not run before: its first launch loads its code.
    LongLaunch,
    /// Any other call of [`LONG_NS`] or more, such as `cudaFuncGetAttributes` or `cudaStreamCreate`: it sets the runtime
    /// up. Also what the profiler records as lazy loading.
    SetUp,
    /// The first call of an op that takes far longer than its later calls: a library sets itself up ([`first_calls`]).
    FirstCall,
    /// Any call of the runtime or the driver.
    Runtime,
    /// An op, or an annotation that is recorded as one.
    Op,
    /// An op.
    Work,
    /// A frame of Python.
    Python,
    /// A range around code of `torch.compile`, which holds its ops and calls.
    Compiled,
    /// A long frame of the profiler.
    Profiler,
    /// A range or a frame of its compiler, or a call in which TorchScript compiles.
    Compiling,
    /// A frame that imports a module of Python. (The profiler's own imports are its time.)
    Importing,
    /// A range in which a graph is captured, or that is prepared.
    Capturing,
}

impl Cover {
    const COUNT: usize = Self::Capturing as usize + 1;
}

/// The slices of the CPU that may explain idle time: for each kind the union of its times.
pub(crate) struct Host {
    covers: [Vec<Interval>; Cover::COUNT],
    /// Calls that wait for the GPU, by thread and start.
    pub(crate) waits: Vec<Wait>,
    /// Ops of [`LONG_OP_NS`] or more in which nothing is launched, by thread and start: they work on tensors of the CPU.
    on_cpu: Vec<Wait>,
    /// Calls that give memory back to the driver, sorted.
    pub(crate) frees: Vec<Interval>,
    /// Whether a profiler step after the first is recorded: the run is warm.
    pub(crate) warm: bool,
}

/// A call that waits for the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wait {
    pub(crate) track: TrackId,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) row: Row,
}

/// What a name is.
#[derive(Clone, Copy, Default)]
struct Named {
    step: bool,
    loader: bool,
    call: Option<Cover>,
    /// It does nothing that is known.
    other_call: bool,
    blocks: bool,
    lazy: bool,
    /// An annotation of PyTorch's own.
    annotation: bool,
    /// A range around compiled code.
    compiled: bool,
    /// The compiler works.
    compiles: bool,
    /// A graph is captured.
    captures: bool,
    /// An extension is built, or found to be.
    builds: bool,
    /// Of a profiler step; 0 if it is none.
    step_number: u64,
    /// Gives memory back to the driver.
    frees: bool,
    /// The launch of a graph, which takes long where the graph is long.
    graph: bool,
    /// A frame of the profiler.
    profiles: bool,
    /// A frame that imports a module.
    imports: bool,
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
    match dialect::known(raw_category) {
        Some(Records::Op) => Kind::Op,
        Some(Records::Frame) => Kind::Python,
        Some(Records::Call(Accelerator::Gpu | Accelerator::Xpu)) => Kind::Runtime,
        Some(Records::Annotation) => Kind::Annotation,
        Some(Records::Overhead) => Kind::Overhead,
        Some(Records::GpuAnnotation) => Kind::GpuAnnotation,
        Some(
            Records::Kernel
            | Records::GpuCopy
            | Records::GpuFill
            | Records::Sync
            | Records::Call(_)
            | Records::Work(_),
        )
        | None => Kind::Other,
    }
}

/// The time that a call of the runtime takes up.
fn cover(does: Does) -> Option<Cover> {
    match does {
        Does::Launch | Does::LaunchGraph => Some(Cover::Launch),
        Does::Synchronize => Some(Cover::Sync),
        Does::Copy => Some(Cover::Copy),
        Does::Allocate | Does::Free => Some(Cover::Allocation),
        Does::LoadModule => Some(Cover::ModuleLoad),
        Does::LaunchHostFunction | Does::Fill | Does::Event => None,
    }
}

fn named(name: &str) -> Named {
    let number = name.strip_prefix(kineto::STEP).map(|rest| rest.strip_prefix('#').unwrap_or(rest));
    let does = calls::does(name);
    let call = does.and_then(cover);
    Named {
        other_call: does.is_none(),
        graph: does == Some(Does::LaunchGraph),
        profiles: kineto::is_of_profiler(name),
        imports: dialect::python::imports(name),
        annotation: name.starts_with("Optimizer."),
        captures: dialect::inductor::captures(name),
        compiles: dialect::inductor::compiles(name),
        builds: dialect::python::builds(name),
        compiled: is_compiled(name) || name.contains("CompiledFunction"),
        step_number: number.and_then(|number| number.parse().ok()).unwrap_or_default(),
        frees: calls::FREES.contains(&name),
        // (Kineto's activities of overhead: `Lazy Function Loading`, `Runtime Triggered Module Loading`.)
        lazy: name.contains("Lazy") || name.contains("Module Loading"),
        step: number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())),
        loader: name.contains("DataLoader"),
        call,
        blocks: call == Some(Cover::Copy) && calls::blocks(name),
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
        let mut found = Found::of(names.len());
        each_row(trace, |row| {
            let flags = trace.flags(row);
            if trace.phase(row) == Phase::Complete && flags.has(Flags::HAS_TS) && !is_gpu(flags) {
                found.take(trace, row, names[trace.name(row).0 as usize], *kinds.of(trace, row));
            }
        });
        found.host(trace, names.iter().any(|name| name.step_number > 0))
    }

    /// Adds the calls of [`host_copies`].
    pub(crate) fn add_host_copies(&mut self, calls: &[HostCopy]) {
        let waiting = || calls.iter().filter(|call| call.waits).map(|call| call.call);
        let idle = || calls.iter().filter(|call| call.waits && !call.stages).map(|call| call.call);
        let mut add = |cover: Cover, calls: &mut dyn Iterator<Item = Wait>| {
            let known = &mut self.covers[cover as usize];
            known.extend(calls.map(|call| (call.start_ns, call.end_ns)));
            *known = union(std::mem::take(known));
        };
        add(Cover::HostCopy, &mut calls.iter().map(|call| call.call));
        add(Cover::WaitingCopy, &mut idle());
        self.waits.extend(waiting());
        trace::sort(&mut self.waits);
        self.waits.dedup();
    }

    /// When a thread computes on tensors of the CPU between two moments: sorted and disjoint.
    pub(crate) fn on_cpu(&self, track: TrackId, times: Interval) -> Vec<Interval> {
        let first = self.on_cpu.partition_point(|op| (op.track, op.start_ns) < (track, times.0));
        // (An op that began before may hold the begin; those further back are its callers, or over.)
        let from = first.saturating_sub(ENCLOSING);
        let own =
            self.on_cpu[from..].iter().take_while(|op| (op.track, op.start_ns) < (track, times.1));
        let own = own.filter(|op| op.track == track && op.end_ns > times.0);
        both(&union(own.map(|op| (op.start_ns, op.end_ns)).collect()), &[times])
    }

    /// When the first call, op or frame begins; `None` without any.
    pub(crate) fn first_ns(&self) -> Option<i64> {
        let recorded = [Cover::Runtime, Cover::Op, Cover::Python];
        recorded.into_iter().filter_map(|cover| Some(self.cover(cover).first()?.0)).min()
    }

    /// The times of one kind.
    pub(crate) fn cover(&self, cover: Cover) -> &[Interval] {
        &self.covers[cover as usize]
    }
}

/// What is found while the slices of the CPU are read.
struct Found {
    covers: [Collector; Cover::COUNT],
    /// By name.
    calls: Vec<Calls>,
    waits: Vec<Wait>,
    frees: Vec<Interval>,
    long_ops: Vec<Wait>,
    launches: Vec<(TrackId, i64)>,
    long_launches: Vec<LongLaunch>,
    slow_ops: Vec<(StringId, Interval)>,
    lazy: Vec<Interval>,
}

impl Found {
    fn of(n_names: usize) -> Self {
        Self {
            covers: std::array::from_fn(|_| Collector::default()),
            calls: vec![Calls::default(); n_names],
            waits: Vec::new(),
            frees: Vec::new(),
            long_ops: Vec::new(),
            launches: Vec::new(),
            long_launches: Vec::new(),
            slow_ops: Vec::new(),
            lazy: Vec::new(),
        }
    }

    fn add(&mut self, cover: Cover, (start, end): Interval) {
        self.covers[cover as usize].add(start, end);
    }

    /// Takes a slice of the CPU.
    #[inline]
    fn take(&mut self, trace: &Trace, row: Row, name: Named, kind: Kind) {
        let times @ (start, end) = (trace.ts_ns(row), trace.end_ns(row));
        match kind {
            // (Profilers before 2021 write annotations as ops.)
            Kind::Op if name.step || name.loader || name.annotation => self.add(Cover::Op, times),
            Kind::Op if name.compiled => {
                self.add(Cover::Op, times);
                self.add(Cover::Compiled, times);
                self.calls[trace.name(row).0 as usize].add(start, end);
            }
            Kind::Op => {
                self.add(Cover::Op, times);
                self.add(Cover::Work, times);
                if end.saturating_sub(start) >= LONG_OP_NS {
                    let track = trace.track(row);
                    self.long_ops.push(Wait { track, start_ns: start, end_ns: end, row });
                }
                if end.saturating_sub(start) >= LONG_NS {
                    self.slow_ops.push((trace.name(row), (start, end)));
                }
                self.calls[trace.name(row).0 as usize].add(start, end);
            }
            Kind::Python => {
                self.add(Cover::Python, times);
                // (Its start, its stop or a first use. What shorter ones take without it is not known.)
                if name.profiles && end.saturating_sub(start) > LONG_NS {
                    self.add(Cover::Profiler, times);
                }
                if name.imports {
                    self.add(Cover::Importing, times);
                }
            }
            Kind::Overhead => {
                self.add(Cover::Overhead, times);
                if name.lazy {
                    self.add(Cover::SetUp, times);
                    self.lazy.push((start, end));
                }
            }
            Kind::Runtime => self.take_call(trace, row, name),
            Kind::Annotation => {}
            Kind::GpuAnnotation | Kind::Other => return,
        }
        if name.compiles {
            self.covers[Cover::Compiling as usize].add(start, end);
        }
        if name.builds {
            self.covers[Cover::SetUp as usize].add(start, end);
        }
        if name.captures {
            self.covers[Cover::Capturing as usize].add(start, end);
        }
        if name.loader && matches!(kind, Kind::Op | Kind::Annotation) {
            self.covers[Cover::DataLoader as usize].add(start, end);
        }
    }

    /// Takes a call of the runtime.
    #[inline]
    fn take_call(&mut self, trace: &Trace, row: Row, name: Named) {
        let times @ (start, end) = (trace.ts_ns(row), trace.end_ns(row));
        self.add(Cover::Runtime, times);
        if let Some(call) = name.call {
            self.add(call, times);
        }
        if matches!(name.call, Some(Cover::Launch | Cover::Copy)) || name.other_call {
            self.launches.push((trace.track(row), start));
        }
        if name.frees {
            self.frees.push(times);
        }
        if name.blocks {
            self.add(Cover::BlockingCopy, times);
        }
        let dur_ns = end.saturating_sub(start);
        if dur_ns >= LONG_NS {
            match name.call {
                Some(Cover::Launch) if !name.graph => {
                    let link = trace.link(row);
                    self.long_launches.push(LongLaunch { link, times: (start, end) });
                }
                Some(Cover::Allocation) if name.frees && dur_ns >= LONG_ALLOCATION_NS => {
                    self.add(Cover::SetUp, times);
                }
                None if name.other_call => self.add(Cover::SetUp, times),
                _ => {}
            }
        }
        if name.call == Some(Cover::Sync) || name.blocks {
            let track = trace.track(row);
            self.waits.push(Wait { track, start_ns: start, end_ns: end, row });
        }
    }

    /// What follows once all are read.
    fn host(self, trace: &Trace, warm: bool) -> Host {
        let Self {
            mut covers,
            calls,
            mut waits,
            mut frees,
            long_ops,
            mut launches,
            long_launches,
            slow_ops,
            lazy,
        } = self;
        for (start, end) in timeline::torchscript::compiling(trace) {
            covers[Cover::Compiling as usize].add(start, end);
        }
        for (start, end) in timeline::captures::recording(trace) {
            covers[Cover::Capturing as usize].add(start, end);
        }
        for (start, end) in loading(trace, &long_launches) {
            covers[Cover::LongLaunch as usize].add(start, end);
        }
        for (start, end) in loads_first(&calls, &slow_ops, lazy) {
            covers[Cover::SetUp as usize].add(start, end);
        }
        for (start, end) in calls.iter().filter_map(Calls::set_up) {
            covers[Cover::FirstCall as usize].add(start, end);
        }
        trace::sort(&mut launches);
        let has_launch = |op: &Wait| {
            let before = launches.partition_point(|launch| *launch < (op.track, op.start_ns));
            launches.get(before).is_some_and(|launch| *launch < (op.track, op.end_ns))
        };
        let mut on_cpu: Vec<Wait> = long_ops.iter().filter(|op| !has_launch(op)).copied().collect();
        trace::sort(&mut on_cpu);
        trace::sort(&mut waits);
        trace::sort(&mut frees);
        let mut covers = covers.map(Collector::union);
        let times = &mut covers[Cover::Overhead as usize];
        *times = overhead::without_launching(times, &launches);
        let own = without(&covers[Cover::Importing as usize], &covers[Cover::Profiler as usize]);
        covers[Cover::Importing as usize] = own;
        Host { covers, waits, on_cpu, frees, warm }
    }
}

/// The call of a copy from or to the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostCopy {
    call: Wait,
    /// Whether it waits for the copy: an asynchronous one to pinned memory does not.
    waits: bool,
    /// Whether the CPU works in it while the device stands still: it moves pageable memory to where the device can read it.
    stages: bool,
}

/// The calls of copies from or to pageable memory, and to the host: the copies say what they are.
#[inline(never)]
pub(crate) fn host_copies(gpu: &Gpu<'_>, launches: &Launches) -> Vec<HostCopy> {
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
            let call = Wait {
                track: gpu.trace.track(launch),
                start_ns: gpu.trace.ts_ns(launch),
                end_ns: gpu.trace.end_ns(launch),
                row: launch,
            };
            let (waits, stages) = (!name.contains("Pinned"), name.contains("HtoD"));
            calls.push(HostCopy { call, waits, stages });
        }
    }
    calls
}

#[cfg(test)]
mod tests;
