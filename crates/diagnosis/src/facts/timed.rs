//! What an iteration takes without the profiler, where a person has timed it: then it is known how much of it launches can cost.

use host::links::GpuSlice;
use report::units::{percent, time};
use timeline::intervals::{holds, length, union};

use super::recording::BUSY;
use super::{Device, Facts};
use crate::Iteration;

/// A time that differs from the recorded one by more than this is of something else: longer than it, or so much shorter than the GPU's
/// work alone. (Recording adds time to kernels that run beside each other, or in graphs: up to 1.3 times on an H200, docs/measured.md.)
const LONGER: f64 = 1.1;
const SHORTER: f64 = 0.75;

/// An iteration without the profiler, and what the recording has of one on average, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// What it takes without the profiler.
    pub ns: i64,
    /// What it takes in the recording, from the start of one to that of the next.
    pub recorded_ns: i64,
    /// How long the GPU computes and copies in it: recording does not change that.
    pub work_ns: i64,
    /// Iterations that these are averages of.
    n: i64,
}

impl Timed {
    /// Whether it can be the time of the iterations that are recorded.
    #[must_use]
    pub fn fits(&self) -> bool {
        let (ns, recorded_ns, work_ns) =
            (self.ns as f64, self.recorded_ns as f64, self.work_ns as f64);
        ns <= LONGER * recorded_ns && ns >= SHORTER * work_ns
    }

    /// What of an iteration is not the GPU's work: all that launches can cost.
    #[must_use]
    pub fn rest_ns(&self) -> i64 {
        self.ns.saturating_sub(self.work_ns).max(0)
    }

    /// What the iterations of the recording take without the profiler.
    #[must_use]
    pub fn all_ns(&self) -> i64 {
        self.ns.saturating_mul(self.n)
    }

    /// [`Self::rest_ns`] in all iterations of the recording.
    #[must_use]
    pub(crate) fn rest_in_all_ns(&self) -> i64 {
        self.rest_ns().saturating_mul(self.n)
    }

    /// Whether the GPU's work is nearly all of it: then that is what limits the run.
    #[must_use]
    pub fn is_work(&self) -> bool {
        self.work_ns as f64 >= BUSY * self.ns as f64
    }

    /// What that means for the run.
    #[must_use]
    pub fn headline(&self) -> String {
        format!(
            "Without the profiler the GPU's own work takes {} of an iteration ({} of {}): that limits the run. In the recording,",
            percent(timeline::percent(self.work_ns.min(self.ns), self.ns)),
            time(self.work_ns.min(self.ns)),
            time(self.ns),
        )
    }

    /// After a space.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!(
            " Without the profiler an iteration takes {} ({} as recorded), and the GPU computes and copies for {} of it: late launches cost {} of it \
             at most.",
            time(self.ns),
            time(self.recorded_ns),
            time(self.work_ns.min(self.ns)),
            time(self.rest_ns()),
        )
    }
}

impl Facts<'_> {
    /// The same with the time of an iteration without the profiler, in ns.
    #[must_use]
    pub fn timed(self, iteration_ns: Option<i64>) -> Self {
        Self { iteration_ns, ..self }
    }
}

impl Device<'_> {
    /// The time of an iteration without the profiler against the recording; `None` where nobody has timed it, or the file has no
    /// iterations.
    #[must_use]
    pub fn timed(&self) -> Option<Timed> {
        let all =
            self.facts.timed.get_or_init(|| self.facts.of_each(|device| device.against_recorded()));
        all.get(self.id as usize).copied().flatten()
    }

    fn against_recorded(&self) -> Option<Timed> {
        let ns = self.facts.iteration_ns?;
        let list = &self.facts.iterations.as_ref()?.list;
        let warm: Vec<&Iteration> = list.iter().filter(|one| one.cold.is_none()).collect();
        let n = i64::try_from(warm.len()).ok().filter(|n| *n > 0)?;
        let windows = union(warm.iter().map(|one| one.window()).collect());
        // (Work that an iteration launches may run after it; communication lasts as long as the ranks wait for each other.)
        let is_launched = |one: &&GpuSlice| {
            one.launch.is_some_and(|call| holds(&windows, call.start_ns)) && !one.is_communication
        };
        let own = self.slices().filter(is_launched);
        let work_ns = length(&union(own.map(|one| one.slice.interval()).collect()));
        let lasts = |one: &&Iteration| one.dur_ns.max(one.gpu_span_ns.unwrap_or_default());
        let longest_ns = warm.iter().map(lasts).sum::<i64>() / n;
        // (Passes have pauses between them.)
        let mut apart: Vec<i64> = list
            .windows(2)
            .filter(|pair| pair.iter().all(|one| one.cold.is_none()))
            .map(|pair| pair[1].window().0.saturating_sub(pair[0].window().0))
            .collect();
        let recorded_ns = longest_ns.max(timeline::median(&mut apart).unwrap_or_default());
        Some(Timed { ns, recorded_ns, work_ns: work_ns / n, n })
    }

    /// A bound on what a change saves that takes `gpu_ns` of work from the GPU, and launches: without the profiler no more than all
    /// launches cost.
    #[must_use]
    pub(crate) fn without_profiler_ns(&self, bound_ns: i64, gpu_ns: i64) -> i64 {
        let rest_ns = self.timed_as_recorded().map(|timed| timed.rest_in_all_ns());
        rest_ns.map_or(bound_ns, |rest_ns| bound_ns.min(rest_ns.saturating_add(gpu_ns)))
    }

    /// The same where it can be the time of what is recorded.
    #[must_use]
    pub(crate) fn timed_as_recorded(&self) -> Option<Timed> {
        self.timed().filter(Timed::fits)
    }
}
