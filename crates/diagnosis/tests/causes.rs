//! Causes that a recording shows only in part: batches that workers have made, and work whose launches are missing.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{diagnosis, launch};
use diagnosis::Diagnosis;
use fixture::{Fixture, kernel, slice};

const MS: i64 = 1_000_000;

/// Two kernels with nine milliseconds of a loader with workers between them, of which so many are in a function of Python.
fn loads_in(function: &str, ms: i64) -> Diagnosis {
    let mut fixture = Fixture::default();
    launch(&mut fixture, "k", 1, 0, 4_000, MS);
    let loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
    fixture.push(slice("user_annotation", loader).at(1_004_000, 9 * MS).on(1, 1));
    fixture.push(slice("python_function", function).at(1_500_000, ms * MS).on(1, 1));
    launch(&mut fixture, "k", 2, 10_010_000, 10_014_000, MS);
    diagnosis(fixture)
}

#[test]
fn batches_that_are_there_ask_for_no_more_workers() {
    let there = loads_in("<built-in function loads>", 8);
    let action = &there.actions[0];
    assert!(action.action.starts_with("More workers do not help"), "{}", action.action);
    assert_eq!(action.bound_ns, 8 * MS);
    assert!(
        action
            .hypothesis
            .contains("For 8.00 ms of the 9.00 ms that it runs, the batch is already there")
    );
    // Of a part, the workers are waited for in the rest.
    let partly = loads_in("<built-in function loads>", 4);
    let action = &partly.actions[0];
    assert!(action.action.contains("do not keep up"), "{}", action.action);
    assert_eq!(action.bound_ns, 5 * MS);
    assert!(action.hypothesis.contains("For 4.00 ms of the 9.00 ms that it runs, the batch is"));
    let waits = loads_in("<built-in method poll of select.poll object at 0x7f>", 8);
    let action = &waits.actions[0];
    assert!(action.action.contains("do not keep up"), "{}", action.action);
    assert_eq!(action.bound_ns, 9 * MS);
    assert!(!action.hypothesis.contains("the batch is already there"), "{}", action.hypothesis);
}

/// Four steps, each with a launched kernel of 10 us and ten kernels of 20 us on the same stream, with their launches or without.
fn steps(has_launches: bool) -> Diagnosis {
    let mut fixture = Fixture::default();
    for step in 0..4_i64 {
        let at = step * MS;
        let name = format!("ProfilerStep#{step}");
        fixture.push(slice("user_annotation", &name).at(at, MS - 1_000).on(1, 1));
        launch(&mut fixture, "own", 100 * step + 1, at + 5_000, at + 10_000, 10_000);
        for n in 0..10_i64 {
            let (link, at) = (100 * step + n + 2, at + 30_000 + n * 50_000);
            if has_launches {
                launch(&mut fixture, "engine", link, at - 5_000, at, 20_000);
            } else {
                fixture.push(kernel("engine").at(at, 20_000).link(link));
            }
        }
        launch(&mut fixture, "own", 100 * step + 50, at + 900_000, at + 905_000, 10_000);
    }
    diagnosis(fixture)
}

#[test]
fn iterations_say_that_work_without_a_launch_is_left_out_of_them() {
    let intro = |found: &Diagnosis| found.iterations.as_ref().unwrap().section().intro.join(" ");
    let left_out = "The launches of 40 of 48 GPU slices (800 µs) are not in the file";
    let engine = steps(false);
    assert!(intro(&engine).contains(left_out), "{}", intro(&engine));
    let all = steps(true);
    assert!(!intro(&all).contains("are not in the file"), "{}", intro(&all));
    // (The busy share is not said again of the little that is known.)
    let busy = |found: &Diagnosis| {
        let mut busy = found.findings.iter().filter(|finding| finding.rule.id() == "M1");
        busy.next().unwrap().observation.clone()
    };
    assert!(!busy(&engine).contains("that the steps launched"), "{}", busy(&engine));
}

/// A convolution of one kernel and a GEMM, and a GEMM that another op launches: of 100 us, `in_conv` or not.
fn convolution(in_conv: bool) -> String {
    let mut fixture = Fixture::default();
    let conv = "volta_h884cudnn_256x64_ldg8_relu_exp_small_nhwc_tn_v1";
    for step in 0..10_i64 {
        let at = step * 300_000;
        fixture.push(slice("cpu_op", "aten::cudnn_convolution").at(at, 6_000).on(1, 1));
        launch(&mut fixture, conv, 2 * step + 1, at + 1_000, at + 10_000, 190_000);
        let of_gemm = at + if in_conv { 3_500 } else { 11_000 };
        if !in_conv {
            fixture.push(slice("cpu_op", "aten::mm").at(at + 10_000, 6_000).on(1, 1));
        }
        launch(&mut fixture, "volta_sgemm_128x64_nn", 2 * step + 2, of_gemm, at + 200_000, 100_000);
    }
    diagnosis(fixture).headline.unwrap()
}

