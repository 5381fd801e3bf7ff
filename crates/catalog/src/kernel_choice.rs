//! Kernels of NVIDIA's libraries that make little of the device or of the shapes, by their names: code for an earlier generation,
//! and tensor core kernels that load one element at a time.
//!
//! A name says what ran, not what else could have run: a library may have no newer kernel for a size, and falls back to an older
//! one. The texts therefore say what to try and measure.

use crate::head::without_parameters;
use crate::pattern::is_match;

/// Names of kernels that were built for one generation of devices.
struct Generation {
    /// Its name.
    title: &'static str,
    /// Its lowest compute capability, times ten.
    capability: u32,
    /// Parts of names.
    any: &'static [&'static str],
    /// Names that must match this row.
    #[cfg_attr(not(test), allow(dead_code, reason = "the tests of this file read it"))]
    examples: &'static [&'static str],
}

/// Prefixes of cuBLAS and cuDNN (`ampere_`, `sm80_xmma_`), of CUTLASS (`cutlass_80_`) and the suffix of PyTorch's memory-efficient
/// attention, as in `generate_kernels.py` of PyTorch. Types in template arguments, such as `cute::SM80_16x8x16`, say nothing: newer
/// kernels use older instructions, too.
const GENERATIONS: &[Generation] = &[
    Generation {
        title: "Maxwell",
        capability: 50,
        any: &["<maxwell_", "^sm50_", "<cutlass_50_", "<fmha_cutlass*_sm50"],
        examples: &["maxwell_scudnn_winograd_128x128_ldg1_ldg4_tile148n_nt"],
    },
    Generation {
        title: "Volta",
        capability: 70,
        any: &["<volta_", "^sm70_", "<cutlass_70_", "<fmha_cutlass*_sm70"],
        examples: &["volta_sgemm_64x64_tn", "cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1"],
    },
    Generation {
        title: "Turing",
        capability: 75,
        any: &["<turing_", "^sm75_", "<cutlass_75_", "<fmha_cutlass*_sm75"],
        examples: &["turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_stages_32x1_nn"],
    },
    Generation {
        title: "Ampere",
        capability: 80,
        any: &["<ampere_", "^sm80_", "^sm86_", "<cutlass_80_", "<fmha_cutlass*_sm80"],
        examples: &[
            "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn",
            "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4_execute_kernel__5x_cublas",
            "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(Params)",
            "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)",
        ],
    },
    Generation {
        title: "Ada",
        capability: 89,
        any: &["^sm89_", "<cutlass_89_"],
        examples: &[
            "sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x64_stage3_tensor16x8x32_kernel",
        ],
    },
];

/// What to try where a kernel is older than its device; the first row that matches is used.
struct Remedy {
    /// Parts of names; empty for all.
    any: &'static [&'static str],
    /// What to try, and what may be in the way.
    text: &'static str,
}

const REMEDIES: &[Remedy] = &[
    Remedy {
        any: &["<fmha_cutlass"],
        text: "The memory-efficient backend of PyTorch's attention has no newer kernels than these. Try the flash or the cuDNN backend (torch.nn.attention.sdpa_kernel) and measure.",
    },
    Remedy { any: &["sgemm", "scudnn", "simt_", "f32f32_f32f32_f32"], text: FLOATS },
    Remedy {
        any: &["fprop", "dgrad", "wgrad", "implicit_gemm", "convolve"],
        text: "cuDNN chose them, and may have no newer kernel for these sizes. Try channels_last, torch.backends.cudnn.benchmark = True and a newer cuDNN, and measure.",
    },
    Remedy {
        any: &[],
        text: "The library chose them, and may have no newer kernel for these sizes. Try torch.compile(mode=\"max-autotune\") or a newer version of the library, and measure.",
    },
];

/// What to try where kernels multiply 32-bit floats.
const FLOATS: &str = "These kernels multiply 32-bit floats without tensor cores. Newer tensor core kernels need TF32 (torch.set_float32_matmul_precision(\"high\")) or 16-bit floats, if the model's accuracy allows.";

/// Tensor core kernels of CUTLASS that load one element of an operand at a time. (Of the `notaligned` kernels of memory-efficient
/// attention the name does not say how many they load.)
const NARROW: &[&str] = &["tensorop*_align1\\>", "tensorop*_align1$", "tensorop*_align1_"];

/// A kernel that was built for an earlier generation than its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Older {
    /// The generation that it was built for.
    pub generation: &'static str,
    /// What to try, and what may be in the way.
    pub remedy: &'static str,
}

impl Older {
    /// Whether it multiplies 32-bit floats without tensor cores: in another number format another kernel runs.
    #[must_use]
    pub fn multiplies_floats(&self) -> bool {
        self.remedy == FLOATS
    }
}

/// Whether a kernel was built for an earlier generation than a device with this compute capability (times ten: 90 for 9.0). `None`
/// where the name does not say so.
#[must_use]
pub fn older(name: &str, capability: u32) -> Option<Older> {
    let lower = without_parameters(name);
    let matches = |any: &[&str]| any.iter().any(|pattern| is_match(pattern, &lower));
    let built = GENERATIONS.iter().find(|row| matches(row.any))?;
    if !is_older(built.capability, capability) {
        return None;
    }
    let remedy = REMEDIES.iter().find(|row| row.any.is_empty() || matches(row.any))?;
    Some(Older { generation: built.title, remedy: remedy.text })
}

