//! What an iteration takes without the profiler, where a person has timed it: then it is known how much of it launches can cost.

use std::collections::BTreeMap;

use host::links::GpuSlice;
use report::units::{percent, time};
use timeline::intervals::{holds, length, union};
use triage::LIMITING_SHARE;

use super::{Device, Facts};
use crate::Iteration;

/// A time that differs from the recorded one by more than this is of something else: longer than it, or so much shorter than the GPU's
/// work alone. (Recording adds time to kernels that run beside each other, or in graphs: up to 1.3 times on an H200, docs/measured.md.)
const LONGER: f64 = 1.1;
const SHORTER: f64 = 0.75;

/// An iteration without the profiler, and what the recording has of one on average, in ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// The class of iterations that this is about, where the recording has several: that of most.
    pub class: Option<String>,
    /// What it takes without the profiler.
    pub ns: i64,
    /// What it takes in the recording, from the start of one to that of the next.
    pub recorded_ns: i64,
    /// How long the GPU computes and copies in it: recording does not change that.
    pub work_ns: i64,
    /// Iterations that these are averages of.
    n: i64,
    /// What the GPU's work of iterations of other classes takes, and what they take beside it, as recorded.
    others_work_ns: i64,
    others_rest_ns: i64,
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
        let others_ns = self.others_work_ns.saturating_add(self.others_rest_ns);
        self.ns.saturating_mul(self.n).saturating_add(others_ns)
    }

    /// [`Self::rest_ns`] in all iterations of the recording.
    #[must_use]
    pub(crate) fn rest_in_all_ns(&self) -> i64 {
        self.rest_ns().saturating_mul(self.n).saturating_add(self.others_rest_ns)
    }

    /// Whether the GPU's work is nearly all of it: then that is what limits the run.
    #[must_use]
    pub fn is_work(&self) -> bool {
        self.work_ns as f64 >= LIMITING_SHARE * self.ns as f64
    }

    /// One of them, in words.
    fn one(&self) -> String {
        match &self.class {
            Some(class) => format!("an iteration of {class}"),
            None => "an iteration".to_owned(),
        }
    }

    /// What that means for the run.
    #[must_use]
    pub fn headline(&self) -> String {
        format!(
            "Without the profiler the GPU's own work takes {} of {} ({} of {}): that limits the run. In the recording,",
            percent(timeline::percent(self.work_ns.min(self.ns), self.ns)),
            self.one(),
            time(self.work_ns.min(self.ns)),
            time(self.ns),
        )
    }

    /// After a space.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!(
            " Without the profiler {} takes {} ({} as recorded), and the GPU computes and copies for {} of it: late launches cost at most \
             {} of it.",
            self.one(),
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
        all.get(self.id as usize).cloned().flatten()
    }

    /// Of several classes the one with most iterations: a prefill takes another time than a decode step, and no person times their mean.
    fn against_recorded(&self) -> Option<Timed> {
        let ns = self.facts.iteration_ns?;
        let iterations = self.facts.iterations.as_ref()?;
        let warm: Vec<&Iteration> =
            iterations.list.iter().filter(|one| one.cold.is_none()).collect();
        let mut n_of: BTreeMap<&str, usize> = BTreeMap::new();
        for one in &warm {
            *n_of.entry(&one.class).or_default() += 1;
        }
        // (Of several with as many, the first.)
        let most = warm.iter().rev().max_by_key(|one| n_of.get(&*one.class))?;
        let class = most.class.clone();
        let (own, others): (Vec<_>, Vec<_>) = warm.iter().partition(|one| one.class == class);
        let n = i64::try_from(own.len()).ok()?;
        let (work_ns, lasts_ns) = self.work_and_time(&own);
        let (others_work_ns, others_ns) = self.work_and_time(&others);
        // (Passes have pauses between them.)
        let mut apart: Vec<i64> = iterations
            .list
            .windows(2)
            .filter(|pair| pair.iter().all(|one| one.cold.is_none() && one.class == class))
            .map(|pair| pair[1].window().0.saturating_sub(pair[0].window().0))
            .collect();
        let recorded_ns = (lasts_ns / n).max(timeline::median(&mut apart).unwrap_or_default());
        Some(Timed {
            class: (!others.is_empty()).then_some(class),
            ns,
            recorded_ns,
            work_ns: work_ns / n,
            n,
            others_work_ns,
            others_rest_ns: others_ns.saturating_sub(others_work_ns).max(0),
        })
    }

    /// How long the device computes and copies for iterations, and how long they last, in ns.
    fn work_and_time(&self, iterations: &[&Iteration]) -> (i64, i64) {
        let windows = union(iterations.iter().map(|one| one.window()).collect());
        // (Work that an iteration launches may run after it; communication lasts as long as the ranks wait for each other.)
        let is_launched = |one: &&GpuSlice| {
            one.launch.is_some_and(|call| holds(&windows, call.start_ns)) && !one.is_communication
        };
        let own = self.slices().filter(is_launched);
        let work_ns = length(&union(own.map(|one| one.slice.interval()).collect()));
        let lasts = |one: &&Iteration| one.dur_ns.max(one.gpu_span_ns.unwrap_or_default());
        (work_ns, iterations.iter().map(lasts).sum())
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
