//! Functions of libraries that cost time for a known reason (`catalog::known_code`).

use catalog::known_code::{KNOWN, KnownCode};
use report::units::{plural, time};
use timeline::intervals::{both, length, union};

use crate::facts::Device;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// From this share of the window on.
const LEAST_SHARE: f64 = 0.02;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let of_device = |device: Device<'_>| {
        let found = KNOWN.iter().filter_map(|known| one(&device, known));
        found.collect::<Vec<_>>()
    };
    let found = facts.devices().filter(Device::is_told).flat_map(of_device);
    found.chain(super::training_mode::check(facts)).collect()
}

/// What a known function costs a device.
fn one(device: &Device<'_>, known: &KnownCode) -> Option<Finding> {
    let calls = device.calls_of(known);
    if calls.is_empty() {
        return None;
    }
    let times = union(calls.clone());
    let (_, window_ns) = device.busy_told()?;
    let gpu_ns = length(&union(device.launched_in(&times)));
    let idle_ns = length(&both(&device.gaps_told(), &times));
    let bound_ns = gpu_ns.saturating_add(idle_ns).min(window_ns);
    let share = bound_ns as f64 / window_ns as f64;
    // (Without GPU work, such as where no type is to be changed, it costs no more than its call.)
    if share < LEAST_SHARE || gpu_ns == 0 {
        return None;
    }
    let (takes, them) = if calls.len() == 1 { ("takes", "it") } else { ("take", "them") };
    let text = format!(
        "{}: {} of {} {takes} the CPU {}, and {} works {} for {them}.",
        known.what,
        plural(calls.len() as u64, "call", "calls"),
        known.function,
        time(length(&times)),
        device.name_within(),
        time(gpu_ns),
    );
    Some(
        Finding::fact(Rule::KnownCode, known.function, text)
            .level(Level::of_share(share))
            .confidence(Confidence::Medium)
            .on(device.name)
            .bound(bound_ns)
            .means(format!(
                "{} The bound is an estimate: that work, and the {} in which {} is idle during these calls.",
                known.why,
                time(idle_ns),
                device.name_within()
            ))
            .with("wall", "idle time during these calls", time(idle_ns)),
    )
}

/// The remedies for a finding of this rule.
pub(crate) fn remedies(finding: &Finding) -> &'static [&'static str] {
    let known = KNOWN.iter().find(|known| known.function == finding.verdict);
    known.map_or(&[], |known| known.remedy)
}
