//! `kinetoscope compare`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kinetoscope::artifacts::{Artifact, ArtifactOptions, METADATA};
use kinetoscope::{Run, compare, report};

use crate::companions::{self, Kept};
use crate::failure::Usage;
use crate::guard::Guard;
use crate::report::of_trace as report_of_trace;
use crate::traces;
use crate::triage::{Facts, Given, How, triage_one};

#[derive(clap::Args)]
pub struct Arguments {
    /// Run A: a trace, a folder that contains it, or a folder that `triage --out` wrote.
    a: PathBuf,
    /// Run B, likewise.
    b: PathBuf,
    /// Mapping trace of run A: the same workload without graphs.
    #[arg(long, value_name = "TRACE")]
    mapping_a: Option<PathBuf>,
    /// Mapping trace of run B.
    #[arg(long, value_name = "TRACE")]
    mapping_b: Option<PathBuf>,
    /// Kernel map of run A.
    #[arg(long, value_name = "MAP.json")]
    map_a: Option<PathBuf>,
    /// Kernel map of run B.
    #[arg(long, value_name = "MAP.json")]
    map_b: Option<PathBuf>,
    /// Capture traces of run A.
    #[arg(long, value_name = "TRACE", num_args = 1..)]
    capture_a: Vec<PathBuf>,
    /// Capture traces of run B.
    #[arg(long, value_name = "TRACE", num_args = 1..)]
    capture_b: Vec<PathBuf>,
    /// Rank to use from folders with several ranks (default: the lowest).
    #[arg(long)]
    rank: Option<i64>,
    /// Run details that apply to both runs, if these are traces; each run also loads the server_args.json in its folder.
    #[command(flatten)]
    facts: Facts,
}

/// Prints whether two runs are comparable, and what differs.
///
/// # Errors
/// When a file cannot be read or is no trace, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { a, b, mapping_a, mapping_b, map_a, map_b, capture_a, capture_b, rank, facts } =
        arguments;
    let beside = |mapping: &Option<PathBuf>, map: &Option<PathBuf>, capture: &[PathBuf]| {
        companions::Beside { mapping: mapping.clone(), map: map.clone(), capture: capture.to_vec() }
    };
    let mut guard = Guard::of([a.as_path(), b.as_path()]);
    let sides = [beside(mapping_a, map_a, capture_a), beside(mapping_b, map_b, capture_b)];
    sides.iter().flat_map(companions::Beside::inputs).for_each(|path| guard.add(&path));
    facts.inputs().iter().for_each(|path| guard.add(path));
    guard.allow_stdout()?;
    let a = load(a, &beside(mapping_a, map_a, capture_a), *rank, facts)?;
    let b = load(b, &beside(mapping_b, map_b, capture_b), *rank, facts)?;
    let name =
        |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let title = format!("A: {}, B: {}", name(&arguments.a), name(&arguments.b));
    let text = report::document(&title, &compare(&a, &b).sections());
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// A run from its artifacts, or from its trace.
fn load(path: &Path, beside: &companions::Beside, rank: Option<i64>, facts: &Facts) -> Result<Run> {
    if path.join(METADATA).is_file() {
        if beside.mapping.is_some() || beside.map.is_some() || !beside.capture.is_empty() {
            let text = "contains artifacts, which are already complete: pass --mapping, --map and --capture to triage instead";
            return Err(Usage(format!("{} {text}", path.display())).into());
        }
        // A table that was not made is absent.
        let there = Run::FILES.into_iter().filter(|name| path.join(name).exists());
        let files = there.map(|name| {
            let file = path.join(name);
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            Ok(Artifact { name: name.to_owned(), text })
        });
        return Ok(Run::of(&files.collect::<Result<Vec<_>>>()?)?);
    }
    let one = traces::one(path, rank)?;
    let mut companions = Kept::new(beside);
    let given = Given {
        path: &one.path,
        companions: companions.of(&one.path)?,
        facts: &facts.read(&one.path)?,
        keep_names: facts.keep_names,
    };
    let mut done = triage_one(&given, &How::default())?;
    let options = ArtifactOptions { keep_names: facts.keep_names };
    done.files.extend(report_of_trace(&one.path, options)?);
    Ok(Run::of(&done.files)?)
}
