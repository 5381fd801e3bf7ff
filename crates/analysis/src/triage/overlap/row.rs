//! The rows of the overlap table.

use report::{Cell, Column, Row, Unit};
use serde::{Deserialize, Serialize};

use crate::columns;
use crate::triage::stages::Stage;

/// What one kernel's overlap means, and what to do about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverlapRow {
    /// Part of the run.
    pub stage: Stage,
    /// The device's id.
    pub device: String,
    /// 1 (do it) to 5 (leave it).
    pub priority: u8,
    /// `headroom`, `low-roi-hidden` or `observe`.
    pub verdict: String,
    /// The whole name.
    pub kernel_name: String,
    /// Category id.
    pub category: String,
    /// Id of [`catalog::OverlapClass`].
    pub overlap_class: String,
    /// The line of Python that most of its time comes from, else its op or launch.
    pub python_scope: Option<String>,
    /// What to try.
    pub recommendation: String,
    /// `low`, `high` or `unclear`.
    pub dependency_risk: String,
    /// Sum of durations.
    pub total_ns: i64,
    /// Total in percent of the stage's busy time.
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
    /// The most that the recommendation could save in a step (in the whole stage where no steps are recorded):
    /// an estimate. `None` for compute, which is what others hide behind.
    pub savings_bound_ns: Option<i64>,
    /// How often it ran.
    pub n_instances: u64,
    /// Instances with a near neighbour on their stream, in percent.
    pub tight_pct: f64,
    /// Instances that a real event wait ties to another stream, in percent; `None` when no wait is recorded.
    pub waited_pct: Option<f64>,
    /// The figures in one line.
    pub formal_signal: String,
    /// Why, in words, with the figures that decided.
    pub reason: String,
    /// The number of the longest instance's event in the file, from 0.
    pub representative: u32,
}

impl Row for OverlapRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "stage",
            title: "Stage",
            unit: Unit::Text,
            help: "Part of the run.",
            cell: |row| row.stage.id().into(),
        },
        columns::device("The device that it ran on.", |row| row.device.as_str().into()),
        Column {
            key: "priority",
            title: "Priority",
            unit: Unit::Text,
            help: "P1 is worth trying now, P2 after a look at the dependencies, P3 later, P4 and P5 hardly.",
            cell: |row| Cell::Text(format!("P{}", row.priority)),
        },
        Column {
            key: "verdict",
            title: "Verdict",
            unit: Unit::Text,
            help: "headroom: most of it is exposed; low-roi-hidden: most of it is hidden already; observe: the \
                   largest of the others.",
            cell: |row| row.verdict.as_str().into(),
        },
        columns::kernel_name("The name as the profiler wrote it.", |row| {
            row.kernel_name.as_str().into()
        }),
        columns::category("What the kernel does.", |row| row.category.as_str().into()),
        Column {
            key: "overlap_class",
            title: "Class",
            unit: Unit::Text,
            help: "The coarse class that decides who can hide behind whom; it follows from the category.",
            cell: |row| row.overlap_class.as_str().into(),
        },
        Column {
            key: "python_scope",
            title: "Python scope",
            unit: Unit::Text,
            help: "The line of Python that most of its time comes from, else its op or launch.",
            cell: |row| {
                let scope = row.python_scope.clone();
                Cell::or_missing(scope, Cell::Text, "the file does not tell where it came from")
            },
        },
        Column {
            key: "recommendation",
            title: "Recommendation",
            unit: Unit::Text,
            help: "What to try; it follows from class, priority and risk.",
            cell: |row| row.recommendation.as_str().into(),
        },
        Column {
            key: "dependency_risk",
            title: "Dependency risk",
            unit: Unit::Text,
            help: "high: at least half of the instances have a near neighbour that looks dependent, or an event \
                   wait; unclear: it cannot be said for half of them; low: no sign of a dependency.",
            cell: |row| row.dependency_risk.as_str().into(),
        },
        columns::total_ns("Sum of the durations.", |row| Cell::Ns(row.total_ns)),
        columns::share_pct("Total in percent of the stage's busy time.", |row| {
            Cell::Percent(row.share_pct)
        }),
        Column {
            key: "exclusive_ns",
            title: "Exposed",
            unit: Unit::Time,
            help: "Time in which nothing that is counted here ran on another stream of the device.",
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
            help: "The name that hid most of it.",
            cell: |row| Cell::or_missing(row.hidden_by.clone(), Cell::Text, "nothing hid it"),
        },
        Column {
            key: "savings_bound_ns",
            title: "Saves up to",
            unit: Unit::Time,
            help: "An estimate, per step where steps are recorded: the smaller of its exposed time and the exposed \
                   time of compute that is no dependent neighbour of it; for fusion its exposed time. What is \
                   saved in truth may be nothing.",
            cell: |row| {
                let why = "neither overlap nor fusion shortens it, or it ran in no recorded step";
                Cell::or_missing(row.savings_bound_ns, Cell::Ns, why)
            },
        },
        Column {
            key: "n_instances",
            title: "Instances",
            unit: Unit::Count,
            help: "How often it ran.",
            cell: |row| Cell::Count(row.n_instances),
        },
        Column {
            key: "tight_pct",
            title: "Tight",
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
            help: "Why, with the figures that decided.",
            cell: |row| row.reason.as_str().into(),
        },
        Column {
            key: "representative",
            title: "Longest instance",
            unit: Unit::Count,
            help: "The number of its event in the file, from 0.",
            cell: |row| Cell::Count(u64::from(row.representative)),
        },
    ];
}
