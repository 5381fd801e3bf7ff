//! `kinetoscope overlap`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use kinetoscope::artifacts::stage_of_word;
use kinetoscope::{OverlapDocument, Stage, TriageReport, overlap_windows};

use crate::companions::{self, Kept};
use crate::input::Opened;
use crate::step;
use crate::traces::{self, Chosen};
use crate::triage::{Facts, Given, How, guard, triage_only};

/// Rows that are drawn by default.
pub const ROWS: usize = 8;
/// Characters of a drawn row.
const COLUMNS: usize = 100;

#[derive(clap::Args)]
pub struct Arguments {
    /// Measured traces (.json or .json.gz), or folders of them. --mapping, --map and --capture add ops and Python lines.
    #[arg(required_unless_present = "measured")]
    trace: Vec<PathBuf>,
    /// The measured trace, as an option instead of an argument.
    #[arg(long = "trace", alias = "formal", value_name = "TRACE", num_args = 1.., id = "measured")]
    measured: Vec<PathBuf>,
    #[command(flatten)]
    companions: companions::Beside,
    #[command(flatten)]
    choice: traces::Choice,
    /// Show only this stage: extend, decode, mixed, capture, forward, backward, weight-grad, optimizer, all (no stage).
    #[arg(long, value_parser = stage_of_word)]
    stage: Option<Stage>,
    #[command(flatten)]
    step: step::Step,
    /// Rows to draw, by priority.
    #[arg(long, default_value_t = ROWS)]
    rows: usize,
    /// Time to draw around an instance, in µs (default: six times its duration, at least 40).
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u32).range(1..))]
    span: Option<u32>,
    #[command(flatten)]
    facts: Facts,
}

/// Prints the overlap opportunities, and for each row its neighbours, its calls and a picture.
///
/// # Errors
/// When a file cannot be read or is no trace, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let given: Vec<PathBuf> = arguments.trace.iter().chain(&arguments.measured).cloned().collect();
    let chosen = traces::choose(&given, arguments.choice.ranks())?;
    guard(&given, &chosen, &arguments.companions, &arguments.facts).allow_stdout()?;
    let mut companions = Kept::new(&arguments.companions);
    let mut stdout = std::io::stdout();
    let how = How { stage: arguments.stage, step: arguments.step.clone(), ..How::default() };
    for (at, Chosen { path, .. }) in chosen.iter().enumerate() {
        let given = Given {
            path,
            companions: companions.of(path)?,
            facts: &arguments.facts.read(path)?,
            keep_names: arguments.facts.keep_names,
        };
        let (read, _, triage) = triage_only(&given, &how)?;
        let span_ns = arguments.span.map(|us| i64::from(us) * 1_000);
        if at > 0 {
            stdout.write_all(b"\n")?;
        }
        let document = document(&given, &read, &triage, arguments.rows, span_ns);
        stdout.write_all(document.markdown().as_bytes())?;
    }
    Ok(())
}

/// The document of a triaged trace.
pub fn document<'a>(
    given: &Given<'_>,
    read: &'a Opened,
    report: &'a TriageReport,
    rows: usize,
    span_ns: Option<i64>,
) -> OverlapDocument<'a> {
    let trace = &read.decoded.trace;
    let instances: Vec<u32> = report.overlap.iter().map(|row| row.representative).collect();
    OverlapDocument {
        title: format!("Overlap in {}", read.source.name),
        report,
        windows: overlap_windows(trace, &instances, span_ns),
        metadata: &trace.metadata,
        keep_names: given.keep_names,
        mode: given.companions.mode(&read.source.name),
        rows,
        columns: COLUMNS,
    }
}
