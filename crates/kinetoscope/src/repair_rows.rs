//! The rows of the repair's tables: what the page, the Markdown and the repair log say of a rule, a lane, a
//! change and an impossible duration, each declared once.

use std::collections::BTreeMap;

use repair::{LaneKind, RepairPlan, Rule};
use report::{Cell, Column, Unit};
use serde::{Deserialize, Serialize};
use trace::{Flags, Trace};

/// What a range of Perfetto versions makes of a file.
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
            help: "Range of Perfetto versions that behave alike.",
            cell: |row| row.versions.into(),
        },
        Column {
            key: "before",
            title: "This file",
            unit: Unit::Text,
            help: "What these versions do with the file as it is, by the built-in model of the importer.",
            cell: |row| Cell::Text(row.before.clone()),
        },
        Column {
            key: "after",
            title: "Repaired",
            unit: Unit::Text,
            help: "What they do with the repaired file, by the same model.",
            cell: |row| Cell::Text(row.after.clone()),
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
    pub fn new(rule: Rule, count: u64) -> Self {
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
            title: "What is done",
            unit: Unit::Text,
            help: "What the rule does.",
            cell: |row| row.title.into(),
        },
        Column {
            key: "count",
            title: "Count",
            unit: Unit::Count,
            help: "How many events (for the document: places) it changes.",
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
    /// Where it stands among the threads, if the file says so of its parent.
    pub sort_index: Option<i64>,
    /// Events that move there.
    pub n_events: u64,
}

impl LaneRow {
    /// A row for each new thread, in the order they are written.
    pub fn all(trace: &Trace, plan: &RepairPlan) -> Vec<Self> {
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
        let by_tid: BTreeMap<u32, usize> =
            plan.lanes.iter().enumerate().map(|(index, lane)| (lane.tid, index)).collect();
        for edit in plan.edits.values() {
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
            help: "Name of the new thread, after its parent's.",
            cell: |row| Cell::Text(row.name.clone()),
        },
        Column {
            key: "kind",
            title: "For",
            unit: Unit::Text,
            help: "Why it is there.",
            cell: |row| {
                Cell::from(match row.kind {
                    LaneKind::Overlap => "slices that cross others",
                    LaneKind::Annotations => "annotations that cross functions",
                    LaneKind::Split => "a thread that Perfetto would merge into another",
                })
            },
        },
        Column {
            key: "pid",
            title: "Process",
            unit: Unit::Text,
            help: "The pid it belongs to, as in the file.",
            cell: |row| Cell::Text(row.pid.clone()),
        },
        Column {
            key: "tid",
            title: "tid",
            unit: Unit::Count,
            help: "Its tid, unused in the original.",
            cell: |row| Cell::Count(u64::from(row.tid)),
        },
        Column {
            key: "parent_tid",
            title: "Of tid",
            unit: Unit::Text,
            help: "The tid of the thread whose events it takes, as in the file.",
            cell: |row| Cell::Text(row.parent_tid.clone()),
        },
        Column {
            key: "sort_index",
            title: "Sort index",
            unit: Unit::Text,
            help: "Where Perfetto places it among the threads: beside its parent.",
            cell: |row| {
                Cell::or_missing(
                    row.sort_index.map(|at| at.to_string()),
                    Cell::Text,
                    "none is given",
                )
            },
        },
        Column {
            key: "n_events",
            title: "Events",
            unit: Unit::Count,
            help: "Events that move there.",
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

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogRow {
    /// Rule id.
    pub rule: String,
    /// Number of the event in the file, from 0.
    pub event: u64,
    /// Offset of the event in the decompressed file.
    pub offset: u64,
    /// Its name.
    pub name: String,
    /// Its raw category.
    pub category: String,
    /// Its pid, as in the file.
    pub pid: String,
    /// Its tid before.
    pub old_tid: String,
    /// Its tid after, when it changes.
    pub new_tid: Option<String>,
    /// Its start before, in us, exact.
    pub old_ts: String,
    /// Its start after, when it changes.
    pub new_ts: Option<String>,
    /// Its duration in ns, where it has one.
    pub dur_ns: Option<i64>,
    /// The slice that made the change necessary.
    pub because_of: Option<String>,
}

impl LogRow {
    /// The line of one change.
    pub(crate) fn new(trace: &Trace, plan: &RepairPlan, change: &repair::Change) -> Self {
        let row = change.row;
        let flags = trace.flags(row);
        let edit = plan.edit(row).copied().unwrap_or_default();
        let old_ns = trace.origin_ns + i128::from(trace.ts_ns(row));
        let new_ns = edit.ts_ns.map_or(old_ns, |ts| trace.origin_ns + i128::from(ts));
        let new_ns = plan.base.map_or(new_ns, |base| base.apply(new_ns, trace.phase(row)));
        let micros = |ns| trace::decimal::write_micros(ns, 0);
        let has_ts = flags.has(Flags::HAS_TS);
        let track = trace.track(row);
        Self {
            rule: change.rule.id().to_owned(),
            event: u64::from(row),
            offset: trace.span(row).start,
            name: trace.name_text(row).to_owned(),
            category: trace.raw_category_text(row).to_owned(),
            pid: trace.process_of(track).pid.display(&trace.strings),
            old_tid: trace.track_info(track).tid.display(&trace.strings),
            new_tid: edit.tid.map(|tid| tid.to_string()),
            old_ts: if has_ts { micros(old_ns) } else { String::new() },
            new_ts: (has_ts && new_ns != old_ns).then(|| micros(new_ns)),
            dur_ns: flags.has(Flags::HAS_DUR).then(|| trace.dur_ns(row)),
            because_of: change.because_of.map(|other| trace.name_text(other).to_owned()),
        }
    }
}

impl report::Row for LogRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "rule",
            title: "Rule",
            unit: Unit::Name,
            help: "The rule that changes the event.",
            cell: |row| Cell::Text(row.rule.clone()),
        },
        Column {
            key: "event",
            title: "Event",
            unit: Unit::Count,
            help: "Number of the event in the file, from 0.",
            cell: |row| Cell::Count(row.event),
        },
        Column {
            key: "offset",
            title: "Byte",
            unit: Unit::Count,
            help: "Where the event starts in the decompressed file.",
            cell: |row| Cell::Count(row.offset),
        },
        Column {
            key: "name",
            title: "Name",
            unit: Unit::Name,
            help: "The event's name.",
            cell: |row| Cell::Text(row.name.clone()),
        },
        Column {
            key: "category",
            title: "Raw category",
            unit: Unit::Text,
            help: "The file's cat.",
            cell: |row| Cell::Text(row.category.clone()),
        },
        Column {
            key: "pid",
            title: "pid",
            unit: Unit::Text,
            help: "The event's pid; it never changes.",
            cell: |row| Cell::Text(row.pid.clone()),
        },
        Column {
            key: "old_tid",
            title: "Old tid",
            unit: Unit::Text,
            help: "The event's tid in the file.",
            cell: |row| Cell::Text(row.old_tid.clone()),
        },
        Column {
            key: "new_tid",
            title: "New tid",
            unit: Unit::Text,
            help: "Its tid in the repaired file.",
            cell: |row| Cell::or_missing(row.new_tid.clone(), Cell::Text, "unchanged"),
        },
        Column {
            key: "old_ts",
            title: "Old ts (us)",
            unit: Unit::Text,
            help: "The event's start in the file, in microseconds, exact.",
            cell: |row| Cell::Text(row.old_ts.clone()),
        },
        Column {
            key: "new_ts",
            title: "New ts (us)",
            unit: Unit::Text,
            help: "Its start in the repaired file.",
            cell: |row| Cell::or_missing(row.new_ts.clone(), Cell::Text, "unchanged"),
        },
        Column {
            key: "dur_ns",
            title: "Duration",
            unit: Unit::Time,
            help: "The event's duration; it never changes unless clipping was asked for.",
            cell: |row| Cell::or_missing(row.dur_ns, Cell::Ns, "it has none"),
        },
        Column {
            key: "because_of",
            title: "Because of",
            unit: Unit::Name,
            help: "The slice it crosses, or follows.",
            cell: |row| Cell::or_missing(row.because_of.clone(), Cell::Text, "no other slice"),
        },
    ];
}

/// A kernel that runs impossibly far past its stream's next start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ImpossibleRow {
    /// Number of the event in the file, from 0.
    pub event: u64,
    /// Its name.
    pub name: String,
    /// Its duration in the file.
    pub dur_ns: i64,
    /// How far it runs past the next start.
    pub overrun_ns: i64,
    /// Later kernels wholly inside it.
    pub swallowed: u64,
    /// Device and stream.
    pub stream: String,
    /// The overrun against the stream's other kernel time.
    pub share_pct: f64,
    /// Whether it is clipped, as asked.
    pub clipped: bool,
}

