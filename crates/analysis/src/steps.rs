//! The profiler's steps: `ProfilerStep#N` slices, on the CPU and on the GPU.

use std::collections::BTreeMap;

use dialect::kineto;
use report::{Cell, Column, Row, Unit, Word};
use serde::Serialize;
use trace::{Flags, StringId, each_row};

use crate::step_facts::{self, StepFacts};
use crate::words;
use timeline::absolute_ns;
use timeline::before_window::{duration_ns, each_launch};
use timeline::gpu::Gpu;
use timeline::intervals::{Interval, touching};

/// A step is an outlier if it takes more than 1.5 times the median, or less than the median / 1.5.
const OUTLIER: f64 = 1.5;
/// Marks of what is no duration of a step.
const PARTIAL: &str = "partial";
const EMPTY: &str = "empty";
/// Fewer steps have no outlier.
const LEAST_STEPS: usize = 3;

/// One `ProfilerStep` slice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepRow {
    /// `ProfilerStep#12`.
    pub name: String,
    /// The file's `cat`: `user_annotation` on the CPU, `gpu_user_annotation` on the GPU.
    pub raw_category: String,
    /// Its process, as the file spells it.
    pub pid: String,
    /// Its thread or stream, as the file spells it.
    pub tid: String,
    /// Start on the file's clock; `None` if beyond 64-bit nanoseconds.
    pub ts_ns: Option<i64>,
    /// Duration in ns.
    pub dur_ns: i64,
    /// What sets it apart: `slow`, `fast` (outliers), `partial` (a GPU annotation that covers less than half of its step, or
    /// one of those that leave out much of the GPU work), `empty` (a GPU annotation without GPU work, or the last step if nothing is
    /// launched in it: the profiler stopped within); empty for most.
    pub mark: String,
}

impl StepRow {
    fn is_gpu(&self) -> bool {
        kineto::is_gpu_side(&self.raw_category)
    }

    /// Whether its duration is one of a step.
    fn counts(&self) -> bool {
        ![PARTIAL, EMPTY].contains(&self.mark.as_str())
    }

    fn side(&self) -> &'static str {
        if self.is_gpu() { "GPU" } else { "CPU" }
    }
}

/// Durations of all steps on one side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepSummaryRow {
    /// `CPU`, `GPU` or `GPU, start to start`.
    pub side: String,
    /// Steps, without partial GPU annotations and steps that are empty.
    pub n_steps: u64,
    /// Sum / steps.
    pub mean_ns: i64,
    /// Median by nearest rank.
    pub p50_ns: i64,
    /// Shortest.
    pub min_ns: i64,
    /// Longest.
    pub max_ns: i64,
    /// Steps marked slow or fast.
    pub n_outliers: u64,
}

/// The steps of a trace, and what their durations leave out.
#[inline(never)]
pub(crate) fn steps(gpu: &Gpu<'_>) -> (Vec<StepRow>, StepFacts) {
    let trace = gpu.trace;
    // Asked once a name, not once an event.
    let names = 0..trace.strings.len() as u32;
    let is_step: Vec<bool> =
        names.map(|id| kineto::is_step(trace.strings.get(StringId(id)))).collect();
    let mut rows: Vec<trace::Row> = Vec::new();
    each_row(trace, |row| {
        if is_step[trace.name(row).0 as usize]
            && trace.is_complete(row, Flags::HAS_TS, Flags::default())
        {
            rows.push(row);
        }
    });
    let key = |row: trace::Row| (trace.ts_ns(row), trace.raw_category_text(row));
    trace::sort_numbers(&mut rows, &|a, b| key(a).cmp(&key(b)));
    let is_gpu = |row: trace::Row| kineto::is_gpu_side(trace.raw_category_text(row));
    let is_empty = empty(gpu, &rows, &is_gpu);
    let facts = StepFacts {
        n_empty: is_empty.iter().filter(|is| **is).count() as u64,
        ..StepFacts::of(gpu, &rows, is_gpu)
    };
    let mut rows: Vec<StepRow> = rows
        .into_iter()
        .zip(is_empty)
        .map(|(row, is_empty)| StepRow {
            name: trace.name_text(row).to_owned(),
            raw_category: trace.raw_category_text(row).to_owned(),
            pid: trace.process_of(trace.track(row)).pid.display(&trace.strings),
            tid: trace.track_info(trace.track(row)).tid.display(&trace.strings),
            ts_ns: absolute_ns(trace, trace.ts_ns(row)),
            dur_ns: duration_ns(trace, row),
            mark: if is_empty { EMPTY.to_owned() } else { String::new() },
        })
        .collect();
    mark(&mut rows, facts.left_out_pct.is_some());
    (rows, facts)
}

