//! `kinetoscope diagnose`.

use std::io::Write as _;
use std::path::Path;

use anyhow::Result;
use kinetoscope::artifacts::{UserFacts, triage_all};
use kinetoscope::report::units;
use kinetoscope::trace::Trace;
use kinetoscope::{
    Diagnosis, Facts, HostIndex, Matched, Problem, ProblemKind, RankCalls, Sources, diagnose_ranks,
    diagnosis_json, host,
};

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
    let chosen = traces::chosen_for_stdout(&arguments.traces, arguments.json)?;
    if arguments.traces.choice.all_ranks && !arguments.json {
        compare_ranks(&chosen)?;
    }
    traces::print_chosen(&chosen, |path| of_trace(path, arguments))
}

/// Prints what the collectives of the ranks tell of each other, where there are several.
fn compare_ranks(chosen: &[traces::Chosen]) -> Result<()> {
    let mut calls = Vec::new();
    for chosen in chosen {
        let Some(rank) = traces::rank_of(&chosen.path) else { continue };
        let version = input::Version::of(&chosen.path)?;
        let decoded = input::decode(&chosen.path)?;
        let details = input::details_of_host(&chosen.path, &decoded, &version)?;
        let index = HostIndex::of(&decoded.trace);
        calls.push((
            rank,
            RankCalls::of(&decoded.trace, &index.gpu, &details, format!("rank {rank}")),
        ));
    }
    if calls.len() < 2 {
        return Ok(());
    }
    calls.sort_by_key(|(rank, _)| *rank);
    let calls: Vec<RankCalls> = calls.into_iter().map(|(_, calls)| calls).collect();
    let title = format!("{} ranks", calls.len());
    let text = kinetoscope::report::document(&title, &[Matched::of_ranks(&calls, None).section()]);
    std::io::stdout().write_all(format!("{text}\n").as_bytes())?;
    Ok(())
}

fn of_trace(path: &Path, arguments: &Arguments) -> Result<String> {
    let (diagnosis, damage) = read(path, &arguments.step)?;
    if arguments.json {
        return Ok(diagnosis_json(&diagnosis)?);
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
    read(path, step).map(|(diagnosis, _)| diagnosis)
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
fn read(path: &Path, step: &step::Step) -> Result<(Diagnosis, Option<String>)> {
    let version = input::Version::of(path)?;
    let decoded = input::decode(path)?;
    let details = input::details_of_host(path, &decoded, &version)?;
    let narrowed = step.trace(path, &decoded, &details)?;
    let trace = narrowed.as_ref().unwrap_or(&decoded.trace);
    let index = HostIndex::of(trace);
    let report = host(&index, &details);
    let sources = Sources { details: Some(&details), ..Sources::default() };
    let (name, facts) = (path.to_string_lossy(), UserFacts::default());
    let triage_of = |part: &Trace| triage_all(part, &name, &sources, &facts, false);
    let triaged = triage_of(trace);
    let diagnosis = diagnose_ranks(&Facts::of(&index, &details, &report, &triaged), &triage_of);
    Ok((diagnosis, damage(&decoded.problems)))
}
