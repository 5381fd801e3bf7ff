//! The rows of the kernel table, and its columns.

use report::{Cell, Column, Row, RowKey, Unit};
use serde::{Deserialize, Serialize};

use super::site::Confidence;
use crate::words;
use analysis::columns;

/// All launches of one kernel name in one stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelTableRow {
    /// Stage id.
    pub stage: String,
    /// The device's id.
    pub device: String,
    /// The whole name.
    pub kernel_name: String,
    /// Category id.
    pub category: String,
    /// Family id.
    pub family: String,
    /// Sum of durations.
    pub total_ns: i64,
    /// Total as a percentage of the summed GPU time of the device.
    #[serde(default)]
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
    #[serde(default)]
    pub locations: Vec<String>,
    /// Classes of the innermost `nn.Module`s around that line, outermost first, with their share of the total if they do
    /// not cover all of the line's time; empty if none is recorded.
    pub modules: String,
    /// The PyTorch op of the launches with most of its time that have op, inputs and launch config in common; empty if none
    /// is recorded.
    pub cpu_op: String,
    /// Part of the total from launches with this op, these inputs and this grid, in percent.
    #[serde(default)]
    pub group_share_pct: f64,
    /// Id of the [`Confidence`] of op and line.
    pub mapping_confidence: String,
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
    /// Remarks, as tokens for programs.
    pub notes: Vec<String>,
}

/// Rows with at least `cutoff_pct` of their stage, and the rest of each stage in one row, so that shares still sum to
/// 100%.
#[must_use]
pub fn above_cutoff(rows: &[KernelTableRow], cutoff_pct: f64) -> Vec<KernelTableRow> {
    let mut kept = Vec::new();
    for stage in rows.chunk_by(|a, b| (&a.stage, &a.device) == (&b.stage, &b.device)) {
        let (above, below): (Vec<_>, Vec<_>) =
            stage.iter().partition(|row| row.share_pct >= cutoff_pct);
        kept.extend(above.into_iter().cloned());
        let Some(first) = below.first() else { continue };
        let sum = |of: fn(&KernelTableRow) -> i64| {
            below.iter().fold(0_i64, |sum, row| sum.saturating_add(of(row)))
        };
        let launches: u64 = below.iter().map(|row| row.launches).sum();
        let total_ns = sum(|row| row.total_ns);
        let n = i64::try_from(launches).unwrap_or(i64::MAX).max(1);
        kept.push(KernelTableRow {
            stage: first.stage.clone(),
            device: first.device.clone(),
            kernel_name: format!("others ({} kernels)", below.len()),
            category: REST.to_owned(),
            total_ns,
            gpu_share_pct: below.iter().map(|row| row.gpu_share_pct).sum(),
            share_pct: below.iter().map(|row| row.share_pct).sum(),
            launches,
            mean_ns: total_ns.saturating_add(n / 2) / n,
            max_ns: below.iter().map(|row| row.max_ns).max().unwrap_or_default(),
            exposed_ns: sum(|row| row.exposed_ns),
            mapping_confidence: Confidence::None.id().to_owned(),
            first_seen_ns: below.iter().map(|row| row.first_seen_ns).min().unwrap_or_default(),
            notes: vec!["p50-not-defined".to_owned()],
            // Several kernels have no median, place, launch or inputs in common.
            ..KernelTableRow::default()
        });
    }
    kept
}

/// Columns that many files leave empty: places beyond the first, and what a second reading of the file fills.
pub(super) const FROM_ARGUMENTS: &[&str] = &[
    "locations",
    "shapes",
    "n_shapes",
    "gemm_shape",
    "grid",
    "block",
    "occupancy_pct",
    "registers",
    "shared_bytes",
    "blocks_per_sm",
    "warps_per_sm",
    "n_launch_configs",
];

const NOT_TOLD: &str = "not recorded";

fn counted(n: u64) -> Cell<'static> {
    Cell::or_missing((n > 0).then_some(n), Cell::Count, NOT_TOLD)
}

fn three(sizes: Option<[u32; 3]>) -> Cell<'static> {
    let text = sizes.map(|[x, y, z]| format!("{x} x {y} x {z}"));
    Cell::or_missing(text, Cell::from, NOT_TOLD)
}

fn per_sm(value: Option<f64>) -> Cell<'static> {
    Cell::or_missing(value.map(|value| format!("{value:.2}")), Cell::from, NOT_TOLD)
}

