//! Two runs side by side: first whether they may be compared at all, then what differs.

mod fuse;
mod guard;
mod table;

pub use fuse::FuseDeltaRow;
pub use guard::{Comparability, Guard, GuardRow, Sameness, guard};
pub use table::DeltaRow;

use analysis::{StageRow, TraceReport};
use report::{Section, Table};

use crate::artifacts::FuseArtifact;
use table::{Measured, deltas};

/// The comparison of two runs.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Comparison {
    /// Whether they may be compared.
    pub guard: Guard,
    /// Categories of GPU work.
    pub categories: Vec<DeltaRow>,
    /// Kernels by name.
    pub kernels: Vec<DeltaRow>,
    /// Stages.
    pub stages: Vec<DeltaRow>,
    /// Fuse patterns.
    pub fuse: Vec<FuseDeltaRow>,
}

/// One run.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Its `profile_metadata.json`.
    pub metadata: &'a serde_json::Value,
    /// Its analysis.
    pub report: &'a TraceReport,
    /// Its stages.
    pub stages: &'a [StageRow],
    /// Its fuse table.
    pub fuse: &'a [FuseArtifact],
}

/// Compares two runs.
#[must_use]
pub fn compare(a: Run<'_>, b: Run<'_>) -> Comparison {
    Comparison {
        guard: guard(a.metadata, b.metadata),
        stages: deltas(&stages(a), &stages(b), None),
        categories: deltas(&categories(a), &categories(b), None),
        kernels: deltas(&kernels(a), &kernels(b), Some(catalog::head)),
        fuse: fuse::fuse(a.fuse, b.fuse),
    }
}

fn stages(run: Run<'_>) -> Vec<Measured> {
    let rows = run.stages.iter();
    rows.map(|row| Measured::new(row.stage.id(), row.total_ns, row.n_slices, row.share_pct))
        .collect()
}

fn categories(run: Run<'_>) -> Vec<Measured> {
    let rows = run.report.categories.iter();
    rows.map(|row| Measured::new(&row.category, row.total_ns, row.n_slices, row.share_pct))
        .collect()
}

fn kernels(run: Run<'_>) -> Vec<Measured> {
    let rows = run.report.kernels.iter();
    rows.map(|row| Measured::new(&row.kernel_name, row.total_ns, row.launches, row.share_pct))
        .collect()
}

/// Rows that a Markdown document prints.
const PREVIEW: u32 = 40;

impl Comparison {
    /// The comparison as chapters, the banner first.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        let Self { guard, categories, kernels, stages, fuse } = self;
        let mut first = Section::new("comparability", "Comparability");
        first.intro.push(guard.banner.clone());
        first.intro.extend(guard.warnings.iter().cloned());
        first.tables.push(Table::of("comparability", "What must be the same", &guard.rows));
        let summed = ["a_total_ns", "b_total_ns", "delta_ns"];
        let mut tables = Section::new("comparison", "Comparison");
        tables.intro.push(table::sentence(categories));
        for (id, title, rows) in [
            ("stages", "Stages", stages),
            ("categories", "Categories", categories),
            ("kernels", "Kernels", kernels),
        ] {
            tables.tables.push(
                Table::of(id, title, rows)
                    .summing(&summed)
                    .preview(PREVIEW)
                    .when_empty("Neither run has any."),
            );
        }
        tables
            .tables
            .push(Table::of("fuse", "Fuse patterns", fuse).when_empty("Neither run has any."));
        vec![first, tables]
    }
}
