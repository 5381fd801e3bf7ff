//! What is advised where, and what it saves.

use super::*;
use crate::priority::Priority;

/// Kernels of one stage, 40 µs each and queued at once, so that time counts.
fn advice_for(
    names: &[&str],
    stage: Stage,
    change: impl Fn(&mut RunContext),
    framework: Framework,
) -> Fuse {
    let mut fixture = Fixture::default();
    for (name, at) in names.iter().zip(0_i64..) {
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(at, 1).link(at + 1);
        fixture.push(launch);
        let new = if name.starts_with("Mem") { slice("gpu_memset", name) } else { kernel(name) };
        fixture.push(new.at(1_000_000 + at * 40_000, 40_000).link(at + 1));
    }
    let mut run = open(Platform::Cuda, Some(framework));
    change(&mut run);
    advised(&fixture.finish(), move |_| stage, |_| None, &of(framework), &run)
}

/// What is advised: the pattern and what replaces it.
fn paths(fuse: &Fuse) -> Vec<(&str, &str)> {
    let rows = fuse.rows.iter().filter(|row| row.priority.is_some());
    rows.map(|row| (row.pattern_id.as_str(), row.candidate_fused_path.as_str())).collect()
}

#[test]
fn a_remedy_is_advised_only_where_it_can_work() {
    let train =
        |names: &[&str], stage| paths_of(&advice_for(names, stage, |_| {}, Framework::Pytorch));
    fn paths_of(fuse: &Fuse) -> Vec<(String, String)> {
        paths(fuse).into_iter().map(|(id, path)| (id.to_owned(), path.to_owned())).collect()
    }
    let expect = |found: Vec<(String, String)>, expected: &[(&str, &str)]| {
        let found: Vec<(&str, &str)> =
            found.iter().map(|(id, path)| (id.as_str(), path.as_str())).collect();
        assert_eq!(found, expected);
    };
    let rms = [POW, MEAN, ADD_NUMBER, RSQRT, MUL];
    expect(
        train(&rms, Stage::Forward),
        &[("K01", "torch.nn.functional.rms_norm; Liger RMSNorm; torch.compile")],
    );
    // No kernel for add and RMSNorm does a LayerNorm.
    expect(train(&[ADD, LAYER_NORM], Stage::Forward), &[("K05", "torch.compile")]);
    // NewGELU is no SwiGLU.
    let gelu = [SCALE, POW, SCALE, ADD, SCALE, TANH, ADD_NUMBER, MUL];
    expect(
        train(&gelu, Stage::Forward),
        &[("K02", "torch.nn.functional.gelu(approximate=\"tanh\"); torch.compile")],
    );
    expect(train(&[SILU, MUL], Stage::Forward), &[("K02", "Liger SwiGLU; torch.compile")]);
    // FlashAttention takes no bias; scaled_dot_product_attention does.
    let sdpa = "torch.nn.functional.scaled_dot_product_attention";
    expect(train(&[GEMM, ADD, SOFTMAX, GEMM], Stage::Forward), &[("K04", sdpa)]);
    let both = format!("{sdpa}; FlashAttention");
    expect(train(&[GEMM, SCALE, SOFTMAX, GEMM], Stage::Forward), &[("K04", both.as_str())]);
    let pointwise = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<3>, at::native::(anonymous namespace)::PointwiseOpScalarFunctor<float, 3, 3, 0>, std::multiplies<float> >(int)";
    expect(
        train(&[FOREACH, FOREACH, pointwise, FOREACH], Stage::Optimizer),
        &[("K12", "fused=True of torch.optim")],
    );
    // A framework's own kernels for routing are dedicated already.
    let routing = ["_topk_forward", "_sum_bitmatrix_rows", "_combined_routing_compute", EXPERTS];
    let vllm = advice_for(&routing, Stage::Decode, |_| {}, Framework::Vllm);
    assert_eq!(paths(&vllm), []);
    assert!(
        vllm.note
            .unwrap()
            .contains("does not show that a replacement applies: Unfused expert routing (K13)")
    );
    // What a compiler made is fused.
    let generated =
        ["triton_red_fused_add_mean_mul_pow_rsqrt_0", "triton_red_fused_add_mean_mul_pow_rsqrt_1"];
    expect(train(&[ADD, generated[0], ADD, generated[1]], Stage::Forward), &[]);
    // vLLM's passes are not for training.
    let borrowed = advice_for(
        &[RMS_NORM, QUANT],
        Stage::Forward,
        |run| run.facts.run = Some(RunType::Training),
        Framework::Vllm,
    );
    assert_eq!(paths(&borrowed), []);
}

