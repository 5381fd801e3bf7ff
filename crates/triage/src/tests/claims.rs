//! What the sentences of advice may claim: no more than the kernels, the launches and the places of the file have.

use crate::{Sources, TriageOptions, TriageReport, triage};
use fixture::{Fixture, kernel, slice};

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

const POW: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::pow_tensor_scalar_kernel_impl<float, float>(float)::{lambda()#1}, std::array<char*, 2ul> >(int)";
const MEAN: &str = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>(int)";
const ADD_NUMBER: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<float>, std::array<char*, 2ul> >(int)";
const RSQRT: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::rsqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}, std::array<char*, 2ul> >(int)";
const MUL: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)";

/// The kernels of an RMSNorm with the ops that launch them.
const NORM: [(&str, &str); 6] = [
    ("aten::pow", POW),
    ("aten::mean", MEAN),
    ("aten::add", ADD_NUMBER),
    ("aten::rsqrt", RSQRT),
    ("aten::mul", MUL),
    ("aten::mul", MUL),
];

fn triaged(fixture: Fixture) -> TriageReport {
    triage(&fixture.finish(), &TriageOptions::default(), &Sources::default())
}

/// RMSNorms of single kernels of 2 µs, each launched 15 µs after the one before.
fn norms(n: usize) -> Fixture {
    let mut fixture = Fixture::default();
    fixture.metadata(
        "deviceProperties",
        r#"[{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "warpSize": 32}]"#,
    );
    push_norms(&mut fixture, 1, 0, n as i64);
    fixture
}

/// The same on a thread, from the `from`th to the `to`th one.
fn push_norms(fixture: &mut Fixture, thread: i64, from: i64, to: i64) {
    let kernels = NORM.len() as i64;
    for ((op, name), at) in NORM.iter().cycle().zip(from * kernels..to * kernels) {
        let begun_ns = at * 15 * US;
        fixture.push(slice("cpu_op", op).on(1, thread).at(begun_ns, 12 * US).external(at + 1));
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, thread).link(at + 1);
        fixture.push(launch.at(begun_ns + US, 4 * US));
        fixture.push(kernel(name).at(begun_ns + 7 * US, 2 * US).link(at + 1).external(at + 1));
    }
}

#[test]
fn a_fusion_beside_graphs_saves_no_more_gpu_time_than_its_kernels_take() {
    let report = triaged(norms(50));
    let said = report.takeaways.iter().find(|text| text.contains("once launches no longer limit"));
    // Of six kernels of 2 µs one stays, and none of the 13 µs between two of them is GPU time.
    let own = "Unfused RMSNorm. It saves at most 500 µs of GPU time";
    assert!(said.is_some_and(|text| text.contains(own)), "{:?}", report.takeaways);
}

#[test]
fn calls_that_allocate_memory_are_no_part_of_the_launches_that_go_away() {
    let saved = |malloc_ns: i64| {
        let mut fixture = norms(50);
        for at in 0..300 {
            let call = slice("cuda_runtime", "cudaMalloc").on(1, 1);
            fixture.push(call.at(at * 15 * US + 6 * US, malloc_ns));
        }
        let row = triaged(fixture).fuse.into_iter().find(|row| row.pattern_id == "K01");
        let row = row.filter(crate::FuseRow::is_advice).unwrap();
        (row.rationale, row.savings_bound_ns.unwrap())
    };
    let (why, short_ns) = saved(1);
    assert!(why.contains("the CPU time of 250 launches that go away (3.75 ms in all"), "{why}");
    let (why, long_ns) = saved(5 * US);
    // 5 µs of the 15 stay.
    assert!(why.contains("the CPU time of 250 launches that go away (2.50 ms in all"), "{why}");
    assert!(why.contains("allocation excluded"), "{why}");
    assert!(long_ns < short_ns, "{long_ns} {short_ns}");
}

/// Three kernels of 1 ms, 100 ms apart, and what the CPU does in between, from a millisecond after each for 90 ms, as (raw category,
/// name).
fn paused(slices: &[(&str, &str)]) -> Vec<String> {
    let mut fixture = Fixture::default();
    fixture.push(slice("python_function", "train.py(9): step").on(1, 1).at(0, 300 * MS));
    for step in 0..3_i64 {
        let begun_ns = step * 100 * MS;
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(step + 1);
        fixture.push(launch.at(begun_ns, 4 * US));
        fixture.push(kernel(MUL).at(begun_ns + 7 * US, MS).link(step + 1));
        for (category, name) in slices {
            fixture.push(slice(category, name).on(1, 1).at(begun_ns + 2 * MS, 90 * MS));
        }
    }
    triaged(fixture).takeaways
}

