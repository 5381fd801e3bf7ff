//! M3, where the device waits for one function of the program that launches nothing: such as the making of a batch.

use report::units::{plural, time};

use crate::facts::Device;
use crate::words::lower;
use crate::{Confidence, Finding, Level, Rule};

/// From this share of the window on.
const LEAST_SHARE: f64 = 0.1;

/// What the finding says of a device whose launches limit it: where other work of the CPU does, that has its place. (Where one call has most of
/// the late time, that is said with its cure.)
pub fn check(device: &Device<'_>) -> Option<Finding> {
    if !device.is_launch_bound()
        || !device.is_told()
        || device.cold().is_some()
        || device.first_step().is_some()
    {
        return None;
    }
    let place = device.without_launch().filter(|_| device.one_work().is_none())?;
    let (_, window_ns) = device.busy_told()?;
    // (No more than late launches have.)
    let bound_ns = place.total_ns.min(device.late().0);
    let share = bound_ns as f64 / window_ns as f64;
    if share < LEAST_SHARE {
        return None;
    }
    let text = format!(
        "{} launches nothing, and {} waits for it for {} ({}).",
        place.name,
        lower(&device.title()),
        time(place.total_ns),
        plural(place.n, "call", "calls"),
    );
    Some(
        Finding::fact(Rule::HostBound, "without_launch", text)
            .level(Level::of_share(share))
            .confidence(Confidence::Medium)
            .on(device.name)
            .bound(bound_ns)
            .with("idle_places", "idle time in that function", time(place.total_ns)),
    )
}