#[test]
fn an_all_reduce_stays_and_only_its_norm_is_saved() {
    let on_rocm = |run: &mut RunContext| run.facts.platform = Platform::Rocm;
    let fuse = advice_for(&[ALL_REDUCE, RMS_NORM, GEMM], Stage::Decode, on_rocm, Framework::Vllm);
    assert_eq!(paths(&fuse), [("K07", "all-reduce with RMSNorm of AITER")]);
    let row = &fuse.rows[0];
    assert_eq!((row.savings_bound_ns, row.related_ns), (Some(40_000), 40_000));
    assert!(row.rationale.contains("This is an estimate"), "{}", row.rationale);
    // vLLM's pass applies to small tensors only; how large these are is not recorded.
    let fuse = advice_for(&[ALL_REDUCE, RMS_NORM, GEMM], Stage::Decode, |_| {}, Framework::Vllm);
    assert_eq!(paths(&fuse), []);
}

#[test]
fn a_norm_that_waits_for_the_all_reduce_ahead_of_it_has_no_work_meanwhile() {
    // An all-reduce of 40 µs; the norm starts and ends so many ns after it starts.
    let saved = |(from, to): (i64, i64)| {
        let mut fixture = Fixture::default();
        let kernels = [(ALL_REDUCE, 0, 40_000), (RMS_NORM, from, to), (GEMM, 90_000, 100_000)];
        for ((name, from, to), link) in kernels.into_iter().zip(1_i64..) {
            let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(link, 1).link(link);
            fixture.push(launch);
            fixture.push(kernel(name).at(1_000_000 + from, to - from).link(link));
        }
        let mut run = open(Platform::Rocm, Some(Framework::Vllm));
        run.facts.platform = Platform::Rocm;
        let stage = |_| Stage::Decode;
        let found = advised(&fixture.finish(), stage, |_| None, &of(Framework::Vllm), &run);
        found.rows.iter().filter_map(|row| row.savings_bound_ns).max()
    };
    assert_eq!(saved((40_000, 80_000)), Some(40_000));
    // A dependent launch: it starts early, and works when the all-reduce is over.
    assert_eq!(saved((2_000, 80_000)), Some(40_000));
    assert_eq!(saved((2_000, 60_000)), Some(20_000));
}

#[test]
fn what_a_fused_kernel_still_takes_is_no_saving() {
    let rms = advice_for(
        &[POW, MEAN, ADD_NUMBER, RSQRT, MUL],
        Stage::Forward,
        |_| {},
        Framework::Pytorch,
    );
    assert_eq!(rms.rows[0].savings_bound_ns, Some(160_000), "four of five");
    assert_eq!((rms.rows[0].priority, rms.rows[0].savings_pct), (Some(Priority::P1), Some(80.0)));
    // Where the GPU waits for the CPU, launches that go away save their CPU time, shorter kernels nothing.
    let mut starved = Fixture::default();
    for (name, at) in [POW, MEAN, ADD_NUMBER, RSQRT, MUL, GEMM].iter().zip(0_i64..) {
        let launched_ns = at * 900_000;
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(at + 1);
        starved.push(launch.at(launched_ns, 1_000));
        starved.push(kernel(name).at(launched_ns + 2_000, 50_000).link(at + 1));
    }
    let run = open(Platform::Cuda, Some(Framework::Pytorch));
    let found =
        advised(&starved.finish(), |_| Stage::Forward, |_| None, &of(Framework::Pytorch), &run);
    assert_eq!(found.rows[0].savings_bound_ns, Some(3_600_000), "four launches of five");
    let why = &found.rows[0].rationale;
    assert!(why.contains("the CPU time of 4 launches that go away (3.60 ms in all"), "{why}");
}