#[test]
fn the_first_sentence_counts_convolutions_with_their_gemms() {
    let told = convolution(true);
    let with = "Convolution takes 100.0% of the GPU's time (with the GEMMs that it launches)";
    assert!(told.contains(with), "{told}");
    let told = convolution(false);
    assert!(told.contains("Convolution takes 65.5% of the GPU's time"), "{told}");
    assert!(!told.contains("with the GEMMs"), "{told}");
}

#[test]
fn a_few_launches_before_the_first_recorded_work_are_not_printed() {
    let printed = |at_begin: bool| {
        let mut fixture = Fixture::default();
        for n in 0..20_i64 {
            let is_lost = if at_begin { n < 4 } else { (8..12).contains(&n) };
            let call = slice("cuda_runtime", "cudaLaunchKernel").at(n * 100_000, 5_000).on(1, 1);
            fixture.push(call.link(n + 1));
            if !is_lost {
                fixture.push(kernel("k").at(n * 100_000 + 10_000, 80_000).link(n + 1));
            }
        }
        let found = diagnosis(fixture);
        let lost = found.findings.iter().find(|finding| finding.rule.id() == "lost").unwrap();
        !lost.is_aside
    };
    assert!(!printed(true));
    assert!(printed(false));
}

#[test]
fn a_little_work_from_before_the_recording_is_not_printed() {
    let printed = |before_ns: i64| {
        let mut fixture = Fixture::default();
        fixture.push(kernel("k").at(0, before_ns).link(1_000));
        for n in 1..11_i64 {
            launch(&mut fixture, "k", n, n * 100_000 - 90_000, n * 100_000, 99_000);
        }
        let found = diagnosis(fixture);
        let of_before = found.findings.iter().find(|finding| finding.rule.id() == "orphans");
        !of_before.unwrap().is_aside
    };
    assert!(!printed(9_000) && printed(90_000));
}

/// Thirty launches 100 us apart of kernels of 200 us, of which the first ten are recorded, or every third one.
fn queued(is_recorded: impl Fn(i64) -> bool) -> Diagnosis {
    let mut fixture = Fixture::default();
    for at in 0..30_i64 {
        let call = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(at + 1);
        fixture.push(call.at(at * 100_000, 5_000));
        if is_recorded(at) {
            fixture.push(kernel("k").at(at * 200_000 + 10_000, 200_000).link(at + 1));
        }
    }
    diagnosis(fixture)
}

#[test]
fn a_recording_that_is_cut_is_diagnosed_up_to_the_cut_and_is_no_capture() {
    let cut = queued(|at| at < 10);
    let told = cut.headline.as_deref().unwrap_or_default();
    assert!(
        told.contains("the last 20 of 30 kernel launches, from 1.00 ms on, have no kernel"),
        "{told}"
    );
    assert!(told.contains("The GPU computes for 100.0%") && !cut.wall.is_empty(), "{told}");
    let scattered = queued(|at| at % 3 == 0);
    let told = scattered.headline.as_deref().unwrap_or_default();
    assert!(told.contains("the profiler lost it") && scattered.wall.is_empty(), "{told}");
}

#[test]
fn passes_of_one_kind_are_called_by_it() {
    let of = |names: [&str; 2]| {
        let mut fixture = Fixture::default();
        for n in 0..6_i64 {
            let at = n * MS;
            let name = format!("step[{} bs=1 toks=64]", names[n as usize % 2]);
            fixture.push(slice("user_annotation", &name).at(at, MS - 1_000).on(1, 1));
            launch(&mut fixture, "k", n + 1, at + 5_000, at + 10_000, 800_000);
        }
        diagnosis(fixture).iterations.unwrap().section().intro.join(" ")
    };
    assert!(of(["EXTEND", "EXTEND"]).contains("6 prefills"), "{}", of(["EXTEND", "EXTEND"]));
    assert!(of(["DECODE", "DECODE"]).contains("6 decode passes"));
    assert!(of(["EXTEND", "DECODE"]).contains("6 passes of prefill or decode"));
}
