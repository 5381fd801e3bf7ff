//! Rules about memory, modules, compilation and the profiler: each fires on a tiny trace, and not on the same without its cause.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{diagnosis, launch, of_file};
use diagnosis::Diagnosis;
use fixture::{Fixture, slice};
use testkit::{Kineto, event};

const MS: i64 = 1_000_000;

fn verdicts(diagnosis: &Diagnosis, rule: &str) -> Vec<&'static str> {
    let own = diagnosis.findings.iter().filter(|finding| finding.rule.id() == rule);
    own.map(|finding| finding.verdict).collect()
}

/// Two kernels in a step of 10 ms.
fn step() -> Fixture {
    let mut fixture = Fixture::default();
    fixture.push(slice("user_annotation", "ProfilerStep#3").at(0, 10 * MS).on(1, 1));
    launch(&mut fixture, "gemm", 1, MS, MS + 4_000, 2 * MS);
    launch(&mut fixture, "gemm", 2, 8 * MS, 8 * MS + 4_000, MS);
    fixture
}

#[test]
fn calls_that_allocate_count_in_steps_only() {
    let with = |at: i64| {
        let mut fixture = step();
        fixture.push(slice("cuda_runtime", "cudaMalloc").at(at, 2 * MS).on(1, 1));
        verdicts(&diagnosis(fixture), "M11")
    };
    assert_eq!(with(5 * MS), ["in_steps"]);
    assert!(with(20 * MS).is_empty(), "after the step");
    // The first step fills the cache: only where a second one allocates does that go on.
    let bound = |second: bool| {
        let mut fixture = step();
        fixture.push(slice("cuda_runtime", "cudaMalloc").at(5 * MS, 2 * MS).on(1, 1));
        fixture.push(slice("user_annotation", "ProfilerStep#99").at(30 * MS, 9 * MS).on(1, 1));
        launch(&mut fixture, "gemm", 98, 31 * MS, 31 * MS + 4_000, MS);
        if second {
            fixture.push(slice("cuda_runtime", "cudaMalloc").at(33 * MS, 2 * MS).on(1, 1));
        }
        launch(&mut fixture, "gemm", 99, 36 * MS, 36 * MS + 4_000, MS);
        let found = diagnosis(fixture).findings;
        found.into_iter().find(|one| one.rule.id() == "M11").unwrap().bound_ns.is_some()
    };
    assert_eq!((bound(false), bound(true)), (false, true));
    // A single step that allocates may be any.
    let mut one = step();
    one.push(slice("cuda_runtime", "cudaMalloc").at(5 * MS, 2 * MS).on(1, 1));
    let found = diagnosis(one).findings;
    let own = found.into_iter().find(|one| one.rule.id() == "M11").unwrap();
    assert!(own.bound_ns.is_some(), "{own:?}");
    assert!(verdicts(&diagnosis(step()), "M11").is_empty());
}

#[test]
fn a_cache_that_grows_is_told_where_no_step_says_whether_it_goes_on() {
    let with = |op: &str, call: &str| {
        let mut fixture = Fixture::default();
        launch(&mut fixture, "gemm", 1, MS, MS + 4_000, 2 * MS);
        fixture.push(slice("cpu_op", op).at(4 * MS, 3 * MS).on(1, 1));
        fixture.push(slice("cuda_runtime", call).at(4 * MS + 1_000, 2 * MS).on(1, 1));
        launch(&mut fixture, "gemm", 2, 8 * MS, 8 * MS + 4_000, MS);
        let found = diagnosis(fixture);
        let own = found.findings.into_iter().find(|finding| finding.rule.id() == "M11");
        own.map(|finding| finding.observation)
    };
    let told = with("aten::empty", "cudaMalloc").unwrap();
    assert!(
        told.contains(" is idle for 2.00 ms (") && told.contains("(1 call allocates)"),
        "{told}"
    );
    assert_eq!(with("MyLibrary::run", "cudaMalloc"), None, "no memory of PyTorch's");
    assert_eq!(with("aten::empty", "cudaEventRecord"), None);
}

