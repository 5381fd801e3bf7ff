//! `kinetoscope report`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use kinetoscope::artifacts::{
    Artifact, ArtifactOptions, ReportOrder, ReportedMemory, ReportedTrace, UserFacts,
    resource_report, triage_all,
};
use kinetoscope::memory::run_facts;
use kinetoscope::trace::Trace;
use kinetoscope::{Sources, analyze_snapshot};

use crate::guard::Guard;
use crate::output::{Kept, Pending, say_replaced};
use crate::run_ranks::{self, Read, RunRanks};
use crate::{memory, traces};

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("inputs").required(true).multiple(true).args(["cpu_trace", "memory_json"])))]
#[command(group(
    clap::ArgGroup::new("outputs").required(true).multiple(true).args(["md_out", "json_out", "html_out"])
))]
pub struct Arguments {
    /// The trace (.json or .json.gz), or a folder with the ranks of a run: they are compared, and the report is of the one for which the others wait, if that costs one of them a tenth of its kernels' time, else of the lowest.
    #[arg(long, value_name = "TRACE")]
    cpu_trace: Option<PathBuf>,
    /// Of a folder, this rank.
    #[arg(long, requires = "cpu_trace")]
    rank: Option<i64>,
    /// A memory snapshot as JSON (.json or .json.gz).
    #[arg(long, value_name = "SNAPSHOT")]
    memory_json: Option<PathBuf>,
    /// Write the report as Markdown.
    #[arg(long, value_name = "FILE")]
    md_out: Option<PathBuf>,
    /// Write its figures, findings and actions as JSON (schema 1).
    #[arg(long, value_name = "FILE")]
    json_out: Option<PathBuf>,
    /// Write it as one HTML file without scripts.
    #[arg(long, value_name = "FILE")]
    html_out: Option<PathBuf>,
    /// Keep names of hosts and users, which are left out otherwise.
    #[arg(long)]
    keep_names: bool,
}

/// Writes the reports that are asked for.
///
/// # Errors
/// When a file cannot be read, is no trace, or an output cannot be written or would replace an input.
pub fn run(arguments: &Arguments) -> Result<()> {
    let inputs = [&arguments.cpu_trace, &arguments.memory_json];
    let guard = Guard::of(inputs.into_iter().flatten().map(PathBuf::as_path));
    let wanted = [&arguments.md_out, &arguments.json_out, &arguments.html_out];
    // All are allowed before any is written.
    let mut allowed = Vec::new();
    for path in &wanted {
        allowed.push(path.as_deref().map(|path| guard.allow(path)).transpose()?);
    }
    let options = ArtifactOptions { keep_names: arguments.keep_names };
    let snapshot = arguments.memory_json.as_deref().map(memory::read).transpose()?;
    let report = snapshot.as_ref().map(analyze_snapshot);
    let name = arguments.memory_json.as_deref().and_then(Path::file_name).unwrap_or_default();
    let name = name.to_string_lossy();
    let read = snapshot.as_ref().zip(report.as_ref());
    let facts = read.map(|(snapshot, report)| run_facts(snapshot, report)).unwrap_or_default();
    let memory = read.map(|(snapshot, report)| ReportedMemory {
        report,
        settings: snapshot.settings.as_deref(),
        facts: &facts,
        name: &name,
    });
    let files = match &arguments.cpu_trace {
        Some(path) => {
            let choice = traces::Choice { rank: arguments.rank, all_ranks: false };
            let wanted = traces::Wanted { trace: vec![path.clone()], choice };
            let (chosen, ranks) = run_ranks::chosen(&wanted, traces::found(&wanted.trace)?, false)?;
            let chosen = traces::only(chosen, path)?;
            with_trace(&chosen.path, memory, options, &ranks)?
        }
        None => resource_report(&ReportOrder { trace: None, memory, options })?,
    };
    let mut pending = Vec::new();
    for (output, file) in allowed.into_iter().zip(&files) {
        if let Some(output) = output {
            pending.push(Pending::whole(output, file.text.as_bytes())?);
        }
    }
    let kept: Vec<Kept> = pending.into_iter().map(Pending::keep).collect::<Result<_>>()?;
    say_replaced(&kept);
    Ok(())
}

/// The three files of a trace.
///
/// # Errors
/// When it cannot be read or is no trace.
pub fn of_trace(path: &Path, options: ArtifactOptions) -> Result<[Artifact; 3]> {
    with_trace(path, None, options, &RunRanks::default())
}

fn with_trace(
    path: &Path,
    memory: Option<ReportedMemory<'_>>,
    options: ArtifactOptions,
    ranks: &RunRanks,
) -> Result<[Artifact; 3]> {
    let Read { decoded, details } = ranks.read(path)?;
    let sources = Sources { details: Some(&details), ..Sources::default() };
    let (whole, facts) = (path.to_string_lossy(), UserFacts::default());
    let triage_of = |part: &Trace| triage_all(part, &whole, &sources, &facts, false);
    let triage = triage_of(&decoded.trace);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ranks.with_run(path, |run| {
        let trace = ReportedTrace {
            trace: &decoded.trace,
            details: &details,
            triage: &triage,
            triage_of: &triage_of,
            name: &name,
            run,
        };
        Ok(resource_report(&ReportOrder { trace: Some(trace), memory, options })?)
    })
}
