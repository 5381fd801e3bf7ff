//! The kernels of the kernel table.

use catalog::{Category, Family};
use serde::Serialize;

use super::notes::Note;
use super::site::Confidence;
use super::stages::Stage;

/// All launches of one kernel name in one stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KernelTableRow {
    /// The stage; `None` where the row sums all stages.
    pub stage: Option<Stage>,
    /// The device's id.
    pub device: String,
    /// The whole name.
    pub kernel_name: String,
    /// What it does.
    #[serde(serialize_with = "analysis::ids::serialize")]
    pub category: Category,
    /// The library or compiler that it comes from.
    #[serde(serialize_with = "analysis::ids::serialize")]
    pub family: Family,
    /// Sum of durations.
    pub total_ns: i64,
    /// Part of the total that cold iterations launched; `None` where none is cold.
    pub cold_ns: Option<i64>,
    /// Total as a percentage of the summed GPU time of the device.
    pub gpu_share_pct: f64,
    /// Total as a percentage of the stage's summed GPU time.
    pub share_pct: f64,
    /// Number of launches.
    pub launches: u64,
    /// Total / launches, rounded half up.
    pub mean_ns: i64,
    /// Median; of an even number of launches the mean of the two in the middle, rounded half up.
    pub p50_ns: i64,
    /// Longest.
    pub max_ns: i64,
    /// Part of the total with no other stream of the device running.
    pub exposed_ns: i64,
    /// Mean time from the start of the launch call to the start of the kernel; `None` if no launch is recorded, or a
    /// graph launched it.
    pub queue_ns: Option<i64>,
    /// The Python function with most of its time: `path:line function`; empty if none is recorded. PyTorch's profiler takes
    /// the line when a function is called (`CodeLocation` in its `profiler_python.cpp`): that of the definition. Of a
    /// function that runs when profiling starts it is the line that it is at.
    pub python_location: String,
    /// Part of the total from that line, in percent.
    pub location_share_pct: f64,
    /// Where several lines launched it: each with its share of the total, most time first.
    pub locations: Vec<String>,
    /// Classes of the innermost `nn.Module`s around that line, outermost first, with their share of the total if they do
    /// not cover all of the line's time; empty if none is recorded.
    pub modules: String,
    /// The PyTorch op of the launches with most of its time that have op, inputs and launch config in common; empty if none
    /// is recorded.
    pub cpu_op: String,
    /// Part of the total from launches with this op, these inputs and this grid, in percent.
    pub group_share_pct: f64,
    /// How sure op and line are.
    pub mapping_confidence: Confidence,
    /// The inputs of that op in these launches: `bf16[32,4096], bf16[4096,4096]`; `None` if not recorded, or if the
    /// arguments of events were not read.
    pub shapes: Option<String>,
    /// Number of distinct input shapes.
    pub n_shapes: u64,
    /// Rows, columns and inner size of the matrix product: `32 x 4096 x 4096`; `None` if the op is no product.
    pub gemm_shape: Option<String>,
    /// Blocks (workgroups) of these launches in x, y, z; `None` as for the shapes.
    pub grid: Option<[u32; 3]>,
    /// Threads of each block in x, y, z.
    pub block: Option<[u32; 3]>,
    /// The profiler's estimate of the achieved occupancy of that launch, in percent (CUDA only).
    pub occupancy_pct: Option<f64>,
    /// Registers of each thread (CUDA only).
    pub registers: Option<u64>,
    /// Shared memory (LDS) of each block, in bytes.
    pub shared_bytes: Option<u64>,
    /// Blocks of the grid per multiprocessor (CUDA only).
    pub blocks_per_sm: Option<f64>,
    /// Warps of the grid per multiprocessor (CUDA only).
    pub warps_per_sm: Option<f64>,
    /// Number of distinct launch configs: grid, block, registers, shared memory.
    pub n_launch_configs: u64,
    /// Streams of its launches.
    pub streams: Vec<String>,
    /// First start, in ns from the first event of the trace, where a timeline begins.
    pub first_seen_ns: i64,
    /// Remarks on the origin of these values.
    pub notes: Vec<Note>,
}
