//! Bandwidth-bound kernels: quantization, activations and the like; last of all, whatever is merely
//! elementwise or a reduction.

use super::rules;

rules! { POINTWISE:
    { id: "quantize.any", category: Quantize, scope: Head,
      any: [
        "quant", "cast_back", "fp8_cast", "cast_fp8", "cast_to_fp8", "cast_mx", "cast_transpose",
        "casttranspose", "scaled_fp8", "scaled_int8", "scaled_fp4", "per_?token",
        "per_?channel_cast", "mxfp#", "nvfp4", "mx_?fp", "fp4_", "fp8_legacy", "cvt_fp", "cvt_f",
        "convert_fp8", "convert_to_fp8", "convert_to_mx", "hadamard", "block_scale", "blockscale",
        "dynamic_scale", "amax_kernel", "compute_amax", "_amax", "amax_", "fp8_transpose",
        "transpose_fp8", "scale_inv", "scale_swizzle", "swizzle_scale", "swizzle_block_scale",
        "pack_int4", "unpack_int4", "int4_", "to_fp8", "to_fp4", "fp8_to", "_fp8_pack", "to_ue8m0",
        "ue8m0", "scale_to_", "update_scale", "delayed_scaling", "pack_sf", "transform_sf",
        "sf_layout", "mx_swizzle", "e8m0", "int8_", "_nf4", "to_mxfp", "fouroversix", "turboquant",
        "<rht_", "rht_amax", "dequant", "cast_only", "cast_gated", "cast_master", "scaled_cast",
        "row_cast", "<fp8_", "_fp8_kernel", "_fp8$", "find_scale", "gated_mxfp",
      ],
      examples: [
        "void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16>(int)",
        "_per_token_group_quant_fp8", "void per_token_group_quant_8bit_kernel<int>(int)",
        "_ZN5aiter32dynamic_per_group_scaled_quant_kernelIDF16b",
        "void vllm::cvt_fp16_to_fp4<__nv_bfloat16>(int)", "_dynamic_mxfp4_quant_kernel",
        "void transformer_engine::cast_transpose_general_kernel<int>(int)",
        "void kDequantizeBlockwise<__nv_bfloat16, 512, 64, 8, 2>(int)",
        "fast_hadamard_transform_kernel",
      ],
      source: "vLLM, SGLang, AITER, Transformer Engine, bitsandbytes, torchao" }
    { id: "loss.any", category: Loss, scope: Name,
      any: [
        "nll_loss", "nllloss", "cross_?entropy", "mse_kernel", "mse_backward", "mse_loss",
        "smooth_l1", "bce_", "binary_cross", "kl_div", "kldiv", "ctc_loss", "huber", "jsd_", "_jsd",
        "tvd_", "<jsd", "<tvd", "grpo", "triplet", "_loss_", "logsumexp", "log_sum_exp",
        "lse_kernel", "softxentropy", "ctcloss", "_loss>", "loss_kernel", "xent", "gspo", "dpo_",
        "nllcriterion", "parallel_ce_", "tv_distance",
      ],
      examples: [
        "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*)",
        "liger_cross_entropy_kernel",
        "void at::native::vectorized_elementwise_kernel<4, at::native::mse_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}>(int)",
        "_jsd_kernel", "liger_vocab_parallel_ce_forward_kernel",
        "void cunn_ClassNLLCriterion_updateOutput_kernel<float, float>(float*, float*)",
      ],
      source: "PyTorch, Liger, apex" }
    { id: "softmax.any", category: Softmax, scope: Name,
      any: ["softmax", "sparsemax", "entmax"],
      examples: [
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>(float*)",
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float, float, float, at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(float*)",
        "void scaled_masked_softmax_warp_forward<__half, __half, float, 9>(int)",
        "_softmax_fwd_kernel",
      ],
      source: "PyTorch, Megatron" }
    { id: "activation.any", category: Activation, scope: Name,
      any: [
        "act_and_mul", "act_mul", "swiglu", "geglu", "reglu", "silu", "gelu", "swish", "relu_",
        "relu>", "relufunctor", "relu#", "launch_relu", "sigmoid", "hardswish", "hardtanh", "mish_",
        "<elu_kernel", "softplus", "leaky_relu", "prelu", "glu_kernel", "<glu_", "gated_act",
        "gated_kernel", "dgated", "dgelu", "dbias_dact", "activation_kernel", "activationkernel",
        "activation_forward", "doactivation", "activation::", "<act_kernel", "_act$",
        "threshold_kernel", "softshrink", "hardshrink", "celu_", "selu_", "xielu", "polynorm",
        "poly_norm", "_dact", "dact_", "activationdeepseek", "bias_act",
      ],
      examples: [
        "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i",
        "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(int)",
        "void at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}>(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::sigmoid_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}>(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, at::native::(anonymous namespace)::threshold_kernel_impl<float>(int)::{lambda(float, float)#1}>, int>(int)",
        "_swiglu_forward_kernel",
        "void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &silu>(int)",
      ],
      source: "PyTorch, vLLM, SGLang, FlashInfer, Liger" }
    { id: "random.any", category: Random, scope: Name,
      any: [
        "distribution_", "philox", "dropout", "bernoulli", "random_from", "random_kernel",
        "exponential_kernel", "normal_and_transform", "uniform_and_transform", "curand", "rocrand",
        "gumbel", "generate_seed", "random_int", "randperm", "gen_sequenced", "hiprand",
        "random_uniform", "random_pad", "rng_state", "seed_and_offset",
      ],
      examples: [
        "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, int>(int)",
        "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>(int)",
        "randperm_handle_duplicate_keys_kernel<int>",
      ],
      source: "PyTorch, cuRAND, rocRAND" }
}

