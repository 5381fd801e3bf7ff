//! The artifacts of a triage: files that a script, a database or a colleague can rely on (docs/artifacts.md); what is made of
//! several runs: comparisons and kernel maps.
//!
//! Everything here is pure: structs in, bytes out, the same for the same input and options. A table that was not
//! made is absent, an empty one says that nothing was found; no file holds a time of day.

#![warn(unreachable_pub)]

mod breakdown_json;
mod compare;
mod cpu_json;
mod execution_details;
mod facts;
mod fields;
mod inputs;
mod kernel_map;
mod metadata;
mod number;
mod order;
mod overlap_document;
mod privacy;
mod resource_report;
mod rows;
mod source;
mod summary;
mod zip;

pub use breakdown_json::{BREAKDOWN_SCHEMA, breakdown_json};
pub use compare::{
    Comparability, Comparison, DeltaRow, FuseDeltaRow, Guard, GuardRow, NotAnArtifact, PlanRow,
    Progress, Run, RunPlan, Sameness, WallDeltaRow, compare, guard,
};
pub use cpu_json::{CPU_SCHEMA, cpu_json};
pub use execution_details::{NotDetails, details_of_capture, execution_details};
pub use facts::UserFacts;
pub use fields::{
    FACT_FIELDS, FactField, FactKind, NotFacts, cutoff_of_text, fact_field, stage_of_word,
};
pub use inputs::{is_no_trace_by_name, rank, rank_of_name, signs};
pub use kernel_map::{
    KERNEL_MAP_VERSION, KernelMapFacts, NotAKernelMap, kernel_map_from_json, kernel_map_json,
};
pub use metadata::{
    DeviceFacts, Distributed, Orphans, ProfileMetadata, RepairCount, RunFacts, Tool, TraceFacts,
};
pub use number::{Micros, Percent};
pub use order::{
    ArtifactOrder, ExportedMap, NotMade, Part, order_artifacts, order_kernel_map, order_triage,
    ordered_artifacts, triage_all,
};
pub use overlap_document::OverlapDocument;
pub use privacy::STRIPPED;
pub use resource_report::{
    REPORT_HTML, REPORT_JSON, REPORT_MD, ReportOrder, ReportedMemory, ReportedTrace,
    resource_report,
};
pub use rows::{FuseArtifact, KernelArtifact, OverlapArtifact};
pub(crate) use source::base_name;
pub use source::{Role, SourceDigest, SourceFile, sha256_hex};
pub use zip::{Archive, Stored, TooLarge, ZipWriter};

use analysis::TraceReport;
use decode::Decoded;
use repair::RepairPlan;
use report::Section;
use serde::{Deserialize, Serialize};
use triage::TriageReport;

use metadata::MetadataInput;
use privacy::Names;

/// Version of Kinetoscope, as it stands in every artifact.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `profile_summary.md`.
pub const SUMMARY: &str = "profile_summary.md";
/// `profile_metadata.json`.
pub const METADATA: &str = "profile_metadata.json";
/// `kernel_table.json`.
pub const KERNELS: &str = "kernel_table.json";
/// `overlap_opportunities.json`.
pub const OVERLAP: &str = "overlap_opportunities.json";
/// `fuse_opportunities.json`.
pub const FUSE: &str = "fuse_opportunities.json";
/// The repaired trace, which `repaired::Repairer` writes.
pub const FIXED_TRACE: &str = "perfetto_fixed_trace.json.gz";
/// Where kernels came from, for other runs; not among the others, for it is of use without them.
pub const KERNEL_MAP: &str = "kernel_map.json";
/// All of them in one file, but the kernel map.
pub const ARCHIVE: &str = "kinetoscope_artifacts.zip";

/// What a person may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactOptions {
    /// Leaves names of hosts and users where they are. By default they are taken out of paths, file names and
    /// launch flags. Secrets among the flags go in any case.
    pub keep_names: bool,
}

/// The rows of the three tables; `None` for what was not analysed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tables {
    /// Rows of `kernel_table.json`.
    pub kernels: Option<Vec<KernelArtifact>>,
    /// Rows of `overlap_opportunities.json`.
    pub overlap: Option<Vec<OverlapArtifact>>,
    /// Rows of `fuse_opportunities.json`.
    pub fuse: Option<Vec<FuseArtifact>>,
}

impl Tables {
    /// The tables of a triage.
    #[must_use]
    pub fn of(triage: &TriageReport) -> Self {
        Self {
            kernels: Some(triage.kernels.iter().map(KernelArtifact::from).collect()),
            overlap: Some(triage.overlap.iter().map(OverlapArtifact::from).collect()),
            fuse: Some(triage.fuse.iter().map(FuseArtifact::from).collect()),
        }
    }
}

