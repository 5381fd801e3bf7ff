//! M3: the GPU waits for work of the CPU that is not the launches themselves. Gaps count with the part before the launch.

use report::units::{percent, time};
use triage::WallPart;

use crate::{Confidence, Facts, Finding, Level, Rule};

/// From this share of the window on.
const LEAST_SHARE: f64 = 0.1;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = late(facts);
    for device in facts.devices() {
        found.extend(super::in_annotations::check(facts, &device));
        found.extend(super::one_call::check(facts, &device));
        found.extend(super::ddp_buffers::check(&device));
    }
    found
}

/// Devices that wait for late launches.
fn late(facts: &Facts<'_>) -> Vec<Finding> {
    facts
        .devices()
        .filter(|device| device.is_told() && !device.is_launch_bound())
        .filter_map(|device| {
            if let Some(between) = super::between_graphs::check(facts, &device) {
                return Some(between);
            }
            // (The same late launches, and more.)
            let hidden = || super::hidden_launches::check(facts, &device);
            if device.cold().is_some() || hidden().is_some() {
                return None;
            }
            let gaps = &device.gaps.all;
            let (late, late_pct) = device.late();
            let share = late_pct / 100.0;
            if share < LEAST_SHARE {
                return None;
            }
            let observation = format!(
                "{} stands still for {} because the CPU launches the next work late ({} of {}).",
                device.title(),
                time(late),
                percent(late_pct),
                facts.whole(),
            );
            let finding = Finding::fact(Rule::HostBound, "host_bound", observation)
                .level(Level::of_share(share))
                .confidence(device.confidence_of_launches().min(Confidence::Medium))
                .on(device.name)
                .bound(late.saturating_add(device.unexplained_but_late_ns()))
                .with("wall", "idle until late launches", time(late))
                .with(
                    format!("gaps.{}.all.host_ns", device.name),
                    "gaps before the launch",
                    time(gaps.host_ns),
                )
                .with(
                    format!("gaps.{}.all.bins", device.name),
                    "gaps above 100 µs",
                    time(gaps.bins.gt_100us.ns),
                );
            let late = [WallPart::Launch, WallPart::HostCompute];
            let text = format!(
                "{}{}{}",
                device.where_it_waits(),
                facts.in_one_iteration(&late),
                device.costs_unrecorded()
            );
            Some(finding.means(text.trim()))
        })
        .collect()
}
