//! Triage: where GPU time comes from, what could overlap and what could fuse.
#![allow(dead_code, reason = "triage lands piece by piece")]

pub(crate) mod arch;
mod attribution;
pub(crate) mod framework;
mod mapping;
mod nest;
pub(crate) mod overlap;
mod python;
mod replay;
pub(crate) mod site;
pub(crate) mod stages;

pub use arch::{ArchMatch, ArchRelation, ArchVerdict, ObservedArch};
pub use framework::{Framework, FrameworkVote};
pub use site::{Confidence, Location};
pub use stages::{Stage, StageRow};