/// What artifacts are made of.
#[derive(Clone, Copy)]
pub struct ArtifactInput<'a> {
    /// The measured trace.
    pub decoded: &'a Decoded,
    /// Its analysis.
    pub report: &'a TraceReport,
    /// What triage says of the run as a whole.
    pub run: &'a RunFacts,
    /// The tables.
    pub tables: &'a Tables,
    /// The chapters of triage, for the summary.
    pub sections: &'a [Section],
    /// The repair of the trace, if one was planned.
    pub plan: Option<&'a RepairPlan>,
    /// The files, the measured one first.
    pub sources: &'a [SourceFile],
    /// What the user knows.
    pub facts: &'a UserFacts,
    /// What the user chose.
    pub options: ArtifactOptions,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its name.
    pub name: String,
    /// Its content: UTF-8.
    pub text: String,
}

/// A triage and what it was made of: what the page and the command line hand in.
#[derive(Clone, Copy)]
pub struct Triaged<'a> {
    /// The measured trace.
    pub decoded: &'a Decoded,
    /// Its analysis.
    pub report: &'a TraceReport,
    /// Its triage.
    pub triage: &'a TriageReport,
    /// The repair of the trace, if one was planned.
    pub plan: Option<&'a RepairPlan>,
    /// The files, the measured one first.
    pub sources: &'a [SourceFile],
    /// What the user knows.
    pub facts: &'a UserFacts,
    /// What the user chose.
    pub options: ArtifactOptions,
    /// Kernels below this share of their stage stand in one row of the summary; the tables have them all.
    pub cutoff_pct: f64,
}

/// The artifacts of a triage.
///
/// # Errors
/// Never for these types; serde's signature asks.
pub fn triage_artifacts(triaged: &Triaged<'_>) -> Result<Vec<Artifact>, serde_json::Error> {
    let Triaged { decoded, report, triage, plan, sources, facts, options, cutoff_pct } = *triaged;
    let mut sections = triage.sections(cutoff_pct);
    // (The page has it among the figures of the breakdown.)
    if let Some(first) = sections.first_mut() {
        let matrix = triage.matrix();
        // (One row says what each row of the kernel table has.)
        first.tables.extend(Some(matrix).filter(|table| table.n_rows() != 1));
    }
    artifacts(&ArtifactInput {
        decoded,
        report,
        run: &RunFacts::of(triage),
        tables: &Tables::of(triage),
        sections: &sections,
        plan,
        sources,
        facts,
        options,
    })
}

/// The artifacts but the repaired trace, in the order of the archive.
///
/// # Errors
/// Never for these types; serde's signature asks.
#[inline(never)]
pub fn artifacts(input: &ArtifactInput<'_>) -> Result<Vec<Artifact>, serde_json::Error> {
    let names = Names::of(&input.decoded.trace.metadata, input.options.keep_names);
    let metadata = metadata_of(input, &names);
    let Tables { kernels, overlap, fuse } = input.tables.clone();
    let strip = |text: &mut String| *text = names.strip(text);
    let chapters: Vec<Section> =
        input.sections.iter().map(|section| privacy::strip_section(&names, section)).collect();
    let mut files = vec![
        Artifact {
            name: SUMMARY.to_owned(),
            text: summary::summary(&metadata, input.run, &chapters),
        },
        json(METADATA, &metadata)?,
    ];
    if let Some(mut rows) = kernels {
        for row in &mut rows {
            strip(&mut row.python_location);
            row.locations.iter_mut().for_each(strip);
        }
        files.push(json(KERNELS, &rows)?);
    }
    if let Some(mut rows) = overlap {
        rows.iter_mut().for_each(|row| strip(&mut row.python_scope));
        files.push(json(OVERLAP, &rows)?);
    }
    if let Some(mut rows) = fuse {
        for row in &mut rows {
            strip(&mut row.current_location);
            row.evidence.iter_mut().for_each(strip);
        }
        files.push(json(FUSE, &rows)?);
    }
    Ok(files)
}

/// All files as one archive around the repaired trace, if there is one: its bytes are not needed, only what
/// [`Stored`] knows of them.
///
/// # Errors
/// When it would be too large for the format.
pub fn archive(files: &[Artifact], fixed_trace: Option<&Stored>) -> Result<Archive, TooLarge> {
    let mut zip = ZipWriter::default();
    for file in files {
        zip.add(&file.name, file.text.as_bytes())?;
    }
    match fixed_trace {
        Some(stored) => zip.finish_around(FIXED_TRACE, stored),
        None => Ok(Archive { before: zip.finish()?, after: Vec::new() }),
    }
}

#[inline(never)]
fn metadata_of(input: &ArtifactInput<'_>, names: &Names) -> ProfileMetadata {
    let ArtifactInput {
        decoded,
        report,
        run,
        tables: _,
        sections: _,
        plan,
        sources,
        facts,
        options: _,
    } = *input;
    ProfileMetadata::new(&MetadataInput { decoded, report, run, plan, sources, facts, names })
}

#[inline(never)]
fn json(name: &str, value: &impl Serialize) -> Result<Artifact, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(Artifact { name: name.to_owned(), text })
}
