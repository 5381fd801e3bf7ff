//! The output of `kinetoscope overlap`: overlap candidates, each with its neighbours, its calls and a drawing.

use analysis::FigureRow;
use report::{Cell, Section, Table, code_span, plain_text, short_name, units};
use trace::Metadata;
use triage::{
    Concurrency, Coverage, NextTo, OverlapRow, OverlapWindow, Priority, TriageReport, window_text,
};

use crate::privacy::{Names, strip_section};

/// Columns of the table of actions: what to do about what, and why.
const ACTIONS: &[&str] = &[
    "stage",
    "priority",
    "kernel_name",
    "recommendation",
    "dependency_risk",
    "total_ns",
    "share_pct",
    "exclusive_pct",
    "hidden_pct",
    "hidden_by",
    "savings_bound_ns",
    "n_instances",
    "python_scope",
];

/// Longest name in a heading or a list.
const NAME_CHARS: usize = 96;

/// What the document is made of.
#[derive(Clone)]
pub struct OverlapDocument<'a> {
    /// What it is of: a file's name.
    pub title: String,
    /// The triage of the measured trace.
    pub report: &'a TriageReport,
    /// The windows around the longest instance of each row, beside `report.overlap`.
    pub windows: Vec<Option<OverlapWindow>>,
    /// The metadata of the measured trace, which may hold names of hosts and users.
    pub metadata: &'a Metadata,
    /// Leaves these names where they are.
    pub keep_names: bool,
    /// Which files the times, ops and Python lines come from.
    pub mode: String,
    /// Rows that are shown with their surroundings: the most urgent.
    pub rows: usize,
    /// Characters of a timeline.
    pub columns: usize,
}

impl OverlapDocument<'_> {
    /// The whole document.
    #[must_use]
    pub fn markdown(&self) -> String {
        let TriageReport { overlap, overlap_note, concurrency, coverage, .. } = self.report;
        let names = Names::of(self.metadata, self.keep_names);
        let mut section = Section::new("overlap", "Overlap");
        section.intro.push(format!("Mode: {}.", self.mode));
        section.intro.extend(self.report.step_sentence());
        section.intro.push(overlap_note.clone());
        section.tables.push(Table::of("figures", "Figures", &figures(concurrency, coverage)));
        let advised: Vec<OverlapRow> =
            overlap.iter().filter(|row| row.is_advice()).cloned().collect();
        section.tables.push(
            Table::of("actions", "Actions", &advised).only(ACTIONS).when_empty("None is advised."),
        );
        let title = names.strip(&self.title);
        let mut out = report::document(&title, &[strip_section(&names, &section)]);
        out.push_str(&self.surroundings());
        out
    }

    /// The chapter with the surroundings of the most urgent rows; empty if there are none.
    #[must_use]
    pub fn surroundings(&self) -> String {
        let TriageReport { overlap, .. } = self.report;
        let names = Names::of(self.metadata, self.keep_names);
        let mut chosen: Vec<usize> = (0..overlap.len()).collect();
        trace::sort_by_key(&mut chosen, |at| {
            let row = &overlap[*at];
            (Priority::order(row.priority), std::cmp::Reverse(row.exclusive_ns), *at)
        });
        let left_out = chosen.len().saturating_sub(self.rows);
        chosen.truncate(self.rows);
        if chosen.is_empty() {
            return String::new();
        }
        let mut out = "\n## Source context\n".to_owned();
        out.push_str(
            "\nFor each row, most urgent first: the longest instance and the work around it on its device.\n",
        );
        for at in chosen {
            out.push_str(&of_row(&overlap[at], &names));
            if let Some(Some(window)) = self.windows.get(at) {
                out.push_str(&format!("\n```text\n{}```\n", window_text(window, self.columns)));
            }
        }
        if left_out > 0 {
            let rows = units::plural(left_out as u64, "more row", "more rows");
            out.push_str(&format!("\n{rows} not drawn.\n"));
        }
        out
    }
}

fn figures(concurrency: &Concurrency, coverage: &Coverage) -> Vec<FigureRow> {
    let Concurrency { busy_ns, overlapped_ns, peak_streams } = *concurrency;
    let share = |part: i64, whole: i64| {
        Cell::Percent(if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 })
    };
    let figure = |figure: &str, value: Cell<'static>, note: &str| FigureRow {
        figure: figure.to_owned(),
        value,
        note: note.to_owned(),
    };
    vec![
        figure("GPU busy", Cell::Ns(busy_ns), "at least one stream was busy"),
        figure(
            "Overlapped",
            Cell::Ns(overlapped_ns),
            "at least two streams of one device were busy",
        ),
        figure("Overlapped share", share(overlapped_ns, busy_ns), "of GPU busy"),
        figure("Peak concurrency", Cell::Count(peak_streams), "busy streams of one device at once"),
        figure("Mapped to an op", share(coverage.op_ns, coverage.total_ns), "of summed GPU time"),
        figure(
            "Mapped to Python",
            share(coverage.python_ns, coverage.total_ns),
            "of summed GPU time",
        ),
    ]
}

fn of_row(row: &OverlapRow, names: &Names) -> String {
    let context = &row.context;
    let name = code_span(&short_name(&row.kernel_name, NAME_CHARS));
    let mut out =
        format!("\n### {}, {}: {name}\n\n", Priority::id_of(row.priority), row.stage.title());
    let text = |text: &str| plain_text(&names.strip(text));
    let mut line = |label: &str, markdown: &str| {
        out.push_str(&format!("- {label}: {markdown}\n"));
    };
    let stream = match context.stream.as_str() {
        "" => "an unnamed stream".to_owned(),
        stream => format!("stream {stream}"),
    };
    line("Instance", &text(&format!("{} on {stream}", units::time(context.dur_ns))));
    let or_nothing = |side: &Option<NextTo>, word: &str| match side {
        Some(side) => {
            let name = code_span(&short_name(&side.kernel_name, NAME_CHARS));
            format!("{name} {}", text(&neighbour(side, word)))
        }
        None => "none on this stream".to_owned(),
    };
    line("Before", &or_nothing(&context.before, "its input"));
    line("After", &or_nothing(&context.after, "its consumer"));
    let op = context.cpu_op.as_deref().unwrap_or("not recorded");
    let launch = context.launch.as_deref().map(|launch| format!(", launched by {launch}"));
    line(
        "Op",
        &format!("{op}{} (confidence: {})", launch.unwrap_or_default(), context.confidence.id()),
    );
    if context.chain.is_empty() {
        line("Calls", "no Python line recorded");
    } else {
        line("Calls", &text(&context.chain.join(" → ")));
    }
    line("Conclusion", &text(&context.conclusion));
    out
}

/// The neighbour's relation to the instance, after its name.
fn neighbour(side: &NextTo, word: &str) -> String {
    let NextTo { kernel_name: _, category, gap_ns, near, dependent, place } = side;
    let gap = match gap_ns {
        ..0 => format!("overlaps it by {}", units::time(gap_ns.saturating_neg())),
        _ => format!("{} away", units::time(*gap_ns)),
    };
    let relation = match (near, dependent) {
        (false, _) => "not adjacent".to_owned(),
        (true, Some(true)) => format!("probably {word}"),
        (true, Some(false)) => "adjacent, probably independent".to_owned(),
        (true, None) => "adjacent, dependency unknown".to_owned(),
    };
    let place = place.as_deref().map(|place| format!("; {place}")).unwrap_or_default();
    format!("({}), {gap}, {relation}{place}", category.id())
}
