//! `kinetoscope breakdown`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use kinetoscope::{
    Options, PlanOptions, RepairReport, analyze, breakdown_json, plan_repair, problem_table, report,
};

use crate::input;

#[derive(clap::Args)]
pub struct Arguments {
    /// The trace: .json or .json.gz, from torch.profiler, SGLang or vLLM.
    trace: PathBuf,
    /// Print one JSON object (schema 1) in place of Markdown.
    #[arg(long)]
    json: bool,
}

/// Prints the breakdown of one file.
///
/// # Errors
/// When the file cannot be read or is no trace, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let decoded = input::decode(&arguments.trace)?;
    let analyses = analyze(&decoded.trace, &Options::default());
    let plan = plan_repair(&decoded.trace, &PlanOptions::default());
    let text = if arguments.json {
        breakdown_json(&decoded, &analyses, &plan.before)?
    } else {
        let mut sections = analyses.sections();
        sections.push(RepairReport::new(&decoded, &plan).section());
        let mut problems = report::Section::new("problems", "Problems");
        problems.tables.push(problem_table(&decoded.problems));
        sections.push(problems);
        let name = arguments.trace.file_name().unwrap_or_default().to_string_lossy().into_owned();
        report::document(&name, &sections)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
