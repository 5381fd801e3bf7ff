//! What copies are for, where they are made, and what helps (M7).

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{diagnosis as of_fixture, launch};
use diagnosis::{Facts, Finding, diagnose};
use fixture::{Fixture, kernel, slice};
use trace::{Details, OpInputs};
use triage::{Sources, TriageOptions, triage};

/// A copy: the event of the host that is around it, the ops from the outside in, and its GPU slice.
struct Copy<'a> {
    around: (&'a str, &'a str),
    ops: &'a [&'a str],
    on_gpu: fixture::Slice<'a>,
}

/// Ten of each of these copies; those inside `aten::copy_` with these input types.
fn copies(kinds: &[Copy<'_>], types: &str) -> Vec<Finding> {
    let (mut fixture, mut details) = (Fixture::default(), Details::default());
    let dims = details.texts.intern("[[8],[8],[]]");
    let broadcasts = types == BROADCAST;
    let types = details.texts.intern(types);
    details.inputs.push(OpInputs { dims, types });
    let (mut row, mut link) = (0_u32, 0_i64);
    for n in 0..10 {
        for (kind, copy) in (0..).zip(kinds) {
            let at = n * 1_000_000 + kind * 100_000;
            let on = |category, name, inner| {
                slice(category, name).at(at + inner, 50_000 - 2 * inner).on(1, 1)
            };
            let ops = copy.ops.iter().map(|name| ("cpu_op", *name));
            for ((category, name), inner) in std::iter::once(copy.around).chain(ops).zip(0_i64..) {
                fixture.push(on(category, name, inner));
                if name == "aten::copy_" {
                    details.ops.push((row, 0));
                }
                row += 1;
            }
            link += 1;
            fixture.push(on("cuda_runtime", "cudaMemcpyAsync", 9).link(link));
            fixture.push(copy.on_gpu.at(at + 20_000, 20_000).link(link));
            row += 2;
        }
    }
    if broadcasts {
        fixture.push(kernel("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"));
    }
    let trace = fixture.finish();
    let triaged = triage(&trace, &TriageOptions::default(), &Sources::default());
    let index = host::HostIndex::of(&trace);
    let report = host::host(&index, &details);
    let found = diagnose(&Facts::of(&index, &details, &report, &triaged));
    found.findings.into_iter().filter(|finding| finding.rule.id() == "M7").collect()
}

/// Input types of which nothing is known, in a run with a broadcast.
const BROADCAST: &str = "[ ]";
const COPY: &[&str] = &["aten::copy_"];
const CAST: &[&str] = &["aten::to", "aten::_to_copy", "aten::copy_"];

fn on_gpu<'a>() -> fixture::Slice<'a> {
    slice("gpu_memcpy", "Memcpy DtoD (Device -> Device)")
}

#[test]
fn copies_of_distributed_data_parallel_have_the_switch_that_leaves_them_out() {
    let buckets = ("cpu_op", "torch.distributed.ddp.reducer::copy_bucket_to_grad");
    let buffers = ("user_annotation", "DistributedDataParallel.forward");
    let step = ("user_annotation", "ProfilerStep#3");
    let of = |around| Copy { around, ops: COPY, on_gpu: on_gpu() };
    let found = copies(&[of(buckets), of(buffers), of(step)], BROADCAST);
    let [own] = &found[..] else { panic!("{found:?}") };
    assert!(
        own.observation.contains(
            "Made in DistributedDataParallel.forward (10), aten::copy_ (10) and 1 other place."
        ),
        "{}",
        own.observation
    );
    assert!(
        own.meaning.contains(
            "The 10 of the reducer: DistributedDataParallel(gradient_as_bucket_view=True)"
        )
    );
    assert!(
        own.meaning
            .contains("The 10 in DistributedDataParallel.forward: it sends rank 0's buffers")
    );
    // What the third place exposes stays.
    assert_eq!(own.bound_ns, Some(400_000));
    // The annotation is around the whole forward pass: without a broadcast the copies are the model's, and casts always are.
    let [own] = &copies(&[of(buffers)], "[]")[..] else { panic!() };
    assert!(own.meaning.starts_with("Write the result straight"), "{}", own.meaning);
    let types = r#"["c10::Half","float",""]"#;
    let cast = Copy { around: buffers, ops: CAST, on_gpu: kernel("cast") };
    let [own] = &copies(&[cast], types)[..] else { panic!() };
    assert!(own.meaning.starts_with("Keep tensors in the dtype"), "{}", own.meaning);
    // A step is no place, and without the reducer it says what copies can do.
    let [own] = &copies(&[of(step)], "[]")[..] else { panic!() };
    assert!(own.observation.ends_with("Made in aten::copy_."), "{}", own.observation);
    assert!(own.meaning.starts_with("Write the result straight"), "{}", own.meaning);
}

#[test]
fn casts_inside_ops_of_16_bits_are_those_of_autocast() {
    let types = r#"["c10::Half","float",""]"#;
    let of = |around| Copy { around: ("cpu_op", around), ops: CAST, on_gpu: kernel("cast") };
    let [own] = &copies(&[of("aten::conv2d"), of("ToCopyBackward0")], types)[..] else { panic!() };
    assert_eq!(own.verdict, "cast");
    assert!(own.meaning.starts_with("Autocast makes them"), "{}", own.meaning);
    // The norm of a model is no op of autocast's list, and a cast of the user's own has no op around it.
    let others = [of("aten::conv2d"), of("aten::layer_norm")];
    let [own] = &copies(&others, types)[..] else { panic!() };
    assert!(own.meaning.starts_with("Keep tensors in the dtype"), "{}", own.meaning);
}

/// Steps of 10 ms, the copies to the GPU at these times, and a kernel in each step.
fn to_gpu(copies: &[i64]) -> Vec<Finding> {
    let mut fixture = Fixture::default();
    for n in 0..4 {
        let at = n * 10_000_000;
        let step = format!("ProfilerStep#{n}");
        fixture.push(slice("user_annotation", &step).at(at, 10_000_000).on(1, 1));
        let call = slice("cuda_runtime", "cudaLaunchKernel").at(at + 100_000, 5_000).on(1, 1);
        fixture.push(call.link(n + 1));
        fixture.push(kernel("gemm").at(at + 3_000_000, 6_000_000).link(n + 1));
    }
    for (link, at) in (10..).zip(copies.iter().copied()) {
        fixture.push(slice("cpu_op", "aten::copy_").at(at, 50_000).on(1, 1));
        fixture.push(
            slice("cuda_runtime", "cudaMemcpyAsync").at(at + 1_000, 9_000).on(1, 1).link(link),
        );
        let name = "Memcpy HtoD (Pageable -> Device)";
        fixture.push(slice("gpu_memcpy", name).at(at + 20_000, 1_000_000).link(link));
    }
    let trace = fixture.finish();
    let details = Details::default();
    let triaged = triage(&trace, &TriageOptions::default(), &Sources::default());
    let index = host::HostIndex::of(&trace);
    let report = host::host(&index, &details);
    let found = diagnose(&Facts::of(&index, &details, &report, &triaged));
    found.findings.into_iter().filter(|finding| finding.rule.id() == "M7").collect()
}

#[test]
fn parameters_that_go_to_the_gpu_before_the_first_iteration_are_set_up() {
    assert_eq!(to_gpu(&[-9_000_000, -7_000_000]), []);
    let verdicts =
        |copies: &[i64]| to_gpu(copies).iter().map(|one| one.verdict).collect::<Vec<_>>();
    assert_eq!(verdicts(&[-9_000_000, 20_200_000]), ["h2d_pageable"]);
    assert_eq!(verdicts(&[41_000_000]), ["h2d_pageable"], "after the last");
}

/// A clone of `gpu_us` on the GPU, called from `from_us` on for `cpu_us`, on a thread and a stream.
fn clone_on(
    fixture: &mut Fixture,
    (thread, stream): (i64, i64),
    (from_us, cpu_us): (i64, i64),
    (begun_us, gpu_us): (i64, i64),
) {
    let us = 1_000;
    let link = 1_000_000 + from_us;
    fixture.push(slice("cpu_op", "aten::clone").at(from_us * us, cpu_us * us).on(1, thread));
    let copy = slice("cpu_op", "aten::copy_").on(1, thread);
    fixture.push(copy.at((from_us + 5) * us, (cpu_us - 10) * us));
    let call = slice("cuda_runtime", "cudaMemcpyAsync").on(1, thread).link(link);
    fixture.push(call.at((from_us + 10) * us, 2 * us));
    let copy = slice("gpu_memcpy", "Memcpy DtoD (Device -> Device)").on(0, stream).link(link);
    fixture.push(copy.at(begun_us * us, gpu_us * us));
}

fn copies_bound(fixture: Fixture) -> Option<i64> {
    let found = of_fixture(fixture).findings;
    found.into_iter().find(|finding| finding.rule.id() == "M7")?.bound_ns
}

#[test]
fn ops_of_a_thread_beside_the_one_that_launches_cost_it_nothing() {
    let run = |thread: i64| {
        let mut fixture = Fixture::default();
        for n in 0..20 {
            let from = n * 1_000;
            launch(&mut fixture, "gemm", n + 1, (from + 900) * 1_000, (from + 905) * 1_000, 60_000);
            clone_on(&mut fixture, (thread, 8), (from + 100, 400), (from + 120, 40));
        }
        copies_bound(fixture)
    };
    let own = run(1).expect("the launches wait for it");
    assert!(own >= 19 * 400_000, "{own}");
    assert!(run(2).unwrap_or_default() <= 40_000, "another thread makes them: {:?}", run(2));
}

#[test]
fn memory_that_the_cache_takes_once_is_no_cost_of_the_copies() {
    let run = |allocates_us: i64| {
        let mut fixture = Fixture::default();
        for n in 0..20 {
            let from = n * 1_000;
            launch(&mut fixture, "gemm", n + 1, (from + 900) * 1_000, (from + 905) * 1_000, 60_000);
            clone_on(&mut fixture, (1, 8), (from + 100, 400), (from + 120, 40));
            if allocates_us > 0 {
                let malloc = slice("cuda_runtime", "cudaMalloc").on(1, 1);
                fixture.push(malloc.at((from + 150) * 1_000, allocates_us * 1_000));
            }
        }
        copies_bound(fixture).expect("the launches wait for it")
    };
    let (all, without) = (run(0), run(300));
    assert!(without <= all - 19 * 300_000, "{without} of {all}");
}

#[test]
fn copies_of_iterations_that_the_gpu_runs_later_count() {
    // The CPU launches six steps in 10 ms; the GPU takes 100 ms for each. The first loads code.
    let mut fixture = Fixture::default();
    let (mut cpu_us, mut gpu_us) = (0, 0);
    for n in 0..6 {
        let dur = if n == 0 { 5_000 } else { 1_000 };
        let step = format!("ProfilerStep#{n}");
        fixture.push(slice("user_annotation", &step).at(cpu_us * 1_000, dur * 1_000).on(1, 1));
        if n == 0 {
            let load = slice("cuda_runtime", "cuModuleLoadData").on(1, 1);
            fixture.push(load.at(10_000, 3_000_000));
        }
        let from = cpu_us + if n == 0 { 3_200 } else { 50 };
        gpu_us = gpu_us.max(from + 20);
        clone_on(&mut fixture, (1, 7), (from, 300), (gpu_us, 20_000));
        let called = (from + 360) * 1_000;
        launch(&mut fixture, "gemm", n + 1, called, (gpu_us + 20_000) * 1_000, 80_000_000);
        gpu_us += 100_000;
        cpu_us += dur;
    }
    // Five warm steps with 20 ms each.
    assert_eq!(copies_bound(fixture), Some(100_000_000));
}

#[test]
fn copies_of_sums_are_told_by_the_op_that_makes_most_of_their_time() {
    let meaning = |op: &'static str, types: &str| {
        let ops: &'static [&'static str] = match op {
            "aten::sum" => &["aten::sum", "aten::to", "aten::_to_copy", "aten::copy_"],
            _ => CAST,
        };
        let step = ("user_annotation", "ProfilerStep#3");
        let kernel = kernel("void at::native::unrolled_elementwise_kernel<direct_copy>(int)");
        let found = copies(&[Copy { around: step, ops, on_gpu: kernel }], types);
        found.into_iter().map(|one| one.meaning).collect::<String>()
    };
    let cast = r#"["float", "bool", ""]"#;
    assert!(
        meaning("aten::sum", cast).contains("inside the sum"),
        "{}",
        meaning("aten::sum", cast)
    );
    assert!(!meaning("aten::to", cast).contains("inside the sum"), "{}", meaning("aten::to", cast));
}
