//! Memory that grows from step to step, and memory that is reserved but not in use.

use report::{Confidence, Finding};

use super::stable;
use crate::amounts::{percent, size};
use crate::claim::put;
use crate::report::DeviceReport;
use crate::whatif::WhatIf;

const GIB: i64 = 1 << 30;

pub(super) fn leaking(device: &str, figures: &DeviceReport, to: &mut Vec<Finding>) {
    for leak in figures.leaks.iter().flatten().take(3) {
        let observation = format!(
            "Device {device}: live memory of {} grew in each of {} consecutive steps, by {} per step ({} in all).",
            leak.site,
            leak.steps,
            size(leak.bytes_per_step),
            size(leak.total)
        );
        put(
            to,
            "growing-memory",
            Confidence::Medium,
            [
                &observation,
                "References to its tensors accumulate: for example a list of losses that keep their graphs. Caches that \
                         fill up look the same.",
                "Store detached values (loss.item(), tensor.detach().cpu()), or bound the container.",
                "The memory in use after each step stays the same.",
                &format!("devices.{device}.leaks"),
            ],
        );
    }
}

pub(super) fn fragmentation(
    device: &str,
    figures: &DeviceReport,
    expandable: bool,
    what_if: Option<&WhatIf>,
    to: &mut Vec<Finding>,
) {
    let (reserved, hard) = (figures.totals.reserved, figures.free.hard);
    let share = percent(hard, reserved);
    // Below 1 GiB the ratio is high on healthy runs.
    if reserved < GIB || share < 10.0 {
        return;
    }
    // The replay of the run has the answer, and a finding of its own.
    if what_if.is_some_and(WhatIf::is_decisive) {
        return;
    }
    // What the peak of reserved memory has beyond the memory in use is all that can be gained.
    let gain = figures.timeline.as_ref().filter(|it| it.replay.trace_matches_snapshot).map(|it| {
        percent(it.replay.peak_reserved - it.replay.peak_requested, it.replay.peak_reserved)
    });
    if gain.is_some_and(|gain| gain < 10.0) {
        return;
    }
    let observation = format!(
        "Device {device}: {} of {} reserved ({share:.0}%) are free ranges that empty_cache cannot return, because other blocks \
         of their segments are in use.",
        size(hard),
        size(reserved)
    );
    let stable = stable(figures.timeline.as_ref().is_some_and(|it| it.has_varying_sizes));
    let action = if expandable {
        format!(
            "Expandable segments are already on. {stable} Do not add max_split_size_mb: together they can grow reserved memory without \
             bound (pytorch#193400)."
        )
    } else if let Some(run) = what_if.and_then(WhatIf::expandable) {
        format!(
            "{stable} Under {} a model that reproduces the recorded events reserves {} at most, recorded are {} (an estimate).",
            run.setting,
            size(run.peak_reserved),
            size(run.peak_reserved.saturating_add(run.saved))
        )
    } else {
        format!(
            "{stable} What expandable_segments:True would change cannot be computed from this file."
        )
    };
    let level = if share >= 30.0 { "High" } else { "Medium" };
    put(
        to,
        "fragmentation",
        Confidence::Medium,
        [
            &observation,
            &format!(
                "{level} fragmentation at the time of the snapshot (heuristic: 10% and 30% of reserved)."
            ),
            &action,
            &format!("Less than {} is free and not returnable.", size(hard)),
            &format!("devices.{device}.totals.inactive_split"),
        ],
    );
}

pub(super) fn rounding(device: &str, figures: &DeviceReport, to: &mut Vec<Finding>) {
    let (active, waste) = (figures.totals.active, figures.totals.rounding_waste);
    if waste < 256 << 20 || percent(waste, active) < 10.0 {
        return;
    }
    let observation = format!(
        "Device {device}: blocks in use are {} larger than what was requested ({:.0}% of {}).",
        size(waste),
        percent(waste, active),
        size(active)
    );
    put(
        to,
        "rounding",
        Confidence::Medium,
        [
            &observation,
            "Sizes are rounded to 512 bytes, and remainders up to 1 MiB of the large pool are not split off.",
            "Allocate many tensors of similar size as one and use views, or choose sizes that are multiples of 2 MiB.",
            &format!("Blocks in use exceed the requested bytes by less than {}.", size(waste)),
            &format!("devices.{device}.totals.rounding_waste"),
        ],
    );
}
