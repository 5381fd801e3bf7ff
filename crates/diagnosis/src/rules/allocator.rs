//! M11: calls that allocate or free in the steps: after the first steps there should be none. Where there is one for each tensor, the
//! cache is off.

use report::units::{count, percent, time};
use triage::WallPart;

use crate::{Facts, Finding, Level, Rule};

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    if let Some((n_mallocs, n_tensors)) = facts.uncached {
        let found = without_cache(facts, n_mallocs, n_tensors);
        if !found.is_empty() {
            return found;
        }
    }
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

/// What is said where each tensor is a call of the driver.
fn without_cache(facts: &Facts<'_>, n_mallocs: u64, n_tensors: u64) -> Vec<Finding> {
    let of_device = |device: crate::facts::Device<'_>| {
        let row = device.wall(WallPart::Allocation)?;
        let text = format!(
            "{} calls allocate memory of the driver, for {} tensors: PyTorch's cache of memory is off. {} stands still for {} ({} of {}) \
             while the CPU allocates or frees.",
            count(n_mallocs),
            count(n_tensors),
            device.title(),
            time(row.total_ns),
            percent(row.share_pct),
            facts.whole(),
        );
        let finding = Finding::fact(Rule::Allocator, "uncached", text)
            .level(Level::of_share(row.share_pct / 100.0))
            .on(device.name)
            .bound(row.total_ns)
            .with("wall", "idle while memory is allocated or freed", time(row.total_ns));
        Some(finding)
    };
    facts.devices().filter_map(of_device).collect()
}