/// Turing runs kernels for Volta, and Ada those for Ampere, with the same tensor core instructions. So does Blackwell with
/// compute capability 12: it has neither `wgmma` of 9.0 nor `tcgen05` of 10.0 (PTX ISA, target notes of these instructions), and
/// kernels for 8.0 are the usual ones there.
fn is_older(built: u32, device: u32) -> bool {
    let generation = |capability: u32| match capability / 10 {
        12 => 8,
        major => major,
    };
    generation(built) < generation(device)
}

/// Whether a tensor core kernel loads one element of an operand at a time, because sizes or strides do not allow more.
#[must_use]
pub fn is_narrow(name: &str) -> bool {
    let lower = without_parameters(name);
    NARROW.iter().any(|pattern| is_match(pattern, &lower))
}

/// What to try where a kernel is narrow.
pub const NARROW_REMEDY: &str = "The size or the stride of an operand does not allow wider loads. Pad it to a multiple of 16 bytes (8 values of 16 bits, 4 of 32 bits), or make the operand contiguous, and measure.";

/// MIOpen's convolution of last resort, `naive_conv_nonpacked_wrw_nchw_...` (solvers `ConvDirectNaiveConvFwd`, `Bwd` and `Wrw`).
const NAIVE: &str = "<naive_conv_";

/// Whether it is MIOpen's convolution of last resort: each thread adds up one value of the output.
#[must_use]
pub fn is_naive(name: &str) -> bool {
    is_match(NAIVE, &without_parameters(name))
}

/// What to try where a convolution is naive (MIOpen's documentation, "Tuning performance databases").
pub const NAIVE_REMEDY: &str = "MIOpen uses it if it knows no other kernel for the sizes or has not measured them; it also runs in the trials of a first call. Let MIOpen measure these sizes once (MIOPEN_FIND_ENFORCE=3, with MIOPEN_USER_DB_PATH for the result), or change the layout, the sizes or the number format.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_convolution_of_last_resort_is_naive() {
        assert!(is_naive("naive_conv_nonpacked_wrw_nchw_half_double_half.kd"));
        assert!(is_naive("naive_conv_ab_nonpacked_fwd_nhwc_float_double_float"));
        assert!(!is_naive("miopenSp3AsmConv_v30_3_1_gfx9_fp16_stride1.kd"));
        assert!(!is_naive("my_naive_convolution"));
    }

    #[test]
    fn each_example_is_of_its_generation() {
        for row in GENERATIONS {
            for name in row.examples {
                assert_eq!(
                    older(name, 100).map(|found| found.generation),
                    Some(row.title),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn what_counts_as_older_depends_on_the_device() {
        let on = |name: &str, capability| older(name, capability).map(|found| found.generation);
        let (volta, ampere) = ("volta_sgemm_64x64_tn", "ampere_sgemm_128x32_tn");
        for (name, capability, expected) in [
            (volta, 70, None),
            (volta, 75, None),
            (volta, 80, Some("Volta")),
            (ampere, 80, None),
            (ampere, 89, None),
            (ampere, 90, Some("Ampere")),
            (ampere, 103, Some("Ampere")),
            (ampere, 120, None),
            (volta, 120, Some("Volta")),
        ] {
            assert_eq!(on(name, capability), expected, "{name} on {capability}");
        }
    }

    #[test]
    fn names_of_newer_kernels_and_types_in_them_say_nothing() {
        for name in [
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_kernel__5x_cublas",
            "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT",
            "void cutlass::device_kernel<flash::FlashAttnBwd<cute::SM80_16x8x16_F32BF16BF16F32_TN, cutlass::arch::Sm90> >(Params)",
            "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4> >(flash::Flash_fwd_params)",
            "void at::native::vectorized_elementwise_kernel<4>(int)",
        ] {
            assert_eq!(older(name, 100), None, "{name}");
        }
    }

    #[test]
    fn the_remedy_is_that_of_the_kind_of_kernel() {
        for (name, word) in [
            ("fmha_cutlassF_f16_aligned_64x128_rf_sm80(Params)", "flash or the cuDNN backend"),
            ("ampere_sgemm_128x32_tn", "TF32"),
            (
                "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32",
                "channels_last",
            ),
            ("cudnn_infer_ampere_scudnn_128x64_relu_xregs_large_nn_v1", "TF32"),
            (
                "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>(P)",
                "max-autotune",
            ),
        ] {
            let found = older(name, 90).expect(name);
            assert!(found.remedy.contains(word), "{name}: {}", found.remedy);
        }
    }

    #[test]
    fn only_tensor_core_kernels_are_narrow() {
        for (name, expected) in [
            (
                "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x4_nn_align1>(cutlass_80_tensorop_s1688gemm_64x64_32x4_nn_align1::Params)",
                true,
            ),
            ("cutlass_75_wmma_tensorop_f16_s161616gemm_f16_32x32_128x2_tn_align1", true),
            ("fmha_cutlassF_f16_notaligned_64x64_rf_sm75(Params)", false),
            (
                "void cutlass::Kernel<cutlass_80_tensorop_i16832gemm_s8_256x128_64x3_tn_align16>(P)",
                false,
            ),
            (
                "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align8>(P)",
                false,
            ),
            // A load of one float is what this kernel is made for.
            ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(P)", false),
        ] {
            assert_eq!(is_narrow(name), expected, "{name}");
        }
    }
}
