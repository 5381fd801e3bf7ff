//! Shares of a device's time. Work that was launched before profiling started counts in them, whether or not the tables
//! count it: it kept the GPU busy, and the span contains it.

use catalog::Category;
use trace::StringId;

use timeline::dependent::Dependent;
use timeline::gpu::{Gpu, GpuSlice};
use timeline::intervals::{Collector, Interval, length, without};

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
    /// The same without what the tables do not count.
    pub(crate) shown: Vec<(Category, i64)>,
    /// Communication with no other kernel beside it.
    pub(crate) exposed_communication_ns: i64,
    /// Slices of communication, and the longest of them.
    pub(crate) n_communication: u64,
    pub(crate) longest_communication_ns: i64,
    /// By kernel of communication, in order of first appearance: launches and their time.
    pub(crate) collectives: Vec<(StringId, u64, i64)>,
}

fn add_calls(sums: &mut Vec<(StringId, u64, i64)>, (name, n, ns): (StringId, u64, i64)) {
    match sums.iter_mut().find(|(known, ..)| *known == name) {
        Some((_, all, sum)) => (*all, *sum) = (*all + n, sum.saturating_add(ns)),
        None => sums.push((name, n, ns)),
    }
}

fn add_to(sums: &mut Vec<(Category, i64)>, category: Category, ns: i64) {
    match sums.iter_mut().find(|(known, _)| *known == category) {
        Some((_, sum)) => *sum = sum.saturating_add(ns),
        None => sums.push((category, ns)),
    }
}

impl DeviceTime {
    #[inline(never)]
    pub(crate) fn of(gpu: &Gpu<'_>) -> Self {
        let mut time = Self::default();
        let mut shown = Vec::new();
        let (mut all, mut communication, mut rest) =
            (Collector::default(), Collector::default(), Collector::default());
        let mut dependent = Dependent::of(gpu.trace);
        let mut add = |slice: &GpuSlice| {
            let (start, end) = (slice.start_ns, slice.end_ns());
            let own = dependent.own_of(gpu, slice);
            let category = gpu.work(slice.work).category;
            time.total_ns = time.total_ns.saturating_add(slice.dur_ns);
            add_to(&mut time.by_category, category, slice.dur_ns);
            all.add(start, end);
            let communicates = category == Category::Communication;
            if communicates {
                communication.add(start, end);
                time.n_communication += 1;
                time.longest_communication_ns = time.longest_communication_ns.max(slice.dur_ns);
                let name = gpu.work(slice.work).name;
                add_calls(&mut time.collectives, (name, 1, slice.dur_ns));
            } else if gpu.is_kernel(slice) {
                rest.add(own.0, own.1);
            }
        };
        gpu.each_slice(|slice| {
            add(&slice);
            add_to(&mut shown, gpu.work(slice.work).category, slice.dur_ns);
        });
        (0..gpu.n_beside()).for_each(|at| add(&gpu.slice_beside(at)));
        time.shown = shown;
        let all: Vec<Interval> = all.union();
        time.busy_ns = length(&all);
        let ends = all.first().zip(all.last());
        time.span_ns = ends.map_or(0, |(first, last)| last.1.saturating_sub(first.0));
        time.exposed_communication_ns = length(&without(&communication.union(), &rest.union()));
        time
    }

    /// The time of several devices together: sums.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            span_ns,
            busy_ns,
            total_ns,
            by_category,
            shown,
            exposed_communication_ns,
            n_communication,
            longest_communication_ns,
            collectives,
        } = other;
        self.span_ns = self.span_ns.saturating_add(*span_ns);
        self.busy_ns = self.busy_ns.saturating_add(*busy_ns);
        self.total_ns = self.total_ns.saturating_add(*total_ns);
        for (category, ns) in by_category {
            add_to(&mut self.by_category, *category, *ns);
        }
        for (category, ns) in shown {
            add_to(&mut self.shown, *category, *ns);
        }
        self.exposed_communication_ns =
            self.exposed_communication_ns.saturating_add(*exposed_communication_ns);
        self.n_communication += n_communication;
        self.longest_communication_ns =
            self.longest_communication_ns.max(*longest_communication_ns);
        collectives.iter().for_each(|calls| add_calls(&mut self.collectives, *calls));
    }
}
