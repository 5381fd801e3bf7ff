//! What the example serves: a made-up mixture-of-experts language model on two ranks, with fp8 products.

use crate::sim::{COMM, COMPUTE, COPY, Kernel, Machine, Sim};
use crate::{KinetoEvent, event};

/// The process, and its main thread.
const PID: i64 = 4242;
const MACHINE: Machine = Machine {
    pid: PID,
    device: 0,
    rocm: false,
    // 5.1e12 us, above 2^42 us, with nanoseconds.
    start_ns: 5_104_229_118_337_412,
    early_pct: 6,
    seed: 2024,
};
const LAYERS: usize = 26;

/// One phase of serving: the ratio of its kernel durations to the base durations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Prefill,
    Decode,
}

const fn kernel(name: &'static str, dur_ns: i64, blocks: i64, threads: i64) -> Kernel {
    Kernel { name, dur_ns, blocks, threads, stream: COMPUTE, early: false, overrun: 1 }
}

/// The same, started before its predecessor ends.
const fn early(name: &'static str, dur_ns: i64, blocks: i64, threads: i64) -> Kernel {
    Kernel { early: true, ..kernel(name, dur_ns, blocks, threads) }
}

const ADD_NORM: Kernel = kernel(
    "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, __nv_bfloat16*, __nv_bfloat16*, unsigned int, unsigned int, unsigned int, float, float)",
    3_100,
    64,
    512,
);
const QUANT: Kernel = early(
    "void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn>(c10::Float8_e4m3fn*, float*, c10::BFloat16 const*, float const*, int)",
    2_300,
    64,
    256,
);
const ROPE: Kernel = kernel(
    "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, int, long, long, int, int, int)",
    2_600,
    64,
    512,
);
const CACHE: Kernel = kernel(
    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>(__nv_bfloat16 const*, __nv_bfloat16 const*, __nv_bfloat16*, __nv_bfloat16*, long const*, long, long, long, int, int, int, float const*, float const*)",
    2_200,
    64,
    512,
);
const ATTENTION_PREFILL: Kernel = kernel(
    "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, cute::tuple<cute::C<128>, cute::C<176>, cute::C<128> >, 128, cutlass::bfloat16_t, float, cutlass::arch::Sm90, true, false, false, true, true> > > >(flash::FlashAttnFwdSm90::Params)",
    88_000,
    132,
    384,
);
const ATTENTION_DECODE: Kernel = early(
    "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t>, false, false, false, false, true, true, false, false>(flash::Flash_fwd_params)",
    14_500,
    512,
    128,
);
const ATTENTION_COMBINE: Kernel = early(
    "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t>, 4, 3, true>(flash::Flash_fwd_params)",
    3_000,
    256,
    128,
);
const ALL_REDUCE_SMALL: Kernel = kernel(
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, vllm::RankSignals, vllm::Signal*, __nv_bfloat16*, int, int)",
    8_400,
    36,
    512,
);
const ALL_REDUCE_LARGE: Kernel = Kernel {
    stream: COMM,
    ..kernel(
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        61_000,
        24,
        544,
    )
};
const GEMM_PREFILL: Kernel =
    kernel("nvjet_qqtst_128x256_128x5_1x2_h_bz_coopA_TNT", 74_000, 132, 384);
