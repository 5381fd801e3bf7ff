//! What overlap could hide at most: in each step, what is exposed and what compute is exposed to hide it.

use catalog::OverlapClass;
use dialect::kineto;
use trace::{Flags, Phase, SmallIndex, StringId, Trace, each_row};

use super::sweep::SliceOverlap;
use crate::stages::Stage;
use timeline::before_window::duration_ns;
use timeline::gpu::Gpu;
use timeline::launches::Launches;

/// Start and end of each step, by start.
type Windows = Vec<(i64, i64)>;

/// The step of every GPU slice, and the exposed compute of each stage in each step.
pub(super) struct Savings<'a> {
    gpu: &'a Gpu<'a>,
    per_slice: &'a SliceOverlap,
    /// Parallel to the slices: the step of each, `None` outside all steps; 0 everywhere when the file records no step.
    step_of: Vec<Option<SmallIndex>>,
    n_steps: usize,
    /// Exposed time of compute by stage, then step; `None` where the stage does not run in the step.
    compute_ns: Vec<Vec<Option<i64>>>,
    stage_of: &'a [Stage],
}

impl<'a> Savings<'a> {
    #[inline(never)]
    pub(super) fn of(
        gpu: &'a Gpu<'a>,
        launches: &Launches,
        per_slice: &'a SliceOverlap,
        stage_of: &'a [Stage],
    ) -> Self {
        let (windows, times_ns) = windows(gpu, launches);
        let mut step_of: Vec<Option<SmallIndex>> =
            times_ns.iter().map(|ns| step_at(&windows, *ns)).collect();
        let any = step_of.iter().any(Option::is_some);
        let n_steps = if any { windows.len() } else { 1 };
        if !any {
            step_of.fill(SmallIndex::new(0));
        }
        let mut compute_ns = vec![vec![None; n_steps]; Stage::EVERY.len()];
        for at in 0..gpu.len() {
            let Some(step) = step_of[at] else { continue };
            let ns = &mut compute_ns[stage_of[at] as usize][step.at()];
            let computes = is_compute(gpu, at);
            let exclusive_ns = if computes { per_slice.exclusive_ns[at] } else { 0 };
            *ns = Some(ns.unwrap_or(0_i64).saturating_add(exclusive_ns));
        }
        Self { gpu, per_slice, step_of, n_steps, compute_ns, stage_of }
    }

    /// The exposed time of `instances` that other work could hide, as (slice, ns) by slice: in each step no more than the
    /// exposed time of compute that is not among their dependent `neighbours`. What is `tied` to its consumer has nothing to
    /// overlap with. Compute of the stage counts, or, for a copy that may be made at any time (`whole_step`), of all stages.
    /// `None` if none of them is in a step: GPU annotations of ROCm's profiler cover a part of a step only.
    #[inline(never)]
    pub(super) fn removable(
        &self,
        stage: Stage,
        instances: &[u32],
        neighbours: &[u32],
        tied: &[u32],
        whole_step: bool,
    ) -> Option<Vec<(u32, i64)>> {
        if instances.iter().all(|at| self.step_of[*at as usize].is_none()) {
            return None;
        }
        let mut left_ns: Vec<i64> = (0..self.n_steps)
            .map(|step| {
                let stages = self.compute_ns.iter().enumerate();
                let of = stages.filter(|(of, _)| whole_step || *of == stage as usize);
                of.filter_map(|(_, steps)| steps[step]).fold(0, i64::saturating_add)
            })
            .collect();
        for at in neighbours.iter().map(|at| *at as usize) {
            let counts = is_compute(self.gpu, at) && (whole_step || self.stage_of[at] == stage);
            if let Some(step) = self.step_of[at].filter(|_| counts) {
                let left_ns = &mut left_ns[step.at()];
                *left_ns = left_ns.saturating_sub(self.per_slice.exclusive_ns[at]);
            }
        }
        let mut removed = Vec::new();
        for at in instances.iter().filter(|at| tied.binary_search(at).is_err()) {
            let Some(step) = self.step_of[*at as usize] else { continue };
            let left_ns = &mut left_ns[step.at()];
            let ns = self.per_slice.exclusive_ns[*at as usize].min((*left_ns).max(0));
            *left_ns = left_ns.saturating_sub(ns);
            removed.push((*at, ns));
        }
        Some(removed)
    }
}

