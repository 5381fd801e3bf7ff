//! The rows of the kernel table, and its columns.

use report::{Cell, Column, Row, Unit};
use serde::{Deserialize, Serialize};

use super::site::Confidence;
use crate::columns;

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
    /// Total in percent of the stage's GPU time (a sum, not wall time).
    pub share_pct: f64,
    /// How often it ran.
    pub launches: u64,
    /// Total by launches, rounded half up.
    pub mean_ns: i64,
    /// Median by nearest rank.
    pub p50_ns: i64,
    /// Longest.
    pub max_ns: i64,
    /// The part of the total in which nothing ran on another stream of the device.
    pub exposed_ns: i64,
    /// Mean time from the beginning of the launch call to that of the kernel; `None` when no launch is known, or a
    /// graph launched it.
    pub queue_ns: Option<i64>,
    /// The line of Python that most of its time came from: `path:line function`; empty when none is known.
    pub python_location: String,
    /// The part of the total that came from that line, in percent.
    pub location_share_pct: f64,
    /// Classes of the innermost `nn.Module`s around that line, outermost first; empty when none is known.
    pub modules: String,
    /// The op that most of its time came from; empty when none is known.
    pub cpu_op: String,
    /// How sure the place is: see [`Confidence`].
    pub mapping_confidence: String,
    /// What that op was most often called with: `bf16[32,4096], bf16[4096,4096]`; `None` where the file does not tell,
    /// or its arguments were not read.
    pub shapes: Option<String>,
    /// How many different inputs there were.
    pub n_shapes: u64,
    /// Rows, columns and inner size of the matrix product: `32 x 4096 x 4096`; `None` when the op is none.
    pub gemm_shape: Option<String>,
    /// Blocks (workgroups) of the most frequent launch in x, y, z; `None` as for the shapes.
    pub grid: Option<[u32; 3]>,
    /// Threads of each block in x, y, z.
    pub block: Option<[u32; 3]>,
    /// The profiler's estimate of the achieved occupancy of that launch, in percent (CUDA only).
    pub occupancy_pct: Option<f64>,
    /// Registers of each thread (CUDA only).
    pub registers: Option<u64>,
    /// Shared memory (LDS) of each block, in bytes.
    pub shared_bytes: Option<u64>,
    /// Blocks by the number of multiprocessors (CUDA only).
    pub blocks_per_sm: Option<f64>,
    /// The same in warps.
    pub warps_per_sm: Option<f64>,
    /// How many different launches (grid, block, registers, memory) there were.
    pub n_launch_configs: u64,
    /// Streams it ran on.
    pub streams: Vec<String>,
    /// When it first ran, in ns from the start of the first event of the trace, where a timeline begins.
    pub first_seen_ns: i64,
    /// Remarks, as tokens that a program can read.
    pub notes: Vec<String>,
}

/// Rows with at least `cutoff_pct` of their stage, and what is left of each stage in one row, so that the shares of a
/// stage still sum to 100 %.
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

