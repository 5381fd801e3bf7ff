//! M8: first calls load code and allocate: what the recording shows is a start, not a steady state.

use report::units::{percent, time};

use crate::{Facts, Finding, Level, Rule};

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    facts.devices().filter_map(|device| {
        let (covered, idle) = device.cold()?;
        let what = match device.sets_up_most_of(&device.first_calls()) {
            Some(sets) => format!("{}, and calls load code, allocate or free, for", sets.clause()),
            None => "Calls that load code, allocate or free cover".to_owned(),
        };
        let text = format!(
            "{} {} of the {} in which {} stands still ({}).",
            what,
            time(covered),
            time(idle),
            if facts.has_one_device() { "the GPU".to_owned() } else { device.title() },
            percent(100.0 * covered as f64 / idle.max(1) as f64)
        );
        Some(
            Finding::fact(Rule::ColdStart, "cold_start", text)
                .level(Level::High)
                .on(device.name)
                .means("This is a first run: later steps do not wait for this. Warm up, and profile steps after that; only times of kernels hold for them.")
                .with("runtime.classes", "idle time in them", time(covered)),
        )
    }).collect()
}