#[test]
fn a_module_is_not_compiled_for_next_to_no_work() {
    // The GPU waits for the CPU, so that the bound is the CPU time of a launch, however short the kernel is.
    let with = |short_ns: i64| {
        let mut starved = Fixture::default();
        for (name, at) in [ADD, LAYER_NORM, GEMM].iter().cycle().take(60).zip(0_i64..) {
            let launched_ns = at * 60_000;
            let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(at + 1);
            starved.push(launch.at(launched_ns, 1_000));
            let ns = if *name == GEMM { 40_000 } else { short_ns };
            starved.push(kernel(name).at(launched_ns + 2_000, ns).link(at + 1));
        }
        let run = open(Platform::Cuda, Some(Framework::Pytorch));
        advised(&starved.finish(), |_| Stage::Forward, |_| None, &of(Framework::Pytorch), &run)
    };
    let much = with(40_000);
    assert_eq!(paths(&much), [("K05", "torch.compile")]);
    let little = with(500);
    assert_eq!(paths(&little), []);
    let note = little.note.unwrap();
    assert!(note.contains("a module would be compiled for less than 1%"), "{note}");
}

#[test]
fn a_launch_that_goes_away_takes_its_time_to_the_next_part() {
    const ADDCMUL: &str = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<3>, at::native::(anonymous namespace)::PointwiseOpScalarFunctor<float, 3, 3, 0>, std::multiplies<float> >(int)";
    // Launches 30 µs apart, one pause of 400 µs in between, and another kernel 1 ms later. The first is the longest, and stays.
    let names = [FOREACH, ADDCMUL, ADDCMUL, ADDCMUL, ADDCMUL, GEMM];
    let starts_us = [0, 30, 60, 460, 490, 1_490];
    let mut fixture = Fixture::default();
    for ((name, at), link) in names.iter().zip(starts_us).zip(1..) {
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(link);
        fixture.push(launch.at(at * 1_000, 1_000));
        let kernel = kernel(name).at(at * 1_000 + 2_000, if at == 0 { 20_000 } else { 3_000 });
        fixture.push(kernel.link(link));
    }
    let run = open(Platform::Cuda, Some(Framework::Pytorch));
    let trace = fixture.finish();
    let found = advised(&trace, |_| Stage::Optimizer, |_| None, &of(Framework::Pytorch), &run);
    let row = found.rows.iter().find(|row| row.is_advice());
    let why = &row.unwrap().rationale;
    assert!(why.contains("4 launches that go away (490 µs in all"), "30, 400, 30, median: {why}");
}

