//! Shares of a device's time. Work that was launched before profiling started counts in them, whether or not the tables
//! count it: it kept the GPU busy, and the span contains it.

use catalog::Category;

use super::idle::intervals::{Collector, Interval, length, without};
use crate::gpu::{Gpu, GpuSlice};

/// The time of a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceTime {
    /// From the first start to the last end.
    pub(crate) span_ns: i64,
    /// At least one slice runs.
    pub(crate) busy_ns: i64,
    /// Sum of durations.
    pub(crate) total_ns: i64,
    /// The same by category, in order of first appearance.
    pub(crate) by_category: Vec<(Category, i64)>,
    /// Communication with nothing else running.
    pub(crate) exposed_communication_ns: i64,
}

impl DeviceTime {
    #[inline(never)]
    pub(crate) fn of(gpu: &Gpu<'_>) -> Self {
        let mut time = Self::default();
        let (mut all, mut communication, mut rest) =
            (Collector::default(), Collector::default(), Collector::default());
        let mut add = |slice: &GpuSlice| {
            let (start, end) = (slice.start_ns, slice.end_ns());
            let category = gpu.work(slice.work).category;
            time.total_ns = time.total_ns.saturating_add(slice.dur_ns);
            match time.by_category.iter_mut().find(|(known, _)| *known == category) {
                Some((_, ns)) => *ns = ns.saturating_add(slice.dur_ns),
                None => time.by_category.push((category, slice.dur_ns)),
            }
            all.add(start, end);
            let communicates = category == Category::Communication;
            if communicates { communication.add(start, end) } else { rest.add(start, end) }
        };
        gpu.each_slice(|slice| add(&slice));
        (0..gpu.n_beside()).for_each(|at| add(&gpu.slice_beside(at)));
        let all: Vec<Interval> = all.union();
        time.busy_ns = length(&all);
        let ends = all.first().zip(all.last());
        time.span_ns = ends.map_or(0, |(first, last)| last.1.saturating_sub(first.0));
        time.exposed_communication_ns = length(&without(&communication.union(), &rest.union()));
        time
    }

    /// The time of several devices together: sums.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { span_ns, busy_ns, total_ns, by_category, exposed_communication_ns } = other;
        self.span_ns = self.span_ns.saturating_add(*span_ns);
        self.busy_ns = self.busy_ns.saturating_add(*busy_ns);
        self.total_ns = self.total_ns.saturating_add(*total_ns);
        for (category, ns) in by_category {
            match self.by_category.iter_mut().find(|(known, _)| known == category) {
                Some((_, sum)) => *sum = sum.saturating_add(*ns),
                None => self.by_category.push((*category, *ns)),
            }
        }
        self.exposed_communication_ns =
            self.exposed_communication_ns.saturating_add(*exposed_communication_ns);
    }
}
