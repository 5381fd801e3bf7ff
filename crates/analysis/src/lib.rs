//! Analyses: pure functions from [`Trace`] to rows.
//!
//! Constraints of this crate:
//!
//! * an analysis never fails, logs, reads a clock or iterates a hash map; the same trace and options give
//!   the same report, byte for byte;
//! * [`TraceReport`] destructures its fields without `..` where it builds the sections, so an analysis that is
//!   not shown does not compile;
//! * figures are exact: integer nanoseconds; "busy" time is a union, "total" time is a sum;
//! * only GPU slices have index vectors (nine bytes each), because they are few among the events of a trace.

#![warn(unreachable_pub)]

mod breakdown;
pub mod columns;
mod contract;
mod findings;
pub mod ids;
mod kernels;
mod other_work;
mod overview;
mod step_facts;
mod steps;
mod streams;
pub mod words;

pub use breakdown::{CategoryRow, FamilyRow, MatrixRow};
pub use contract::BreakdownJson;
pub use kernels::KernelRow;
pub use other_work::other_work;
pub use overview::{FigureRow, GpuTotals, Overview, only_communication, summed};
pub use step_facts::{Queued, StepFacts};
use steps::step_summary;
pub use steps::{StepRow, StepSummaryRow};
pub use streams::{DeviceRow, StreamRow};
pub use timeline::before_window::BeforeWindow;
pub use timeline::device::Device;
pub use timeline::{Options, percent};

use report::{Section, Table};
use serde::Serialize;
use trace::Trace;

/// Everything the analyses found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceReport {
    /// The figures of the first screen.
    pub overview: Overview,
    /// GPU devices.
    pub devices: Vec<DeviceRow>,
    /// GPU streams.
    pub streams: Vec<StreamRow>,
    /// Kernels by name, most time first.
    pub kernels: Vec<KernelRow>,
    /// Categories of GPU work, most time first.
    pub categories: Vec<CategoryRow>,
    /// Families (libraries) of GPU work, most time first.
    pub families: Vec<FamilyRow>,
    /// Category by family, most time first.
    pub matrix: Vec<MatrixRow>,
    /// `ProfilerStep` slices.
    pub steps: Vec<StepRow>,
    /// What their durations leave out.
    pub step_facts: StepFacts,
}

/// Analyses `trace`.
#[must_use]
pub fn analyze(trace: &Trace, options: &Options) -> TraceReport {
    let platform = timeline::device::platform(trace);
    let before_window = timeline::before_window::BeforeWindowSlices::of(trace);
    let gpu = timeline::gpu::Gpu::new(trace, platform, &before_window, options);
    let breakdown = breakdown::breakdown(&gpu);
    let (devices, streams) = streams::streams(&gpu);
    let (steps, step_facts) = steps::steps(&gpu);
    TraceReport {
        overview: overview::overview(
            &gpu,
            platform,
            &before_window,
            &breakdown.categories,
            &devices,
        ),
        devices,
        streams,
        kernels: kernels::kernels(&gpu),
        categories: breakdown.categories,
        families: breakdown.families,
        matrix: breakdown.matrix,
        steps,
        step_facts,
    }
}

/// Kernels that a Markdown report prints; the page and the JSON have them all.
const PREVIEW: u32 = 25;

impl TraceReport {
    /// That tables of GPU work include what was launched before the recording, in a sentence, where that is much of their time.
    #[must_use]
    pub fn included(&self) -> Option<String> {
        kernels::included(&self.overview.before_window, &self.kernels)
    }

    /// The report as chapters, for the page and for Markdown.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        let Self {
            overview,
            devices,
            streams,
            kernels,
            categories,
            families,
            matrix,
            steps,
            step_facts,
        } = self;

        vec![
            overview_section(overview, devices, streams, steps),
            // (One chapter says so: the tables of the other have the column.)
            breakdown_section(self.included(), categories, families, matrix),
            kernels_section(kernels),
            steps_section(steps, step_facts),
        ]
    }
}

