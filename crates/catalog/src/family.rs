//! Kernel families: the library of a kernel. Category and family together show whether to tune AITER, Triton or
//! hipBLASLt.

use std::sync::LazyLock;

use crate::Platform;
use crate::pattern::{PatternSet, is_match};

macro_rules! families {
    ($($variant:ident { $id:literal, $title:literal, [$($pattern:literal),*] })*) => {
        /// The library or generator that a kernel comes from.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Family { $(#[doc = $title] $variant,)* }

        impl Default for Family {
            fn default() -> Self {
                Self::Custom
            }
        }

        impl Family {
            /// Every family, in the order reports list them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word used in files.
            #[must_use]
            pub const fn id(self) -> &'static str { match self { $(Self::$variant => $id,)* } }

            /// The family with this id.
            #[must_use]
            pub fn from_id(id: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|family| family.id() == id)
            }

            /// The words shown to people.
            #[must_use]
            pub const fn title(self) -> &'static str { match self { $(Self::$variant => $title,)* } }
        }

        /// Patterns on the whole lower-case name; the first row that matches decides.
        const RULES: &[(Family, &[&str])] = &[$((Family::$variant, &[$($pattern),*])),*];
    };
}

// The patterns follow the published symbol names of each library. Order matters: a library that wraps
// another (cuDNN's cutlass kernels, PyTorch's flash attention) comes first.
families! {
    Nccl { "nccl", "NCCL", ["nccl"] }
    Rccl { "rccl", "RCCL", ["rccl"] }
    Runtime { "runtime", "Memcpy / memset", ["^memcpy", "^memset", "rocclr"] }
    Inductor { "inductor", "TorchInductor", [
        "^triton_poi_", "^triton_red_", "^triton_per_", "^triton_tem_", "^triton_mm_", "^triton_bmm_",
        "^triton_for_", "^triton_spl_", "^triton_unk_"
    ] }
    Tensile { "tensile", "Tensile (hipBLASLt, rocBLAS)", ["^cijk_", "^custom_cijk_"] }
    // AITER took paged attention over from vLLM; its variants have one argument more.
    Aiter { "aiter", "AITER", [
        "aiter", "^fmha_fwd_hd#_", "^fmha_bwd_hd#_", "^fmoe_", "^f4gemm_", "^pa_bf16_", "^pa_fp8_", "^mla_a#w#",
        "paged_attention_ll4mi*composedattention", "paged_attention_ll4mi_reduce_kernel\\<*#, false\\>",
        "paged_attention_ll4mi_reduce_kernel\\<*#, true\\>", "groupnorm_kernel_dispatch_"
    ] }
    CkTile { "ck_tile", "CK Tile", ["ck_tile::", "^_zn7ck_tile"] }
    Ck { "ck", "Composable Kernel", ["^_zn#ck#", "^_znk#ck#", "<ck::", "xdl"] }
    Miopen { "miopen", "MIOpen", [
        "miopen", "mlopen", "mlopool", "igemm_fwd_gtc", "igemm_bwd_gtc", "igemm_wrw_gtc", "subtensorop", "optensor",
        "op#dtensor", "batched_transpose_#x#_", "im2d2col", "col2im2d", "naive_conv", "gcnasmconv", "sp3asm",
        "transpose_nchw", "transpose_cnhw", "transpose_packed"
    ] }
    // (The suffix and the prefix of kernels that TensorRT took over from cuBLAS and cuDNN; Myelin is its compiler.)
    TensorRt { "tensorrt", "TensorRT", ["_execute_kernel_trt", "^trt_", "^__myl_", "<cuint8::", "<genericreformat::"] }
    CuDnn { "cudnn", "cuDNN", ["cudnn", "wgrad_alg#", "dgrad_alg#", "dgrad#d_alg#", "wgrad#d_alg#", "<cask_", "<rnn_", "convolve_sgemm", "<convolve_common_engine", "<converttensor_kernel", "<flip_filter", "<fft#d_r2c_", "<fft#d_c2r_", "<pointwise_mult_and_sum_complex"] }
    CuBlas { "cublas", "cuBLAS", [
        "nvjet", "xmma", "cublas", "gemv2", "gemvx", "gemvnsp", "dot_kernel", "reduce_1block", "gemmk1_", "^ampere_",
        "^volta_", "^turing_", "^maxwell_", "^hopper_", "splitkreduce_kernel", "<scal_kernel", "<sgemm_largek_lds64", "<gemmsn_"
    ] }
    DeepGemm { "deepgemm", "DeepGEMM", ["deep_gemm::", "sm90_fp8_gemm_#d", "sm100_fp8_gemm_#d"] }
    DeepEp { "deepep", "DeepEP", ["deep_ep::", "<dpsk::ep::"] }
    TransformerEngine { "transformer_engine", "Transformer Engine", ["transformer_engine::", "^userbuffers_"] }
    FlashAttention { "flash_attention", "FlashAttention", [
        "flash_fwd", "flash_bwd", "pytorch_flash", "<flash::", "flashattnfwd", "flashattnbwd"
    ] }
    // vLLM's rotary embedding is in its namespace; sgl_kernel's is in none.
    Vllm { "vllm", "vLLM", ["vllm", "paged_attention_ll4mi", "<wvsplitk", "<llgemm1_"] }
    Sglang { "sglang", "SGLang", [
        "sgl_", "sglang", "<store_kvcache\\<", "_future_token", "<clamp_position_kernel", "create_flashinfer_kv",
        "^void rotary_embedding_kernel", "<per_token_group_quant_8bit_", "<moe_fused_gate_kernel"
    ] }
    TrtLlm { "trtllm_flashinfer", "TRT-LLM / FlashInfer", [
        "fmhasm", "^fmha_v2_", "^bmm_", "flashinfer", "trtllm", "tensorrt_llm", "<xqa", "^gemm_*_t#x#x#", "^kernel_mha",
        "^fused_multihead_attention_v#", "<moe::dev::", "<routingindices", "<routinginitexpert",
        "<routingdeepseek", "<routingrenormalize", "<finalizemoerouting", "<finalizekernelvecload",
        "<finalizedeepseek", "<expandinputrows", "<doactivationkernel", "<doactivation", "<computestridestma",
        "expertprefixsum", "buildexpertmaps"
    ] }
    // (Engines that began as copies of it, such as RTP-LLM, keep its namespace.)
    FasterTransformer { "fastertransformer", "FasterTransformer", ["fastertransformer::", "_zn17fastertransformer"] }
    Cutlass { "cutlass", "CUTLASS", ["cutlass"] }
    Fbgemm { "fbgemm", "FBGEMM", [
        "fbgemm", "split_embedding_", "<permute_pooled_embs", "<recat_copy_async", "<bounds_check_indices",
        "<linearize_index_kernel", "<permute_2d_lengths", "<block_bucketize"
    ] }
    RocPrimCub { "rocprim_cub", "rocPRIM / CUB", ["rocprim", "hipcub", "cub::", "thrust"] }
    Aten { "aten", "PyTorch ATen", ["<at::", "at_cuda", "c10::", "_zn2at", "<indexing_backward_kernel", "<cunn_", "::softmax_warp_forward", "::softmax_warp_backward", "elementwise_kernel_with_index"] }
    // Apex, and DeepSpeed's copy of it; PyTorch's own are in at::native.
    Apex { "apex", "Apex, DeepSpeed", [
        "multi_tensor_apply_kernel", "<cuapplylayernorm", "<cuapplyrmsnorm", "<cucomputegradinput",
        "<cucomputepartgradgammabeta", "<cucomputegradgammabeta"
    ] }
    // Its fused softmax kernels: Apex has a copy of them.
    Megatron { "megatron", "Megatron-LM", [
        "<scaled_softmax_warp", "<scaled_masked_softmax_warp", "<scaled_upper_triang_masked_softmax_warp"
    ] }
    Triton { "triton", "Triton / bare name", [] }
    Custom { "custom", "Custom", [] }
}

