//! What a repair does and why, for people: tables, sentences, and the worst places as drawings.

use decode::Decoded;
use repair::{BaseReason, Prediction, RepairPlan, Rule};
use report::{Section, Table, units};
use serde::{Deserialize, Serialize};
use trace::Trace;

use crate::places::{self, Place};
use crate::repair_rows::{ImpossibleRow, LaneRow, LogRow, PredictionRow, RuleRow};
use crate::repairer::is_damaged_gzip;
use crate::text_faults::TextFaults;

/// Lines of the log that cross to the page; the JSON log has all.
const LOG_MAX: usize = 5_000;

/// A planned repair, as data without the trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RepairReport {
    /// Whether the repaired file differs from the original at all.
    pub damaged: bool,
    /// The result in two sentences: the file as it is, and the repaired file.
    pub verdict: String,
    /// What each range of Perfetto versions does with the file, before and after.
    pub predictions: Table,
    /// Slices that Perfetto v51 to v56 drop from the file as it is.
    pub drops_before: u64,
    /// The same of the repaired file.
    pub drops_after: u64,
    /// Whether Perfetto reads the repaired file without an error and every time exactly, by the model.
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
    /// What a document says of the file first; `None` where Perfetto loses nothing of it and moves no time that a person notices, and none is
    /// impossible.
    #[serde(skip)]
    pub in_document: Option<String>,
}

impl RepairReport {
    /// The report of a plan.
    #[must_use]
    pub fn new(decoded: &Decoded, plan: &RepairPlan) -> Self {
        let trace = &decoded.trace;
        let text = TextFaults::of(decoded);
        let is_damaged_gzip = is_damaged_gzip(decoded);
        let damaged = !plan.is_identity() || is_damaged_gzip;
        let impossible = impossible(trace, plan);
        let (file, outcome) = verdict(plan, &text, is_damaged_gzip);
        let loses = plan.before.loses() || !text.is_none() || is_damaged_gzip;
        let is_told = loses || !impossible.is_empty();
        Self {
            in_document: is_told.then(|| {
                if loses { [&file, &*outcome.in_document()].join(" ") } else { String::new() }
            }),
            damaged,
            verdict: [&file, outcome.on_page()].join(" ").trim_end().to_owned(),
            // (In a document the verdict says it all, but what is left.)
            predictions: predictions(plan, &text).only_on_page(plan.after.is_clean()),
            drops_before: plan.before.drops_v51_v56(),
            drops_after: plan.after.drops_v51_v56(),
            clean_after: plan.after.is_clean(),
            time_base: time_base(trace, plan),
            rules: rules(plan).only_on_page(true),
            // (Their names tell them in the repaired file.)
            lanes: lanes(trace, plan).only_on_page(true),
            log: log(trace, plan),
            n_changes: plan.changes().len() as u64,
            impossible,
            impossible_note: impossible_note(plan),
            places: places::worst(trace, plan),
        }
    }

    /// The report as a chapter of a document; `None` where Perfetto loses nothing of the file.
    #[must_use]
    pub fn section(&self) -> Option<Section> {
        let Self {
            damaged: _,
            verdict: _,
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
            in_document,
        } = self.clone();
        let mut section = Section::new("repair", "Repair");
        section.intro.extend(Some(in_document?).filter(|text| !text.is_empty()));
        section.intro.extend(time_base);
        section.intro.extend(impossible_note);
        section.tables.extend([predictions, rules, lanes]);
        if !impossible.is_empty() {
            section.tables.push(impossible);
        }
        Some(section)
    }
}

/// What Perfetto makes of the repaired file.
enum Outcome {
    /// Nothing is repaired.
    Same,
    /// Only its compression is.
    Frame,
    /// It shows all of it without an error.
    Whole,
    /// The sentence says what it does not.
    Limited(String),
}

