//! Memory snapshots and memory timelines.

pub mod event_range;
pub mod view;
