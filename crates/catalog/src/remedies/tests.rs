//! Each gate by itself: open for what it names, closed for anything else and for what is not known.

use super::*;
use crate::Platform;

fn ids(ids: &[&str], facts: &RunFacts) -> Vec<&'static str> {
    applicable(ids, facts).iter().map(|remedy| remedy.id).collect()
}

/// A training run of plain PyTorch on an NVIDIA GPU, op by op.
const TRAINING: RunFacts = RunFacts {
    platform: Platform::Cuda,
    stack: Some(Stack::Pytorch),
    run: Some(RunType::Training),
    phase: Some(Phase::Forward),
    norm: None,
    activation: None,
    optimizer: None,
    mask: None,
    execution: Some(Execution::Eager),
    parts: Some(Parts::Aten),
    pinned: None,
    own_stream: None,
    to_device: None,
    zero_grad: None,
    equal_inputs: None,
    faster_nhwc: None,
    group_norms: Some(false),
    half: None,
    single_process_loader: None,
    sm: Some(90),
    compiled: Some(false),
    attention_interface: None,
    tokens: None,
    bytes: None,
    ddp: None,
    collective_f32: None,
    foreach: None,
    recurrent: Some(false),
    prefill: Some(false),
    single_kernel_calls: Some(false),
    asks_flashinfer: Some(false),
    recorded: None,
};

/// The same as inference in vLLM.
const VLLM: RunFacts =
    RunFacts { stack: Some(Stack::Vllm), run: Some(RunType::Inference), ..TRAINING };

#[test]
fn what_was_not_released_when_the_trace_was_recorded_is_no_remedy() {
    let at = |recorded| RunFacts { recorded, ..TRAINING };
    assert_eq!(ids(&["torch-compile"], &at(Some(202_106))), [""; 0]);
    let closed = remedy("torch-compile").and_then(|row| row.gates.closed(&at(Some(202_106))));
    assert_eq!(closed, Some(Gate::Released));
    assert_eq!(ids(&["torch-compile"], &at(Some(202_303))), ["torch-compile"]);
    assert_eq!(ids(&["torch-compile"], &at(None)), ["torch-compile"], "a trace without a date");
}

#[test]
fn a_fusion_that_is_switched_on_is_not_to_be_switched_on() {
    let asked = |asks_flashinfer| {
        let facts = RunFacts {
            stack: Some(Stack::Sglang),
            run: Some(RunType::Inference),
            norm: Some(Norm::Rms),
            tokens: Some(2048),
            asks_flashinfer: Some(asks_flashinfer),
            ..TRAINING
        };
        ids(&["sglang-allreduce-norm", "sglang-allreduce-norm-unavailable"], &facts)
    };
    assert_eq!(asked(false), ["sglang-allreduce-norm"]);
    assert_eq!(asked(true), ["sglang-allreduce-norm-unavailable"]);
}

#[test]
fn rows_are_whole() {
    let mut ids: Vec<&str> = REMEDIES.iter().map(|remedy| remedy.id).collect();
    ids.sort_unstable();
    let n = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), n, "ids are unique");
    for remedy in REMEDIES {
        for sentence in [remedy.action, remedy.why, remedy.check] {
            assert!(
                sentence.ends_with('.') && !sentence.contains("  "),
                "{}: {sentence}",
                remedy.id
            );
            assert!(sentence.starts_with(|c: char| c.is_ascii_uppercase()), "{}", remedy.id);
        }
        assert!(!remedy.what.ends_with('.') && !remedy.what.contains("; "), "{}", remedy.id);
    }
}

#[test]
fn nothing_that_asks_for_a_fact_passes_without_it() {
    let nothing = RunFacts::default();
    let open: Vec<&str> = REMEDIES
        .iter()
        .filter(|remedy| remedy.gates.closed(&nothing).is_none())
        .map(|remedy| remedy.id)
        .collect();
    // (Growth is measured, and tensors are kept by the program on every device.)
    assert_eq!(open, ["release-tensors"]);
}

#[test]
fn vendor() {
    let rms = RunFacts { norm: Some(Norm::Rms), ..VLLM };
    let rms = RunFacts { bytes: Some(1 << 20), ..rms };
    let both = ["vllm-allreduce-norm", "aiter-allreduce-norm"];
    assert_eq!(ids(&both, &rms), ["vllm-allreduce-norm"]);
    assert_eq!(ids(&both, &RunFacts { platform: Platform::Rocm, ..rms }), ["aiter-allreduce-norm"]);
    assert!(ids(&both, &RunFacts { platform: Platform::Unknown, ..rms }).is_empty());
}