impl Outcome {
    /// A sentence for the page; empty where nothing is repaired.
    fn on_page(&self) -> &str {
        match self {
            Self::Same => "",
            Self::Frame => "Its JSON has no problems; the repaired file has a new gzip frame.",
            Self::Whole => {
                "The repaired file opens without an error in Perfetto v51+, with every slice shown."
            }
            Self::Limited(text) => text,
        }
    }

    /// Sentences for a document, with the command that writes the file.
    fn in_document(&self) -> String {
        match self {
            Self::Same => String::new(),
            Self::Whole => {
                "kinetoscope perfetto-fix writes a copy that opens in full, without an error."
                    .to_owned()
            }
            Self::Frame | Self::Limited(_) => {
                format!("{} kinetoscope perfetto-fix writes it.", self.on_page())
            }
        }
    }
}

/// What Perfetto makes of the file as it is, and of the repaired one.
fn verdict(plan: &RepairPlan, text: &TextFaults, damaged_gzip: bool) -> (String, Outcome) {
    let before = &plan.before;
    if plan.is_identity() && before.is_clean() && text.is_none() {
        let whole = "No problems found. The file opens without loss in Perfetto v51+.";
        return (whole.to_owned(), Outcome::Same);
    }
    let start = if let Some(reason) = text.refused.map(str::to_owned).or(before.stops.clone()) {
        format!("Perfetto does not read the whole file: {reason}.")
    } else if before.crossing_slices > 0 {
        let n = before.crossing_slices;
        format!(
            "Perfetto v51 to v56 drop {} of this file; v57 and later show {} but flag an error.",
            units::plural(n, "slice", "slices"),
            if n == 1 { "it" } else { "them" },
        )
    } else if let Some(risk) = text.risks.first() {
        format!("Perfetto may lose part of this file: it contains {risk}.")
    } else if before.is_clean() {
        "Perfetto shows all slices of this file.".to_owned()
    } else if before.has_errors() {
        "Perfetto flags errors in this file.".to_owned()
    } else {
        format!(
            "Perfetto rounds {} of this file.",
            units::plural(before.misread_times, "time", "times")
        )
    };
    if plan.is_identity() && damaged_gzip {
        return (start, Outcome::Frame);
    }
    (start, outcome(plan, text))
}

/// What Perfetto makes of a file that is repaired by this plan.
fn outcome(plan: &RepairPlan, text: &TextFaults) -> Outcome {
    let after = &plan.after;
    let n_aside = plan.counts.get(&Rule::SetAside).copied().unwrap_or_default();
    let n_outliers = plan.counts.get(&Rule::Outlier).copied().unwrap_or_default();
    let mut limits = Vec::new();
    if text.unreadable > 0 {
        let places = units::plural(text.unreadable, "unreadable place", "unreadable places");
        limits.push(format!("{places} left out"));
    }
    if n_aside > 0 {
        limits.push(format!(
            "{} set aside",
            units::plural(
                n_aside,
                "event that Perfetto cannot read",
                "events that Perfetto cannot read"
            )
        ));
    }
    if n_outliers > 0 {
        let events = units::plural(n_outliers, "event", "events");
        limits.push(format!("{events} far from the rest kept at the original time"));
    }
    if text.ignored_phases {
        limits.push("events of phases that Perfetto does not show".to_owned());
    }
    if after.misread_times > 0 {
        let times = units::plural(after.misread_times, "time", "times");
        let off = units::time(i64::try_from(after.worst_rounding_ns).unwrap_or(i64::MAX));
        limits
            .push(format!("{times} rounded by up to {off}, because the trace spans too much time"));
    }
    let opens = after.stops.is_none() && !after.has_errors();
    let start = match opens {
        true if limits.is_empty() => return Outcome::Whole,
        true => "The repaired file opens without an error in Perfetto v51+",
        false => "The repaired file still has errors, listed below",
    };
    Outcome::Limited(match limits.is_empty() {
        true => format!("{start}, with every slice shown."),
        false => format!("{start}; not as recorded: {}.", limits.join(", ")),
    })
}

