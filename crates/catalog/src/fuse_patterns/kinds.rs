//! Kinds of GPU work, finer than a category where chains need it: PyTorch's kernels for `pow`, `rsqrt` and
//! `neg` are all elementwise, and only together they are a norm or a rotary embedding.

use crate::pattern::is_match;
use crate::{Category, Class, Family, RawKind};

/// A set of kinds, one bit each. One kernel may be of several kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kinds(pub u64);

impl Kinds {
    /// Whether both sets have a kind in common.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// One kind. All conditions must hold; an empty one does.
struct Kind {
    /// The word for it in a chain.
    word: &'static str,
    categories: &'static [Category],
    families: &'static [Family],
    /// Patterns of [`crate::pattern`] on the lower-case name without parameters; any suffices.
    any: &'static [&'static str],
    /// Patterns, none of which may match.
    none: &'static [&'static str],
    #[cfg(test)]
    yes: &'static [&'static str],
    #[cfg(test)]
    no: &'static [&'static str],
}

macro_rules! kinds {
    ($($word:literal: {
        categories: [$($category:ident),*], families: [$($family:ident),*],
        any: [$($any:literal),*], none: [$($none:literal),*],
        yes: [$($yes:literal),* $(,)?], no: [$($no:literal),* $(,)?] $(,)?
    })*) => {
        const KINDS: &[Kind] = &[$(Kind {
            word: $word,
            categories: &[$(Category::$category),*],
            families: &[$(Family::$family),*],
            any: &[$($any),*],
            none: &[$($none),*],
            #[cfg(test)]
            yes: &[$($yes),*],
            #[cfg(test)]
            no: &[$($no),*],
        }),*];
    };
}