#[test]
fn the_function_around_a_launch_is_what_the_cpu_spends_on_it() {
    // Ten times an all-reduce and a norm; the norm's function takes 40 µs, and the next launch comes 400 µs later.
    let with = |frames: bool| {
        let mut fixture = Fixture::default();
        for n in 0..10_i64 {
            let at = n * 500_000;
            let mut push = |name: &str, called: i64, link: i64| {
                let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(link);
                fixture.push(launch.at(called, 5_000));
                fixture.push(kernel(name).at(called + 6_000, 10_000).link(link));
            };
            push(ALL_REDUCE, at, 3 * n + 1);
            push(RMS_NORM, at + 50_000, 3 * n + 2);
            push(GEMM, at + 450_000, 3 * n + 3);
            if frames {
                let frame = |name, from: i64, dur: i64| {
                    slice("python_function", name).on(1, 1).at(at + from, dur)
                };
                fixture.push(frame("layer.py(9): forward", 0, 460_000));
                fixture.push(frame("norm.py(3): forward", 35_000, 40_000));
                fixture.push(frame("norm.py(7): rms_norm", 45_000, 20_000));
            }
        }
        let run = open(Platform::Rocm, Some(Framework::Vllm));
        let trace = fixture.finish();
        let found = advised(&trace, |_| Stage::Decode, |_| None, &of(Framework::Vllm), &run);
        let row = found.rows.into_iter().find(|row| row.is_advice()).unwrap();
        (row.savings_bound_ns.unwrap(), row.rationale)
    };
    let (saved_ns, why) = with(true);
    assert!((300_000..=400_000).contains(&saved_ns), "{saved_ns}");
    assert!(why.contains("(400 µs in all, each as long as the Python function"), "{why}");
    let (saved_ns, why) = with(false);
    assert!(saved_ns > 3_500_000, "{saved_ns}");
    assert!(why.contains("(4.00 ms in all, each at most up to the next launch"), "{why}");
}

#[test]
fn what_graphs_that_are_launched_late_could_save_is_said_and_not_advised() {
    let with = |every_ns: i64| {
        let mut fixture = Fixture::default();
        for n in 0..20_i64 {
            let at = n * every_ns;
            let launch = slice("cuda_runtime", "cudaGraphLaunch").on(1, 1).link(n + 1);
            fixture.push(launch.at(at, 5_000));
            let begins = at.max(n * 120_000) + 10_000;
            for (name, from) in [(ALL_REDUCE, 0), (RMS_NORM, 40_000), (GEMM, 80_000)] {
                fixture.push(kernel(name).at(begins + from, 40_000).link(n + 1));
            }
        }
        let run = open(Platform::Rocm, Some(Framework::Vllm));
        let trace = fixture.finish();
        advised(&trace, |_| Stage::Decode, |_| None, &of(Framework::Vllm), &run)
    };
    // The GPU waits for each graph but the first.
    let late = with(1_000_000);
    assert_eq!(paths(&late), []);
    let held = late.held.unwrap();
    assert!(
        held.ends_with(
            "All-reduce before a norm (K07), up to 800 µs less GPU work (4.2% of the GPU span)."
        ),
        "{held}"
    );
    // Launched ahead, it is advice.
    let ahead = with(10_000);
    assert_eq!((paths(&ahead).len(), ahead.held), (1, None));
}

#[test]
fn batch_norm_is_advised_for_inference_only() {
    const COUNT: &str = "void at::native::vectorized_elementwise_kernel<2, at::native::CUDAFunctorOnSelf_add<long>, at::detail::Array<char*, 2> >(int)";
    const STATISTICS: &str =
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>(int)";
    const RUNNING: &str = "void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float, true, 1>(float)";
    let advised = |norm, run: RunType, others: usize| {
        let names = [&[CONV, COUNT, norm][..], &vec![CONV; others]].concat();
        let change = |context: &mut RunContext| context.facts.run = Some(run);
        advice_for(&names, Stage::Forward, change, Framework::Pytorch)
    };
    let found = advised(STATISTICS, RunType::Inference, 1);
    assert_eq!(paths(&found), [("K17", "model.eval()")]);
    assert!(found.rows[0].action.starts_with("If this is inference"), "{found:?}");
    assert_eq!(found.rows[0].savings_bound_ns, Some(80_000), "no size is recorded");
    assert_eq!(paths(&advised(STATISTICS, RunType::Training, 1)), []);
    assert_eq!(paths(&advised(STATISTICS, RunType::Inference, 100)), [], "below 2% of the stage");
    // With running statistics it can go away.
    let found = advised(RUNNING, RunType::Inference, 1);
    assert_eq!(paths(&found), [("K18", "batch norm folded into the convolution")]);
    assert_eq!(found.rows[0].savings_bound_ns, Some(40_000), "the convolution stays");
    assert_eq!(paths(&advised(RUNNING, RunType::Training, 1)), []);
}