fn time_base(trace: &Trace, plan: &RepairPlan) -> Option<String> {
    let base = plan.base?;
    let ms = base.ns / 1_000_000;
    let why = match base.reason {
        BaseReason::Rounding => format!(
            "Perfetto reads times as doubles: {} here would be wrong by up to {}.",
            units::plural(plan.before.misread_times, "time", "times"),
            units::time(i64::try_from(plan.before.worst_rounding_ns).unwrap_or(i64::MAX)),
        ),
        BaseReason::Negative => "Perfetto drops events before time 0.".to_owned(),
        BaseReason::Overflow => "Perfetto's integers overflow at these times.".to_owned(),
    };
    let (n, verb) = if ms < 0 { (-ms, "added to") } else { (ms, "subtracted from") };
    let place = match trace.layout.container {
        trace::Container::Object => "; baseTimeNanoseconds records this",
        trace::Container::Array => " (in a bare array, only the log records this)",
    };
    let outliers = plan.counts.get(&Rule::Outlier).copied().unwrap_or_default();
    let but = match outliers {
        0 => String::new(),
        n => {
            format!(" except those of {} far before the rest", units::plural(n, "event", "events"))
        }
    };
    Some(format!("{why} {n} ms are {verb} every time{but}{place}. Durations do not change."))
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
    Table::of("predictions", "How Perfetto shows the file", &rows)
}

fn describe(prediction: &Prediction, one: &str, many: &str) -> String {
    let Prediction {
        crossing_slices,
        crossing_slices_if_exact: _,
        too_deep,
        misplaced_ends,
        negative_durations,
        negative_times,
        unreadable_events,
        rejected_events,
        flows_without_slice,
        duplicate_flow_starts,
        unreadable_flow_ids,
        flows_without_direction,
        worst_rounding_ns: _,
        misread_times,
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
    say(*flows_without_direction, "arrow without a direction", "arrows without a direction");
    say(*misread_times, "time rounded", "times rounded");
    if parts.is_empty() { "every slice shown, no error".to_owned() } else { parts.join("; ") }
}

fn rules(plan: &RepairPlan) -> Table {
    let rows: Vec<RuleRow> =
        plan.counts.iter().map(|(rule, count)| RuleRow::new(*rule, *count)).collect();
    Table::of("rules", "Repair rules applied", &rows).when_empty("None.")
}

fn lanes(trace: &Trace, plan: &RepairPlan) -> Table {
    Table::of("lanes", "New lanes", &LaneRow::all(trace, plan)).when_empty("None.")
}

fn log(trace: &Trace, plan: &RepairPlan) -> Table {
    let lines = plan.changes().iter().take(LOG_MAX);
    let rows: Vec<LogRow> = lines.map(|change| LogRow::new(trace, plan, change)).collect();
    Table::of("repair_log", "Repair log", &rows).preview(20).when_empty("No individual changes.")
}

fn impossible(trace: &Trace, plan: &RepairPlan) -> Table {
    Table::of("impossible", "Impossible durations", &ImpossibleRow::all(trace, plan))
        .preview(20)
        .when_empty("None.")
}

fn impossible_note(plan: &RepairPlan) -> Option<String> {
    let n = plan.impossible.len() as u64;
    if n == 0 {
        return None;
    }
    let sum = plan.impossible.iter().fold(0_i64, |sum, bad| sum.saturating_add(bad.overrun_ns));
    let end = if plan.options.clip_impossible {
        "They are clipped to the next start, as requested; their arguments keep the original duration."
    } else {
        "They are not changed; every sum that includes them is too large by this amount."
    };
    Some(format!(
        "{} past the next start on the same stream, by {} in total. Work on one stream is serial, so these durations cannot be right (a known fault of ROCm profilers, TraceLens #669). {end}",
        units::plural(n, "kernel runs far", "kernels run far"),
        units::time(sum)
    ))
}
