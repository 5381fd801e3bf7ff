//! Everything triage found, and how it reads.

mod coverage;

use crate::precision::PlainProducts;
use std::collections::BTreeMap;

use catalog::remedies::RunFacts;
use report::{Section, Table, units};
use serde::{Deserialize, Serialize};

use super::arch::ObservedArch;
use super::cold_work::ColdWork;
use super::displaced::Displaced;
use super::framework::FrameworkVote;
use super::fuse::FuseRow;
use super::iterations::Warm;
use super::kernel_line::{FROM_ARGUMENTS, KernelLine, above_cutoff};
use super::kernel_row::KernelTableRow;
use super::overlap::{Concurrency, OverlapRow};
use super::site::Confidence;
use super::stages::{Stage, StageRow};
use super::unrecorded::{Cut, LostCalls};
use super::wall_stages::StageWall;
use super::wall_time::{WallRow, WallTimes};
use analysis::MatrixRow;
use timeline::before_window::{BeforeWindow, is_much};
use timeline::percent;

pub use coverage::Coverage;

/// Everything triage found.
#[derive(Clone, Debug, PartialEq)]
pub struct TriageReport {
    /// The step that all figures are of; `None` for the whole file.
    pub step: Option<String>,
    /// The stages, in order.
    pub stages: Vec<StageRow>,
    /// Kernels by stage, most time first.
    pub kernels: Vec<KernelTableRow>,
    /// Kernels by name alone, over all stages of a device, most time first.
    pub merged: Vec<KernelTableRow>,
    /// What is known of how kernels were launched and ops called.
    pub launch_note: String,
    /// What could run at the same time as something else.
    pub overlap: Vec<OverlapRow>,
    /// How that was judged, and where it could not be.
    pub overlap_note: String,
    /// How much ran at once.
    pub concurrency: Concurrency,
    /// What is fused and what could be.
    pub fuse: Vec<FuseRow>,
    /// What was left out of that.
    pub fuse_note: Option<String>,
    /// What would save time on the device, and shortens nothing in this recording, because what follows is launched no sooner.
    pub fuse_held: Option<String>,
    /// The warm iterations, if the file has cold ones: fusion is judged by these, the other tables are of all.
    pub warm: Option<Warm>,
    /// Graphs whose kernel names do not belong to their times: no advice is derived from those.
    pub displaced: Option<Displaced>,
    /// Products that a faster number format would shorten.
    pub plain_products: Option<PlainProducts>,
    /// How much GPU time maps to ops and Python lines.
    pub coverage: Coverage,
    /// What was launched before the window.
    pub before_window: BeforeWindowSum,
    /// The calls that the profiler lost, of each rank that lost any.
    pub lost_calls: Vec<LostCalls>,
    /// Where the recording of the GPU ends with work queued.
    pub cut: Option<Cut>,
    /// Where the wall time of each device goes.
    pub wall: Vec<WallRow>,
    /// When each part of it is.
    pub wall_times: Vec<WallTimes>,
    /// The same parts by stage, where a device has several.
    pub wall_stages: Vec<StageWall>,
    /// What to know first, in sentences.
    pub takeaways: Vec<String>,
    /// Those of them on what the device waits for, if they are said. (A diagnosis tells that, too.)
    pub idle_takeaways: Vec<String>,
    /// The architecture that the trace shows.
    pub arch: ObservedArch,
    /// The framework that ran.
    pub framework: FrameworkVote,
    /// What gates of advice ask for of the whole run.
    pub run_facts: RunFacts,
}

/// GPU slices that were launched before the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeforeWindowSum {
    /// How many, on all devices.
    pub n_slices: u64,
    /// The sum of their durations, in ns.
    pub total_ns: i64,
    /// Whether the tables count them.
    pub counted: bool,
}

impl BeforeWindowSum {
    pub(crate) fn of(found: &BeforeWindow, counted: bool) -> Self {
        let BeforeWindow { n_kernels, kernel_ns, n_memory_ops, memory_ns, .. } = *found;
        let total_ns = kernel_ns.saturating_add(memory_ns);
        Self { n_slices: n_kernels + n_memory_ops, total_ns, counted }
    }

