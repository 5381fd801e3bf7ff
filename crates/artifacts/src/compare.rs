//! Compares two runs: first whether they are comparable, then their differences.

mod fuse;
mod guard;
mod plan;
mod table;

pub use fuse::FuseDeltaRow;
pub use guard::{Comparability, Guard, GuardRow, Sameness, guard};
pub use plan::{PlanRow, Progress, RunPlan, WallDeltaRow};
pub use table::DeltaRow;

use std::collections::BTreeMap;

use report::{Cell, Section, Table};
use serde::de::DeserializeOwned;
use serde_json::Value;
use triage::words;

use crate::rows::UNRESOLVED;
use crate::{Artifact, FUSE, FuseArtifact, KERNELS, KernelArtifact, METADATA, REPORT_JSON};
use table::{Measured, deltas};

/// The comparison of two runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Whether the runs are comparable.
    pub guard: Guard,
    /// What moved: the first run's actions and wall time in the second.
    pub progress: Progress,
    /// Ops that launched GPU work.
    pub ops: Vec<DeltaRow>,
    /// Lines of Python that launched GPU work.
    pub lines: Vec<DeltaRow>,
    /// Categories of GPU work.
    pub categories: Vec<DeltaRow>,
    /// Kernels by name.
    pub kernels: Vec<DeltaRow>,
    /// Stages.
    pub stages: Vec<DeltaRow>,
    /// Fuse patterns.
    pub fuse: Vec<FuseDeltaRow>,
}

/// One run, read from its artifacts, so that old and new runs are compared in the same way.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its `profile_metadata.json`.
    pub metadata: Value,
    /// Its `kernel_table.json`.
    pub kernels: Vec<KernelArtifact>,
    /// Its `fuse_opportunities.json`; empty when it was not made.
    pub fuse: Vec<FuseArtifact>,
    /// Its `report.json`; `None` when it was not made.
    pub plan: Option<RunPlan>,
}

/// An artifact whose content does not match its name.
#[derive(Debug)]
pub struct NotAnArtifact {
    /// The file's name.
    pub name: &'static str,
    /// Why.
    pub error: serde_json::Error,
}

impl std::fmt::Display for NotAnArtifact {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, error } = self;
        write!(out, "{name} is missing or has another schema: {error}")
    }
}

impl std::error::Error for NotAnArtifact {}

/// Compares two runs.
#[must_use]
pub fn compare(a: &Run, b: &Run) -> Comparison {
    let stage = |row: &KernelArtifact| row.stage.clone();
    let category = |row: &KernelArtifact| row.category.clone();
    let name = |row: &KernelArtifact| row.kernel_name.clone();
    let op = |row: &KernelArtifact| row.cpu_op.clone();
    let line = |row: &KernelArtifact| row.python_location.clone();
    Comparison {
        guard: guard(&a.metadata, &b.metadata),
        progress: plan::progress(a.plan.as_ref(), b.plan.as_ref()),
        ops: deltas(&a.by(op), &b.by(op), None),
        lines: deltas(&a.by(line), &b.by(line), None),
        stages: deltas(&a.by(stage), &b.by(stage), None),
        categories: deltas(&a.by(category), &b.by(category), None),
        kernels: deltas(&a.by(name), &b.by(name), Some(catalog::head)),
        fuse: fuse::fuse(&a.fuse, &b.fuse),
    }
}

impl Run {
    /// The artifact files of a run.
    pub const FILES: [&str; 4] = [METADATA, KERNELS, FUSE, REPORT_JSON];

    /// Reads a run from its artifacts. The table of fuse patterns and the report may be absent.
    ///
    /// # Errors
    /// When another artifact is absent, or the content of one does not match its name.
    pub fn of(files: &[Artifact]) -> Result<Self, NotAnArtifact> {
        fn read<T: DeserializeOwned>(
            name: &'static str,
            files: &[Artifact],
            absent: &str,
        ) -> Result<T, NotAnArtifact> {
            let file = files.iter().find(|file| file.name == name);
            let text = file.map_or(absent, |file| &file.text);
            serde_json::from_str(text).map_err(|error| NotAnArtifact { name, error })
        }
        Ok(Self {
            metadata: read(METADATA, files, "")?,
            kernels: read(KERNELS, files, "")?,
            fuse: read(FUSE, files, "[]")?,
            plan: read(REPORT_JSON, files, "null")?,
        })
    }

    /// Sums over the kernel table.
    fn by(&self, key: impl Fn(&KernelArtifact) -> String) -> Vec<Measured> {
        let mut sums: BTreeMap<String, (i64, u64)> = BTreeMap::new();
        let mut all_ns = 0_i64;
        for row in &self.kernels {
            let (ns, launches) = sums.entry(key(row)).or_default();
            *ns = ns.saturating_add(row.total_us.0);
            *launches += row.launches;
            all_ns = all_ns.saturating_add(row.total_us.0);
        }
        let share = |ns: i64| if all_ns == 0 { 0.0 } else { 100.0 * ns as f64 / all_ns as f64 };
        sums.into_iter()
            .map(|(name, (ns, launches))| Measured::new(&name, ns, launches, share(ns)))
            .collect()
    }
}

/// Rows that a Markdown document prints.
const PREVIEW: u32 = 40;

impl Comparison {
    /// The comparison as sections, the banner first.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        let Self { guard, progress, ops, lines, categories, kernels, stages, fuse } = self;
        let mut first = Section::new("comparability", "Comparability");
        first.intro.push(guard.banner.clone());
        first.intro.extend(guard.warnings.iter().cloned());
        first.tables.push(Table::of("comparability", "Comparability checks", &guard.rows));
        let mut moved = Section::new("progress", "What moved");
        moved.intro.clone_from(&progress.sentences);
        moved.tables.push(
            Table::of("compare-plan", "Actions of A", &progress.plan)
                .when_empty("A's diagnosis has no action, or A has no report."),
        );
        moved.tables.push(
            Table::of("compare-wall", "Wall time", &progress.wall)
                .when_empty("One of the runs has no GPU work whose waits can be explained."),
        );
        let summed = ["a_total_ns", "b_total_ns", "delta_ns"];
        let mut tables = Section::new("comparison", "Comparison");
        tables.intro.push(table::sentence(categories));
        tables.intro.extend(table::matched_sentence(kernels));
        let if_mapped: fn(&str) -> Cell =
            |name| if name == UNRESOLVED { "not mapped".into() } else { name.into() };
        let as_it_is: fn(&str) -> Cell = |name| name.into();
        for (id, title, rows, label) in [
            ("compare-stages", "Stages", stages, words::stage as fn(&str) -> Cell),
            ("compare-categories", "Categories", categories, analysis::words::category),
            ("compare-ops", "Ops", ops, if_mapped),
            ("compare-lines", "Lines of Python", lines, if_mapped),
            ("compare-kernels", "Kernels", kernels, as_it_is),
        ] {
            tables.tables.push(
                Table::of(id, title, rows)
                    .labelled("name", label)
                    .summing(&summed)
                    .preview(PREVIEW)
                    .when_empty("None in either run."),
            );
        }
        tables.tables.push(
            Table::of("compare-fuse", "Fuse patterns", fuse).when_empty("None in either run."),
        );
        vec![first, moved, tables]
    }
}
