//! `kinetoscope breakdown`.

use std::path::Path;

use anyhow::Result;
use kinetoscope::artifacts::{Part, UserFacts, order_triage};
use kinetoscope::{
    Options, PlanOptions, RepairReport, Sources, analyze, breakdown_json, gpu_text, plan_repair,
    problem_table, report,
};

use crate::{input, traces};

/// Characters of a drawn row.
const COLUMNS: usize = 100;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    traces: traces::Wanted,
    /// Print one JSON object (schema 1) instead of Markdown; one trace only.
    #[arg(long)]
    json: bool,
    /// Also draw each stream as text.
    #[arg(long, conflicts_with = "json")]
    timeline: bool,
}

/// Prints the breakdown of each of the chosen traces.
///
/// # Errors
/// When a file cannot be read or is no trace, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    traces::print_each(&arguments.traces, arguments.json, |path| of_trace(path, arguments))
}

fn of_trace(path: &Path, arguments: &Arguments) -> Result<String> {
    // (A pipe is read once: its sentences are those of a trace without arguments.)
    let version = if path.is_file() { Some(input::Version::of(path)?) } else { None };
    let decoded = &input::decode(path)?;
    let analyses = analyze(&decoded.trace, &Options::default());
    let plan = plan_repair(&decoded.trace, &PlanOptions::default());
    if arguments.json {
        return Ok(breakdown_json(decoded, &analyses, &plan.before)?);
    }
    // The sentences of `triage`, so that the two never differ. (They name what they leave out.)
    let name = path.to_string_lossy();
    let facts = UserFacts::default();
    let details = version.map(|version| input::details_of(path, decoded, &version)).transpose()?;
    let sources = Sources { details: details.as_ref(), ..Sources::default() };
    let found = order_triage(&decoded.trace, &name, &sources, &facts, Part::default())?;
    let mut takeaways = report::Section::new("takeaways", "Takeaways");
    takeaways.intro.clone_from(&found.takeaways);
    let mut sections = analyses.sections();
    if !takeaways.intro.is_empty() {
        // (They say what takes the time; the table of figures has the busy share, and what was launched before the recording.)
        let included = analyses.included();
        for section in &mut sections {
            section.intro.retain(|sentence| {
                *sentence != analyses.overview.verdict && Some(sentence) != included.as_ref()
            });
        }
        sections.insert(0, takeaways);
    }
    sections.extend(RepairReport::new(decoded, &plan).section());
    let mut problems = report::Section::new("problems", "Problems");
    problems.tables.push(problem_table(&decoded.problems));
    sections.push(problems);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut text = report::document(&name, &sections);
    if arguments.timeline {
        let drawn = gpu_text(&decoded.trace, &Options::default(), COLUMNS);
        if !drawn.is_empty() {
            text.push_str(&format!("\n## Timeline\n\n```text\n{drawn}```\n"));
        }
    }
    Ok(text)
}
