//! Norms, rotary embeddings and matrix products.

use super::rules;

rules! { DENSE:
    // ATen's reductions carry their work in a functor, with words such as "Welford" and types of thrust's.
    { id: "sampling_topk.reduction", category: SamplingTopk, scope: Name,
      any: ["reduce_kernel*argmax", "reduce_kernel*argmin"],
      examples: [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >(int)",
      ],
      source: "PyTorch" }
    { id: "reduce.reduction", category: Reduce, scope: Head,
      any: ["at::native::reduce_kernel", "devicereducekernel", "devicereducesingletile", "devicesegmentedreduce"],
      examples: [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::WelfordOps<float, float, int, thrust::pair<float, float> >, unsigned int, float, 2> >(int)",
        "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_10WelfordOpsIfffiN6thrust4pairIffEE",
        "void cub::DeviceReduceSingleTileKernel<cub::DeviceReducePolicy<float>::Policy600, float*>(float*)",
      ],
      source: "PyTorch, CUB" }
    { id: "rnn.cell", category: Rnn, scope: Head,
      any: ["<rnn_", "persistrnn", "lstm_cell", "gru_cell", "lstm_elementwise", "gru_elementwise", "elemwisernncell"],
      examples: [
        "_Z23RNN_blockPersist_fp_GRUIfffLi128EEvPKT_PT0_S2_PS0_PKS3_S2_S5_iiiiii",
        "void persistRNN_addBias<float, float>(cudnnRNNMode_t, int, int, float*)",
        "void LSTM_elementWise_fp<float, float, float>(int, int)",
        "void at::native::(anonymous namespace)::kernel::lstm_cell_forward<float, float, int, 1>(int)",
      ],
      source: "cuDNN, PyTorch" }
    { id: "norm.head", category: Norm, scope: Head,
      any: [
        "rms_?norm", "layer_?norm", "group_?norm", "batch_?norm", "instance_?norm",
        "rowwisemoments", "gammabeta", "gamma_beta", "computeinternalgrad", "computefusedparams",
        "computebackwardfused", "<bn_fw", "<bn_bw", "<bn_", "bnfwd", "bnbwd", "welford",
        "add_?norm", "<norm>", "<norm_kernel", "<norm_", "_norm_", "qk_?norm", "qknorm", "q_norm",
        "k_norm", "normfwd", "normbwd", "norm_fwd", "norm_bwd", "normkernel", "norm_kernel",
        "l2_?norm", "weight_norm", "<ln_fwd", "<ln_bwd", "<ln_", "<rms_", "_rms_", "rms2d", "dyt_",
        "<dyt", "modulate", "adaln", "norm#dfwd", "rmsnorm", "_norm$", "spatial_norm", "batch_stat",
        "layernorm", "<gn_", "ada_layer", "rmsn_", "norm_quant", "scale_shift",
        "cucomputegradinput", "cuapplylayernorm", "norm_gated", "norm_pass", "normalize_kernel",
        "groupnorm", "<mhc_", "_hc_", "<hc_", "_mhc", "norm_no_weight", "<renorm",
      ],
      examples: [
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, false>(int)",
        "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_",
        "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<float, float>(long)",
        "void at::native::(anonymous namespace)::cuComputePartGradGammaBeta<float, float, true>(float const*)",
        "void (anonymous namespace)::groupnorm_kernel_dispatch_down<__hip_bfloat16, 1024u>(int)",
        "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 128, true, 1>(float)",
        "MIOpenBatchNormFwdTrainSpatial",
        "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassI",
        "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(int)",
        "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(int)",
        "void transformer_engine::normalization::ln_fwd_tuned_kernel<int>(int)",
        "_layer_norm_fwd_1pass_kernel", "l2norm_fwd_kernel", "fused_qknorm_rope",
        "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>(long)",
        "void batch_norm_collect_statistics_kernel<float>(int)", "fused_layernorm_scale_shift",
      ],
      source: "PyTorch, apex, cuDNN, MIOpen, vLLM, FlashInfer, SGLang, AITER, CK Tile, Transformer Engine, Liger" }
    { id: "norm.argument", category: Norm, scope: Name,
      any: ["group_?norm", "layer_?norm", "rms_?norm", "batch_norm_", "batchnorm"],
      examples: [
        "void at::native::elementwise_kernel_manual_unroll<128, 4, at::native::gpu_kernel_impl_nocast<at::native::(anonymous namespace)::GroupNormKernelImplInternal<float>(int)::{lambda(float)#1}> >(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::batch_norm_calc_invstd(at::Tensor const&)::{lambda()#1}>(int)",
      ],
      source: "PyTorch" }
    { id: "rope.any", category: Rope, scope: Head,
      any: [
        "rotary", "<rope", "<mrope", "rope_", "_rope", "pos_?enc", "position_embedding",
        "pos_embed", "applyrope", "ropekernel", "fusedrope", "ropequantize", "rope2d", "rope3d",
      ],
      examples: [
        "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)",
        "_apply_rotary_kernel",
        "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheKernel<true, 128u>(int)",
        "_triton_mrope_forward", "_rope_fwd_kernel", "void fused_rope_block_forward<float>(int)",
        "kn_rope_cached_thd",
      ],
      source: "vLLM, FlashInfer, SGLang, AITER, Liger, apex, Transformer Engine" }
    // cuSPARSE and rocSPARSE: products with sparse matrices are bound by memory, unlike GEMMs.
    { id: "sparse.library", category: Sparse, scope: Head,
      any: [
        "cusparse", "rocsparse", "hipsparse", "<csrmv", "<csrmm", "<csrgemm", "<coomv", "<coomm", "<bsrmv", "<bsrmm",
        "cootocsr", "csrtocoo", "csr2csc", "csr2dense", "<spmv", "coalescevalueskernel",
      ],
      examples: [
        "void cusparse::csrmv_v3_kernel<false, int, int, double, double, double, double, void>(int)",
        "void cusparse::csrmv_v3_partition_kernel<256, cusparse::VectorScalarMultiplyPolicy, int, int, double>(int const*)",
        "void convert_CooToCsr_kernel<0>(int const*, int, int, int*)",
        "void csrmv_v2_kernel<int, int, float>(int)", "void rocsparse::csrmvn_general_kernel<256u, 4u, int>(int)",
        "void at::native::apply::coalesceValuesKernel<double, double>(long*, long*, double*)",
      ],
      source: "cuSPARSE, rocSPARSE, PyTorch SparseCUDAApplyUtils.cuh" }
    { id: "gemm.head", category: Gemm, scope: Head,
      any: [
        "tensile", "gemm", "gemv", "xmma", "nvjet", "cublas", "matmul", "rocblas", "hipblas",
        "<mm>", "<bmm>", "<abmm>", "<vbmm>", "bmm_", "<mm_kernel", "<bmm_kernel", "_mm_kernel",
        "mm_fp", "mm_bf", "addmm", "wv_?splitk", "wvsplitk", "llmm", "skinny", "split_?k_?reduce",
        "splitk", "^ampere_", "^volta_", "^turing_", "^maxwell_", "^hopper_", "marlin", "machete",
        "scaled_mm", "cutlass::kernel", "cutlass::device_kernel", "awq", "gptq", "w8a8", "w8a16",
        "w4a16", "w4a8", "w4a4", "a8w8", "a8w4", "a4w4", "a16w16", "a16w8", "a16w4", "afp4wfp4",
        "wint4", "wint8", "<dot_kernel", "<dot_", "reduce_1block", "bitlinear", "flatmm",
        "<linear_kernel", "_linear_", "<linear_", "f4gemm", "cutlass_#_tensorop", "cutlass_#_wmma",
        "cutlass_#_simt", "<scal_kernel", "gemmk1", "<epilogue::impl", "<trsm", "<syrk", "<trmm",
        "<herk", "<mul_mat", "sgmv", "bgmv", "lora_shrink", "lora_expand", "lora_", "_lora",
        "gmmk_", "<hgemm", "mmq", "dequant_mul", "<exl2", "exllama", "<q_gemm", "_mma_", "mfma_",
        "aqlm", "<qserve", "wgmma", "<mm_", "_mm_", "_mm$", "<bmm", "matvec", "mat_vec", "<gemx",
        "tf32_hc", "quant_linear", "blockwise_mm", "dsv3_router_", "router_gemm", "fused_a_gemm",
        "einsum", "tiny_mm", "mlp_kernel", "ffn_kernel", "<geqrf", "<getrf", "<potrf", "spmm",
        "linear_fwd", "linear_bwd", "cgemm", "outer_prod", "gate_up_proj", "qkv_proj", "w4afp8",
        "fp4_fp8", "fp8_fp4",
      ],
      examples: [
        "volta_sgemm_64x64_nt", "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
        "nvjet_tst_128x64_64x8_2x1_v_bz_TNT",
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(int)",
        "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>(int)",
        "void gemv2T_kernel_val<int, int, float>(int)",
        "void splitKreduce_kernel<32, 16, int, float>(int)",
        "void epilogue::impl::globalKernel<float, float, float, true, true>(int)",
        "void dot_kernel<float, 128, 0>(int)",
        "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 4096u>(float*)", "_w8a8_block_fp8_matmul",
        "void wvSplitK_hf_<__hip_bfloat16, 64>(int)", "void Marlin<128, 1>(int)",
        "_lora_shrink_kernel", "void vllm::awq::dequantize_weights_x(int)", "gemm_a16w16_kernel",
        "_ZN5aiter24f4gemm_bf16_per1x32Fp4_xE", "bf16gemm_fp32bf16_tn_96x64_splitk_clean",
        "void LLGemm1_kernel<2>(int)", "_triton_mm_kernel",
      ],
      source: "cuBLAS, CUTLASS, DeepGEMM, vLLM, SGLang, AITER, rocBLAS, bitsandbytes" }
    // Factorisations and their pivoting: dense linear algebra, mostly matrix products inside.
    { id: "gemm.solver", category: Gemm, scope: Head,
      any: [
        "<ipiv_", "laswp", "xxtrf", "create_pivot", "larfg", "larft", "<sytrd", "sytd#", "tridiagonal",
        "<gesvd", "<syevj", "<trtri", "<lauum", "<getf#", "<potf#",
      ],
      examples: [
        "void ipiv_lower_small<float, 32>(int, void*, int, long*, int, int)",
        "void laswp_kernel_reverse<float, false>(int, float* const*, int, int)",
        "xxtrf4_set_info_ker(int, int*)", "void create_pivot_v2<32>(int, int*, long*, int)",
        "void aiter::larfg_kernel<float>(float*)",
      ],
      source: "cuSOLVER, MAGMA, rocSOLVER, AITER" }
    { id: "gemm.argument", category: Gemm, scope: Name,
      any: [
        "gemm", "cublasgemv", "cutlass_#_tensorop", "cutlass_#_wmma", "cutlass_#_simt",
        "kentry*flatmm", "device_kernel*sm#_mma",
      ],
      examples: [
        "void my_epilogue<ck::GridwiseGemm>(int)",
        "void reduction_k<cublasGemvParams<float> >(int)",
      ],
      source: "CK, CK Tile, cuBLAS" }
}
