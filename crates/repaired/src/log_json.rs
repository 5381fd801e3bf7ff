//! The repair log as JSON: what the command line writes and the page offers.
//!
//! One object with a `schema` number. A change of meaning raises the number; a new key does not.

use decode::Decoded;
use repair::{Prediction, RepairPlan};
use serde::Serialize;

use crate::problems::ProblemRow;
use crate::proof::Proof;
use crate::repair_rows::{ImpossibleRow, LaneRow, LogRow, RuleRow};

/// Schema of [`repair_log_json`].
pub const REPAIR_LOG_SCHEMA: u32 = 1;

#[derive(Serialize)]
struct RepairLog<'a> {
    schema: u32,
    version: &'static str,
    damaged: bool,
    time_base: Option<TimeBaseJson>,
    before: &'a Prediction,
    after: &'a Prediction,
    rules: Vec<RuleRow>,
    lanes: Vec<LaneRow>,
    impossible: Vec<ImpossibleRow>,
    changes: Vec<LogRow>,
    proof: Option<&'a Proof>,
    problems: Vec<ProblemRow>,
}

#[derive(Serialize)]
struct TimeBaseJson {
    subtracted_ns: String,
    reason: repair::BaseReason,
}

/// The repair log: every rule, every changed event with old and new place, and the verification.
///
/// # Errors
/// Never for these types; required by serde's signature.
pub fn repair_log_json(
    decoded: &Decoded,
    plan: &RepairPlan,
    proof: Option<&Proof>,
) -> Result<String, serde_json::Error> {
    let trace = &decoded.trace;
    let mut text = serde_json::to_string_pretty(&RepairLog {
        schema: REPAIR_LOG_SCHEMA,
        version: crate::VERSION,
        damaged: !plan.is_identity(),
        time_base: plan
            .base
            .map(|base| TimeBaseJson { subtracted_ns: base.ns.to_string(), reason: base.reason }),
        before: &plan.before,
        after: &plan.after,
        rules: plan.counts.iter().map(|(rule, count)| RuleRow::new(*rule, *count)).collect(),
        lanes: LaneRow::all(trace, plan),
        impossible: ImpossibleRow::all(trace, plan),
        changes: plan.changes().iter().map(|change| LogRow::new(trace, plan, change)).collect(),
        proof,
        problems: decoded.problems.iter().map(ProblemRow::new).collect(),
    })?;
    text.push('\n');
    Ok(text)
}
