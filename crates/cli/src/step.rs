//! `--step`: one iteration of a trace in place of all of it.

use std::path::Path;

use anyhow::{Result, bail};
use kinetoscope::artifacts::{UserFacts, triage_all};
use kinetoscope::trace::Trace;
use kinetoscope::{
    Decoded, Details, Facts, HostIndex, Iterations, Sources, diagnose_ranks, host, narrow,
};

/// Iterations that a message names.
const NAMED: usize = 8;

/// What narrows a report to one iteration.
#[derive(Clone, Default, clap::Args)]
pub struct Step {
    /// Only this iteration: its name as `diagnose` lists it, such as `ProfilerStep#3`. What the CPU did in it, and the GPU work that
    /// it launched; the first one of that name.
    #[arg(id = "step", long, value_name = "NAME")]
    name: Option<String>,
}

impl Step {
    /// The trace narrowed to the iteration; `None` where none is asked for.
    ///
    /// # Errors
    /// When the file has no iteration of that name: the message names some that it has.
    pub fn trace(
        &self,
        path: &Path,
        decoded: &Decoded,
        details: &Details,
    ) -> Result<Option<Trace>> {
        let Some(name) = &self.name else { return Ok(None) };
        let trace = &decoded.trace;
        let index = HostIndex::of(trace);
        let report = host(&index, details);
        let sources = Sources { details: Some(details), ..Sources::default() };
        let (file, facts) = (path.to_string_lossy(), UserFacts::default());
        let triage_of = |part: &Trace| triage_all(part, &file, &sources, &facts, false);
        let triaged = triage_of(trace);
        let whole = Facts::of(&index, details, &report, &triaged);
        let found = diagnose_ranks(&whole, &triage_of).iterations;
        let Some(iterations) = found else {
            bail!("{}: it has no steps, passes or ranges that repeat", path.display());
        };
        // (Of several with one name the report has the number, too.)
        let shown = iterations.list.iter().find(|one| one.shown_name() == *name);
        match shown.or_else(|| iterations.list.iter().find(|one| one.name == *name)) {
            Some(iteration) => Ok(Some(narrow(trace, iteration.window(), name))),
            None => bail!(
                "{}: it has no iteration {name:?}; it has {}",
                path.display(),
                some(&iterations)
            ),
        }
    }
}

/// The first names.
fn some(iterations: &Iterations) -> String {
    let names = iterations.list.iter().map(|one| format!("{:?}", one.shown_name()));
    let mut text = names.take(NAMED).collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = iterations.list.len().checked_sub(NAMED) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