/// The category of the row that sums the rest of a stage.
const REST: &str = "others";
/// Why that row has no values of single kernels.
const OF_REST: &str = "not defined for a sum of several kernels";

fn is_rest(row: &KernelTableRow) -> bool {
    row.category == REST
}

impl Row for KernelTableRow {
    fn key(&self) -> Option<RowKey<'_>> {
        // A sum of several kernels is none of them.
        (!is_rest(self)).then(|| RowKey::Kernel {
            stage: &self.stage,
            device: Some(&self.device),
            name: &self.kernel_name,
        })
    }

    const SHOWN: &'static [&'static str] = &[
        "kernel_name",
        "stage",
        "device",
        "total_ns",
        "gpu_share_pct",
        "share_pct",
        "python_location",
        "cpu_op",
        "category",
        "launches",
        "mapping_confidence",
        "mean_ns",
    ];

    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "stage",
            title: "Stage",
            unit: Unit::Text,
            help: "The part of serving or training that launched the kernel.",
            cell: |row| words::stage(&row.stage),
        },
        columns::device("Device that ran it.", |row| row.device.as_str().into()),
        columns::kernel_name(
            "The kernel name, shortened in tables; exports have the whole name.",
            |row| row.kernel_name.as_str().into(),
        ),
        columns::category(
            "What the kernel computes, from its name; from its op where the name is not enough (see Notes).",
            |row| analysis::words::category(&row.category),
        ),
        columns::family("The library or compiler that it comes from, from its name.", |row| {
            analysis::words::family(&row.family)
        }),
        columns::total_ns("Summed duration of all launches.", |row| Cell::Ns(row.total_ns)),
        Column {
            key: "gpu_share_pct",
            title: columns::OF_GPU_TIME,
            unit: Unit::Percent,
            help: "Total as a percentage of the summed duration of all GPU slices of the device, over all stages.",
            cell: |row| Cell::Percent(row.gpu_share_pct),
        },
        columns::share_pct(
            columns::OF_STAGE_TIME,
            "Total as a percentage of the summed duration of all GPU slices of the stage.",
            |row| Cell::Percent(row.share_pct),
        ),
        columns::launches(|row| Cell::Count(row.launches)),
        columns::mean_ns(|row| Cell::Ns(row.mean_ns)),
        columns::p50_ns(
            "Median duration; of an even number of launches the mean of the two in the middle.",
            |row| {
                if is_rest(row) { Cell::missing(OF_REST) } else { Cell::Ns(row.p50_ns) }
            },
        ),
        columns::max_ns(|row| Cell::Ns(row.max_ns)),
        Column {
            key: "exposed_ns",
            title: "Exposed",
            unit: Unit::Time,
            help: "Part of Total with no other stream of the device running.",
            cell: |row| Cell::Ns(row.exposed_ns),
        },
        Column {
            key: "queue_ns",
            title: "Mean queue delay (from launch start)",
            unit: Unit::Time,
            help: "Mean time from the start of the launch call to the start of the kernel. Not defined for graph launches.",
            cell: |row| {
                Cell::or_missing(
                    row.queue_ns,
                    Cell::Ns,
                    "no launch call is recorded, or a graph launched it",
                )
            },
        },
        Column {
            key: "python_location",
            title: "Python function",
            unit: Unit::Path,
            help: "The Python function that most of its time came from: the innermost one of your code or a model's. Its line is that of its definition; of a function that ran when profiling started, the line that it was at.",
            cell: |row| row.python_location.as_str().into(),
        },
        Column {
            key: "location_share_pct",
            title: "Share from this function",
            unit: Unit::Percent,
            help: "Part of Total from that function, in percent.",
            cell: |row| match row.python_location.as_str() {
                "" if is_rest(row) => Cell::missing(OF_REST),
                "" => Cell::missing("not recorded"),
                _ => Cell::Percent(row.location_share_pct),
            },
        },
        Column {
            key: "locations",
            title: "All functions",
            unit: Unit::Path,
            help: "Every Python function that launched it, with its share of the total, where there are several.",
            cell: |row| match row.locations.as_slice() {
                [] => Cell::missing("at most one function is known"),
                lines => Cell::from(lines.join("; ")),
            },
        },
        Column {
            key: "modules",
            title: "Modules",
            unit: Unit::Path,
            help: "Classes of the innermost modules around that function, outermost first. Several have their share of the total.",
            cell: |row| row.modules.as_str().into(),
        },
        Column {
            key: "cpu_op",
            title: "Op",
            unit: Unit::Path,
            help: "The PyTorch op that most of its time came from, together with Inputs and Grid; the launch call where no op is recorded.",
            cell: |row| row.cpu_op.as_str().into(),
        },
        Column {
            key: "group_share_pct",
            title: "Share from this op, inputs, grid",
            unit: Unit::Percent,
            help: "Part of Total from the launches that have Op, Inputs, Grid and Block of this row in common.",
            cell: |row| {
                if is_rest(row) {
                    Cell::missing(OF_REST)
                } else {
                    Cell::Percent(row.group_share_pct)
                }
            },
        },
        Column {
            key: "mapping_confidence",
            title: "Confidence",
            unit: Unit::Text,
            help: "How the op and the function were found, and how reliable they are.",
            cell: |row| words::confidence(&row.mapping_confidence),
        },
        Column {
            key: "shapes",
            title: "Inputs",
            unit: Unit::Text,
            help: "The inputs of that op in these launches: type and size of its tensors.",
            cell: |row| Cell::or_missing(row.shapes.clone(), Cell::from, NOT_TOLD),
        },
        Column {
            key: "n_shapes",
            title: "Input shapes",
            unit: Unit::Count,
            help: "Number of distinct input shapes.",
            cell: |row| counted(row.n_shapes),
        },
        Column {
            key: "gemm_shape",
            title: "M x N x K",
            unit: Unit::Text,
            help: "Sizes of the matrix product of these inputs.",
            cell: |row| {
                Cell::or_missing(
                    row.gemm_shape.clone(),
                    Cell::from,
                    "its op is not a matrix product",
                )
            },
        },
        Column {
            key: "grid",
            title: "Grid",
            unit: Unit::Text,
            help: "Blocks (workgroups) of these launches.",
            cell: |row| three(row.grid),
        },
        Column {
            key: "block",
            title: "Block",
            unit: Unit::Text,
            help: "Threads per block.",
            cell: |row| three(row.block),
        },
        Column {
            key: "occupancy_pct",
            title: "Occupancy (est.)",
            unit: Unit::Percent,
            help: "The profiler's own estimate of the achieved occupancy, from the launch alone: not measured. Only the CUDA profiler records it.",
            cell: |row| Cell::or_missing(row.occupancy_pct, Cell::Percent, NOT_TOLD),
        },
        Column {
            key: "registers",
            title: "Registers",
            unit: Unit::Count,
            help: "Registers per thread. Only the CUDA profiler records it.",
            cell: |row| Cell::or_missing(row.registers, Cell::Count, NOT_TOLD),
        },
        Column {
            key: "shared_bytes",
            title: "Shared memory",
            unit: Unit::Bytes,
            help: "Shared memory (LDS) per block, as requested at the launch.",
            cell: |row| Cell::or_missing(row.shared_bytes, Cell::Bytes, NOT_TOLD),
        },
        Column {
            key: "blocks_per_sm",
            title: "Blocks per SM",
            unit: Unit::Text,
            help: "Blocks of the grid / multiprocessors: below 1 some multiprocessors are idle.",
            cell: |row| per_sm(row.blocks_per_sm),
        },
        Column {
            key: "warps_per_sm",
            title: "Warps per SM",
            unit: Unit::Text,
            help: "Warps of the grid / multiprocessors.",
            cell: |row| per_sm(row.warps_per_sm),
        },
        Column {
            key: "n_launch_configs",
            title: "Launch configs",
            unit: Unit::Count,
            help: "Number of distinct launch configs: grid, block, registers, memory.",
            cell: |row| counted(row.n_launch_configs),
        },
        columns::streams(|row| columns::list_streams(&row.streams)),
        Column {
            key: "first_seen_ns",
            title: "First start",
            unit: Unit::Time,
            help: "When it first ran, from the first event of the trace: the time that Perfetto shows.",
            cell: |row| Cell::Ns(row.first_seen_ns),
        },
        Column {
            key: "notes",
            title: "Notes",
            unit: Unit::Text,
            help: "Notes on the origin of this row's values.",
            cell: |row| words::notes(&row.notes),
        },
    ];
}
