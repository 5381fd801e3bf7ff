//! Why the GPU was idle: each moment of idle time is dealt to one cause.

use super::gaps::{Gap, Gaps};
use super::{Cover, Host, Idle};
use catalog::Platform;
use timeline::intervals::{Interval, both, length, without};
use timeline::percent;

/// Idle time below this share of its window gets no sentence, in percent.
pub(crate) const LEAST_PCT: f64 = 10.0;
/// Of a first run's idle time this part at least is set-up, in percent.
const FIRST_RUN_PCT: f64 = 50.0;
/// Loading of code is this part of the idle time at least, or the rest is no sign of a first run, in percent.
const LOADING_PCT: f64 = 10.0;
/// From this share of the time on the CPU waits for the GPU often, in percent: it does not limit the run by its launches.
pub(crate) const WAITING_PCT: f64 = 20.0;

/// A cause of idle time. The order decides: a moment belongs to the first that covers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The next work was launched already.
    Queued,
    /// The same in gaps so short that the device itself takes them between two pieces of queued work.
    Between,
    /// The CPU was in a data loader.
    DataLoader,
    /// The CPU compiled, loaded or imported code, or set up libraries.
    SetUp,
    /// The CPU allocated or freed memory.
    Allocation,
    /// The profiler worked.
    Overhead,
    /// The CPU waited in a call, or had waited in one until nothing was queued.
    Sync,
    /// From one launch to the next: gaps of less than [`super::gaps::SHORT_NS`], up to the end of the launch.
    Paced,
    /// From the end of such a launch to the start of what it launched.
    Start,
    /// The CPU ran ops.
    Op,
    /// The CPU ran Python outside any op.
    Python,
    /// The CPU was in compiled code, outside any op.
    Compiled,
    /// The CPU was in another call of the runtime.
    Runtime,
    /// No op, call or frame is recorded.
    Unknown,
}

/// The largest cause of a device's idle time.
#[derive(Clone, Debug)]
pub(crate) struct Explained {
    pub(crate) cause: Cause,
    /// The idle time that belongs to it.
    pub(crate) times: Vec<Interval>,
    /// All idle time, and its window.
    pub(crate) idle_ns: i64,
    pub(crate) window_ns: i64,
    pub(crate) of_steps: bool,
    /// The idle time in which the CPU was in a data loader.
    pub(crate) loader_ns: i64,
    /// Calls within it that gave memory back to the driver.
    pub(crate) n_frees: u64,
    /// Whether a profiler step after the first is recorded.
    pub(crate) warm: bool,
    /// Whether a compiler works in some of it.
    pub(crate) compiles: bool,
    /// Whether a graph is captured in it.
    pub(crate) captures: bool,
    /// Whether modules of Python are imported for most of it.
    pub(crate) imports: bool,
}

impl Explained {
    /// The idle time of the cause.
    pub(crate) fn ns(&self) -> i64 {
        length(&self.times)
    }
}

/// Idle time that is not dealt out yet.
struct Left {
    idle: Vec<Interval>,
    found: Vec<(Cause, Vec<Interval>)>,
}

impl Left {
    /// Gives a cause what is left of these times.
    fn take(&mut self, cause: Cause, times: &[Interval]) {
        let own = both(&self.idle, times);
        self.idle = without(&self.idle, &own);
        match self.found.iter_mut().find(|(of, _)| *of == cause) {
            Some((_, known)) => known.extend(own),
            None => self.found.push((cause, own)),
        }
    }

    fn ns(&self, cause: Cause) -> i64 {
        self.found.iter().find(|(of, _)| *of == cause).map_or(0, |(_, times)| length(times))
    }
}

/// Explains the idle time by its largest cause, of what [`deal`] found. `None` where the GPU was busy for most of the window.
#[inline(never)]
pub(crate) fn explain(
    idle: &Idle,
    host: &Host,
    gaps: &Gaps,
    dealt: Vec<(Cause, Vec<Interval>)>,
) -> Option<Explained> {
    let (idle_ns, window_ns) = (idle.ns(), idle.window_ns);
    if percent(idle_ns, window_ns) < LEAST_PCT {
        return None;
    }
    let (cause, own) = largest(dealt)?;
    let times = times_of(cause, own, idle, host, gaps);
    let loader_ns = length(&both(&idle.idle, host.cover(Cover::DataLoader)));
    let within = |call: &&Interval| {
        let first = idle.idle.partition_point(|(_, to)| *to <= call.0);
        idle.idle.get(first).is_some_and(|(from, _)| *from < call.1)
    };
    let n_frees = host.frees.iter().filter(within).count() as u64;
    let (of_steps, warm) = (idle.of_steps, host.warm);
    let of = |cover| length(&both(&times, host.cover(cover)));
    let compiles = of(Cover::Compiling) > 0;
    let captures = of(Cover::Capturing) > 0;
    let imports = of(Cover::Importing).saturating_mul(2) >= length(&times);
    Some(Explained {
        cause,
        times,
        idle_ns,
        window_ns,
        of_steps,
        loader_ns,
        n_frees,
        warm,
        compiles,
        captures,
        imports,
    })
}

/// A part of each gap that has it.
fn parts(gaps: &Gaps, part: fn(&Gap) -> Option<Interval>) -> Vec<Interval> {
    gaps.all.iter().filter_map(part).collect()
}