#[test]
fn gradients_filled_by_zero_grad_are_not_short_kernels_in_a_row() {
    const FILL_KERNEL: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)";
    let mut fixture = Fixture::default();
    let annotation = slice("user_annotation", "Optimizer.zero_grad#SGD.zero_grad");
    fixture.push(annotation.on(1, 1).at(0, 500_000));
    for at in 0..20_i64 {
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(at + 1);
        fixture.push(launch.at(1_000 + at * 1_000, 500));
        // (A pause in the middle of them.)
        let pause = if at < 10 { 0 } else { 2_000_000 };
        fixture.push(kernel(FILL_KERNEL).at(1_000_000 + pause + at * 10_000, 8_000).link(at + 1));
    }
    // A second call has no launches.
    fixture.push(annotation.on(1, 1).at(600_000, 500_000));
    // What is added to a gradient of zeros.
    const ADD: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)";
    fixture.push(slice("cpu_op", "torch::autograd::AccumulateGrad").on(1, 1).at(2_000_000, 9_000));
    let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(99);
    fixture.push(launch.at(2_001_000, 500));
    fixture.push(kernel(ADD).at(6_000_000, 7_000).link(99));
    let trace = fixture.finish();
    let mut run = RunContext::of(&trace, Platform::Cuda, Framework::Pytorch);
    run.facts.run = Some(RunType::Training);
    let found = advised(&trace, |_| Stage::Forward, |_| None, &of(Framework::Pytorch), &run);
    assert_eq!(paths(&found), [("K16", "optimizer.zero_grad(set_to_none=True)")]);
    assert_eq!(found.rows[0].n_occurrences, 1);
    let said = &found.rows[0].rationale;
    assert!(said.contains("run in sequence once in the forward stage"), "{said}");
    assert!(said.contains("; 1 addition of new gradients (AccumulateGrad, 7.00 µs"), "{said}");
}

#[test]
fn a_kernel_beside_each_fused_one_is_other_work() {
    let ids = |names: &[&str]| {
        let fuse = advice_for(names, Stage::Decode, |_| {}, Framework::Sglang);
        paths(&fuse).iter().map(|(id, _)| (*id).to_owned()).collect::<Vec<_>>()
    };
    let (fused, rope) = ("fused_inplace_qknorm_kernel", "k_norm_kernel");
    assert_eq!(ids(&[fused, rope, fused, rope]), [""; 0]);
    // Without the fused kernel they are the norm itself.
    assert_eq!(ids(&[rope, GEMM, rope]), ["F05"]);
    assert_eq!(ids(&[fused, rope, GEMM, rope]), ["F05"]);
}

#[test]
fn a_change_of_several_stages_counts_them_and_is_led_by_the_one_with_most() {
    let names = [&[RMS_NORM, QUANT, GEMM][..], &[RMS_NORM, QUANT, GEMM].repeat(3)].concat();
    let stage_of = |at: usize| if at < 3 { Stage::Extend } else { Stage::Decode };
    let vllm = of(Framework::Vllm);
    let run = open(Platform::Cuda, Some(Framework::Vllm));
    let found = advised(&lane(&names), stage_of, |_| None, &vllm, &run);
    let of_row = |row: &FuseRow| (row.stage, row.together.map(|all| (all.n_stages, all.is_first)));
    let rows: Vec<_> = found.rows.iter().map(of_row).collect();
    let expected = [(Stage::Decode, Some((2, true))), (Stage::Extend, Some((2, false)))];
    assert_eq!(rows, expected, "{:#?}", found.rows);
    let one = advised(&lane(&names), |_| Stage::Decode, |_| None, &vllm, &run);
    assert!(one.rows.iter().all(|row| row.together.is_none()));
}
