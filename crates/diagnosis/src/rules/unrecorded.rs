//! M3, where nothing is recorded on the CPU while the device is idle: what stands before and after tells where to look.

use report::units::{percent, time};
use triage::WallPart;

use crate::facts::Device;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// From this share of the window on.
const LEAST_SHARE: f64 = 0.03;

/// What the finding says of a device.
pub fn check(facts: &Facts<'_>, device: &Device<'_>) -> Option<Finding> {
    let (_, window_ns) = device.busy_told()?;
    let share_of = |ns: i64| ns as f64 / window_ns as f64;
    let unexplained_ns = device.wall(WallPart::Unexplained)?.total_ns;
    if share_of(unexplained_ns) < LEAST_SHARE || !device.is_told() || device.cold().is_some() {
        return None;
    }
    let silence = device.silence()?;
    let share = share_of(silence.ns);
    if share < LEAST_SHARE {
        return None;
    }
    let observation = format!(
        "{} is idle for {} ({} of {}) while nothing is recorded on the CPU that explains it, {}.",
        device.title(),
        time(silence.ns),
        percent(100.0 * share),
        facts.whole(),
        silence.place
    );
    let finding = Finding::fact(Rule::HostBound, "unrecorded", observation)
        .level(Level::of_share(share))
        .confidence(Confidence::Medium)
        .on(device.name)
        .bound(silence.ns)
        .with("wall", "idle time in which nothing is recorded on the CPU", time(silence.ns));
    Some(finding.means(silence.lengths.trim_start()))
}
