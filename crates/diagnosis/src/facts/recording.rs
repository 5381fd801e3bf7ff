//! Whether the launches of a recording are late only because they are recorded.

use report::Confidence;
use report::units::time;
use timeline::intervals::{length, union};
use triage::{LIMITING_SHARE, SLOWED_BY_STACKS, WallPart};

use super::Device;

/// The same as [`triage::SLOWED_BY_STACKS`] where no Python stacks are recorded.
const WITHOUT_STACKS: f64 = 1.7;

/// A window of a device that may be shorter without the profiler.
pub(crate) struct Slowed {
    /// Its work, without communication.
    busy_ns: i64,
    /// The idle time in which nothing is recorded on the CPU.
    unrecorded_ns: i64,
    /// The idle time in which the CPU is in one long call.
    in_calls_ns: i64,
    window_ns: i64,
}

impl Slowed {
    /// Whether hardly anything of the window is time in which nothing is recorded: then the device's own work may be the limit without the
    /// profiler.
    pub(crate) fn leaves_gpu(&self) -> bool {
        self.unrecorded_ns.saturating_mul(10) <= self.busy_ns
    }

    /// What the window takes without the profiler, at least.
    fn least_ns(&self) -> i64 {
        let on_cpu_ns = self.unrecorded_ns.saturating_add(self.in_calls_ns);
        self.busy_ns.saturating_add(on_cpu_ns).min(self.window_ns)
    }

    /// What of that is not the GPU's work; empty where it is next to nothing.
    fn on_cpu(&self) -> String {
        let parts = [
            (self.unrecorded_ns, "in which nothing is recorded on the CPU"),
            (self.in_calls_ns, "in individual CPU calls that profiling does not slow down"),
        ];
        let is_told = |ns: i64| ns.saturating_mul(100) >= self.window_ns;
        let told = parts.into_iter().filter(|(ns, _)| is_told(*ns));
        told.map(|(ns, what)| format!(", and {} {what}", time(ns))).collect()
    }
}

/// With so much work queued at the begin of the recording, the CPU was ahead before it: in ns, and as a share of the window in percent.
const QUEUED_NS: i64 = 10_000_000;
const QUEUED_PCT: i64 = 5;
/// From this many launches.
const FEWEST_LAUNCHES: usize = 3;

