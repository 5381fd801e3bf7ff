//! Words too weak to decide while anything stronger is in the name. They come last, see only the head,
//! and catch the many one-off kernels of serving stacks.

use super::rules;

rules! { WEAK:
    // torch.cuda._sleep and the delays with which libraries line streams up: busy time, but no work.
    { id: "wait.any", category: Wait, scope: Head,
      any: ["<spin_kernel", "<spinkernel", "delay_kern", "delaystream", "<sleep_kernel", "nanosleep"],
      examples: [
        "at::cuda::(anonymous namespace)::spin_kernel(long)",
        "tensorrt_llm::kernels::delayStreamKernel(long)",
      ],
      source: "PyTorch Sleep.cu, TRT-LLM, Transformer Engine" }
    { id: "attention.word", category: Attention, scope: Head,
      any: [
        "attn", "^_fwd_kernel", "<bwd_kernel_", "<hstu_", "<flash_", "deformer", "simplicial",
        "parallel_path", "attention", "<prefill_", "_lse_", "_lse>", "neighborhood",
      ],
      examples: [
        "_attn_res_fwd_kernel", "hstu_fwd_kernel", "void fused_attn_device<int>(int)",
        "_fused_neighborhood_attention_qk_kernel", "_dcp_lse_combine_kernel",
      ],
      source: "Liger, FlashInfer, SGLang" }
    { id: "linear_attn.word", category: LinearAttn, scope: Head,
      any: [
        "gdrkernel", "fusedgdr", "gdrfwd", "gdrh", "kktsolve", "gdrrecurrent", "chunkwise",
        "recurrent",
      ],
      examples: ["void Sm90FusedGdrFwdKernel<int>(int)", "chunkwise_fwd_kernel"],
      source: "LMDeploy, flash-linear-attention" }
    { id: "rope.word", category: Rope, scope: Head,
      any: ["<kn_entry_", "<rot_q", "<rot_k", "rotated", "posembed"],
      examples: ["_ZN5aiter24kn_entry_2c_sbhd_uncachedILi0EEEvPf"],
      source: "AITER" }
    { id: "gemm.word", category: Gemm, scope: Head,
      any: ["matrixmul", "_linear", "_proj_", "<dot>"],
      examples: [
        "_fused_down_proj_kernel",
        "matrixMultiplyShared",
      ],
      source: "Liger" }
    { id: "communication.word", category: Communication, scope: Head,
      any: [
        "barrier", "broadcast", "dispatch", "combine", "<send_", "<recv_", "_send_", "_recv_",
        "<p2p", "peer", "_rsag", "sendrecv", "remote_push", "<ag_", "<ar_", "signal",
        "bandwidth_test",
      ],
      examples: [
        "barrier_triton_kernel", "_combine_kernel", "ipc_topo_rsag8_push_param_kernel",
        "_ZN5aiter14ag_gfx1250_vecIfEEv",
      ],
      source: "Triton distributed, AITER, FlashInfer" }
    { id: "moe_route.word", category: MoeRoute, scope: Head,
      any: ["route", "gating", "<gate_", "_gate_", "_gate>"],
      examples: ["_build_small_route_kernel", "_indexed_gate_bf16_kernel"],
      source: "SGLang, LMDeploy" }
    { id: "norm.word", category: Norm, scope: Head,
      any: ["normalize", "_ln>", "<ln>", "<l2_bw"],
      examples: ["void fused_ln<float>(float*)", "state_normalize"],
      source: "DeepSpeed, FlashInfer" }
    { id: "quantize.word", category: Quantize, scope: Head,
      any: [
        "fp8", "fp4", "int8", "int4", "bitrowwise", "rowwise_to_float", "amax", "qparam", "e2m1",
        "e4m3",
      ],
      examples: ["void _float_to_fused8bitrowwise_cuda_kernel<float>(int)", "cudaD2DcpyFloat2fp8"],
      source: "FBGEMM, FlashInfer" }
    { id: "serving_meta.word", category: ServingMeta, scope: Head,
      any: [
        "schedule", "<plan", "_plan_", "lengths", "indptr", "offsets", "_slots", "_slot", "draft",
        "tokentable", "token_id", "tokenid", "position", "accept", "cta_info", "windows_kernel",
        "prepare", "request", "counts?_kernel", "lasttoken", "verify", "layout_kernel", "_page",
        "num_tiles", "work_tile",
      ],
      examples: [
        "_decode_schedule_prep_kernel", "_plan_offsets_kernel", "_candidate_lengths_kernel",
        "void AppendTokenIdsKernel<int>(int)",
      ],
      source: "SGLang, FlashInfer, LMDeploy" }
    { id: "sampling_topk.word", category: SamplingTopk, scope: Head,
      any: ["radix_kernel", "last_filter", "logits", "bonus", "<score", "_score", "greedy"],
      examples: ["void radix_kernel<float>(int)", "_markov_greedy_partial_kernel"],
      source: "RAFT select_k as used by Transformer Engine and AITER" }
    { id: "index.word", category: Index, scope: Head,
      any: ["index", "embed", "_idx_", "idxkernel", "<insert", "hash", "segment"],
      examples: ["ragged_embed_kernel", "buildMappedIdxKernel"],
      source: "DeepSpeed, LMDeploy" }
    { id: "layout.word", category: Layout, scope: Head,
      any: ["transform", "swap_first_dims", "layout", "windowkernel"],
      examples: ["void transform4d_0213<float>(float*)", "void swap_first_dims_kernel<int>(int)"],
      source: "DeepSpeed, Transformer Engine" }
    { id: "copy.word", category: Copy, scope: Head,
      any: [
        "copy", "cpy", "concat", "convert", "<contiguous", "_contiguous_", "merge", "<read_",
        "<move",
      ],
      examples: ["operator_contiguous_big_tile_kernel", "usp_merge_heads_scalar_kernel"],
      source: "AITER" }
    { id: "fill.word", category: Fill, scope: Head,
      any: ["fill", "zero", "clear", "cleanup", "<init"],
      examples: ["void InitTileStateKernel<int>(int)", "void cleanup_v2(int)"],
      source: "FlashInfer, Transformer Engine" }
    { id: "reduce.word", category: Reduce, scope: Head,
      any: ["reduce", "sum", "mean", "statistic", "stats"],
      examples: ["_denoiser_partial_statistics"],
      source: "SGLang" }
    { id: "elementwise.word", category: Elementwise, scope: Head,
      any: [
        "operator_bcast", "operator_element", "scale", "bias", "scalar", "square", "mask", "<exp>",
        "<exp2>", "finite", "assert", "_add", "_mul", "addkernel", "cast", "weighted", "gated",
        "divide", "multiply",
      ],
      examples: [
        "_ZN5aiter23operator_bcast1N1_naiveEv", "void scaleMatrix1(float*)", "_square_kernel",
        "void mark_nonfinite_bf16(float*)",
      ],
      source: "AITER, FBGEMM, LMDeploy" }
}
