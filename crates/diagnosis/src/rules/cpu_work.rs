//! M3 without records of a GPU: what the CPU makes that the GPU can make itself.

use std::collections::BTreeMap;

use catalog::cpu_work::{CpuWork, of_op};
use host::HostSlice;
use report::units::{percent, time};

use crate::facts::on_cpu::RanOn;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// Of the time from the first op to the last.
const LEAST_SHARE: f64 = 0.1;

pub fn check(facts: &Facts<'_>) -> Option<Finding> {
    let is_lost = || matches!(facts.ran_on(), RanOn::Launched(_) | RanOn::Copied(_));
    if facts.has_gpu() || !is_lost() {
        return None;
    }
    let (slices, ops) = (facts.slices, &facts.slices.ops);
    let (begins, own_ns) = (facts.work_begins(), ops.self_ns());
    // (An op of the GPU has its launch in it.)
    let is_random = |op: &HostSlice| {
        of_op(slices.name(op)) == Some(CpuWork::Random)
            && !begins.any_within(slices.thread(op.row), op)
    };
    let random = ops.slices.iter().zip(&own_ns).filter(|(op, _)| is_random(op));
    let mut by_name: BTreeMap<&str, i64> = BTreeMap::new();
    for (op, ns) in random {
        let sum = by_name.entry(slices.name(op)).or_default();
        *sum = sum.saturating_add((*ns).max(0));
    }
    let ns = by_name.values().fold(0_i64, |sum, ns| sum.saturating_add(*ns));
    let share = ns as f64 / facts.host.cpu_ops.window_ns?.max(1) as f64;
    let most = by_name.into_iter().max_by_key(|(_, ns)| *ns).filter(|_| share >= LEAST_SHARE)?;
    let text = format!(
        "The CPU generates random numbers for {} ({} of the time from the first op to the last), most in {}.",
        time(ns),
        percent(100.0 * share),
        most.0
    );
    let finding = Finding::fact(Rule::HostBound, "random", text);
    let finding = finding.level(Level::of_share(share)).confidence(Confidence::Medium).bound(ns);
    let meaning = "A tensor that is made on the GPU needs no copy to it, either.";
    Some(finding.means(meaning).with("cpu_ops", "random numbers of the CPU", time(ns)))
}