/// Deals the idle time out: each moment to the first cause that covers it. `queued` is when work that had been launched waited.
#[inline(never)]
pub(crate) fn deal(
    idle: &Idle,
    host: &Host,
    gaps: &Gaps,
    queued: &[Interval],
) -> Vec<(Cause, Vec<Interval>)> {
    let mut left = Left { idle: idle.idle.clone(), found: Vec::new() };
    left.take(Cause::Queued, queued);
    left.take(Cause::Queued, &super::union(parts(gaps, Gap::queued)));
    left.take(Cause::Between, &parts(gaps, Gap::between));
    left.take(Cause::DataLoader, host.cover(Cover::DataLoader));
    let loads = [
        Cover::Compiling,
        Cover::Capturing,
        Cover::ModuleLoad,
        Cover::LongLaunch,
        Cover::SetUp,
        Cover::Importing,
    ];
    for cover in loads {
        left.take(Cause::SetUp, host.cover(cover));
    }
    let first_run = is_first_run(&left, host, idle.ns());
    let allocation = if first_run { Cause::SetUp } else { Cause::Allocation };
    left.take(allocation, host.cover(Cover::Allocation));
    left.take(Cause::Overhead, host.cover(Cover::Overhead));
    left.take(Cause::Overhead, host.cover(Cover::Profiler));
    for cover in [Cover::Sync, Cover::BlockingCopy, Cover::WaitingCopy] {
        left.take(Cause::Sync, host.cover(cover));
    }
    if first_run {
        left.take(Cause::SetUp, host.cover(Cover::FirstCall));
    }
    left.take(Cause::Sync, &parts(gaps, Gap::drained));
    left.take(Cause::Op, &gaps.on_cpu);
    left.take(Cause::Paced, &parts(gaps, Gap::until_launch));
    left.take(Cause::Paced, &parts(gaps, Gap::in_launch));
    left.take(Cause::Start, &parts(gaps, Gap::starting));
    left.take(Cause::Op, host.cover(Cover::Work));
    left.take(Cause::Python, host.cover(Cover::Python));
    left.take(Cause::Compiled, host.cover(Cover::Compiled));
    left.take(Cause::Runtime, host.cover(Cover::Runtime));
    let Left { idle: unknown, mut found } = left;
    found.push((Cause::Unknown, unknown));
    found
}

/// What else shortens pauses between queued kernels than fewer kernels: on AMD there is no programmatic dependent launch.
pub(super) fn shorter(platform: Platform, in_graph: bool) -> &'static str {
    match platform {
        Platform::Cuda => " or programmatic dependent launch",
        Platform::Rocm if !in_graph => " or HIP graphs",
        _ => "",
    }
}

/// Whether the idle time is that of a first run, once the loading of code is dealt out. Memory is allocated, and an op's first
/// call is slow, in a first run; only loading shows that it is one.
fn is_first_run(left: &Left, host: &Host, idle_ns: i64) -> bool {
    let loading_ns = left.ns(Cause::SetUp);
    if host.warm || percent(loading_ns, idle_ns) < LOADING_PCT {
        return false;
    }
    let mut set_up = host.cover(Cover::Allocation).to_vec();
    set_up.extend(host.cover(Cover::FirstCall));
    let more_ns = length(&both(&left.idle, &super::union(set_up)));
    percent(loading_ns.saturating_add(more_ns), idle_ns) >= FIRST_RUN_PCT
}

/// The cause with most of the time; of equal ones the first.
fn largest(found: Vec<(Cause, Vec<Interval>)>) -> Option<(Cause, Vec<Interval>)> {
    let mut most: Option<(i64, Cause, Vec<Interval>)> = None;
    for (cause, times) in found {
        let ns = length(&times);
        if most.as_ref().is_none_or(|(best, ..)| ns > *best) {
            most = Some((ns, cause, times));
        }
    }
    most.map(|(_, cause, times)| (cause, times))
}

/// The times of a cause that are reported. What the CPU did is said of all of the idle time, not only of what no other cause
/// explains, which is `dealt`.
fn times_of(
    cause: Cause,
    dealt: Vec<Interval>,
    idle: &Idle,
    host: &Host,
    gaps: &Gaps,
) -> Vec<Interval> {
    let during = |cover| both(&idle.idle, host.cover(cover));
    let without_all = |times: Vec<Interval>, covers: &[Cover]| {
        covers.iter().fold(times, |left, cover| without(&left, host.cover(*cover)))
    };
    match cause {
        Cause::DataLoader => during(Cover::DataLoader),
        Cause::Overhead => {
            let mut both = during(Cover::Overhead);
            both.extend(during(Cover::Profiler));
            super::union(both)
        }
        Cause::Allocation => during(Cover::Allocation),
        Cause::Op => during(Cover::Work),
        Cause::Python => without_all(during(Cover::Python), &[Cover::Work]),
        Cause::Compiled => {
            let other = [Cover::Work, Cover::Python, Cover::Runtime, Cover::Overhead];
            without_all(during(Cover::Compiled), &other)
        }
        Cause::Runtime => during(Cover::Runtime),
        Cause::Unknown => {
            let all = [
                Cover::Work,
                Cover::Python,
                Cover::Compiled,
                Cover::Runtime,
                Cover::Overhead,
                Cover::DataLoader,
            ];
            without_all(idle.idle.clone(), &all)
        }
        Cause::Queued => both(&idle.idle, &super::union(parts(gaps, Gap::queued))),
        // (As the column of the stages counts it.)
        Cause::Paced => {
            let late = both(&idle.idle, &super::union(parts(gaps, Gap::until_launch)));
            without_all(late, &[Cover::DataLoader, Cover::Allocation])
        }
        Cause::SetUp | Cause::Sync | Cause::Between | Cause::Start => dealt,
    }
}
