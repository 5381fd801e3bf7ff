//! The JSON document that `kinetoscope breakdown --json` prints.
//!
//! One object with a `schema` number. A change of meaning raises the number; a new key does not.

use analysis::TraceReport;
use decode::Decoded;
use repair::Prediction;
use repaired::{Crossings, ProblemRow, crossings};
use serde::Serialize;

/// Schema of [`breakdown_json`].
pub const BREAKDOWN_SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Breakdown<'a> {
    schema: u32,
    #[serde(flatten)]
    analyses: analysis::BreakdownJson<'a>,
    perfetto: Perfetto<'a>,
    problems: Vec<ProblemRow>,
}

#[derive(Serialize)]
struct Perfetto<'a> {
    /// Slices that v51 to v56 drop (v57 and later spill and flag these).
    predicted_drops_v51_v56: u64,
    /// Pairs of slices on one (pid, tid) that cross, in exact nanoseconds.
    crossings_exact: u64,
    /// Slices in such pairs.
    crossing_slices_exact: u64,
    /// The other results of the model.
    prediction: &'a Prediction,
}

/// `kinetoscope breakdown --json`.
///
/// # Errors
/// Never for these types; required by serde's signature.
pub fn breakdown_json(
    decoded: &Decoded,
    report: &TraceReport,
    before: &Prediction,
) -> Result<String, serde_json::Error> {
    let Crossings { pairs, slices } = crossings(&decoded.trace);
    let mut text = serde_json::to_string_pretty(&Breakdown {
        schema: BREAKDOWN_SCHEMA,
        analyses: report.breakdown(),
        perfetto: Perfetto {
            predicted_drops_v51_v56: before.drops_v51_v56(),
            crossings_exact: pairs,
            crossing_slices_exact: slices,
            prediction: before,
        },
        problems: decoded.problems.iter().map(ProblemRow::new).collect(),
    })?;
    text.push('\n');
    Ok(text)
}