/// Which steps hold no work: GPU annotations without a GPU slice, and the last step, with its annotations, if others launch work and it
/// does not.
fn empty(gpu: &Gpu<'_>, rows: &[trace::Row], is_gpu: &dyn Fn(trace::Row) -> bool) -> Vec<bool> {
    let trace = gpu.trace;
    let mut launches: Vec<i64> = Vec::new();
    if rows.len() > 1 {
        // (A call that polls an event has a number, too.)
        let mut ids: Vec<i64> = Vec::new();
        gpu.each_row(|row| ids.extend(trace.link(row)));
        trace::sort(&mut ids);
        each_launch(trace, |row, id| {
            if ids.binary_search(&id).is_ok() {
                launches.push(trace.ts_ns(row));
            }
        });
    }
    trace::sort(&mut launches);
    let launches_in = |row: trace::Row| {
        let at = |ns: i64| launches.partition_point(|launch| *launch < ns);
        at(trace.ts_ns(row)) < at(trace.end_ns(row))
    };
    let of_cpu = || rows.iter().copied().filter(|row| !is_gpu(*row));
    let last = of_cpu()
        .max_by_key(|row| trace.ts_ns(*row))
        .filter(|last| !launches_in(*last) && of_cpu().any(launches_in));
    let process = |row: trace::Row| trace.track_info(trace.track(row)).process.0;
    let mut busy: BTreeMap<u32, Vec<Interval>> = BTreeMap::new();
    for row in rows.iter().filter(|row| is_gpu(**row)) {
        let of = process(*row);
        busy.entry(of).or_insert_with(|| step_facts::busy(gpu, |row| process(row) == of));
    }
    let is_empty = |row: &trace::Row| {
        let times = (trace.ts_ns(*row), trace.end_ns(*row));
        // (Of a device whose work is elsewhere, nothing shows that the step has none.)
        let own = busy.get(&process(*row)).filter(|own| is_gpu(*row) && !own.is_empty());
        own.is_some_and(|own| touching(own, times).is_empty())
            || last.is_some_and(|last| trace.name(last) == trace.name(*row))
    };
    rows.iter().map(is_empty).collect()
}

/// Marks partial GPU annotations, then outliers of each side.
fn mark(rows: &mut [StepRow], partial: bool) {
    // ROCm's profiler records GPU annotations of a few microseconds for steps of milliseconds.
    let cpu: Vec<(String, i64)> =
        rows.iter().filter(|row| !row.is_gpu()).map(|row| (row.name.clone(), row.dur_ns)).collect();
    for row in rows.iter_mut().filter(|row| row.is_gpu() && row.mark.is_empty()) {
        let mut of_step = cpu.iter().filter(|(name, _)| *name == row.name);
        if partial || of_step.any(|(_, dur_ns)| row.dur_ns.saturating_mul(2) < *dur_ns) {
            row.mark = PARTIAL.to_owned();
        }
    }
    for side in ["CPU", "GPU"] {
        let is_of = |row: &StepRow| row.side() == side && row.counts();
        let durations: Vec<i64> =
            rows.iter().filter(|row| is_of(row)).map(|row| row.dur_ns).collect();
        let mut marks = outliers(&durations);
        for row in rows.iter_mut().filter(|row| is_of(row)) {
            row.mark = marks.next().unwrap_or_default().to_owned();
        }
    }
}

/// `slow` or `fast` for each duration that is an outlier, else nothing.
fn outliers(durations: &[i64]) -> impl Iterator<Item = &'static str> {
    let judged = durations.len() >= LEAST_STEPS;
    let median = timeline::median(&mut durations.to_vec()).unwrap_or_default() as f64;
    durations.iter().map(move |dur| match *dur as f64 {
        dur if judged && dur > median * OUTLIER => "slow",
        dur if judged && dur * OUTLIER < median => "fast",
        _ => "",
    })
}

