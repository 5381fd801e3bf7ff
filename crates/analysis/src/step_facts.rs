//! What the durations of the profiler's steps leave out.
//!
//! The profiler's copy of a step on the GPU contains only work that the annotated thread launched. Where another thread
//! launches much of it, as the autograd engine does, the copy is no step duration, but the distance from one start to the
//! next is. A step on the CPU that only fills the queue says how long launching took.

use std::collections::BTreeMap;

use dialect::kineto::step_number;
use report::units;
use serde::Serialize;
use trace::Row;

use timeline::before_window::each_launch;
use timeline::gpu::Gpu;
use timeline::intervals::{Collector, Interval, both, length, without};
use timeline::percent;

/// Annotations that leave out this share of GPU busy time between the first and the last of them are no durations, in percent.
const LEFT_OUT_PCT: f64 = 10.0;

/// What the durations of steps leave out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StepFacts {
    /// GPU busy time between the first and the last GPU annotation that is in none of them, in percent; `None` if it is less
    /// than 10.
    pub left_out_pct: Option<f64>,
    /// Then from the start of each step on the GPU to the start of the next, in ns.
    pub periods_ns: Vec<i64>,
    /// What the GPU still had to do after the CPU steps, if these only enqueue.
    pub queued: Option<Queued>,
    /// Annotations of steps, on both sides, that hold no GPU work.
    #[serde(skip_serializing_if = "is_zero")]
    pub n_empty: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// GPU work that was queued when the CPU steps were over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Queued {
    /// From the start of the first CPU step to the end of the last one.
    pub steps_ns: i64,
    /// GPU busy time after that.
    pub queued_ns: i64,
    /// The call in which the CPU waits for it, if one is recorded.
    pub waits_in: Option<String>,
}

impl StepFacts {
    /// The facts about `steps`, slices on the CPU and on the GPU by start. `is_gpu` says which side one is on.
    #[inline(never)]
    pub(crate) fn of(gpu: &Gpu<'_>, steps: &[Row], is_gpu: impl Fn(Row) -> bool) -> Self {
        if steps.is_empty() {
            return Self::default();
        }
        let (of_gpu, of_cpu): (Vec<Row>, Vec<Row>) = steps.iter().partition(|row| is_gpu(**row));
        let (left_out_pct, periods_ns) = left_out(gpu, &of_gpu).unwrap_or_default();
        Self { left_out_pct, periods_ns, queued: queued(gpu, &of_cpu), n_empty: 0 }
    }

    /// The facts as sentences.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let Self { left_out_pct, periods_ns, queued, n_empty } = self;
        let left_out = left_out_pct.map(|left_out_pct| {
            let instead = if periods_ns.is_empty() {
                ""
            } else {
                " The summary has the time from the start of each step's annotation on the GPU to the start of the next instead."
            };
            format!(
                "The GPU annotations of the steps leave out {} of GPU busy time between the first and the last of them, so they \
                 are not step durations: an annotation covers at most the kernels that the annotated thread launched, not those \
                 of the autograd engine's thread.{instead}",
                units::percent(left_out_pct)
            )
        });
        let queued = queued.as_ref().map(|Queued { steps_ns, queued_ns, waits_in }| {
            let wait = waits_in.as_ref().map(|call| format!(", and the CPU waits for it in {call}"));
            format!(
                "CPU step durations are enqueue times: the steps end after {}, then the GPU still runs queued work for \
                 {}{}.",
                units::time(*steps_ns),
                units::time(*queued_ns),
                wait.unwrap_or_default()
            )
        });
        let empty = (*n_empty > 0).then(|| {
            let annotations = match n_empty {
                1 => "1 annotation of a step holds".to_owned(),
                n => format!("{} annotations of steps hold", units::count(*n)),
            };
            let them = if *n_empty == 1 { "it" } else { "them" };
            format!("{annotations} no GPU work, and the summary leaves {them} out.")
        });
        left_out.into_iter().chain(queued).chain(empty).collect()
    }
}

