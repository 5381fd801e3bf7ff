//! One step that begins with the profiler's start, of a scheduler that prepares each step while the one before it runs.
//!
//! The profiler starts in an empty queue, so that the GPU waits for all that the CPU does before the first launch. In a stream of steps it
//! does not: there the CPU prepares a step while the GPU works, and late is only what it takes longer than that work.

use report::units::time;

use super::Device;
use triage::WallPart;

/// The loop of SGLang's scheduler that prepares a batch while the one before it runs (`scheduler.py`).
const AHEAD: &str = ": event_loop_overlap";
/// What starts a recording: SGLang's scheduler, and PyTorch's profiler.
const STARTS: [&str; 2] = [": start_profile", ": start_trace"];
/// What recording does to the figures of the CPU; M23 need not say it again.
pub(crate) const SLOWS: &str = "an estimate: recording slows the CPU";

/// Such a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FirstStep {
    /// The function of the step.
    name: String,
    /// What it takes on the CPU without the profiler's start, in ns.
    cpu_ns: i64,
    /// What the device works in the recording, in ns.
    work_ns: i64,
    /// What is late in the recording, in ns.
    late_ns: i64,
}

impl FirstStep {
    /// What the CPU takes longer than the device: that alone is late in a stream of steps, and no more than is late here.
    pub(crate) fn excess_ns(&self) -> i64 {
        self.cpu_ns.saturating_sub(self.work_ns).min(self.late_ns).max(0)
    }

    /// What late launches cost in a stream of such steps.
    pub(crate) fn cost(&self) -> String {
        let cost = match self.excess_ns() {
            0 => "nothing".to_owned(),
            ns => format!("about {} a step", time(ns)),
        };
        format!(
            "Without the profiler's start, {} takes {} on the CPU, and the GPU's work {}: in a stream of steps, late launches cost {cost} \
             ({SLOWS}, and the rest of the loop is not counted).",
            self.name,
            time(self.cpu_ns),
            time(self.work_ns),
        )
    }

    /// The same with why its launches look late.
    pub(crate) fn sentence(&self) -> String {
        format!(
            "This is one step from the profiler's start on, when nothing was queued; event_loop_overlap prepares each step while the one \
             before it runs. {}",
            self.cost()
        )
    }
}

impl Device<'_> {
    /// The step, where the recording has no other one.
    #[must_use]
    pub(crate) fn first_step(&self) -> Option<FirstStep> {
        let facts = self.facts;
        let passes = facts.triage.stages.iter().map(|row| row.n_windows);
        if passes.sum::<u64>() > 1 || facts.iterations.as_ref().is_some_and(|of| of.list.len() > 1)
        {
            return None;
        }
        let (slices, frames) = (facts.slices, &facts.slices.frames);
        let launches = self.slices().filter_map(|one| one.launch);
        let first = launches.min_by_key(|call| call.start_ns)?;
        let own = frames.on(slices.thread(first.row));
        let starts =
            facts.trace.strings.marked(&|name| STARTS.iter().any(|end| name.ends_with(end)));
        let loops = facts.trace.strings.marked(&|name| name.ends_with(AHEAD));
        let is =
            |marks: &[bool], at: usize| marks[facts.trace.name(frames.slices[at].row).0 as usize];
        let start = own.into_iter().find(|at| is(&starts, *at))?;
        // From the profiler's start outwards, the first function that launches, too.
        let around: Vec<usize> = frames.chain(start).collect();
        let step = around.iter().position(|at| frames.slices[*at].holds(first.start_ns))?;
        let (before, step, outside) =
            (around.get(step.checked_sub(1)?)?, around[step], around.get(step + 1..)?);
        if !outside.iter().any(|at| is(&loops, *at)) {
            return None;
        }
        // (Where it is called again, there are several, whatever annotations tell.)
        let function = facts.trace.name(frames.slices[step].row);
        let is_it = |at: &usize| facts.trace.name(frames.slices[*at].row) == function;
        if frames.on(slices.thread(first.row)).filter(is_it).nth(1).is_some() {
            return None;
        }
        let name = slices.name(&frames.slices[step]);
        let waits_ns = self.wall(WallPart::Communication).map_or(0, |row| row.total_ns);
        Some(FirstStep {
            name: name.rsplit(": ").next().unwrap_or(name).to_owned(),
            cpu_ns: frames.slices[step].dur_ns() - frames.slices[*before].dur_ns(),
            // (Communication lasts as long as the ranks wait for each other.)
            work_ns: self.busy_told()?.0.saturating_sub(waits_ns),
            late_ns: self.late().0,
        })
    }
}
