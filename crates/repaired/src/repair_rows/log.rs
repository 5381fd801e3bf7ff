//! The rows of the repair log.

use repair::RepairPlan;
use report::{Cell, Column, RowKey, Unit};
use serde::{Deserialize, Serialize};
use trace::{Flags, Trace};

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
        let new_ns = plan.base.map_or(new_ns, |base| base.apply(new_ns));
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
            new_tid: edit.tid.map(|tid| tid.to_string()).or_else(|| {
                let tid = trace.track_info(edit.track?).tid;
                Some(tid.display(&trace.strings))
            }),
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
            cell: |row| Cell::from(&row.rule),
        },
        Column {
            key: "event",
            title: "Event",
            unit: Unit::Count,
            help: "Index of the event in the file, from 0.",
            cell: |row| Cell::Count(row.event),
        },
        Column {
            key: "offset",
            title: "Byte",
            unit: Unit::Count,
            help: "Offset of the event in the decompressed file, in bytes.",
            cell: |row| Cell::Count(row.offset),
        },
        Column {
            key: "name",
            title: "Name",
            unit: Unit::Name,
            help: "The event's name.",
            cell: |row| Cell::from(&row.name),
        },
        Column {
            key: "category",
            title: "Raw category",
            unit: Unit::Text,
            help: "The event's cat, as in the file.",
            cell: |row| Cell::from(&row.category),
        },
        Column {
            key: "pid",
            title: "pid",
            unit: Unit::Text,
            help: "The event's pid, which never changes.",
            cell: |row| Cell::from(&row.pid),
        },
        Column {
            key: "old_tid",
            title: "Old tid",
            unit: Unit::Text,
            help: "The event's tid in the file.",
            cell: |row| Cell::from(&row.old_tid),
        },
        Column {
            key: "new_tid",
            title: "New tid",
            unit: Unit::Text,
            help: "Its tid in the repaired file.",
            cell: |row| Cell::or_missing(row.new_tid.clone(), Cell::from, "unchanged"),
        },
        Column {
            key: "old_ts",
            title: "Old ts (us)",
            unit: Unit::Text,
            help: "The event's start in the file, in microseconds, exact.",
            cell: |row| Cell::from(&row.old_ts),
        },
        Column {
            key: "new_ts",
            title: "New ts (us)",
            unit: Unit::Text,
            help: "Its start in the repaired file.",
            cell: |row| Cell::or_missing(row.new_ts.clone(), Cell::from, "unchanged"),
        },
        Column {
            key: "dur_ns",
            title: "Duration",
            unit: Unit::Time,
            help: "The event's duration, which changes only if clipping was requested.",
            cell: |row| Cell::or_missing(row.dur_ns, Cell::Ns, "it has none"),
        },
        Column {
            key: "because_of",
            title: "Because of",
            unit: Unit::Name,
            help: "The slice that this event crosses or follows.",
            cell: |row| Cell::or_missing(row.because_of.clone(), Cell::from, "no other slice"),
        },
    ];

    fn key(&self) -> Option<RowKey<'_>> {
        u32::try_from(self.event).ok().map(RowKey::Event)
    }
}
