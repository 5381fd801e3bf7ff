//! Simulated GPU traces, each with a defect of real ones, and with figures that are known from how they were made.
//!
//! Devices, models and kernels are invented; the names of kernels follow those of their libraries, so that the tables of
//! names recognise them. Every trace is the same on every machine.

use serde_json::Value;

use crate::sim::{COMM, COMPUTE, COPY, Kernel, Machine, Sim};
use crate::{Kineto, KinetoEvent, event, gzip};

/// A simulated trace.
pub struct Scene {
    /// The name of the file, without `.json.gz`.
    pub name: &'static str,
    /// The defect that it has.
    pub shows: &'static str,
    trace: Kineto,
}

impl Scene {
    /// The file, compressed.
    #[must_use]
    pub fn json_gz(&self) -> Vec<u8> {
        gzip(self.trace.text().as_bytes())
    }

    /// Its figures, with the keys of the reference for the real traces.
    #[must_use]
    pub fn truth(&self) -> Value {
        let mut truth = self.trace.truth();
        truth["raw_bytes"] = self.trace.text().len().into();
        truth
    }
}

/// All scenes.
#[must_use]
pub(crate) fn scenes() -> Vec<Scene> {
    vec![
        Scene {
            name: "dependent_launch",
            shows: "kernels that start before their predecessor ends; step annotations that cross a Python frame",
            trace: eager(H100, H100_KERNELS, Extra::CrossingSteps),
        },
        Scene {
            name: "epoch_times",
            shows: "times of 1.7e15 us, which doubles hold to 0.25 us",
            trace: eager(
                Machine { start_ns: 1_712_195_495_406_752_413, early_pct: 0, seed: 2, ..H100 },
                H100_KERNELS,
                Extra::None,
            ),
        },
        Scene {
            name: "folded_tids",
            shows: "thread ids that Perfetto takes for the main thread: negative, 0, more than 32 bits",
            trace: eager(
                Machine { early_pct: 0, seed: 3, ..H100 },
                H100_KERNELS,
                Extra::OddThreads,
            ),
        },
        Scene {
            name: "graph_capture",
            shows: "a graph that is captured and does not run",
            trace: capture(),
        },
        Scene {
            name: "graph_replay",
            shows: "a graph that is replayed: its kernels have neither op nor Python line",
            trace: replay(),
        },
        Scene {
            name: "merged_ranks",
            shows: "two ranks in one file, with the same ids of arrows",
            trace: merged_ranks(),
        },
        Scene {
            name: "rank_0",
            shows: "a rank of two, with collectives on a stream of their own",
            trace: rank(0),
        },
        Scene {
            name: "rank_1",
            shows: "the other rank, on a clock that is 73 ms ahead",
            trace: rank(1),
        },
        Scene {
            name: "rocm_overrun",
            shows: "a kernel with a duration a thousand times too long",
            trace: eager(Machine { seed: 5, ..MI300 }, MI300_OVERRUN, Extra::None),
        },
    ]
}

const H100: Machine = Machine {
    pid: 4_242,
    device: 0,
    rocm: false,
    start_ns: 812_345_678_901,
    early_pct: 40,
    seed: 1,
};
const MI300: Machine = Machine {
    pid: 777,
    device: 2,
    rocm: true,
    start_ns: 6_512_345_678_901_234,
    early_pct: 0,
    seed: 4,
};

const fn kernel(name: &'static str, dur_ns: i64, early: bool) -> Kernel {
    Kernel { name, dur_ns, blocks: 264, threads: 256, stream: COMPUTE, early, overrun: 1 }
}

/// A layer: Python module, op, kernel.
type Layer = [(&'static str, &'static str, Kernel); 5];

const H100_KERNELS: Layer = [
    (
        "nn.Module: RMSNorm_0",
        "_C::fused_add_rms_norm",
        kernel(
            "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, float, int, int)",
            6_100,
            true,
        ),
    ),
    (
        "nn.Module: QKVParallelLinear_0",
        "aten::mm",
        kernel("nvjet_tst_128x64_64x9_1x2_h_bz_TNT", 31_000, true),
    ),
    (
        "vllm/attention/layer.py(212): forward",
        "vllm::unified_attention_with_output",
        kernel(
            "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t>, false, false, false, false, true, true, false, false>(flash::Flash_fwd_params)",
            44_000,
            true,
        ),
    ),
    (
        "nn.Module: RowParallelLinear_0",
        "aten::mm",
        kernel("nvjet_tst_128x64_64x9_1x2_h_bz_TNT", 27_000, true),
    ),
    (
        "nn.Module: SiluAndMul_0",
        "_C::silu_and_mul",
        kernel(
            "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)",
            8_400,
            true,
        ),
    ),
];

