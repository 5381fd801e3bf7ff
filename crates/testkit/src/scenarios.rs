//! Runs with one known cause of their slowness, as small traces: the questions that engineers bring to a profiler.
//!
//! Durations are those that the cause would have; nothing is copied from a real run.

use crate::{Kineto, event};

/// A run and its cause.
pub struct Scenario {
    /// A short name.
    pub name: &'static str,
    /// What its owner asks.
    pub question: &'static str,
    /// The trace.
    pub trace: Kineto,
}

const PID: i64 = 31;
const THREAD: i64 = 31;
const STREAM: i64 = 7;
const MS: i64 = 1_000_000;

/// Writes a trace of one thread and one stream.
struct Writer {
    trace: Kineto,
    /// Now, on the CPU.
    cpu_ns: i64,
    /// When the stream is free.
    gpu_ns: i64,
    correlation: i64,
}

impl Writer {
    fn new() -> Self {
        let device = r#"[{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85028765696, "computeMajor": 9, "computeMinor": 0, "numSms": 132}]"#;
        let trace = Kineto::new().with("schemaVersion", "1").with("deviceProperties", device);
        Self { trace, cpu_ns: 1_000_000_000, gpu_ns: 0, correlation: 0 }
    }

    /// A slice of the thread around what `inside` does, and at least `ns` long.
    fn within(&mut self, category: &str, name: &str, ns: i64, inside: impl FnOnce(&mut Self)) {
        let start = self.cpu_ns;
        inside(self);
        self.cpu_ns = self.cpu_ns.max(start + ns);
        let slice = event("X", category, name).on(PID, THREAD);
        self.trace.push(slice.at_ns(start).lasting_ns(self.cpu_ns - start));
        self.cpu_ns += 500;
    }

    /// A call that launches GPU work.
    fn launch(&mut self, call: &str, category: &str, work: &str, ns: i64, bytes: Option<i64>) {
        self.correlation += 1;
        let id = self.correlation;
        let called = event("X", "cuda_runtime", call).on(PID, THREAD).arg("correlation", id);
        self.trace.push(called.at_ns(self.cpu_ns).lasting_ns(4_000));
        self.cpu_ns += 4_000;
        let start = self.gpu_ns.max(self.cpu_ns + 2_000);
        let slice = event("X", category, work).on(0, STREAM).at_ns(start).lasting_ns(ns);
        let slice = slice.arg("device", 0).arg("stream", STREAM).arg("correlation", id);
        self.trace.push(match bytes {
            Some(bytes) => slice.arg("bytes", bytes),
            None => slice,
        });
        self.gpu_ns = start + ns;
    }

    /// An op that takes `cpu_ns` on the CPU and `gpu_ns` in its kernel.
    fn op(&mut self, name: &str, kernel: &str, cpu_ns: i64, gpu_ns: i64) {
        self.within("cpu_op", name, cpu_ns, |own| {
            own.launch("cudaLaunchKernel", "kernel", kernel, gpu_ns, None);
        });
    }

    /// The host waits until the stream is empty.
    fn synchronize(&mut self) {
        let until = self.gpu_ns + 3_000;
        let ns = (until - self.cpu_ns).max(3_000);
        self.within("cuda_runtime", "cudaDeviceSynchronize", ns, |_| {});
    }

    fn step(&mut self, number: usize, inside: impl FnOnce(&mut Self)) {
        self.within("user_annotation", &format!("ProfilerStep#{number}"), 0, inside);
    }

    /// The allocator gives (or takes back) memory.
    fn memory(&mut self, bytes: i64, allocated: i64, reserved: i64) {
        self.cpu_ns += 1_000;
        let change = event("i", "cpu_instant_event", "[memory]").on(PID, THREAD).at_ns(self.cpu_ns);
        let change = change.member("s", "t").arg("Device Type", 1).arg("Device Id", 0);
        let change = change.arg("Addr", 4_096 + allocated).arg("Bytes", bytes);
        self.trace.push(change.arg("Total Allocated", allocated).arg("Total Reserved", reserved));
        self.cpu_ns += 1_000;
    }
}

const GEMM: &str = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas";
const ADD: &str =
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>";

/// The six questions.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "data_loading",
            question: "A batch takes 80 ms. Should I make the model faster, or the loading of images?",
            trace: data_loading(),
        },
        Scenario {
            name: "copies",
            question: "aten::copy_ takes 40% of the time. Should I optimise my copies?",
            trace: copies(),
        },
        Scenario {
            name: "many_ops",
            question: "The profile has thousands of ops. Where do I begin?",
            trace: many_ops(),
        },
        Scenario {
            name: "cpu_timer",
            question: "My timer says that a layer takes 12 us. Why is the step so slow?",
            trace: cpu_timer(),
        },
        Scenario {
            name: "no_warm_up",
            question: "The first iteration takes 2 s, the others 0.1 s. Which number is right?",
            trace: no_warm_up(),
        },
        Scenario {
            name: "out_of_memory",
            question: "Batch 32 fits and batch 64 does not. What takes the memory?",
            trace: out_of_memory(),
        },
    ]
}