const GEMM_DECODE: Kernel = early("nvjet_qqtst_64x64_128x12_2x1_v_bz_TNT", 9_300, 96, 384);
const GEMM_SPLIT_K: Kernel = early(
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, true, false, false>(cublasLt::cublasSplitKParams<float>, float const*, __nv_bfloat16 const*, __nv_bfloat16*, float const*, float const*)",
    2_400,
    96,
    512,
);
const ROUTE: Kernel = kernel(
    "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16>(float const*, bool const*, float*, int, int*, int*, int, int, int)",
    3_700,
    16,
    128,
);
const ALIGN: Kernel = kernel(
    "void vllm::moe::moe_align_block_size_kernel<int>(int const*, int*, int*, int*, int, int, int, unsigned long, int*)",
    4_600,
    1,
    1024,
);
const EXPERTS: Kernel = kernel("fused_moe_kernel", 24_000, 640, 128);
const MOE_SUM: Kernel = kernel(
    "void vllm::moe_sum_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16 const*, int)",
    2_900,
    64,
    1024,
);
const ACTIVATION: Kernel = early(
    "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)",
    3_300,
    64,
    1024,
);
const EMBEDDING: Kernel = kernel(
    "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2, true>(at::cuda::detail::TensorInfo<c10::BFloat16, unsigned int>, at::cuda::detail::TensorInfo<c10::BFloat16 const, unsigned int>, at::cuda::detail::TensorInfo<long const, unsigned int>, int, int, unsigned int, unsigned int, long)",
    3_900,
    64,
    128,
);
const SLOTS: Kernel = kernel("_compute_slot_mapping_kernel", 2_100, 65, 1024);
const POINTWISE: Kernel = kernel("triton_poi_fused__to_copy_add_mul_3", 2_700, 128, 256);
const FILL: Kernel = kernel(
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul> >(int, at::native::FillFunctor<int>, std::array<char*, 1ul>)",
    1_400,
    2,
    128,
);
const SOFTMAX: Kernel = kernel(
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(float*, float const*, int)",
    16_800,
    64,
    1024,
);
const SAMPLE: Kernel = kernel(
    "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u, (cub::BlockScanAlgorithm)2, (cub::BlockReduceAlgorithm)0, 4u, true, float, int>(float*, int*, float*, int*, int*, int, float, unsigned int, unsigned long, unsigned long)",
    21_500,
    64,
    1024,
);
const ARGMAX: Kernel = kernel(
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4> >(at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4>)",
    9_900,
    64,
    512,
);

pub(super) fn events() -> Vec<KinetoEvent> {
    let mut sim = Sim::new(MACHINE);
    metadata(&mut sim);
    let first = sim.cpu_ns;

    // An earlier step still runs when recording begins.
    sim.unrecorded(|sim| {
        for layer in 0..10 {
            layer_kernels(sim, Phase::Decode, layer);
        }
    });
    sim.gpu_annotation("step[DECODE bs=64]");
    sim.cpu_ns += 90_000;
    sim.point(
        event("i", "", "Iteration Start: PyTorch Profiler").on("Traces", "Trace").member("s", "g"),
        first,
    );

    for step in 0..13 {
        profiler_step(&mut sim, step);
    }
    tokenizer_thread(&mut sim, first);

    let last = sim.cpu_ns;
    let span = event("X", "Trace", "PyTorch Profiler (0)").on("Spans", "PyTorch Profiler");
    sim.slice(span.arg("Op count", 0), first, last);
    sim.point(event("i", "", "Record Window End").on("", "").member("s", "g"), last);
    sim.finish()
}

