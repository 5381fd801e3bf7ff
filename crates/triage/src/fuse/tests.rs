mod advice;
mod corpus;
mod names;

use catalog::Platform;
use catalog::remedies::{Execution, Optimizer, RunType};
use report::Row as _;
use trace::Trace;

use super::*;
use crate::attribution::{self, Linker};
use crate::site::{Confidence, Location, Site};
use fixture::{Fixture, kernel, slice};
use timeline::Options;
use timeline::before_window::BeforeWindowSlices;

const CAST: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul> >(int)";
const POW: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::pow_tensor_scalar_kernel_impl<float, float>(at::TensorIteratorBase&, float)::{lambda(float)#1}, std::array<char*, 2ul> >(int)";
const MEAN: &str = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4> >(at::native::ReduceOp<float>)";
const ADD_NUMBER: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<float>, std::array<char*, 2ul> >(int)";
const ADD: &str = "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int)";
const RSQRT: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::rsqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul> >(int)";
const MUL: &str = "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)";
const SCALE: &str = "void at::native::vectorized_elementwise_kernel<8, at::native::AUnaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >(int)";
const NEG: &str = "void at::native::elementwise_kernel_manual_unroll<128, 8, at::native::gpu_kernel_impl<at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int)";
const CAT: &str = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(int)";
const SILU: &str = "void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}, std::array<char*, 2ul> >(int)";
const FOREACH: &str = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 1, 1, 0>, std::multiplies<float>, float>(int)";
const SOFTMAX: &str = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 7, false, false>(float*)";
const LAYER_NORM: &str = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int)";
const RMS_NORM: &str = "void vllm::rms_norm_kernel<c10::BFloat16, 8>(int)";
const QUANT: &str = "void vllm::scaled_fp8_quant_kernel<float>(int)";
const ROPE: &str = "void rotary_embedding_kernel<c10::BFloat16, true>(long const*)";
const CACHE: &str = "void (anonymous namespace)::store_kvcache<2048l, 4, false, long>(int)";
const PAGED: &str = "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, unsigned char, (vllm::Fp8KVCacheDataType)1, __hip_fp8_e4m3>(int)";
const GEMM: &str = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x64x64_MI16x16x1_ISA942";
const EXPERTS: &str = "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu";
const CONV: &str = "igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt256x64x8_wt64x16x4_ws1x1";
const LAYOUT: &str = "batched_transpose_64x64_pack_4x4_ediv_4x4_half";
const ALL_REDUCE: &str = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(int)";
const GATHER: &str = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
const FILL: &str = "Memset (Device)";
const ACT: &str =
    "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, true>(int)";

const TANH: &str = "void at::native::vectorized_elementwise_kernel<8, at::native::tanh_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}, std::array<char*, 2ul> >(int)";

/// Kernels one after the other on one stream, 1 µs apart, each 10 µs.
fn lane(names: &[&str]) -> Trace {
    let mut fixture = Fixture::default();
    for (name, at) in names.iter().zip(0_i64..) {
        let new = if name.starts_with("Mem") { slice("gpu_memset", name) } else { kernel(name) };
        fixture.push(new.at(at * 11_000, 10_000));
    }
    fixture.finish()
}

/// The facts of a run in which every gate of its vendor and framework is open.
fn open(platform: Platform, framework: Option<Framework>) -> RunContext {
    let framework = framework.unwrap_or(Framework::Unknown);
    let mut run = RunContext::of(&Trace::default(), platform, framework);
    let serves = matches!(framework, Framework::Sglang | Framework::Vllm);
    run.facts.run = Some(if serves { RunType::Inference } else { RunType::Training });
    run.facts.optimizer = Some(Optimizer::AdamW);
    run.facts.execution = Some(Execution::Eager);
    run.facts.sm = Some(90);
    run
}