const TENSILE: &str = "Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT64x64x64_MI16x16x1_SN_LDSB1_AFC1_GRVWA8_GRVWB8_GSU1_ISA942_IU1_K1_LBSPPA128_LBSPPB128";

const MI300_KERNELS: Layer = [
    (
        "nn.Module: RMSNorm_0",
        "_C::fused_add_rms_norm",
        kernel(
            "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, float, int, int)",
            7_700,
            false,
        ),
    ),
    ("nn.Module: QKVParallelLinear_0", "aten::mm", kernel(TENSILE, 35_000, false)),
    (
        "vllm/attention/layer.py(212): forward",
        "vllm::unified_attention_with_output",
        kernel(
            "void paged_attention_ll4mi_QKV_mfma16_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0, 16, 128, 256, false, 8>(__hip_bfloat16 const*, __hip_bfloat16 const*, int)",
            52_000,
            false,
        ),
    ),
    ("nn.Module: RowParallelLinear_0", "aten::mm", kernel(TENSILE, 30_000, false)),
    (
        "nn.Module: SiluAndMul_0",
        "_C::silu_and_mul",
        kernel(
            "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)",
            9_900,
            false,
        ),
    ),
];

/// The same, with attention that is recorded as lasting a thousand times its time.
const MI300_OVERRUN: Layer = {
    let mut layer = MI300_KERNELS;
    layer[2].2.overrun = 1_000;
    layer
};

const ALL_REDUCE: Kernel = Kernel {
    stream: COMM,
    ..kernel(
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        38_000,
        false,
    )
};

const LAYERS: usize = 6;
const STEPS: usize = 4;

/// What an eager run has besides its layers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extra {
    None,
    CrossingSteps,
    OddThreads,
}

/// A run that launches every kernel by a call of its own.
fn eager(machine: Machine, layer: Layer, extra: Extra) -> Kineto {
    let mut sim = Sim::new(machine);
    names(&mut sim, machine);
    for step in 0..STEPS {
        let entered = sim.cpu_ns;
        sim.spend(9_000);
        let began = sim.cpu_ns;
        if extra == Extra::CrossingSteps {
            // The profiler enters the annotation from a built-in whose frame ends after it began.
            sim.spend(2_400);
            let name = "<built-in method _record_function_enter_new of PyCapsule object>";
            let frame = event("X", "python_function", name).on(machine.pid, machine.pid);
            sim.slice(frame.arg("Python id", 1_000_000 + step as i64), entered, sim.cpu_ns);
        }
        // An overrun is rare: one kernel of the second step.
        sim.frame("vllm/v1/worker/gpu_model_runner.py(1412): execute_model", |sim| {
            copy_in(sim, machine);
            for number in 0..LAYERS {
                layer_eager(
                    sim,
                    layer.map(|mut part| {
                        part.2.overrun = if (step, number) == (1, 2) { part.2.overrun } else { 1 };
                        part
                    }),
                );
            }
            sim.frame("torch/cuda/streams.py(105): synchronize", Sim::synchronize);
        });
        sim.gpu_annotation("execute_context_0(0)_generation_8(8)");
        let name = format!("ProfilerStep#{}", step + 3);
        let slice = event("X", "user_annotation", &name).on(machine.pid, machine.pid);
        sim.slice(slice, began, sim.cpu_ns);
        sim.spend(20_000);
    }
    if extra == Extra::OddThreads {
        odd_threads(&mut sim, machine);
    }
    document(sim, machine)
}

/// Threads whose ids Perfetto reads as that of the main thread, where their slices would cross.
fn odd_threads(sim: &mut Sim, machine: Machine) {
    let end = sim.cpu_ns;
    for (n, tid) in (0..).zip([-7, -8, 0, 139_872_040_031_808_i64]) {
        let name = event("M", "", "thread_name").on(machine.pid, tid).raw("ts", "0");
        sim.untimed(name.arg("name", format!("worker {n}").as_str()));
        let mut at = machine.start_ns + 40_000 + n * 7_000;
        while at < end {
            let slice = event("X", "cpu_op", "aten::index_select").on(machine.pid, tid);
            sim.slice(slice.arg("External id", 900_000 + n), at, at + 65_000);
            at += 310_000 + n * 1_000;
        }
    }
}

fn copy_in(sim: &mut Sim, machine: Machine) {
    let call = if machine.rocm { "hipMemcpyAsync" } else { "cudaMemcpyAsync" };
    sim.op("aten::copy_", "[[64], [64], []]", |sim| {
        sim.memory("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", call, 8_192);
    });
    sim.wait_for(COMPUTE, COPY, 0);
}