/// Two prefills, four decodes launched kernel by kernel, then decodes from a graph.
fn profiler_step(sim: &mut Sim, step: usize) {
    let name = format!("ProfilerStep#{}", step + 40);
    let (phase, label) = match step {
        0 | 6 => (Phase::Prefill, "step[EXTEND bs=4 toks=2048]"),
        _ => (Phase::Decode, "step[DECODE bs=64]"),
    };
    // The profiler enters the annotation from a built-in whose frame ends only after it began: the two
    // cross. Not every step: sometimes the frame's end comes first.
    let enter = sim.cpu_ns;
    sim.spend(9_000);
    let crosses = step.is_multiple_of(3);
    let begin = sim.cpu_ns;
    if crosses {
        sim.spend(2_400);
    }
    let frame = event(
        "X",
        "python_function",
        "<built-in method _record_function_enter_new of PyCapsule object>",
    );
    sim.slice(frame.on(PID, PID).arg("Python id", 1_000_000 + step as i64), enter, sim.cpu_ns);
    let begin = if crosses { begin } else { sim.cpu_ns + 300 };
    sim.cpu_ns = sim.cpu_ns.max(begin) + 500;

    sim.annotation(label, |sim| {
        sim.frame("vllm/v1/worker/gpu_model_runner.py(1412): execute_model", |sim| {
            prepare(sim);
            if phase == Phase::Decode && step > 4 {
                sim.frame("vllm/compilation/cuda_graph.py(121): __call__", |sim| {
                    sim.frame("torch/cuda/graphs.py(116): replay", |sim| {
                        sim.graph(|sim| {
                            (0..LAYERS).for_each(|layer| layer_kernels(sim, phase, layer))
                        });
                    });
                });
            } else {
                sim.frame("nn.Module: ExampleMoeForCausalLM_0", |sim| {
                    for layer in 0..LAYERS {
                        layer_eager(sim, phase, layer);
                    }
                });
            }
            sample(sim);
        });
        sim.frame("torch/cuda/streams.py(105): synchronize", Sim::synchronize);
    });
    sim.gpu_annotation(label);
    sim.slice(event("X", "user_annotation", &name).on(PID, PID), begin, sim.cpu_ns);
    let allocated = 41_000 + step as i64 * 96;
    let memory = event("C", "", "GPU memory").on(0, 0).arg("allocated MiB", allocated);
    sim.point(memory, sim.cpu_ns);
    // The host schedules the next batch.
    sim.frame("vllm/v1/core/sched/scheduler.py(171): schedule", |sim| sim.spend(48_000));
}

/// Inputs to the device.
fn prepare(sim: &mut Sim) {
    sim.frame("vllm/v1/worker/gpu_model_runner.py(608): _prepare_inputs", |sim| {
        for bytes in [512, 8_192] {
            sim.op("aten::copy_", "[[64], [64], []]", |sim| {
                sim.memory(
                    "gpu_memcpy",
                    "Memcpy HtoD (Pinned -> Device)",
                    "cudaMemcpyAsync",
                    bytes,
                );
            });
        }
        sim.op("aten::zero_", "[[4096]]", |sim| {
            sim.memory("gpu_memset", "Memset (Device)", "cudaMemsetAsync", 16_384);
        });
        sim.wait_for(COMPUTE, COPY, 0);
        one(sim, "aten::fill_", "[[64], []]", FILL);
        one(sim, "vllm::compute_slot_mapping", "[[64], [64, 128]]", SLOTS);
        one(sim, "aten::embedding", "[[151936, 4096], [64]]", EMBEDDING);
    });
}

/// From hidden states to tokens on the host.
fn sample(sim: &mut Sim) {
    sim.frame("vllm/v1/sample/sampler.py(22): forward", |sim| {
        one(
            sim,
            "aten::mm",
            "[[64, 4096], [4096, 75968]]",
            Kernel { dur_ns: 132_000, ..GEMM_PREFILL },
        );
        one(sim, "aten::_softmax", "[[64, 151936]]", SOFTMAX);
        one(sim, "vllm::top_k_top_p_sampling", "[[64, 151936]]", SAMPLE);
        one(sim, "aten::argmax", "[[64, 151936]]", ARGMAX);
        sim.wait_for(COPY, COMPUTE, 0);
        sim.op("aten::_to_copy", "[[64]]", |sim| {
            sim.memory("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", "cudaMemcpyAsync", 512);
        });
    });
}

/// One operator with one kernel.
fn one(sim: &mut Sim, op: &str, dims: &str, kernel: Kernel) {
    sim.op(op, dims, |sim| sim.launch(kernel));
}

/// A layer with its Python frames.
fn layer_eager(sim: &mut Sim, phase: Phase, layer: usize) {
    sim.frame(&format!("nn.Module: ExampleDecoderLayer_{layer}"), |sim| {
        for (module, op, dims, kernel) in layer_work(phase, layer) {
            sim.frame(module, |sim| {
                if kernel.stream == COMM {
                    sim.wait_for(COMM, COMPUTE, 0);
                }
                // Products go through a second operator, as linear layers do.
                if op == "aten::linear" {
                    sim.op(op, dims, |sim| one(sim, "_C::cutlass_scaled_mm", dims, kernel));
                } else {
                    sim.frame("torch/_ops.py(1116): __call__", |sim| one(sim, op, dims, kernel));
                }
                if kernel.stream == COMM {
                    // The other half of the batch computes while this half is reduced.
                    sim.wait_for(COMPUTE, COMM, 24_000);
                }
            });
        }
    });
}

