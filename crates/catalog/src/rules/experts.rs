//! Mixture of experts: grouped products on one side, routing and permutation on the other.

use super::rules;

rules! { EXPERTS:
    { id: "moe_gemm.grouped", category: MoeGemm, scope: Head,
      any: [
        "fused_moe_", "fused_moe$", "fused_?moe_?kernel", "fusedmoe", "grouped_mm", "grouped_gemm",
        "groupedgemm", "group_?gemm", "groupproblemshape", "matmul_ogs", "matmul_scatter",
        "moe_?gemm", "moe_?gemv", "moe_stage", "moe_ck", "moe_cktile", "moe_flatmm", "moe_mm",
        "<fmoe", "cutlass_moe", "expert*gemm", "<bmm_*dynbatch", "<bmm_*routed", "<bmm_*swiglu",
        "moe_mxgemm", "moe_i8gemm", "deepgemm*group", "deepgemm*masked", "moe_kernel",
        "^batched_triton_kernel", "moe_mlp", "moe_wna16", "moe_wmma", "moe_marlin", "marlin_moe",
        "marlinmoe", "moe_persistent", "moeflatmm", "gmm_kernel", "<gmm", "tgmm", "ragged_matmul",
        "ragged_mm", "group_mm", "grouped_linear", "moe_lora", "moe_w4a", "moe_fp4",
        "moe_fp8_stage", "fmha_moe", "moe_gate_up", "moe_down", "blockscale_moe", "megamoe",
        "mega_moe", "moe_a#w#", "moefc", "scatter2scatter", "grouped_matmul", "groupedmatmul",
        "sm#_fp8_fp4_mega",
      ],
      examples: [
        "fused_moe_kernel", "batched_triton_kernel",
        "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", "_finalize_matmul_scatter_bf16",
        "bmm_Bfloat16_E2m1E2m1_Fp32_t128x8x512_s6_et128x8_m128x8x64_cga1x1x1_16dp256b_TN_transOut_schedS_dynBatch_sm100f",
        "bmm_E4m3_E4m3E4m3_Fp32_t128x8x128u2_swiGlu_dynBatch_sm100a",
        "_ZN5aiter47fmoe_bf16_blockscaleFp8_g1u1_vs_silu_1tg_ps_32x256E",
        "_ZN2ck16kernel_moe_gemmINS_", "_triton_grouped_gemm_kernel", "gmm_kernel",
        "void marlin_moe_wna16::Marlin<long, 1>(int)",
        "void tensorrt_llm::kernels::cutlass_kernels::moe_gemm_x<int>(int)",
        "_grouped_gemm_dw_kernel",
      ],
      source: "vLLM, SGLang, AITER, CK, triton_kernels, TRT-LLM, Liger, megablocks" }
    { id: "moe_route.dispatch", category: MoeRoute, scope: Head,
      any: [
        "<moe", "expert", "<expt_", "<routing", "_routing_", "bitmatrix", "topk_?gating",
        "topk_?softmax", "topk_?sigmoid", "topksoftplus", "topk_?transform", "grouped_topk",
        "groupedtopk", "token_permut", "permute_token", "permute_kernel", "permute_with_mask",
        "permute_with_?mask_?map", "unpermute", "sort_chunks", "finalizemoe", "finalize_moe",
        "biased_grouped", "shared_expert", "swizzle_mx", "compute_problem_sizes", "problem_sizes",
        "blockscale_swizzle_offsets", "group_gemm_starts", "_group_offs", "ep_scatter", "ep_gather",
        "ep_permute", "post_reorder_", "pre_reorder_", "deepep_post", "deepep_permute",
        "deepep_compute", "run_moe_ep", "compute_src2dst", "compute_seg_indptr", "compute_m_range",
        "router_", "<router", "row_id_map", "row_to_expert", "topk_weight", "topk_to_multihot",
        "multihot_to_indices", "masked_m", "hash_topk", "gating_topk", "moesorting", "moe_sort",
        "sinkhorn", "expandinputrows", "finalize_routing", "token_dispatch", "token_combine",
        "gate_sigmoid_topk", "moe_sum", "_moe_align", "fill_gateup_input",
        "silu_and_mul_masked_post", "count_and_sort_expert", "kimi_k2_moe", "fused_gate",
        "topk_ids", "append_shared", "make_ragged_tensor", "ragged_tensor_metadata", "compact_topk",
        "token_count", "tokens_per", "<binned_", "<padded_gather", "<padded_scatter",
        "binned_scatter", "routekernel", "<top#gating", "top_#_gating", "einsum_sec_sm",
        "fused_routing", "computestrides", "count_tokens", "slot_to_token", "^_topk_forward$",
        "^_topk_backward$",
      ],
      examples: [
        "void vllm::moe::topkGatingSoftmax<4, 128, 4, 16>(float const*)",
        "void vllm::moe::moe_align_block_size_kernel<int>(int)", "_combined_routing_compute",
        "_combined_routing_memset", "_sum_bitmatrix_rows", "_topk_forward", "moe_sum_reduce_kernel",
        "_ZN7ck_tile6kentryILi1ENS_16MoeSortingKernelI",
        "void biased_grouped_topk_kernel<int>(int)", "deepep_permute_triton_kernel",
        "_permute_kernel", "_unpermute_kernel", "_row_id_map_pass_1_kernel",
        "post_reorder_triton_kernel", "ep_scatter_1",
        "void moe::dev::routing::routingDeepSeek::routingIndicesClusterKernel<int>(int)",
        "void tensorrt_llm::kernels::cutlass_kernels::expandInputRowsKernel<int>(int)",
      ],
      source: "vLLM, SGLang, triton_kernels, TRT-LLM, Transformer Engine, CK Tile" }
    { id: "moe_gemm.cutlass_grouped", category: MoeGemm, scope: Name,
      any: ["groupproblemshape", "gemmgrouped", "groupedgemm", "device_kernel*moe"],
      examples: [
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GroupProblemShape<cute::tuple<int, int, int> > > >(int)",
        "void cutlass::Kernel<cutlass::gemm::kernel::GemmGrouped<int> >(int)",
      ],
      source: "CUTLASS" }
}