/// The family of a kernel whose lower-case name is `name`.
#[inline(never)]
pub(crate) fn of_name(name: &str, platform: Platform) -> Family {
    static SET: LazyLock<PatternSet> = LazyLock::new(|| {
        let rows = (0..).zip(RULES);
        PatternSet::new(
            rows.flat_map(|(row, (_, any))| any.iter().map(move |pattern| (row, *pattern))),
        )
    });
    let named = SET.first(name, u16::MAX).map(|row| RULES[usize::from(row)].0);
    // Pairs and iterators of CUB and thrust are arguments of kernels of any library: the head decides.
    let named = match named {
        Some(Family::RocPrimCub) if !is_of(Family::RocPrimCub, &path(name)) => {
            Some(Family::Aten).filter(|aten| is_of(*aten, name))
        }
        named => named,
    };
    match named {
        // PyTorch's number formats are arguments of kernels of any library, too.
        Some(Family::Aten) if !is_of(Family::Aten, &path(name)) => {
            let mut others = [Family::Apex, Family::Megatron].into_iter();
            others.find(|other| is_of(*other, &path(name))).unwrap_or(Family::Aten)
        }
        // RCCL kept NCCL's symbol names. Without a known platform, one name decides: only RCCL
        // has a "Generic" kernel.
        Some(Family::Nccl) => match platform {
            Platform::Rocm => Family::Rccl,
            Platform::Unknown
                if name.contains("ncclkernel_generic")
                    || name.contains("nccldevkernel_generic") =>
            {
                Family::Rccl
            }
            _ => Family::Nccl,
        },
        Some(family) => family,
        None if is_bare(name) => Family::Triton,
        None => Family::Custom,
    }
}

