//! The tables of what moved between two runs: actions, and parts of the wall time.

use report::{Cell, Column, Row, Unit};
use serde::Serialize;

/// One action of the first run, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanRow {
    /// What was to be done.
    pub action: String,
    /// Id of the rule.
    pub rule: String,
    /// Where.
    pub place: String,
    /// Wall time that it saves at most, in the first run, in ns.
    pub a_bound_ns: i64,
    /// That in percent of the first run's window.
    pub a_bound_pct: f64,
    /// The same in the second run; `None` where the second run has no such action.
    pub b_bound_ns: Option<i64>,
    /// That in percent of the second run's window.
    pub b_bound_pct: Option<f64>,
    /// What is read again.
    pub metric: String,
    /// Its value in the first run.
    pub a_value: String,
    /// Its value in the second run; `None` where nothing is said of it any more.
    pub b_value: Option<String>,
}

/// One part of the wall time of both runs. Where both windows are steps, the times are of one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WallDeltaRow {
    /// Id of the part.
    pub part: String,
    /// Time in the first run, in ns.
    pub a_ns: i64,
    /// Time in the second.
    pub b_ns: i64,
    /// Second less first.
    pub delta_ns: i64,
    /// Share of the first run's window, in percent.
    pub a_share_pct: f64,
    /// Share of the second run's window.
    pub b_share_pct: f64,
}

const GONE: &str = "B has no such action";

const SMALL: &str = "below 1% of B's window, or B has no such action";

const UNSAID: &str = "B's diagnosis does not say it";

impl Row for PlanRow {
    const SHOWN: &'static [&'static str] = &[
        "action",
        "place",
        "a_bound_ns",
        "b_bound_ns",
        "a_bound_pct",
        "b_bound_pct",
        "metric",
        "a_value",
    ];

    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "action",
            title: "Action of A",
            unit: Unit::Text,
            help: "The actions of A's diagnosis, in its order.",
            cell: |row| row.action.as_str().into(),
        },
        Column {
            key: "rule",
            title: "Rule",
            unit: Unit::Text,
            help: "Id of the rule, or the table that the action comes from.",
            cell: |row| row.rule.as_str().into(),
        },
        Column {
            key: "place",
            title: "Where",
            unit: Unit::Path,
            help: "The line of Python, op or kernel.",
            cell: |row| row.place.as_str().into(),
        },
        Column {
            key: "a_bound_ns",
            title: "At most, A",
            unit: Unit::Time,
            help: "Upper bound on the wall time saved in A.",
            cell: |row| Cell::Ns(row.a_bound_ns),
        },
        Column {
            key: "b_bound_ns",
            title: "At most, B",
            unit: Unit::Time,
            help: "Upper bound on what the same action still saves in B.",
            cell: |row| Cell::or_missing(row.b_bound_ns, Cell::Ns, GONE),
        },
        Column {
            key: "a_bound_pct",
            title: "Share of A",
            unit: Unit::Percent,
            help: "The same in percent of A's window: its steps, or its GPU span.",
            cell: |row| Cell::Percent(row.a_bound_pct),
        },
        Column {
            key: "b_bound_pct",
            title: "Share of B",
            unit: Unit::Percent,
            help: "The same in percent of B's window.",
            cell: |row| Cell::or_missing(row.b_bound_pct, Cell::Percent, SMALL),
        },
        Column {
            key: "metric",
            title: "Metric",
            unit: Unit::Text,
            help: "The figure that the action should move.",
            cell: |row| row.metric.as_str().into(),
        },
        Column {
            key: "a_value",
            title: "Metric in A",
            unit: Unit::Text,
            help: "Its value in A.",
            cell: |row| row.a_value.as_str().into(),
        },
        Column {
            key: "b_value",
            title: "Metric in B",
            unit: Unit::Text,
            help: "Its value in B.",
            cell: |row| match &row.b_value {
                Some(value) => value.as_str().into(),
                None => Cell::missing(UNSAID),
            },
        },
    ];
}

impl Row for WallDeltaRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "part",
            title: "Wall time",
            unit: Unit::Text,
            help: "Part of the wall time.",
            cell: |row| {
                let part = triage::WallPart::ALL.into_iter().find(|part| part.id() == row.part);
                part.map_or(row.part.as_str().into(), |part| part.title().into())
            },
        },
        Column {
            key: "a_ns",
            title: "A",
            unit: Unit::Time,
            help: "Time in A.",
            cell: |row| Cell::Ns(row.a_ns),
        },
        Column {
            key: "b_ns",
            title: "B",
            unit: Unit::Time,
            help: "Time in B.",
            cell: |row| Cell::Ns(row.b_ns),
        },
        Column {
            key: "delta_ns",
            title: "B - A",
            unit: Unit::Time,
            help: "B - A.",
            cell: |row| Cell::Ns(row.delta_ns),
        },
        Column {
            key: "a_share_pct",
            title: "Share of A",
            unit: Unit::Percent,
            help: "Time in percent of A's window.",
            cell: |row| Cell::Percent(row.a_share_pct),
        },
        Column {
            key: "b_share_pct",
            title: "Share of B",
            unit: Unit::Percent,
            help: "Time in percent of B's window.",
            cell: |row| Cell::Percent(row.b_share_pct),
        },
    ];
}
