//! The rows. Sources: the documentation of PyTorch, vLLM, SGLang, AITER, FlashInfer and Liger Kernel.

use super::Remedy;
use super::gates::{
    Activation, Execution, Gates, Mask, Norm, OPEN, Optimizer, Parts, Phase, RunType, Stack,
};
use crate::Platform;

/// Programs whose model code is the user's own.
const OWN_CODE: &[Stack] = &[Stack::Pytorch, Stack::Diffusers];
/// Op by op, or captured so.
const NOT_COMPILED: &[Execution] = &[Execution::Eager, Execution::Graph];
const ATEN: &[Parts] = &[Parts::Aten];
/// Any kernels but those that a compiler made.
const NOT_GENERATED: &[Parts] = &[Parts::Aten, Parts::Library];
const KNOWN_GPU: &[Platform] = &[Platform::Cuda, Platform::Rocm];
const TRAINING: &[RunType] = &[RunType::Training];
const INFERENCE: &[RunType] = &[RunType::Inference];
const FORWARD: &[Phase] = &[Phase::Forward];

/// When PyTorch 2.0 was released: torch.compile, scaled_dot_product_attention, fused optimizers.
pub const PYTORCH_2_0: u32 = 2023 * 100 + 3;
/// PyTorch 2.3 was released in April 2024, with fused=True for SGD.
const PYTORCH_2_3: u32 = 2024 * 100 + 4;
/// When PyTorch 2.9 was released: one kernel for `rms_norm`.
const PYTORCH_2_9: u32 = 2025 * 100 + 10;

/// The newest of these releases that a version of PyTorch has, as `year * 100 + month`; 0 before all of them.
#[must_use]
pub fn released(version: (u32, u32)) -> u32 {
    let known = [((2, 0), PYTORCH_2_0), ((2, 3), PYTORCH_2_3), ((2, 9), PYTORCH_2_9)];
    known.into_iter().filter(|(has, _)| *has <= version).map(|(_, month)| month).max().unwrap_or(0)
}

/// An optimizer that updates its parameters one by one.
const ONE_BY_ONE: Gates = Gates {
    since: Some(PYTORCH_2_0),
    platforms: KNOWN_GPU,
    runs: TRAINING,
    phases: &[Phase::Optimizer],
    executions: &[Execution::Eager],
    parts: ATEN,
    foreach: Some(false),
    ..OPEN
};

/// Communication that the program starts itself, outside graphs.
const EARLIER: Gates = Gates {
    platforms: KNOWN_GPU,
    stacks: OWN_CODE,
    executions: &[Execution::Eager, Execution::Compiled],
    ..OPEN
};

/// Code of the user on a GPU, whatever launches it.
const GPU_CODE: Gates = Gates { platforms: KNOWN_GPU, stacks: OWN_CODE, ..OPEN };

/// Where SGLang can use FlashInfer's all-reduce with norm.
const SGLANG_ALLREDUCE: Gates = Gates {
    platforms: &[Platform::Cuda],
    stacks: &[Stack::Sglang],
    runs: INFERENCE,
    norms: &[Norm::Rms],
    parts: NOT_GENERATED,
    // Hopper and Blackwell; batches of at most 2048 tokens (layers/communicator.py).
    sm: Some((90, 103)),
    most_tokens: Some(2048),
    ..OPEN
};

