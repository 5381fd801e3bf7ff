//! Optimizers, and the vision kernels: pooling and convolution.

use super::rules;

rules! { TRAINING:
    // PyTorch's plain foreach arithmetic is not here: only the caller can decide
    // whether an optimizer launched it, and the stage of triage does.
    { id: "optimizer.update", category: Optimizer, scope: Name,
      any: [
        "<adam", "<fused_?adam", "fusedadam", "<lamb>", "<lamb_", "<fused_?lamb", "lambstage",
        "lamb_stage", "<sgd>", "<sgd_", "<fused_?sgd", "fusedsgd", "<sgdfunctor", "<adagrad",
        "<lion>", "<lion_", "<fused_lion", "<novograd", "larsfunctor", "<lars_", "_lars>",
        "clip_grad", "gradclip", "l2norm_?functor", "maxnorm_?functor", "lpnormfunctor", "l2normmp",
        "amp_update_scale", "non_finite_check", "ampnonfinite", "unscale_grads",
        "multi_tensor_apply*scalefunctor", "multi_tensor_apply*axpbyfunctor",
        "multi_tensor_apply*pointwiseop", "multi_tensor_apply*lerp", "multi_tensor_unscale",
        "multi_tensor_unscale_l2norm", "distributedlamb", "muon_", "<newton_schulz", "<koptimizer",
        "optimizer", "kprecondition", "optimizerstatic", "_adamw", "swiftadam", "grad_norm",
      ],
      examples: [
        "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float, float>(int)",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, 0, false> >(int)",
        "void multi_tensor_apply_kernel<TensorListMetadata<1>, L2NormFunctor<float>, float*>(int)",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<3>, at::native::(anonymous namespace)::PointwiseOpScalarFunctor<float, 3, 3, 0>, std::multiplies<float> >(int)",
        "void at::native::(anonymous namespace)::amp_update_scale_cuda_kernel(float*)",
        "void kOptimizerStatic8bit2StateBlockwise<float, 0, 256, 8>(int)",
      ],
      source: "PyTorch, apex, DeepSpeed, bitsandbytes, Transformer Engine" }
    { id: "pool_resize.any", category: PoolResize, scope: Head,
      any: [
        "max_?pool", "maxpool", "avg_?pool", "average_?pool", "adaptive_*pool", "upsample",
        "interpolat", "grid_sampl", "roi_?align", "roi_?pool", "mlopool", "miopen*pool", "pooling",
        "bilinear_", "bicubic", "nearest_neighbor", "deformable_im", "ms_deform", "resize_",
        "nms_kernel", "nms_impl", "affine_grid", "pool_fw", "pool_bw", "poolforward",
        "poolbackward",
      ],
      examples: [
        "void at::native::(anonymous namespace)::max_pool_backward_nchw<float, float>(int)",
        "void at::native::(anonymous namespace)::adaptive_average_pool<float>(float const*)",
        "void at::native::(anonymous namespace)::upsample_nearest2d_out_frame<c10::BFloat16>(int)",
        "void at::native::(anonymous namespace)::grid_sampler_2d_kernel<float, int>(int)",
        "mloPoolingG", "void cudnn::pooling_fw_4d_kernel<float>(int)",
        "void vision::ops::(anonymous namespace)::roi_align_forward_kernel_impl<float>(int)",
      ],
      source: "PyTorch, torchvision, MIOpen, cuDNN" }
    { id: "conv.direct", category: Conv, scope: Head,
      any: [
        "igemm_fwd_gtc", "igemm_bwd_gtc", "igemm_wrw_gtc", "convolution", "convolve", "<conv_",
        "<conv#d_", "_conv#d_", "conv#d>", "convdepthwise", "conv_depthwise", "depthwise_conv",
        "depthwiseconv", "convfwd", "convbwd", "convwrw", "grouped_conv", "groupedconv", "im#d#col",
        "im#col", "imd?2col", "im2col", "vol2col", "col2im", "col2vol", "winograd",
        "implicit_?gemm", "implicitgemm", "miopensp", "miopen*conv", "gcnasmconv", "sp3asm",
        "naive_conv", "<winograd", "miopen_wino", "xdlops_conv", "conv_fwd", "conv_bwd",
        "convtranspose", "<dgrad", "<wgrad", "<fprop", "_wgrad_nchw", "scudnn", "hcudnn", "icudnn",
        "884cudnn", "816cudnn", "688cudnn", "832cudnn", "<cask_", "fft#d_r2c", "fft#d_c2r",
        "<pointwise_mult_and_sum_complex",
        "cudnn::cnn::", "<cutlass_cudnn", "transposeconv", "conv2d_c", "conv3d_c", "dw_conv",
        "miopen_conv", "<flip_filter", "conv1d_kernel", "conv_kernel", "<mixconv", "miopenconv",
        "cudnn_fp", "transform_filter", "winogradforward", "computeoffsetskernel",
      ],
      examples: [
        "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x256x32_wt32x32x8_ws1x2_wr2x2_ta1x8x2x1_1x4x1x64_tb1x8x4x1_1x4x1x64",
        "_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_34GridwiseGemmMultiD_xdl_cshuffle_v3I",
        "cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1",
        "volta_fp16_s884cudnn_fp16_256x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1",
        "void cudnn::winograd_nonfused::winogradForwardOutput4x4<float, float>(int)", "Im2d2Col_v2",
        "void wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>(int)",
        "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int)",
        "void cask_cudnn_infer::computeOffsetsKernel<false, false>(cask_cudnn_infer::ComputeOffsetsParams)",
        "void fft2d_r2c_32x32<float, false, 5u, true>(float2*)",
        "void fft1d_c2r_32<float, float2, float, true, false, true>(float*)",
        "void pointwise_mult_and_sum_complex<float2, 8, 4>(float2*, float2*, float2*, int)",
        "naive_conv_ab_nonpacked_fwd_nchw_float_double_float",
        "miopenSp3AsmConv_v21_1_3_gfx9_fp32_f3x2_stride1",
        "void at::native::im2col_kernel<float>(long)",
        "sm80_xmma_dgrad_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_cudnn_infer",
        "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3, float, int>(int)",
      ],
      source: "MIOpen, CK, cuDNN, CUTLASS, PyTorch" }
    { id: "conv.argument", category: Conv, scope: Name,
      any: [
        "fprop", "dgrad_optimized", "dgrad_analytic", "wgrad_optimized", "wgrad_analytic",
        "cudnn*convolve", "cudnn*conv#d", "cudnn*convolution", "xdlops?_bwd_weight", "<conv_fwd",
        "<conv_bwd", "conv::kernel", "implicitgemmconv", "kentry*conv", "conv_bwd_weight",
        "conv_fwd_multiple",
      ],
      examples: [
        "void cutlass::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_128x128_32x4_nhwc_align4>(int)",
        "_ZN2ck16tensor_operation6device37kernel_batched_gemm_xdlops_bwd_weightINS_47GridwiseGemm_bk0mk1_bk0nk1_mn_xdlops_bwd_weightILi64E",
        "void reduction_of_parts<conv::kernel::x>(int)",
      ],
      source: "cuDNN, CUTLASS, CK" }
}
