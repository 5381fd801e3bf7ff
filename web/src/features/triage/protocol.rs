//! Messages about single rows of triage's tables.

pub use kinetoscope::{
    CallSite, InstanceRow, KernelDetails, KernelKey, OverlapWindow, WindowSlice,
};

/// Launches of a kernel that are told by themselves: the first, and those with a mark.
pub const FIRST_LAUNCHES: usize = 50;