/// Every remedy.
pub(super) const REMEDIES: &[Remedy] = &[
    Remedy {
        id: "torch-compile",
        what: "torch.compile",
        action: "Compile the module or function that contains these ops with torch.compile.",
        why: "TorchInductor merges neighbouring pointwise ops and reductions into one kernel, so that their data crosses \
              memory once.",
        check: "In a new trace, Triton kernels (triton_...) replace these kernels.",
        gates: Gates {
            since: Some(PYTORCH_2_0),
            stacks: OWN_CODE,
            phases: &[Phase::Forward, Phase::Backward],
            executions: NOT_COMPILED,
            parts: ATEN,
            compiled: Some(false),
            ..OPEN
        },
    },
    Remedy {
        id: "rms-norm-op",
        what: "torch.nn.functional.rms_norm",
        action: "Call torch.nn.functional.rms_norm instead of the individual ops (one kernel since PyTorch 2.9).",
        why: "One kernel reads the row once and writes the result once.",
        check: "In a new trace, one norm kernel replaces pow, mean, rsqrt and mul.",
        gates: Gates {
            since: Some(PYTORCH_2_9),
            stacks: OWN_CODE,
            phases: FORWARD,
            norms: &[Norm::Rms],
            parts: ATEN,
            ..OPEN
        },
    },
    Remedy {
        id: "liger-rms-norm",
        what: "Liger RMSNorm",
        action: "Use LigerRMSNorm of Liger Kernel in place of the module.",
        why: "One Triton kernel does the norm, and one its backward pass.",
        check: "In a new trace, one norm kernel replaces pow, mean, rsqrt and mul.",
        gates: Gates {
            stacks: &[Stack::Pytorch],
            runs: TRAINING,
            phases: FORWARD,
            norms: &[Norm::Rms],
            executions: NOT_COMPILED,
            parts: ATEN,
            ..OPEN
        },
    },
    Remedy {
        id: "liger-swiglu",
        what: "Liger SwiGLU",
        action: "Use LigerSwiGLUMLP of Liger Kernel in place of the MLP module.",
        why: "One Triton kernel does SiLU and the multiplication.",
        check: "In a new trace, one kernel replaces silu and mul.",
        gates: Gates {
            stacks: &[Stack::Pytorch],
            runs: TRAINING,
            phases: FORWARD,
            activations: &[Activation::Silu],
            executions: NOT_COMPILED,
            parts: ATEN,
            ..OPEN
        },
    },
    Remedy {
        id: "gelu-tanh-op",
        what: "torch.nn.functional.gelu(approximate=\"tanh\")",
        action: "Call torch.nn.functional.gelu with approximate=\"tanh\" instead of the individual ops.",
        why: "One kernel computes the same formula.",
        check: "In a new trace, one GELU kernel replaces pow, tanh, mul and add.",
        gates: Gates {
            stacks: OWN_CODE,
            phases: FORWARD,
            activations: &[Activation::NewGelu],
            parts: ATEN,
            ..OPEN
        },
    },
    Remedy {
        id: "vllm-act-and-mul",
        what: "SiluAndMul or GeluAndMul of vLLM",
        action: "Use the layer SiluAndMul or GeluAndMul of vLLM in the model's MLP.",
        why: "One kernel does the activation and the multiplication.",
        check: "In a new trace, act_and_mul_kernel replaces the two kernels.",
        gates: Gates {
            stacks: &[Stack::Vllm],
            runs: INFERENCE,
            activations: &[Activation::Silu, Activation::Gelu],
            executions: NOT_COMPILED,
            parts: ATEN,
            ..OPEN
        },
    },
    Remedy {
        id: "sglang-act-and-mul",
        what: "SiluAndMul or GeluAndMul of SGLang",
        action: "Use the layer SiluAndMul or GeluAndMul of SGLang in the model's MLP.",
        why: "One kernel does the activation and the multiplication.",
        check: "In a new trace, act_and_mul_kernel replaces the two kernels.",
        gates: Gates {
            stacks: &[Stack::Sglang],
            runs: INFERENCE,
            activations: &[Activation::Silu, Activation::Gelu],
            executions: NOT_COMPILED,
            parts: ATEN,
            ..OPEN
        },
    },
    Remedy {
        id: "liger-rope",
        what: "Liger rotary embedding",
        action: "Use liger_rotary_pos_emb of Liger Kernel instead of the individual ops.",
        why: "One Triton kernel rotates queries and keys.",
        check: "In a new trace, one kernel replaces neg, cat, mul and add.",
        gates: Gates {
            stacks: &[Stack::Pytorch],
            runs: TRAINING,
            phases: FORWARD,
            executions: NOT_COMPILED,
            parts: ATEN,
            ..OPEN
        },
    },
    Remedy {
        id: "framework-rope",
        what: "the rotary embedding layer of the framework",
        action: "Use the framework's rotary embedding layer (get_rope) in the model.",
        why: "One kernel rotates queries and keys in place.",
        check: "In a new trace, rotary_embedding_kernel replaces neg, cat, mul and add.",
        gates: Gates {
            stacks: &[Stack::Vllm, Stack::Sglang],
            runs: INFERENCE,
            executions: NOT_COMPILED,
            parts: ATEN,
            ..OPEN
        },
    },
    Remedy {
        id: "sdpa-causal",
        what: "torch.nn.functional.scaled_dot_product_attention",
        action: "Call torch.nn.functional.scaled_dot_product_attention instead of the two matrix products and the softmax, with \
                 is_causal=True, and scale=1.0 if the model does not scale the scores.",
        why: "One kernel computes the attention without writing the scores to memory.",
        check: "In a new trace, an attention kernel (flash, efficient, fmha or attn_fwd) replaces the softmax and both bmm kernels.",
        gates: Gates {
            since: Some(PYTORCH_2_0),
            platforms: KNOWN_GPU,
            stacks: OWN_CODE,
            phases: FORWARD,
            masks: &[Mask::Causal],
            executions: NOT_COMPILED,
            ..OPEN
        },
    },
    Remedy {
        id: "sdpa",
        what: "torch.nn.functional.scaled_dot_product_attention",
        action: "Call torch.nn.functional.scaled_dot_product_attention instead of the two matrix products and the softmax, with a mask or \
                 bias as attn_mask, and scale=1.0 if the model does not scale the scores; torch.nn.MultiheadAttention calls it with \
                 need_weights=False.",
        why: "One kernel computes the attention without writing the scores to memory.",
        check: "In a new trace, an attention kernel (flash, efficient, fmha or attn_fwd) replaces the softmax and both bmm kernels.",
        gates: Gates {
            since: Some(PYTORCH_2_0),
            platforms: KNOWN_GPU,
            stacks: OWN_CODE,
            phases: FORWARD,
            masks: &[Mask::None, Mask::Boolean, Mask::Additive],
            executions: NOT_COMPILED,
            ..OPEN
        },
    },
    Remedy {
        id: "hf-sdpa",
        what: "attn_implementation=\"sdpa\" of Hugging Face Transformers",
        action: "Load the model with attn_implementation=\"sdpa\"; it runs eager_attention_forward of Transformers now.",
        why: "One kernel computes the attention without writing the scores to memory.",
        check: "In a new trace, an attention kernel (flash, efficient, fmha or attn_fwd) replaces the softmax and both bmm kernels.",
        gates: Gates {
            since: Some(PYTORCH_2_0),
            platforms: KNOWN_GPU,
            stacks: OWN_CODE,
            phases: FORWARD,
            masks: &[Mask::None, Mask::Causal, Mask::Boolean, Mask::Additive],
            executions: NOT_COMPILED,
            attention_interface: Some(true),
            ..OPEN
        },
    },
    Remedy {
        id: "flash-attention",
        what: "FlashAttention",
        action: "Call flash_attn_func of FlashAttention.",
        why: "One kernel computes the attention without writing the scores to memory. It takes 16-bit inputs without an \
              additive bias only.",
        check: "In a new trace, flash_fwd kernels replace the softmax and both bmm kernels.",
        gates: Gates {
            platforms: KNOWN_GPU,
            stacks: OWN_CODE,
            phases: FORWARD,
            masks: &[Mask::None, Mask::Causal],
            executions: NOT_COMPILED,
            half: Some(true),
            // FlashAttention 2 needs Ampere.
            sm: Some((80, 999)),
            ..OPEN
        },
    },
    Remedy {
        id: "vllm-add-rms-norm",
        what: "fused_add_rms_norm of vLLM",
        action: "Pass the residual to vLLM's RMSNorm layer, so that it runs fused_add_rms_norm.",
        why: "One kernel adds the residual and norms the sum.",
        check: "In a new trace, fused_add_rms_norm_kernel replaces the add and the norm.",
        gates: Gates {
            stacks: &[Stack::Vllm],
            runs: INFERENCE,
            norms: &[Norm::Rms],
            parts: NOT_GENERATED,
            executions: NOT_COMPILED,
            ..OPEN
        },
    },
    Remedy {
        id: "sglang-add-rms-norm",
        what: "fused_add_rmsnorm of SGLang",
        action: "Pass the residual to SGLang's RMSNorm layer, so that it runs fused_add_rmsnorm.",
        why: "One kernel adds the residual and norms the sum.",
        check: "In a new trace, one kernel replaces the add and the norm.",
        gates: Gates {
            stacks: &[Stack::Sglang],
            runs: INFERENCE,
            norms: &[Norm::Rms],
            parts: NOT_GENERATED,
            executions: NOT_COMPILED,
            ..OPEN
        },
    },
    Remedy {
        id: "vllm-norm-quant",
        what: "the pass fuse_norm_quant of vLLM",
        action: "Set fuse_norm_quant in the pass_config of vLLM's compilation config, and run without --enforce-eager.",
        why: "One kernel norms and quantizes. The pass is part of vLLM's torch.compile integration, so that it needs compilation.",
        check: "In a new trace, a norm kernel with quantization replaces the two kernels.",
        gates: Gates {
            stacks: &[Stack::Vllm],
            runs: INFERENCE,
            norms: &[Norm::Rms],
            parts: NOT_GENERATED,
            // (The support matrix of docs/design/fusions.md.)
            sm: Some((89, 999)),
            ..OPEN
        },
    },
    Remedy {
        id: "vllm-act-quant",
        what: "the pass fuse_act_quant of vLLM",
        action: "Set fuse_act_quant in the pass_config of vLLM's compilation config, and run without --enforce-eager.",
        why: "One kernel does SiLU, the multiplication and the quantization. The pass is part of vLLM's torch.compile \
              integration, so that it needs compilation.",
        check: "In a new trace, silu_and_mul_quant replaces the two kernels.",
        gates: Gates {
            stacks: &[Stack::Vllm],
            runs: INFERENCE,
            activations: &[Activation::Silu],
            parts: NOT_GENERATED,
            sm: Some((89, 999)),
            ..OPEN
        },
    },
    Remedy {
        id: "vllm-allreduce-norm",
        what: "the pass fuse_allreduce_rms of vLLM (FlashInfer)",
        action: "Set fuse_allreduce_rms in the pass_config of vLLM's compilation config, and run without --enforce-eager.",
        why: "FlashInfer's all-reduce kernel norms its result on the way. It replaces the all-reduce, too; the bound does not count \
              what that saves or costs. The pass is part of vLLM's torch.compile integration, so that it needs compilation.",
        check: "In a new trace, allreduce_fusion_kernel replaces the all-reduce and the norm.",
        gates: Gates {
            platforms: &[Platform::Cuda],
            stacks: &[Stack::Vllm],
            runs: INFERENCE,
            norms: &[Norm::Rms],
            parts: NOT_GENERATED,
            // Hopper and Blackwell; by default tensors up to 1 MiB (8 ranks) to 64 MiB (2 ranks).
            sm: Some((90, 103)),
            most_bytes: Some(1 << 20),
            ..OPEN
        },
    },
    Remedy {
        id: "sglang-allreduce-norm",
        what: "--enable-flashinfer-allreduce-fusion of SGLang",
        action: "Start SGLang with --enable-flashinfer-allreduce-fusion.",
        why: "FlashInfer's all-reduce kernel norms its result on the way. It replaces the all-reduce, too; the bound does not count \
              what that saves or costs.",
        check: "In a new trace, allreduce_fusion_kernel replaces the all-reduce and the norm.",
        gates: Gates { asks_flashinfer: Some(false), ..SGLANG_ALLREDUCE },
    },
    Remedy {
        id: "sglang-allreduce-norm-unavailable",
        what: "FlashInfer's all-reduce with RMSNorm, which is switched on",
        action: "Find out in SGLang's log why FlashInfer's all-reduce with norm is not used: it is switched on.",
        why: "SGLang asks whether it is available (is_flashinfer_allreduce_unavailable), and no kernel of it runs. It would replace the \
              all-reduce, too; the bound does not count what that saves or costs.",
        check: "In a new trace, allreduce_fusion_kernel replaces the all-reduce and the norm.",
        gates: Gates { asks_flashinfer: Some(true), ..SGLANG_ALLREDUCE },
    },
    Remedy {
        id: "aiter-allreduce-norm",
        what: "all-reduce with RMSNorm of AITER",
        action: "Use AITER's custom_fused_ar_rms where the framework version supports it.",
        why: "AITER's all-reduce kernel norms its result on the way. It replaces the all-reduce, too; the bound does not count \
              what that saves or costs.",
        check: "In a new trace, one kernel replaces the all-reduce and the norm.",
        gates: Gates {
            platforms: &[Platform::Rocm],
            stacks: &[Stack::Sglang, Stack::Vllm],
            runs: INFERENCE,
            norms: &[Norm::Rms],
            parts: NOT_GENERATED,
            ..OPEN
        },
    },
    Remedy {
        id: "vllm-rope-cache",
        what: "the pass fuse_rope_kvcache of vLLM (AITER)",
        action: "Set fuse_rope_kvcache in the pass_config of vLLM's compilation config, with AITER enabled (VLLM_ROCM_USE_AITER=1).",
        why: "One AITER kernel rotates and writes the KV cache. The pass applies to steps of at most 256 tokens by default.",
        check: "In a new trace, fused_qk_rope_reshape_and_cache replaces the two kernels.",
        gates: Gates {
            platforms: &[Platform::Rocm],
            stacks: &[Stack::Vllm],
            runs: INFERENCE,
            parts: NOT_GENERATED,
            // rope_kvcache_fusion_max_token_num of vLLM's PassConfig.
            most_tokens: Some(256),
            ..OPEN
        },
    },
    Remedy {
        id: "sglang-rope-cache",
        what: "fused_set_kv_buffer of SGLang",
        action: "Pass fused_set_kv_buffer_arg to SGLang's rotary embedding in the model's attention.",
        why: "One kernel applies the rotary embedding and writes the KV cache.",
        check: "In a new trace, store_kvcache does not follow the rotary embedding.",
        gates: Gates {
            platforms: &[Platform::Cuda],
            stacks: &[Stack::Sglang],
            runs: INFERENCE,
            parts: NOT_GENERATED,
            ..OPEN
        },
    },
    Remedy {
        id: "channels-last",
        what: "memory_format=torch.channels_last for model and input",
        action: "Convert the model and its input with .to(memory_format=torch.channels_last).",
        why: "The convolution library transposes to NHWC and back around each convolution; in channels_last the tensors have \
              that layout already.",
        check: "In a new trace, the transpose kernels around the convolutions are gone.",
        // (TorchInductor chooses the layouts of compiled convolutions itself.)
        gates: Gates {
            platforms: &[Platform::Cuda],
            stacks: OWN_CODE,
            compiled: Some(false),
            faster_nhwc: Some(true),
            group_norms: Some(false),
            ..OPEN
        },
    },
    Remedy {
        id: "channels-last-rocm",
        what: "memory_format=torch.channels_last for model and input",
        action: "Convert the model and its input with .to(memory_format=torch.channels_last). On ROCm before 7.0, set \
                 PYTORCH_MIOPEN_SUGGEST_NHWC=1, too.",
        why: "The convolution library transposes to NHWC and back around each convolution; in channels_last the tensors have \
              that layout already.",
        check: "In a new trace, the transpose kernels around the convolutions are gone.",
        gates: Gates {
            platforms: &[Platform::Rocm],
            stacks: OWN_CODE,
            compiled: Some(false),
            group_norms: Some(false),
            ..OPEN
        },
    },
    Remedy {
        id: "aligned-sizes",
        what: "sizes of a multiple of 16 bytes",
        action: "Pad these sizes to a multiple of 8 values of 16 bits (a vocabulary of 50 257 to 50 304) where they are set, and ignore \
                 the results of the padding.",
        why: "Tensor cores load 16 bytes at a time; rows of other sizes need other kernels.",
        check: "In a new trace, other kernels (as with align8 in their names) run these products in less time.",
        gates: Gates { platforms: &[Platform::Cuda], ..OPEN },
    },
    Remedy {
        id: "merge-projections",
        what: "one GEMM with the weights side by side (merged QKV or gate and up projection)",
        action: "If these GEMMs read the same tensor, concatenate their weights and run one GEMM.",
        why: "One larger GEMM reads the input once and fills the GPU better.",
        check: "In a new trace, one GEMM replaces them, and takes less time than their sum.",
        gates: Gates {
            phases: FORWARD,
            executions: NOT_COMPILED,
            equal_inputs: Some(true),
            ..OPEN
        },
    },
    Remedy {
        id: "fused-optimizer",
        what: "fused=True of torch.optim",
        action: "Pass fused=True to the optimizer (torch.optim: Adam, AdamW).",
        why: "One kernel per group of parameters does the whole update, so that parameters and states cross memory once.",
        check: "In a new trace, a fused optimizer kernel replaces the multi_tensor_apply kernels.",
        gates: Gates {
            since: Some(PYTORCH_2_0),
            platforms: KNOWN_GPU,
            runs: TRAINING,
            optimizers: &[Optimizer::Adam, Optimizer::AdamW],
            parts: ATEN,
            ..OPEN
        },
    },
    Remedy {
        id: "fused-sgd",
        what: "fused=True of torch.optim",
        action: "Pass fused=True to torch.optim.SGD (PyTorch 2.3 or later).",
        why: "One kernel per group of parameters does the whole update, so that parameters and states cross memory once.",
        check: "In a new trace, a fused optimizer kernel replaces the multi_tensor_apply kernels.",
        gates: Gates {
            since: Some(PYTORCH_2_3),
            platforms: KNOWN_GPU,
            runs: TRAINING,
            optimizers: &[Optimizer::Sgd],
            parts: ATEN,
            ..OPEN
        },
    },
    Remedy {
        id: "foreach-optimizer",
        what: "foreach=True of torch.optim",
        action: "Pass foreach=True to the optimizer (torch.optim: SGD, Adam, AdamW, Adagrad; PyTorch 2.0 or later uses it by \
                 default), or fused=True (Adam, AdamW).",
        why: "The update runs over lists of parameters instead of one parameter at a time.",
        check: "In a new trace, a few multi_tensor_apply or fused optimizer kernels replace the many short ones.",
        gates: Gates {
            optimizers: &[Optimizer::Sgd, Optimizer::Adam, Optimizer::AdamW, Optimizer::Adagrad],
            ..ONE_BY_ONE
        },
    },
    Remedy {
        id: "newer-optimizer",
        what: "torch.optim of PyTorch 2.0 or later",
        action: "Use PyTorch 2.0 or later: torch.optim (SGD, Adam, AdamW, Adagrad) then updates all parameters with a few launches.",
        why: "The update runs over lists of parameters instead of one parameter at a time.",
        check: "In a new trace, a few multi_tensor_apply or fused optimizer kernels replace the many short ones.",
        gates: Gates {
            optimizers: &[Optimizer::Sgd, Optimizer::Adam, Optimizer::AdamW, Optimizer::Adagrad],
            since: None,
            until: Some(PYTORCH_2_0),
            ..ONE_BY_ONE
        },
    },
    Remedy {
        id: "foreach-update",
        what: "torch._foreach_*",
        action: "Update all parameters at once with the torch._foreach_* functions, as torch.optim does.",
        why: "A few launches then update all parameters, instead of several for each.",
        check: "In a new trace, a few multi_tensor_apply or fused optimizer kernels replace the many short ones.",
        gates: Gates { optimizers: &[Optimizer::Other], ..ONE_BY_ONE },
    },
    Remedy {
        id: "eval-mode",
        what: "model.eval()",
        action: "If this is inference, call model.eval(): batch norm then uses its running statistics, and can be folded into the \
                 convolution before it.",
        why: "In training mode, batch norm computes the statistics of each batch, so that a result depends on the other inputs of its \
              batch, and updates the running statistics.",
        check: "In a new trace, no kernel of batch norm computes statistics (bn_fw_tr_..., batch_norm_collect_statistics, \
                BatchNormFwdTrain).",
        gates: Gates {
            platforms: KNOWN_GPU,
            stacks: OWN_CODE,
            runs: INFERENCE,
            phases: FORWARD,
            ..OPEN
        },
    },
    Remedy {
        id: "fold-batch-norm",
        what: "batch norm folded into the convolution",
        action: "Fold each batch norm into the convolution before it: torch.nn.utils.fusion.fuse_conv_bn_eval(conv, norm), once after \
                 model.eval(), or torch.compile with freezing (TORCHINDUCTOR_FREEZING=1).",
        why: "With running statistics a batch norm multiplies and shifts each channel by constants, which the weights and the bias of \
              the convolution can hold.",
        check: "In a new trace, no kernel of batch norm runs (bn_fw_inf_..., MIOpenBatchNormFwdInfer).",
        gates: Gates {
            platforms: KNOWN_GPU,
            stacks: OWN_CODE,
            runs: INFERENCE,
            phases: FORWARD,
            ..OPEN
        },
    },
    Remedy {
        id: "set-to-none",
        what: "optimizer.zero_grad(set_to_none=True)",
        action: "Call optimizer.zero_grad(set_to_none=True), the default since PyTorch 2.0.",
        why: "Gradients are dropped instead of filled with zeros; the backward pass then writes them instead of adding to them.",
        check: "In a new trace, zero_grad launches no fill kernels.",
        gates: Gates { runs: TRAINING, zero_grad: Some(true), ..OPEN },
    },
    Remedy {
        id: "framework-routing",
        what: "the expert routing kernels of the framework (fused_topk)",
        action: "Use the framework's FusedMoE layer, which routes with dedicated kernels.",
        why: "Dedicated kernels replace softmax, top-k, sort and index ops.",
        check: "In a new trace, dedicated routing kernels replace PyTorch's.",
        gates: Gates {
            stacks: &[Stack::Vllm, Stack::Sglang],
            runs: INFERENCE,
            executions: NOT_COMPILED,
            parts: ATEN,
            ..OPEN
        },
    },
    Remedy {
        id: "tune-gemm",
        what: "GEMM tuning (TunableOp: PYTORCH_TUNABLEOP_ENABLED=1)",
        action: "Tune these GEMM shapes with TunableOp (PYTORCH_TUNABLEOP_ENABLED=1), which may find a solution without split-K.",
        why: "A split-K solution needs a fill before it or a reduction after it; another solution may not.",
        check: "In a new trace, the fills and reductions around these GEMMs are gone and the GEMMs are no slower.",
        // On CUDA, TunableOp knows the default solution only.
        gates: Gates {
            platforms: &[Platform::Rocm],
            stacks: &[Stack::Pytorch, Stack::Diffusers, Stack::Vllm, Stack::Sglang],
            executions: NOT_COMPILED,
            ..OPEN
        },
    },
    Remedy {
        id: "tune-product",
        what: "tuning of the product (TunableOp: PYTORCH_TUNABLEOP_ENABLED=1)",
        action: "Tune this size with TunableOp (PYTORCH_TUNABLEOP_ENABLED=1), which measures every kernel of rocBLAS and hipBLASLt.",
        why: "The library chooses a kernel by a rule, without measuring.",
        check: "In a new trace, another kernel runs these products in less time.",
        // On CUDA, TunableOp knows the default solution only.
        gates: Gates {
            platforms: &[Platform::Rocm],
            stacks: &[Stack::Pytorch, Stack::Diffusers, Stack::Vllm, Stack::Sglang],
            executions: NOT_COMPILED,
            since: Some(PYTORCH_2_3),
            ..OPEN
        },
    },
    Remedy {
        id: "autotune-product",
        what: "torch.compile(mode=\"max-autotune\")",
        action: "Compile the module of this product with torch.compile(mode=\"max-autotune\"), which measures the library's kernel and \
                 Triton's, and keep what is faster.",
        why: "The library chooses a kernel by a rule, without measuring.",
        check: "In a new trace, another kernel runs these products in less time.",
        gates: Gates {
            platforms: &[Platform::Cuda],
            stacks: OWN_CODE,
            since: Some(PYTORCH_2_0),
            ..OPEN
        },
    },
    Remedy {
        id: "larger-buckets",
        what: "larger buckets (bucket_cap_mb of DistributedDataParallel)",
        action: "Coalesce the collectives: raise bucket_cap_mb of DistributedDataParallel.",
        why: "Each collective has a latency of its own; one larger one pays it once.",
        check: "In a new trace, fewer collectives run, and their sum is shorter.",
        gates: Gates { runs: TRAINING, ddp: Some(true), ..OPEN },
    },
    // (`DistributedDataParallel._sync_buffers`: rank 0 sends, and never receives.)
    Remedy {
        id: "own-buffers",
        what: "buffers that are not broadcast (broadcast_buffers=False of DistributedDataParallel)",
        action: "Set broadcast_buffers=False of DistributedDataParallel if the buffers are batch norm statistics: training does not read \
                 them, and rank 0 has the same without the broadcast. Other ranks then keep their own: evaluate and save on rank 0.",
        why: "Each broadcast flattens, sends and copies back every buffer before the forward pass begins.",
        check: "In a new trace, DistributedDataParallel.forward begins with the model: no broadcast comes before.",
        gates: Gates { runs: TRAINING, ..OPEN },
    },
    Remedy {
        id: "coalesced-collectives",
        what: "one collective for many tensors",
        action: "Coalesce the collectives: flatten the tensors of several into one buffer, and call one collective for it.",
        why: "Each collective has a latency of its own; one larger one pays it once.",
        check: "In a new trace, fewer collectives run, and their sum is shorter.",
        // (Of DistributedDataParallel the remedy above comes first.)
        gates: Gates { runs: TRAINING, ..OPEN },
    },
    Remedy {
        id: "overlap-collective",
        what: "overlap with independent compute",
        action: "Start the collective earlier (async_op=True), and wait for it just before its result is used, so that independent \
                 compute overlaps it.",
        why: "A collective needs few compute units, so that compute can run at the same time.",
        check: "In a new trace, the exposed time of the collective is shorter.",
        // DistributedDataParallel starts its all-reduces asynchronously already.
        gates: Gates { ddp: Some(false), ..OPEN },
    },
    Remedy {
        id: "ddp-compress",
        what: "gradients in 16 bits (bf16_compress_hook or fp16_compress_hook of DistributedDataParallel)",
        action: "Register bf16_compress_hook or fp16_compress_hook of torch.distributed.algorithms.ddp_comm_hooks.default_hooks \
                 with DistributedDataParallel.register_comm_hook.",
        why: "The gradients cross the link in 16 bits instead of 32, which saves up to half of the exposed time. The gradients lose \
              precision.",
        check: "In a new trace, the all-reduce kernels are named after a 16-bit type and take less time.",
        gates: Gates {
            platforms: KNOWN_GPU,
            runs: TRAINING,
            ddp: Some(true),
            collective_f32: Some(true),
            ..OPEN
        },
    },
    Remedy {
        id: "pin-host-memory",
        what: "pinned host memory and non_blocking=True",
        action: "Allocate the host tensor in pinned memory (pin_memory=True of the DataLoader), and copy one batch ahead on a \
                 separate stream with non_blocking=True.",
        why: "A copy from pageable memory blocks the CPU, and a stream runs its work in order.",
        check: "In a new trace, the copy is named \"Pinned -> Device\" and runs concurrently with kernels of another stream.",
        gates: Gates { pinned: Some(false), to_device: Some(true), ..OPEN },
    },
    Remedy {
        id: "pin-host-tensor",
        what: "pinned host memory and non_blocking=True",
        action: "Allocate the host tensor in pinned memory (tensor.pin_memory()), and copy one batch ahead on a separate \
                 stream with non_blocking=True.",
        why: "A copy from pageable memory blocks the CPU, and a stream runs its work in order.",
        check: "In a new trace, the copy is named \"Pinned -> Device\" and runs concurrently with kernels of another stream.",
        gates: Gates { pinned: Some(false), to_device: Some(true), ..OPEN },
    },
    Remedy {
        id: "copy-stream",
        what: "a separate stream for the copy",
        action: "Prefetch on a separate stream, one batch ahead.",
        why: "The copy engine can overlap kernels, but a stream runs its work in order.",
        check: "In a new trace, the copy runs concurrently with kernels.",
        gates: Gates { pinned: Some(true), own_stream: Some(false), to_device: Some(true), ..OPEN },
    },
    Remedy {
        id: "loader-workers",
        what: "worker processes of the DataLoader",
        action: "Load data in worker processes: set num_workers of the DataLoader above 0 (it is 0 here).",
        why: "With num_workers=0 the process that launches the GPU's work loads the data, too.",
        check: "In a new trace, the data loader's slices are short and the GPU is busy meanwhile.",
        gates: Gates { single_process_loader: Some(true), ..OPEN },
    },
    // (`transformers/pipelines/base.py`: `get_iterator` makes the loader; `ChunkPipeline` sets num_workers to 1.)
    Remedy {
        id: "pipeline-loader",
        what: "preparation of inputs outside the pipeline",
        action: "A pipeline of transformers makes this loader: give it a faster processor (use_fast=True where the model has one), or \
                 prepare inputs ahead of the call. num_workers of the pipeline moves the work to other processes where the pipeline \
                 takes whole inputs; one that cuts them into chunks (zero-shot, question answering, masks, speech) sets it to 1.",
        why: "The process that launches the GPU's work prepares the inputs, too.",
        check: "In a new trace, the data loader's slices are short and the GPU is busy meanwhile.",
        gates: Gates { single_process_loader: Some(true), ..OPEN },
    },
    Remedy {
        id: "loader-capacity",
        what: "more workers of the DataLoader",
        action: "The workers of the data loader do not keep up: more of them (num_workers), more batches ahead (prefetch_factor), or \
                 cheaper transforms.",
        why: "The workers load during the step, but need longer for a batch than a step takes.",
        check: "In a new trace, the GPU waits less for the data loader.",
        gates: Gates { single_process_loader: Some(false), ..OPEN },
    },
    // (`torch/utils/data/dataloader.py`: with pin_memory, the thread of `_pin_memory_loop` reads the queue of the workers.)
    Remedy {
        id: "loader-transfer",
        what: "fewer tensors from the workers of the DataLoader",
        action: "More workers do not help: the main process takes over the batches that they have made, tensor by tensor. pin_memory=True of \
                 the DataLoader does that in a thread of its own; fewer and larger tensors or larger batches need fewer transfers.",
        why: "Each tensor of a batch crosses from the worker to the main process by itself.",
        check: "In a new trace, the main process spends less time in the data loader.",
        gates: Gates { single_process_loader: Some(false), ..OPEN },
    },
    Remedy {
        id: "pin-loader-memory",
        what: "pinned memory",
        action: "Copy from pinned memory: pin_memory=True in the DataLoader and .to(device, non_blocking=True).",
        why: "A copy from pageable memory blocks the CPU.",
        check: "In a new trace, the copies are named \"Pinned -> Device\".",
        gates: Gates { pinned: Some(false), to_device: Some(true), ..OPEN },
    },
    Remedy {
        id: "pin-memory",
        what: "pinned memory",
        action: "Copy from pinned memory: tensor.pin_memory() and .to(device, non_blocking=True). A tensor that the CPU only generates can \
                 be made on the GPU (device=\"cuda\").",
        why: "A copy from pageable memory blocks the CPU.",
        check: "In a new trace, the copies are named \"Pinned -> Device\", or there are none.",
        gates: Gates { pinned: Some(false), to_device: Some(true), ..OPEN },
    },
    Remedy {
        id: "float32",
        what: "32-bit floats",
        action: "Make these tensors float32 before they go to the GPU, or where they first become float64.",
        why: "An op with a float64 tensor computes and returns float64.",
        check: "In a new trace, no large input of an op is of type double.",
        gates: GPU_CODE,
    },
    Remedy {
        id: "one-cat",
        what: "one torch.cat",
        action: "Collect the parts in a list and call torch.cat once, after the loop. Where the loop needs the whole, write the parts into \
                 a tensor of its final size.",
        why: "Each call copies the whole tensor again.",
        check: "In a new trace, aten::cat takes less time.",
        gates: GPU_CODE,
    },
    Remedy {
        id: "earlier-launches",
        what: "less work on the CPU before launches",
        action: "Shorten what the CPU does before these launches: move it out of the step, into another process, or launch ahead of \
                 it.",
        why: "The GPU has nothing to do until the next launch.",
        check: "In a new trace, the GPU is idle for less time before late launches.",
        gates: Gates { executions: &[Execution::Eager, Execution::Compiled], ..OPEN },
    },
    Remedy {
        id: "record-stacks",
        what: "what the CPU does where nothing is recorded",
        action: "Record with with_stack=True, or put torch.profiler.record_function around the code there, to see what the CPU does. Then \
                 shorten it, or launch the next GPU work before it.",
        why: "The GPU has nothing to do until the next launch, and the file does not show what the CPU does.",
        check: "In a new trace, frames or ranges explain this idle time, or it is shorter.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "record-ranges",
        what: "what the CPU does where nothing is recorded",
        action: "Put torch.profiler.record_function around the code there, to see what the CPU does. Then shorten it, or launch the next GPU \
                 work before it.",
        why: "The GPU has nothing to do until the next launch, and no Python of the launching thread is recorded then.",
        check: "In a new trace, ranges explain this idle time, or it is shorter.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "collect-rarely",
        what: "no garbage collection in the step",
        action: "Do not call gc.collect in the step: call it every few hundred steps, or after them.",
        why: "It visits every Python object, and launches nothing meanwhile.",
        check: "In a new trace, no step calls gc.collect.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "random-on-gpu",
        what: "random numbers made on the GPU",
        action: "Generate these random numbers on the GPU: pass device=\"cuda\" to the call. With the same seed they differ from those of \
                 the CPU.",
        why: "The CPU generates them one after the other, and launches nothing meanwhile.",
        check: "In a new trace, the ops that generate them launch kernels.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "compute-on-gpu",
        what: "this computation on the GPU, or in the data loader",
        action: "Compute this on the GPU (copy its inputs there first), or ahead of the step, as in the processes of the data loader.",
        why: "The CPU computes, and launches nothing meanwhile.",
        check: "In a new trace, these ops launch kernels, or are gone from the step.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "checkpoint-less",
        what: "fewer checkpointed layers",
        action: "Checkpoint fewer layers, or none, where memory allows (gradient_checkpointing of Transformers, torch.utils.checkpoint).",
        why: "Layers that are not checkpointed do not run again in the backward pass.",
        check: "In a new trace, recompute_fn is called less often, or not at all.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "cached-graph-norm",
        what: "the norm of the graph computed once",
        action: "Pass cached=True to GCNConv if all steps use the same graph: it then computes the norm once.",
        why: "The norm depends on the edges alone.",
        check: "In a new trace, no step calls gcn_norm.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "adapter-type",
        what: "adapters in the type of the model",
        action: "Pass autocast_adapter_dtype=False to get_peft_model: adapters then have the dtype of the model, if its accuracy allows.",
        why: "No tensor is converted before and after each adapter, and products run in 16 bits.",
        check: "In a new trace, _cast_input_dtype launches nothing.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "fewer-boxes",
        what: "fewer boxes before non-maximum suppression",
        action: "Let fewer boxes reach non-maximum suppression: raise the minimum score (box_score_thresh), or lower the number of proposals.",
        why: "It takes longer with more boxes, and runs class by class where there are very many.",
        check: "In a new trace, _batched_nms_vanilla takes less time, or is not called.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "fewer-reads",
        what: "no values read between launches",
        action: "Remove the GPU-to-CPU reads between launches (.item(), and boolean indexing and nonzero, which read back a size), or batch \
                 them into one read; then a graph can capture the step.",
        why: "After each read the CPU launches the next piece of the step, and no graph can capture more than a piece.",
        check: "In a new trace, fewer values are read from the GPU and its busy share is higher.",
        gates: Gates {
            platforms: KNOWN_GPU,
            executions: &[Execution::Eager, Execution::Compiled, Execution::Graph],
            ..OPEN
        },
    },
    // (Transformers, `generation/utils.py`, `_valid_auto_compile_criteria`: generate compiles the forward pass for a cache that is compileable.)
    Remedy {
        id: "static-cache",
        what: "a static cache for generate",
        action: "Pass cache_implementation=\"static\" to generate: the cache does not grow then, and newer versions of Transformers (5.17, for \
                 one) compile the step with CUDA graphs.",
        why: "The CPU launches kernels more slowly than the GPU runs them.",
        check: "In a new trace, cudaGraphLaunch launches the kernels and the GPU's busy share is higher.",
        gates: Gates {
            platforms: &[Platform::Cuda],
            runs: INFERENCE,
            executions: &[Execution::Eager],
            ..OPEN
        },
    },
    Remedy {
        id: "not-in-step",
        what: "this function outside of the step",
        action: "Do this ahead of the step (as in the processes of a data loader), less often, or faster.",
        why: "The CPU launches nothing meanwhile.",
        check: "In a new trace, the GPU waits less while the CPU is in this function.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "not-on-cpu",
        what: "this function on the GPU",
        action: "Run this function on the GPU, or launch GPU work that does not need its result before it.",
        why: "The CPU launches nothing meanwhile.",
        check: "In a new trace, the GPU waits less while the CPU is in this function.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "larger-graphs",
        what: "more of the step in graphs",
        action: "Reduce the CPU work outside the existing graphs, or put more of the step into them.",
        why: "Outside graphs the GPU waits for the CPU.",
        check: "In a new trace, the GPU is idle for less time before late launches.",
        gates: Gates { executions: &[Execution::Graph], ..OPEN },
    },
    Remedy {
        id: "beside-graphs",
        what: "CPU work overlapped with GPU work",
        action: "Shorten what the CPU does here, move it to the GPU, or, where it needs no result of the GPU's last work, do it for the next \
                 input while the GPU works on this one (in a thread or in worker processes).",
        why: "Outside the graphs the GPU waits for the CPU.",
        check: "In a new trace, the GPU is idle for less time before late launches.",
        gates: Gates { executions: &[Execution::Graph], ..OPEN },
    },
    Remedy {
        id: "one-layout",
        what: "one memory layout",
        action: "Give the inputs of these ops one memory layout: where a permuted or sliced tensor is made, make it contiguous once \
                 (.contiguous(), or one memory_format).",
        why: "A kernel for any layout reaches less of the memory bandwidth.",
        check: "In a new trace, vectorized_elementwise_kernel runs instead of elementwise_kernel.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "several-inputs",
        what: "CPU work for several inputs at once",
        action: "Shorten what the CPU does here, move it to the GPU, or do it for several inputs at once (in worker processes): it already \
                 overlaps the GPU's work, but takes longer.",
        why: "The GPU waits for the CPU.",
        check: "In a new trace, the GPU is idle for less time before late launches.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "vllm-async-scheduling",
        what: "async scheduling of vLLM",
        // (vllm-project/vllm: the flag came with #19970, 0.10; the default changed with #27614, 0.14.)
        action: "Let vLLM schedule the next pass while the GPU runs this one: --async-scheduling (vLLM 0.10 or later, where it \
                 supports the configuration; the default since 0.14).",
        why: "The GPU has nothing to do until the next launch.",
        check: "In a new trace, the next graph starts sooner after the last one.",
        gates: Gates { stacks: &[Stack::Vllm], executions: &[Execution::Graph], ..OPEN },
    },
    Remedy {
        id: "larger-calls",
        what: "more rows in each call",
        action: "Pass more rows to each call of the model: a call launches one kernel, so a graph saves no launch, and Python takes the \
                 rest of its time.",
        why: "The code around a call takes as long for many rows as for one.",
        check: "In a new trace, kernels take longer on average and the GPU's busy share is higher.",
        gates: Gates {
            stacks: OWN_CODE,
            executions: &[Execution::Eager, Execution::Compiled],
            single_kernel_calls: Some(true),
            ..OPEN
        },
    },
    Remedy {
        id: "larger-batch",
        what: "a larger batch",
        action: "Give the GPU more work per step: a larger batch, or several inputs in flight.",
        why: "The GPU waits for the CPU, which needs as long for a large batch as for a small one.",
        check: "In a new trace, kernels take longer on average and the GPU's busy share is higher.",
        gates: Gates { executions: &[Execution::Eager, Execution::Compiled], ..OPEN },
    },
    // (docs.pytorch.org, CUDAGraph Trees: an output that is in use, and a backward pass that has not run, keep a graph from its fast path.)
    Remedy {
        id: "graphs-once",
        what: "graphs that are captured once",
        action: "Let each graph be captured once: run inference under torch.inference_mode(), or call \
                 torch.compiler.cudagraph_mark_step_begin() before each iteration. TORCH_LOGS=cudagraphs tells why one is captured anew.",
        why: "While a graph is captured, the GPU has nothing to run.",
        check: "In a new trace, no graph is captured after the first iterations.",
        gates: Gates {
            platforms: KNOWN_GPU,
            stacks: OWN_CODE,
            executions: &[Execution::Graph],
            ..OPEN
        },
    },
    Remedy {
        id: "fixed-sizes",
        what: "an exchange without sizes on the CPU",
        action: "Exchange buffers of a fixed maximum size in the all-to-all, so that the CPU need not read its sizes from the GPU; or \
                 give the GPU more work per step: a larger batch, or several inputs in flight.",
        why: "The CPU waits for the GPU before each exchange, and then launches what follows too late.",
        check: "In a new trace, fewer values are read from the GPU and its busy share is higher.",
        gates: Gates { executions: &[Execution::Eager, Execution::Compiled], ..OPEN },
    },
    Remedy {
        id: "fewer-launches",
        what: "more work for each launch",
        action: "Give each launch more work: a larger batch, or fused ops.",
        why: "The CPU launches kernels more slowly than the GPU runs them.",
        check: "In a new trace, kernels take longer on average and the GPU's busy share is higher.",
        gates: Gates { executions: &[Execution::Eager, Execution::Compiled], ..OPEN },
    },
    Remedy {
        id: "fewer-waits",
        what: "no values read in the step",
        action: "Remove the waits: keep values on the GPU, read them once every few steps, or copy them with non_blocking=True and \
                 use them a step later.",
        why: "After each wait the GPU has nothing to run until the CPU launches again.",
        check: "In a new trace, the GPU is idle for less time while the CPU waits for it.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "fewer-synchronizations",
        what: "no wait for the device in the step",
        action: "Remove calls that wait for the device from the step (torch.cuda.synchronize): to measure, keep one around many steps, or \
                 use torch.cuda.Event.",
        why: "After each wait the GPU has nothing to run until the CPU launches again.",
        check: "In a new trace, the GPU is idle for less time while the CPU waits for it.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "copy-once",
        what: "one copy for all values",
        action: "Copy the tensor to the CPU once and read its values there, instead of one copy for each.",
        why: "Each copy waits for the GPU, however few bytes it moves.",
        check: "In a new trace, far fewer copies go to the CPU.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "caching-allocator",
        what: "PyTorch's cache of GPU memory",
        // (c10/cuda/CUDACachingAllocator.cpp reads both names.)
        action: "Turn on PyTorch's caching allocator: unset PYTORCH_NO_CUDA_MEMORY_CACHING (on ROCm PYTORCH_NO_HIP_MEMORY_CACHING, too).",
        why: "Driver calls that allocate or free memory block the CPU, and freeing waits for the GPU.",
        check: "In a new trace, no step makes driver calls that allocate or free memory.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "lower-peak",
        what: "a lower peak of memory",
        action: "Lower peak memory: a smaller batch, activation checkpointing, or expandable_segments:True in PYTORCH_CUDA_ALLOC_CONF, if \
                 much of the reserved memory is unused.",
        why: "Where an allocation fails, PyTorch waits for the GPU, gives its cache back to the driver and allocates again.",
        check: "In a new trace, no step returns memory to the driver.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "steady-sizes",
        what: "equal sizes from step to step",
        action: "Keep sizes from step to step, so that PyTorch's cache can serve them; do not call empty_cache in the step.",
        why: "Driver calls that allocate or free memory block the CPU, and freeing waits for the GPU.",
        check: "In a new trace, no step makes driver calls that allocate or free memory.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "earlier-communication",
        what: "communication beside compute",
        action: "Start the communication earlier, so that kernels overlap it. First compare ranks: time spent waiting for other ranks is \
                 not transfer.",
        why: "A collective needs few compute units, so that compute can run at the same time.",
        check: "In a new trace, the exposed time of communication is shorter.",
        // (A graph has its order from its capture, and engines capture one op after the other: the next op needs the result.)
        gates: EARLIER,
    },
    Remedy {
        id: "split-exchange",
        what: "communication beside compute",
        action: "Split the input into two parts, so that the all-to-all of one overlaps the kernels of the other.",
        why: "What follows an all-to-all needs its result: only work on other inputs can overlap it.",
        check: "In a new trace, the exposed time of communication is shorter.",
        gates: EARLIER,
    },
    Remedy {
        id: "earlier-transfer",
        what: "communication beside compute",
        action: "Start the communication earlier, so that kernels overlap it.",
        why: "A collective needs few compute units, so that compute can run at the same time.",
        check: "In a new trace, the exposed time of communication is shorter.",
        gates: EARLIER,
    },
    Remedy {
        id: "late-cpu",
        what: "a CPU that launches as early as those of the other ranks",
        action: "Find what slows down the CPU of this rank: shared cores or cores far from its GPU (numactl), other processes, or Python \
                 work that only this rank does.",
        why: "A collective ends when the last rank has joined; until then the GPUs of the others wait.",
        check: "In a new trace, no rank is the last to join most collectives.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "even-ranks",
        what: "ranks that come to their collectives at the same time",
        action: "Give every rank the same work (batch, sequence lengths, data loading), and look for what this one does longer than the \
                 others before its collectives.",
        why: "A collective ends when the last rank has joined; until then the GPUs of the others wait.",
        check: "In a new trace, no rank is the last to join most collectives.",
        gates: Gates { platforms: KNOWN_GPU, ..OPEN },
    },
    Remedy {
        id: "custom-all-reduce",
        what: "all-reduce for small messages",
        action: "Check that the engine's custom all-reduce is on (disable_custom_all_reduce is not set) and that it takes messages of \
                 this size. First compare ranks: time spent waiting for other ranks is not transfer.",
        why: "The time of a small collective is latency, which is lower in a kernel that reads the other GPUs' memory directly.",
        check: "In a new trace, the exposed time of communication is shorter, and so is its median kernel.",
        gates: Gates {
            platforms: KNOWN_GPU,
            stacks: &[Stack::Vllm, Stack::Sglang],
            executions: &[Execution::Graph],
            ..OPEN
        },
    },
    Remedy {
        id: "cuda-graph",
        what: "CUDA graphs or torch.compile(mode=\"reduce-overhead\")",
        action: "Use CUDA graphs or torch.compile(mode=\"reduce-overhead\"), so that one launch starts many kernels; or give each launch \
                 more work: a larger batch, if possible.",
        why: "The CPU launches kernels more slowly than the GPU runs them.",
        check: "In a new trace, cudaGraphLaunch launches the kernels and the GPU's busy share is higher.",
        gates: Gates {
            since: Some(PYTORCH_2_0),
            platforms: &[Platform::Cuda],
            stacks: OWN_CODE,
            phases: &[Phase::Forward, Phase::Backward],
            executions: &[Execution::Eager, Execution::Compiled],
            recurrent: Some(false),
            single_kernel_calls: Some(false),
            ..OPEN
        },
    },
    // (`torch/_dynamo/config.py`: allow_rnn is False; the graph breaks at RNN, GRU and LSTM.)
    Remedy {
        id: "recurrent-graph",
        what: "CUDA graphs",
        action: "Use CUDA graphs (torch.cuda.make_graphed_callables), so that one launch starts many kernels, where all sequences have \
                 one length. torch.compile breaks its graph at recurrent layers (torch.nn.LSTM, GRU and RNN).",
        why: "The CPU launches kernels more slowly than the GPU runs them.",
        check: "In a new trace, cudaGraphLaunch launches the kernels and the GPU's busy share is higher.",
        gates: Gates {
            platforms: &[Platform::Cuda],
            stacks: OWN_CODE,
            phases: &[Phase::Forward, Phase::Backward],
            executions: &[Execution::Eager, Execution::Compiled],
            recurrent: Some(true),
            ..OPEN
        },
    },
    Remedy {
        id: "hip-graph",
        what: "HIP graphs or torch.compile(mode=\"reduce-overhead\")",
        action: "Use HIP graphs (torch.cuda.CUDAGraph) or torch.compile(mode=\"reduce-overhead\"), so that one launch starts many \
                 kernels; or give each launch more work: a larger batch, if possible.",
        why: "The CPU launches kernels more slowly than the GPU runs them.",
        check: "In a new trace, hipGraphLaunch launches the kernels and the GPU's busy share is higher.",
        gates: Gates {
            since: Some(PYTORCH_2_0),
            platforms: &[Platform::Rocm],
            stacks: OWN_CODE,
            phases: &[Phase::Forward, Phase::Backward],
            executions: &[Execution::Eager, Execution::Compiled],
            recurrent: Some(false),
            single_kernel_calls: Some(false),
            ..OPEN
        },
    },
    Remedy {
        id: "vllm-batch-graph",
        what: "graphs of vLLM for this batch",
        action: "Let vLLM run this batch as a graph or compiled: check enforce_eager, the compilation mode and the batch sizes that it \
                 captures.",
        why: "The CPU launches kernels more slowly than the GPU runs them.",
        check: "In a new trace, graph launches start the kernels and the GPU's busy share is higher.",
        gates: Gates {
            platforms: KNOWN_GPU,
            stacks: &[Stack::Vllm],
            executions: &[Execution::Eager],
            ..OPEN
        },
    },
    Remedy {
        id: "vllm-compiled-graph",
        what: "graphs of vLLM for this batch",
        action: "Let vLLM run this batch as a graph: it is compiled already. Check cudagraph_mode and the batch sizes that it captures \
                 (cudagraph_capture_sizes).",
        why: "The CPU launches kernels more slowly than the GPU runs them.",
        check: "In a new trace, graph launches start the kernels and the GPU's busy share is higher.",
        gates: Gates {
            platforms: KNOWN_GPU,
            stacks: &[Stack::Vllm],
            executions: &[Execution::Compiled],
            ..OPEN
        },
    },
    // (docs.sglang.io, piecewise CUDA graphs: graphs by batch size are of decode; those of prefills became the default, and the flag that
    // turns them on was dropped.)
    Remedy {
        id: "sglang-prefill-graph",
        what: "graphs of SGLang for prefills",
        action: "Let SGLang run prefills as piecewise CUDA graphs: its graphs by batch size are of decode. Newer versions do so unless \
                 --disable-piecewise-cuda-graph is set, or a prefill has more tokens than --piecewise-cuda-graph-max-tokens; older \
                 ones need --enable-piecewise-cuda-graph.",
        why: "The CPU launches kernels more slowly than the GPU runs them.",
        check: "In a new trace, graph launches start the kernels of prefills and the GPU's busy share is higher.",
        gates: Gates {
            platforms: &[Platform::Cuda],
            stacks: &[Stack::Sglang],
            prefill: Some(true),
            ..OPEN
        },
    },
    Remedy {
        id: "sglang-batch-graph",
        what: "graphs of SGLang for this batch",
        action: "Let SGLang run this batch as a graph: check disable_cuda_graph and the batch sizes that it captures.",
        why: "The CPU launches kernels more slowly than the GPU runs them.",
        check: "In a new trace, graph launches start the kernels and the GPU's busy share is higher.",
        gates: Gates {
            platforms: KNOWN_GPU,
            stacks: &[Stack::Sglang],
            executions: &[Execution::Eager, Execution::Compiled],
            prefill: Some(false),
            ..OPEN
        },
    },
    Remedy {
        id: "framework-kernel",
        what: "the fused kernel of the framework",
        action: "Enable the framework's fused kernel; the files listed under Replacement select it.",
        why: "One kernel replaces the parts, so each value is read and written only once.",
        check: "In a new trace, the fused kernel replaces the parts.",
        gates: Gates { platforms: KNOWN_GPU, runs: INFERENCE, ..OPEN },
    },
    Remedy {
        id: "release-tensors",
        what: "loss.item(), detach()",
        action: "Keep no tensor of a step after it: store loss.item() or tensor.detach().cpu() in lists and logs, and clear lists of \
                 outputs. A memory snapshot (torch.cuda.memory._record_memory_history) names the line that allocates on a GPU.",
        why: "A tensor that is kept after its step keeps its graph, with the activations of the step.",
        check: "In a new trace, every step ends with as much memory allocated as the one before.",
        gates: OPEN,
    },
];
