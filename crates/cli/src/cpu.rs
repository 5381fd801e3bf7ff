//! `kinetoscope cpu`.

use std::path::Path;

use anyhow::Result;
use kinetoscope::{HostIndex, cpu_json, host};

use crate::{input, step, traces};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    traces: traces::Wanted,
    /// Print one JSON object (schema 1) instead of Markdown; one trace only.
    #[arg(long)]
    json: bool,
    /// All rows of long tables: the JSON has the first 100 threads, 200 Python frames and 200 modules without it.
    #[arg(long, requires = "json")]
    all: bool,
    #[command(flatten)]
    step: step::Step,
}

/// Prints what the CPU did in each of the chosen traces.
///
/// # Errors
/// When a file cannot be read or is no trace, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    traces::print_each(&arguments.traces, arguments.json, |path| of_trace(path, arguments))
}

fn of_trace(path: &Path, arguments: &Arguments) -> Result<String> {
    let version = input::Version::of(path)?;
    let decoded = input::decode(path)?;
    let details = input::details_of_host(path, &decoded, &version)?;
    let narrowed = arguments.step.trace(path, &decoded, &details)?;
    let trace = narrowed.as_ref().unwrap_or(&decoded.trace);
    let report = host(&HostIndex::of(trace), &details);
    if arguments.json {
        return Ok(cpu_json(report, arguments.all)?);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(kinetoscope::report::document(&name, &report.sections()))
}
