//! `kinetoscope diagnose`.

use std::path::Path;

use anyhow::Result;
use kinetoscope::artifacts::{Part, UserFacts, order_triage};
use kinetoscope::{Diagnosis, Facts, HostIndex, Sources, diagnose, diagnosis_json, host};

use crate::{input, step, traces};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    traces: traces::Wanted,
    /// Print one JSON object (schema 1) instead of Markdown; one trace only.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    step: step::Step,
}

/// Prints why each of the chosen traces is slow, and what to do first.
///
/// # Errors
/// When a file cannot be read or is no trace, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    traces::print_each(&arguments.traces, arguments.json, |path| of_trace(path, arguments))
}

fn of_trace(path: &Path, arguments: &Arguments) -> Result<String> {
    let diagnosis = diagnosis_of(path, &arguments.step)?;
    if arguments.json {
        return Ok(diagnosis_json(&diagnosis)?);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(kinetoscope::report::document(&name, &diagnosis.sections()))
}

/// What is said of a trace.
///
/// # Errors
/// When the file cannot be read or is no trace, or has no such step.
pub fn diagnosis_of(path: &Path, step: &step::Step) -> Result<Diagnosis> {
    let version = input::Version::of(path)?;
    let decoded = input::decode(path)?;
    let details = input::details_of_host(path, &decoded, &version)?;
    let narrowed = step.trace(path, &decoded, &details)?;
    let trace = narrowed.as_ref().unwrap_or(&decoded.trace);
    let index = HostIndex::of(trace);
    let report = host(&index, &details);
    let sources = Sources { details: Some(&details), ..Sources::default() };
    let (name, facts) = (path.to_string_lossy(), UserFacts::default());
    let triaged = order_triage(trace, &name, &sources, &facts, Part::default())?;
    Ok(diagnose(&Facts::of(&index, &details, &report, &triaged)))
}
