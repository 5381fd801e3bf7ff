//! What a repair does and why, for people: tables, sentences, and the worst places as drawings.

use catalog::RawKind;
use decode::Decoded;
use repair::{BaseReason, LaneKind, Prediction, RepairPlan, Rule};
use report::{Cell, Column, Section, Table, Unit, units};
use serde::{Deserialize, Serialize};
use trace::{Flags, Row, Trace};

use crate::places::{self, Place};
use crate::repairer::is_damaged_gzip;
use crate::text_faults::TextFaults;

/// Lines of the log that cross to the page; the JSON log has all.
const LOG_MAX: usize = 5_000;

/// A planned repair, as data without the trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RepairReport {
    /// Whether the repaired file differs from the original at all.
    pub damaged: bool,
    /// The finding in one sentence.
    pub verdict: String,
    /// What each range of Perfetto versions does with the file, before and after.
    pub predictions: Table,
    /// Slices that Perfetto v51 to v56 drop from the file as it is.
    pub drops_before: u64,
    /// The same of the repaired file.
    pub drops_after: u64,
    /// Whether Perfetto reads the repaired file without any error, by the model.
    pub clean_after: bool,
    /// Why a time base is subtracted, where one is.
    pub time_base: Option<String>,
    /// What is done, by rule.
    pub rules: Table,
    /// The new threads.
    pub lanes: Table,
    /// What is done, by event; the first five thousand lines.
    pub log: Table,
    /// Lines of the whole log.
    pub n_changes: u64,
    /// Kernels with impossible durations.
    pub impossible: Table,
    /// What the impossible durations mean, when there are some.
    pub impossible_note: Option<String>,
    /// The worst places, before and after.
    pub places: Vec<Place>,
}

impl RepairReport {
    /// The report of a plan.
    #[must_use]
    pub fn new(decoded: &Decoded, plan: &RepairPlan) -> Self {
        let trace = &decoded.trace;
        let text = TextFaults::of(decoded);
        Self {
            damaged: !plan.is_identity() || is_damaged_gzip(decoded),
            verdict: verdict(plan, &text, is_damaged_gzip(decoded)),
            predictions: predictions(plan, &text),
            drops_before: plan.before.drops_v51_v56(),
            drops_after: plan.after.drops_v51_v56(),
            clean_after: plan.after.is_clean(),
            time_base: time_base(trace, plan),
            rules: rules(plan),
            lanes: lanes(trace, plan),
            log: log(trace, plan),
            n_changes: plan.changes.len() as u64,
            impossible: impossible(trace, plan),
            impossible_note: impossible_note(plan),
            places: places::worst(trace, plan),
        }
    }

    /// The report as a chapter.
    #[must_use]
    pub fn section(&self) -> Section {
        let Self {
            damaged: _,
            verdict,
            predictions,
            drops_before: _,
            drops_after: _,
            clean_after: _,
            time_base,
            rules,
            lanes,
            log: _,
            n_changes: _,
            impossible,
            impossible_note,
            places: _,
        } = self.clone();
        let mut section = Section::new("repair", "Repair");
        section.intro.push(verdict);
        section.intro.extend(time_base);
        section.intro.extend(impossible_note);
        section.tables.extend([predictions, rules, lanes]);
        if !impossible.rows.is_empty() {
            section.tables.push(impossible);
        }
        section
    }
}

fn verdict(plan: &RepairPlan, text: &TextFaults, damaged_gzip: bool) -> String {
    let before = &plan.before;
    if plan.is_identity() && before.is_clean() && text.is_none() {
        return "Nothing to repair: every Perfetto since v51 shows this file whole.".to_owned();
    }
    let start = if let Some(reason) = text.refused.map(str::to_owned).or(before.stops.clone()) {
        format!("Perfetto cannot read this file whole: {reason}.")
    } else if before.crossing_slices > 0 {
        let n = before.crossing_slices;
        format!(
            "Perfetto v51 to v56 drop {} of this file; v57 and later show {} but flag an error.",
            units::plural(n, "slice", "slices"),
            if n == 1 { "it" } else { "them" },
        )
    } else if let Some(risk) = text.risks.first() {
        format!("Perfetto may not read this file whole: it holds {risk}.")
    } else if before.is_clean() {
        "Perfetto shows all slices of this file.".to_owned()
    } else {
        "Perfetto flags errors in this file.".to_owned()
    };
    if plan.is_identity() && damaged_gzip {
        return format!(
            "{start} The JSON in it is sound; the repaired file has a sound gzip frame."
        );
    }
    let end = if plan.after.is_clean() {
        "The repaired file is shown whole, without an error, by every version since v51."
    } else {
        "The repair mends what it can; what is left is listed below."
    };
    format!("{start} {end}")
}

