//! The `[memory]` events of a trace as a memory timeline.

use host::memory_over_time::{MemoryChange, MemoryOverTime};
use snapshot::{MemoryTimeline, Step};

/// The memory of a device over the `[memory]` events of a trace.
#[must_use]
pub fn timeline_of_events(of: MemoryOverTime) -> MemoryTimeline {
    let step = |change: &MemoryChange| Step {
        time_ns: change.at_ns,
        label: change.label,
        bytes: change.bytes,
        reserved: change.reserved,
    };
    let steps = of.changes.iter().map(step).collect();
    MemoryTimeline::of_events(of.labels, steps)
}

/// `CPU`, or the number of the device.
#[must_use]
pub fn device_name(of: &MemoryOverTime) -> String {
    match of.device_type {
        Some(0) => "CPU".to_owned(),
        _ => of.device_id.unwrap_or_default().to_string(),
    }
}