/// What is found and advised of a trace.
fn advised(
    trace: &Trace,
    stage_of: impl Fn(usize) -> Stage,
    attribution: impl Fn(&Gpu<'_>) -> Option<Attribution>,
    context: &FuseContext<'_>,
    run: &RunContext,
) -> Fuse {
    let before = BeforeWindowSlices::of(trace);
    let gpu = Gpu::new(trace, timeline::device::platform(trace), &before, &Options::default());
    let places = attribution(&gpu);
    let launches = Launches::of(&gpu);
    let exposed_ns: Vec<i64> = (0..gpu.len()).map(|at| gpu.slice(at).dur_ns).collect();
    let wall = Wall::of(&gpu, &launches, wall::Lost::default());
    let linker = Linker::of(trace, None);
    let own_frames = OwnFrames::of(&gpu, &launches, &linker);
    let ground = Ground {
        run,
        wall: &wall,
        exposed_ns: &exposed_ns,
        displaced: &[],
        arguments: context.arguments,
        tokens: &[],
        peak: None,
        own_frames: Some(&own_frames),
        warm: None,
    };
    fuse(&gpu, &launches, stage_of, places.as_ref(), context, &ground)
}

/// What is found, advised or not: by stage, the most time first.
fn look_on(
    trace: &Trace,
    stage_of: impl Fn(usize) -> Stage,
    attribution: impl Fn(&Gpu<'_>) -> Option<Attribution>,
    context: &FuseContext<'_>,
    platform: Platform,
) -> Fuse {
    let run = open(platform, context.framework);
    let before = BeforeWindowSlices::of(trace);
    let gpu = Gpu::new(trace, platform, &before, &Options::default());
    let places = attribution(&gpu);
    let launches = Launches::of(&gpu);
    let exposed_ns: Vec<i64> = (0..gpu.len()).map(|at| gpu.slice(at).dur_ns).collect();
    let wall = Wall::of(&gpu, &launches, wall::Lost::default());
    let ground = Ground {
        run: &run,
        wall: &wall,
        exposed_ns: &exposed_ns,
        displaced: &[],
        arguments: context.arguments,
        tokens: &[],
        peak: None,
        own_frames: None,
        warm: None,
    };
    let (lanes, judged) = judged(&gpu, &launches, stage_of, places.as_ref(), context, &ground);
    let mut rows: Vec<(usize, FuseRow)> = judged
        .iter()
        .map(|(accepted, _)| {
            let stage = accepted.candidate.stage;
            (stage, rows::row(&lanes, places.as_ref(), accepted, None, &wall))
        })
        .filter(|(_, row)| row.time_share_pct >= 1.0)
        .collect();
    rows.sort_by_key(|(stage, row)| {
        (*stage, std::cmp::Reverse(row.related_ns), row.pattern_id.clone())
    });
    Fuse { rows: rows.into_iter().map(|(_, row)| row).collect(), ..Fuse::default() }
}

fn look(
    trace: &Trace,
    stage_of: impl Fn(usize) -> Stage,
    attribution: impl Fn(&Gpu<'_>) -> Option<Attribution>,
    context: &FuseContext<'_>,
) -> Fuse {
    look_on(trace, stage_of, attribution, context, Platform::Cuda)
}

fn of(framework: Framework) -> FuseContext<'static> {
    FuseContext { framework: Some(framework), ..FuseContext::default() }
}

fn found(names: &[&str], context: &FuseContext<'_>) -> Fuse {
    look(&lane(names), |_| Stage::All, |_| None, context)
}

/// Id, status and time in µs of each row.
fn brief(fuse: &Fuse) -> Vec<(&str, &str, i64)> {
    let rows = fuse.rows.iter();
    rows.map(|row| (row.pattern_id.as_str(), row.status.id(), row.related_ns / 1000)).collect()
}

#[test]
fn every_chain_is_found_in_stream_order() {
    let gelu = [
        SCALE,
        POW,
        SCALE,
        ADD,
        SCALE,
        "void at::native::vectorized_elementwise_kernel<8, at::native::tanh_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}, std::array<char*, 2ul> >(int)",
        ADD_NUMBER,
        MUL,
        GEMM,
        MUL,
    ];
    let nothing: &[&str] = &["my_kernel"];
    for (id, names, us) in [
        ("K01", &[CAST, POW, MEAN, ADD_NUMBER, RSQRT, MUL, CAST, MUL][..], 80),
        ("K01", &[POW, MEAN, ADD_NUMBER, RSQRT, MUL], 50),
        ("K02", &[SILU, GEMM, MUL], 20),
        ("K02", &[SILU, FILL, GEMM, MUL], 20),
        ("K02", &gelu, 80),
        ("K03", &[MUL, NEG, CAT, MUL, ADD], 50),
        ("K04", &[GEMM, ADD, CAST, SOFTMAX, CAST, GEMM], 60),
        ("K05", &[ADD, LAYER_NORM], 20),
        ("K06", &[RMS_NORM, QUANT], 20),
        ("K06", &[ACT, QUANT], 20),
        ("K07", &[ALL_REDUCE, RMS_NORM], 10),
        ("K08", &[ROPE, CACHE], 20),
        ("K09", &[LAYOUT, LAYOUT, CONV, ADD_NUMBER, LAYOUT], 30),
        ("K09", &[LAYOUT, LAYOUT, FILL, CONV, ADD_NUMBER, LAYOUT], 30),
        ("K11", &[ADD, ADD, MUL, ADD, GEMM, ADD, MUL, MUL, MUL, MUL], 90),
        ("K12", &[FOREACH, FOREACH, FOREACH, FOREACH, FOREACH], 50),
        (
            "K13",
            &["_topk_forward", "_sum_bitmatrix_rows", "_combined_routing_compute", EXPERTS],
            30,
        ),
        ("K14", &[FILL, GEMM], 10),
        ("K15", &[GATHER, GATHER, GATHER, GATHER], 40),
        // Near misses.
        ("K01", &[POW, MEAN, ADD_NUMBER, MUL, MUL], 0),
        ("K02", &[SILU, ADD, MUL], 0),
        ("K03", &[MUL, CAT, NEG, MUL, ADD], 0),
        ("K04", &[GEMM, SOFTMAX, RMS_NORM, GEMM], 0),
        ("K05", &[ADD_NUMBER, LAYER_NORM], 0),
        ("K06", &[QUANT, RMS_NORM], 0),
        ("K07", &[GATHER, RMS_NORM], 0),
        ("K08", &[ROPE, PAGED], 0),
        ("K09", &[LAYOUT, GEMM], 0),
        ("K10", &[GEMM, FILL, GEMM, FILL, GEMM], 0),
        ("K11", &[ADD, ADD, MUL, GEMM, ADD, MUL, MUL], 0),
        ("K12", &[FOREACH, FOREACH, FOREACH], 0),
        ("K13", &[RMS_NORM, EXPERTS], 0),
        ("K15", &[GATHER, GEMM, GATHER, GATHER], 0),
        ("K01", nothing, 0),
    ] {
        // (Elsewhere short kernels need recorded sizes.)
        let stage = if id == "K11" { Stage::Optimizer } else { Stage::All };
        let found = look(&lane(names), |_| stage, |_| None, &of(Framework::Pytorch));
        let row = found.rows.iter().find(|row| row.pattern_id == id);
        assert_eq!(row.map_or(0, |row| row.related_ns / 1000), us, "{id}: {found:?}");
        assert!(row.is_none_or(|row| row.status == FuseStatus::Opportunity));
    }
}

/// Kernels as (name, stream, start and length in µs, launch).
fn streams(slices: &[(&str, i64, i64, i64, Option<i64>)]) -> Trace {
    let mut fixture = Fixture::default();
    for (name, stream, at, dur, launch) in slices {
        let mut new = kernel(name).on(0, *stream).at(at * 1000, dur * 1000);
        if let Some(launch) = launch {
            fixture.push(
                slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(*launch, 1).link(*launch),
            );
            new = new.link(*launch);
        }
        fixture.push(new);
    }
    fixture.finish()
}

#[test]
fn an_all_reduce_on_its_own_stream_stands_where_it_is_waited_for() {
    const REDUCE: &str =
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    let of_trace = |trace: &Trace| look(trace, |_| Stage::All, |_| None, &of(Framework::Pytorch));
    let look = |slices: &[(&str, i64, i64, i64, Option<i64>)]| of_trace(&streams(slices));
    let waits =
        [(GEMM, 7, 0, 10, Some(1)), (REDUCE, 20, 11, 10, Some(2)), (RMS_NORM, 7, 22, 10, Some(3))];
    let found = look(&waits);
    assert_eq!(brief(&found), [("K07", "opportunity", 10)]);
    assert!(found.rows[0].rationale.contains("run in sequence once"), "{found:?}");
    // Nothing is known of the launches: the times tell.
    assert_eq!(brief(&look(&waits.map(|it| (it.0, it.1, it.2, it.3, None)))).len(), 1);
    // Beside the product, not between.
    let beside = [(GEMM, 7, 0, 12, None), (REDUCE, 20, 11, 10, None), (RMS_NORM, 7, 22, 10, None)];
    assert_eq!(brief(&look(&beside)), []);
    // Launched after the norm: nobody waited for it.
    let late =
        [(GEMM, 7, 0, 10, Some(1)), (REDUCE, 20, 11, 10, Some(4)), (RMS_NORM, 7, 22, 10, Some(3))];
    assert_eq!(brief(&look(&late)), []);
    // Another device.
    let mut fixture = Fixture::default();
    for (name, device, at) in [(GEMM, 0, 0), (REDUCE, 1, 11), (RMS_NORM, 0, 22)] {
        fixture.push(kernel(name).on(device, 7 + device).at(at * 1000, 10_000));
    }
    let apart = of_trace(&fixture.finish());
    assert_eq!(brief(&apart), []);
    // A collective among kernels stays there, whatever pauses another stream makes.
    let among = [
        (ADD_NUMBER, 9, 0, 1, None),
        (GATHER, 7, 1, 5, None),
        ("k", 7, 7, 5, None),
        (GATHER, 7, 13, 5, None),
        ("k", 7, 19, 5, None),
        (GATHER, 7, 25, 5, None),
        (ADD_NUMBER, 9, 40, 1, None),
    ];
    assert_eq!(brief(&look(&among)), []);
    // Collectives stay next to each other.
    let row = [(GATHER, 20, 11, 1, None), (GATHER, 20, 13, 1, None), (GATHER, 20, 15, 1, None)];
    let around = [(GEMM, 7, 0, 10, None), (RMS_NORM, 7, 22, 10, None)];
    let found = look(&[&around[..1], &row, &around[1..]].concat());
    assert_eq!(brief(&found), [("K15", "opportunity", 3)]);
}

#[test]
fn an_add_before_a_norm_of_single_kernels_is_counted_alone() {
    let all = [ADD, CAST, POW, MEAN, ADD_NUMBER, RSQRT, MUL, CAST, MUL];
    let fuse = found(&all, &FuseContext::default());
    assert_eq!(brief(&fuse), [("K01", "opportunity", 80), ("K05", "opportunity", 10)]);
    assert_eq!(fuse.rows[0].confidence, PatternConfidence::Confirmed);
    assert_eq!(
        fuse.rows[1].rationale,
        "The residual add and the norm run in sequence once. The additions take 11.1% of GPU time."
    );
}

#[test]
fn fused_partly_fused_and_not_fused_are_told_apart() {
    const FUSED: &str = "void vllm::fused_add_rms_norm_static_fp8_quant_kernel<float>(int)";
    let vllm = of(Framework::Vllm);
    let status = |names: &[&str]| {
        let found = found(names, &vllm);
        let row = found.rows.into_iter().find(|row| row.pattern_id == "F35").unwrap();
        (row.status, row.confidence, row.n_occurrences, row.related_ns / 1000, row.rationale)
    };
    let (state, confidence, n, us, why) = status(&[FUSED, GEMM, FUSED]);
    assert_eq!(
        (state, confidence, n, us),
        (FuseStatus::AlreadyFused, PatternConfidence::Confirmed, 2, 20)
    );
    assert_eq!(
        why,
        "vllm::fused_add_rms_norm_static_fp8_quant_kernel<float> does this in one kernel already: it runs 2 \
         times and takes 66.7% of GPU time."
    );
    let (state, _, n, us, why) = status(&[RMS_NORM, QUANT, GEMM, RMS_NORM, QUANT]);
    assert_eq!((state, n, us), (FuseStatus::Opportunity, 2, 40));
    assert_eq!(
        why,
        "vllm::rms_norm_kernel<BFloat16, 8>, then vllm::scaled_fp8_quant_kernel<float> run next to each other on one \
         stream 2 times (2 of 2 launches) and take 80.0% of GPU time."
    );
    let (state, _, n, us, why) = status(&[FUSED, GEMM, RMS_NORM, QUANT]);
    assert_eq!((state, n, us), (FuseStatus::Partial, 2, 30));
    assert!(why.contains(
        "but vllm::rms_norm_kernel<BFloat16, 8>, then vllm::scaled_fp8_quant_kernel<float> still"
    ));
}

#[test]
fn parts_that_are_not_neighbours_are_nothing() {
    let vllm = of(Framework::Vllm);
    assert_eq!(brief(&found(&[RMS_NORM, GEMM, QUANT], &vllm)), []);
    assert_eq!(brief(&found(&[QUANT, RMS_NORM], &vllm)), [], "in the wrong order");
    assert_eq!(brief(&found(&[RMS_NORM, CAST, QUANT], &vllm)), [("F35", "opportunity", 20)]);

    let mut apart = Fixture::default();
    apart.push(kernel(RMS_NORM).at(0, 10_000));
    apart.push(kernel(QUANT).at(10_000, 10_000).on(0, 8));
    let rows = look(&apart.finish(), |_| Stage::All, |_| None, &vllm).rows;
    assert_eq!(rows, [], "on two streams");

    let mut apart = Fixture::default();
    apart.push(kernel(RMS_NORM).at(0, 10_000));
    apart.push(kernel(QUANT).at(2_000_000, 10_000));
    let rows = look(&apart.finish(), |_| Stage::All, |_| None, &vllm).rows;
    assert_eq!(rows, [], "with a pause between");
}

#[test]
fn neighbours_by_chance_are_nothing() {
    let often = [RMS_NORM, GEMM, QUANT, GEMM].repeat(3);
    let chance = [&often[..], &[RMS_NORM, QUANT]].concat();
    let found = found(&chance, &of(Framework::Vllm));
    assert!(!found.rows.iter().any(|row| row.pattern_id == "F35"), "1 of 4: {found:?}");
}

#[test]
fn experts_stand_beside_their_all_reduce_without_counting() {
    let context = FuseContext { tp: Some(8), ..of(Framework::Sglang) };
    let names = ["fused_moe_kernel", ALL_REDUCE];
    assert_eq!(brief(&found(&names, &context)), [("F17", "opportunity", 10)]);
    let alone = FuseContext { tp: Some(1), ..context };
    assert_eq!(brief(&found(&names, &alone)), [], "without tensor parallelism");
}

#[test]
fn what_other_gpus_run_is_no_advice() {
    let names = [ALL_REDUCE, RMS_NORM];
    let context = FuseContext { tp: Some(8), ..of(Framework::Sglang) };
    let ids = |platform| {
        let rows = look_on(&lane(&names), |_| Stage::All, |_| None, &context, platform).rows;
        rows.iter().map(|row| row.pattern_id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(Platform::Cuda), ["F02"], "FlashInfer");
    assert_eq!(ids(Platform::Rocm), ["F03"], "AITER");
}

#[test]
fn a_framework_s_own_kernel_comes_first_and_a_general_one_without_framework() {
    let names = [ROPE, CACHE, GEMM];
    assert_eq!(brief(&found(&names, &of(Framework::Sglang))), [("F07", "opportunity", 20)]);
    assert_eq!(brief(&found(&names, &of(Framework::Vllm))), [("K08", "opportunity", 20)]);
    assert_eq!(brief(&found(&names, &FuseContext::default())), [("K08", "opportunity", 20)]);
    let qwen = FuseContext { model: Some("Qwen/Qwen3-8B"), ..of(Framework::Sglang) };
    assert_eq!(brief(&found(&names, &qwen)), [("F07", "opportunity", 20)], "no norm, so no F13");
}

#[test]
fn stages_are_apart_and_small_rows_are_counted() {
    let names = [&[ROPE, CACHE][..], &[GEMM; 40], &[FILL, GEMM]].concat();
    let trace = lane(&names);
    let stage_of = |at: usize| if at < 2 { Stage::Decode } else { Stage::Extend };
    let found = look(&trace, stage_of, |_| None, &of(Framework::Pytorch));
    let stages: Vec<_> =
        found.rows.iter().map(|row| (row.stage, row.pattern_id.as_str())).collect();
    assert_eq!(stages, [(Stage::Decode, "K08"), (Stage::Extend, "K14")]);
    assert_eq!(found.rows[0].time_share_pct, 100.0);

    let one = look(
        &trace,
        |at| if at == 0 { Stage::Decode } else { Stage::Extend },
        |_| None,
        &of(Framework::Pytorch),
    );
    assert!(one.rows.iter().all(|row| row.pattern_id != "K08"), "a change of stage ends a chain");

    let names = [&[FILL, GEMM][..], &["my_kernel"; 200]].concat();
    let run = open(Platform::Rocm, Some(Framework::Pytorch));
    let small = advised(&lane(&names), |_| Stage::Forward, |_| None, &of(Framework::Pytorch), &run);
    assert_eq!(small.rows, []);
    assert_eq!(
        small.note.as_deref(),
        Some(
            "Found, but not advised because at most 0.5% of the GPU span or 10 µs would be saved: Fill or reduction around split-K GEMMs \
             (K14)."
        )
    );
}

#[test]
fn json_keys_are_column_keys() {
    let found = found(&[ROPE, CACHE], &FuseContext::default());
    testkit::assert_keys(&found.rows[0], FuseRow::COLUMNS.iter().map(|column| column.key));
    assert!(FuseRow::COLUMNS.iter().all(|column| column.help.ends_with('.')));
}

#[test]
fn nothing_gives_nothing() {
    let found = look(&Trace::default(), |_| Stage::All, |_| None, &FuseContext::default());
    assert_eq!(found, Fuse::default());
}
