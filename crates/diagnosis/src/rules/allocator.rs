//! M11: calls that allocate or free in the steps: after the first steps there should be none.

use report::units::{count, percent, time};

use crate::{Facts, Finding, Level, Rule};

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let calls = &facts.host.runtime.alloc_calls_in_cpu_step;
    if calls.n == 0 {
        return Vec::new();
    }
    let devices = facts.devices().map(|device| device.figures.idle.cover_ns.malloc_free);
    let covered = devices.max().unwrap_or_default();
    let steps: i64 = facts.slices.steps.iter().map(host::HostSlice::dur_ns).sum();
    let share = covered as f64 / steps.max(1) as f64;
    let text = format!(
        "{} calls in the steps allocate or free memory of the driver ({}); they cover {} of idle time.",
        count(calls.n),
        time(calls.total_ns),
        time(covered)
    );
    vec![
        Finding::fact(Rule::Allocator, "in_steps", text)
            .level(Level::of_share(share))
            .bound(covered)
            .means("PyTorch's cache grows or is emptied. In a steady state it does neither.")
            .with("runtime.alloc_calls_in_cpu_step", "share of the steps", percent(100.0 * share)),
    ]
}