    /// The sentence about them, in a trace or in a step of it, where they take much of the time of all.
    fn sentence(&self, of_step: bool, gpu_ns: i64) -> Option<String> {
        let what = units::plural(self.n_slices, "GPU slice was", "GPU slices were");
        let told = if self.counted {
            "the tables include them"
        } else {
            "the tables exclude them, the share of time in which the GPU is busy includes them"
        };
        let time = units::time(self.total_ns);
        let since = if of_step { "this step" } else { "profiling" };
        let is_much = is_much(self.total_ns, gpu_ns);
        (self.n_slices > 0 && is_much).then(|| {
            format!(
                "{what} launched before {since} started ({time}) as part of an earlier step: {told}."
            )
        })
    }
}

/// How the takeaway on the largest fusion begins.
pub(super) const TOP_FUSION: &str = "Top fusion candidate";

/// The column of the time in cold iterations.
const COLD: &str = "cold_ns";

/// What an empty table says.
const NOTHING: &str = "This trace contains no GPU slices.";
/// The same where the tables leave all of them out.
const EARLIER: &str = "All GPU slices were launched before profiling started.";

/// What the stages of a run sum up to.
const SUMS: [&str; 3] = ["n_slices", "n_kernels", "total_ns"];
/// Shares do on one device only: they are of the device's time.
const SUMS_AND_SHARE: [&str; 4] = ["n_slices", "n_kernels", "total_ns", "share_pct"];

/// Rows that Markdown prints of a table; the page and the artifacts have them all.
const PREVIEW: u32 = 40;

impl TriageReport {
    /// The rows of one stage; what is said of the whole run stays.
    #[must_use]
    pub fn only(mut self, stage: Stage) -> Self {
        self.stages.retain(|row| row.stage == stage);
        self.kernels.retain(|row| row.stage == Some(stage));
        self.overlap.retain(|row| row.stage == stage);
        self.fuse.retain(|row| row.stage == stage);
        self
    }

    /// The rows of one device; what is said of the whole run stays.
    #[must_use]
    pub fn on_device(mut self, device: &str) -> Self {
        self.stages.retain(|row| row.device == device);
        self.kernels.retain(|row| row.device == device);
        self.merged.retain(|row| row.device == device);
        self.overlap.retain(|row| row.device == device);
        self.fuse.retain(|row| row.device == device);
        self.fuse.iter_mut().for_each(|row| row.repeats = false);
        self
    }

    /// The GPU time of the tables, in ns.
    fn gpu_ns(&self) -> i64 {
        self.kernels.iter().fold(0, |sum, row| sum.saturating_add(row.total_ns))
    }

