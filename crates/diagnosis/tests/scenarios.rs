//! The questions that engineers bring to a profiler: each as a trace, with what the diagnosis must lead to.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test: helpers fail as the tests do")]

use decode::{Decoder, DetailsReader};
use diagnosis::{Diagnosis, Facts, WallPart, diagnose};
use host::{HostReport, wants_inputs};
use triage::{Sources, Stage, TriageOptions, TriageReport, triage};

/// What is known of a scenario.
struct Known {
    diagnosis: Diagnosis,
    host: HostReport,
    triage: TriageReport,
}

fn scenario(name: &str) -> Known {
    let all = testkit::scenarios();
    let text = all.iter().find(|one| one.name == name).unwrap().trace.text();
    let mut decoder = Decoder::new();
    decoder.push(text.as_bytes()).unwrap();
    let decoded = decoder.finish().unwrap();
    assert!(decoded.problems.is_empty(), "{:?}", decoded.problems);
    let mut reader = DetailsReader::with_host(&decoded, wants_inputs);
    reader.push(text.as_bytes());
    let details = reader.finish();
    let trace = &decoded.trace;
    let sources = Sources { details: Some(&details), ..Sources::default() };
    let triage = triage(trace, &TriageOptions::default(), &sources);
    let index = host::HostIndex::of(trace);
    let host = host::host(&index, &details);
    let diagnosis = diagnose(&Facts::of(&index, &details, &host, &triage));
    Known { diagnosis, host, triage }
}

impl Known {
    fn headline(&self) -> &str {
        self.diagnosis.headline.as_deref().unwrap()
    }

    fn finding(&self, rule: &str, verdict: &str) -> &diagnosis::Finding {
        let mut all = self.diagnosis.findings.iter();
        let found = all.find(|one| one.rule.id() == rule && one.verdict == verdict);
        found.unwrap_or_else(|| panic!("{rule} {verdict} is not in {:#?}", self.diagnosis.findings))
    }

    fn share(&self, part: WallPart) -> f64 {
        let row = self.diagnosis.wall.iter().find(|row| row.part == part);
        row.map_or(0.0, |row| row.share_pct)
    }
}

#[test]
fn the_loader_is_the_cause_and_not_the_model() {
    let run = scenario("data_loading");
    assert!(
        run.headline().starts_with("The GPU waits for the data loader for 7"),
        "{}",
        run.headline()
    );
    assert!(run.share(WallPart::DataLoading) > 70.0);
    let first = &run.diagnosis.actions[0];
    assert_eq!(first.rule, "M9");
    assert!(first.action.contains("num_workers"), "{}", first.action);
    // The bound is the wait, to the share of the bar.
    assert!((first.bound_pct - run.share(WallPart::DataLoading)).abs() < 1.0, "{first:?}");
}

#[test]
fn a_copy_is_a_symptom_of_pageable_memory() {
    let run = scenario("copies");
    run.finding("M7", "h2d_pageable");
    let first = &run.diagnosis.actions[0];
    assert!(first.action.contains("pin"), "{}", first.action);
    let advice: Vec<&str> = run.diagnosis.actions.iter().map(|one| &*one.action).collect();
    for wrong in ["clone", "in-place", "in place"] {
        assert!(!advice.iter().any(|text| text.contains(wrong)), "{advice:?}");
    }
}

#[test]
fn thousands_of_ops_begin_with_their_phases() {
    let run = scenario("many_ops");
    assert!(run.host.cpu_ops.n >= 10_000);
    let stages: Vec<Stage> = run.triage.stages.iter().map(|row| row.stage).collect();
    assert_eq!(stages, [Stage::Forward, Stage::Backward, Stage::Optimizer]);
    let ns = |at: usize| run.triage.stages[at].total_ns;
    assert!(ns(1) > ns(0) && ns(0) > ns(2), "{:?}", run.triage.stages);
    assert_eq!(run.diagnosis.iterations.unwrap().list.len(), 2);
}

#[test]
fn a_clock_on_the_cpu_measures_launches() {
    let run = scenario("cpu_timer");
    let ops = run.host.sections().into_iter().find(|section| section.id == "cpu").unwrap();
    let said = "aten::mm takes 960 µs on the CPU and 400 ms on the GPU: an op returns before its GPU work has run";
    assert!(ops.intro.iter().any(|text| text.starts_with(said)), "{:?}", ops.intro);
    assert!(
        run.headline().starts_with("The GPU computes for 100.0% of its span"),
        "{}",
        run.headline()
    );
}

#[test]
fn the_first_iteration_is_cold_and_the_others_are_the_answer() {
    let run = scenario("no_warm_up");
    let iterations = run.diagnosis.iterations.as_ref().unwrap();
    let cold: Vec<bool> = iterations.list.iter().map(|one| one.cold.is_some()).collect();
    assert_eq!(cold, [true, false, false, false, false, false]);
    assert!(
        run.headline().ends_with("1 of 6 iterations, at the beginning, is cold and left out."),
        "{}",
        run.headline()
    );
    let warm = iterations.classes[0].cpu.figures.as_ref().unwrap();
    assert!((100_000_000..110_000_000).contains(&warm.p50_ns), "{warm:?}");
    assert!(run.share(WallPart::Compute) > 90.0);
}

#[test]
fn the_phase_that_takes_the_memory_is_named() {
    let run = scenario("out_of_memory");
    let found = run.finding("M12", "activations");
    assert!(
        found
            .observation
            .contains("+40.0 GiB in the forward pass and -38.0 GiB in the backward pass"),
        "{}",
        found.observation
    );
    assert!(found.observation.contains("takes 66.7% of it"), "{}", found.observation);
    assert!(found.meaning.contains("checkpoint"), "{}", found.meaning);
}
