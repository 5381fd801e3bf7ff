//! Repair: what Perfetto would do with a trace, what must change so that it shows everything, and the
//! change itself.
//!
//! Constraints of this crate:
//!
//! * [`plan`] is pure: a [`RepairPlan`] follows from the trace and the options alone;
//! * [`Applier`] splices the original bytes as they stream by: an event that the plan does not name comes
//!   out byte for byte, a file that needs no repair comes out whole;
//! * durations never change, with the one exception that the user asks for by name;
//! * every change is in the log, with the rule that asked for it.
//!
//! The rules are those of Perfetto's JSON importer (see [`perfetto`]).

mod apply;
mod aside;
mod base;
mod flows;
mod frame;
pub mod impossible;
mod labels;
mod lanes;
mod patch;
pub mod perfetto;
mod plan;
mod rows;
mod splice;
mod split;
mod view;

pub use apply::Applier;
pub use lanes::CrossingGroup;
pub use perfetto::Prediction;
pub use plan::{
    Action, BaseReason, Change, EventEdit, Lane, LaneKind, PlanOptions, RepairPlan, Rule, TimeBase,
    plan,
};
