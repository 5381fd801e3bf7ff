//! The rows of the overlap table.

use catalog::remedies::Remedy;
use catalog::{Category, OverlapClass};
use report::{Cell, Column, Row, RowKey, Unit};
use serde::Serialize;

use super::context::OverlapContext;
use super::risk::Risk;
use super::verdict::Verdict;
use crate::fuse::PRINTED_PCT;
use crate::priority::Priority;
use crate::stages::Stage;
use crate::words;
use analysis::columns;

/// What one kernel's overlap means, and what to do about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverlapRow {
    /// Part of the run.
    pub stage: Stage,
    /// The device's id.
    pub device: String,
    /// By `savings_pct`; `None` where nothing is advised.
    #[serde(serialize_with = "analysis::ids::serialize")]
    pub priority: Option<Priority>,
    /// Why the row is in the table.
    #[serde(serialize_with = "analysis::ids::serialize")]
    pub verdict: Verdict,
    /// The whole name.
    pub kernel_name: String,
    /// What the kernel does.
    #[serde(serialize_with = "analysis::ids::serialize")]
    pub category: Category,
    /// Which kernels can run concurrently with it.
    #[serde(serialize_with = "analysis::ids::serialize")]
    pub overlap_class: OverlapClass,
    /// The line of Python that most of its time comes from, else its op or launch.
    pub python_scope: Option<String>,
    /// What to do, if anything is advised.
    pub recommendation: Option<String>,
    /// How likely it is that it depends on its neighbours.
    #[serde(serialize_with = "analysis::ids::serialize")]
    pub dependency_risk: Risk,
    /// Sum of durations.
    pub total_ns: i64,
    /// Total as a percentage of the stage's busy time.
    pub share_pct: f64,
    /// Nothing ran on another stream.
    pub exclusive_ns: i64,
    /// Something ran on another stream.
    pub hidden_ns: i64,
    /// Something of class compute ran on another stream.
    pub hidden_by_compute_ns: i64,
    /// Exclusive in percent of total.
    pub exclusive_pct: f64,
    /// Hidden in percent of total.
    pub hidden_pct: f64,
    /// The name that hid most of it.
    pub hidden_by: Option<String>,
    /// The wall time that would go away at most, in ns: an estimate. `None` where no remedy applies.
    pub savings_bound_ns: Option<i64>,
    /// That in percent of the GPU span of the device.
    pub savings_pct: Option<f64>,
    /// Number of launches.
    pub n_instances: u64,
    /// Instances with a near neighbour on their stream, in percent.
    pub tight_pct: f64,
    /// Instances that a real event wait ties to another stream, in percent; `None` when no wait is recorded.
    pub waited_pct: Option<f64>,
    /// The figures in one line.
    pub formal_signal: String,
    /// Why, in words, with the figures that decided.
    pub reason: String,
    /// Why it is advised, without what the columns beside it say.
    #[serde(skip)]
    pub because: String,
    /// The remedy that is advised.
    #[serde(skip)]
    pub advised: Option<&'static Remedy>,
    /// The number of the longest instance's event in the file, from 0.
    pub representative: u32,
    /// What the bound of pinned memory leaves out, as it only makes the waits for the workers of a data loader longer, in ns.
    #[serde(skip)]
    pub paced_ns: i64,
    /// The surroundings of that instance.
    #[serde(skip)]
    pub context: OverlapContext,
}

impl OverlapRow {
    /// Whether anything is advised. The page and artifacts have all rows.
    #[must_use]
    pub fn is_advice(&self) -> bool {
        self.priority.is_some()
    }

    /// Whether documents print it: a change that saves less than that is no action of the diagnosis.
    #[must_use]
    pub fn is_printed(&self) -> bool {
        self.is_advice() && self.savings_pct.is_some_and(|pct| pct >= PRINTED_PCT)
    }

    /// Whether pinned memory is advised, for what a data loader makes or for another tensor.
    #[must_use]
    pub fn pins(&self) -> bool {
        self.advised.is_some_and(|remedy| PINS.contains(&remedy.id))
    }
}

/// The remedies for copies of pageable memory: what a data loader makes, and what else the program does.
pub(super) const PINS: [&str; 2] = ["pin-host-memory", "pin-host-tensor"];

/// Why there is no bound.
const NO_REMEDY: &str = "no remedy applies, or it ran in no recorded step";