/// Images are decoded in the step: the GPU waits.
fn data_loading() -> Kineto {
    let mut run = Writer::new();
    for number in 2..6 {
        run.step(number, |run| {
            let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
            run.within("user_annotation", loader, 60 * MS, |run| {
                run.within("python_function", "transforms.py(88): preprocess", 58 * MS, |run| {
                    run.within("python_function", "transforms.py(41): normalize", 31 * MS, |_| {});
                });
            });
            (0..10).for_each(|_| run.op("aten::mm", GEMM, 60_000, 2 * MS));
            run.synchronize();
        });
    }
    run.trace
}

/// Each step copies its batch from pageable memory, with a call that returns when the copy is done.
fn copies() -> Kineto {
    let mut run = Writer::new();
    for number in 2..6 {
        run.step(number, |run| {
            for _ in 0..4 {
                run.within("cpu_op", "aten::copy_", 0, |run| {
                    let copy = "Memcpy HtoD (Pageable -> Device)";
                    run.gpu_ns = run.gpu_ns.max(run.cpu_ns);
                    let bytes = Some(64 << 20);
                    run.launch("cudaMemcpyAsync", "gpu_memcpy", copy, 5 * MS, bytes);
                    run.synchronize();
                });
            }
            (0..15).for_each(|_| run.op("aten::mm", GEMM, 60_000, 2 * MS));
            run.synchronize();
        });
    }
    run.trace
}

/// Twelve thousand ops in the three phases of two steps.
fn many_ops() -> Kineto {
    let mut run = Writer::new();
    for number in 2..4 {
        run.step(number, |run| {
            run.within("user_annotation", "forward_pass", 0, |run| {
                (0..2_000).for_each(|_| run.op("aten::add", ADD, 9_000, 10_000));
            });
            run.within("user_annotation", "backward_pass", 0, |run| {
                (0..3_000).for_each(|_| run.op("aten::mul", ADD, 9_000, 20_000));
            });
            run.within("user_annotation", "optimizer_step", 0, |run| {
                (0..1_000).for_each(|_| run.op("aten::add_", ADD, 9_000, 10_000));
            });
            run.synchronize();
        });
    }
    run.trace
}

/// Ops that return after 12 us and run for 5 ms.
fn cpu_timer() -> Kineto {
    let mut run = Writer::new();
    for number in 2..6 {
        run.step(number, |run| {
            (0..20).for_each(|_| run.op("aten::mm", GEMM, 12_000, 5 * MS));
            run.synchronize();
        });
    }
    run.trace
}

/// The first of six ranges loads code and allocates.
fn no_warm_up() -> Kineto {
    let mut run = Writer::new();
    for number in 0..6 {
        run.within("user_annotation", &format!("inference {number}"), 0, |run| {
            if number == 0 {
                run.op("aten::mm", GEMM, 60_000, MS);
                run.within("cuda_driver", "cuModuleLoadData", 1_400 * MS, |_| {});
                run.within("cuda_runtime", "cudaMalloc", 500 * MS, |_| {});
            }
            (0..20).for_each(|_| run.op("aten::mm", GEMM, 60_000, 5 * MS));
            run.synchronize();
        });
    }
    run.trace
}

/// A training step whose forward pass keeps 40 GiB.
fn out_of_memory() -> Kineto {
    const GIB: i64 = 1 << 30;
    let mut run = Writer::new();
    let reserved = 74 * GIB;
    let mut allocated = 20 * GIB;
    run.memory(allocated, allocated, reserved);
    for number in 2..6 {
        run.step(number, |run| {
            for _ in 0..8 {
                allocated += 5 * GIB;
                run.memory(5 * GIB, allocated, reserved);
                run.op("aten::mm", GEMM, 60_000, 4 * MS);
            }
            for _ in 0..8 {
                let engine = "autograd::engine::evaluate_function: MmBackward0";
                run.within("cpu_op", engine, 0, |run| {
                    allocated -= 5 * GIB - GIB / 4;
                    run.memory(GIB / 4 - 5 * GIB, allocated, reserved);
                    run.op("aten::mm", GEMM, 60_000, 8 * MS);
                });
            }
            run.within("user_annotation", "Optimizer.step#AdamW.step", 0, |run| {
                run.op("aten::_fused_adamw_", ADD, 60_000, 3 * MS);
            });
            allocated -= 2 * GIB;
            run.memory(-2 * GIB, allocated, reserved);
            run.synchronize();
        });
    }
    run.trace
}
