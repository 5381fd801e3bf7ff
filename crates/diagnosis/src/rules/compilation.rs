//! M18: compilation, and loading of code, in the recording.

use report::units::{count, time};

use crate::{Facts, Finding, Level, Rule};
use host::class::Class;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let ns = facts.compiling_ns();
    if ns > 0 {
        found.push(
            Finding::fact(
                Rule::Compilation,
                "compiling",
                format!("torch.compile compiles for {} of the recording.", time(ns)),
            )
            .level(Level::Medium)
            .means("Iterations in which it compiles are no steady state: compile in a warm-up before the recording.")
            .with("python", "in the compiler", time(ns)),
        );
    }
    if let Some(loads) = facts.host.runtime.classes.get(&Class::ModuleLoad) {
        let allocations =
            facts.host.runtime.classes.get(&Class::Malloc).copied().unwrap_or_default();
        let text = format!(
            "{} calls load code ({}) and {} allocate memory of the driver ({}) in the recording.",
            count(loads.count),
            time(loads.total_ns),
            count(allocations.count),
            time(allocations.total_ns)
        );
        found.push(Finding::fact(Rule::Compilation, "module_loads", text).level(Level::Low).with(
            "runtime.classes.module-load",
            "calls",
            count(loads.count),
        ));
    }
    found
}