#[test]
fn framework_and_run_type() {
    let rms = RunFacts { norm: Some(Norm::Rms), ..VLLM };
    assert_eq!(ids(&["vllm-add-rms-norm", "sglang-add-rms-norm"], &rms), ["vllm-add-rms-norm"]);
    // vLLM's passes are not for a training run, whatever kernels it borrows.
    let training = RunFacts { run: Some(RunType::Training), ..rms };
    assert!(
        ids(&["vllm-add-rms-norm", "vllm-norm-quant", "framework-kernel"], &training).is_empty()
    );
    assert!(ids(&["vllm-add-rms-norm"], &RunFacts { run: None, ..rms }).is_empty());
    let liger = ["liger-rms-norm"];
    let train = RunFacts { norm: Some(Norm::Rms), ..TRAINING };
    assert_eq!(ids(&liger, &train), liger);
    assert!(ids(&liger, &RunFacts { run: Some(RunType::Inference), ..train }).is_empty());
}

#[test]
fn norm() {
    let all = ["rms-norm-op", "liger-rms-norm", "vllm-add-rms-norm", "vllm-allreduce-norm"];
    for facts in [TRAINING, VLLM] {
        for norm in [None, Some(Norm::Layer), Some(Norm::Other)] {
            assert!(ids(&all, &RunFacts { norm, ..facts }).is_empty(), "{norm:?}");
        }
    }
}

#[test]
fn activation() {
    let swiglu = ["liger-swiglu", "gelu-tanh-op"];
    let with = |activation| RunFacts { activation, ..TRAINING };
    assert_eq!(ids(&swiglu, &with(Some(Activation::Silu))), ["liger-swiglu"]);
    assert_eq!(
        ids(&swiglu, &with(Some(Activation::NewGelu))),
        ["gelu-tanh-op"],
        "SwiGLU is no GELU"
    );
    for activation in [None, Some(Activation::Gelu), Some(Activation::Relu)] {
        assert!(ids(&swiglu, &with(activation)).is_empty(), "{activation:?}");
    }
}

#[test]
fn optimizer() {
    let fused = ["fused-optimizer", "fused-sgd"];
    let with = |optimizer| RunFacts { optimizer, phase: Some(Phase::Optimizer), ..TRAINING };
    for (optimizer, remedy) in [
        (Optimizer::Adam, "fused-optimizer"),
        (Optimizer::AdamW, "fused-optimizer"),
        (Optimizer::Sgd, "fused-sgd"),
    ] {
        assert_eq!(ids(&fused, &with(Some(optimizer))), [remedy]);
    }
    assert!(
        ids(&fused, &with(Some(Optimizer::Adagrad))).is_empty(),
        "it has no such option on GPUs"
    );
    let of_2023 = RunFacts { recorded: Some(202_311), ..with(Some(Optimizer::Sgd)) };
    assert!(ids(&fused, &of_2023).is_empty(), "before PyTorch 2.3");
    assert!(ids(&fused, &with(Some(Optimizer::Other))).is_empty());
    assert!(ids(&fused, &with(None)).is_empty());
    let text = REMEDIES.iter().map(|remedy| format!("{remedy:?}")).collect::<String>();
    assert!(!text.contains("FusedAdam"), "which is no SGD");
}

#[test]
fn mask_and_precision() {
    let all = ["sdpa-causal", "sdpa", "flash-attention"];
    let with = |mask, half| RunFacts { mask, half, ..TRAINING };
    assert_eq!(ids(&all, &with(Some(Mask::None), Some(true))), all[1..]);
    let causal = ["sdpa-causal", "flash-attention"];
    assert_eq!(ids(&all, &with(Some(Mask::Causal), Some(true))), causal);
    assert_eq!(ids(&all, &with(Some(Mask::Additive), Some(true))), ["sdpa"], "which takes a bias");
    assert_eq!(ids(&all, &with(Some(Mask::None), Some(false))), ["sdpa"], "f32");
    assert_eq!(ids(&all, &with(Some(Mask::None), None)), ["sdpa"]);
    assert!(ids(&all, &with(None, Some(true))).is_empty());
}

