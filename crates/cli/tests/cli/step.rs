//! `--step`: one iteration in place of the whole trace.

use testkit::{Kineto, event};

use crate::common::Folder;

/// Three steps of 10 ms; the second has two more ops and one kernel that runs in the third.
fn steps() -> String {
    let mut trace = Kineto::new().with("schemaVersion", "1");
    let slice = |cat: &str, name: &str, at: i64, ns: i64| {
        event("X", cat, name).on(1, 1).at_ns(at).lasting_ns(ns)
    };
    for step in 0..3_i64 {
        let at = step * 10_000_000;
        trace.push(slice("user_annotation", &format!("ProfilerStep#{step}"), at, 10_000_000));
        trace.push(slice("cpu_op", "aten::mm", at + 1_000_000, 2_000_000));
        if step == 1 {
            trace.push(slice("cpu_op", "aten::add", at + 4_000_000, 1_000_000));
            trace.push(slice("cpu_op", "aten::add", at + 6_000_000, 1_000_000));
        }
        let call = slice("cuda_runtime", "cudaLaunchKernel", at + 2_000_000, 5_000);
        trace.push(call.arg("correlation", step + 1));
        let kernel = event("X", "kernel", "gemm").on(0, 7).at_ns(at + 9_000_000);
        let kernel = kernel.lasting_ns(3_000_000).arg("correlation", step + 1);
        trace.push(kernel.arg("device", 0).arg("stream", 7));
    }
    trace.text()
}

#[test]
fn a_step_has_its_own_ops_and_the_work_that_it_launched() {
    let folder = Folder::new("step");
    folder.write("run.json", steps());
    let cpu = |options: &[&str]| {
        folder.run(&[&["cpu", "run.json", "--json"], options].concat()).done().json()
    };
    let whole = cpu(&[]);
    let second = cpu(&["--step", "ProfilerStep#1"]);
    assert_eq!(whole["key_averages"]["aten::mm"]["count"], 3);
    assert_eq!(second["key_averages"]["aten::mm"]["count"], 1);
    assert_eq!(second["key_averages"]["aten::add"]["count"], 2);
    // (Its kernel runs on into the third step, as that of the first one does into this.)
    assert_eq!((&second["links"]["gpu"], &second["links"]["linked"]), (&2.into(), &1.into()));
    let said = folder.run(&["diagnose", "run.json", "--step", "ProfilerStep#1", "--json"]);
    let said = said.done().json();
    assert_eq!(said["iterations"]["list"].as_array().map(Vec::len), Some(1));
    assert_eq!(said["iterations"]["list"][0]["name"], "ProfilerStep#1");
    // One after the other, the steps have all of it.
    let count = |name: &str| cpu(&["--step", name])["cpu_ops"]["n"].as_u64().unwrap_or_default();
    let sum: u64 = ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"].map(count).iter().sum();
    assert_eq!(whole["cpu_ops"]["n"], sum);
}

#[test]
fn an_iteration_that_shares_its_name_is_chosen_by_its_number() {
    let folder = Folder::new("step-number");
    folder.write("run.json", steps().replace("ProfilerStep#2", "ProfilerStep#1"));
    let listed = folder.run(&["diagnose", "run.json"]).done().stdout;
    assert!(listed.contains(r"| ProfilerStep\#0 |"), "it shares its name with none: {listed}");
    assert!(listed.contains(r"| ProfilerStep\#1 (3) |"), "{listed}");
    let of = |name: &str| {
        let json = folder.run(&["cpu", "run.json", "--json", "--step", name]).done().json();
        json["cpu_ops"]["n"].as_u64().unwrap_or_default()
    };
    assert_eq!(of("ProfilerStep#1 (2)"), of("ProfilerStep#1"), "the first one of that name");
    assert_ne!(of("ProfilerStep#1 (3)"), of("ProfilerStep#1 (2)"));
    let refused = folder.run(&["diagnose", "run.json", "--step", "ProfilerStep#1 (1)"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains(r#""ProfilerStep#1 (2)""#), "{}", refused.stderr);
}

#[test]
fn triage_and_overlap_are_of_the_step_and_say_so() {
    let folder = Folder::new("step-triage");
    folder.write("run.json", steps());
    let step = ["--step", "ProfilerStep#1"];
    // (Markdown escapes the number sign.)
    let sentence = r"All figures are of ProfilerStep\#1 alone";
    let triage = folder.run(&[&["triage", "run.json"][..], &step].concat()).done().stdout;
    assert!(triage.contains(sentence), "{triage}");
    assert!(
        triage.contains(r"ProfilerStep\#1: GPU busy 41.7% of the GPU span of 12.0 ms"),
        "{triage}"
    );
    let whole = folder.run(&["triage", "run.json"]).done().stdout;
    assert!(whole.contains("GPU busy 39.1% of the GPU span of 23.0 ms"), "{whole}");
    let overlap = folder.run(&[&["overlap", "run.json"][..], &step].concat()).done().stdout;
    assert!(overlap.contains(sentence), "{overlap}");
}

#[test]
fn artifacts_are_of_the_whole_trace_and_are_refused_for_a_step() {
    let folder = Folder::new("step-artifacts");
    folder.write("run.json", steps());
    for (option, value) in [("--out", "made"), ("--export-map", "map.json")] {
        let refused =
            folder.run(&["triage", "run.json", "--step", "ProfilerStep#1", option, value]);
        assert_ne!(refused.code, 0);
        assert!(refused.stderr.contains("cannot be used with"), "{}", refused.stderr);
        assert!(!folder.path().join(value).exists());
    }
}

#[test]
fn a_step_that_is_not_there_is_refused_with_those_that_are() {
    let folder = Folder::new("step-missing");
    folder.write("run.json", steps());
    let refused = folder.run(&["diagnose", "run.json", "--step", "ProfilerStep#9"]);
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains("\"ProfilerStep#0\", \"ProfilerStep#1\""),
        "{}",
        refused.stderr
    );
}