rules! { LAST:
    { id: "reduce.name", category: Reduce, scope: Name,
      any: [
        "reduce_kernel", "reduceop", "<reduce", "reduction", "<sum_kernel", "<sum_reduce",
        "<sum_rows", "<mean_kernel", "<mean_reduce", "<amax_", "<amin_", "<max_kernel",
        "<max_reduce", "<min_kernel", "<var_kernel", "<norm_reduce", "meanops", "segment_reduce",
        "_sum_", "cdist", "dot_prod",
      ],
      examples: [
        "void mine::reduce_kernel<512, 1, float>(int)",
        "void segment_reduce_forward_kernel<float, int>(float*)",
      ],
      source: "PyTorch, Triton" }
    { id: "reduce.head", category: Reduce, scope: Head,
      any: [
        "_reduce_", "_reduce$", "reducekernel", "<sum_", "<sum>", "<mean_", "<max_", "<min_",
        "<var_", "_sum$", "_mean$", "_max$", "_mean_", "rowsum", "row_sum", "colsum", "columnsum",
        "sumkernel", "aminmax", "pdist", "grad_bias", "<dbias", "_dbias", "bias_grad", "merge_partial",
        "<average_", "_norm2", "partialsum", "<finalize", "percentile",
      ],
      examples: [
        "rowSumKernel", "columnSum",
        "void at::native::(anonymous namespace)::pdist_kernel_cuda_impl<float>(float*)",
      ],
      source: "Triton, PyTorch, DeepSpeed" }
    { id: "elementwise.foreach", category: Elementwise, scope: Name,
      any: ["multi_tensor", "foreach_"],
      examples: [
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>(int)",
      ],
      source: "PyTorch" }
    { id: "elementwise.name", category: Elementwise, scope: Name,
      any: [
        "elementwise", "gpu_kernel_impl", "binary_internal", "cudafunctor", "unaryfunctor",
        "binaryfunctor", "subtensorop", "optensor", "op#dtensor", "tensor_op", "compare", "arange",
        "linspace", "fused_add", "fused_mul", "fused_bias", "bias_add", "add_bias",
      ],
      examples: [
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int)",
        "SubTensorOpWithScalar1d", "Op4dTensorGeneric",
        "void at::native::vectorized_elementwise_kernel<4, at::native::tanh_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}>(int)",
        "void (anonymous namespace)::elementwise_kernel_with_index<int, at::native::arange_cuda_out(int)>(int)",
      ],
      source: "PyTorch, MIOpen" }
    { id: "elementwise.head", category: Elementwise, scope: Head,
      any: [
        "<add_", "<sub_", "<mul_", "<div_", "<neg_", "<pow", "<exp_", "<log_", "<sqrt_", "<rsqrt_",
        "<sin_", "<cos_", "<tanh_", "<abs_", "<where_", "<clamp_", "<clip_", "<floor_", "<ceil_",
        "<cast", "<lerp", "addcmul", "addcdiv", "<scale_", "<scale>", "scalepacked",
        "scale_?tensor", "<bias_", "addbias", "<add>", "<mul>", "add_?kernel", "mul_?kernel", "sub_kernel",
        "div_kernel", "scale_?kernel", "biasadd", "nan_to_num", "isnan", "check_nan",
        "checknumeric", "tanh", "_add_", "_mul_", "_sub_", "_add$", "_mul$", "axpy", "axpby",
        "pointwise", "element_wise", "soft_?cap", "residual", "_scaled_", "unary", "binary",
        "ternary", "apply_mask", "mask_kernel", "_bias_", "_exp_", "logical_", "bitwise_",
        "^triton_fused_", "eltwise", "fma_kernel", "lambda_kernel",
      ],
      examples: [
        "add_kernel",
        "void cudnn::ops::scalePackedTensor_kernel<float, float>(long, float*, float)",
        "_mul_add_triton", "fused_residual_triton",
        "void fastertransformer::addBiasResidual<__half, 1, __half>(__half*, __half const*)",
      ],
      source: "Triton, cuDNN, DeepSpeed" }
}
