//! The rows of the repair's tables, as the page, the Markdown and the repair log show them: rules, lanes, changes and
//! impossible durations, each declared once.

mod impossible;
mod log;

pub(crate) use impossible::ImpossibleRow;
pub use log::LogRow;

use std::collections::BTreeMap;

use repair::{LaneKind, RepairPlan, Rule};
use report::{Cell, Column, Unit};
use serde::Serialize;
use trace::Trace;

/// How a range of Perfetto versions shows a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PredictionRow {
    /// The range.
    pub versions: &'static str,
    /// The file as it is.
    pub before: String,
    /// The repaired file.
    pub after: String,
}

impl report::Row for PredictionRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "versions",
            title: "Perfetto",
            unit: Unit::Text,
            help: "Range of Perfetto versions with the same behaviour.",
            cell: |row| row.versions.into(),
        },
        Column {
            key: "before",
            title: "Original",
            unit: Unit::Text,
            help: "How these versions show the original file, predicted by the built-in importer model.",
            cell: |row| Cell::from(&row.before),
        },
        Column {
            key: "after",
            title: "Repaired",
            unit: Unit::Text,
            help: "How they show the repaired file, by the same model.",
            cell: |row| Cell::from(&row.after),
        },
    ];
}

/// A rule that changes something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RuleRow {
    /// Id.
    pub rule: &'static str,
    /// What it does.
    pub title: &'static str,
    /// How many events, or places, it changes.
    pub count: u64,
}

impl RuleRow {
    pub(crate) fn new(rule: Rule, count: u64) -> Self {
        Self { rule: rule.id(), title: rule.title(), count }
    }
}

impl report::Row for RuleRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "rule",
            title: "Rule",
            unit: Unit::Name,
            help: "Name of the rule in the log and in the repaired file.",
            cell: |row| row.rule.into(),
        },
        Column {
            key: "title",
            title: "Action",
            unit: Unit::Text,
            help: "What the rule does.",
            cell: |row| row.title.into(),
        },
        Column {
            key: "count",
            title: "Count",
            unit: Unit::Count,
            help: "Number of events that the rule changes (for the document: number of places).",
            cell: |row| Cell::Count(row.count),
        },
    ];
}

/// A new thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LaneRow {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub kind: LaneKind,
    /// Its process, as in the file.
    pub pid: String,
    /// Its tid.
    pub tid: u32,
    /// The tid of the thread whose events it takes, as in the file.
    pub parent_tid: String,
    /// Its sort index, if its parent has one.
    pub sort_index: Option<i64>,
    /// Events that move there.
    pub n_events: u64,
}

impl LaneRow {
    /// A row for each new thread, in the order they are written.
    pub(crate) fn all(trace: &Trace, plan: &RepairPlan) -> Vec<Self> {
        let mut rows: Vec<Self> = plan
            .lanes
            .iter()
            .map(|lane| Self {
                name: lane_name(trace, lane),
                kind: lane.kind,
                pid: trace.processes[lane.process.0 as usize].pid.display(&trace.strings),
                tid: lane.tid,
                parent_tid: trace.track_info(lane.parent).tid.display(&trace.strings),
                sort_index: lane.sort_index,
                n_events: 0,
            })
            .collect();
        // A tid of a lane is used nowhere else in the file, so it names the lane.
        let mut by_tid: BTreeMap<u32, usize> = BTreeMap::new();
        by_tid.extend(plan.lanes.iter().enumerate().map(|(index, lane)| (lane.tid, index)));
        for edit in plan.edits().values() {
            if let Some(lane) = edit.tid.and_then(|tid| by_tid.get(&tid)) {
                rows[*lane].n_events += 1;
            }
        }
        rows
    }
}

impl report::Row for LaneRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Lane",
            unit: Unit::Name,
            help: "Name of the new thread, derived from its parent's name.",
            cell: |row| Cell::from(&row.name),
        },
        Column {
            key: "kind",
            title: "Purpose",
            unit: Unit::Text,
            help: "Why the lane is needed.",
            cell: |row| {
                Cell::from(match row.kind {
                    LaneKind::Overlap => "slices that cross other slices",
                    LaneKind::Annotations => "annotations that cross functions",
                    LaneKind::Split => "a thread that Perfetto would merge into another",
                })
            },
        },
        Column {
            key: "pid",
            title: "Process",
            unit: Unit::Text,
            help: "The lane's pid, as in the file.",
            cell: |row| Cell::from(&row.pid),
        },
        Column {
            key: "tid",
            title: "tid",
            unit: Unit::Count,
            help: "The lane's tid, which no event of the original uses.",
            cell: |row| Cell::Count(u64::from(row.tid)),
        },
        Column {
            key: "parent_tid",
            title: "Parent tid",
            unit: Unit::Text,
            help: "The tid of the thread that the lane's events come from, as in the file.",
            cell: |row| Cell::from(&row.parent_tid),
        },
        Column {
            key: "sort_index",
            title: "Sort index",
            unit: Unit::Text,
            help: "The lane's position among the threads in Perfetto: next to its parent.",
            cell: |row| {
                Cell::or_missing(
                    row.sort_index.map(|at| at.to_string()),
                    Cell::from,
                    "not recorded",
                )
            },
        },
        Column {
            key: "n_events",
            title: "Events",
            unit: Unit::Count,
            help: "Number of events that move to the lane.",
            cell: |row| Cell::Count(row.n_events),
        },
    ];
}

pub(crate) fn lane_name(trace: &Trace, lane: &repair::Lane) -> String {
    match &lane.name {
        Some(name) => name.clone(),
        None => trace
            .track_info(lane.parent)
            .name
            .map(|name| trace.strings.get(name).to_owned())
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use testkit::assert_keys;

    use super::*;

    fn keys<R: report::Row>() -> impl Iterator<Item = &'static str> {
        R::COLUMNS.iter().map(|column| column.key)
    }

    #[test]
    fn the_keys_of_the_json_are_the_keys_of_the_columns() {
        let prediction =
            PredictionRow { versions: "", before: String::new(), after: String::new() };
        assert_keys(&prediction, keys::<PredictionRow>());
        assert_keys(&RuleRow::new(Rule::Frame, 1), keys::<RuleRow>());
        let lane = LaneRow {
            name: String::new(),
            kind: LaneKind::Split,
            pid: String::new(),
            tid: 0,
            parent_tid: String::new(),
            sort_index: None,
            n_events: 0,
        };
        assert_keys(&lane, keys::<LaneRow>());
        let change = LogRow {
            rule: String::new(),
            event: 0,
            offset: 0,
            name: String::new(),
            category: String::new(),
            pid: String::new(),
            old_tid: String::new(),
            new_tid: None,
            old_ts: String::new(),
            new_ts: None,
            dur_ns: None,
            because_of: None,
        };
        assert_keys(&change, keys::<LogRow>());
        let impossible = ImpossibleRow {
            event: 0,
            name: String::new(),
            dur_ns: 0,
            overrun_ns: 0,
            swallowed: 0,
            stream: String::new(),
            share_pct: 0.0,
            clipped: false,
        };
        assert_keys(&impossible, keys::<ImpossibleRow>());
    }
}
