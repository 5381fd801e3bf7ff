//! When a device is in a stage.

use std::collections::BTreeMap;

use timeline::gpu::Gpu;
use timeline::intervals::{Interval, union};
use timeline::launches::Launches;

use super::{Stage, Stages};

/// A stage that comes again later than this, in ns, with work of other stages in between, was over.
const APART_NS: i64 = 1_000_000;

impl Stages {
    /// By stage: from the first start to the last end of its slices, for each step of the profiler that launched any, and anew after
    /// other stages ran for a while. (A stage that comes once a step spans the other stages in between otherwise.)
    #[inline(never)]
    pub(super) fn spans(&self, gpu: &Gpu<'_>, launches: &Launches) -> Vec<Vec<Interval>> {
        let trace = gpu.trace;
        let mut spans: Vec<Vec<Interval>> = vec![Vec::new(); Stage::EVERY.len()];
        // By stage and step: the last of these, and the slice that came last.
        let mut last: BTreeMap<(Stage, usize), (usize, usize)> = BTreeMap::new();
        let mut at = 0;
        gpu.each_slice(|slice| {
            let launched = launches
                .of_slice(at)
                .map(|row| (trace.track_info(trace.track(row)).process.0, trace.ts_ns(row)));
            // (What is launched outside of steps forms groups of its own.)
            let step = launched.map_or(0, |at| self.step_bounds.partition_point(|it| *it <= at));
            let stage = self.stage(at);
            let spans = &mut spans[stage as usize];
            let open = last.get(&(stage, step)).filter(|(open, before)| {
                let ended_ns = spans[*open].1;
                before + 1 == at || slice.start_ns.saturating_sub(ended_ns) < APART_NS
            });
            let open = open.map_or(spans.len(), |(open, _)| *open);
            match spans.get_mut(open) {
                Some(span) => span.1 = span.1.max(slice.end_ns()),
                None => spans.push((slice.start_ns, slice.end_ns())),
            }
            last.insert((stage, step), (open, at));
            at += 1;
        });
        spans.into_iter().map(union).collect()
    }
}