#[test]
fn execution_and_parts() {
    let compile = ["torch-compile"];
    assert_eq!(ids(&compile, &TRAINING), compile);
    assert_eq!(ids(&compile, &RunFacts { execution: Some(Execution::Graph), ..TRAINING }), compile);
    for closed in [
        RunFacts { execution: Some(Execution::Compiled), ..TRAINING },
        RunFacts { execution: None, ..TRAINING },
        RunFacts { parts: Some(Parts::Compiled), ..TRAINING },
        RunFacts { parts: Some(Parts::Library), ..TRAINING },
        RunFacts { parts: None, ..TRAINING },
        RunFacts { phase: Some(Phase::Optimizer), ..TRAINING },
        VLLM,
    ] {
        assert!(ids(&compile, &closed).is_empty(), "{closed:?}");
    }
    let graph = ["cuda-graph", "hip-graph", "vllm-batch-graph", "sglang-batch-graph"];
    assert_eq!(ids(&graph, &TRAINING), ["cuda-graph"]);
    let recurrent = RunFacts { recurrent: Some(true), ..TRAINING };
    assert_eq!(
        ids(&["cuda-graph", "hip-graph", "recurrent-graph"], &recurrent),
        ["recurrent-graph"]
    );
    assert!(ids(&graph, &RunFacts { execution: Some(Execution::Graph), ..TRAINING }).is_empty());
    assert_eq!(ids(&graph, &RunFacts { platform: Platform::Rocm, ..TRAINING }), ["hip-graph"]);
    assert_eq!(ids(&graph, &VLLM), ["vllm-batch-graph"]);
    let compiled = RunFacts { execution: Some(Execution::Compiled), ..VLLM };
    assert_eq!(ids(&graph, &compiled), [""; 0], "compiled batches have a remedy of their own");
    // A serving framework's own routing kernels are dedicated already.
    let routing = ["framework-routing"];
    assert_eq!(ids(&routing, &VLLM), routing);
    assert!(ids(&routing, &RunFacts { parts: Some(Parts::Library), ..VLLM }).is_empty());
}

#[test]
fn copies() {
    let all = ["pin-host-memory", "copy-stream"];
    let with = |pinned, own_stream| RunFacts {
        pinned,
        own_stream,
        to_device: Some(true),
        ..RunFacts::default()
    };
    assert_eq!(ids(&all, &with(Some(false), Some(false))), ["pin-host-memory"]);
    assert_eq!(ids(&all, &with(Some(true), Some(false))), ["copy-stream"]);
    assert!(ids(&all, &with(Some(true), Some(true))).is_empty(), "done already");
    assert!(ids(&all, &with(None, Some(false))).is_empty(), "ROCm's copies do not say");
    let back = RunFacts { to_device: Some(false), ..with(Some(false), Some(false)) };
    assert!(ids(&all, &back).is_empty(), "a result that the CPU reads");
    let own = RunFacts { to_device: Some(true), pinned: Some(false), ..RunFacts::default() };
    assert_eq!(ids(&["pin-host-tensor"], &own), ["pin-host-tensor"]);
    assert!(ids(&["pin-host-tensor"], &back).is_empty());
}

#[test]
fn loader() {
    let workers = ["loader-workers", "loader-capacity"];
    let with = |single_process_loader| RunFacts { single_process_loader, ..TRAINING };
    assert_eq!(ids(&workers, &with(Some(true))), ["loader-workers"]);
    assert_eq!(ids(&workers, &with(Some(false))), ["loader-capacity"], "it has workers already");
    assert!(ids(&workers, &with(None)).is_empty());
}

#[test]
fn launches() {
    let all = [
        "larger-graphs",
        "cuda-graph",
        "hip-graph",
        "vllm-batch-graph",
        "sglang-prefill-graph",
        "sglang-batch-graph",
        "fewer-launches",
    ];
    let with = |execution| RunFacts { execution: Some(execution), ..TRAINING };
    assert_eq!(ids(&all, &with(Execution::Graph)), ["larger-graphs"]);
    assert_eq!(ids(&all, &with(Execution::Eager)), ["cuda-graph", "fewer-launches"]);
    let rocm = RunFacts { platform: Platform::Rocm, ..with(Execution::Compiled) };
    assert_eq!(ids(&all, &rocm), ["hip-graph", "fewer-launches"]);
    let served = RunFacts { execution: Some(Execution::Eager), ..VLLM };
    assert_eq!(ids(&all, &served), ["vllm-batch-graph", "fewer-launches"]);
    let sglang = RunFacts { stack: Some(Stack::Sglang), ..served };
    assert_eq!(ids(&all, &sglang), ["sglang-batch-graph", "fewer-launches"]);
    // Graphs by batch size are of decode.
    let prefill = RunFacts { prefill: Some(true), ..sglang };
    assert_eq!(ids(&all, &prefill), ["sglang-prefill-graph", "fewer-launches"]);
    let compiled = RunFacts { execution: Some(Execution::Compiled), ..prefill };
    assert_eq!(ids(&all, &compiled), ["sglang-prefill-graph", "fewer-launches"]);
    let on_rocm = RunFacts { platform: Platform::Rocm, ..prefill };
    assert_eq!(ids(&all, &on_rocm), ["fewer-launches"]);
    assert!(ids(&all, &RunFacts { execution: None, ..TRAINING }).is_empty());
}

