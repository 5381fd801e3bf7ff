//! M3, where DistributedDataParallel sends the model's buffers from rank 0 before each forward pass.

use report::units::{plural, time};
use timeline::intervals::{both, length};

use crate::facts::Device;
use crate::words::lower;
use crate::{Confidence, Finding, Level, Rule};

/// From this share of the window on.
const LEAST_SHARE: f64 = 0.01;

/// What the finding says of a device.
pub fn check(device: &Device<'_>) -> Option<Finding> {
    if !device.is_told() {
        return None;
    }
    let (_, window_ns) = device.busy_told()?;
    let times = device.broadcasts_buffers();
    let saved_ns = device.saved_without_times_ns(&times);
    let share = saved_ns as f64 / window_ns as f64;
    if share < LEAST_SHARE {
        return None;
    }
    let idle_ns = length(&both(&device.gaps_told(), &times));
    let text = format!(
        "DistributedDataParallel broadcasts the model's buffers at the beginning of {}, which takes the CPU {}; {} is idle for {} of it.",
        plural(times.len() as u64, "forward pass", "forward passes"),
        time(length(&times)),
        lower(&device.title()),
        time(idle_ns),
    );
    Some(
        Finding::fact(Rule::HostBound, "ddp_buffers", text)
            .level(Level::of_share(share))
            .confidence(Confidence::Medium)
            .on(device.name)
            .bound(saved_ns)
            .means(
                "Each buffer takes a copy op of its own, and the model begins after them. The bound, an estimate, is how much sooner the \
                 GPU would finish without these ops and their kernels.",
            )
            .with("wall", "idle time while buffers are broadcast", time(idle_ns)),
    )
}
