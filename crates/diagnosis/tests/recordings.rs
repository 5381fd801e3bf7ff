//! Recordings of our own, whose steps were timed without the profiler, too: what is said to limit them must hold there.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{of_file, of_file_timed, read};
use diagnosis::{Finding, Level};
use host::HostIndex;
use ranks::{RankCalls, Runs};
use report::Confidence;

/// Of a step without the profiler, for so much of it the GPU is busy.
const LIMITS: f64 = 0.8;
/// And with so little its launches, or other work of the CPU, are what limits it.
const IS_LIMITED: f64 = 0.1;

/// No finding on launches is above this level where the GPU is busy for a share of a step.
fn report_level(share: f64) -> Level {
    if share >= LIMITS { Level::Medium } else { Level::High }
}

/// A recording whose steps were timed: what a step takes without the profiler, what the GPU works in one, and how many are recorded.
struct Timed {
    sample: testkit::Sample,
    step_ns: f64,
    work_ns: f64,
    steps: f64,
}

fn timed() -> Vec<Timed> {
    let of = |sample: testkit::Sample| {
        let truth = sample.truth();
        let step_ns = truth["without_the_profiler"]["step_ns"].as_f64()?;
        let marks = truth["profiler_steps"].as_array().unwrap().iter();
        let steps = marks.filter(|mark| mark["cat"] == "user_annotation").count().max(1) as f64;
        let work_ns = truth["gpu"]["busy_ns"].as_f64().unwrap() / steps;
        Some(Timed { sample, step_ns, work_ns, steps })
    };
    testkit::own_trace_samples().into_iter().filter_map(of).collect()
}

#[test]
fn a_step_that_was_timed_tells_what_launches_cost() {
    let (mut by_gpu, mut by_cpu) = (0, 0);
    for Timed { sample, step_ns, work_ns, steps } in timed() {
        let found = of_file_timed(&sample.bytes(), Some(step_ns as i64));
        let stem = sample.stem();
        let misfit = found.findings.iter().find(|finding| finding.verdict == "timed_otherwise");
        assert!(misfit.is_none(), "{stem}: {misfit:?}");
        let is_late = |it: &&Finding| ["launch_bound", "host_bound"].contains(&it.verdict);
        let late: Vec<&Finding> = found.findings.iter().filter(is_late).collect();
        let headline = found.headline.clone().unwrap_or_default();
        let says_gpu = headline.starts_with("Without the profiler the GPU's own work");
        // (What the figure program counts as busy has communication in it, and waits of other ranks.)
        let rest_ns = (step_ns - work_ns).max(0.0) * steps;
        for finding in &late {
            let bound_ns = finding.bound_ns.unwrap() as f64;
            assert!(bound_ns <= 1.1 * rest_ns + 0.05 * step_ns * steps, "{stem}: {finding:?}");
        }
        let share = work_ns / step_ns;
        by_gpu += usize::from(says_gpu);
        by_cpu += usize::from(!late.is_empty() && share <= IS_LIMITED);
        assert!(!says_gpu || share >= LIMITS, "{stem}: {share:.2}, {headline}");
        for action in &found.actions {
            assert!(action.bound_pct <= 100.0, "{stem}: {action:?}");
        }
        let is_much = late.iter().any(|finding| finding.level < report_level(share));
        assert!(!is_much, "{stem}: busy for {share:.2}, {late:?}");
    }
    assert!(by_gpu >= 2 && by_cpu >= 2, "{by_gpu} and {by_cpu} recordings");
}

#[test]
fn a_time_of_something_else_changes_nothing() {
    let all = timed();
    let own = all.iter().find(|one| one.sample.stem().contains("attention_naive")).unwrap();
    let (bytes, whole) = (own.sample.bytes(), of_file(&own.sample.bytes()));
    for factor in [0.1, 10.0] {
        let found = of_file_timed(&bytes, Some((own.step_ns * factor) as i64));
        assert!(found.findings.iter().any(|finding| finding.verdict == "timed_otherwise"));
        assert_eq!(
            (found.headline, found.actions),
            (whole.headline.clone(), whole.actions.clone())
        );
    }
}