/// Mean, median and extremes of each side that has steps, the CPU first. Of a GPU whose annotations are no durations, those
/// from start to start.
#[must_use]
pub(crate) fn step_summary(rows: &[StepRow], facts: &StepFacts) -> Vec<StepSummaryRow> {
    let summary = |side: &str, mut durations: Vec<i64>, n_outliers: u64| {
        let n = i64::try_from(durations.len()).unwrap_or(i64::MAX);
        let sum = durations.iter().fold(0_i64, |sum, ns| sum.saturating_add(*ns));
        Some(StepSummaryRow {
            side: side.to_owned(),
            n_steps: durations.len() as u64,
            mean_ns: sum.checked_div(n)?,
            p50_ns: timeline::median(&mut durations)?,
            min_ns: durations.iter().copied().min()?,
            max_ns: durations.iter().copied().max()?,
            n_outliers,
        })
    };
    let of_side = |side: &str| {
        let steps: Vec<&StepRow> =
            rows.iter().filter(|row| row.side() == side && row.counts()).collect();
        let n_outliers = steps.iter().filter(|row| !row.mark.is_empty()).count() as u64;
        summary(side, steps.iter().map(|row| row.dur_ns).collect(), n_outliers)
    };
    let periods = &facts.periods_ns;
    let n_outliers = outliers(periods).filter(|mark| !mark.is_empty()).count() as u64;
    let start_to_start = summary("GPU, start to start", periods.clone(), n_outliers);
    [of_side("CPU"), of_side("GPU"), start_to_start].into_iter().flatten().collect()
}

impl Row for StepRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Step",
            unit: Unit::Name,
            help: "Name of the step, as the profiler wrote it.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "raw_category",
            title: "Side",
            unit: Unit::Text,
            help: "CPU: the step on its thread. GPU: the GPU work that it launched.",
            cell: |row| {
                let known = words::STEP_SIDE.iter().any(|word| word.id == row.raw_category);
                // (Old profilers record steps as operators.)
                let side: &str = if known { &row.raw_category } else { row.side() };
                Word::cell(words::STEP_SIDE, side)
            },
        },
        Column {
            key: "pid",
            title: "Process",
            unit: Unit::Text,
            help: "pid, as the file spells it.",
            cell: |row| row.pid.as_str().into(),
        },
        Column {
            key: "tid",
            title: "Thread",
            unit: Unit::Text,
            help: "tid (the stream on the GPU side), as the file spells it.",
            cell: |row| row.tid.as_str().into(),
        },
        Column {
            key: "ts_ns",
            title: "Start",
            unit: Unit::Instant,
            help: "Start on the file's clock.",
            cell: |row| Cell::or_missing(row.ts_ns, Cell::Instant, "beyond 64-bit nanoseconds"),
        },
        Column {
            key: "dur_ns",
            title: "Duration",
            unit: Unit::Time,
            help: "Duration of the step.",
            cell: |row| Cell::Ns(row.dur_ns),
        },
        Column {
            key: "mark",
            title: "Tag",
            unit: Unit::Text,
            help: "Long: more than 1.5 times the median of its side. Short: less than the median / 1.5. A long step of the CPU need not delay the GPU. Partial: the GPU annotation covers less than half of the CPU step, or the GPU annotations leave out 10% of GPU busy time or more, so it is not the step's duration. Empty: a GPU annotation without GPU work, or a last step that launches nothing.",
            cell: |row| match row.mark.as_str() {
                "slow" => "Long".into(),
                "fast" => "Short".into(),
                PARTIAL => "Partial".into(),
                EMPTY => "Empty".into(),
                other => other.into(),
            },
        },
    ];
}

