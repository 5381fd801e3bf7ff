//! M16: most kernels are short, no graph runs them, and the GPU waits. Kernels whose launch is in the file tell that, so not where most of
//! the work is launched by other calls.

use report::units::{count, percent};

use crate::{Facts, Finding, Level, Rule};

/// More than this share of the kernels is below 5 us.
const MOST: f64 = 0.5;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    if facts.launched_elsewhere().is_some() {
        return Vec::new();
    }
    facts
        .devices()
        .filter_map(|device| {
            let short = &device.figures.short_linked;
            let (n, ns) = (short.lt_5us.share_n?, short.lt_5us.share_ns?);
            let graphs = device.figures.graphs.share_n.unwrap_or_default();
            if n <= MOST || graphs >= MOST || !device.is_starved() {
                return None;
            }
            let by_none = if graphs > 0.0 { "" } else { ", and no graph launches them" };
            let text = format!(
                "{} of {} kernels take less than 5 µs ({} of the kernel time){by_none}.",
                percent(100.0 * n),
                count(short.n as u64),
                percent(100.0 * ns),
            );
            Some(
                Finding::fact(Rule::ShortKernels, "short_kernels", text)
                    .level(Level::Medium)
                    .on(device.name)
                    .with(
                        format!("verdicts.devices.{}.M16_linked", device.name),
                        "below 5 µs",
                        percent(100.0 * n),
                    ),
            )
        })
        .collect()
}