/// What ran, and where.
fn overview_section(
    overview: &Overview,
    devices: &[DeviceRow],
    streams: &[StreamRow],
    steps: &[StepRow],
) -> Section {
    let mut first = Section::new("overview", "Overview");
    first.intro.push(overview.verdict.clone());
    let figures = overview.figures();
    let said = figures.iter().map(FigureRow::is_said);
    first.tables.push(Table::of("figures", "Figures", &figures).printing(said));
    first.tables.push(
        Table::of("devices", "Devices", devices)
            .summing(&["n_slices", "n_kernels", "total_ns"])
            // (Of one device the figures say the same, and of none the verdict.)
            .only_on_page(devices.len() < 2)
            .when_empty("This trace contains no GPU slices."),
    );
    first.tables.push(
        Table::of("streams", "Streams", streams)
            .summing(&["n_slices", "n_kernels", "total_ns"])
            .preview(PREVIEW)
            // With one stream each, the devices say the same.
            .only_on_page(streams.len() <= devices.len())
            .when_empty("This trace contains no GPU slices."),
    );
    first.findings.extend(findings::before_window(overview, steps));
    first
}

/// What the GPU did, by the kinds of its kernels.
fn breakdown_section(
    included: Option<String>,
    categories: &[CategoryRow],
    families: &[FamilyRow],
    matrix: &[MatrixRow],
) -> Section {
    let mut breakdown = Section::new("breakdown", "Breakdown");
    // (Without overlap both are the same.)
    if categories.iter().any(|row| row.overlap_ns > 0) {
        breakdown.intro.push(
            "Total is the summed duration. Busy is the time during which at least one such slice ran; Overlap is \
             Total - Busy."
                .to_owned(),
        );
    }
    let summed = ["n_slices", "total_ns", "share_pct"];
    let nothing = "This trace contains no GPU slices.";
    breakdown.intro.extend(included);
    breakdown.tables.push(
        Table::of("categories", "Categories, from kernel names", categories)
            .summing(&summed)
            .only_on_page(categories.is_empty())
            .when_empty(nothing),
    );
    // (Where hardly any time of a category is of several families, the table of kernels, which has both, says enough.)
    let has_matrix = in_other_families_pct(matrix) >= OTHER_FAMILIES_PCT;
    breakdown.tables.push(
        Table::of("families", "Families, from kernel names", families)
            .summing(&summed)
            // (The next one has its sums.)
            .only_on_page(true)
            .when_empty(nothing),
    );
    breakdown.tables.push(
        Table::of("matrix", "Categories by family, from kernel names", matrix)
            .summing(&summed)
            .preview(PREVIEW)
            .only_on_page(!has_matrix)
            .when_empty(nothing),
    );
    breakdown
}

/// Categories by family are printed from this share of the time on that is not of the largest family of its category.
const OTHER_FAMILIES_PCT: f64 = 5.0;

/// The share of the time that is not of the largest family of its category, in percent.
fn in_other_families_pct(matrix: &[MatrixRow]) -> f64 {
    let mut largest: Vec<(catalog::Category, f64)> = Vec::new();
    for row in matrix {
        match largest.iter_mut().find(|(category, _)| *category == row.category) {
            Some((_, share)) => *share = share.max(row.share_pct),
            None => largest.push((row.category, row.share_pct)),
        }
    }
    let all: f64 = matrix.iter().map(|row| row.share_pct).sum();
    all - largest.iter().map(|(_, share)| share).sum::<f64>()
}

fn kernels_section(kernels: &[KernelRow]) -> Section {
    let mut table = Section::new("kernels", "Kernels");
    table.tables.push(
        Table::of("kernels", "Kernels by name", kernels)
            .summing(&[
                "launches",
                "total_ns",
                "share_pct",
                "before_window_launches",
                "before_window_ns",
            ])
            .preview(PREVIEW)
            .without_zero(&["before_window_launches", "before_window_ns"])
            .only_on_page(kernels.is_empty())
            .when_empty("No kernel is in this trace."),
    );
    table
}