fn time_base(trace: &Trace, plan: &RepairPlan) -> Option<String> {
    let base = plan.base?;
    let ms = base.ns / 1_000_000;
    let why = match base.reason {
        BaseReason::Rounding => format!(
            "Perfetto reads times through a double: {} here come out up to {} off.",
            units::plural(plan.before.misread_times, "time", "times"),
            units::time(i64::try_from(plan.before.worst_rounding_ns).unwrap_or(i64::MAX)),
        ),
        BaseReason::Negative => "Perfetto drops events before time 0.".to_owned(),
        BaseReason::Overflow => "Perfetto's integers overflow at these times.".to_owned(),
    };
    let (n, verb) = if ms < 0 { (-ms, "added to") } else { (ms, "subtracted from") };
    let place = match trace.layout.container {
        trace::Container::Object => "; baseTimeNanoseconds says so",
        trace::Container::Array => " (a bare array has no place to say so but the log)",
    };
    Some(format!(
        "{why} {n} ms are {verb} every time{place}; distances and durations stay as they are."
    ))
}

struct PredictionRow {
    versions: &'static str,
    before: String,
    after: String,
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

fn predictions(plan: &RepairPlan, text: &TextFaults) -> Table {
    let row = |versions, say: fn(&Prediction) -> String| PredictionRow {
        versions,
        before: match (text.refused, plan.before.is_clean() && !text.is_none()) {
            (Some(reason), _) => format!("import stops: {reason}"),
            (None, true) => text.risks.join("; "),
            (None, false) => std::iter::once(say(&plan.before))
                .chain(text.risks.iter().map(|risk| (*risk).to_owned()))
                .collect::<Vec<_>>()
                .join("; "),
        },
        after: say(&plan.after),
    };
    let rows = [
        row("up to v50", |prediction| {
            describe(
                prediction,
                "crossing slice shown with wrong nesting",
                "crossing slices shown with wrong nesting",
            )
        }),
        row("v51 to v56", |prediction| describe(prediction, "slice dropped", "slices dropped")),
        row("v57 and later", |prediction| {
            describe(
                prediction,
                "slice spilled to an overflow track, flagged as an error",
                "slices spilled to overflow tracks, flagged as errors",
            )
        }),
    ];
    Table::of("predictions", "What Perfetto makes of it", &rows)
}

fn describe(prediction: &Prediction, one: &str, many: &str) -> String {
    let Prediction {
        crossing_slices,
        crossing_slices_exact: _,
        too_deep,
        misplaced_ends,
        negative_durations,
        negative_times,
        unreadable_events,
        rejected_events,
        flows_without_slice,
        duplicate_flow_starts,
        unreadable_flow_ids,
        worst_rounding_ns: _,
        misread_times: _,
        stops,
    } = prediction;
    let mut parts: Vec<String> = stops.iter().map(|why| format!("import stops: {why}")).collect();
    let mut say = |n: u64, one: &str, many: &str| {
        if n > 0 {
            parts.push(units::plural(n, one, many));
        }
    };
    say(*crossing_slices, one, many);
    say(*too_deep, "slice deeper than 512 levels", "slices deeper than 512 levels");
    say(*misplaced_ends, "misplaced end", "misplaced ends");
    say(*negative_durations, "negative duration", "negative durations");
    say(*negative_times, "event before time 0 dropped", "events before time 0 dropped");
    say(*unreadable_events, "event unreadable", "events unreadable");
    say(*rejected_events, "event rejected", "events rejected");
    say(*flows_without_slice, "arrow without a slice", "arrows without a slice");
    say(*duplicate_flow_starts, "flow id used twice", "flow ids used twice");
    say(*unreadable_flow_ids, "flow id unreadable", "flow ids unreadable");
    if parts.is_empty() { "every slice shown, no error".to_owned() } else { parts.join("; ") }
}

struct RuleRow {
    rule: Rule,
    count: u64,
}

impl report::Row for RuleRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "rule",
            title: "Rule",
            unit: Unit::Name,
            help: "Name of the rule in the log and in the repaired file.",
            cell: |row| row.rule.id().into(),
        },
        Column {
            key: "title",
            title: "What is done",
            unit: Unit::Text,
            help: "What the rule does.",
            cell: |row| row.rule.title().into(),
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

fn rules(plan: &RepairPlan) -> Table {
    let rows: Vec<RuleRow> =
        plan.counts.iter().map(|(rule, count)| RuleRow { rule: *rule, count: *count }).collect();
    Table::of("rules", "What the repair does", &rows).when_empty("Nothing: the file is sound.")
}

struct LaneRow {
    name: String,
    kind: &'static str,
    pid: String,
    tid: u64,
    n_slices: u64,
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
            cell: |row| row.kind.into(),
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
            cell: |row| Cell::Count(row.tid),
        },
        Column {
            key: "n_events",
            title: "Events",
            unit: Unit::Count,
            help: "Events that move there.",
            cell: |row| Cell::Count(row.n_slices),
        },
    ];
}