#[test]
fn launches_that_a_graph_captures_are_not_called_lost() {
    let with = |thread: Option<i64>| {
        let mut fixture = Fixture::default();
        for n in 0..20_i64 {
            launch(&mut fixture, "gemm", n + 1, n * MS, n * MS + 4_000, MS / 2);
        }
        let call = |name, at| slice("hip_runtime", name).on(1, 1).at(at, 2_000);
        if let Some(thread) = thread {
            fixture.push(call("hipStreamBeginCapture", 20 * MS).on(1, thread));
            fixture.push(call("hipStreamEndCapture", 21 * MS).on(1, thread));
        }
        for n in 0..10 {
            fixture.push(call("hipLaunchKernel", 20 * MS + 10_000 + n * 5_000).link(100 + n));
        }
        launch(&mut fixture, "gemm", 21, 22 * MS, 22 * MS + 4_000, MS);
        let found = diagnosis(fixture);
        let lost = found.findings.into_iter().find(|finding| finding.verdict == "no_gpu_work");
        lost.unwrap().is_aside
    };
    assert!(with(Some(1)));
    assert!(!with(Some(2)), "another thread captures");
    assert!(!with(None));
}

#[test]
fn the_capture_of_a_graph_is_no_compiler() {
    let with = |range: &str| {
        let mut fixture = Fixture::default();
        launch(&mut fixture, "gemm", 1, MS, MS + 4_000, 2 * MS);
        fixture.push(slice("user_annotation", range).at(4 * MS, 30 * MS).on(1, 1));
        launch(&mut fixture, "gemm", 2, 35 * MS, 35 * MS + 4_000, MS);
        verdicts(&diagnosis(fixture), "M18")
    };
    assert_eq!(with("CUDAGraphNode.record (dynamo_timed)"), ["captures"]);
    assert_eq!(with("_compile.compile_inner (dynamo_timed)"), ["compiling"]);
}

#[test]
fn an_extension_that_is_built_in_the_recording_is_told() {
    let of = |frame: &str, allocates_ns: i64| {
        let mut fixture = Fixture::default();
        launch(&mut fixture, "gemm", 1, MS, MS + 4_000, 2 * MS);
        fixture.push(slice("python_function", frame).at(4 * MS, 30 * MS).on(1, 1));
        if allocates_ns > 0 {
            let call = slice("cuda_runtime", "cudaMalloc").at(34 * MS, allocates_ns);
            fixture.push(call.on(1, 1));
        }
        launch(&mut fixture, "gemm", 2, 35 * MS, 35 * MS + 4_000, MS);
        diagnosis(fixture)
    };
    let with = |frame: &str| of(frame, 0);
    let frame = "torch/utils/cpp_extension.py(1661): _jit_compile";
    let built = with(frame);
    assert_eq!(verdicts(&built, "M18"), ["extensions"]);
    let first = built.findings.iter().find(|finding| finding.verdict == "cold_start").unwrap();
    let what = "PyTorch builds or loads extensions for 30.0 ms";
    assert!(first.observation.contains(what), "{first:?}");
    let both = of(frame, MS).headline.unwrap();
    let what = "PyTorch builds or loads extensions, and calls load code or allocate or free memory, for 31.0 ms";
    assert!(both.starts_with(what), "{both}");
    // The first sentence has it: no finding says it again.
    let (costs, figures) = built.further();
    assert!(costs.iter().chain(&figures).all(|one| one.rule.id() != "M18"), "{costs:?}");
    let plain = with("kernels.py(12): _jit_compile");
    assert!(verdicts(&plain, "M18").is_empty() && verdicts(&plain, "M8").is_empty());
}