fn steps_section(steps: &[StepRow], step_facts: &StepFacts) -> Section {
    let mut list = Section::new("steps", "Steps");
    list.intro.extend(step_facts.sentences());
    let summary = step_summary(steps, step_facts);
    // Of one step the list says it, and of several the summary.
    let one_each = summary.iter().all(|row| row.n_steps == 1);
    if !summary.is_empty() {
        let summary = Table::of("step-summary", "Step durations", &summary);
        list.tables.push(summary.only_on_page(one_each));
    }
    list.tables.push(
        Table::of("steps", "Profiler steps", steps)
            .preview(PREVIEW)
            .when_empty("No steps of the profiler were recorded.")
            // (Of one step the sentence says it.)
            .only_on_page(steps.len() < 2 || !one_each),
    );
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::Row;

    fn keys<R: Row + Serialize>(rows: &[R]) {
        testkit::assert_keys(rows.first().unwrap(), R::COLUMNS.iter().map(|column| column.key));
        for column in R::COLUMNS {
            assert!(column.help.ends_with('.'), "{}: help is a sentence", column.key);
        }
    }

    #[test]
    fn json_keys_are_column_keys() {
        let TraceReport {
            overview: _,
            devices,
            streams,
            kernels,
            categories,
            families,
            matrix,
            steps,
            step_facts: _,
        } = analyze(&fixture::trace(), &Options::default());
        keys(&devices);
        keys(&streams);
        keys(&kernels);
        keys(&categories);
        keys(&families);
        keys(&matrix);
        keys(&steps);
    }

    #[test]
    fn the_report_reads_as_checked_in() {
        let report = analyze(&fixture::trace(), &Options::default());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
        let markdown = report::document("Kinetoscope report", &report.sections());
        testkit::assert_golden(format!("{folder}/small.md"), &markdown);
        let json = serde_json::to_string_pretty(&report.breakdown()).unwrap();
        testkit::assert_golden(format!("{folder}/small.json"), &(json + "\n"));
    }

    #[test]
    fn a_trace_without_events_gives_an_empty_report() {
        let report = analyze(&Trace::default(), &Options::default());
        assert_eq!(report.overview.verdict, "This trace contains no GPU slices.");
        assert!(report.categories.is_empty() && report.kernels.is_empty());
        let markdown = report::document("Kinetoscope report", &report.sections());
        assert!(!markdown.contains("## Kernels"), "no empty tables: {markdown}");
        let sections = report.sections();
        let kernels = sections.iter().flat_map(|section| &section.tables);
        let said = kernels.map(|table| &*table.when_empty).collect::<Vec<_>>();
        assert!(said.contains(&"No kernel is in this trace."), "the page has them: {said:?}");
    }

    #[test]
    fn one_device_is_a_report_of_its_own() {
        let options = Options { device: Some("1".to_owned()), ..Options::default() };
        let report = analyze(&fixture::trace(), &options);
        assert_eq!(report.devices.len(), 1);
        assert_eq!(report.overview.gpu.n_gpu_events, 1);
    }

    #[test]
    fn what_was_launched_before_the_window_can_be_left_out() {
        let all = analyze(&fixture::trace(), &Options::default());
        let options = Options { without_before_window: true, ..Options::default() };
        let less = analyze(&fixture::trace(), &options);
        let before = &all.overview.before_window;
        assert_eq!(before, &less.overview.before_window, "what was left out is still said");
        assert_eq!(
            all.overview.gpu.kernel_sum_ns - less.overview.gpu.kernel_sum_ns,
            before.kernel_ns
        );
        assert!(less.kernels.iter().all(|row| row.before_window_launches == 0));
    }
}
