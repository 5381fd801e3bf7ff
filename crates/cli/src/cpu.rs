//! `kinetoscope cpu`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use kinetoscope::{HostIndex, cpu_json, host};

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
    /// All rows of long tables: the JSON has the first 100 threads, 200 Python frames and 200 modules without it.
    #[arg(long, requires = "json")]
    all: bool,
}

/// Prints what the CPU did in each of the chosen traces.
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
        stdout.write_all(of_trace(&one.path, arguments)?.as_bytes())?;
    }
    Ok(())
}

fn of_trace(path: &Path, arguments: &Arguments) -> Result<String> {
    let version = input::Version::of(path)?;
    let decoded = input::decode(path)?;
    let details = input::details_of_host(path, &decoded, &version)?;
    let report = host(&HostIndex::of(&decoded.trace), &details);
    if arguments.json {
        return Ok(cpu_json(report, arguments.all)?);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(kinetoscope::report::document(&name, &report.sections()))
}
