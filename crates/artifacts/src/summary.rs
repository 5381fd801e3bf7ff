//! `profile_summary.md`: the report to read first.

use report::{Cell, Column, Row, Section, Table, Unit};
use serde::Serialize;

use super::metadata::{ProfileMetadata, RunFacts};

/// The document: verdict, run, data quality, the chapters of triage, open questions, reproduction.
#[inline(never)]
pub(crate) fn summary(
    metadata: &ProfileMetadata,
    facts: &RunFacts,
    chapters: &[Section],
) -> String {
    let mut sections = vec![run(metadata, facts)];
    sections.extend(quality(metadata, facts));
    sections.extend_from_slice(chapters);
    sections.extend(questions(metadata, facts));
    sections.push(reproduction(metadata));
    let title = match metadata.source_trace_path.as_str() {
        "" => "Profile".to_owned(),
        name => format!("Profile of {name}"),
    };
    report::document(&title, &sections)
}

/// A fact of the run.
#[derive(Serialize)]
struct FactRow {
    fact: &'static str,
    value: Option<String>,
    source: String,
}

impl Row for FactRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "fact",
            title: "Fact",
            unit: Unit::Text,
            help: "The fact.",
            cell: |row| row.fact.into(),
        },
        Column {
            key: "value",
            title: "Value",
            unit: Unit::Text,
            help: "The value of the fact.",
            cell: |row| Cell::or_missing(row.value.clone(), Cell::from, "not recorded"),
        },
        Column {
            key: "source",
            title: "Source",
            unit: Unit::Text,
            help: "The source of the value.",
            cell: |row| row.source.as_str().into(),
        },
    ];
}

#[inline(never)]
fn run(metadata: &ProfileMetadata, facts: &RunFacts) -> Section {
    let row = |fact: &'static str, key: &str, value: Option<String>, source: &str| {
        let known = metadata.provenance.get(key).cloned();
        let source = if value.is_none() { "" } else { source };
        FactRow { fact, value, source: known.unwrap_or_else(|| source.to_owned()) }
    };
    let ids: Vec<String> = metadata.gpu_device_ids.iter().map(ToString::to_string).collect();
    let device = metadata.device.as_ref().and_then(|device| device.name.clone());
    let runtime = metadata
        .hip_runtime_version
        .as_ref()
        .map(|version| format!("HIP {version}"))
        .or_else(|| Some(format!("CUDA {}", metadata.cuda_version.as_ref()?)));
    let ranks = metadata.distributed.as_ref().and_then(|info| {
        Some(match (info.rank, info.world_size) {
            (Some(rank), Some(size)) => format!("rank {rank} of {size}"),
            (Some(rank), None) => format!("rank {rank}"),
            (None, size) => format!("{} ranks", size?),
        })
    });
    let text = |value: &Option<String>| value.clone();
    let rows = [
        row("Model", "model_name", text(&metadata.model_name), ""),
        row(
            "Framework",
            "framework",
            Some(metadata.framework.clone()),
            &metadata.framework_evidence.join("; "),
        ),
        row(
            "Architecture",
            "observed_arch",
            // (Unknown without evidence.)
            Some(metadata.observed_arch.clone()).filter(|_| !metadata.arch_evidence.is_empty()),
            &metadata.arch_evidence.join("; "),
        ),
        row("Device", "device", device, "deviceProperties"),
        row("Runtime", "runtime", runtime, "the profiler"),
        row("GPU device indices", "gpu_device_ids", (!ids.is_empty()).then(|| ids.join(", ")), ""),
        row("Resources", "resource_class", text(&metadata.resource_class), ""),
        row("Ranks", "distributed", ranks, "distributedInfo"),
        row("Image", "base_image", text(&metadata.base_image), ""),
        row("Experiment", "experiment_id", text(&metadata.experiment_id), ""),
        row("Trial", "trial_id", text(&metadata.trial_id), ""),
    ];
    // What is not recorded is no row.
    let rows: Vec<FactRow> = rows.into_iter().filter(|row| row.value.is_some()).collect();
    let mut section = Section::new("run", "Run");
    section.intro.extend(Some(facts.busy.clone()).filter(|busy| !busy.is_empty()));
    if metadata.target_arch.is_some() {
        section.intro.push(metadata.hardware_relevance_reason.clone());
    }
    section.tables.push(Table::of("identity", "What was profiled", &rows));
    section
}

/// What is wrong with the data, and what that changes; `None` if nothing is.
#[inline(never)]
fn quality(metadata: &ProfileMetadata, facts: &RunFacts) -> Option<Section> {
    let mut section = Section::new("quality", "Data quality");
    // (What the repair of the file changes is no matter of its figures: `breakdown` says it.)
    // (What triage warns of is in its chapter.)
    let warnings = metadata.warnings.iter().skip(facts.warnings.len());
    section.intro.extend(warnings.map(|warning| format!("Warning: {warning}.")));
    (!section.intro.is_empty()).then_some(section)
}

/// What would change the advice if it were known, as questions; `None` if none is open. Run details that only identify the
/// run (image, clocks, benchmark) are fields of the metadata, and no questions.
fn questions(metadata: &ProfileMetadata, facts: &RunFacts) -> Option<Section> {
    let any_gpu_work = metadata.gpu_counts.values().any(|n| *n > 0);
    (any_gpu_work && !facts.has_ops && !facts.has_cpu).then(|| {
        let mut section = Section::new("questions", "Open questions");
        section.intro.push(
            "Is there a trace recorded with ProfilerActivity.CPU? Without it, kernels map to no op, and advice that depends on ops is \
             missing."
                .to_owned(),
        );
        section
    })
}

/// A file that the analysis was made of.
#[derive(Serialize)]
struct SourceRow {
    name: String,
    role: String,
    bytes: u64,
    sha256: String,
}

impl Row for SourceRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "File",
            unit: Unit::Text,
            help: "Name of the file.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "role",
            title: "Role",
            unit: Unit::Text,
            help: "Role of the file in this analysis.",
            cell: |row| row.role.as_str().into(),
        },
        Column {
            key: "bytes",
            title: "Size",
            unit: Unit::FileBytes,
            help: "Size of the file in bytes.",
            cell: |row| Cell::FileBytes(row.bytes),
        },
        Column {
            key: "sha256",
            title: "SHA-256",
            unit: Unit::Text,
            help: "SHA-256 of the file's bytes.",
            cell: |row| row.sha256.as_str().into(),
        },
    ];
}

fn reproduction(metadata: &ProfileMetadata) -> Section {
    let mut section = Section::new("reproduction", "Reproduction");
    let rows: Vec<SourceRow> = metadata
        .sources
        .iter()
        .map(|source| SourceRow {
            name: source.name.clone(),
            role: source.role.label().to_owned(),
            bytes: source.bytes,
            sha256: source.sha256.clone(),
        })
        .collect();
    // (One file is the one that was asked for; artifacts have its digest.)
    section.tables.push(Table::of("sources", "Sources", &rows).only_on_page(rows.len() == 1));
    section
}
