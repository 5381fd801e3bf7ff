//! M3: the GPU waits for work of the CPU that is not the launches themselves. Gaps count with the part before the launch.

use report::units::{percent, time};

use crate::{Confidence, Facts, Finding, Level, Rule};

/// From this share of the window on.
const LEAST_SHARE: f64 = 0.1;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    facts.devices().filter(|device| device.is_starved() && !device.is_launch_bound()).filter_map(|device| {
        let gaps = &device.gaps.all;
        let (late, late_pct) = device.late();
        let share = late_pct / 100.0;
        if share < LEAST_SHARE {
            return None;
        }
        let observation = format!(
            "{} stands still for {} because the CPU launches the next work late ({} of its wall time).",
            device.title(),
            time(late),
            percent(late_pct),
        );
        let mut names: Vec<&str> = Vec::new();
        for gap in &gaps.ten {
            if let Some(host) = &gap.host_at_t_star
                && !names.contains(&without_address(&host.name))
            {
                names.push(without_address(&host.name));
            }
        }
        names.truncate(3);
        let finding = Finding::fact(Rule::HostBound, "host_bound", observation)
            .level(Level::of_share(share))
            .confidence(Confidence::Medium)
            .on(device.name)
            .bound(late)
            .with("wall", "idle until late launches", time(late))
            .with(format!("gaps.{}.all.host_ns", device.name), "gaps before the launch", time(gaps.host_ns))
            .with(format!("gaps.{}.all.bins", device.name), "gaps above 100 µs", time(gaps.bins.gt_100us.ns));
        Some(if names.is_empty() {
            finding
        } else {
            finding.means(format!("Just before the ten longest gaps end, the CPU is in {}.", names.join(", ")))
        })
    }).collect()
}

/// A name without the address of the object: `<built-in method replay of PyCapsule object at 0x7fec>`.
fn without_address(name: &str) -> &str {
    name.split_once(" at 0x").map_or(name, |(name, _)| name.trim_start_matches('<'))
}
