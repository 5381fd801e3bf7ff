//! `kinetoscope bench-op`.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};
use kinetoscope::{HostIndex, benchmark_script};

use crate::guard::Guard;
use crate::input;

#[derive(clap::Args)]
pub struct Arguments {
    /// A trace (.json or .json.gz) with recorded sizes (record_shapes=True).
    trace: PathBuf,
    /// The op, as `kinetoscope cpu` names it: aten::mm.
    #[arg(long)]
    op: String,
    /// Which kind of calls with equal arguments: 1 is the one with most time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    kind: u32,
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
    let details = input::details_of_op(path, &decoded, &version, &arguments.op)?;
    let HostIndex { slices, gpu } = HostIndex::of(&decoded.trace);
    let place = arguments.kind as usize - 1;
    match benchmark_script(&slices, &gpu, &details, &arguments.op, place) {
        Ok(script) => Ok(std::io::stdout().write_all(script.as_bytes())?),
        Err(reason) => bail!("no script: {reason}"),
    }
}
