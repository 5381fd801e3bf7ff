//! `kinetoscope diagnose`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use kinetoscope::{
    Facts, HostIndex, Sources, TriageOptions, diagnose, diagnosis_json, host, triage,
};

use crate::failure::Usage;
use crate::guard::Guard;
use crate::{input, traces};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    traces: traces::Wanted,
    /// Print one JSON object (schema 1) instead of Markdown; one trace only.
    #[arg(long)]
    json: bool,
}

/// Prints why each of the chosen traces is slow, and what to do first.
///
/// # Errors
/// When a file cannot be read or is no trace, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    Guard::of(arguments.traces.trace.iter().map(PathBuf::as_path)).allow_stdout()?;
    let chosen = arguments.traces.chosen()?;
    if arguments.json && chosen.len() > 1 {
        let text = "--json needs one trace: name it, or select a rank with --rank";
        return Err(Usage(text.to_owned()).into());
    }
    let mut stdout = std::io::stdout();
    for (at, one) in chosen.iter().enumerate() {
        if at > 0 {
            stdout.write_all(b"\n")?;
        }
        stdout.write_all(of_trace(&one.path, arguments.json)?.as_bytes())?;
    }
    Ok(())
}

fn of_trace(path: &Path, json: bool) -> Result<String> {
    let version = input::Version::of(path)?;
    let decoded = input::decode(path)?;
    let details = input::details_of_host(path, &decoded, &version)?;
    let trace = &decoded.trace;
    let index = HostIndex::of(trace);
    let report = host(&index, &details);
    let file_name = Some(path.to_string_lossy().into_owned());
    let options = TriageOptions { file_name, ..TriageOptions::default() };
    let triaged =
        triage(trace, &options, &Sources { details: Some(&details), ..Sources::default() });
    let diagnosis = diagnose(&Facts::of(&index, &details, &report, &triaged));
    if json {
        return Ok(diagnosis_json(&diagnosis)?);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(kinetoscope::report::document(&name, &diagnosis.sections()))
}
