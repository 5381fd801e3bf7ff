//! The lines of the kernel table: kernels, and of each stage the sum of those below a cutoff. Their columns.

use report::{Cell, Column, Row, RowKey, Unit};

use super::kernel_row::KernelTableRow;
use super::notes::Note;
use super::site::Confidence;
use super::stages::Stage;
use crate::words;
use analysis::columns;

/// A line of the kernel table.
#[derive(Clone, Debug, PartialEq)]
pub enum KernelLine {
    /// A kernel.
    Kernel(Box<KernelTableRow>),
    /// The kernels of a stage that are below the cutoff.
    Rest(Rest),
}

/// What several kernels of a stage sum up to: no median, place, launch or inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest {
    stage: Option<Stage>,
    device: String,
    n_kernels: usize,
    total_ns: i64,
    cold_ns: Option<i64>,
    gpu_share_pct: f64,
    share_pct: f64,
    launches: u64,
    mean_ns: i64,
    max_ns: i64,
    exposed_ns: i64,
    first_seen_ns: i64,
}

impl Rest {
    /// The sum of kernels of one stage of a device; `None` of none.
    fn of(rows: &[&KernelTableRow]) -> Option<Self> {
        let first = rows.first()?;
        let sum = |of: fn(&KernelTableRow) -> i64| {
            rows.iter().fold(0_i64, |sum, row| sum.saturating_add(of(row)))
        };
        let launches: u64 = rows.iter().map(|row| row.launches).sum();
        let total_ns = sum(|row| row.total_ns);
        let n = i64::try_from(launches).unwrap_or(i64::MAX).max(1);
        Some(Self {
            stage: first.stage,
            device: first.device.clone(),
            n_kernels: rows.len(),
            total_ns,
            cold_ns: first.cold_ns.map(|_| sum(|row| row.cold_ns.unwrap_or_default())),
            gpu_share_pct: rows.iter().map(|row| row.gpu_share_pct).sum(),
            share_pct: rows.iter().map(|row| row.share_pct).sum(),
            launches,
            mean_ns: total_ns.saturating_add(n / 2) / n,
            max_ns: rows.iter().map(|row| row.max_ns).max().unwrap_or_default(),
            exposed_ns: sum(|row| row.exposed_ns),
            first_seen_ns: rows.iter().map(|row| row.first_seen_ns).min().unwrap_or_default(),
        })
    }
}

impl From<KernelTableRow> for KernelLine {
    fn from(row: KernelTableRow) -> Self {
        Self::Kernel(Box::new(row))
    }
}

impl KernelLine {
    fn either<'a, T>(
        &'a self,
        of_kernel: fn(&'a KernelTableRow) -> T,
        of_rest: fn(&'a Rest) -> T,
    ) -> T {
        match self {
            Self::Kernel(row) => of_kernel(row),
            Self::Rest(rest) => of_rest(rest),
        }
    }

    fn stage(&self) -> Option<Stage> {
        self.either(|row| row.stage, |rest| rest.stage)
    }

    fn cold_ns(&self) -> Option<i64> {
        self.either(|row| row.cold_ns, |rest| rest.cold_ns)
    }

    fn device(&self) -> &str {
        self.either(|row| row.device.as_str(), |rest| rest.device.as_str())
    }

    fn of_kernel<'a>(&'a self, cell: fn(&'a KernelTableRow) -> Cell<'a>) -> Cell<'a> {
        self.either(cell, |_| Cell::missing(OF_REST))
    }

    /// A text that only a single kernel has; empty where it is not recorded.
    fn text_of_kernel<'a>(&'a self, text: fn(&'a KernelTableRow) -> &'a str) -> Cell<'a> {
        match self {
            Self::Kernel(row) => text(row).into(),
            Self::Rest(_) => "".into(),
        }
    }
}

