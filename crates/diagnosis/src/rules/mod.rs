//! One rule a file.

pub(crate) mod allocator;
mod bandwidth;
pub(crate) mod between_graphs;
mod busy;
mod clock_change;
mod clocks;
mod cold_start;
pub(crate) mod communication;
pub(crate) mod compilation;
pub(crate) mod copies;
mod cpu_work;
pub(crate) mod data_loader;
mod ddp_buffers;
mod doubles;
mod equal_kernels;
mod flops;
mod gaps;
mod graphs;
mod growing_cat;
mod hidden_launches;
mod host_bound;
mod in_annotations;
mod kernel_choice;
pub(crate) mod known_code;
pub(crate) mod late_rank;
mod launch_bound;
mod layouts;
mod lost;
mod memory;
mod modules;
mod occupancy;
mod one_call;
mod orphans;
mod phases;
mod precision;
mod profiler;
pub(crate) mod reads;
mod short_kernels;
mod slow_products;
mod slow_transfer;
mod steps;
mod sync;
mod training_mode;
mod unrecorded;
mod without_launch;
mod without_profiler;

use crate::{Facts, Finding, Rule};

/// The function of a rule.
fn check(rule: Rule) -> fn(&Facts<'_>) -> Vec<Finding> {
    match rule {
        Rule::Busy => busy::check,
        Rule::LaunchBound => launch_bound::check,
        Rule::HostBound => host_bound::check,
        Rule::Gaps => gaps::check,
        Rule::Sync => sync::check,
        Rule::Reads => reads::check,
        Rule::Copies => copies::check,
        Rule::ColdStart => cold_start::check,
        Rule::DataLoader => data_loader::check,
        Rule::Communication => communication::check,
        Rule::LateRank => late_rank::check,
        Rule::Allocator => allocator::check,
        Rule::Memory => memory::check,
        Rule::Steps => steps::check,
        Rule::Flops => flops::check,
        Rule::Modules => modules::check,
        Rule::ShortKernels => short_kernels::check,
        Rule::Graphs => graphs::check,
        Rule::Compilation => compilation::check,
        Rule::Precision => precision::check,
        Rule::Occupancy => occupancy::check,
        Rule::Bandwidth => bandwidth::check,
        Rule::Doubles => doubles::check,
        Rule::GrowingCat => growing_cat::check,
        Rule::KernelChoice => kernel_choice::check,
        Rule::KnownCode => known_code::check,
        Rule::EqualKernels => equal_kernels::check,
        Rule::Profiler => profiler::check,
        Rule::Orphans => orphans::check,
        Rule::Lost => lost::check,
        Rule::Clocks => clocks::check,
    }
}

/// What every rule says.
pub fn all(facts: &Facts<'_>) -> Vec<Finding> {
    let all = Rule::ALL.iter().flat_map(|rule| check(*rule)(facts));
    let is_displaced = |finding: &Finding| {
        let displaced = facts.triage.displaced.as_ref();
        is_by_name(finding.rule)
            && displaced.is_some_and(|found| found.is_much(finding.device.as_deref()))
    };
    let all = all.filter(|finding| !is_displaced(finding));
    let all = all.map(|finding| without_profiler::cut(facts, finding));
    all.map(|finding| if facts.has_one_device() { finding } else { named(finding) }).collect()
}

/// Whether a rule takes times by the name of a kernel that no op may have launched.
fn is_by_name(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::Communication
            | Rule::LateRank
            | Rule::Precision
            | Rule::Occupancy
            | Rule::Bandwidth
            | Rule::KernelChoice
    )
}

/// Whether a text names a device: not 1 in `Device 12`.
fn names(text: &str, device: &str) -> bool {
    let named = format!("evice {device}");
    text.match_indices(&named).any(|(at, _)| {
        !text[at + named.len()..].starts_with(|next: char| next.is_ascii_alphanumeric())
    })
}

/// A finding of one of several devices names it.
fn named(finding: Finding) -> Finding {
    match &finding.device {
        Some(device) if !names(&finding.observation, device) => {
            let observation = format!("Device {device}: {}", finding.observation);
            Finding { observation, ..finding }
        }
        _ => finding,
    }
}
