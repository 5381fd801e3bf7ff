//! M10: communication that no other kernel of the device hides.

use report::units::{percent, time};

use crate::{Facts, Finding, Level, Rule};

/// From this share of the device's span on.
const LEAST_SHARE: f64 = 0.05;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    facts
        .devices()
        .filter(|device| device.is_told())
        .filter_map(|device| {
            let (exposed, span) = device.exposed_communication();
            let share = exposed as f64 / span.max(1) as f64;
            if share < LEAST_SHARE {
                return None;
            }
            let text = format!(
                "{} runs nothing but communication for {} ({} of its span).",
                device.title(),
                time(exposed),
                percent(100.0 * share)
            );
            Some(
                Finding::fact(Rule::Communication, "exposed", text)
                    .level(Level::of_share(share))
                    .on(device.name)
                    .bound(exposed)
                    .means("Part of it may be waiting for other ranks: only their traces tell.")
                    .with(
                        format!("verdicts.devices.{}.M10", device.name),
                        "exposed communication",
                        time(exposed),
                    ),
            )
        })
        .collect()
}