/// Four steps with 1 MiB at the start; `kept` bytes of each step stay.
fn steps_that_keep(kept: i64, device: (i64, i64)) -> Diagnosis {
    let mut trace = Kineto::new();
    for n in 0..4 {
        let at = n * 10 * MS;
        let name = format!("ProfilerStep#{n}");
        trace.push(event("X", "user_annotation", &name).on(5, 1).at_ns(at).lasting_ns(9 * MS));
        trace.push(event("X", "cpu_op", "aten::mm").on(5, 1).at_ns(at + MS).lasting_ns(MS));
        for (after, bytes, total) in
            [(2, 4096, (1 << 20) + n * kept + 4096), (3, kept - 4096, (1 << 20) + (n + 1) * kept)]
        {
            let memory = event("i", "cpu_instant_event", "[memory]")
                .on(5, 1)
                .at_ns(at + after * MS)
                .raw("s", "\"t\"")
                .arg("Device Type", device.0)
                .arg("Device Id", device.1)
                .arg("Addr", 4096 * (n + 1))
                .arg("Bytes", bytes)
                .arg("Total Allocated", total)
                .arg("Total Reserved", 8 << 20);
            trace.push(memory);
        }
    }
    of_file(trace.text().as_bytes())
}

#[test]
fn memory_that_each_step_keeps_is_growth_with_an_action() {
    let found = steps_that_keep(64 << 10, (0, -1));
    assert_eq!(verdicts(&found, "M12"), ["growth"]);
    assert_eq!(found.actions.iter().map(|action| &*action.rule).collect::<Vec<_>>(), ["M12"]);
    assert_eq!(found.actions[0].impact(), "memory, not time");
    let steady = steps_that_keep(0, (0, -1));
    assert!(verdicts(&steady, "M12").is_empty() && steady.actions.is_empty());
    assert_eq!(verdicts(&steps_that_keep(0, (1, 0)), "M12"), ["peak"]);
    assert_eq!(verdicts(&steps_that_keep(64 << 10, (1, 0)), "M12"), ["peak", "growth"]);
}

#[test]
fn work_that_is_launched_outside_the_frames_of_modules_is_told() {
    let with = |module_ms: i64| {
        let mut fixture = step();
        let frame = slice("python_function", "nn.Module: Linear_0").at(MS / 2, module_ms * MS);
        fixture.push(frame.on(1, 1));
        verdicts(&diagnosis(fixture), "M15")
    };
    assert_eq!(with(2), ["outside_modules"], "the second kernel is outside");
    assert!(with(9).is_empty(), "both are inside");
    assert!(verdicts(&diagnosis(step()), "M15").is_empty(), "no modules are recorded");
}

#[test]
fn a_module_that_is_loaded_in_the_recording_is_told() {
    let with = |call: &str| {
        let mut fixture = step();
        fixture.push(slice("cuda_runtime", call).at(4 * MS, 3 * MS).on(1, 1));
        verdicts(&diagnosis(fixture), "M18")
    };
    assert_eq!(with("cuModuleLoadData"), ["module_loads"]);
    assert!(with("cudaMemsetAsync").is_empty());
    assert!(verdicts(&diagnosis(step()), "M18").is_empty());
}

#[test]
fn frames_of_python_inflate_a_recording_from_three_tenths_on() {
    let with = |frames: i64| {
        let mut fixture = step();
        for n in 0..frames {
            let frame = slice("python_function", "train.py(3): forward").at(MS + n * 100, 50);
            fixture.push(frame.on(1, 1));
        }
        verdicts(&diagnosis(fixture), "M23")
    };
    // (A step, two launches and two kernels are the other slices.)
    assert_eq!(with(3), ["inflated"]);
    assert!(with(2).is_empty());
    assert!(with(0).is_empty());
}

/// Three steps with ten `aten::item` each, inside a range of this name.
#[test]
fn values_that_an_optimizer_reads_of_its_own_counters_are_none_of_the_gpu() {
    let with = |range: &str| {
        let mut fixture = Fixture::default();
        for n in 0..3 {
            let at = n * 10 * MS;
            let name = format!("ProfilerStep#{n}");
            fixture.push(slice("user_annotation", &name).at(at, 9 * MS).on(1, 1));
            fixture.push(slice("user_annotation", range).at(at + MS, 5 * MS).on(1, 1));
            for item in 0..10 {
                let at = at + 2 * MS + item * 1_000;
                fixture.push(slice("cpu_op", "aten::item").at(at, 500).on(1, 1));
            }
        }
        verdicts(&diagnosis(fixture), "M6")
    };
    assert_eq!(with("my loop"), ["reads"]);
    assert!(with("Optimizer.step#AdamW.step").is_empty());
}
