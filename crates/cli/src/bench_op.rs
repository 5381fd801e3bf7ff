//! `kinetoscope bench-op`.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};
use kinetoscope::{Benchmark, HostIndex, all_benchmarks, benchmark_script};
use serde::Serialize;

use crate::guard::Guard;
use crate::input;

#[derive(clap::Args)]
pub struct Arguments {
    /// A trace (.json or .json.gz) with recorded sizes (record_shapes=True).
    trace: PathBuf,
    /// The op, as `kinetoscope cpu` names it: aten::mm.
    #[arg(long, required_unless_present = "all")]
    op: Option<String>,
    /// Which kind of calls with equal arguments: 1 is the one with most time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    kind: u32,
    /// The scripts of all ops and kinds instead, one JSON object per line: `op`, `kind`, `calls`, and `script` or `reason`.
    #[arg(long, conflicts_with_all = ["op", "kind"])]
    all: bool,
}

/// Prints a PyTorch script that times one op with the arguments that the trace recorded.
///
/// # Errors
/// When the file cannot be read or is no trace, has no such op or not its sizes, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let path = &arguments.trace;
    Guard::of([path.as_path()]).allow_stdout()?;
    let version = input::Version::of(path)?;
    let decoded = input::decode(path)?;
    let op = arguments.op.as_deref().unwrap_or_default();
    let wants = |name: &str| arguments.all || name == op;
    let details = input::details_of_ops(path, &decoded, &version, wants)?;
    let HostIndex { slices, gpu } = HostIndex::of(&decoded.trace);
    if arguments.all {
        return print_all(&all_benchmarks(&slices, &gpu, &details));
    }
    let place = arguments.kind as usize - 1;
    match benchmark_script(&slices, &gpu, &details, op, place) {
        Ok(script) => Ok(std::io::stdout().write_all(script.as_bytes())?),
        Err(reason) => bail!("no script: {reason}"),
    }
}

/// A line of `--all`.
#[derive(Serialize)]
struct Line<'a> {
    op: &'a str,
    kind: usize,
    calls: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

fn print_all(benchmarks: &[Benchmark<'_>]) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for Benchmark { op, kind, calls, script } in benchmarks {
        let reason = script.as_ref().err().map(ToString::to_string);
        let script = script.as_ref().ok().map(String::as_str);
        serde_json::to_writer(&mut out, &Line { op, kind: *kind, calls: *calls, script, reason })?;
        writeln!(out)?;
    }
    Ok(out.flush()?)
}
