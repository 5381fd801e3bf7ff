//! When a device is in a stage.

use timeline::gpu::Gpu;
use timeline::intervals::{Interval, union};
use timeline::launches::Launches;

use super::{Stage, Stages};

/// A stage that comes again later than this, in ns, with work of other stages in between, was over.
const APART_NS: i64 = 1_000_000;

/// The last span of a stage so far.
#[derive(Clone, Copy)]
struct Open {
    /// The step that launched it.
    step: usize,
    /// From the first start to the last end of work of other stages since.
    others: Option<Interval>,
}

impl Open {
    /// Whether a slice of the stage that starts at `start` belongs to it, too.
    fn goes_on(self, step: usize, start: i64) -> bool {
        let apart = self.others.is_some_and(|(from, to)| to.min(start) - from >= APART_NS);
        self.step == step && !apart
    }
}

impl Stages {
    /// By stage: from the first start to the last end of its slices, for each step of the profiler that launched any, and anew after
    /// other stages ran for a while. (A stage that comes once a step spans the other stages in between otherwise.)
    #[inline(never)]
    pub(super) fn spans(&self, gpu: &Gpu<'_>, launches: &Launches) -> Vec<Vec<Interval>> {
        let trace = gpu.trace;
        let mut spans: Vec<Vec<Interval>> = vec![Vec::new(); Stage::EVERY.len()];
        let mut open: Vec<Option<Open>> = vec![None; Stage::EVERY.len()];
        let mut at = 0;
        gpu.each_slice(|slice| {
            let launched = launches
                .of_slice(at)
                .map(|row| (trace.track_info(trace.track(row)).process.0, trace.ts_ns(row)));
            // (What is launched outside of steps forms groups of its own.)
            let step = launched.map_or(0, |at| self.step_bounds.partition_point(|it| *it <= at));
            let (start, end) = (slice.start_ns, slice.end_ns());
            let stage = self.stage(at) as usize;
            for (other, open) in open.iter_mut().enumerate().filter(|(other, _)| *other != stage) {
                let ended_ns = spans[other].last().map_or(end, |span| span.1);
                if let Some(open) = open.as_mut().filter(|_| end > ended_ns) {
                    open.others.get_or_insert((start.max(ended_ns), end)).1 = end;
                }
            }
            let goes_on = open[stage].is_some_and(|open| open.goes_on(step, start));
            match spans[stage].last_mut().filter(|_| goes_on) {
                Some(span) => span.1 = span.1.max(end),
                None => spans[stage].push((start, end)),
            }
            open[stage] = Some(Open { step, others: None });
            at += 1;
        });
        spans.into_iter().map(union).collect()
    }
}