/// When the GPU ran anything, of one process or of all: the profiler makes a process of every device.
pub(crate) fn busy(gpu: &Gpu<'_>, of: impl Fn(Row) -> bool) -> Vec<Interval> {
    let mut busy = Collector::default();
    for at in (0..gpu.len()).filter(|at| of(gpu.row(*at))) {
        let slice = gpu.slice(at);
        busy.add(slice.start_ns, slice.end_ns());
    }
    busy.union()
}

/// The share of busy time that the annotations leave out, and the periods of the steps; `None` if they cover it. Of several
/// devices the one with most busy time.
fn left_out(gpu: &Gpu<'_>, steps: &[Row]) -> Option<(Option<f64>, Vec<i64>)> {
    let trace = gpu.trace;
    let process = |row: Row| trace.track_info(trace.track(row)).process;
    let mut processes: Vec<_> = steps.iter().map(|row| process(*row).0).collect();
    trace::sort(&mut processes);
    processes.dedup();
    let mut most: Option<(i64, i64, u32)> = None;
    for of in processes {
        let mut covered = Collector::default();
        let own = || steps.iter().filter(|row| process(**row).0 == of);
        own().for_each(|row| covered.add(trace.ts_ns(*row), trace.end_ns(*row)));
        let covered = covered.union();
        let ends = covered.first().zip(covered.last());
        let span: Vec<Interval> = ends.map(|(first, last)| (first.0, last.1)).into_iter().collect();
        let busy = both(&busy(gpu, |row| process(row).0 == of), &span);
        let (busy_ns, out_ns) = (length(&busy), length(&without(&busy, &covered)));
        if most.is_none_or(|(known_ns, ..)| busy_ns > known_ns) {
            most = Some((busy_ns, out_ns, of));
        }
    }
    let (busy_ns, out_ns, of) = most?;
    let pct = percent(out_ns, busy_ns);
    if pct < LEFT_OUT_PCT {
        return None;
    }
    // A step has an annotation per stream.
    let mut starts: BTreeMap<u64, i64> = BTreeMap::new();
    for row in steps.iter().filter(|row| process(**row).0 == of) {
        if let Some(number) = step_number(trace.name_text(*row)) {
            let start_ns = starts.entry(number).or_insert(i64::MAX);
            *start_ns = trace.ts_ns(*row).min(*start_ns);
        }
    }
    let next = starts.iter().skip(1);
    let periods_ns = starts
        .iter()
        .zip(next)
        // (Between two cycles of a schedule, steps are missing.)
        .filter(|((number, _), (next, _))| number.checked_add(1) == Some(**next))
        .map(|((_, start_ns), (_, next_ns))| next_ns.saturating_sub(*start_ns))
        .collect();
    Some((Some(pct), periods_ns))
}

/// What the GPU still has to do after the CPU steps, if that takes half as long as they did or more, and nothing is launched
/// after them.
fn queued(gpu: &Gpu<'_>, steps: &[Row]) -> Option<Queued> {
    let trace = gpu.trace;
    let first_ns = steps.iter().map(|row| trace.ts_ns(*row)).min()?;
    let last_ns = steps.iter().map(|row| trace.end_ns(*row)).max()?;
    let steps_ns = last_ns.saturating_sub(first_ns);
    let queued_ns = length(&both(&busy(gpu, |_| true), &[(last_ns, i64::MAX)]));
    if steps_ns == 0 || queued_ns.saturating_mul(2) < steps_ns {
        return None;
    }
    let mut later = false;
    // The call that waits longest, and how long.
    let mut wait: Option<(i64, Row)> = None;
    each_launch(trace, |row, _| {
        let name = trace.name_text(row);
        if ["Launch", "Memcpy", "Memset"].iter().any(|word| name.contains(word)) {
            later |= trace.ts_ns(row) > last_ns;
        } else if name.contains("Synchronize") {
            let waits_ns = trace.end_ns(row).saturating_sub(trace.ts_ns(row).max(last_ns));
            if wait.is_none_or(|(longest_ns, _)| waits_ns > longest_ns) {
                wait = Some((waits_ns, row));
            }
        }
    });
    if later {
        return None;
    }
    let wait = wait.filter(|(waits_ns, _)| waits_ns.saturating_mul(2) >= queued_ns);
    let waits_in = wait.map(|(_, row)| trace.name_text(row).to_owned());
    Some(Queued { steps_ns, queued_ns, waits_in })
}

