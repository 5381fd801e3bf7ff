//! `kinetoscope diagnose`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

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

/// Prints why each of the chosen traces is slow, and what to do first. Ranks of one run are compared.
///
/// # Errors
/// When a file cannot be read or is no trace, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let (chosen, ranks) = traces::with_ranks(&arguments.traces, arguments.json)?;
    let ranks = RunRanks::of(ranks);
    if !ranks.calls.is_empty() && !arguments.json {
        let title = units::plural(ranks.calls.len() as u64, "rank", "ranks");
        let sections = [Matched::of_ranks(&ranks.calls, None).section()];
        let text = kinetoscope::report::document(&title, &sections);
        std::io::stdout().write_all(format!("{text}\n").as_bytes())?;
    }
    traces::print_chosen(&chosen, |path| of_trace(path, arguments, &ranks))
}

/// The collectives of the ranks of a run, each of which has one file; empty where there are no several.
#[derive(Default)]
struct RunRanks {
    paths: Vec<PathBuf>,
    calls: Vec<RankCalls>,
}

impl RunRanks {
    /// Reads each of `ranks`. What cannot be read, or compared, is left out with a message: the report is of another one.
    fn of(ranks: Vec<traces::OfRank>) -> Self {
        // (Two files of a rank are of two runs, or of two times.)
        let is_twice = ranks.windows(2).any(|pair| pair[0].0 == pair[1].0);
        if ranks.len() < 2 || is_twice || ranks.len() > Matched::MOST_RANKS {
            if ranks.len() >= 2 {
                let reason =
                    if is_twice { "a rank has several files" } else { "they are too many" };
                eprintln!("the ranks are not compared: {reason}");
            }
            return Self::default();
        }
        let mut found = Self::default();
        for (rank, path) in ranks {
            match calls_of(rank, &path) {
                Ok(calls) => {
                    found.calls.push(calls);
                    found.paths.push(path);
                }
                Err(reason) => eprintln!("rank {rank} is not compared: {reason:#}"),
            }
        }
        if found.calls.len() < 2 { Self::default() } else { found }
    }
}

/// The collectives of a rank.
fn calls_of(rank: i64, path: &Path) -> Result<RankCalls> {
    let version = input::Version::of(path)?;
    let decoded = input::decode(path)?;
    let details = input::details_of_host(path, &decoded, &version)?;
    Ok(RankCalls::of(&HostIndex::of(&decoded.trace), &details, rank.to_string()))
}

fn of_trace(path: &Path, arguments: &Arguments, ranks: &RunRanks) -> Result<String> {
    let (diagnosis, damage) = read(path, &arguments.step, ranks)?;
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
    read(path, step, &RunRanks::default()).map(|(diagnosis, _)| diagnosis)
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
fn read(path: &Path, step: &step::Step, ranks: &RunRanks) -> Result<(Diagnosis, Option<String>)> {
    let version = input::Version::of(path)?;
    let decoded = input::decode(path)?;
    let details = input::details_of_host(path, &decoded, &version)?;
    let narrowed = step.trace(path, &decoded, &details)?;
    let trace = narrowed.as_ref().unwrap_or(&decoded.trace);
    let index = HostIndex::of(trace);
    let report = host(&index, &details);
    let sources = Sources { details: Some(&details), ..Sources::default() };
    let (name, user) = (path.to_string_lossy(), UserFacts::default());
    let triage_of = |part: &Trace| triage_all(part, &name, &sources, &user, false);
    let triaged = triage_of(trace);
    let mut facts = Facts::of(&index, &details, &report, &triaged);
    // (The collectives of a run say nothing of one step.)
    let place = ranks.paths.iter().position(|one| one == path);
    if let Some(at) = place.filter(|_| narrowed.is_none()) {
        facts = facts.in_run(&ranks.calls, at);
    }
    let diagnosis = diagnose_ranks(&facts, &triage_of);
    Ok((diagnosis, damage(&decoded.problems)))
}