/// Columns that a second reading of the file fills, and that many files leave empty.
pub(super) const FROM_ARGUMENTS: &[&str] = &[
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

const NOT_TOLD: &str = "the file does not tell, or its arguments were not read";

fn counted(n: u64) -> Cell {
    Cell::or_missing((n > 0).then_some(n), Cell::Count, NOT_TOLD)
}

fn three(sizes: Option<[u32; 3]>) -> Cell {
    let text = sizes.map(|[x, y, z]| format!("{x} x {y} x {z}"));
    Cell::or_missing(text, Cell::Text, NOT_TOLD)
}

fn per_sm(value: Option<f64>) -> Cell {
    Cell::or_missing(value.map(|value| format!("{value:.2}")), Cell::Text, NOT_TOLD)
}

/// The category of the row that sums up the rest of a stage.
const REST: &str = "others";
/// Why that row lacks what single kernels have.
const OF_REST: &str = "these are several kernels";

fn is_rest(row: &KernelTableRow) -> bool {
    row.category == REST
}

impl Row for KernelTableRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "stage",
            title: "Stage",
            unit: Unit::Text,
            help: "Prefill (extend), decode, mixed, forward, backward, optimizer; all where no stage is known.",
            cell: |row| row.stage.as_str().into(),
        },
        columns::device("The device that it ran on.", |row| row.device.as_str().into()),
        columns::kernel_name(
            "The kernel's name; shortened here, whole in the title and in copies.",
            |row| row.kernel_name.as_str().into(),
        ),
        columns::category(
            "What the kernel computes, from its name; from its op where the name tells nothing, and Notes say so.",
            |row| row.category.as_str().into(),
        ),
        columns::family("The library or compiler that it comes from, from its name.", |row| {
            row.family.as_str().into()
        }),
        columns::total_ns("Sum of the durations of all launches.", |row| Cell::Ns(row.total_ns)),
        columns::share_pct(
            "Total in percent of the stage's GPU time, a sum over all streams.",
            |row| Cell::Percent(row.share_pct),
        ),
        columns::launches(|row| Cell::Count(row.launches)),
        columns::mean_ns(|row| Cell::Ns(row.mean_ns)),
        columns::p50_ns("Median by nearest rank: a duration that occurred.", |row| {
            if is_rest(row) { Cell::missing(OF_REST) } else { Cell::Ns(row.p50_ns) }
        }),
        columns::max_ns(|row| Cell::Ns(row.max_ns)),
        Column {
            key: "exposed_ns",
            title: "Exposed",
            unit: Unit::Time,
            help: "The part of the total in which nothing ran on another stream of the device.",
            cell: |row| Cell::Ns(row.exposed_ns),
        },
        Column {
            key: "queue_ns",
            title: "Queued, mean",
            unit: Unit::Time,
            help: "Mean time from the beginning of the launch call to that of the kernel. Not told of graphs.",
            cell: |row| Cell::or_missing(row.queue_ns, Cell::Ns, "no launch of it is known"),
        },
        Column {
            key: "python_location",
            title: "Python",
            unit: Unit::Text,
            help: "The line that most of its time came from: the innermost one of the user's code or a model's.",
            cell: |row| row.python_location.as_str().into(),
        },
        Column {
            key: "location_share_pct",
            title: "From there",
            unit: Unit::Percent,
            help: "The part of the total that came from that line.",
            cell: |row| match row.python_location.as_str() {
                "" if is_rest(row) => Cell::missing(OF_REST),
                "" => Cell::missing("no line is known"),
                _ => Cell::Percent(row.location_share_pct),
            },
        },
        Column {
            key: "modules",
            title: "Modules",
            unit: Unit::Text,
            help: "Classes of the innermost modules that were running, outermost first.",
            cell: |row| row.modules.as_str().into(),
        },
        Column {
            key: "cpu_op",
            title: "Op",
            unit: Unit::Text,
            help: "The op that most of its time came from; the launch call where no op is known.",
            cell: |row| row.cpu_op.as_str().into(),
        },
        Column {
            key: "mapping_confidence",
            title: "How sure",
            unit: Unit::Text,
            help: "exact: by the file's ids; forward: the op by these, the line that of its op in the forward pass; replay: by the order of a graph's capture; position: by place in it; mapping: by name from another trace; enclosing: by time; launch: only the call is known; none: nothing is known.",
            cell: |row| row.mapping_confidence.as_str().into(),
        },
        Column {
            key: "shapes",
            title: "Inputs",
            unit: Unit::Text,
            help: "What that op was most often called with: type and size of its tensors.",
            cell: |row| Cell::or_missing(row.shapes.clone(), Cell::Text, NOT_TOLD),
        },
        Column {
            key: "n_shapes",
            title: "Kinds of inputs",
            unit: Unit::Count,
            help: "How many different inputs its launches had.",
            cell: |row| counted(row.n_shapes),
        },
        Column {
            key: "gemm_shape",
            title: "M x N x K",
            unit: Unit::Text,
            help: "Sizes of the matrix product that these inputs make.",
            cell: |row| {
                Cell::or_missing(row.gemm_shape.clone(), Cell::Text, "its op is no matrix product")
            },
        },
        Column {
            key: "grid",
            title: "Grid",
            unit: Unit::Text,
            help: "Blocks (workgroups) of the most frequent launch.",
            cell: |row| three(row.grid),
        },
        Column {
            key: "block",
            title: "Block",
            unit: Unit::Text,
            help: "Threads of each block.",
            cell: |row| three(row.block),
        },
        Column {
            key: "occupancy_pct",
            title: "Occupancy (est.)",
            unit: Unit::Percent,
            help: "The profiler's own estimate of the achieved occupancy, from the launch alone: not measured. Only CUDA's profiler gives it.",
            cell: |row| Cell::or_missing(row.occupancy_pct, Cell::Percent, NOT_TOLD),
        },
        Column {
            key: "registers",
            title: "Registers",
            unit: Unit::Count,
            help: "Registers of each thread. Only CUDA's profiler gives it.",
            cell: |row| Cell::or_missing(row.registers, Cell::Count, NOT_TOLD),
        },
        Column {
            key: "shared_bytes",
            title: "Shared memory",
            unit: Unit::Bytes,
            help: "Shared memory (LDS) of each block, as asked for at the launch.",
            cell: |row| Cell::or_missing(row.shared_bytes, Cell::Bytes, NOT_TOLD),
        },
        Column {
            key: "blocks_per_sm",
            title: "Blocks by SM",
            unit: Unit::Text,
            help: "Blocks of the grid by the number of multiprocessors: below 1 some have nothing to do.",
            cell: |row| per_sm(row.blocks_per_sm),
        },
        Column {
            key: "warps_per_sm",
            title: "Warps by SM",
            unit: Unit::Text,
            help: "Warps of the grid by the number of multiprocessors.",
            cell: |row| per_sm(row.warps_per_sm),
        },
        Column {
            key: "n_launch_configs",
            title: "Kinds of launch",
            unit: Unit::Count,
            help: "How many different launches it had, by grid, block, registers and memory.",
            cell: |row| counted(row.n_launch_configs),
        },
        columns::streams(|row| columns::list_streams(&row.streams)),
        Column {
            key: "first_seen_ns",
            title: "First at",
            unit: Unit::Time,
            help: "When it first ran, from the first event of the trace on: where Perfetto shows it.",
            cell: |row| Cell::Ns(row.first_seen_ns),
        },
        Column {
            key: "notes",
            title: "Notes",
            unit: Unit::Text,
            help: "Remarks.",
            cell: |row| Cell::Text(row.notes.join("; ")),
        },
    ];
}
