//! When a device is idle, and the window in which that counts: its span, or the steps of the profiler on the CPU.

use dialect::calls;
use timeline::gpu::Gpu;
use timeline::intervals::{Collector, Interval, both, length, without};
use timeline::recorded::is_gpu;
use trace::{Flags, Phase, Trace, each_row};

use super::{Kind, kind, named};

/// The profiler's steps on the CPU.
#[inline(never)]
pub(crate) fn cpu_steps(trace: &Trace) -> Vec<Interval> {
    let names = trace.strings.marked(&|name| named(name).step);
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

/// The steps without what the profiler does at the end of the last one: up to the last op, call, frame of the program or GPU
/// slice that begins in it.
#[inline(never)]
pub(crate) fn until_last_work(trace: &Trace, mut steps: Vec<Interval>) -> Vec<Interval> {
    let Some((from, until)) = steps.last().copied() else { return steps };
    let kinds = trace.by_raw_category(kind);
    let names = trace.strings.marked(&|name| named(name).step);
    let mut last_ns = from;
    each_row(trace, |row| {
        let flags = trace.flags(row);
        let works = is_gpu(flags) || matches!(kinds.of(trace, row), Kind::Op | Kind::Runtime);
        // (Until 2021 a step was recorded as an op.)
        let works = works && !names[trace.name(row).0 as usize];
        let begins = trace.phase(row) == Phase::Complete && flags.has(Flags::HAS_TS) && {
            let ts_ns = trace.ts_ns(row);
            from <= ts_ns && ts_ns < until
        };
        // (The profiler waits for the GPU when it stops.)
        if works && begins && !calls::synchronizes_device(trace.name_text(row)) {
            last_ns = last_ns.max(trace.end_ns(row).min(until));
        }
    });
    if let Some(last) = steps.last_mut().filter(|_| last_ns > from) {
        last.1 = last_ns;
    }
    steps
}

/// Idle time of a device within a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Idle {
    pub(crate) window_ns: i64,
    /// Whether the window is the profiler's steps on the CPU. Else it is the GPU span.
    pub(crate) of_steps: bool,
    /// The window.
    pub(crate) window: Vec<Interval>,
    pub(crate) idle: Vec<Interval>,
}

impl Idle {
    /// Idle time within `window`, which is sorted and disjoint.
    pub(crate) fn within(gpu: &Gpu<'_>, window: &[Interval]) -> Self {
        let idle = without(window, &busy(gpu));
        Self { window_ns: length(window), of_steps: false, window: window.to_vec(), idle }
    }

    /// Idle time within the GPU span. Within the profiler's steps on the CPU where that is more by a tenth of them: a step
    /// begins before its first kernel, and what the GPU waits for there counts. Where most of the GPU's work runs outside the steps,
    /// within its span.
    ///
    /// `recorded_ns` is when recording of the CPU begins. Before it the file may have the end of earlier work, and then nothing, for
    /// which nothing in it can be the cause: where that is a tenth of the span, the span begins there.
    #[inline(never)]
    pub(crate) fn of(gpu: &Gpu<'_>, steps: &[Interval], recorded_ns: Option<i64>) -> Self {
        let busy = busy(gpu);
        let span = busy.first().zip(busy.last()).map(|(first, last)| {
            let (from, until) = (first.0, last.1);
            let recorded_ns = recorded_ns.filter(|ns| (from..until).contains(ns)).unwrap_or(from);
            let before_ns = length(&without(&[(from, recorded_ns)], &busy));
            let is_long = before_ns.saturating_mul(10) >= until.saturating_sub(from);
            (if is_long { recorded_ns } else { from }, until)
        });
        let span: Vec<Interval> = span.filter(|(from, until)| from < until).into_iter().collect();
        let idle = without(&span, &busy);
        let of_span =
            Self { window_ns: length(&span), of_steps: false, window: span.clone(), idle };
        // (Where the CPU is so far ahead that most of the work runs after the steps, they say nothing of the device.)
        let in_steps = length(&both(&busy, steps)).saturating_mul(2) >= length(&busy);
        if !in_steps {
            return of_span;
        }
        let of_steps = Self { of_steps: true, ..Self::within(gpu, steps) };
        let outside = without(&of_steps.idle, &span);
        if length(&outside).saturating_mul(10) >= of_steps.window_ns && of_steps.window_ns > 0 {
            of_steps
        } else {
            of_span
        }
    }

    /// The same without idle time of which the calls were lost: what ran then is not in the file.
    pub(crate) fn outside(self, lost_calls: &[Interval]) -> Self {
        let lost = both(&self.idle, lost_calls);
        if lost.is_empty() {
            return self;
        }
        let window = without(&self.window, &lost);
        let idle = without(&self.idle, &lost);
        Self { window_ns: length(&window), of_steps: self.of_steps, window, idle }
    }

    /// Its length.
    pub(crate) fn ns(&self) -> i64 {
        length(&self.idle)
    }
}

/// When the device did anything, counted in tables or not.
#[inline(never)]
pub(crate) fn busy(gpu: &Gpu<'_>) -> Vec<Interval> {
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