#[test]
fn late_launches_are_sure_only_where_they_are_late_without_the_profiler() {
    let (mut by_gpu, mut by_cpu) = (0, 0);
    for Timed { sample, step_ns, work_ns, .. } in timed() {
        let found = of_file(&sample.bytes()).findings;
        let late: Vec<&Finding> = found
            .iter()
            .filter(|it| ["launch_bound", "host_bound"].contains(&it.verdict))
            .collect();
        let share = work_ns / step_ns;
        if share >= LIMITS && !late.is_empty() {
            by_gpu += 1;
            let is_sure = late.iter().any(|finding| finding.confidence != Confidence::Low);
            assert!(!is_sure, "{}: busy for {share:.2} of a step, {late:?}", sample.stem());
        }
        if share <= IS_LIMITED && late.iter().any(|finding| finding.verdict == "launch_bound") {
            by_cpu += 1;
            let is_sure = late.iter().all(|finding| finding.confidence == Confidence::High);
            assert!(is_sure, "{}: busy for {share:.2} of a step, {late:?}", sample.stem());
        }
    }
    assert!(by_gpu >= 3 && by_cpu >= 2, "{by_gpu} and {by_cpu} recordings");
}

/// Two ranks of DistributedDataParallel on gloo, which has two threads for the two buckets of each step. Rank 1 sleeps for 4 ms in each of
/// the three steps. (`samples/record/ranks.py`)
#[test]
fn the_rank_that_sleeps_is_the_last_to_join_every_bucket() {
    let names = ["gpu_gloo_rank0", "gpu_gloo_rank1"];
    let samples = testkit::own_trace_samples();
    let of = |(rank, name): (i64, &str)| {
        let sample = samples.iter().find(|sample| sample.stem() == name).unwrap();
        let (decoded, details) = read(&sample.bytes());
        RankCalls::of(&HostIndex::of(&decoded.trace), &details, rank, name)
    };
    let ranks: Vec<RankCalls> = (0..).zip(names).map(of).collect();
    let compared = Runs::of(&ranks[..]).largest().unwrap().compared();
    let json = serde_json::to_value(compared).unwrap();
    let row = |at: usize| {
        let row = &json["cpu_calls"][at];
        let of = |key: &str| row[key].as_i64().unwrap();
        (of("n"), of("n_last"), of("n_unmatched"), of("waits_ns"))
    };
    // (The starts of the annotations of one size on rank 1, less those on rank 0. Each annotation has a copy on the GPU.)
    let of_steps: i64 =
        [4_386_402, 4_247_061, 5_325_402, 4_002_115, 3_980_293, 6_631_859].iter().sum();
    assert_eq!(row(0), (6, 0, 0, of_steps));
    assert_eq!(row(1), (6, 6, 0, 0));
    assert_eq!(json["cpu_calls"][0]["most"], "1");
}

/// What the programs of two recordings do wrong (`samples/record/cpu.py`): a list keeps the loss of each step with its graph, and one
/// worker of a data loader sleeps for 12 ms for each of the eight items of a batch.
#[test]
fn what_a_program_does_wrong_is_the_first_thing_to_do_about_it() {
    let samples = testkit::own_trace_samples();
    let of = |name: &str| {
        let sample = samples.iter().find(|sample| sample.stem() == name).unwrap();
        of_file(&sample.bytes())
    };
    let leak = of("cpu_leak");
    let growth = leak.findings.iter().find(|finding| finding.verdict == "growth").unwrap();
    let kept = "each of 5 steps ends with exactly 160 KiB more allocated than the one before.";
    assert!(growth.observation.ends_with(kept), "{}", growth.observation);
    let first = &leak.actions[0];
    assert_eq!((&*first.rule, &*first.impact()), ("M12", "memory, not time"));
    let loader = of("cpu_loader_workers");
    let first = &loader.actions[0];
    assert_eq!(first.rule, "M9");
    assert!(first.action.starts_with("The workers of the data loader do not keep up"));
    assert!(loader.headline.unwrap().starts_with("The data loader takes "));
}