impl Row for StepSummaryRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "side",
            title: "Side",
            unit: Unit::Text,
            help: "CPU: steps of the script. GPU: the profiler's copies of them around GPU slices. GPU, start to start: from the start of a copy to the start of the next.",
            cell: |row| row.side.as_str().into(),
        },
        Column {
            key: "n_steps",
            title: "Steps",
            unit: Unit::Count,
            help: "Number of steps, without partial GPU annotations and empty steps; of start to start the number of pairs.",
            cell: |row| Cell::Count(row.n_steps),
        },
        Column {
            key: "mean_ns",
            title: "Mean",
            unit: Unit::Time,
            help: "Sum / steps.",
            cell: |row| Cell::Ns(row.mean_ns),
        },
        crate::columns::p50_ns(
            "Median duration: of an even number, the mean of the two in the middle.",
            |row| Cell::Ns(row.p50_ns),
        ),
        Column {
            key: "min_ns",
            title: "Min",
            unit: Unit::Time,
            help: "Shortest step.",
            cell: |row| Cell::Ns(row.min_ns),
        },
        Column {
            key: "max_ns",
            title: "Max",
            unit: Unit::Time,
            help: "Longest step.",
            cell: |row| Cell::Ns(row.max_ns),
        },
        Column {
            key: "n_outliers",
            title: "Outliers",
            unit: Unit::Count,
            help: "Steps above 1.5 times the median, or below the median / 1.5.",
            cell: |row| Cell::Count(row.n_outliers),
        },
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, analyze};
    use fixture::{Fixture, slice};

    fn rows(fixture: Fixture) -> Vec<StepRow> {
        analyze(&fixture.finish(), &Options::default()).steps
    }

    #[test]
    fn steps_that_differ_are_marked_and_partial_gpu_annotations_are_no_durations() {
        let mut fixture = Fixture::default();
        for (n, dur) in [(1, 80_000), (2, 96_000), (3, 35_000), (4, 125_000), (5, 80_000)] {
            let name = format!("ProfilerStep#{n}");
            fixture.push(slice("user_annotation", &name).at(n * 200_000, dur));
            fixture.push(slice("gpu_user_annotation", &name).at(n * 200_000 + 7, 18));
        }
        let rows = rows(fixture);
        let marks = |gpu: bool| -> Vec<&str> {
            rows.iter().filter(|row| row.is_gpu() == gpu).map(|row| row.mark.as_str()).collect()
        };
        assert_eq!(marks(false), ["", "", "fast", "slow", ""]);
        assert_eq!(marks(true), ["partial"; 5]);
        let summary = step_summary(&rows, &StepFacts::default());
        let [cpu] = &summary[..] else { panic!("{summary:?}") };
        assert_eq!((&*cpu.side, cpu.n_steps, cpu.mean_ns, cpu.p50_ns), ("CPU", 5, 83_200, 80_000));
        assert_eq!((cpu.min_ns, cpu.max_ns, cpu.n_outliers), (35_000, 125_000, 2));
        testkit::assert_keys(cpu, StepSummaryRow::COLUMNS.iter().map(|column| column.key));
        assert!(step_summary(&[], &StepFacts::default()).is_empty());
    }

    #[test]
    fn a_last_step_without_work_is_no_step() {
        let with = |last: bool| {
            let mut fixture = Fixture::default();
            for n in 0..3_i64 {
                let name = format!("ProfilerStep#{n}");
                let (at, dur) = if n < 2 { (n * 1_000, 900) } else { (2_000, 30) };
                fixture.push(slice("user_annotation", &name).at(at, dur).on(1, 1));
                fixture.push(slice("gpu_user_annotation", &name).at(at + 10, dur));
                // (A call that polls an event has a number, and launches nothing.)
                let poll = slice("cuda_runtime", "cudaEventQuery").at(at + 20, 2).on(1, 1);
                fixture.push(poll.link(100 + n));
                if n < 2 || last {
                    let call = slice("cuda_runtime", "cudaLaunchKernel").at(at + 5, 2).on(1, 1);
                    fixture.push(call.link(n));
                    fixture.push(fixture::kernel("k").at(at + 10, dur).link(n));
                }
            }
            let report = analyze(&fixture.finish(), &Options::default());
            let summary = step_summary(&report.steps, &report.step_facts);
            let marks: Vec<String> = report.steps.iter().map(|row| row.mark.clone()).collect();
            let n: Vec<(u64, i64)> = summary.iter().map(|row| (row.n_steps, row.min_ns)).collect();
            (marks, n, report.step_facts.sentences())
        };
        let (marks, n, said) = with(false);
        assert_eq!(marks, ["", "", "", "", "empty", "empty"]);
        assert_eq!(n, [(2, 900), (2, 900)]);
        assert_eq!(
            said,
            ["2 annotations of steps hold no GPU work, and the summary leaves them out."]
        );
        let (_, n, said) = with(true);
        assert_eq!((n, said), (vec![(3, 30), (3, 30)], Vec::new()));
    }

    #[test]
    fn two_steps_have_no_outlier() {
        let mut fixture = Fixture::default();
        fixture.push(slice("Operator", "ProfilerStep#1").at(0, 10));
        fixture.push(slice("Operator", "ProfilerStep#2").at(50, 90));
        let rows = rows(fixture);
        assert!(rows.iter().all(|row| row.mark.is_empty()));
        let summary = step_summary(&rows, &StepFacts::default());
        assert_eq!((summary[0].mean_ns, summary[0].p50_ns), (50, 50));
    }

    #[test]
    fn steps_come_by_start_then_by_raw_category() {
        let mut fixture = Fixture::default();
        fixture.push(slice("user_annotation", "ProfilerStep#2").at(50, 9));
        fixture.push(slice("user_annotation", "ProfilerStep#1").at(10, 40));
        fixture.push(slice("gpu_user_annotation", "ProfilerStep#1").at(10, -3));
        fixture.push(slice("user_annotation", "a ProfilerStep").at(0, 5));
        let rows = rows(fixture);
        let found: Vec<_> =
            rows.iter().map(|row| (row.raw_category.as_str(), row.ts_ns, row.dur_ns)).collect();
        assert_eq!(
            found,
            [
                ("gpu_user_annotation", Some(10), 0),
                ("user_annotation", Some(10), 40),
                ("user_annotation", Some(50), 9)
            ]
        );
    }
}