// The functors are PyTorch's (aten/src/ATen/native/cuda); kernels that frameworks wrote themselves are
// known by their category.
kinds! {
    "pow": { categories: [], families: [Aten], any: ["<pow_tensor"], none: [],
        yes: ["void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::pow_tensor_scalar_kernel_impl<float, float>(at::TensorIteratorBase&, float)::{lambda(float)#1}, std::array<char*, 2ul> >(int)"],
        no: ["triton_red_fused_add_mean_mul_pow_rsqrt_0"] }
    "mean": { categories: [Reduce], families: [Aten], any: ["<meanops>"], none: [],
        yes: ["void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4> >(at::native::ReduceOp<float>)"],
        no: ["void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float> > > >(int)"] }
    // A tensor and a tensor: a residual.
    "add": { categories: [Elementwise], families: [Aten], any: ["<cudafunctor_add>", "binaryfunctor*<addfunctor>"], none: ["multi_tensor"],
        yes: ["void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int)"],
        no: ["void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<long>, std::array<char*, 2ul> >(int)"] }
    // A tensor and a number: an epsilon, a counter.
    "add_number": { categories: [Elementwise], families: [Aten], any: ["<cudafunctoronself_add>", "<cudafunctoronother_add>"], none: ["multi_tensor"],
        yes: ["void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<float>, std::array<char*, 2ul> >(int)"],
        no: ["void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)"] }
    "rsqrt": { categories: [Elementwise], families: [Aten], any: ["<rsqrt_kernel"], none: [],
        yes: ["void at::native::vectorized_elementwise_kernel<4, at::native::rsqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >(int)"],
        no: ["void at::native::vectorized_elementwise_kernel<4, at::native::sqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1} >(int)"] }
    "mul": { categories: [Elementwise], families: [Aten], any: ["<binaryfunctor*<mulfunctor>"], none: ["multi_tensor"],
        yes: ["void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)"],
        no: ["void at::native::vectorized_elementwise_kernel<8, at::native::AUnaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >(int)"] }
    "mul_number": { categories: [Elementwise], families: [Aten], any: ["<aunaryfunctor*<mulfunctor>", "<bunaryfunctor*<mulfunctor>"], none: ["multi_tensor"],
        yes: ["void at::native::vectorized_elementwise_kernel<8, at::native::AUnaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >(int)"],
        no: ["void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)"] }
    "neg": { categories: [Elementwise], families: [Aten], any: ["<neg_kernel"], none: [],
        yes: ["void at::native::elementwise_kernel_manual_unroll<128, 8, at::native::gpu_kernel_impl<at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int)"],
        no: ["conjugate_kernel"] }
    "tanh": { categories: [], families: [Aten], any: ["<tanh_kernel"], none: [],
        yes: ["void at::native::vectorized_elementwise_kernel<8, at::native::tanh_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}, std::array<char*, 2ul> >(int)"],
        no: ["void at::native::vectorized_elementwise_kernel<4, at::native::tanh_backward_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1} >(int)"] }
    "cat": { categories: [], families: [Aten], any: ["catarraybatched"], none: [],
        yes: ["void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(int)"],
        no: ["void at::native::(anonymous namespace)::indexSelectLargeIndex<float>(int)"] }
    "copy": { categories: [Copy, Memcpy], families: [Aten, Runtime], any: [], none: ["catarraybatched", "htod", "dtoh", "multi_tensor"],
        yes: ["void at::native::elementwise_kernel_manual_unroll<128, 8, at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int)"],
        no: ["void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 4, 64, 64>(int)"] }
    "silu": { categories: [Activation], families: [Aten], any: ["<silu_kernel", "<gelu"], none: ["backward"],
        yes: [
            "void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}, std::array<char*, 2ul> >(int)",
            "void at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}, std::array<char*, 2ul> >(int)",
        ],
        no: ["void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::silu_backward_kernel(at::TensorIteratorBase&)::{lambda()#1} >(int)", "triton_poi_fused__unsafe_view_mul_silu_2"] }
    // Any of ATen's elementwise kernels.
    "aten": { categories: [Elementwise, Activation, Copy, Fill], families: [Aten], any: ["elementwise_kernel"], none: ["multi_tensor"],
        yes: ["void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctorOnSelf_add<long>, std::array<char*, 2ul> >(int)"],
        no: ["void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float> > >(int)", "triton_poi_fused_add_0"] }
    "softmax": { categories: [Softmax], families: [], any: [], none: ["backward", "bwd"],
        yes: ["void (anonymous namespace)::softmax_warp_forward<float, float, float, 7, false, false>(float*, float const*, int)"],
        no: ["void at::native::(anonymous namespace)::softmax_warp_backward<float, float, float, 7, false, false>(float*)"] }
    // What builds a mask or applies it.
    "mask": { categories: [], families: [Aten], any: ["triu_tril", "masked_fill", "<where_kernel", "bitwise_not", "logical_not"], none: ["backward", "multi_tensor"],
        yes: [
            "void at::native::triu_tril_kernel<float, int, false, 2, false>(at::cuda::detail::TensorInfo<float, int>)",
            "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::(anonymous namespace)::masked_fill_kernel(at::TensorIterator&, c10::Scalar const&)::{lambda()#1}> >(int)",
        ],
        no: ["void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int)"] }
    "random": { categories: [Random], families: [], any: [], none: ["backward"],
        yes: ["void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>(int)"],
        no: ["attn_fwd"] }
    "norm": { categories: [Norm], families: [], any: ["rms_?norm", "layer_?norm", "<rsqrt>", "rms2?d?"], none: ["backward", "bwd", "grad", "gammabeta", "batch_norm", "group_?norm", "instance"],
        yes: [
            "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int)",
            "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassEEEEvT0_",
            "void vllm::rms_norm_kernel<c10::BFloat16, 8>(int)", "triton_red_fused_add_mean_mul_pow_rsqrt_0",
        ],
        no: ["void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 32, true, 1, true>(int)", "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<float>(int)"] }
    // cuDNN's and MIOpen's forward pass in training mode, and PyTorch's own kernels that collect statistics.
    "batch_statistics": { categories: [Norm], families: [], any: ["<bn_fw_tr", "batch_norm_collect_statistics", "batchnormfwdtrain"], none: ["backward", "bwd"],
        yes: [
            "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 32, true, 1, true>(int)",
            "_ZN5cudnn25bn_fw_tr_1C11_kernel_NCHWIffiLi128ELb1ELi1ELb1EEEv17cudnnTensorStruct",
            "void at::native::batch_norm_collect_statistics_channels_last_kernel<at::native::InvStd, float, float, 4>(int)",
            "MIOpenBatchNormFwdTrainSpatial",
        ],
        no: ["void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float, true, 1>(float)", "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 128, true, 1>(float)", "MIOpenBatchNormBwdSpatial"] }
    // With running statistics: an addition and a product per channel.
    "batch_norm_inference": { categories: [Norm], families: [], any: ["<bn_fw_inf", "batchnormfwdinfer"], none: ["backward", "bwd"],
        yes: [
            "void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float, true, 1>(float)",
            "MIOpenBatchNormFwdInferSpatialEst",
        ],
        no: ["void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 32, true, 1, true>(int)", "MIOpenBatchNormFwdTrainSpatial"] }
    // The number of batches that a batch norm has seen.
    "counter": { categories: [Elementwise], families: [Aten], any: ["cudafunctoronself_add\\<long"], none: ["multi_tensor"],
        yes: ["void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<long>, std::array<char*, 2ul> >(int)"],
        no: ["void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<float>, std::array<char*, 2ul> >(int)"] }
    "quantize": { categories: [Quantize], families: [], any: [], none: ["dequant"],
        yes: ["void vllm::scaled_fp8_quant_kernel<float>(int)", "per_token_group_quant_8bit_kernel"],
        no: ["_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", "void vllm::reshape_and_cache_flash_kernel<(vllm::Fp8KVCacheDataType)1>(int)"] }
    "act": { categories: [Activation], families: [], any: [], none: ["backward", "bwd", "quant"],
        yes: ["void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, true>(int)"],
        no: ["void vllm::silu_and_mul_quant_kernel<float>(int)"] }
    "allreduce": { categories: [Communication], families: [], any: ["all_?reduce", "cross_device_reduce", "one_?shot", "two_?shot"], none: ["norm"],
        yes: ["void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(int)", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"],
        no: ["ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"] }
    "comm": { categories: [Communication], families: [], any: [], none: [],
        yes: ["ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"],
        no: ["attn_fwd"] }
    "rope": { categories: [Rope], families: [], any: [], none: ["backward", "bwd", "reshape_and_cache", "set_kv"],
        yes: ["void rotary_embedding_kernel<c10::BFloat16, true>(long const*, int)"],
        no: ["_fused_qk_rope_reshape_and_cache_kernel"] }
    "kv_write": { categories: [KvCache], families: [], any: ["reshape_and_cache", "store_?kv", "set_kv", "set_mla_kv", "concat_and_cache", "append_?paged", "write_kv", "store_cache"], none: ["rope", "transfer"],
        yes: ["void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(int)", "void (anonymous namespace)::store_kvcache<2048l, 4, false, long>(int)"],
        no: ["copy_all_layer_kv_cache_kernel", "void paged_attention_ll4mi_QKV_mfma16_kernel<0, (vllm::Fp8KVCacheDataType)0>(int)"] }
    "layout": { categories: [Layout], families: [], any: ["transpose", "nchw", "nhwc"], none: ["float2", "double2", "complex"],
        yes: ["batched_transpose_64x64_pack_4x4_ediv_4x4_half", "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(int)"],
        // Transposes of complex numbers are steps of a convolution by FFT, in any layout of its images.
        no: [
            "igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt256x64x8_wt64x16x4_ws1x1",
            "void transpose_readWrite_alignment_kernel<float2, float2, 1, false, 6, 4, 4>(cublasTransposeParams<float2>, float2 const*, float2*, float2 const*)",
        ] }
    "conv": { categories: [Conv], families: [], any: [], none: ["offsets", "computeoffsets"],
        yes: ["igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt256x64x8_wt64x16x4_ws1x1"],
        no: ["batched_transpose_64x64_pack_4x4_ediv_4x4_half"] }
    "gemm": { categories: [Gemm], families: [], any: [], none: ["split_?k_?reduce"],
        yes: ["Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x64x64_MI16x16x1_ISA942", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"],
        no: ["void cublasLt::splitKreduce_kernel<32, 16, int, float>(int)"] }
    "split_k": { categories: [Gemm], families: [], any: ["split_?k_?reduce"], none: [],
        yes: ["void cublasLt::splitKreduce_kernel<32, 16, int, float>(int)"],
        no: ["sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_splitk_tilesize128x128x64"] }
    "moe_gemm": { categories: [MoeGemm], families: [], any: [], none: [],
        yes: ["_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", "fused_moe_kernel"],
        no: ["_topk_forward"] }
    "route": { categories: [MoeRoute, SamplingTopk], families: [], any: ["top_?k", "rout", "gating", "moe_align", "bitmatrix"], none: ["top_?p"],
        yes: ["_topk_forward", "_combined_routing_compute", "_sum_bitmatrix_rows", "void vllm::moe::topkGatingSoftmax<4, 8, 4, 16, int>(int)"],
        no: ["_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1"] }
    "small": { categories: [MoeRoute, SamplingTopk, ScanSort, Index, Softmax, Fill, Memset, Copy, Elementwise, Reduce], families: [], any: [], none: [],
        yes: ["_combined_routing_memset", "void at::native::vectorized_gather_kernel<16, long>(char*)"],
        no: ["attn_fwd", "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1"] }
    "fill": { categories: [Fill, Memset], families: [], any: [], none: [],
        yes: ["void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul> >(int)"],
        no: ["attn_fwd"] }
    // PyTorch's foreach arithmetic, as the unfused optimizers use it; apex and FusedAdam are fused.
    "foreach": { categories: [Elementwise, Optimizer], families: [], any: ["multi_tensor_apply*binaryop", "multi_tensor_apply*pointwiseop", "multi_tensor_apply*ternaryop", "multi_tensor_apply*unaryop", "multi_tensor_apply*lerp", "multi_tensor_apply*zerofunctor"], none: ["fusedoptimizer", "<copy>"],
        yes: [
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<3>, at::native::(anonymous namespace)::PointwiseOpScalarFunctor<float, 3, 3, 0>, std::multiplies<float> >(int)",
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 1, 1, 0>, std::multiplies<float>, float>(int)",
        ],
        no: [
            "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float, float>(int)",
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, 0, false> >(int)",
        ] }
}

/// The kinds of a GPU event.
#[must_use]
pub fn kind_of(raw: RawKind, name: &str, class: &Class) -> Kinds {
    let lower = crate::head::without_parameters(crate::head::without_decoration(name));
    let lower = if raw == RawKind::Kernel { lower } else { name.to_ascii_lowercase() };
    let is = |kind: &Kind| {
        (kind.categories.is_empty() || kind.categories.contains(&class.category))
            && (kind.families.is_empty() || kind.families.contains(&class.family))
            && (kind.any.is_empty() || kind.any.iter().any(|pattern| is_match(pattern, &lower)))
            && !kind.none.iter().any(|pattern| is_match(pattern, &lower))
    };
    Kinds(KINDS.iter().enumerate().fold(0, |bits, (at, kind)| bits | (u64::from(is(kind)) << at)))
}

/// The kinds that `words`, separated by `|`, name. An unknown word names none.
#[must_use]
pub fn named(words: &str) -> Kinds {
    let bit =
        |word: &str| KINDS.iter().position(|kind| kind.word == word).map_or(0, |at| 1_u64 << at);
    Kinds(words.split('|').fold(0, |bits, word| bits | bit(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Platform, classify};

    fn kinds(name: &str) -> Kinds {
        kind_of(RawKind::Kernel, name, &classify(RawKind::Kernel, name, Platform::Unknown))
    }

    #[test]
    fn every_example_is_of_its_kind() {
        let mut wrong = Vec::new();
        for kind in KINDS {
            assert!(!kind.yes.is_empty() && !kind.no.is_empty(), "{}", kind.word);
            let own = named(kind.word);
            for name in kind.yes {
                if !kinds(name).meets(own) {
                    let class = classify(RawKind::Kernel, name, Platform::Unknown);
                    wrong.push(format!("{} lacks {name}: {class:?}", kind.word));
                }
            }
            for name in kind.no {
                if kinds(name).meets(own) {
                    wrong.push(format!("{} has {name}", kind.word));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn words_are_unique_and_fit_a_set() {
        let mut words: Vec<_> = KINDS.iter().map(|kind| kind.word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), KINDS.len());
        assert!(KINDS.len() <= 64);
        assert_eq!(named("no such kind"), Kinds(0));
    }

    #[test]
    fn copies_of_the_runtime_are_copies_on_the_device_alone() {
        let of = |name| {
            let class = classify(RawKind::Memcpy, name, Platform::Unknown);
            kind_of(RawKind::Memcpy, name, &class)
        };
        assert!(of("Memcpy DtoD (Device -> Device)").meets(named("copy")));
        assert!(!of("Memcpy DtoH (Device -> Pinned)").meets(named("copy")));
    }
}
