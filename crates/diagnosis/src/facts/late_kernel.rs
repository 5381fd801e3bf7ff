//! The kernel whose launches the device waits for.

use std::collections::BTreeMap;

use report::short_name;
use report::units::{count, time};
use timeline::intervals::Interval;
use trace::StringId;

use super::Device;

/// A kernel whose launches end this share of the late time has one cause.
const MOST: f64 = 0.7;
/// One that is as large a part of all kernels ends gaps because it ends any.
const COMMON: f64 = 0.35;
/// Fewer gaps have no rule.
const LEAST: usize = 3;
/// Characters of a name.
const NAME: usize = 60;

/// A kernel, and the idle time that its late launches end.
pub(crate) struct LateKernel {
    name: String,
    op: String,
    n: usize,
    ns: i64,
    all_ns: i64,
    median_ns: i64,
}

impl Device<'_> {
    /// The kernel before whose launches most of the late time lies; `None` where that is no more than its part of all kernels, or it begins
    /// each iteration, as then the time is that between iterations.
    #[must_use]
    pub(crate) fn late_kernel(&self) -> Option<LateKernel> {
        let late = self.late_times();
        let mut own: Vec<_> = self.slices().collect();
        trace::sort_by_key(&mut own, |one| (one.slice.start_ns, one.slice.row));
        let name = |at: usize| self.facts.trace.name(own[at].slice.row);
        // By kernel: what ends with it. (A gap may have several parts that are late: they are one.)
        let mut ends: BTreeMap<usize, i64> = BTreeMap::new();
        for (from, to) in &late {
            let at = own.partition_point(|one| one.slice.start_ns < *to);
            *ends.entry(at).or_default() += to.saturating_sub(*from);
        }
        let mut of_names: BTreeMap<StringId, Vec<i64>> = BTreeMap::new();
        for (at, ns) in ends.iter().filter(|(at, _)| **at < own.len() && own[**at].is_kernel) {
            of_names.entry(name(*at)).or_default().push(*ns);
        }
        let sum = |times: &[i64]| times.iter().fold(0_i64, |sum, ns| sum.saturating_add(*ns));
        let (most, mut times) = of_names.into_iter().max_by_key(|(_, times)| sum(times))?;
        let all_ns = late.iter().map(|(from, to): &Interval| to.saturating_sub(*from)).sum::<i64>();
        let ns = sum(&times);
        // (Of many short gaps and a few long ones, the long ones.)
        let long_ns = ns / times.len().max(1) as i64 / 10;
        times.retain(|ns| *ns >= long_ns);
        let n_iterations = self.facts.iterations.as_ref().map_or(0, |all| all.list.len());
        let n_kernels = own.iter().filter(|one| one.is_kernel).count();
        let n_own = (0..own.len()).filter(|at| name(*at) == most).count();
        if (ns as f64) < MOST * all_ns as f64
            || n_own as f64 >= COMMON * n_kernels as f64
            || times.len() < LEAST
            || times.len() * 2 <= n_iterations * 3
        {
            return None;
        }
        let owner = (0..own.len()).filter(|at| name(*at) == most).find_map(|at| own[at].owner);
        let ops = &self.facts.slices.ops;
        let op = owner.and_then(|owner| ops.chain(owner).last()).map(|at| &ops.slices[at]);
        Some(LateKernel {
            name: short_name(self.facts.trace.strings.get(most), NAME),
            op: op.map_or_else(String::new, |op| short_name(self.facts.slices.name(op), NAME)),
            n: times.len(),
            ns,
            all_ns,
            median_ns: timeline::median(&mut times)?,
        })
    }
}

impl LateKernel {
    /// For the finding.
    pub(crate) fn sentence(&self) -> String {
        let op =
            if self.op.is_empty() { String::new() } else { format!(" (launched in {})", self.op) };
        format!(
            " {} of {} end with a launch of {}{op}: {} times, {} each (median).",
            time(self.ns),
            time(self.all_ns),
            self.name,
            count(self.n as u64),
            time(self.median_ns)
        )
    }

    /// What to do about it.
    pub(crate) fn action(&self) -> String {
        format!(
            "Shorten what the CPU does before it launches {}: {} each time (median).",
            self.name,
            time(self.median_ns)
        )
    }
}