impl Device<'_> {
    /// Its work that was queued when the recording began, in ns, where that is so much that the CPU was ahead then; else 0.
    #[must_use]
    pub(crate) fn queued_before_ns(&self) -> i64 {
        // (It is counted for all devices together. In a step of a recording it is that of the step before.)
        if !self.facts.has_one_device() || self.facts.trace.part.is_some() {
            return 0;
        }
        // (Of one launch, as of a graph, nothing tells how far ahead the CPU was; communication lasts as long as it waits.)
        let linked = self.slices().filter(|one| one.launch.is_some());
        let Some(first_ns) = linked.map(|one| one.slice.start_ns).min() else { return 0 };
        let is_before = |one: &&host::links::GpuSlice| {
            one.launch.is_none() && !one.is_communication && one.slice.start_ns < first_ns
        };
        let before: Vec<_> = self.slices().filter(is_before).collect();
        let mut launches: Vec<_> =
            before.iter().filter_map(|one| self.facts.trace.link(one.slice.row)).collect();
        trace::sort(&mut launches);
        launches.dedup();
        let times = before.iter().map(|one| (one.slice.start_ns, one.slice.end_ns));
        let ns = length(&union(times.collect()));
        let ns = ns.min(self.facts.triage.before_window.total_ns);
        if launches.len() < FEWEST_LAUNCHES {
            return 0;
        }
        let window_ns = self.busy_told().map_or(0, |(_, window_ns)| window_ns);
        let is_much =
            ns >= QUEUED_NS && ns.saturating_mul(100) >= window_ns.saturating_mul(QUEUED_PCT);
        if is_much { ns } else { 0 }
    }

    /// What its window takes at least, where without the profiler that work may be what limits the run: recording makes the CPU slower,
    /// and not the device.
    #[must_use]
    pub(crate) fn slowed_by_recording(&self) -> Option<Slowed> {
        let ns = |part| self.wall(part).map_or(0, |row| row.total_ns);
        let has_stacks = self.has_stacks();
        let in_calls_ns = if has_stacks { self.in_long_calls_ns() } else { 0 };
        // (What the CPU does other than to launch is as slow without, but for Python, each call of which is recorded.)
        let in_calls = !has_stacks || in_calls_ns.saturating_mul(2) > self.late().0;
        let was_ahead = self.queued_before_ns() > 0;
        if ns(WallPart::HostCompute) > ns(WallPart::Launch) && in_calls && !was_ahead {
            return None;
        }
        let most = self.slows_at_most();
        let (busy_ns, window_ns) = self.busy_told()?;
        // (Communication lasts as long as the ranks wait for each other.)
        let waits_ns = self.wall(WallPart::Communication).map_or(0, |row| row.total_ns);
        let busy_ns = busy_ns.saturating_sub(waits_ns);
        // (Code of which nothing is recorded is as slow without.)
        let unrecorded_ns = self.wall(WallPart::Unexplained).map_or(0, |row| row.total_ns);
        // (What is next to nothing is not told, and not added.)
        let in_calls_ns =
            if in_calls_ns.saturating_mul(100) >= window_ns { in_calls_ns } else { 0 };
        let slowed = Slowed { busy_ns, unrecorded_ns, in_calls_ns, window_ns };
        let may_limit = busy_ns as f64 * most >= window_ns as f64 * LIMITING_SHARE;
        (may_limit || was_ahead).then_some(slowed)
    }

    /// Whether Python's calls are recorded, and its work may take most of what is left without that: then launches are so much later than
    /// without the profiler (up to 4.6 times, see above) that a replay of them bounds no saving of the GPU's work.
    #[must_use]
    pub(crate) fn is_slowed_by_stacks(&self) -> bool {
        self.has_stacks() && self.may_be_slowed()
    }

    /// The same of any recording: one without stacks makes launches up to 1.7 times as late.
    #[must_use]
    pub(crate) fn may_be_slowed(&self) -> bool {
        let Some((busy_ns, window_ns)) = self.busy_told() else { return false };
        // (Communication lasts as long as the ranks wait for each other, and of the idle time only late launches are later for it.)
        let waits_ns = self.wall(WallPart::Communication).map_or(0, |row| row.total_ns);
        let busy_ns = busy_ns.saturating_sub(waits_ns);
        let (late_ns, _) = self.late_with_start();
        // (Where it waits for something else, such as a data loader, that sets the pace.)
        let others_ns = window_ns.saturating_sub(busy_ns).saturating_sub(late_ns);
        if others_ns.saturating_mul(10) > window_ns {
            return false;
        }
        let most = self.slows_at_most();
        let in_calls_ns = if self.has_stacks() { self.in_long_calls_ns() } else { 0 };
        let slow_ns = late_ns.saturating_sub(in_calls_ns).max(0);
        let left_ns = busy_ns.saturating_add(slow_ns);
        let is_late = slow_ns.saturating_mul(100) >= left_ns;
        is_late
            && self.timed_as_recorded().is_none()
            && busy_ns as f64 * most >= left_ns as f64 * LIMITING_SHARE
    }

    /// How many times as long launches take because they are recorded, at most, where that was measured.
    fn slows_at_most(&self) -> f64 {
        if self.has_stacks() { SLOWED_BY_STACKS } else { WITHOUT_STACKS }
    }

    fn has_stacks(&self) -> bool {
        self.facts.host.verdicts.python_events_share.is_some_and(|share| share > 0.0)
    }

    /// How sure it is that launches limit it.
    #[must_use]
    pub(crate) fn confidence_of_launches(&self) -> Confidence {
        if self.timed_as_recorded().is_some() {
            return Confidence::High;
        }
        if self.slowed_by_recording().is_some() { Confidence::Low } else { Confidence::High }
    }

    /// What late launches cost without the profiler; empty where most of that time is other work of the CPU.
    #[must_use]
    pub(crate) fn costs_unrecorded(&self) -> String {
        if let Some(timed) = self.timed_as_recorded() {
            return timed.sentence();
        }
        let Some(slowed) = self.slowed_by_recording() else { return self.costs_less() };
        let slows = " Profiling slows the CPU, not the GPU";
        match self.has_steps() {
            true => format!("{slows}."),
            false => format!(
                "{slows}: an unprofiled run takes between about {} (the GPU's work, without communication{}) and {} (as recorded) from its first GPU work to the last.",
                time(slowed.least_ns()),
                slowed.on_cpu(),
                time(slowed.window_ns)
            ),
        }
    }

    /// That late launches cost less without the profiler, where they limit the run without it, too; empty where most of that time is work
    /// of the CPU other than launches.
    fn costs_less(&self) -> String {
        let ns = |part| self.wall(part).map_or(0, |row| row.total_ns);
        let launches_ns = ns(WallPart::Launch);
        if launches_ns == 0 || ns(WallPart::HostCompute) > launches_ns {
            return String::new();
        }
        let most = self.slows_at_most();
        let stacks = if self.has_stacks() { "with" } else { "without" };
        format!(
            " Recording slows launches, {stacks} stacks up to {most:.1} times where that was measured: without the profiler, late ones cost less."
        )
    }

    /// What to measure before launches are made cheaper; empty where that is known, or they are late without the profiler, too.
    #[must_use]
    pub(crate) fn measure_first(&self) -> String {
        if self.timed_as_recorded().is_some() {
            return String::new();
        }
        match self.slowed_by_recording() {
            None => String::new(),
            Some(_) if self.has_steps() => {
                "Time a step without the profiler first: launch overhead matters only if it takes about as long as here.".to_owned()
            }
            Some(slowed) => format!(
                "Time the run without the profiler first: launch overhead matters only if it takes well over {}, the GPU's own work{}.",
                time(slowed.least_ns()),
                slowed.on_cpu()
            ),
        }
    }

    /// Whether its bar is of steps: the work that they launch may run after them, so that the bar is not all of it.
    fn has_steps(&self) -> bool {
        self.facts.wall.iter().any(|row| row.of_steps)
    }
}
