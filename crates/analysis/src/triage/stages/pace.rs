//! Whether a stage is launch-bound: a rule of thumb and the figures that it uses.
//!
//! A kernel that starts as soon as its launch call returns found an idle GPU. If most kernels do, kernels are short and
//! the GPU is idle between them, then the CPU does not launch fast enough. The bounds separate the measured traces: the
//! wait is 1.7 to 16 µs where the CPU is the limit (ROCm's floor is 14 µs), and 1 to 28 ms where the GPU is.
//!
//! Communication kernels do not count: they wait for other ranks. A stage that mostly communicates is not judged.

use catalog::Category;

use crate::gpu::{Extent, Gpu, GpuSlice};
use crate::launches::Launches;
use crate::percent;
use crate::triage::attribution::launches_graph;

use super::{Stage, Stages};

/// The GPU is busy for less than this part of the stage's span.
pub(crate) const BUSY_PCT: f64 = 80.0;
/// The median kernel starts sooner than this after its launch call returns.
pub(crate) const WAIT_NS: i64 = 25_000;
/// Above this share of exposed communication in the busy time, the stage waits for other ranks.
const COMM_PCT: f64 = 50.0;
/// The median kernel is shorter than this.
pub(crate) const KERNEL_NS: i64 = 20_000;

/// How kernels of a stage follow their launches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pace {
    /// The time in which the device did anything, of whatever stage, in percent of the stage's span.
    pub gpu_busy_pct: f64,
    /// Median time from the end of the launch call to the start of the kernel. Negative if the median kernel starts
    /// before its call returns. `None` if the calls of less than half of the kernels are recorded: the launch of a graph
    /// is not the launch of a single kernel.
    pub wait_p50_ns: Option<i64>,
    /// Median duration of these kernels.
    pub kernel_p50_ns: Option<i64>,
}

impl Pace {
    /// Whether launches are the limit; `None` if the figures are not recorded, or if communication without other work
    /// beside it takes half of the stage's busy time or more.
    pub(super) fn is_launch_bound(&self, exposed_comm_pct: f64) -> Option<bool> {
        if exposed_comm_pct >= COMM_PCT {
            return None;
        }
        let (wait, kernel) = (self.wait_p50_ns?, self.kernel_p50_ns?);
        Some(self.gpu_busy_pct < BUSY_PCT && wait < WAIT_NS && kernel < KERNEL_NS)
    }
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
    ) -> Pace {
        let (mut waits, mut durations) = (Vec::new(), Vec::new());
        let mut n_kernels = 0;
        // What the device was busy with in the span, counted or not; slices come by start.
        let (mut busy_ns, mut until_ns) = (0_i64, extent.first_ns);
        let mut run = |slice: &GpuSlice| {
            let end_ns = slice.end_ns().min(extent.last_ns);
            let new_ns = end_ns.saturating_sub(slice.start_ns.max(until_ns));
            if new_ns > 0 {
                busy_ns = busy_ns.saturating_add(new_ns);
                until_ns = end_ns;
            }
        };
        let mut beside = (0..gpu.n_beside()).map(|at| gpu.slice_beside(at)).peekable();
        let mut at = 0;
        gpu.each_slice(|slice| {
            while let Some(other) = beside.next_if(|other| other.start_ns <= slice.start_ns) {
                run(&other);
            }
            run(&slice);
            let computes = gpu.works[slice.work].category != Category::Communication;
            if self.stage(at) == stage && gpu.is_kernel(&slice) && computes {
                n_kernels += 1;
                let launch = launches.of_slice(at).filter(|_| launches.is_sure(at));
                let alone = |row: &u32| !launches_graph(gpu.trace.name_text(*row));
                if let Some(launch) = launch.filter(alone) {
                    waits.push(slice.start_ns.saturating_sub(gpu.trace.end_ns(launch)));
                    durations.push(slice.dur_ns);
                }
            }
            at += 1;
        });
        beside.for_each(|other| run(&other));
        let told = 2 * waits.len() >= n_kernels;
        Pace {
            gpu_busy_pct: percent(busy_ns, extent.span_ns()),
            wait_p50_ns: median(&mut waits).filter(|_| told),
            kernel_p50_ns: median(&mut durations).filter(|_| told),
        }
    }
}

/// By nearest rank: a value that occurred.
fn median(values: &mut [i64]) -> Option<i64> {
    let half = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(half).1)
}
