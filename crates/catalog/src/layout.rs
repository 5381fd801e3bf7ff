//! The layout of images that a kernel is for.

/// Kernels of PyTorch for tensors whose channels come first, of ops that run other kernels where the channels come last
/// (`aten/src/ATen/native/cuda/Normalization.cuh`, `DilatedMaxPool2d.cu`, `AveragePool2d.cu`; cuDNN names its own by `NCHW`).
const CHANNELS_FIRST: &[&str] = &[
    "batch_norm_collect_statistics_kernel",
    "batch_norm_transform_input_kernel",
    "batch_norm_backward_kernel",
    "batch_norm_backward_reduce_kernel",
    "batch_norm_backward_elemt_kernel",
    "max_pool_forward_nchw",
    "max_pool_backward_nchw",
    "avg_pool2d_out_cuda_frame<",
    "avg_pool2d_backward_out_cuda_frame<",
    "cudnn::bn_fw_tr_1C11",
    "cudnn::bn_bw_1C11",
    "cudnn::bn_fw_inf_1C11",
    "_kernel_NCHW",
    // (MIOpen's Winograd kernels in assembly: `src/solver/conv_winoRxS.cpp` of commit 01aa23c0 and `conv_wino_fury_RxS.cpp` of commit
    // 09e93870 ask for the layout NCHW.)
    "miopenSp3AsmConv",
];

/// Whether a kernel runs only where the channels come first.
#[must_use]
pub fn is_channels_first(name: &str) -> bool {
    CHANNELS_FIRST.iter().any(|part| name.contains(part))
}

/// Kernels of PyTorch's group norm (`aten/src/ATen/native/cuda/group_norm_kernel.cu`).
const GROUP_NORM: [&str; 2] =
    ["ComputeFusedParamsCUDAKernel", "ComputeBackwardFusedParamsCUDAKernel"];

/// Whether a kernel is of a group norm, one for each. PyTorch has group norms for channels that come first alone: others make their input
/// contiguous, which a copy does, and what they write has its channels first again (measured: docs/measured.md).
#[must_use]
pub fn is_group_norm(name: &str) -> bool {
    GROUP_NORM.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_told_from_their_twins() {
        for (name, is) in [
            (
                "void at::native::batch_norm_backward_kernel<c10::BFloat16, float, float, int>(...)",
                true,
            ),
            (
                "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, int>(int)",
                true,
            ),
            ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1, true>(...)", true),
            (
                "void at::native::batch_norm_backward_elemt_channels_last_kernel<4, float>(...)",
                false,
            ),
            (
                "void at::native::(anonymous namespace)::max_pool_forward_nhwc<float, int>(int)",
                false,
            ),
            ("miopenSp3AsmConv_v30_3_1_gfx9_fp16_dot2_edc_f2x3_stride1", true),
            ("igemm_fwd_gtcx3_nhwc_fp16_bx0_ex0_bt128x128x32_wt32x32x8_ws1x1", false),
            ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(int)", false),
        ] {
            assert_eq!(is_channels_first(name), is, "{name}");
        }
    }
}