/// A layer's kernels alone.
fn layer_kernels(sim: &mut Sim, phase: Phase, layer: usize) {
    for (_, _, _, kernel) in layer_work(phase, layer) {
        sim.launch(kernel);
    }
}

type Work = (&'static str, &'static str, &'static str, Kernel);

const NORM: &str = "nn.Module: RMSNorm_0";
const LINEAR: &str = "nn.Module: QKVParallelLinear_0";
const ATTN: &str = "vllm/attention/layer.py(212): forward";
const MLP: &str = "nn.Module: ExampleMLP_0";
const MOE: &str = "vllm/model_executor/layers/fused_moe/layer.py(1380): forward";
const REDUCE: &str = "vllm/distributed/parallel_state.py(318): all_reduce";

/// The steps of a layer: module frame, operator, shapes, kernel. Every second layer is a mixture of experts.
fn layer_work(phase: Phase, layer: usize) -> Vec<Work> {
    let mut work = attention_work(phase);
    work.push(reduce(phase));
    work.push(norm(phase));
    work.extend(if layer % 2 == 1 { expert_work(phase) } else { dense_work(phase) });
    work.push(reduce(phase));
    work
}

fn attention_work(phase: Phase) -> Vec<Work> {
    const ATTENTION: &str = "vllm::unified_attention_with_output";
    const OUT: &str = "[[64, 2048], [4096, 2048]]";
    let mut work: Vec<Work> = vec![
        norm(phase),
        quant(phase, LINEAR),
        (LINEAR, "aten::linear", "[[64, 4096], [3072, 4096]]", gemm(phase, 10)),
        (ATTN, "_C::rotary_embedding", "[[64], [64, 2048], [64, 512]]", scale(phase, ROPE, 5)),
        (
            ATTN,
            "_C_cache_ops::reshape_and_cache_flash",
            "[[64, 4, 128], [64, 4, 128]]",
            scale(phase, CACHE, 4),
        ),
    ];
    match phase {
        Phase::Prefill => work.extend([
            (ATTN, ATTENTION, "[[2048, 16, 128]]", ATTENTION_PREFILL),
            (LINEAR, "aten::linear", OUT, gemm(phase, 7)),
        ]),
        Phase::Decode => work.extend([
            (ATTN, ATTENTION, "[[64, 16, 128]]", ATTENTION_DECODE),
            (ATTN, ATTENTION, "[[64, 16, 128]]", ATTENTION_COMBINE),
            (LINEAR, "aten::linear", OUT, gemm(phase, 7)),
            (LINEAR, "aten::linear", OUT, GEMM_SPLIT_K),
        ]),
    }
    work
}

fn expert_work(phase: Phase) -> Vec<Work> {
    const EXPERT: &str = "vllm::fused_experts";
    let work = |op, dims, kernel, times| (MOE, op, dims, scale(phase, kernel, times));
    vec![
        work("_moe_C::topk_softmax", "[[64, 8], [64, 8], [64, 128]]", ROUTE, 3),
        work("_moe_C::moe_align_block_size", "[[64, 8], [], []]", ALIGN, 2),
        work(EXPERT, "[[64, 4096], [128, 1536, 4096]]", EXPERTS, 6),
        work("_C::silu_and_mul", "[[512, 768], [512, 1536]]", ACTIVATION, 5),
        work(EXPERT, "[[512, 768], [128, 4096, 768]]", EXPERTS, 4),
        work("_moe_C::moe_sum", "[[64, 8, 4096], [64, 4096]]", MOE_SUM, 6),
    ]
}

fn dense_work(phase: Phase) -> Vec<Work> {
    vec![
        quant(phase, MLP),
        (MLP, "aten::linear", "[[64, 4096], [11008, 4096]]", gemm(phase, 24)),
        (MLP, "_C::silu_and_mul", "[[64, 5504], [64, 11008]]", scale(phase, ACTIVATION, 7)),
        (MLP, "triton::fused_scale", "[[64, 5504]]", scale(phase, POINTWISE, 5)),
        (MLP, "aten::linear", "[[64, 5504], [4096, 5504]]", gemm(phase, 14)),
    ]
}

fn norm(phase: Phase) -> Work {
    let dims = "[[64, 4096], [64, 4096], [4096], []]";
    (NORM, "_C::fused_add_rms_norm", dims, scale(phase, ADD_NORM, 6))
}

fn quant(phase: Phase, module: &'static str) -> Work {
    let op = "_C::dynamic_per_token_scaled_fp8_quant";
    (module, op, "[[64, 4096], [64, 4096]]", scale(phase, QUANT, 5))
}

fn reduce(phase: Phase) -> Work {
    let kernel = match phase {
        Phase::Prefill => ALL_REDUCE_LARGE,
        Phase::Decode => ALL_REDUCE_SMALL,
    };
    (REDUCE, "vllm::all_reduce", "[[64, 4096], []]", kernel)
}

fn gemm(phase: Phase, tenths: i64) -> Kernel {
    let base = match phase {
        Phase::Prefill => GEMM_PREFILL,
        Phase::Decode => GEMM_DECODE,
    };
    Kernel { dur_ns: base.dur_ns * tenths / 10, ..base }
}

/// Prefill has 32 times the tokens of a decode; what decode spends on latency grows little.
fn scale(phase: Phase, kernel: Kernel, times: i64) -> Kernel {
    match phase {
        Phase::Prefill => Kernel {
            dur_ns: kernel.dur_ns * times,
            blocks: kernel.blocks * 8,
            early: false,
            ..kernel
        },
        Phase::Decode => kernel,
    }
}

/// A second thread, whose id is its pthread handle, which does not fit in 32 bits: Perfetto shows its slices on
/// the main thread, where they cross.
fn tokenizer_thread(sim: &mut Sim, first: i64) {
    const TID: i64 = 139_872_040_031_808;
    let name = event("M", "", "thread_name").on(PID, TID).arg("name", "thread (detokenizer)");
    sim.untimed(name.raw("ts", "0"));
    let mut at = first + 400_000;
    for batch in 0..40 {
        let start = at + sim.rng.between(200_000, 2_200_000);
        let end = start + sim.rng.about(90_000, 50);
        let mut slice =
            event("X", "user_annotation", "detokenize").on(PID, TID).arg("batch", batch);
        if batch == 7 {
            slice = slice.raw_arg("tokens per second", "NaN").arg("tokens", 64);
        }
        sim.slice(slice, start, end);
        at = end;
    }
}

/// Names and order of the tracks, as Kineto writes them.
fn metadata(sim: &mut Sim) {
    for (pid, name, label, order) in [
        (PID, "python3 (synthetic example)", "CPU", 4_242),
        (0, "python3 (synthetic example)", "GPU 0", 5_000_000),
    ] {
        for (key, what, value) in
            [("process_name", "name", name), ("process_labels", "labels", label)]
        {
            sim.untimed(event("M", "", key).on(pid, 0).raw("ts", "0").arg(what, value));
        }
        let sort = event("M", "", "process_sort_index").on(pid, 0).raw("ts", "0");
        sim.untimed(sort.arg("sort_index", order));
    }
    let mut thread = |pid: i64, tid: i64, name: &str| {
        sim.untimed(event("M", "", "thread_name").on(pid, tid).raw("ts", "0").arg("name", name));
        let sort = event("M", "", "thread_sort_index").on(pid, tid).raw("ts", "0");
        sim.untimed(sort.arg("sort_index", tid));
    };
    thread(PID, PID, "thread 4242 (python3)");
    for stream in [7, 20, 28] {
        thread(0, stream, &format!("stream {stream}"));
    }
}