/// The text that names the library: the head, or of a mangled name the beginning (the rest is arguments).
fn path(name: &str) -> String {
    if name.starts_with("_z") { name.chars().take(32).collect() } else { crate::head(name) }
}

/// Whether a pattern of `family` matches.
fn is_of(family: Family, text: &str) -> bool {
    let rows = RULES.iter().filter(|(of, _)| *of == family);
    rows.flat_map(|(_, any)| *any).any(|pattern| is_match(pattern, text))
}

/// Whether the name is one identifier, as Triton's are: no namespace, template, parameters, mangling.
fn is_bare(name: &str) -> bool {
    !is_match("^_zn", name)
        && !is_match("^_z#", name)
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of names")]
    fn families_of_known_names() {
        for (name, family) in [
            (
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                Family::Nccl,
            ),
            ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32", Family::Tensile),
            ("triton_poi_fused_add_0", Family::Inductor),
            ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", Family::Triton),
            ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdI", Family::CkTile),
            (
                "_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl",
                Family::Ck,
            ),
            ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16b", Family::Aiter),
            ("igemm_fwd_gtcx3_nhwc_bf16_bx0", Family::Miopen),
            ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_cublas", Family::CuBlas),
            ("ampere_sgemm_128x64_tn", Family::CuBlas),
            (
                "sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize32x32x64_execute_kernel_trt",
                Family::TensorRt,
            ),
            ("sm50_xmma_cublas_gemvx_f16f16_f32_f32_nn_n_execute_kernel_trt", Family::TensorRt),
            (
                "trt_volta_h884cudnn_256x64_sliced1x2_ldg8_relu_exp_small_nhwc_tn_v1",
                Family::TensorRt,
            ),
            ("void cuInt8::nchwTonchw<__half, float, 4>(__half const*, float*)", Family::TensorRt),
            ("sm80_xmma_fprop_implicit_gemm_tf32f32_execute_kernel_cudnn", Family::CuDnn),
            (
                "void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688fprop>(Params)",
                Family::CuDnn,
            ),
            (
                "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64> >()",
                Family::FlashAttention,
            ),
            ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm>(Params)", Family::Cutlass),
            ("void cub::DeviceScanKernel<int>(int)", Family::RocPrimCub),
            ("void at::native::reduce_kernel<512, 1>(int)", Family::Aten),
            ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long)", Family::Vllm),
            ("void sgl_thing(int)", Family::Sglang),
            ("void rotary_embedding_kernel<c10::BFloat16, true>(long const*)", Family::Sglang),
            ("create_flashinfer_kv_indices_triton", Family::Sglang),
            ("void moe_fused_gate_kernel<cutlass::bfloat16_t>(void*)", Family::Sglang),
            (
                "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0, 1, ck_tile::ComposedAttention<0u, false> >(int)",
                Family::Aiter,
            ),
            (
                "void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, __hip_bfloat16, 128, 128, 256, 3, false>(__hip_bfloat16*)",
                Family::Aiter,
            ),
            (
                "void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, __hip_bfloat16, 128, 128, 256, 3>(__hip_bfloat16*)",
                Family::Vllm,
            ),
            ("gemm_Bfloat16_E2m1E2m1_Fp32_t128x8x512_s7_sm100f", Family::TrtLlm),
            ("gemm_persistent_sm90", Family::Triton),
            ("fused_multihead_attention_v2_flash_attention_bf16_sm90_kernel", Family::TrtLlm),
            (
                "void linearize_index_kernel<long>(at::GenericPackedTensorAccessor<long, 1ul>)",
                Family::Fbgemm,
            ),
            (
                "void (anonymous namespace)::softmax_warp_forward<float, float, 8>(float*)",
                Family::Aten,
            ),
            ("void my_ns::thing(int)", Family::Custom),
            (
                "_ZN2at6native13reduce_kernelILi512ENS0_10WelfordOpsIfN6thrust4pairIffEE",
                Family::Aten,
            ),
            ("void wvSplitK_hf_sml_<__half, 64>(int)", Family::Vllm),
            ("f4gemm_bf16_per1x32Fp4_BpreShuffle_128x512", Family::Aiter),
            ("void my_ns::thing<thrust::pair<int, int> >(int)", Family::Custom),
            (
                "void at::native::reduce_kernel<512, 1, at::native::WelfordOps<float, thrust::pair<float, float> > >(int)",
                Family::Aten,
            ),
            (
                "void at_cuda_detail::cub::DeviceRadixSortSingleTileKernel<long>(int)",
                Family::RocPrimCub,
            ),
            ("void (anonymous namespace)::indexing_backward_kernel<float, 4>(long*)", Family::Aten),
            (
                "void moe::dev::routing::routingDeepSeek::routingIndicesClusterKernel<cutlass::bfloat16_t>(int)",
                Family::TrtLlm,
            ),
            ("void moe::dev::finalize::finalizeKernel<cutlass::bfloat16_t>(int)", Family::TrtLlm),
            ("void finalizeMoeRoutingKernel<cutlass::bfloat16_t>(int)", Family::TrtLlm),
            ("void dpsk::ep::internode::combine<false, 8>(int4*)", Family::DeepEp),
            ("Memcpy HtoD (Pageable -> Device)", Family::Runtime),
            (
                "void precomputed_convolve_sgemm<float, 1024, 5, 5, 4, 3, 3, 1, true>(int)",
                Family::CuDnn,
            ),
            (
                "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)",
                Family::Apex,
            ),
            (
                "void (anonymous namespace)::cuApplyLayerNorm<c10::Half, float, c10::Half>(c10::Half*, float*)",
                Family::Apex,
            ),
            (
                "void at::native::(anonymous namespace)::cuComputeGradInput<float, float>(float const*)",
                Family::Aten,
            ),
            (
                "void (anonymous namespace)::scaled_upper_triang_masked_softmax_warp_forward<c10::Half, c10::Half, float, 11>(c10::Half*)",
                Family::Megatron,
            ),
        ] {
            assert_eq!(of_name(&name.to_ascii_lowercase(), Platform::Cuda), family, "{name}");
        }
    }

    #[test]
    fn rccl_keeps_nccls_names() {
        let ring = "nccldevkernel_allreduce_sum_bf16_ring_ll(nccldevkernelargsstorage<4096ul>)";
        let generic = "nccldevkernel_generic(nccldevkernelargsstorage<4096ul>)";
        assert_eq!(of_name(ring, Platform::Rocm), Family::Rccl);
        assert_eq!(of_name(ring, Platform::Cuda), Family::Nccl);
        assert_eq!(of_name(ring, Platform::Unknown), Family::Nccl);
        assert_eq!(of_name(generic, Platform::Unknown), Family::Rccl);
    }

    #[test]
    fn patterns_open_with_two_plain_characters() {
        for pattern in RULES.iter().flat_map(|(_, any)| *any) {
            assert!(crate::pattern::opening(pattern).is_some(), "{pattern}");
        }
    }

    #[test]
    fn ids_are_unique() {
        let mut ids: Vec<_> = Family::ALL.iter().map(|f| f.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), Family::ALL.len());
    }
}