/// The kernels with at least `cutoff_pct` of their stage, and the rest of each stage in one line, so that shares still sum
/// to 100%.
#[must_use]
pub fn above_cutoff(rows: &[KernelTableRow], cutoff_pct: f64) -> Vec<KernelLine> {
    let mut lines = Vec::new();
    for stage in rows.chunk_by(|a, b| (a.stage, &a.device) == (b.stage, &b.device)) {
        let (above, below): (Vec<_>, Vec<_>) =
            stage.iter().partition(|row| row.share_pct >= cutoff_pct);
        lines.extend(above.into_iter().cloned().map(KernelLine::from));
        lines.extend(Rest::of(&below).map(KernelLine::Rest));
    }
    lines
}

/// Columns that many files leave empty, because a second reading of the file fills them.
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

/// Why the rest of a stage has no values of single kernels.
const OF_REST: &str = "not defined for a sum of several kernels";

impl Row for KernelLine {
    fn key(&self) -> Option<RowKey<'_>> {
        match self {
            Self::Kernel(row) => Some(RowKey::Kernel {
                stage: row.stage.map_or("", Stage::id),
                device: Some(&row.device),
                name: &row.kernel_name,
            }),
            Self::Rest(_) => None,
        }
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
            cell: |line| words::of_stage(line.stage()),
        },
        columns::device("Device that ran it.", |line| line.device().into()),
        columns::kernel_name(
            "The kernel name, shortened in tables; exports have the whole name.",
            |line| match line {
                KernelLine::Kernel(row) => row.kernel_name.as_str().into(),
                KernelLine::Rest(rest) => {
                    Cell::from(format!("others ({} kernels)", rest.n_kernels))
                }
            },
        ),
        columns::category(
            "What the kernel computes, from its name; from its op where the name is not enough (see Notes).",
            |line| match line {
                KernelLine::Kernel(row) => analysis::words::of_category(row.category),
                KernelLine::Rest(_) => "others".into(),
            },
        ),
        columns::family("The library or compiler that it comes from, from its name.", |line| {
            match line {
                KernelLine::Kernel(row) => analysis::words::of_family(row.family),
                KernelLine::Rest(_) => "".into(),
            }
        }),
        columns::total_ns("Summed duration of all launches.", |line| {
            Cell::Ns(line.either(|row| row.total_ns, |rest| rest.total_ns))
        }),
        Column {
            key: "cold_ns",
            title: "Of it in cold iterations",
            unit: Unit::Time,
            help: "Part of Total that cold iterations launched: what they do once, later ones do not.",
            cell: |line| Cell::or_missing(line.cold_ns(), Cell::Ns, "no iteration is cold"),
        },
        Column {
            key: "gpu_share_pct",
            title: columns::OF_GPU_TIME,
            unit: Unit::Percent,
            help: "Total as a percentage of the summed duration of all GPU slices of the device, over all stages.",
            cell: |line| {
                Cell::Percent(line.either(|row| row.gpu_share_pct, |rest| rest.gpu_share_pct))
            },
        },
        columns::share_pct(
            columns::OF_STAGE_TIME,
            "Total as a percentage of the summed duration of all GPU slices of the stage.",
            |line| Cell::Percent(line.either(|row| row.share_pct, |rest| rest.share_pct)),
        ),
        columns::launches(|line| {
            Cell::Count(line.either(|row| row.launches, |rest| rest.launches))
        }),
        columns::mean_ns(|line| Cell::Ns(line.either(|row| row.mean_ns, |rest| rest.mean_ns))),
        columns::p50_ns(
            "Median duration; of an even number of launches the mean of the two in the middle.",
            |line| line.of_kernel(|row| Cell::Ns(row.p50_ns)),
        ),
        columns::max_ns(|line| Cell::Ns(line.either(|row| row.max_ns, |rest| rest.max_ns))),
        Column {
            key: "exposed_ns",
            title: "Exposed",
            unit: Unit::Time,
            help: "Part of Total with no other stream of the device running.",
            cell: |line| Cell::Ns(line.either(|row| row.exposed_ns, |rest| rest.exposed_ns)),
        },
        Column {
            key: "queue_ns",
            title: "Mean queue delay (from launch start)",
            unit: Unit::Time,
            help: "Mean time from the start of the launch call to the start of the kernel. Not defined for graph launches.",
            cell: |line| {
                line.of_kernel(|row| {
                    Cell::or_missing(
                        row.queue_ns,
                        Cell::Ns,
                        "no launch call is recorded, or a graph launched it",
                    )
                })
            },
        },
        Column {
            key: "python_location",
            title: "Python function",
            unit: Unit::Path,
            help: "The Python function that most of its time came from: the innermost one of your code or a model's. Its line is that of its definition; of a function that ran when profiling started, the line that it was at.",
            cell: |line| line.text_of_kernel(|row| &row.python_location),
        },
        Column {
            key: "location_share_pct",
            title: "Share from this function",
            unit: Unit::Percent,
            help: "Part of Total from that function, in percent.",
            cell: |line| {
                line.of_kernel(|row| match row.python_location.as_str() {
                    "" => Cell::missing("not recorded"),
                    _ => Cell::Percent(row.location_share_pct),
                })
            },
        },
        Column {
            key: "locations",
            title: "All functions",
            unit: Unit::Path,
            help: "Every Python function that launched it, with its share of the total, where there are several.",
            cell: |line| {
                line.of_kernel(|row| match row.locations.as_slice() {
                    [] => Cell::missing("at most one function is known"),
                    lines => Cell::from(lines.join("; ")),
                })
            },
        },
        Column {
            key: "modules",
            title: "Modules",
            unit: Unit::Path,
            help: "Classes of the innermost modules around that function, outermost first. Several have their share of the total.",
            cell: |line| line.text_of_kernel(|row| &row.modules),
        },
        Column {
            key: "cpu_op",
            title: "Op",
            unit: Unit::Path,
            help: "The PyTorch op that most of its time came from, together with Inputs and Grid; the launch call where no op is recorded.",
            cell: |line| line.text_of_kernel(|row| &row.cpu_op),
        },
        Column {
            key: "group_share_pct",
            title: "Share from this op, inputs, grid",
            unit: Unit::Percent,
            help: "Part of Total from the launches that have Op, Inputs, Grid and Block of this row in common.",
            cell: |line| line.of_kernel(|row| Cell::Percent(row.group_share_pct)),
        },
        Column {
            key: "mapping_confidence",
            title: "Confidence",
            unit: Unit::Text,
            help: "How the op and the function were found, and how reliable they are.",
            cell: |line| {
                words::confidence(line.either(|row| row.mapping_confidence, |_| Confidence::None))
            },
        },
        Column {
            key: "shapes",
            title: "Inputs",
            unit: Unit::Text,
            help: "The inputs of that op in these launches: type and size of its tensors.",
            cell: |line| {
                line.of_kernel(|row| Cell::or_missing(row.shapes.clone(), Cell::from, NOT_TOLD))
            },
        },
        Column {
            key: "n_shapes",
            title: "Input shapes",
            unit: Unit::Count,
            help: "Number of distinct input shapes.",
            cell: |line| line.of_kernel(|row| counted(row.n_shapes)),
        },
        Column {
            key: "gemm_shape",
            title: "M x N x K",
            unit: Unit::Text,
            help: "Sizes of the matrix product of these inputs.",
            cell: |line| {
                line.of_kernel(|row| {
                    Cell::or_missing(
                        row.gemm_shape.clone(),
                        Cell::from,
                        "its op is not a matrix product",
                    )
                })
            },
        },
        Column {
            key: "grid",
            title: "Grid",
            unit: Unit::Text,
            help: "Blocks (workgroups) of these launches.",
            cell: |line| line.of_kernel(|row| three(row.grid)),
        },
        Column {
            key: "block",
            title: "Block",
            unit: Unit::Text,
            help: "Threads per block.",
            cell: |line| line.of_kernel(|row| three(row.block)),
        },
        Column {
            key: "occupancy_pct",
            title: "Occupancy (est.)",
            unit: Unit::Percent,
            help: "The profiler's own estimate of the achieved occupancy, from the launch alone: not measured. Only the CUDA profiler records it.",
            cell: |line| {
                line.of_kernel(|row| Cell::or_missing(row.occupancy_pct, Cell::Percent, NOT_TOLD))
            },
        },
        Column {
            key: "registers",
            title: "Registers",
            unit: Unit::Count,
            help: "Registers per thread. Only the CUDA profiler records it.",
            cell: |line| {
                line.of_kernel(|row| Cell::or_missing(row.registers, Cell::Count, NOT_TOLD))
            },
        },
        Column {
            key: "shared_bytes",
            title: "Shared memory",
            unit: Unit::Bytes,
            help: "Shared memory (LDS) per block, as requested at the launch.",
            cell: |line| {
                line.of_kernel(|row| Cell::or_missing(row.shared_bytes, Cell::Bytes, NOT_TOLD))
            },
        },
        Column {
            key: "blocks_per_sm",
            title: "Blocks per SM",
            unit: Unit::Text,
            help: "Blocks of the grid / multiprocessors: below 1 some multiprocessors are idle.",
            cell: |line| line.of_kernel(|row| per_sm(row.blocks_per_sm)),
        },
        Column {
            key: "warps_per_sm",
            title: "Warps per SM",
            unit: Unit::Text,
            help: "Warps of the grid / multiprocessors.",
            cell: |line| line.of_kernel(|row| per_sm(row.warps_per_sm)),
        },
        Column {
            key: "n_launch_configs",
            title: "Launch configs",
            unit: Unit::Count,
            help: "Number of distinct launch configs: grid, block, registers, memory.",
            cell: |line| line.of_kernel(|row| counted(row.n_launch_configs)),
        },
        columns::streams(|line| match line {
            KernelLine::Kernel(row) => columns::list_streams(&row.streams),
            KernelLine::Rest(_) => columns::list_streams(&[]),
        }),
        Column {
            key: "first_seen_ns",
            title: "First start",
            unit: Unit::Time,
            help: "When it first ran, from the first event of the trace: the time that Perfetto shows.",
            cell: |line| Cell::Ns(line.either(|row| row.first_seen_ns, |rest| rest.first_seen_ns)),
        },
        Column {
            key: "notes",
            title: "Notes",
            unit: Unit::Text,
            help: "Notes on the origin of this row's values.",
            cell: |line| match line {
                KernelLine::Kernel(row) => words::notes(&row.notes),
                KernelLine::Rest(_) => words::notes(&[Note::MedianNotDefined]),
            },
        },
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(stage: Stage, name: &str, total_ns: i64, share_pct: f64) -> KernelTableRow {
        KernelTableRow {
            stage: Some(stage),
            kernel_name: name.to_owned(),
            total_ns,
            share_pct,
            launches: 3,
            ..KernelTableRow::default()
        }
    }

    #[test]
    fn columns_are_the_fields() {
        let columns = KernelLine::COLUMNS.iter().map(|column| column.key);
        testkit::assert_keys(&kernel(Stage::All, "k", 1, 100.0), columns);
    }

    #[test]
    fn kernels_below_the_cutoff_are_one_line_of_their_stage() {
        let rows = [
            kernel(Stage::Extend, "a", 98, 98.0),
            kernel(Stage::Extend, "b", 1, 1.0),
            kernel(Stage::Extend, "c", 1, 1.0),
            kernel(Stage::Decode, "a", 7, 100.0),
        ];
        let lines = above_cutoff(&rows, 2.0);
        let cell = |line: &KernelLine, key: &str| {
            let column = KernelLine::COLUMNS.iter().find(|column| column.key == key).unwrap();
            (column.cell)(line).raw()
        };
        let found: Vec<_> = lines
            .iter()
            .map(|line| ["stage", "kernel_name", "category", "total_ns"].map(|key| cell(line, key)))
            .collect();
        assert_eq!(
            found,
            [
                ["extend", "a", "other", "98"],
                ["extend", "others (2 kernels)", "others", "2"],
                ["decode", "a", "other", "7"],
            ]
        );
        assert_eq!(cell(&lines[1], "launches"), "6");
        assert_eq!(
            (cell(&lines[1], "p50_ns"), cell(&lines[1], "notes")),
            ("".into(), "p50-not-defined".into())
        );
        assert!(lines[1].key().is_none() && lines[0].key().is_some());
    }
}
