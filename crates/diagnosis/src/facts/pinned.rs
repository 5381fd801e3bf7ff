//! What copies from pageable memory still take from pinned memory: no link is faster than its standard.

use catalog::{CopyRoute, copy_route, host_link_gb_per_s, is_pageable};
use host::links::GpuSlice;
use report::units::time;
use timeline::intervals;

use super::{Device, Facts};

/// A copy of no more bytes takes as long as one of a single byte: it is its call that takes time.
pub(crate) const SMALL: i64 = 4096;
/// A bound is cut where that is this part of it at least.
const LEAST: f64 = 0.1;

impl Facts<'_> {
    /// The time of copies from pageable memory that only makes the waits for the workers of a data loader longer, as the overlap table counts
    /// it, and the sentence that says so, with a space before it.
    pub(crate) fn paced_pageable(&self) -> (i64, String) {
        let ns: i64 = self.triage.overlap.iter().map(|row| row.paced_ns).sum();
        let text = format!(
            " Not counted: {} that would only turn into waiting for the data loader's workers.",
            time(ns)
        );
        (ns, if ns > 0 { text } else { String::new() })
    }

    /// What the rows of the overlap table that advise pinned memory save, in all.
    pub(crate) fn pinned_by_rows_ns(&self) -> i64 {
        let rows = self.triage.overlap.iter().filter(|row| row.pins() && row.is_printed());
        rows.filter_map(|row| row.savings_bound_ns).sum()
    }

    /// Whether it is a copy between a device and pageable memory of the host.
    pub(crate) fn is_pageable(&self, one: &GpuSlice, route: CopyRoute) -> bool {
        let name = self.slices.name(&one.slice);
        !one.is_kernel && copy_route(name) == route && is_pageable(name)
    }

    /// Whether a row of the overlap table advises pinned memory, with gates of its own.
    pub(crate) fn advises_pinned(&self) -> bool {
        self.triage.overlap.iter().any(triage::OverlapRow::pins)
    }
}

impl Device<'_> {
    /// A bound of pinned memory for its copies from pageable memory, without what they take at the rate of the link and no kernel is left to
    /// hide; and the sentence that says so, with a space before it. Copies of which the bytes are not known take nothing.
    pub(crate) fn with_pinned_memory(&self, bound_ns: i64) -> (i64, String) {
        let cut = self.rate_of_link().and_then(|rate| self.left_at(rate, bound_ns));
        cut.unwrap_or((bound_ns, String::new()))
    }

    /// The time in which it stands still around such copies, of those that a bound is of, and the sentence that says so: from pinned memory
    /// the CPU goes on while the copy waits for its turn, and launches what follows. 0 where it is little.
    pub(crate) fn idle_around_pageable(&self, bound_ns: i64) -> (i64, String) {
        let copies = self.pageable();
        let all_ns: i64 = copies.iter().map(|one| one.slice.dur_ns()).sum();
        let part = (bound_ns as f64 / all_ns.max(1) as f64).min(1.0);
        // (A small tensor is made for its copy, and pinning it takes longer than the copy.)
        let is_small = |one: &&&GpuSlice| {
            self.facts.details.copied_bytes(one.slice.row).is_some_and(|bytes| bytes <= SMALL)
        };
        let large: Vec<&GpuSlice> = copies.iter().filter(|one| !is_small(one)).copied().collect();
        let idle_ns = (self.idle_around(&large) as f64 * part) as i64;
        if bound_ns <= 0 || (idle_ns as f64) < LEAST * bound_ns as f64 {
            return (0, String::new());
        }
        let around = format!(
            " The bound includes {} in which {} is idle while the CPU prepares such a copy, or until it has launched what follows.",
            time(idle_ns),
            self.name_within()
        );
        (idle_ns, around)
    }

    fn pageable(&self) -> Vec<&GpuSlice> {
        let is_own = |one: &&GpuSlice| self.facts.is_pageable(one, CopyRoute::HostToDevice);
        self.slices().filter(is_own).collect()
    }

    /// The time in which it stands still in the calls of copies before these begin, and after them until its next work.
    fn idle_around(&self, copies: &[&GpuSlice]) -> i64 {
        let gaps = self.gaps_told();
        let gap_at = |at_ns: i64| {
            let next = gaps.partition_point(|(_, end)| *end < at_ns);
            gaps.get(next).copied().filter(|(start, _)| *start <= at_ns)
        };
        let around = copies.iter().flat_map(|one| {
            let before = one.launch.and_then(|call| {
                let (start, end) = gap_at(one.slice.start_ns)?;
                (end == one.slice.start_ns).then_some((start.max(call.start_ns), end))
            });
            let after = gap_at(one.slice.end_ns).filter(|(start, _)| *start == one.slice.end_ns);
            [before, after]
        });
        intervals::length(&intervals::union(around.flatten().filter(|(a, b)| a < b).collect()))
    }

    /// In GB/s, which are bytes in a ns.
    fn rate_of_link(&self) -> Option<f64> {
        let own = self.facts.properties(self.name)?;
        host_link_gb_per_s(&own.name, self.facts.capability(self.name))
    }

    fn left_at(&self, rate: f64, bound_ns: i64) -> Option<(i64, String)> {
        let (mut all_ns, mut least_ns) = (0.0, 0.0);
        for one in self.pageable() {
            let ns = one.slice.dur_ns() as f64;
            let bytes = self.facts.details.copied_bytes(one.slice.row).unwrap_or(0);
            // (Then it is no such link.)
            if bytes as f64 > rate * ns {
                return None;
            }
            all_ns += ns;
            least_ns += bytes as f64 / rate;
        }
        // (Of a part of the copies the same part.)
        let own_ns = (bound_ns as f64 * least_ns / all_ns.max(1.0)) as i64;
        let left_ns = own_ns.saturating_sub(self.kernels_alone_ns());
        (bound_ns > 0 && left_ns as f64 >= LEAST * bound_ns as f64).then(|| {
            let text = format!(
                " From pinned memory they still take {} at {rate} GB/s, the peak of the link to the host: the bound excludes {} of that, \
                 which no kernel could hide.",
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
