//! The report on resources: what a run uses, what limits it and what to do, as Markdown, JSON and HTML.
//!
//! The four chapters are always there, in one order; what the files do not hold is "not available", with the reason and what
//! would record it. The page and the command line call [`resource_report`], so their files are equal, byte for byte.

mod figures;
mod json;
mod memory;
mod sections;

use diagnosis::{Diagnosis, Facts, diagnose_ranks};
use host::{HostIndex, host};
use joint::{SameRun, same_run};
use ranks::{Compared, OneRun};
use report::{Section, document, html_document};
use snapshot::{RunFacts, SnapshotReport};
use trace::{Details, Trace};
use triage::TriageReport;

use crate::privacy::{Names, strip_section};
use crate::{Artifact, ArtifactOptions};
use figures::CpuFigures;

/// `report.md`.
pub const REPORT_MD: &str = "report.md";
/// `report.json`.
pub const REPORT_JSON: &str = "report.json";
/// `report.html`.
pub const REPORT_HTML: &str = "report.html";
/// Schema of the JSON.
pub(crate) const REPORT_SCHEMA: u32 = 1;

/// A trace, as the report reads it.
#[derive(Clone, Copy)]
pub struct ReportedTrace<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Its arguments.
    pub details: &'a Details,
    /// Its triage.
    pub triage: &'a TriageReport,
    /// Triages a part of it in the same way.
    pub triage_of: &'a dyn Fn(&Trace) -> TriageReport,
    /// The name of its file, without folders.
    pub name: &'a str,
    /// The run that it is one rank of, where it is compared with the others.
    pub run: Option<&'a OneRun<'a>>,
}

/// A memory snapshot, as the report reads it.
#[derive(Clone, Copy)]
pub struct ReportedMemory<'a> {
    /// Its figures.
    pub report: &'a SnapshotReport,
    /// The allocator's settings, as the file has them.
    pub settings: Option<&'a str>,
    /// What a trace of the same run is recognised by.
    pub facts: &'a RunFacts,
    /// The name of its file, without folders.
    pub name: &'a str,
}

/// What a report is made of.
#[derive(Clone, Copy)]
pub struct ReportOrder<'a> {
    /// The trace, if there is one.
    pub trace: Option<ReportedTrace<'a>>,
    /// The memory snapshot, if there is one.
    pub memory: Option<ReportedMemory<'a>>,
    /// What the user chose.
    pub options: ArtifactOptions,
}

/// What is known of a trace.
struct OfTrace<'a> {
    name: &'a str,
    trace: &'a Trace,
    triage: &'a TriageReport,
    figures: CpuFigures,
    host: host::HostReport,
    diagnosis: Diagnosis,
    /// What the ranks of its run tell of each other.
    ranks: Option<Compared>,
    /// Whether the snapshot is of the same run; `None` where there is no snapshot.
    same_run: Option<SameRun>,
}

impl<'a> OfTrace<'a> {
    fn of(given: ReportedTrace<'a>, memory: Option<&ReportedMemory<'_>>) -> Self {
        let ReportedTrace { trace, details, triage, triage_of, name, run } = given;
        let index = HostIndex::of(trace);
        let host = host(&index, details);
        let facts = Facts::of(&index, details, &host, triage);
        let facts = match run {
            Some(run) => facts.in_run(run),
            None => facts,
        };
        let diagnosis = diagnose_ranks(&facts, triage_of);
        let ranks = run.map(OneRun::compared);
        let same_run = memory.map(|memory| same_run(&index.slices, details, memory.facts));
        let figures = CpuFigures::of(&host);
        Self { name, trace, triage, figures, host, diagnosis, ranks, same_run }
    }
}

/// The three files: [`REPORT_MD`], [`REPORT_JSON`] and [`REPORT_HTML`].
///
/// # Errors
/// Never for these types; required by serde's signature.
pub fn resource_report(order: &ReportOrder<'_>) -> Result<[Artifact; 3], serde_json::Error> {
    let of_trace = order.trace.map(|trace| OfTrace::of(trace, order.memory.as_ref()));
    let names = of_trace.as_ref().map_or_else(Names::default, |known| {
        Names::of(&known.trace.metadata, order.options.keep_names)
    });
    let of_files =
        [of_trace.as_ref().map(|known| known.name), order.memory.map(|memory| memory.name)];
    let of_files: Vec<String> =
        of_files.into_iter().flatten().map(|name| names.strip(name)).collect();
    let title = match &of_files[..] {
        [] => "Resource report".to_owned(),
        names => format!("Resource report: {}", names.join(", ")),
    };
    let memory = order.memory.as_ref();
    let sections: Vec<Section> = sections::sections(of_trace.as_ref(), memory)
        .iter()
        .map(|section| strip_section(&names, section))
        .collect();
    let json = names.strip_texts(json::json(of_trace.as_ref(), memory)?);
    let mut json = serde_json::to_string_pretty(&json)?;
    json.push('\n');
    let file = |name: &str, text: String| Artifact { name: name.to_owned(), text };
    Ok([
        file(REPORT_MD, document(&title, &sections)),
        file(REPORT_JSON, json),
        file(REPORT_HTML, html_document(&title, &sections)),
    ])
}
