//! Launches without GPU work in the file: the profiler lost it, or stopped before it had run. Nothing counts it.

use host::class::Class;
use report::units::{count, percent, time};
use timeline::intervals::length;
use timeline::lost_calls::lost_calls;

use crate::{Facts, Finding, Rule};

/// Of all launches; fewer are those of the last moments of a recording.
const LEAST_SHARE: f64 = 0.01;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = without_work(facts);
    found.extend(calls(facts));
    found
}

/// Calls that were lost in the middle of the recording.
fn calls(facts: &Facts<'_>) -> Option<Finding> {
    let lost = lost_calls(facts.trace);
    if !facts.has_gpu() || lost.is_empty() {
        return None;
    }
    let ns = time(length(&lost));
    let text = format!(
        "For {ns} ops go on that launch kernels elsewhere, and no runtime call is recorded."
    );
    Some(
        Finding::fact(Rule::Lost, "no_calls", text)
            .means(
                "The profiler lost the calls and what they launched. Idle time then is left out.",
            )
            .with("wall", "time without a call in which ops go on", ns),
    )
}

/// Launches without GPU work.
fn without_work(facts: &Facts<'_>) -> Vec<Finding> {
    let links = &facts.host.links;
    let lost = links.runtime_calls_without_gpu_slice.get(&Class::Launch).copied().unwrap_or(0);
    let all = facts.host.runtime.classes.get(&Class::Launch).map_or(0, |calls| calls.count);
    let share = lost as f64 / all.max(1) as f64;
    // (While a graph is captured, and where nothing is recorded of the GPU, other rules say so.)
    if !facts.has_gpu() || facts.is_capture() || lost == 0 || share < LEAST_SHARE {
        return Vec::new();
    }
    let text = format!(
        "{} of {} launch calls ({}) have no GPU work in the file.",
        count(lost),
        count(all),
        percent(100.0 * share)
    );
    let meaning = "The profiler lost it, it ran after the recording, or a graph was captured. No figure of the GPU counts it.";
    vec![Finding::fact(Rule::Lost, "no_gpu_work", text).means(meaning).with(
        "links.runtime_calls_without_gpu_slice.launch",
        "launch calls",
        count(lost),
    )]
}
