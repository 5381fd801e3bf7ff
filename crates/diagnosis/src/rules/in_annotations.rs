//! M3, where the program's own annotations are all that is recorded: idle time in them is work of the CPU, and they tell which.

use report::units::{percent, time};

use crate::facts::Device;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// From this share of the window on.
const LEAST_SHARE: f64 = 0.1;
/// The same of annotations of the program's own, where that is a fact and no action: without it the bar calls this time unexplained.
const LEAST_NAMED_SHARE: f64 = 0.02;
/// How annotations of PyTorch begin: they tell the stage, and not what the CPU does in it.
const PYTORCH: [&str; 5] =
    ["## ", "Optimizer.", "DistributedDataParallel.", "enumerate(DataLoader)", "nccl:"];

/// What the finding says of a device.
pub fn check(facts: &Facts<'_>, device: &Device<'_>) -> Option<Finding> {
    if !device.is_told() || device.cold().is_some() {
        return None;
    }
    let (_, window_ns) = device.busy_told()?;
    let ranges = device.in_ranges()?;
    let share = ranges.ns as f64 / window_ns as f64;
    let says_what = !PYTORCH.iter().any(|start| ranges.most().starts_with(start));
    if share < if says_what { LEAST_NAMED_SHARE } else { LEAST_SHARE } {
        return None;
    }
    let observation = format!(
        "{} is idle for {} ({} of {}) in {}: an annotation of the program is open, but no op, call or frame is recorded in it.",
        device.title(),
        time(ranges.ns),
        percent(100.0 * share),
        facts.whole(),
        ranges.named(),
    );
    let finding = Finding::fact(Rule::HostBound, "in_annotations", observation)
        .level(Level::of_share(share))
        .confidence(Confidence::Medium)
        .on(device.name)
        .with("wall", "idle time in annotations without an op, call or frame", time(ranges.ns));
    Some(if share < LEAST_SHARE { finding } else { finding.bound(ranges.ns) })
}