    /// What an empty table says.
    fn nothing(&self) -> &'static str {
        if self.before_window.n_slices > 0 { EARLIER } else { NOTHING }
    }

    /// How much each category takes of each family, most time first: which library the work is from.
    #[must_use]
    pub fn matrix(&self) -> Table {
        let all_ns = self.gpu_ns();
        // By id, so that equal times stand in the order of their names.
        let mut sums: BTreeMap<(&str, &str), MatrixRow> = BTreeMap::new();
        for KernelTableRow { category, family, total_ns, launches, .. } in &self.kernels {
            let (category, family) = (*category, *family);
            let empty = MatrixRow { category, family, total_ns: 0, share_pct: 0.0, n_slices: 0 };
            let sum = sums.entry((category.id(), family.id())).or_insert(empty);
            sum.total_ns = sum.total_ns.saturating_add(*total_ns);
            sum.share_pct = percent(sum.total_ns, all_ns);
            sum.n_slices += *launches;
        }
        let mut rows: Vec<MatrixRow> = sums.into_values().collect();
        trace::sort_by_key(&mut rows, |row| std::cmp::Reverse(row.total_ns));
        let title = match &self.displaced {
            Some(displaced) if displaced.is_much(None) => {
                "Categories by family, from kernel names: not usable for graphs with displaced names"
            }
            _ => "Categories by family, from kernel names and ops",
        };
        self.of_all(Table::of("matrix", title, &rows))
            .summing(&["total_ns", "share_pct", "n_slices"])
            .preview(PREVIEW)
            .only_on_page(rows.is_empty())
            .when_empty(self.nothing())
    }

    /// Whether the table of stages has one row, of no stage: its figures are those of the run, and documents leave it out.
    fn has_no_stage(&self) -> bool {
        matches!(&self.stages[..], [only] if only.stage == Stage::All)
    }

    /// Kernels by name alone, over all stages; `None` where one stage has all of them, so that it would say the same.
    #[must_use]
    pub fn merged_table(&self) -> Option<Table> {
        if !self.kernels.windows(2).any(|pair| pair[0].stage != pair[1].stage) {
            return None;
        }
        let lines: Vec<KernelLine> = self.merged.iter().cloned().map(KernelLine::from).collect();
        let table = Table::of("kernels-merged", "Kernels", &lines).without("stage");
        let table = if self.devices().len() > 1 { table } else { table.without("device") };
        let table = table.without_missing(FROM_ARGUMENTS).without(if self.cold_differs() {
            ""
        } else {
            COLD
        });
        let table = table.summing(&["total_ns", COLD, "launches"]);
        Some(self.of_all(table).when_empty(self.nothing()))
    }

    /// A table of all iterations, whose title says so where the first sentence is of the warm ones.
    fn of_all(&self, table: Table) -> Table {
        match &self.warm {
            Some(warm) => of_iterations(table, &warm.all()),
            None => table,
        }
    }

    /// Whether cold iterations have another share of the GPU time than their number gives them, or kernels of their own.
    fn cold_differs(&self) -> bool {
        self.warm.as_ref().is_some_and(|warm| ColdWork::of(&self.merged, warm).is_some())
    }

    /// The devices that did anything, in order.
    #[must_use]
    pub fn devices(&self) -> Vec<&str> {
        let mut devices: Vec<&str> = self.stages.iter().map(|row| row.device.as_str()).collect();
        devices.dedup();
        devices
    }

    /// Whether a takeaway is that on the largest fusion, and the table of fusions prints its row.
    fn is_in_table(&self, said: &str) -> bool {
        let mut printed = self.fuse.iter().filter(|row| row.is_printed());
        said.starts_with(TOP_FUSION) && printed.any(|row| said.contains(&*row.pattern))
    }

    /// The report as chapters. Kernels below `cutoff_pct` of their stage are summed up in one row.
    #[must_use]
    pub fn sections(&self, cutoff_pct: f64) -> Vec<Section> {
        // Architecture and framework stand among the facts of the run, beside these chapters.
        let Self {
            step,
            displaced,
            // The diagnosis has it, and the takeaways.
            plain_products: _,
            lost_calls: _,
            // (The takeaways have it.)
            cut: _,
            wall: _,
            wall_times: _,
            wall_stages: _,
            stages,
            kernels,
            // The page shows it in place of the rows by stage.
            merged: _,
            launch_note,
            overlap,
            overlap_note,
            concurrency: _,
            fuse,
            // What is not advised is in the artifacts.
            fuse_note: _,
            fuse_held,
            warm,
            coverage,
            before_window,
            takeaways,
            arch: _,
            framework: _,
            idle_takeaways: _,
            run_facts: _,
        } = self;
        let several = self.devices().len() > 1;
        let of_step = self.step_sentence();
        let table_of = |table: Table| if several { table } else { table.without("device") };

        let mut triage = Section::new("triage", "Triage");
        triage.intro.extend(of_step.clone());
        triage.intro.extend(takeaways.iter().filter(|said| !self.is_in_table(said)).cloned());
        triage.intro.extend(coverage.sentence());
        triage.intro.extend(coverage.captures_sentence());
        triage.intro.extend(coverage.mapping_sentence());
        triage.tables.push(
            self.of_all(table_of(Table::of("stages", "Stages", stages)))
                .summing(if several { &SUMS } else { &SUMS_AND_SHARE })
                .only_on_page(stages.is_empty() || self.has_no_stage())
                .when_empty(self.nothing()),
        );

        let mut table = Section::new("kernel-table", "Kernel table");
        table.intro.extend(before_window.sentence(step.is_some(), self.gpu_ns()));
        // Of no kernel nothing is said.
        if !kernels.is_empty() {
            table.intro.extend(Some(launch_note.clone()).filter(|note| !note.is_empty()));
        }
        table.intro.extend(displaced.as_ref().map(Displaced::note));
        table.tables.push(table_of(self.by_stage_table(cutoff_pct)));

        let mut chances = Section::new("overlap", "Overlap opportunities");
        chances.intro.extend(of_step.clone());
        // (A document prints rows of advice only; without any, why there are none helps nobody.)
        let advised = overlap.iter().any(OverlapRow::is_printed);
        if advised && !overlap_note.is_empty() {
            chances.intro.push(overlap_note.to_owned());
        }
        chances.tables.push(
            self.of_all(table_of(Table::of("overlap", "Overlap opportunities", overlap)))
                .printing(overlap.iter().map(OverlapRow::is_printed))
                .preview(PREVIEW)
                .when_empty("None is advised.")
                .only_on_page(!advised),
        );
        let mut patterns = Section::new("fuse", "Fuse opportunities");
        patterns.intro.extend(of_step);
        patterns.intro.extend(fuse_held.clone());
        let of_warm = |table: Table| match warm {
            Some(warm) => of_warm(table, warm),
            None => table,
        };
        patterns.tables.push(
            of_warm(table_of(Table::of("fuse", "Fuse opportunities", fuse)))
                .printing(fuse.iter().map(FuseRow::is_printed))
                .preview(PREVIEW)
                .when_empty("None is advised.")
                .only_on_page(!fuse.iter().any(FuseRow::is_printed)),
        );
        vec![triage, table, chances, patterns]
    }

    /// Kernels by stage and name. Kernels below `cutoff_pct` of their stage are summed up in one row.
    fn by_stage_table(&self, cutoff_pct: f64) -> Table {
        let kernels = &self.kernels;
        let several_stages = kernels.windows(2).any(|pair| pair[0].stage != pair[1].stage);
        let lines = above_cutoff(kernels, cutoff_pct);
        self.of_all(Table::of("kernel-table", "Kernels by stage", &lines))
            .without_missing(FROM_ARGUMENTS)
            .without(if self.cold_differs() { "" } else { COLD })
            // Of one stage and all of it, both shares are the same.
            .without(if several_stages { "" } else { "gpu_share_pct" })
            .summing(&[
                "total_ns",
                COLD,
                "launches",
                // Shares sum to the whole of one device, or of one stage.
                match (self.devices().len() > 1, several_stages) {
                    (true, _) => "",
                    (false, true) => "gpu_share_pct",
                    (false, false) => "share_pct",
                },
            ])
            .preview(PREVIEW)
            .only_on_page(kernels.is_empty())
            .when_empty(self.nothing())
    }
}