impl ImpossibleRow {
    /// A row for each, in file order.
    pub fn all(trace: &Trace, plan: &RepairPlan) -> Vec<Self> {
        let rows = plan.impossible.iter().map(|bad| {
            let stream = trace.streams[usize::from(bad.stream.0)];
            Self {
                event: u64::from(bad.row),
                name: trace.name_text(bad.row).to_owned(),
                dur_ns: trace.dur_ns(bad.row),
                overrun_ns: bad.overrun_ns,
                swallowed: u64::from(bad.swallowed),
                stream: format!(
                    "{} / {}",
                    stream.device.display(&trace.strings),
                    stream.stream.display(&trace.strings)
                ),
                share_pct: 100.0 * bad.overrun_ns as f64 / (bad.stream_sum_ns.max(1)) as f64,
                clipped: plan.options.clip_impossible,
            }
        });
        rows.collect()
    }
}

impl report::Row for ImpossibleRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "event",
            title: "Event",
            unit: Unit::Count,
            help: "Number of the event in the file, from 0.",
            cell: |row| Cell::Count(row.event),
        },
        Column {
            key: "name",
            title: "Kernel",
            unit: Unit::Name,
            help: "Name of the kernel.",
            cell: |row| Cell::Text(row.name.clone()),
        },
        Column {
            key: "dur_ns",
            title: "Duration",
            unit: Unit::Time,
            help: "The duration that the file says.",
            cell: |row| Cell::Ns(row.dur_ns),
        },
        Column {
            key: "overrun_ns",
            title: "Overrun",
            unit: Unit::Time,
            help: "How far it runs past the next start on its stream.",
            cell: |row| Cell::Ns(row.overrun_ns),
        },
        Column {
            key: "swallowed",
            title: "Kernels inside",
            unit: Unit::Count,
            help: "Later kernels of the stream that lie wholly inside it (counted up to 4,096).",
            cell: |row| Cell::Count(row.swallowed),
        },
        Column {
            key: "stream",
            title: "Stream",
            unit: Unit::Text,
            help: "Device and stream.",
            cell: |row| Cell::Text(row.stream.clone()),
        },
        Column {
            key: "share_pct",
            title: "Of stream",
            unit: Unit::Percent,
            help: "Overrun against the summed time of the stream's other kernel time.",
            cell: |row| Cell::Percent(row.share_pct),
        },
        Column {
            key: "clipped",
            title: "Clipped",
            unit: Unit::Flag,
            help: "Whether the repaired file clips it to the next start, as asked.",
            cell: |row| Cell::Flag(row.clipped),
        },
    ];
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
