//! What the CPU does in one long call while a device waits for it, on tiny traces.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{diagnosis, launch};
use diagnosis::Diagnosis;
use fixture::{Fixture, kernel, slice};

const MS: i64 = 1_000_000;
const LINE: &str = "train.py(3): step";

/// Four kernels of 2 ms each, and 8 ms before each but the first in which a function of Python is open and calls `slices`: category, name,
/// start and duration in us.
fn between(slices: &[(&str, &str, i64, i64)]) -> Diagnosis {
    let mut fixture = Fixture::default();
    for n in 0..4_i64 {
        let at = n * 10 * MS;
        launch(&mut fixture, "gemm", n + 1, at, at + 4_000, 2 * MS);
        let frame = slice("python_function", LINE).at(at + 10_000, 9_980_000);
        fixture.push(frame.on(1, 1));
        for (category, name, start_us, dur_us) in slices {
            let own = slice(category, name).at(at + 2 * MS + start_us * 1_000, dur_us * 1_000);
            fixture.push(own.on(1, 1));
        }
    }
    diagnosis(fixture)
}

fn first(found: &Diagnosis) -> (&str, i64) {
    let action = found.actions.first().unwrap();
    (action.remedy, action.bound_ns / MS)
}

#[test]
fn one_long_call_is_named_with_its_cure() {
    let collects = between(&[("python_function", "<built-in function collect>", 500, 6_000)]);
    assert_eq!(first(&collects), ("collect-rarely", 18));
    let headline = collects.headline.as_deref().unwrap();
    assert!(headline.contains(", for 18.0 ms of it while the CPU collects garbage"), "{headline}");
    assert!(!headline.contains("Recording"), "it is as slow without the profiler: {headline}");
    assert_eq!(collects.actions[0].first, "");
    let random = [("cpu_op", "aten::randn", 500, 6_000), ("cpu_op", "aten::normal_", 501, 5_998)];
    let random = between(&random);
    assert_eq!(first(&random).0, "random-on-gpu");
    assert!(random.actions[0].hypothesis.contains("(aten::randn)"), "{:?}", random.actions[0]);
    let computes = between(&[
        ("cpu_op", "aten::stft", 500, 3_000),
        ("cpu_op", "aten::_fft_r2c", 501, 2_998),
        ("cpu_op", "aten::abs", 3_600, 2_000),
    ]);
    assert_eq!(first(&computes).0, "compute-on-gpu");
    let hypothesis = &computes.actions[0].hypothesis;
    assert!(hypothesis.contains("CPU tensors (aten::stft, aten::abs)"), "{hypothesis}");
}

#[test]
fn what_is_short_or_no_computation_or_a_part_of_the_time_is_not() {
    let short: Vec<_> = (0..60).map(|n| ("cpu_op", "aten::abs", 500 + n * 100, 90)).collect();
    for slices in [
        &short[..],
        &[("cpu_op", "aten::copy_", 500, 6_000)],
        &[("cpu_op", "aten::abs", 500, 2_000)],
        &[("cpu_op", "aten::abs", 500, 6_000), ("cuda_runtime", "cudaMalloc", 501, 5_998)],
    ] {
        let found = between(slices);
        let remedies: Vec<&str> = found.actions.iter().map(|action| action.remedy).collect();
        let is_long =
            |id: &&str| ["collect-rarely", "random-on-gpu", "compute-on-gpu"].contains(id);
        assert!(!remedies.iter().any(is_long), "{slices:?}: {remedies:?}");
    }
}

#[test]
fn an_op_that_launches_computes_on_the_gpu() {
    let mut fixture = Fixture::default();
    for n in 0..4_i64 {
        let at = n * 10 * MS;
        fixture.push(slice("cpu_op", "aten::mm").at(at + 2 * MS, 8 * MS + 10_000).on(1, 1));
        let call = slice("cuda_runtime", "cudaLaunchKernel").at(at + 10 * MS, 2_000).on(1, 1);
        fixture.push(call.link(n + 1));
        fixture.push(kernel("gemm").at(at + 10 * MS + 4_000, 2 * MS).link(n + 1));
    }
    let found = diagnosis(fixture);
    assert!(found.actions.iter().all(|action| action.remedy != "compute-on-gpu"), "{found:?}");
}

