//! What could overlap: how much of each kernel another stream hides, and what to do about the rest.

mod sweep;

#[cfg(test)]
mod corpus;

#[allow(unused_imports, reason = "triage lands piece by piece")]
pub(crate) use sweep::{SliceOverlap, sweep};