#[test]
fn a_built_in_that_the_cpu_is_in_is_named() {
    let said = paused(&[("python_function", "<built-in function collect>")]);
    let place = "with the CPU in <built-in function collect> in train.py:9 step";
    assert!(said.iter().any(|text| text.contains(place)), "{said:?}");
    // (An op in it says more.)
    let randn = "<built-in method randn of type object at 0x7fa0>";
    let said = paused(&[("python_function", randn), ("cpu_op", "aten::randn")]);
    let place = "with the CPU in aten::randn in train.py:9 step";
    assert!(said.iter().any(|text| text.contains(place)), "{said:?}");
}

#[test]
fn the_outermost_ops_are_named_where_the_cpu_runs_ops() {
    let said = paused(&[("cpu_op", "aten::stft"), ("cpu_op", "aten::_fft_r2c")]);
    let ops = "the CPU runs PyTorch ops (aten::stft 180 ms).";
    assert!(said.iter().any(|text| text.contains(ops)), "{said:?}");
}

#[test]
fn copies_of_pageable_memory_count_where_they_are_made() {
    let advice = |loader: bool| {
        let mut fixture = Fixture::default();
        let copies =
            [("train.py(9): step", 4, MS), ("torchvision/ops/boxes.py(43): nms", 200, 5 * US)];
        let mut begun_ns = 0;
        let mut link = 0;
        for (frame, n, dur_ns) in copies {
            let whole_ns = n * 2 * dur_ns;
            fixture.push(slice("python_function", frame).on(1, 1).at(begun_ns, whole_ns));
            for at in 0..n {
                link += 1;
                let begun_ns = begun_ns + at * 2 * dur_ns;
                let call = slice("cuda_runtime", "cudaMemcpyAsync").on(1, 1).link(link);
                fixture.push(call.at(begun_ns, dur_ns + 2 * US));
                let copy = slice("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)").on(0, 7);
                fixture.push(copy.at(begun_ns + US, dur_ns).link(link));
            }
            begun_ns += whole_ns;
        }
        if loader {
            let next = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
            fixture.push(slice("user_annotation", next).on(1, 1).at(begun_ns, US));
        }
        let rows = triaged(fixture).overlap.into_iter().filter(crate::OverlapRow::is_advice);
        rows.map(|row| (row.python_scope.unwrap(), row.n_instances, row.total_ns, row.reason))
            .collect::<Vec<_>>()
    };
    let rows = advice(false);
    let [step, nms] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&*step.0, step.1, step.2), ("train.py:9 step", 4, 4 * MS));
    assert_eq!((&*nms.0, nms.1, nms.2), ("torchvision/ops/boxes.py:43 nms", 200, MS));
    assert!(step.3.contains("(tensor.pin_memory())") && !step.3.contains("DataLoader"), "{step:?}");
    assert!(advice(true)[0].3.contains("pin_memory=True of the DataLoader"));
}

/// RMSNorms of the forward pass, and as many that the thread of the backward pass launches below this frame.
fn norms_in_both_passes(frame: &str) -> TriageReport {
    let mut fixture = norms(50);
    let (from_ns, dur_ns) = (300 * 15 * US, 300 * 15 * US);
    let node = "autograd::engine::evaluate_function: MulBackward0";
    fixture.push(slice("cpu_op", node).on(1, 2).at(from_ns - US, dur_ns + US));
    fixture.push(slice("python_function", frame).on(1, 2).at(from_ns - US, dur_ns + US));
    push_norms(&mut fixture, 2, 50, 100);
    triaged(fixture)
}

#[test]
fn what_checkpointing_runs_again_is_of_the_forward_pass() {
    let reason = |frame: &str| {
        let rows = norms_in_both_passes(frame).fuse;
        let backward = |row: &&crate::FuseRow| row.stage == crate::Stage::Backward;
        rows.iter().find(backward).map(|row| row.rationale.clone()).unwrap()
    };
    let again = reason("torch/utils/checkpoint.py(1588): recompute_fn");
    let why = "100.0% of that time is the forward pass that gradient checkpointing runs again";
    assert!(again.contains(why), "{again}");
    assert!(again.contains("The same change applies in 2 stages."), "{again}");
    let own = reason("model.py(88): recompute_fn");
    assert!(!own.contains("checkpoint"), "{own}");
}