#[test]
fn an_op_of_which_the_kernel_is_lost_computes_on_the_gpu() {
    let lost = between(&[
        ("cpu_op", "aten::conv2d", 500, 6_000),
        ("cuda_runtime", "cudaLaunchKernel", 510, 5),
    ]);
    assert!(lost.actions.iter().all(|one| one.remedy != "compute-on-gpu"), "{:?}", lost.actions);
    let views = between(&[("cpu_op", "aten::view", 500, 6_000)]);
    assert!(views.actions.iter().all(|one| one.remedy != "compute-on-gpu"), "{:?}", views.actions);
}

#[test]
fn a_function_that_launches_nothing_is_named_where_launches_limit() {
    // Short kernels launched one by one, and a batch that Python makes before every hundredth.
    let with = |name: &str, launches: bool| {
        let mut fixture = Fixture::default();
        let mut at = 0;
        for n in 0..400_i64 {
            if n % 100 == 50 {
                fixture.push(slice("python_function", name).at(at, 2 * MS).on(1, 1));
                for k in 0..25 {
                    let split = slice("python_function", "<built-in method split>");
                    fixture.push(split.at(at + k * 80_000 + 1_000, 70_000).on(1, 1));
                }
                if launches {
                    launch(&mut fixture, "fill", 1_000 + n, at + MS, at + MS + 4_000, 2_000);
                }
                at += 2 * MS + 10_000;
            }
            launch(&mut fixture, "gemm", n + 1, at, at + 4_000, 5_000);
            at += 50_000;
        }
        diagnosis(fixture)
    };
    let own =
        |found: &Diagnosis| found.actions.iter().find(|one| one.remedy == "not-in-step").cloned();
    let found = own(&with("data.py(68): collate", false)).unwrap();
    assert_eq!(found.place, "data.py:68 collate");
    assert!((7_500_000..=8_000_000).contains(&found.bound_ns), "{found:?}");
    assert!(own(&with("data.py(68): collate", true)).is_none(), "it launches");
    let loader = "torch/utils/data/dataloader.py(700): _next_data";
    assert!(own(&with(loader, false)).is_none(), "M9 is about that");
}

#[test]
fn what_a_forward_pass_does_on_the_cpu_is_not_done_ahead_of_it() {
    let remedy = |around: &str| {
        let mut fixture = Fixture::default();
        fixture.push(slice("python_function", around).on(1, 1).at(0, 28 * MS));
        let mut at = 1_000;
        for n in 0..400_i64 {
            if n % 100 == 50 {
                let own = slice("python_function", "model/attention.py(363): attention_cpu");
                fixture.push(own.at(at, 2 * MS).on(1, 1));
                at += 2 * MS + 10_000;
            }
            launch(&mut fixture, "gemm", n + 1, at, at + 4_000, 5_000);
            at += 50_000;
        }
        let found = diagnosis(fixture);
        let own = found.actions.into_iter().find(|one| one.place.contains("attention_cpu"));
        own.map(|one| one.remedy)
    };
    assert_eq!(remedy("nn.Module: Net_0"), Some("not-on-cpu"), "it may need what the pass made");
    assert_eq!(remedy("<built-in method run>"), Some("not-in-step"));
}

#[test]
fn a_thread_that_waits_for_the_one_that_launches_does_nothing() {
    // The backward pass runs on thread 2, in many short ops; thread 1 is in one call meanwhile.
    let mut fixture = Fixture::default();
    for n in 0..4_i64 {
        let at = n * 10 * MS;
        launch(&mut fixture, "gemm", 2 * n + 1, at, at + 4_000, MS);
        let waits = slice("python_function", "<built-in function collect>");
        fixture.push(waits.at(at + 10_000, 9_900_000).on(1, 1));
        for k in 0..80 {
            let op = slice("cpu_op", "MmBackward0").at(at + MS + k * 100_000, 90_000);
            fixture.push(op.on(1, 2));
        }
        let call = slice("cuda_runtime", "cudaLaunchKernel").at(at + 9_200_000, 2_000).on(1, 2);
        fixture.push(call.link(2 * n + 2));
        fixture.push(kernel("gemm").at(at + 9_204_000, 700_000).link(2 * n + 2));
    }
    let found = diagnosis(fixture);
    assert!(found.actions.iter().all(|action| action.remedy != "collect-rarely"), "{found:?}");
}

#[test]
fn many_calls_of_python_are_slower_for_being_recorded() {
    let calls: Vec<_> =
        (0..74).map(|n| ("python_function", "<built-in method get>", 100 + n * 100, 80)).collect();
    let found = between(&calls);
    let action = &found.actions[0];
    assert!(action.first.starts_with("Time the run without the profiler first"), "{action:?}");
    let headline = found.headline.as_deref().unwrap();
    assert!(headline.ends_with("the GPU's own work may be the limit."), "{headline}");
}