fn is_compute(gpu: &Gpu<'_>, at: usize) -> bool {
    gpu.works[gpu.slice(at).work].category.overlap_class() == OverlapClass::Compute
}

/// The profiler's steps as (start, end) by start, and the moment of each GPU slice that tells its step.
///
/// The CPU's steps and the launch decide, because the GPU may run a whole step late. The GPU's own
/// annotations are taken only where the CPU has none: ROCm's cover a few microseconds of a step (measured).
#[inline(never)]
fn windows(gpu: &Gpu<'_>, launches: &Launches) -> (Windows, Vec<i64>) {
    let trace = gpu.trace;
    let starts_ns: Vec<i64> = (0..gpu.len()).map(|at| gpu.slice(at).start_ns).collect();
    let (on_cpu, on_gpu) = steps(trace);
    if on_cpu.is_empty() {
        return (on_gpu, starts_ns);
    }
    // A step lasts until the next begins.
    let next = on_cpu.iter().skip(1).map(|(start_ns, _)| *start_ns).chain([i64::MAX]);
    let windows = on_cpu.iter().zip(next).map(|((start_ns, _), end_ns)| (*start_ns, end_ns));
    let launched: Vec<Option<i64>> =
        (0..gpu.len()).map(|at| Some(trace.ts_ns(launches.of_slice(at)?))).collect();
    let times_ns = if launched.iter().all(Option::is_none) {
        starts_ns
    } else {
        // What was launched before the window belongs to no step.
        launched.into_iter().map(|ns| ns.unwrap_or(i64::MIN)).collect()
    };
    (windows.collect(), times_ns)
}

/// `ProfilerStep` slices as (start, end) by start, on the CPU and on the GPU; each step once.
#[inline(never)]
fn steps(trace: &Trace) -> (Windows, Windows) {
    let names = 0..trace.strings.len() as u32;
    let is_step: Vec<bool> =
        names.map(|id| kineto::is_step(trace.strings.get(StringId(id)))).collect();
    let mut found: Vec<(bool, u32, i64, i64)> = Vec::new();
    if is_step.contains(&true) {
        each_row(trace, |row| {
            let name = trace.name(row);
            if is_step[name.0 as usize]
                && trace.phase(row) == Phase::Complete
                && trace.flags(row).has(Flags::HAS_TS)
            {
                let start_ns = trace.ts_ns(row);
                let end_ns = start_ns.saturating_add(duration_ns(trace, row));
                let gpu = kineto::is_gpu_side(trace.raw_category_text(row));
                found.push((gpu, name.0, start_ns, end_ns));
            }
        });
    }
    // One step may stand on several threads or streams.
    trace::sort(&mut found);
    let (mut on_cpu, mut on_gpu) = (Vec::new(), Vec::new());
    for same in found.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let end_ns = same.iter().map(|(_, _, _, end_ns)| *end_ns).max().unwrap_or_default();
        let steps = if same[0].0 { &mut on_gpu } else { &mut on_cpu };
        steps.push((same[0].2, end_ns));
    }
    trace::sort(&mut on_cpu);
    trace::sort(&mut on_gpu);
    (on_cpu, on_gpu)
}

fn step_at(windows: &[(i64, i64)], ns: i64) -> Option<SmallIndex> {
    let next = windows.partition_point(|(start_ns, _)| *start_ns <= ns);
    let inside = next.checked_sub(1).filter(|at| ns < windows[*at].1);
    SmallIndex::new(inside? as u32)
}
