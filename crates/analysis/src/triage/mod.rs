//! Triage: where GPU time comes from, what could overlap and what could fuse.

#[allow(dead_code, reason = "attribution, overlap and fuse land one by one")]
pub(crate) mod site;

pub use site::{Confidence, Location};
