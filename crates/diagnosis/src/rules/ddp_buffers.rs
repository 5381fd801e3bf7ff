//! M3, where DistributedDataParallel sends the model's buffers from rank 0 before each forward pass.

use report::units::{count, percent, time};
use timeline::intervals::{both, holds, length, union};

use crate::facts::Device;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// From this share of the window on.
const LEAST_SHARE: f64 = 0.01;

/// What the finding says of a device.
pub fn check(facts: &Facts<'_>, device: &Device<'_>) -> Option<Finding> {
    if !device.is_told() {
        return None;
    }
    let (_, window_ns) = device.busy_told()?;
    let times = device.broadcasts_buffers();
    let idle_ns = length(&both(&device.gaps_told(), &times));
    let is_own = |launch: &host::HostSlice| holds(&times, launch.start_ns);
    let own = device.slices().filter(|one| one.launch.as_ref().is_some_and(is_own));
    let work = union(own.map(|one| one.slice.interval()).collect());
    let work_ns = length(&both(&work, &device.window()));
    let share = idle_ns as f64 / window_ns as f64;
    if share < LEAST_SHARE {
        return None;
    }
    let text = format!(
        "{} stands still for {} ({} of {}) while DistributedDataParallel broadcasts the model's buffers at the beginning of {} forward \
         passes.",
        device.title(),
        time(idle_ns),
        percent(100.0 * share),
        facts.whole(),
        count(times.len() as u64),
    );
    Some(
        Finding::fact(Rule::HostBound, "ddp_buffers", text)
            .level(Level::of_share(share))
            .confidence(Confidence::Medium)
            .on(device.name)
            .bound(idle_ns.saturating_add(work_ns))
            .means(format!(
                "The broadcast takes the CPU {} in all: it copies each buffer by an op of its own. The bound, an estimate, is the idle time \
                 and the {} that its kernels and copies take.",
                time(length(&times)),
                time(work_ns)
            ))
            .with("wall", "idle time while buffers are broadcast", time(idle_ns)),
    )
}