#[test]
fn layout_of_convolutions() {
    let with = |faster_nhwc| RunFacts { faster_nhwc, ..TRAINING };
    assert_eq!(ids(&["channels-last"], &with(Some(true))), ["channels-last"]);
    for faster_nhwc in [Some(false), None] {
        let closed = remedy("channels-last").unwrap().gates.closed(&with(faster_nhwc));
        assert_eq!(closed, Some(Gate::Nhwc), "{faster_nhwc:?}");
    }
}

#[test]
fn kernels_per_call() {
    let all = ["larger-calls", "cuda-graph"];
    let with = |single_kernel_calls| RunFacts { single_kernel_calls, ..TRAINING };
    assert_eq!(ids(&all, &with(Some(true))), ["larger-calls"]);
    assert_eq!(ids(&all, &with(Some(false))), ["cuda-graph"]);
    for id in all {
        let closed = remedy(id).unwrap().gates.closed(&with(None));
        assert_eq!(closed, Some(Gate::Kernels), "{id}");
    }
}

#[test]
fn gradients_and_inputs() {
    let none = ["set-to-none"];
    assert!(ids(&none, &TRAINING).is_empty());
    assert_eq!(ids(&none, &RunFacts { zero_grad: Some(true), ..TRAINING }), none);
    let merge = ["merge-projections"];
    assert!(ids(&merge, &TRAINING).is_empty(), "inputs that are not known");
    assert!(ids(&merge, &RunFacts { equal_inputs: Some(false), ..TRAINING }).is_empty());
    let equal = RunFacts { equal_inputs: Some(true), ..TRAINING };
    assert_eq!(ids(&merge, &equal), merge);
    let backward = RunFacts { phase: Some(Phase::Backward), ..equal };
    assert!(ids(&merge, &backward).is_empty(), "weight gradients share no input");
}

#[test]
fn passes_of_frameworks_ask_for_what_they_apply_to() {
    let rms = RunFacts { norm: Some(Norm::Rms), ..VLLM };
    let reduce = ["vllm-allreduce-norm"];
    let small = RunFacts { bytes: Some(1 << 20), ..rms };
    assert_eq!(ids(&reduce, &small), reduce);
    assert!(ids(&reduce, &rms).is_empty(), "a size that is not recorded");
    assert!(ids(&reduce, &RunFacts { bytes: Some(64 << 20), ..small }).is_empty());
    assert!(ids(&reduce, &RunFacts { sm: Some(80), ..small }).is_empty(), "Hopper or Blackwell");
    let cache = ["vllm-rope-cache"];
    let rocm = RunFacts { platform: Platform::Rocm, sm: None, tokens: Some(256), ..VLLM };
    assert_eq!(ids(&cache, &rocm), cache);
    assert!(ids(&cache, &RunFacts { tokens: Some(8192), ..rocm }).is_empty());
    assert!(ids(&cache, &RunFacts { tokens: None, ..rocm }).is_empty());
    let quant = ["vllm-norm-quant"];
    assert_eq!(ids(&quant, &rms), quant);
    assert!(ids(&quant, &RunFacts { sm: Some(80), ..rms }).is_empty(), "no FP8");
}

#[test]
fn what_is_done_already() {
    let compiled = RunFacts { compiled: Some(true), ..TRAINING };
    assert!(ids(&["torch-compile"], &compiled).is_empty());
    let foreach = ["foreach-optimizer"];
    let step = RunFacts {
        phase: Some(Phase::Optimizer),
        optimizer: Some(Optimizer::Adam),
        foreach: Some(false),
        ..TRAINING
    };
    assert_eq!(ids(&foreach, &step), foreach);
    assert!(ids(&foreach, &RunFacts { foreach: Some(true), ..step }).is_empty());
    let newer =
        |recorded| ids(&["foreach-optimizer", "newer-optimizer"], &RunFacts { recorded, ..step });
    assert_eq!(newer(None), foreach);
    assert_eq!(newer(Some(202_101)), ["newer-optimizer"]);
    assert_eq!(newer(Some(202_306)), foreach);
    let all = ["overlap-collective", "ddp-compress"];
    let ddp = |ddp, collective_f32| RunFacts { ddp, collective_f32, ..TRAINING };
    assert_eq!(ids(&all, &ddp(Some(false), Some(true))), ["overlap-collective"]);
    assert_eq!(ids(&all, &ddp(Some(true), Some(true))), ["ddp-compress"]);
    assert!(ids(&all, &ddp(Some(true), Some(false))).is_empty(), "16 bits already");
    assert!(ids(&all, &ddp(None, Some(true))).is_empty());
}