/// A table whose title says which iterations it counts.
fn of_iterations(mut table: Table, which: &str) -> Table {
    table.title = format!("{} ({which})", table.title).into();
    table
}

/// A table of the warm iterations alone: its shares are of these.
fn of_warm(table: Table, warm: &Warm) -> Table {
    let mut table = of_iterations(table, &warm.told());
    let shares = table.columns.iter_mut().filter(|column| column.key == "savings_pct");
    shares.for_each(|column| column.title = "Share of the warm iterations".into());
    table
}

/// Whether an op is known of a place of this confidence.
pub(super) fn knows_op(confidence: Confidence) -> bool {
    !matches!(confidence, Confidence::Launch | Confidence::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_graphs_are_told_from_copies_and_fills() {
        let of = |graph_kernels, graph_ns| {
            let known = Coverage { total_ns: 100, graph_slices: 1_120, ..Coverage::default() };
            Coverage { graph_kernels, graph_ns, ..known }.sentence()
        };
        let said = |graph_kernels: u64| of(graph_kernels, 90).unwrap();
        assert_eq!(of(1_120, 4), None, "a twentieth of the GPU time changes no conclusion");
        let n = units::count(1_120);
        let (mixed, kernels) = (said(990), said(1_120));
        let expected = format!("Graphs launched {n} GPU slices (990 kernels), which map");
        assert!(mixed.starts_with(&expected), "{mixed}");
        assert!(
            kernels.starts_with(&format!("Graphs launched {n} kernels, which map")),
            "{kernels}"
        );
    }
}
