//! Whether graphs are advised, on tiny traces: not where no graph can launch most of the work.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{diagnosis, launch};
use diagnosis::Action;
use fixture::{Fixture, kernel, slice};

/// A kernel of 3 us, the `n`th of the file from 0, whose call is at `at`.
fn short_kernel(fixture: &mut Fixture, n: i64, at: i64) {
    launch(fixture, "at::native::vectorized_elementwise_kernel", n + 1, at, at + 4_000, 3_000);
}

/// What is done about launches in twenty steps of five short kernels of ops, launched every 50 us, with `more` in each step.
fn action(more: impl Fn(&mut Fixture, i64)) -> Option<Action> {
    let mut fixture = Fixture::default();
    for n in 0..100_i64 {
        let at = n * 50_000;
        if n % 5 == 0 {
            let step = format!("ProfilerStep#{}", n / 5);
            fixture.push(slice("user_annotation", &step).at(at, 249_000).on(1, 1));
        }
        fixture.push(slice("cpu_op", "aten::add").at(at, 40_000).on(1, 1));
        short_kernel(&mut fixture, n, at);
        if n % 5 == 2 {
            more(&mut fixture, at);
        }
    }
    let found = diagnosis(fixture);
    found.actions.into_iter().find(|one| ["M2", "M3"].contains(&&*one.rule))
}

/// A copy to the CPU in the op at `at`.
fn read(fixture: &mut Fixture, at: i64) {
    let call = slice("cuda_runtime", "cudaMemcpyAsync").at(at + 20_000, 10_000).on(1, 1);
    fixture.push(call.link(10_000 + at));
    fixture.push(
        slice("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)")
            .at(at + 25_000, 1_000)
            .link(10_000 + at),
    );
}

#[test]
fn graphs_are_advised_where_pytorch_launches_the_work_one_by_one() {
    let action = action(|_, _| {}).unwrap();
    assert_eq!((&*action.rule, action.remedy), ("M2", "cuda-graph"), "{action:?}");
}

#[test]
fn an_engine_that_launches_most_of_the_work_takes_no_graph() {
    // (Without a launch in the file, after one on the same stream.)
    let of = |name: &'static str, ns: i64| {
        action(move |fixture, at| fixture.push(kernel(name).at(at + 10_000, ns)))
    };
    let engine = of("conv", 30_000).unwrap();
    assert_eq!((&*engine.rule, engine.remedy), ("M3", "larger-batch"), "{engine:?}");
    let why = "The launches of 66.7% of the kernel time are not in the file, as with an engine that PyTorch does not launch, such as";
    assert!(engine.hypothesis.contains(why), "{}", engine.hypothesis);
    let named = of("sm80_xmma_gemm_f16f16_execute_kernel_trt", 30_000).unwrap().hypothesis;
    assert!(named.contains("because TensorRT launches its own kernels"), "{named}");
    assert_eq!(of("conv", 5_000).unwrap().remedy, "cuda-graph", "a little of it");
    // (What brings the engine its inputs is no work that a graph would launch.)
    let with_copies = action(|fixture, at| {
        fixture.push(kernel("conv").at(at + 10_000, 20_000));
        let call = slice("cuda_runtime", "cudaMemcpyAsync").at(at + 1_000, 1_000).on(1, 1);
        fixture.push(call.link(20_000 + at));
        let copy = slice("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)");
        fixture.push(copy.at(at + 31_000, 9_000).link(20_000 + at));
    });
    assert_eq!(with_copies.unwrap().remedy, "larger-batch");
}

#[test]
fn an_all_to_all_whose_sizes_the_cpu_reads_takes_no_graph() {
    let exchange = |fixture: &mut Fixture, at| {
        fixture.push(slice("cpu_op", "c10d::alltoall_base_").at(at + 6_000, 2_000).on(1, 1));
    };
    let both = action(|fixture, at| {
        exchange(fixture, at);
        read(fixture, at);
    });
    let both = both.unwrap();
    assert_eq!(both.remedy, "fixed-sizes", "{both:?}");
    assert!(both.hypothesis.contains("reads from the GPU 20 times between"), "{}", both.hypothesis);
    assert_eq!(action(exchange).unwrap().remedy, "cuda-graph", "equal sizes");
    assert_eq!(action(read).unwrap().remedy, "cuda-graph", "no exchange");
    let gloo = |fixture: &mut Fixture, at| {
        fixture.push(slice("user_annotation", "gloo:all_reduce").at(at + 6_000, 2_000).on(1, 1));
    };
    assert_eq!(
        action(gloo).unwrap().remedy,
        "larger-batch",
        "ranks that communicate through the CPU"
    );
}

/// Three waits for the GPU from `at` on.
fn waits(fixture: &mut Fixture, at: i64) {
    for n in 0..3 {
        let call = if n == 0 { "cudaDeviceSynchronize" } else { "cudaStreamSynchronize" };
        fixture.push(slice("cuda_runtime", call).at(at + n * 2_000, 1_000).on(1, 1));
    }
}

#[test]
fn a_step_in_which_the_cpu_waits_between_launches_takes_no_graph() {
    let between = action(|fixture, at| waits(fixture, at + 41_000)).unwrap();
    assert_eq!(between.remedy, "larger-batch", "{between:?}");
    let why = &between.hypothesis;
    assert!(why.contains("waits for the GPU 60 times between the launches"), "{why}");
    assert!(why.contains("20 waits are for the whole device (torch.cuda.synchronize)"), "{why}");
    let last = action(|fixture, at| waits(fixture, at + 141_000)).unwrap();
    assert_eq!(last.remedy, "cuda-graph", "after the last launch of a step: {last:?}");
}

#[test]
fn without_steps_waits_count_within_a_call_of_the_model() {
    let remedy = |frame: &str| {
        let mut fixture = Fixture::default();
        fixture.push(slice("python_function", frame).at(0, 5_000_000).on(1, 1));
        for n in 0..100_i64 {
            let at = n * 50_000;
            short_kernel(&mut fixture, n, at);
            if n % 10 == 5 {
                waits(&mut fixture, at + 41_000);
            }
        }
        let found = diagnosis(fixture);
        found.actions.into_iter().find(|one| ["M2", "M3"].contains(&&*one.rule)).unwrap().remedy
    };
    assert_eq!(remedy("nn.Module: Net_0"), "larger-batch");
    assert_eq!(remedy("train.py(10): main"), "cuda-graph", "steps may end there");
}