#[cfg(test)]
mod tests {
    use crate::steps::step_summary;
    use crate::{Options, TraceReport, analyze};
    use fixture::{Fixture, kernel, slice};

    const MS: i64 = 1_000_000;

    /// Three steps of 10 ms on the GPU, launched within 3 ms by two threads. The GPU annotations cover `covered_ms` of each.
    fn three_steps(covered_ms: i64, launch_every_ms: i64) -> TraceReport {
        let mut fixture = Fixture::default();
        for n in 0..3 {
            let name = format!("ProfilerStep#{}", n + 2);
            let (cpu_ns, gpu_ns) = (n * launch_every_ms * MS, (1 + n * 10) * MS);
            fixture
                .push(slice("user_annotation", &name).on(400, 1).at(cpu_ns, launch_every_ms * MS));
            fixture.push(slice("gpu_user_annotation", &name).at(gpu_ns, covered_ms * MS));
            for (part, tid) in [(0, 1), (1, 2)] {
                let number = 2 * n + part + 1;
                let launch = slice("cuda_runtime", "cudaLaunchKernel").on(400, tid).link(number);
                fixture.push(launch.at(cpu_ns + (1 + part) * MS / 4, 1_000));
                fixture
                    .push(kernel("k").at(gpu_ns + part * 4 * MS, (4 + 2 * part) * MS).link(number));
            }
        }
        let wait = slice("cuda_runtime", "cudaDeviceSynchronize").on(400, 1).link(99);
        fixture.push(wait.at(3 * launch_every_ms * MS, (31 - 3 * launch_every_ms).max(0) * MS));
        analyze(&fixture.finish(), &Options::default())
    }

    #[test]
    fn gpu_annotations_that_leave_out_work_of_other_threads_are_no_durations() {
        let report = three_steps(4, 10);
        // Of 24 ms between the first and the last, 12 ms are in none.
        assert_eq!(report.step_facts.left_out_pct, Some(50.0));
        assert_eq!(report.step_facts.periods_ns, [10 * MS, 10 * MS]);
        let summary = step_summary(&report.steps, &report.step_facts);
        let found: Vec<_> =
            summary.iter().map(|row| (&*row.side, row.n_steps, row.mean_ns)).collect();
        assert_eq!(found, [("CPU", 3, 10 * MS), ("GPU, start to start", 2, 10 * MS)]);
        assert!(
            report
                .steps
                .iter()
                .all(|row| row.mark.is_empty() == row.raw_category.starts_with("user"))
        );
        let sentences = report.step_facts.sentences();
        assert!(sentences[0].contains("leave out 50.0% of GPU busy time"), "{sentences:?}");
        assert_eq!(sentences.len(), 1);

        let report = three_steps(10, 10);
        assert_eq!(report.step_facts, super::StepFacts::default());
        let summary = step_summary(&report.steps, &report.step_facts);
        assert_eq!(summary[1].side, "GPU");
    }

    #[test]
    fn cpu_steps_that_only_fill_the_queue_are_enqueue_times() {
        let report = three_steps(10, 1);
        let said = report.step_facts.sentences();
        let expected = "CPU step durations are enqueue times: the steps end after 3.00 ms, then the GPU still runs queued \
                        work for 28.0 ms, and the CPU waits for it in cudaDeviceSynchronize.";
        assert_eq!(said, [expected]);
        assert_eq!(three_steps(10, 10).step_facts.queued, None);
    }

    #[test]
    fn steps_have_numbers() {
        let numbers = ["ProfilerStep#12", "ProfilerStep0", "ProfilerStep", "step"];
        assert_eq!(numbers.map(super::step_number), [Some(12), Some(0), None, None]);
    }
}
