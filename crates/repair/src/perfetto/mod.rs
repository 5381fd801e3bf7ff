//! A model of Perfetto's JSON importer, small enough to run in a browser tab.
//!
//! It answers, without Perfetto, what Perfetto will do with a trace: which slices it drops (v51 to v56)
//! or spills to an overflow track and flags as an error (v57 and later), which ends it misplaces, which
//! flow events it cannot bind. The rules are facts about `src/trace_processor/importers/json`,
//! `importers/common/slice_tracker.cc`, `flow_tracker.cc` and `sorter/trace_sorter.h` of google/perfetto,
//! measured with trace processor v55.3; the same conditions decide at v58.2, so *zero crossings here*
//! means neither drops nor spills there.
//!
//! One file per rule set: `census` (what is wrong with events one by one), `threads` (which events share a
//! stack), `order` (in which order they are handled), `nesting` (the stack itself), `begins` (which ends close
//! which begins), `flow_ids` (which flows are started twice). `survey` runs them all, and
//! follows a plan's changes. Numbers are in [`trace::decimal`].

pub(crate) mod begins;
mod census;
pub(crate) mod flow_ids;
pub(crate) mod nesting;
pub(crate) mod order;
mod survey;
pub(crate) mod threads;

use trace::Trace;

pub(crate) use survey::Survey;

pub use crate::prediction::Prediction;
use crate::types::RepairPlan;
use crate::view::View;

/// Deepest nesting level that the importer shows, counted from 0 (`kMaxDepth` is 512 levels).
pub(crate) const MAX_DEPTH: usize = 512;

/// Predicts what the importer does with the trace as it stands.
#[must_use]
pub fn predict(trace: &Trace) -> Prediction {
    Survey::of(&View::of(trace)).prediction
}

/// Predicts, from nothing but the trace and the plan, what the importer does with the repaired trace. A plan
/// says the same of itself in [`RepairPlan::after`], where it followed its changes one by one.
#[must_use]
pub fn predict_after(trace: &Trace, plan: &RepairPlan) -> Prediction {
    Survey::of(&View::after(trace, plan)).prediction
}