fn lanes(trace: &Trace, plan: &RepairPlan) -> Table {
    let mut rows: Vec<LaneRow> = plan
        .lanes
        .iter()
        .map(|lane| LaneRow {
            name: lane_name(trace, lane),
            kind: match lane.kind {
                LaneKind::Overlap => "slices that cross others",
                LaneKind::Annotations => "annotations that cross functions",
                LaneKind::Split => "a thread that Perfetto would merge into another",
            },
            pid: trace.processes[lane.process.0 as usize].pid.display(&trace.strings),
            tid: u64::from(lane.tid),
            n_slices: 0,
        })
        .collect();
    for edit in plan.edits.values() {
        let lane = edit.tid.and_then(|tid| plan.lanes.iter().position(|lane| lane.tid == tid));
        if let Some(lane) = lane {
            rows[lane].n_slices += 1;
        }
    }
    Table::of("lanes", "New lanes", &rows).when_empty("None are needed.")
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

/// The line of one change.
pub(crate) fn log_row(trace: &Trace, plan: &RepairPlan, change: &repair::Change) -> LogRow {
    let row = change.row;
    let flags = trace.flags(row);
    let edit = plan.edit(row).copied().unwrap_or_default();
    let old_ns = trace.origin_ns + i128::from(trace.ts_ns(row));
    let new_ns = edit.ts_ns.map_or(old_ns, |ts| trace.origin_ns + i128::from(ts));
    let new_ns = plan.base.map_or(new_ns, |base| base.apply(new_ns, trace.phase(row)));
    let micros = |ns| trace::decimal::write_micros(ns, 0);
    let has_ts = flags.has(Flags::HAS_TS);
    let track = trace.track(row);
    LogRow {
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

fn log(trace: &Trace, plan: &RepairPlan) -> Table {
    let rows: Vec<LogRow> =
        plan.changes.iter().take(LOG_MAX).map(|change| log_row(trace, plan, change)).collect();
    Table::of("repair_log", "Repair log", &rows)
        .preview(20)
        .when_empty("No event is changed by name.")
}

struct ImpossibleRow {
    name: String,
    event: u64,
    dur_ns: i64,
    overrun_ns: i64,
    swallowed: u64,
    stream: String,
    share_pct: f64,
}

impl report::Row for ImpossibleRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Kernel",
            unit: Unit::Name,
            help: "Name of the kernel.",
            cell: |row| Cell::Text(row.name.clone()),
        },
        Column {
            key: "event",
            title: "Event",
            unit: Unit::Count,
            help: "Number of the event in the file, from 0.",
            cell: |row| Cell::Count(row.event),
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
    ];
}

fn impossible(trace: &Trace, plan: &RepairPlan) -> Table {
    let rows: Vec<ImpossibleRow> = plan
        .impossible
        .iter()
        .map(|bad| {
            let stream = trace.streams[usize::from(bad.stream.0)];
            ImpossibleRow {
                name: trace.name_text(bad.row).to_owned(),
                event: u64::from(bad.row),
                dur_ns: trace.dur_ns(bad.row),
                overrun_ns: bad.overrun_ns,
                swallowed: u64::from(bad.swallowed),
                stream: format!(
                    "{} / {}",
                    stream.device.display(&trace.strings),
                    stream.stream.display(&trace.strings)
                ),
                share_pct: 100.0 * bad.overrun_ns as f64 / (bad.stream_sum_ns.max(1)) as f64,
            }
        })
        .collect();
    Table::of("impossible", "Impossible durations", &rows).preview(20).when_empty("None.")
}

fn impossible_note(plan: &RepairPlan) -> Option<String> {
    let n = plan.impossible.len() as u64;
    if n == 0 {
        return None;
    }
    let sum: i64 = plan.impossible.iter().map(|bad| bad.overrun_ns).sum();
    let end = if plan.options.clip_impossible {
        "They are clipped to the next start, as asked; the original stays in their arguments."
    } else {
        "They are left as they are; every figure that sums them is too large by that much."
    };
    Some(format!(
        "{} past the next start of the same stream, by {} in all. Work on one stream is serial, so \
         these durations cannot be right (a known fault of ROCm profilers, TraceLens #669). {end}",
        units::plural(n, "kernel runs far", "kernels run far"),
        units::time(sum)
    ))
}

/// The category a slice is drawn in: the kernel's, or nothing for CPU slices.
pub(crate) fn category(trace: &Trace, row: Row) -> &'static str {
    let flags = trace.flags(row);
    let raw = if flags.has(Flags::KERNEL) {
        RawKind::Kernel
    } else if flags.has(Flags::GPU_MEMORY) {
        RawKind::Memcpy
    } else {
        return "";
    };
    catalog::classify(raw, trace.name_text(row), catalog::Platform::Unknown).category.id()
}
