//! `kinetoscope diagnose`.

use std::io::Write as _;
use std::path::Path;

use anyhow::Result;
use kinetoscope::artifacts::{UserFacts, triage_all};
use kinetoscope::report::units;
use kinetoscope::trace::Trace;
use kinetoscope::{
    Diagnosis, Facts, HostIndex, OneRun, Problem, ProblemKind, Sources, diagnose_ranks,
    diagnosis_json, host,
};

use crate::run_ranks::{self, Read, RunRanks};
use crate::{step, traces};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    traces: traces::Wanted,
    /// Print one JSON object (schema 1) instead of Markdown; one trace only.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    step: step::Step,
    /// What an iteration (a step, a pass) takes without the profiler, in ms: the wall time of many, divided by their number. It tells
    /// whether launches limit the run, or only its recording.
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    iteration_ms: Option<i64>,
}

/// Milliseconds as a person writes them, in ns.
fn milliseconds(text: &str) -> Result<i64, String> {
    let ms = text.trim().parse::<f64>().ok().filter(|ms| (1e-3..1e9).contains(ms));
    let wanted = || "expected milliseconds between 0.001 and 1e9".to_owned();
    ms.map(|ms| (ms * 1e6).round() as i64).ok_or_else(wanted)
}

/// Prints why each of the chosen traces is slow, and what to do first. Ranks of one run are compared.
///
/// # Errors
/// When a file cannot be read or is no trace, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let paths = traces::found_for_stdout(&arguments.traces)?;
    let (chosen, ranks) = run_ranks::chosen(&arguments.traces, paths, arguments.json)?;
    let first = chosen.first().map(|chosen| chosen.path.as_path());
    if let Some(text) = ranks.document(first).filter(|_| !arguments.json) {
        std::io::stdout().write_all(format!("{text}\n").as_bytes())?;
    }
    traces::print_chosen(&chosen, |path| of_trace(path, arguments, &ranks))
}

fn of_trace(path: &Path, arguments: &Arguments, ranks: &RunRanks) -> Result<String> {
    let (diagnosis, damage) = read(path, &arguments.step, ranks, arguments.iteration_ms)?;
    if arguments.json {
        let compared = ranks.with_run(path, |run| run.map(OneRun::compared));
        return Ok(diagnosis_json(&diagnosis, compared.as_ref())?);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut sections = diagnosis.sections();
    if let Some(first) = sections.first_mut() {
        first.intro.splice(..0, damage);
    }
    Ok(kinetoscope::report::document(&name, &sections))
}

/// What is said of a trace.
///
/// # Errors
/// When the file cannot be read or is no trace, or has no such step.
pub fn diagnosis_of(path: &Path, step: &step::Step) -> Result<Diagnosis> {
    read(path, step, &RunRanks::default(), None).map(|(diagnosis, _)| diagnosis)
}

/// That parts of the file are not readable: what figures lack has that cause first.
fn damage(problems: &[Problem]) -> Option<String> {
    let is_cut = |problem: &&Problem| {
        matches!(problem.kind, ProblemKind::Malformed | ProblemKind::Truncated)
    };
    let first = problems.iter().filter(is_cut).map(|problem| problem.first_offset).min()?;
    let n = problems.iter().filter(is_cut).map(|problem| problem.count).sum();
    Some(format!(
        "The file is damaged: {}, the first at byte {}. No figure counts the events there.",
        units::plural(n, "place is not readable", "places are not readable"),
        units::count(first),
    ))
}

/// The same, and whether the file is damaged.
fn read(
    path: &Path,
    step: &step::Step,
    ranks: &RunRanks,
    iteration_ns: Option<i64>,
) -> Result<(Diagnosis, Option<String>)> {
    let Read { decoded, details } = ranks.read(path)?;
    let narrowed = step.trace(path, &decoded, &details)?;
    let trace = narrowed.as_ref().unwrap_or(&decoded.trace);
    let index = HostIndex::of(trace);
    let report = host(&index, &details);
    let sources = Sources { details: Some(&details), ..Sources::default() };
    let (name, user) = (path.to_string_lossy(), UserFacts::default());
    let triage_of = |part: &Trace| triage_all(part, &name, &sources, &user, false);
    let triaged = triage_of(trace);
    let facts = Facts::of(&index, &details, &report, &triaged).timed(iteration_ns);
    // (The collectives of a run say nothing of one step.)
    let facts = ranks.with_run(path, |run| match run.filter(|_| narrowed.is_none()) {
        Some(run) => facts.in_run(run),
        None => facts,
    });
    let diagnosis = diagnose_ranks(&facts, &triage_of);
    Ok((diagnosis, damage(&decoded.problems)))
}