impl Row for OverlapRow {
    fn key(&self) -> Option<RowKey<'_>> {
        Some(RowKey::Event(self.representative))
    }

    const SHOWN: &'static [&'static str] = &[
        "priority",
        "kernel_name",
        "stage",
        "device",
        "recommendation",
        "savings_bound_ns",
        "savings_pct",
        "exclusive_ns",
        "dependency_risk",
        "verdict",
        "python_scope",
    ];

    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "stage",
            title: "Stage",
            unit: Unit::Text,
            help: "Part of the run.",
            cell: |row| words::of_stage(Some(row.stage)),
        },
        columns::device("The device that it ran on.", |row| row.device.as_str().into()),
        Column {
            key: "priority",
            title: "Priority",
            unit: Unit::Text,
            help: "P1, P2 and P3 by what it saves at most: from 5%, 2% and 0.5% of the GPU span. P5: nothing is advised.",
            cell: |row| Priority::id_of(row.priority).into(),
        },
        Column {
            key: "verdict",
            title: "Verdict",
            unit: Unit::Text,
            help: "Whether the kernel has exposed time that overlap could save.",
            cell: |row| words::overlap_verdict(row.verdict).into(),
        },
        columns::kernel_name(
            "The kernel name, shortened in tables; exports have the whole name.",
            |row| row.kernel_name.as_str().into(),
        ),
        columns::category("What the kernel does.", |row| {
            analysis::words::of_category(row.category)
        }),
        Column {
            key: "overlap_class",
            title: "Class",
            unit: Unit::Text,
            help: "The coarse class, from the category: it determines which kernels can run concurrently with this one.",
            cell: |row| row.overlap_class.id().into(),
        },
        Column {
            key: "python_scope",
            title: "Python function or op",
            unit: Unit::Path,
            help: "The Python line that most of its time comes from, else its op or launch call.",
            cell: |row| {
                let scope = row.python_scope.clone();
                Cell::or_missing(scope, Cell::from, "not recorded")
            },
        },
        Column {
            key: "recommendation",
            title: "Recommendation",
            unit: Unit::Text,
            help: "What to do. None: no remedy applies, or it saves too little wall time.",
            cell: |row| {
                row.recommendation
                    .as_deref()
                    .map_or("None".into(), |what| words::sentence_case(what).into())
            },
        },
        Column {
            key: "dependency_risk",
            title: "Dependency risk",
            unit: Unit::Text,
            help: "How likely it is that the kernel depends on its neighbours, so that it cannot move.",
            cell: |row| words::dependency_risk(row.dependency_risk).into(),
        },
        columns::total_ns("Sum of the durations.", |row| Cell::Ns(row.total_ns)),
        columns::share_pct(
            "Share of stage busy time",
            "Total as a percentage of the stage's busy time.",
            |row| Cell::Percent(row.share_pct),
        ),
        Column {
            key: "exclusive_ns",
            title: "Exposed",
            unit: Unit::Time,
            help: "Time in which no other stream of the device ran anything.",
            cell: |row| Cell::Ns(row.exclusive_ns),
        },
        Column {
            key: "hidden_ns",
            title: "Hidden",
            unit: Unit::Time,
            help: "Time in which something ran on another stream of the device.",
            cell: |row| Cell::Ns(row.hidden_ns),
        },
        Column {
            key: "hidden_by_compute_ns",
            title: "Under compute",
            unit: Unit::Time,
            help: "Time in which a kernel of class compute ran on another stream of the device.",
            cell: |row| Cell::Ns(row.hidden_by_compute_ns),
        },
        Column {
            key: "exclusive_pct",
            title: "Exposed share",
            unit: Unit::Percent,
            help: "Exposed in percent of Total.",
            cell: |row| Cell::Percent(row.exclusive_pct),
        },
        Column {
            key: "hidden_pct",
            title: "Hidden share",
            unit: Unit::Percent,
            help: "Hidden in percent of Total.",
            cell: |row| Cell::Percent(row.hidden_pct),
        },
        Column {
            key: "hidden_by",
            title: "Hidden by",
            unit: Unit::Name,
            help: "The kernel that ran concurrently for most of the hidden time.",
            cell: |row| Cell::or_missing(row.hidden_by.clone(), Cell::from, "nothing hid it"),
        },
        Column {
            key: "savings_bound_ns",
            title: "Saves at most",
            unit: Unit::Time,
            help: "Upper bound on the wall time saved, an estimate: its exposed time, in each step no more than the \
                   exposed time of compute that does not depend on it. Where its consumer runs next, and where the \
                   GPU waits for the CPU, it counts as nothing.",
            cell: |row| Cell::or_missing(row.savings_bound_ns, Cell::Ns, NO_REMEDY),
        },
        Column {
            key: "savings_pct",
            title: "Share of GPU span",
            unit: Unit::Percent,
            help: "Saves at most in percent of the GPU span: from the first start to the last end on the device, without an earlier step, idle time with work queued, set-up and one-off pauses.",
            cell: |row| Cell::or_missing(row.savings_pct, Cell::Percent, NO_REMEDY),
        },
        Column {
            key: "n_instances",
            title: "Instances",
            unit: Unit::Count,
            help: "Number of launches.",
            cell: |row| Cell::Count(row.n_instances),
        },
        Column {
            key: "tight_pct",
            title: "Close neighbours",
            unit: Unit::Percent,
            help: "Instances with a neighbour on their stream nearer than 15% of their duration (2 to 20 µs).",
            cell: |row| Cell::Percent(row.tight_pct),
        },
        Column {
            key: "waited_pct",
            title: "Event waits",
            unit: Unit::Percent,
            help: "Instances that a recorded event wait ties to work of another stream which touches them.",
            cell: |row| {
                Cell::or_missing(row.waited_pct, Cell::Percent, "the file records no event wait")
            },
        },
        Column {
            key: "formal_signal",
            title: "Signal",
            unit: Unit::Text,
            help: "The figures in one line.",
            cell: |row| row.formal_signal.as_str().into(),
        },
        Column {
            key: "reason",
            title: "Reason",
            unit: Unit::Text,
            help: "Why, with the figures that the decision rests on.",
            cell: |row| row.reason.as_str().into(),
        },
        Column {
            key: "representative",
            title: "Longest instance",
            unit: Unit::Count,
            help: "Index of its event in the file, from 0.",
            cell: |row| Cell::Count(u64::from(row.representative)),
        },
    ];
}
