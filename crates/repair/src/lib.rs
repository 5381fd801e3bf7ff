//! Repair: predicts what Perfetto does with a trace, plans the changes that make it show everything, and applies
//! them.
//!
//! Constraints of this crate:
//!
//! * [`plan`] is pure: a [`RepairPlan`] depends only on the trace and the options;
//! * [`Applier`] splices the original bytes as they stream by: an event without an edit is
//!   copied byte for byte, and so is a file that needs no repair;
//! * durations never change, except with [`PlanOptions::clip_impossible`];
//! * every change is in the log, with its rule.
//!
//! The rules are those of Perfetto's JSON importer (see [`perfetto`]).

#![warn(unreachable_pub)]

mod apply;
mod aside;
mod base;
mod first_fit;
mod flows;
mod frame;
pub mod impossible;
mod labels;
mod lanes;
mod pairs;
mod patch;
pub mod perfetto;
mod pile;
mod plan;
mod prediction;
mod rows;
mod splice;
mod split;
mod types;
mod view;

pub use apply::Applier;
pub use plan::plan;
pub use prediction::Prediction;
pub use types::{
    Action, BaseReason, Change, CrossingGroup, EventEdit, Impossible, Lane, LaneKind, PlanOptions,
    RepairPlan, Rule, TimeBase,
};
