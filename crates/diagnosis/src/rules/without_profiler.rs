//! What findings are worth in a run without the profiler, where a person has timed an iteration of it.

use crate::facts::Device;
use crate::words::lower;
use crate::{Facts, Finding, Level, Rule};

/// Rules whose bound is idle time of the device: without the profiler no more than what its work leaves of an iteration.
const OF_IDLE_TIME: [Rule; 7] = [
    Rule::Busy,
    Rule::LaunchBound,
    Rule::HostBound,
    Rule::Gaps,
    Rule::Sync,
    Rule::DataLoader,
    Rule::Allocator,
];

/// The finding with its bound and level cut to that.
pub(super) fn cut(facts: &Facts<'_>, finding: Finding) -> Finding {
    let device = facts.device_of(&finding);
    let timed = match &finding.device {
        Some(_) => device.as_ref().and_then(Device::timed_as_recorded),
        None => facts.devices().find_map(|device| device.timed_as_recorded()),
    };
    let Some(timed) = timed else { return finding };
    let is_idle = OF_IDLE_TIME.contains(&finding.rule);
    let most_ns = if is_idle { timed.rest_in_all_ns() } else { timed.all_ns() };
    let of_launches = matches!(finding.rule, Rule::LaunchBound | Rule::HostBound);
    let finding = match of_launches && timed.is_work() {
        true => Finding { observation: in_recording(&finding.observation), ..finding },
        false => finding,
    };
    let Some(bound_ns) = finding.bound_ns else { return finding };
    let bound_ns = bound_ns.min(most_ns);
    let level = match is_idle {
        true => Level::of_share(bound_ns as f64 / timed.all_ns().max(1) as f64),
        false => finding.level,
    };
    Finding { bound_ns: Some(bound_ns), level, ..finding }
}

/// That something is so in the recording alone.
fn in_recording(observation: &str) -> String {
    format!("In the recording, {}", lower(observation))
}
