//! Work that was launched before profiling started: it belongs to an earlier step.

use report::units::{count, time};

use crate::{Facts, Finding, Rule};

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let links = &facts.host.links;
    if links.orphans == 0 || links.linked == 0 {
        return Vec::new();
    }
    let since = if facts.trace.part.is_some() { "this step" } else { "profiling started" };
    let text = format!(
        "{} of {} GPU slices ({}) were launched before {since}: they belong to an earlier step.",
        count(links.orphans as u64),
        count(links.gpu as u64),
        time(links.orphan_ns)
    );
    vec![Finding::fact(Rule::Orphans, "carried_over", text).with(
        "links.orphans",
        "GPU slices",
        count(links.orphans as u64),
    )]
}
