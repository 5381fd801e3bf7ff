//! `kinetoscope scaling`.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use kinetoscope::{ScalingRow, report, scaling, scaling_section};

use crate::failure::Usage;
use crate::guard::Guard;
use crate::{diagnose, step};

#[derive(clap::Args)]
pub struct Arguments {
    /// Traces of one model with inputs of different sizes.
    #[arg(required = true, num_args = 2..)]
    trace: Vec<PathBuf>,
    /// Print one JSON object (schema 1) instead of Markdown.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Document<'a> {
    schema: u32,
    rows: &'a [ScalingRow],
}

/// Prints how the time of an iteration follows the size of the batch.
///
/// # Errors
/// When a file cannot be read or is no trace, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    Guard::of(arguments.trace.iter().map(PathBuf::as_path)).allow_stdout()?;
    if let Some(folder) = arguments.trace.iter().find(|path| path.is_dir()) {
        let text = format!("{} is a folder: name the traces", folder.display());
        return Err(Usage(text).into());
    }
    let mut runs: Vec<ScalingRow> = Vec::new();
    for path in &arguments.trace {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        runs.push(ScalingRow::of(&name, &diagnose::diagnosis_of(path, &step::Step::default())?));
    }
    let rows = scaling(runs);
    let text = if arguments.json {
        serde_json::to_string_pretty(&Document { schema: 1, rows: &rows })? + "\n"
    } else {
        report::document("Scaling", &[scaling_section(&rows)])
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
