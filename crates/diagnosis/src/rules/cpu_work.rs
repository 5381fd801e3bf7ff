//! M3 without records of a GPU: what the CPU makes that the GPU can make itself.

use catalog::cpu_work::{CpuWork, of_op};
use report::units::{percent, time};

use crate::facts::on_cpu::RanOn;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// Of the time from the first op to the last.
const LEAST_SHARE: f64 = 0.1;

pub fn check(facts: &Facts<'_>) -> Option<Finding> {
    if facts.has_gpu() || !matches!(facts.ran_on(), RanOn::Launched(_)) {
        return None;
    }
    let ops = &facts.host.cpu_ops.ops;
    let random = || ops.iter().filter(|op| of_op(&op.name) == Some(CpuWork::Random));
    let ns = random().fold(0_i64, |sum, op| sum.saturating_add(op.self_ns));
    let share = ns as f64 / facts.host.cpu_ops.window_ns?.max(1) as f64;
    let most = random().max_by_key(|op| op.self_ns).filter(|_| share >= LEAST_SHARE)?;
    let text = format!(
        "The CPU makes random numbers for {} ({} of the time from the first op to the last), most in {}.",
        time(ns),
        percent(100.0 * share),
        most.name
    );
    // (An op of a GPU has its launch in it: these take too long for that.)
    let finding = Finding::fact(Rule::HostBound, "random", text);
    let finding = finding.level(Level::of_share(share)).confidence(Confidence::Medium).bound(ns);
    let meaning = "A tensor that is made on the GPU needs no copy to it, either.";
    Some(finding.means(meaning).with("cpu_ops", "random numbers of the CPU", time(ns)))
}
