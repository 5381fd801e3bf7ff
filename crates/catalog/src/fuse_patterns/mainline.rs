//! Fused kernels that SGLang has in its main branch.

use super::{BASE, FusePattern, Heavy, Switch, rows};
use crate::Platform;
use crate::remedies::Norm;

/// MLA models, for which DeepSeek's kernels are made.
const MLA: &str = "deepseek|glm";
/// The model whose router caps its logits: SGLang's FusedMoeRouter is used by it alone (srt/models/grok.py).
const GROK: &str = "grok";

const LAYERS: FusePattern = BASE;

rows! { MAINLINE, LAYERS =>
    {
        id: "F01",
        title: "Residual add with RMSNorm",
        active: "fused_add_rmsnorm|gemma_fused_add_rmsnorm|npu_add_rms_norm|add_rmsnorm_bias|op:aiter::add_rmsnorm|rmsnorm2d_fwd_with_add",
        min_pct: 0.1,
        path: "sgl:srt/layers/layernorm.py; sgl:srt/layers/quantization/modelslim/modelslim.py",
    }
    yes: ["a op sgl_kernel::fused_add_rmsnorm", "a op aiter::add_rmsnorm", "a gemma_fused_add_rmsnorm_kernel"],
        no: [
            "void flashinfer::norm::RMSNormKernel<8, __nv_bfloat16>(int)", "op aiter::rmsnorm",
            "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0EEvPT0_",
        ];
    {
        id: "F02",
        norms: &[Norm::Rms],
        title: "All-reduce with residual add and RMSNorm (FlashInfer)",
        platform: Platform::Cuda,
        min_tp: 2,
        // (FlashInfer's FusedAddRMSNormKernel is no sign: it is add with norm, F01, without any all-reduce.)
        active: "allreduce_fusion",
        groups: &[
            "cross_device_reduce|allreduce|all_reduce",
            "rmsnorm|layernorm|fused_add_rmsnorm",
        ],
        min_pct: 0.5,
        // (Switches of SGLang: the fields of ServerArgs, srt/server_args.py.)
        switch: Switch::By("Start SGLang with --flashinfer-allreduce-fusion-backend auto (older versions: --enable-flashinfer-allreduce-fusion)"),
        path: "sgl:srt/layers/flashinfer_comm_fusion.py; sgl:srt/layers/layernorm.py; sgl:srt/layers/communicator.py",
    }
    yes: [
            "a void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<4>(int)",
            "1 void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(int)",
            "1 ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "2 void flashinfer::norm::RMSNormKernel<8, __nv_bfloat16>(int)",
            "2 void flashinfer::norm::FusedAddRMSNormKernel<8, __nv_bfloat16>(int)",
        ],
        no: ["ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "void at::native::reduce_kernel<512, 1>(int)"];
    {
        id: "F03",
        norms: &[Norm::Rms],
        title: "All-reduce with RMSNorm (AITER)",
        platform: Platform::Rocm,
        min_tp: 2,
        active: "tensor_model_parallel_fused_allreduce_rmsnorm|apply_aiter_all_reduce_fusion|custom_fused_ar_rms",
        groups: &["allreduce|all_reduce|cross_device_reduce", "rmsnorm|layernorm"],
        min_pct: 0.5,
        switch: Switch::By("Start SGLang with --enable-aiter-allreduce-fusion"),
        path: "sgl:srt/distributed/communication_op.py; sgl:srt/layers/communicator.py; sgl:srt/layers/layernorm.py",
    }
    yes: [
            "a op aiter::custom_fused_ar_rms", "1 void aiter::cross_device_reduce_2stage<__hip_bfloat16, 8>(int)",
            "2 _ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0EEvPT0_",
        ],
        no: ["void vllm::fused_allreduce_rmsnorm_kernel<float>(int)", "fn forward_normal"];
    {
        id: "F04",
        title: "Activation and multiplication in one kernel (SwiGLU, GeGLU)",
        active: "silu_and_mul|gelu_and_mul|npu_swiglu|act_and_mul",
        min_pct: 0.1,
        path: "sgl:srt/layers/activation.py",
    }
    yes: [
            "a op sgl_kernel::silu_and_mul", "a _ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16EEvPT_",
            "a void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16>(int)",
        ],
        no: ["op aten::silu", "op aten::mul"];
    {
        id: "F05",
        title: "RMSNorm of queries and keys in place",
        platform: Platform::Cuda,
        // (SGLang's op fused_inplace_qknorm launches fused_qknorm_warp, for long heads fused_qknorm_cta.)
        active: "fused_inplace_qknorm|fused_qknorm_warp|fused_qknorm_cta|minimaxm2rmsnormtp",
        groups: &["apply_qk_norm|q_norm|k_norm|qknorm|in:apply_qk_norm"],
        path: "sgl:srt/models/utils.py; sgl:jit_kernel/norm.py",
    }
    yes: [
            "a fused_inplace_qknorm_kernel", "a void (anonymous namespace)::fused_qknorm_warp<128l, true, __nv_bfloat16>(int)",
            "1 fn apply_qk_norm", "1 fn q_norm", "1 in forward apply_qk_norm",
        ],
        no: ["fn seq_norm", "in q_norm", "void flashinfer::norm::RMSNormKernel<8>(int)"];
    {
        id: "F06",
        title: "RMSNorm of queries and keys with rotary embedding",
        platform: Platform::Cuda,
        active: "fused_qknorm_rope|fused_qk_norm_rope",
        groups: &["apply_qk_norm|q_norm|k_norm|qknorm|in:apply_qk_norm", "apply_rope|rotary|rope|mrope"],
        // (With the switch the cache is written by a kernel of its own again, and positions are converted: sgl:srt/models/qwen3_moe.py.)
        not_parts: "rope_store|rope_kv|rope_set_kv|rope_and_cache|rope_reshape_and_cache|set_kv_buffer",
        priority: 30,
        switch: Switch::By("Start SGLang with --enable-fused-qk-norm-rope"),
        path: "sgl:jit_kernel/fused_qknorm_rope.py; sgl:srt/models/qwen3_moe.py",
    }
    yes: [
            "a void fused_qknorm_rope::fusedQKNormRopeKernel<128, true>(int)", "1 fn apply_qk_norm",
            "2 void rotary_embedding_kernel<c10::BFloat16, true>(int)",
        ],
        no: [
            "qk_norm_and_rope_kernel", "fn forward_prepare", "fn get_property",
            "void (anonymous namespace)::fused_rope_store_kernel<true, 128l, true, __nv_bfloat16, long, 16u>(int)",
        ];
    {
        id: "F07",
        title: "Rotary embedding, reshape and KV cache write in one kernel",
        active: "fused_qk_rope_reshape_and_cache",
        groups: &["rotary|rope|mrope", "reshape|set_kv|kv_cache|cache write|paged kv"],
        min_pct: 0.4,
        priority: 40,
        subsumes: "F08",
        // (SGLang's rotary embedding calls it on ROCm where the model hands it the cache: srt/models/utils.py, enable_fused_set_kv_buffer.)
        switch: Switch::Absent,
        path: "sgl:srt/layers/attention/utils.py",
    }
    yes: [
            "a _fused_qk_rope_reshape_and_cache_kernel", "1 void rotary_embedding_kernel<c10::BFloat16, true>(int)",
            "2 void (anonymous namespace)::store_kvcache<2048l, 4, false, long>(int)",
            "2 void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(int)",
        ],
        no: [
            "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0, __hip_bfloat16>(int)",
            "void flashinfer::BatchPrefillWithPagedKVCacheKernel<128>(int)",
        ];
    {
        id: "F08",
        title: "Rotary embedding with KV cache write",
        active: "fused_set_kv_buffer",
        groups: &["rotary|rope|mrope", "set_kv_buffer|kv cache write|paged kv|cache write|store_kvcache"],
        priority: 20,
        switch: Switch::Absent,
        path: "sgl:jit_kernel/rope.py; sgl:srt/models/utils.py",
    }
    yes: [
            "a fn fused_set_kv_buffer", "1 void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheKernel<true>(int)",
            "2 fn set_kv_buffer", "2 void (anonymous namespace)::store_kvcache<2048l, 4>(int)",
        ],
        no: ["void flashinfer::BatchDecodeWithPagedKVCacheKernel<128>(int)", "copy_all_layer_kv_cache_kernel"];
    {
        id: "F09",
        title: "Lengths and page table of a decode step in one kernel",
        active: "normal_decode_set_metadata|cache_seqlens_int32|cu_seqlens_k|swa_page_table",
        min_pct: 0.05,
        path: "sgl:srt/layers/attention/flashattention_backend.py",
    }
    yes: ["a fn normal_decode_set_metadata"],
        no: ["fn init_forward_metadata", "compute_position_kernel"];
    {
        id: "F10",
        title: "Sparse attention's metadata copied in one kernel before a graph replay",
        platform: Platform::Cuda,
        active: "fused_metadata_copy|fused_metadata_copy_multi|fused_nsa_cache_seqlens|fused_flashmla_metadata",
        min_pct: 0.02,
        path: "sgl:jit_kernel/fused_metadata_copy.py",
    }
    yes: ["a void fused_metadata_copy_kernel<0, true>(int)"],
        no: ["get_mla_metadata_kernel", "Memcpy DtoD (Device -> Device)"];
    {
        id: "F11",
        title: "MLA projection with norm and rotary embedding",
        platform: Platform::Rocm,
        models: MLA,
        heavy: Heavy::Gemm,
        active: "qkv_proj_with_rope_fused_weight|fused_qkv_a_proj_with_mqa|forward_absorb_fused_mla_rope",
        groups: &["mla|qkv_a_proj|q_a_proj", "qknorm|rmsnorm|apply_qk_norm", "rope|rotary"],
        min_pct: 0.4,
        priority: 80,
        subsumes: "F06",
        path: "sgl:srt/models/deepseek_common/attention_forward_methods/forward_mla_fused_rope_cpu.py; sgl:srt/models/deepseek_common/attention_forward_methods/forward_mla_fused_rope_rocm.py",
    }
    yes: [
            "a op sgl_kernel::qkv_proj_with_rope_fused_weight", "1 fn q_a_proj",
            "2 void flashinfer::norm::RMSNormKernel<8>(int)", "3 void rotary_embedding_kernel<c10::BFloat16>(int)",
        ],
        no: ["concat_mla_absorb_rope_kernel", "fn forward_normal_prepare"];
    {
        id: "F12",
        title: "Rotary embedding, concatenation and MLA cache write in one kernel",
        platform: Platform::Rocm,
        models: MLA,
        active: "fused_qk_rope_cat_and_cache_mla|set_mla_kv_buffer",
        groups: &["mla|rope|rotary", "cache|kv_buffer|concat"],
        priority: 85,
        subsumes: "F08",
        path: "sgl:srt/layers/rocm_linear_utils.py; sgl:srt/models/deepseek_common/attention_forward_methods/forward_mla.py",
    }
    yes: [
            "a _fused_qk_rope_cat_and_cache_mla_kernel", "a set_mla_kv_buffer_kernel",
            "1 void rotary_embedding_kernel<c10::BFloat16>(int)", "2 fn concat_k_nope",
        ],
        no: ["void vllm::concat_and_cache_mla_kernel<float>(int)", "fn forward_core"];
    {
        id: "F13",
        title: "Query and key norm, rotary embedding and KV cache write in one kernel (Qwen3)",
        platform: Platform::Rocm,
        models: "qwen3",
        not_models: "qwen3.5|qwen3_5",
        active: "fused_qk_norm_mrope_3d_cache_pts_quant_shuffle|fused_qk_norm_rope_cache_quant_shuffle",
        groups: &[
            "apply_qk_norm|q_norm|k_norm|qknorm|in:apply_qk_norm",
            "mrope|3d rope|rotary",
            "cache|kv_buffer|paged kv|cache write|store_kvcache",
        ],
        min_pct: 0.4,
        priority: 90,
        subsumes: "F06 F07 F08",
        switch: Switch::Absent,
        // SGLang calls the kernel for multimodal rotary embeddings alone; AITER has one for plain ones.
        path: "AITER fused_qk_norm_rope_cache_quant_shuffle, or fused_qk_norm_mrope_3d_cache_pts_quant_shuffle for multimodal rotary embeddings; sgl:srt/models/qwen3.py",
    }
    yes: [
            "a op aiter::fused_qk_norm_mrope_3d_cache_pts_quant_shuffle", "1 fn apply_qk_norm",
            "a op aiter::fused_qk_norm_rope_cache_quant_shuffle", "1 in forward apply_qk_norm",
            "2 void rotary_embedding_kernel<c10::BFloat16, true>(int)",
            "3 void (anonymous namespace)::store_kvcache<2048l, 4>(int)",
        ],
        no: ["void paged_attention_ll4mi_QKV_mfma16_kernel<0, (vllm::Fp8KVCacheDataType)0>(int)", "rotary_kv_cache_kernel_with_cache"];
    {
        id: "F14",
        title: "Expert router with top-k and soft capping in one kernel",
        models: GROK,
        heavy: Heavy::Beside,
        active: "fusedmoerouter|fused_moe_router",
        groups: &["router|gate|router logits", "topk|softmax|softcap|tanh|topkgating"],
        priority: 30,
        path: "sgl:srt/layers/moe/router.py",
    }
    yes: [
            "a fused_moe_router_large_bs_kernel", "1 fn router_logits", "1 fn gate",
            "2 void topkGatingSoftmax<float, 8, 64>(int)", "2 _topk_forward",
        ],
        no: ["aggregate_kernel", "fn forward_normal"];
    {
        id: "F15",
        title: "Grouped top-k of experts in one gate kernel",
        heavy: Heavy::Beside,
        active: "fused_topk_deepseek|moe_fused_gate|aiter_fused_topk|kimi_k2_moe_fused_gate",
        groups: &["grouped_topk|topk|biased_grouped_topk", "gate|router|renorm|routed scaling"],
        priority: 50,
        subsumes: "F14",
        path: "sgl:srt/layers/moe/topk.py",
    }
    yes: ["a moe_fused_gate_kernel", "1 fn biased_grouped_topk", "2 renorm_weights_kernel"],
        no: ["radix_sort_kernel", "gated_delta_rule_fwd"];
    {
        id: "F16",
        title: "Shared expert appended to the routed experts' top-k",
        active: "_append_shared_to_topk_output|fused_append_shared_experts_with_weights|_fused_append_shared_experts_with_weights_kernel",
        groups: &["_append_shared_to_topk_output|topk|grouped_topk", "shared_expert|shared_expert_gate|sigmoid"],
        min_pct: 0.05,
        priority: 55,
        path: "sgl:srt/models/qwen2_moe.py; sgl:srt/layers/moe/moe_runner/triton_utils/fused_moe_triton_kernels.py",
    }
    yes: ["a _fused_append_shared_experts_with_weights_kernel", "1 _topk_forward", "2 fn shared_expert_gate"],
        no: ["topk_sigmoid", "fn append_token"];
    {
        id: "F17",
        title: "Sum of the experts' results with all-reduce",
        min_tp: 2,
        heavy: Heavy::Beside,
        active: "fuse_sum_all_reduce|enable_fused_moe_sum_all_reduce",
        groups: &["fused_moe|expert|moe", "allreduce|all_reduce|cross_device_reduce"],
        min_pct: 0.4,
        switch: Switch::By("Start SGLang with --enable-fused-moe-sum-all-reduce"),
        path: "sgl:srt/layers/moe/fused_moe_triton/fused_moe.py",
    }
    yes: [
            "a fn fuse_sum_all_reduce", "1 fused_moe_kernel", "1 moe_sum_reduce_kernel",
            "2 void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(int)",
        ],
        no: ["ncclDevKernel_ReduceScatter_Sum(int)", "void at::native::reduce_kernel<512>(int)"];
    {
        id: "F18",
        title: "Experts' activation with quantization",
        active: "silu_and_mul_scaled_fp4|npu_dequant_swiglu_quant|swiglu_quant",
        groups: &["silu|gelu|act_and_mul", "quant|fp8|mxfp|nvfp4|dequant"],
        path: "sgl:srt/layers/moe/ep_moe/kernels.py; sgl:jit_kernel/nvfp4.py; sgl:srt/layers/moe/cutlass_w4a8_moe.py",
    }
    yes: [
            "a silu_and_mul_scaled_fp4_kernel", "1 void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16>(int)",
            "1 op aten::silu", "2 per_token_group_quant_8bit_kernel",
        ],
        no: ["silu_and_mul_post_quant_kernel", "void at::native::reduce_kernel<512>(int)"];
    {
        id: "F19",
        title: "RMSNorm or flattening with quantization before communication",
        platform: Platform::Rocm,
        models: MLA,
        active: "fused_rms_fp8_group_quant|fused_rms_mxfp4_quant|fused_flatten_fp8_group_quant|fused_flatten_mxfp4_quant",
        groups: &["rmsnorm|layernorm|flatten", "fp8|mxfp4|quant"],
        path: "sgl:srt/layers/communicator.py; sgl:srt/models/deepseek_common/attention_forward_methods/forward_mla.py; sgl:srt/models/deepseek_common/attention_forward_methods/forward_mha.py",
    }
    yes: [
            "a _fused_rms_fp8_group_quant_kernel", "1 void flashinfer::norm::RMSNormKernel<8>(int)",
            "2 per_token_group_quant_8bit_kernel",
        ],
        no: ["_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0EEvPT0_", "fn forward_absorb"];
    {
        id: "F20",
        title: "Sparse attention's top-k with page table",
        platform: Platform::Cuda,
        active: "fast_topk_transform_fused|fast_topk_transform_ragged_fused",
        min_pct: 0.05,
        path: "sgl:srt/layers/attention/nsa_backend.py",
    }
    yes: ["a op sgl_kernel::fast_topk_transform_fused"],
        no: ["void topk_transform_decode_kernel(int)", "_topk_forward"];
    {
        id: "F21",
        title: "Quantization with write to the index key cache",
        platform: Platform::Cuda,
        active: "fused_store_index_k_cache",
        groups: &["act_quant|quant|scale_buffer", "index_k|cache|store_k"],
        min_pct: 0.2,
        path: "sgl:jit_kernel/fused_store_index_cache.py; sgl:srt/layers/attention/nsa/nsa_indexer.py",
    }
    yes: ["a fused_store_index_k_cache_kernel", "1 act_quant_kernel", "2 fn set_index_k_buffer"],
        no: ["indexer_k_quant_and_cache_kernel", "restore_state"];
    {
        id: "F22",
        title: "Sampling temperature with softmax",
        active: "fused_temperature_softmax",
        groups: &["temperature|temp_scale", "softmax|sampling"],
        min_pct: 0.05,
        path: "sgl:srt/layers/fused_sampling.py; sgl:srt/layers/sampler.py",
    }
    yes: ["a _fused_temperature_softmax_kernel", "1 apply_temperature_kernel", "2 op aten::_softmax"],
        no: ["temperature_softmax_small", "fn forward"];
    {
        id: "F23",
        title: "Soft capping of logits in one kernel",
        active: "fused_softcap|final_logit_softcapping",
        min_pct: 0.02,
        path: "sgl:srt/layers/elementwise.py; sgl:srt/layers/logits_processor.py",
    }
    yes: ["a fused_softcap_kernel"],
        no: ["op aten::tanh", "op aten::mul"];
}