fn layer_eager(sim: &mut Sim, layer: Layer) {
    sim.frame("nn.Module: ExampleDecoderLayer_0", |sim| {
        for (module, op, kernel) in layer {
            sim.frame(module, |sim| {
                sim.op(op, "[[8, 4096], [4096, 4096]]", |sim| sim.launch(kernel))
            });
        }
    });
}

/// The graph is captured once, kernel by kernel, with ops and frames.
fn capture() -> Kineto {
    let machine = Machine { seed: 6, ..MI300 };
    let mut sim = Sim::new(machine);
    names(&mut sim, machine);
    sim.frame("vllm/compilation/cuda_graph.py(121): __call__", |sim| {
        sim.capture(|sim| (0..LAYERS).for_each(|_| layer_eager(sim, MI300_KERNELS)));
    });
    document(sim, machine)
}

/// Steps that each replay that graph.
fn replay() -> Kineto {
    let machine = Machine { seed: 7, start_ns: MI300.start_ns + 9_000_000_000, ..MI300 };
    let mut sim = Sim::new(machine);
    names(&mut sim, machine);
    for _ in 0..STEPS {
        sim.annotation("execute_context_0(0)_generation_8(8)", |sim| {
            copy_in(sim, machine);
            sim.frame("torch/cuda/graphs.py(116): replay", |sim| {
                sim.graph(|sim| {
                    for (_, _, kernel) in [MI300_KERNELS; LAYERS].into_iter().flatten() {
                        sim.launch(kernel);
                    }
                });
            });
            sim.frame("torch/cuda/streams.py(105): synchronize", Sim::synchronize);
        });
        sim.gpu_annotation("execute_context_0(0)_generation_8(8)");
        sim.spend(20_000);
    }
    document(sim, machine)
}

fn rank_machine(rank: i64) -> Machine {
    let start_ns = H100.start_ns + rank * 73_000_000;
    Machine {
        pid: 4_242 + rank,
        device: rank,
        start_ns,
        early_pct: 0,
        seed: 8 + rank as u64,
        ..H100
    }
}

/// The events of a rank: after each layer, its result is reduced on another stream.
fn rank_events(rank: i64) -> Vec<KinetoEvent> {
    let machine = rank_machine(rank);
    let mut sim = Sim::new(machine);
    names(&mut sim, machine);
    for _ in 0..STEPS {
        sim.annotation("execute_context_0(0)_generation_8(8)", |sim| {
            for _ in 0..LAYERS {
                layer_eager(sim, H100_KERNELS);
                sim.wait_for(COMM, COMPUTE, 0);
                sim.op("vllm::all_reduce", "[[8, 4096], []]", |sim| sim.launch(ALL_REDUCE));
                sim.wait_for(COMPUTE, COMM, 12_000);
            }
            sim.frame("torch/cuda/streams.py(105): synchronize", Sim::synchronize);
        });
        sim.gpu_annotation("execute_context_0(0)_generation_8(8)");
    }
    sim.finish()
}

fn rank(rank: i64) -> Kineto {
    let distributed = format!("{{\"backend\": \"nccl\", \"rank\": {rank}, \"world_size\": 2}}");
    filled(frame(rank_machine(rank)).with("distributedInfo", &distributed), rank_events(rank))
}

fn merged_ranks() -> Kineto {
    let events = (0..2).flat_map(rank_events).collect();
    filled(Kineto::new().with("schemaVersion", "1"), events)
}

/// Names and order of the tracks.
fn names(sim: &mut Sim, machine: Machine) {
    let mut name = |key: &str, pid: i64, tid: i64, arg: &str, value: &str| {
        sim.untimed(event("M", "", key).on(pid, tid).raw("ts", "0").arg(arg, value));
    };
    name("process_name", machine.pid, 0, "name", "python3 (simulated)");
    name("thread_name", machine.pid, machine.pid, "name", "thread (python3)");
    name("process_name", machine.device, 0, "name", "python3 (simulated)");
    name("process_labels", machine.device, 0, "labels", &format!("GPU {}", machine.device));
    for stream in [7, 20, 28] {
        name("thread_name", machine.device, stream, "name", &format!("stream {stream}"));
    }
}

fn document(sim: Sim, machine: Machine) -> Kineto {
    filled(frame(machine), sim.finish())
}

fn frame(machine: Machine) -> Kineto {
    let name = if machine.rocm { "AMD Instinct MI300X" } else { "NVIDIA H100 80GB HBM3" };
    let device = format!("[{{\"id\": {}, \"name\": \"{name}\"}}]", machine.device);
    Kineto::new()
        .with("schemaVersion", "1")
        .with("simulated", "\"Made by a program, not measured.\"")
        .with("deviceProperties", &device)
}

fn filled(mut trace: Kineto, events: Vec<KinetoEvent>) -> Kineto {
    events.into_iter().for_each(|event| trace.push(event));
    trace
}
