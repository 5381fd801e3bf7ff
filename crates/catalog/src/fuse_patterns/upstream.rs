//! Fused kernels of other projects, or of branches: SGLang's diffusion models, TokenSpeed, vLLM,
//! TensorRT-LLM.

use super::{BASE, Framework, FusePattern, Heavy, Order, Origin, Switch, rows};
use crate::Platform;
use crate::remedies::Norm;

const OTHER: FusePattern = FusePattern { origin: Origin::Upstream, ..BASE };
const SPEED: Framework = Framework::TokenSpeed;
const VLLM: Framework = Framework::Vllm;
const TRT: Framework = Framework::TensorRtLlm;
const LTX: &str = "ltx";
/// Quantization by a scale of the whole tensor, which is computed from it.
const PER_TENSOR: &str = "dynamic_scaled_fp8_quant|strided_dynamic|segmented_max";
const LARGE_MLA: &str = "deepseek|kimi|qwen3.5|qwen3_5";

rows! { UPSTREAM, OTHER =>
    {
        id: "F26",
        title: "Scale, shift and gate of LTX-2 blocks in one kernel",
        models: LTX,
        order: Order::Any,
        active: "ltx2_ada_values9|ltx2_ada_values|ltx2transformerblock",
        groups: &[
            "scale_shift_table|timestep|reshape",
            "get_ada_values|ada|adaln",
            "slice|split|unbind",
        ],
        min_pct: 0.2,
        path: "PR #29390; sgl:jit_kernel/diffusion/triton/ltx2_ada_values.py; sgl:multimodal_gen/runtime/models/dits/ltx_2.py",
    }
    yes: ["a _ltx2_ada_values9_kernel", "1 op aten::reshape", "2 fn get_ada_values", "3 op aten::unbind"],
        no: ["adam_kernel", "adaptive_average_pool"];
    {
        id: "F27",
        title: "Gated residual add of LTX-2 in one kernel",
        platform: Platform::Cuda,
        models: LTX,
        order: Order::Any,
        active: "diffusion_residual_gate_add|residual_gate_add|_ltx2_residual_gate_add",
        groups: &["add|mul|gate", "residual|update|gate", "hidden_states|attn_hidden_states|gate"],
        min_pct: 0.2,
        path: "PR #29361; sgl:jit_kernel/diffusion/residual_gate_add.py; sgl:jit_kernel/csrc/diffusion/residual_gate_add.cuh; sgl:multimodal_gen/runtime/models/dits/ltx_2.py",
    }
    yes: ["a void residual_gate_add_kernel<float>(int)", "1 op aten::mul", "2 fn residual", "3 fn attn_hidden_states"],
        no: ["aggregate_padding", "fn gate"];
    {
        id: "F28",
        title: "MLA attention in CuTe DSL (TokenSpeed)",
        platform: Platform::Cuda,
        framework: SPEED,
        models: LARGE_MLA,
        order: Order::Any,
        heavy: Heavy::Attention,
        active: "tokenspeed_mla_decode|tokenspeed_mla_prefill|blackwellmultiheadlatentattentionforward",
        groups: &["mla|flashmla|attention|fmha", "prefill|decode|verify", "fp8|kv_cache|page_table"],
        min_pct: 0.4,
        path: "python/tokenspeed/runtime/layers/attention/backends/tokenspeed_mla.py; tokenspeed-mla/python/tokenspeed_mla/mla_decode.py; tokenspeed-mla/python/tokenspeed_mla/mla_prefill.py; tokenspeed-kernel/python/tokenspeed_kernel/ops/attention/tokenspeed_mla/__init__.py",
    }
    yes: ["a fn tokenspeed_mla_decode", "1 flash_fwd_splitkv_mla_kernel", "2 fn forward_decode", "3 fn build_page_table"],
        no: ["fmha_decode_kernel", "gemm_kernel"];
    {
        id: "F29",
        title: "MLA key and value packing with FP8 quantization (TokenSpeed)",
        platform: Platform::Cuda,
        framework: SPEED,
        models: LARGE_MLA,
        order: Order::Any,
        active: "_mla_kv_pack_quantize_fp8_kernel|mla_kv_pack_quantize_fp8",
        groups: &["k_nope|k_pe|cat|concat|pack", "quant|fp8|float8", "v|kv|cache"],
        min_pct: 0.2,
        path: "tokenspeed-mla/python/tokenspeed_mla/mla_kv_pack_quantize_fp8.py; tokenspeed-kernel/python/tokenspeed_kernel/ops/attention/tokenspeed_mla/__init__.py",
    }
    yes: ["a _mla_kv_pack_quantize_fp8_kernel", "1 op aten::cat", "2 convert_quant_kernel", "3 fn set_kv_buffer"],
        no: ["vector_kernel", "category_kernel"];
    {
        id: "F30",
        title: "Top-k and top-p sampling in one kernel (TokenSpeed)",
        platform: Platform::Cuda,
        framework: SPEED,
        active: "fused_topk_topp|fused_topk_topp_renorm",
        groups: &["topk|top_k", "topp|top_p", "sampling|renorm|softmax"],
        min_pct: 0.1,
        path: "tokenspeed-kernel/python/tokenspeed_kernel/thirdparty/cuda/fused_topk_topp.py; tokenspeed-kernel/python/tokenspeed_kernel/thirdparty/cuda/csrc/fused_topk_topp/fused_topk_topp.cu",
    }
    yes: ["a fused_topk_topp_kernel", "1 op aten::topk", "2 fn top_p", "3 op aten::softmax"],
        no: ["top_k_top_p_sampling_kernel", "stop_kernel"];
    {
        id: "F31",
        title: "Persistent matrix product of the language model head (TokenSpeed)",
        platform: Platform::Cuda,
        framework: SPEED,
        models: "kimi|qwen",
        heavy: Heavy::Gemm,
        order: Order::Any,
        active: "lm_head_gemm",
        groups: &["lm_head|logits|vocab", "gemm|matmul|linear"],
        min_pct: 0.2,
        path: "tokenspeed-kernel/python/tokenspeed_kernel/thirdparty/cuda/lm_head_gemm.py; tokenspeed-kernel/python/tokenspeed_kernel/thirdparty/cuda/csrc/lm_head_gemm.cu",
    }
    yes: ["a lm_head_gemm_kernel", "1 fn get_logits", "2 op aten::matmul"],
        no: ["hgemmlike", "fn film_headless"];
    {
        id: "F32",
        title: "NVFP4 matrix product with SwiGLU and quantization (TokenSpeed)",
        platform: Platform::Cuda,
        framework: SPEED,
        heavy: Heavy::Gemm,
        active: "nvfp4_gemm_swiglu_nvfp4_quant",
        groups: &["gemm|nvfp4|fp4", "swiglu|silu|activation|mul", "quant|scale|sfc"],
        path: "tokenspeed-kernel/python/tokenspeed_kernel/thirdparty/cute_dsl/nvfp4_gemm_swiglu_nvfp4_quant.py",
    }
    yes: ["a nvfp4_gemm_swiglu_nvfp4_quant_kernel", "1 sm100_gemm_kernel", "2 swiglu_kernel", "3 per_token_group_quant_8bit_kernel"],
        no: ["nvfp4_quant_kernel", "multiply_kernel"];
    {
        id: "F33",
        title: "Attention that writes quantized output",
        framework: VLLM,
        heavy: Heavy::Attention,
        active: "merge_attn_states|attn_quant_fusion|output_scale|output_group_scale",
        groups: &["attention|flash_attn|flashattention|mla", "quant|fp8|nvfp4|group_scale"],
        // (Switches of vLLM: its docs/design/fusions.md.)
        switch: Switch::By("Set fuse_attn_quant in the pass_config of vLLM's compilation config, and run without --enforce-eager"),
        path: "vllm/compilation/passes/fusion/attn_quant_fusion.py; vllm/v1/attention/ops/merge_attn_states.py; vllm/csrc/attention/merge_attn_states.cu; vllm/docs/design/fusions.md",
    }
    yes: [
            "a merge_attn_states_kernel", "1 kernel_unified_attention_2d",
            "1 void paged_attention_ll4mi_QKV_mfma16_kernel<0, (vllm::Fp8KVCacheDataType)1, __hip_fp8_e4m3>(int)",
            "2 void vllm::scaled_fp8_quant_kernel<float>(int)",
        ],
        no: ["fp8_attention_fwd_kernel", "void vllm::reshape_and_cache_flash_kernel<(vllm::Fp8KVCacheDataType)1>(int)"];
    {
        id: "F34",
        title: "Indexer projections in one matrix product (DeepSeek V3.2)",
        framework: VLLM,
        heavy: Heavy::Gemm,
        active: "wk_weights_proj",
        groups: &["wk|weights_proj", "mergedcolumnparallellinear|gemm|matmul"],
        min_pct: 0.2,
        path: "vllm/model_executor/models/deepseek_v2.py; vllm/model_executor/models/deepseek_mtp.py",
    }
    yes: ["a fn wk_weights_proj", "1 fn weights_proj", "2 sm90_xmma_gemm_bf16"],
        no: ["fn forward_wkv", "hgemmlike"];
    {
        id: "F35",
        norms: &[Norm::Rms],
        title: "RMSNorm with quantization",
        framework: VLLM,
        active: "fused_add_rms_norm_static_fp8_quant|rms_quant_fusion|norm_quant|rms_norm_static_fp8_quant|rms_norm_dynamic_per_token_quant",
        groups: &["rmsnorm|layernorm|fused_add_rms_norm", "quant|fp8|fp4|per-group"],
        // (A scale of the whole tensor needs its maximum first, so that no pass over it can be fused with the quantization.)
        not_parts: PER_TENSOR,
        switch: Switch::By("Set fuse_norm_quant in the pass_config of vLLM's compilation config, and run without --enforce-eager"),
        path: "vllm/compilation/passes/fusion/rms_quant_fusion.py; vllm/docs/design/fusions.md",
    }
    yes: [
            "a void vllm::fused_add_rms_norm_static_fp8_quant_kernel<float>(int)",
            "1 void vllm::rms_norm_kernel<c10::BFloat16, 8>(int)",
            "1 _ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassEEEEvT0_",
            "2 void vllm::scaled_fp8_quant_kernel<float>(int)",
        ],
        no: [
            "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1",
            "void vllm::reshape_and_cache_flash_kernel<(vllm::Fp8KVCacheDataType)1>(int)",
        ];
    {
        id: "F36",
        title: "SiLU and multiplication with quantization",
        framework: VLLM,
        active: "silu_mul_quant_fp4|fused_silu_mul_block_quant|act_quant_fusion",
        groups: &["silu|gelu|act_and_mul", "quant|fp8|fp4|block_quant"],
        // (A scale of the whole tensor needs its maximum first, so that no pass over it can be fused with the quantization.)
        not_parts: PER_TENSOR,
        switch: Switch::By("Set fuse_act_quant in the pass_config of vLLM's compilation config, and run without --enforce-eager"),
        path: "vllm/compilation/passes/fusion/act_quant_fusion.py; vllm/docs/design/fusions.md",
    }
    yes: [
            "a void vllm::silu_mul_quant_fp4_kernel<float>(int)", "1 void vllm::act_and_mul_kernel<c10::BFloat16>(int)",
            "2 void vllm::scaled_fp8_quant_kernel<float>(int)",
        ],
        no: ["op _C::dynamic_scaled_fp8_quant", "void vllm::scaled_fp8_quant_kernel_strided_dynamic<float>(int)",
            "void vllm::silu_and_mul_quant_kernel<float>(int)", "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu"];
    {
        id: "F37",
        title: "Router matrix product for small batches (DeepSeek V3)",
        platform: Platform::Cuda,
        framework: VLLM,
        heavy: Heavy::Gemm,
        active: "dsv3_router_gemm|fp32_router_gemm",
        groups: &["router|gate|router logits", "gemm|matmul|cublas|cutlass"],
        path: "vllm/model_executor/layers/fused_moe/router/gate_linear.py; vllm/csrc/moe/dsv3_router_gemm_entry.cu",
    }
    yes: ["a op vllm::dsv3_router_gemm", "1 fn router_logits", "2 sm90_xmma_gemm_bf16"],
        no: ["router_gemm_kernel", "aggregate_kernel"];
    {
        id: "F38",
        title: "Router matrix product of GPT-OSS",
        platform: Platform::Cuda,
        framework: VLLM,
        models: "gpt-oss|gpt_oss|gptoss",
        heavy: Heavy::Gemm,
        active: "gpt_oss_router_gemm",
        groups: &["router|gate|router logits|gpt_oss", "gemm|matmul|cublas|cutlass"],
        path: "vllm/_custom_ops.py; vllm/model_executor/layers/fused_moe/router/gate_linear.py; vllm/csrc/moe/gpt_oss_router_gemm.cu",
    }
    yes: ["a op vllm::gpt_oss_router_gemm", "1 fn router", "2 op aten::matmul"],
        no: ["fn gpt_oss_gemm", "aggregate_kernel"];
    {
        id: "F39",
        title: "First MLA projections in one matrix product for low latency",
        platform: Platform::Cuda,
        framework: VLLM,
        models: "deepseek|glm",
        heavy: Heavy::Gemm,
        active: "dsv3_fused_a_gemm|fused_qkv_a_proj",
        groups: &["q_a_proj|kv_a_proj|weights_proj", "gemm|matmul|cutlass|cublas"],
        path: "vllm/model_executor/models/deepseek_v2.py; vllm/csrc/dsv3_fused_a_gemm.cu",
    }
    yes: ["a op vllm::dsv3_fused_a_gemm", "1 fn kv_a_proj", "2 op aten::matmul"],
        no: ["fn o_proj", "hgemmlike"];
    {
        id: "F41",
        norms: &[Norm::Rms],
        title: "All-reduce with RMSNorm (MiniMax)",
        framework: VLLM,
        models: "minimax",
        active: "minimax_allreduce_rms|minimax_allreduce_rmsnorm",
        groups: &["q_norm|k_norm|rmsnorm|minimax", "allreduce|all_reduce|cross_device_reduce"],
        order: Order::Any,
        path: "vllm/model_executor/models/minimax_m2.py",
    }
    yes: [
            "a op vllm::minimax_allreduce_rms", "1 void vllm::rms_norm_kernel<c10::BFloat16, 8>(int)",
            "2 void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(int)",
        ],
        no: ["allreduce_rmsnorm_kernel", "fn forward"];
    {
        id: "F42",
        title: "Residual add with RMSNorm (vLLM)",
        framework: VLLM,
        active: "fused_add_rms_norm|fused_add_rms_norm_static_fp8_quant|rmsnorm2d_fwd_with_add",
        min_pct: 0.1,
        path: "vllm/_custom_ops.py; vllm/compilation/passes/fusion/rms_quant_fusion.py",
    }
    yes: ["a void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(int)", "a op aiter::rmsnorm2d_fwd_with_add_ck"],
        no: [
        "void vllm::rms_norm_kernel<c10::BFloat16, 8>(int)", "op aten::add", "op aiter::rms_norm",
        "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassEEEEvT0_",
    ];
    {
        id: "F43",
        title: "Activation and multiplication in one kernel (vLLM)",
        framework: VLLM,
        active: "silu_and_mul|silu_and_mul_quant|silu_and_mul_per_block_quant|act_and_mul",
        min_pct: 0.1,
        path: "vllm/_custom_ops.py; vllm/compilation/passes/fusion/act_quant_fusion.py",
    }
    yes: ["a void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, true>(int)", "a op _C::silu_and_mul"],
        no: ["op aten::silu", "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu"];
    {
        id: "F44",
        title: "Residual add with RMSNorm (TensorRT-LLM)",
        platform: Platform::Cuda,
        framework: TRT,
        active: "flashinfer_fused_add_rmsnorm|flashinfer_gemma_fused_add_rmsnorm|flashinfer::norm::fusedaddrmsnormkernel|fusedaddrmsnormkernel|auto_deploy::flashinfer_fused_add_rms_norm_inplace",
        min_pct: 0.1,
        path: "trt:_torch/custom_ops/flashinfer_custom_ops.py; trt:_torch/modules/rms_norm.py; trt:_torch/auto_deploy/transform/library/fused_add_rms_norm.py",
    }
    yes: ["a void flashinfer::norm::FusedAddRMSNormKernel<8, __nv_bfloat16>(int)"],
        no: ["void flashinfer::norm::RMSNormKernel<8, __nv_bfloat16>(int)", "op aten::add"];
    {
        id: "F45",
        title: "Residual add, RMSNorm and FP8 quantization in one kernel (TensorRT-LLM)",
        platform: Platform::Cuda,
        framework: TRT,
        active: "triton_fused_add_rms_norm_quant_fp8|fuse_rmsnorm_quant_fp8",
        min_pct: 0.2,
        priority: 20,
        path: "trt:_torch/auto_deploy/custom_ops/normalization/triton_fused_add_rms_norm_quant_fp8.py; trt:_torch/auto_deploy/transform/library/fuse_rmsnorm_quant_fp8.py",
    }
    yes: ["a op auto_deploy::triton_fused_add_rms_norm_quant_fp8"],
        no: ["void flashinfer::norm::FusedAddRMSNormKernel<8, __nv_bfloat16>(int)", "triton_red_fused_add_rsqrt_0"];
    {
        id: "F46",
        title: "RMSNorm of FlashInfer (TensorRT-LLM)",
        platform: Platform::Cuda,
        framework: TRT,
        active: "flashinfer_rmsnorm|flashinfer_gemma_rmsnorm|auto_deploy::flashinfer_rms_norm",
        min_pct: 0.1,
        path: "trt:_torch/custom_ops/flashinfer_custom_ops.py; trt:_torch/modules/rms_norm.py; trt:_torch/auto_deploy/custom_ops/normalization/rms_norm.py",
    }
    yes: ["a op trtllm::flashinfer_rmsnorm"],
        no: ["void tensorrt_llm::kernels::generalRmsNorm<float>(int)", "op aten::rms_norm"];
    {
        id: "F47",
        title: "Activation with gate of FlashInfer (TensorRT-LLM)",
        platform: Platform::Cuda,
        framework: TRT,
        active: "flashinfer_silu_and_mul|flashinfer_gelu_tanh_and_mul|auto_deploy::silu_and_mul",
        min_pct: 0.1,
        path: "trt:_torch/custom_ops/flashinfer_custom_ops.py; trt:_torch/auto_deploy/transform/library/fuse_silu_mul.py; trt:_torch/models/modeling_gemma3.py",
    }
    yes: ["a op trtllm::flashinfer_silu_and_mul"],
        no: ["op aten::silu", "op vllm::silu"];
}
