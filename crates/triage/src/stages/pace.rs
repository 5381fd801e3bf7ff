//! Whether the CPU limits a stage, and the figures that it is judged by.
//!
//! Judged by time: what short gaps of the GPU have before the end of a launch that came too late is a fifth of the stage's
//! time or more. (What follows the end of the launch is queue delay. Time in a data loader is the loader's, and time in which
//! the CPU allocates memory is the allocator's.) The stage's time is the time in which it ran anything, with the gaps before
//! its kernels but without pauses, and without the time in which a data loader runs, code is loaded and libraries are set up. Of a gap that begins while the
//! launching thread waits for the GPU, the wait and as much time again is the wait's, not the launches'. Where the CPU waits for the GPU
//! for a fifth of the time or more, it is not behind, unless such gaps are half of
//! the stage's time: then the CPU waits in other stages.
//!
//! Communication kernels do not count: they wait for other ranks. A stage that mostly communicates is not judged.

use catalog::Category;
use dialect::calls::launches_graph;

use crate::idle::gaps::Gaps;
use timeline::gpu::{Extent, Gpu};
use timeline::intervals::{Interval, length, length_within, union, without};
use timeline::launches::Launches;
use timeline::median;
use timeline::percent;

use super::{Stage, Stages};

/// Short gaps before late launches are this part of the stage's time or more.
pub(crate) const LATE_PCT: f64 = 20.0;
/// From this share on the stage is limited by launches wherever the CPU waits for the GPU.
const MOSTLY_LATE_PCT: f64 = 50.0;
/// Above this share of exposed communication in the busy time, the stage waits for other ranks.
const COMM_PCT: f64 = 50.0;

/// How kernels of a stage follow their launches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pace {
    /// Median time from the end of the launch call to the start of the kernel. Negative if the median kernel starts
    /// before its call returns. `None` if the calls of less than half of the kernels are recorded: the launch of a graph
    /// is not the launch of a single kernel.
    pub wait_p50_ns: Option<i64>,
    /// Median duration of these kernels.
    pub kernel_p50_ns: Option<i64>,
    /// Of short gaps that end with a late launch of the stage, the time before the end of the launch call, without time in a
    /// data loader and without allocations.
    pub late_ns: i64,
    /// The same in percent of the stage's time.
    pub late_pct: f64,
    /// Whether the CPU waits for the GPU for much of the time.
    pub cpu_waits: bool,
    /// Whether graphs launched any of it.
    pub graphs: bool,
}

impl Pace {
    /// Whether launches are the limit; `None` if the figures are not recorded, or if communication without other work
    /// beside it takes half of the stage's busy time or more.
    pub(super) fn is_launch_bound(&self, exposed_comm_pct: f64) -> Option<bool> {
        if exposed_comm_pct >= COMM_PCT {
            return None;
        }
        self.wait_p50_ns?;
        let least_pct = if self.cpu_waits { MOSTLY_LATE_PCT } else { LATE_PCT };
        Some(self.late_pct >= least_pct)
    }
}

/// What a device waits for.
#[derive(Clone, Copy)]
pub(crate) struct Waits<'a> {
    pub(crate) gaps: &'a Gaps,
    /// When the CPU is in a data loader, sorted.
    pub(crate) loader: &'a [Interval],
    /// When the CPU allocates or frees memory, sorted.
    pub(crate) allocations: &'a [Interval],
    /// When the device waits for code to be loaded and libraries to be set up, sorted: a part of no stage's pace.
    pub(crate) set_up: &'a [Interval],
    /// Whether work is queued for so much of the time that the pace of launches says nothing.
    pub(crate) is_blocked: bool,
}

impl Stages {
    /// The pace of a stage, whose slices have this extent.
    #[inline(never)]
    pub(super) fn pace(
        &self,
        gpu: &Gpu<'_>,
        launches: &Launches,
        stage: Stage,
        extent: &Extent,
        Waits { gaps, loader, allocations, set_up, .. }: Waits<'_>,
    ) -> Pace {
        let (mut waits, mut durations) = (Vec::new(), Vec::new());
        let (mut n_kernels, mut graphs) = (0, false);
        let mut at = 0;
        gpu.each_slice(|slice| {
            let computes = gpu.works[slice.work].category != Category::Communication;
            if self.stage(at) == stage && gpu.is_kernel(&slice) && computes {
                n_kernels += 1;
                let launch = launches.of_slice(at).filter(|_| launches.is_sure(at));
                let by_graph = launch.is_some_and(|row| launches_graph(gpu.trace.name_text(row)));
                graphs |= by_graph;
                if let Some(launch) = launch.filter(|_| !by_graph) {
                    waits.push(slice.start_ns.saturating_sub(gpu.trace.end_ns(launch)));
                    durations.push(slice.dur_ns);
                }
            }
            at += 1;
        });
        let told = 2 * waits.len() >= n_kernels;
        let (mut own_ns, mut late) = (extent.busy_ns, Vec::new());
        // (While the loader runs or libraries are set up, a stage cannot launch.)
        let others = union([loader, set_up].concat());
        for gap in &gaps.all {
            if gap.next.is_some_and(|at| self.stage(at) == stage) && !gaps.is_pause(gap) {
                let others_ns = length_within(&others, gap.times);
                own_ns = own_ns.saturating_add(gap.ns()).saturating_sub(others_ns);
                late.extend(gap.until_launch());
            }
        }
        let late = without(&without(&late, loader), allocations);
        let late_ns = length(&without(&late, set_up));
        Pace {
            late_ns,
            late_pct: percent(late_ns, own_ns),
            cpu_waits: gaps.cpu_waits(),
            graphs,
            wait_p50_ns: median(&mut waits).filter(|_| told),
            kernel_p50_ns: median(&mut durations).filter(|_| told),
        }
    }
}
