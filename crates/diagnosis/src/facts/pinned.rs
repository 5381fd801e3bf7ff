//! What copies from pageable memory still take from pinned memory: no bus is faster than its standard.

use catalog::host_link_gb_per_s;
use host::links::GpuSlice;
use report::units::time;
use timeline::intervals;

use super::Device;
use crate::rules::kernel_choice::capability;

/// A bound is cut where that is this part of it at least.
const LEAST: f64 = 0.1;

impl Device<'_> {
    /// A bound of pinned memory for its copies from pageable memory, without what they take at the rate of the bus and no kernel is left to
    /// hide; and the sentence that says so, with a space before it. Copies of which the bytes are not known take nothing.
    pub(crate) fn from_pinned_memory(&self, bound_ns: i64) -> (i64, String) {
        let cut = self.rate_of_bus().and_then(|rate| self.left_at(rate, bound_ns));
        cut.unwrap_or((bound_ns, String::new()))
    }

    /// In GB/s, which are bytes in a ns.
    fn rate_of_bus(&self) -> Option<f64> {
        let own = self.facts.properties(self.name)?;
        host_link_gb_per_s(&own.name, capability(&own))
    }

    fn left_at(&self, rate: f64, bound_ns: i64) -> Option<(i64, String)> {
        let facts = self.facts;
        let is_pageable = |one: &&GpuSlice| {
            let name = facts.slices.name(&one.slice);
            !one.is_kernel && name.contains("HtoD") && name.contains("Pageable")
        };
        let (mut all_ns, mut least_ns) = (0.0, 0.0);
        for one in self.slices().filter(is_pageable) {
            let ns = one.slice.dur_ns() as f64;
            let bytes = facts.details.copied_bytes(one.slice.row).unwrap_or(0);
            all_ns += ns;
            least_ns += (bytes as f64 / rate).min(ns);
        }
        // (Of a part of the copies the same part.)
        let own_ns = (bound_ns as f64 * least_ns / all_ns.max(1.0)) as i64;
        let left_ns = own_ns.saturating_sub(self.kernels_alone_ns());
        (left_ns as f64 >= LEAST * bound_ns as f64).then(|| {
            let text = format!(
                " From pinned memory they still take {} at {rate} GB/s, which its bus moves at most: the bound leaves {} of that out, for which no \
                 kernel runs that could hide it.",
                time(own_ns),
                time(left_ns),
            );
            (bound_ns.saturating_sub(left_ns), text)
        })
    }

    /// The time in which its kernels run and no copy does: all that a copy can hide behind.
    pub(crate) fn kernels_alone_ns(&self) -> i64 {
        let times = |kernels: bool| {
            let own = self.slices().filter(|one| one.is_kernel == kernels);
            intervals::union(own.map(|one| one.slice.interval()).collect())
        };
        intervals::length(&intervals::without(&times(true), &times(false)))
    }
}
