//! Mistakes that substring rules were measured to make on real traces; none may come back.

use catalog::{Category, Family, Platform, RawKind, classify};

fn category(name: &str) -> Category {
    classify(RawKind::Kernel, name, Platform::Unknown).category
}

#[test]
fn words_inside_words_do_not_decide() {
    for (name, expected) in [
        // No rule knew Tensile; and `_HA_`, `_Bias_` in it look like words.
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32_MI16x16x1", Category::Gemm),
        // Bare Triton attention.
        ("attn_fwd", Category::Attention),
        ("sage_fwd", Category::Attention),
        // "mma" in "gammabeta".
        (
            "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<float, float>(long, long, float const*)",
            Category::Norm,
        ),
        (
            "void at::native::(anonymous namespace)::cuComputePartGradGammaBeta<float, float, true>(float const*)",
            Category::Norm,
        ),
        // "cutlass" in a template argument.
        (
            "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_fwd_params)",
            Category::Attention,
        ),
        // Convolution as implicit GEMM.
        ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x256x32_wt32x32x8", Category::Conv),
        (
            "_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_34GridwiseGemmMultiD_xdl_cshuffle_v3I",
            Category::Conv,
        ),
        (
            "void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_128x128_32x4_nhwc_align4>(int)",
            Category::Conv,
        ),
        // Experts.
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", Category::MoeGemm),
        ("bmm_Bfloat16_E2m1E2m1_Fp32_t128x8x512_s6_et128x8_dynBatch_sm100f", Category::MoeGemm),
        // Inductor lists neighbours.
        ("triton_red_fused_fmha_v3_fwd_mean_pow_rsqrt_2", Category::Norm),
        ("triton_poi_fused_constant_pad_nd_moe_forward_0", Category::Elementwise),
        ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_1", Category::Norm),
        // "dispatch", "combine", "memset" inside other names.
        (
            "void (anonymous namespace)::groupnorm_kernel_dispatch_down<__hip_bfloat16, 1024u>(unsigned int)",
            Category::Norm,
        ),
        ("_combined_routing_compute", Category::MoeRoute),
        ("_combined_routing_memset", Category::MoeRoute),
        // "div_" in "ediv_".
        ("batched_transpose_16x64_pack_1x4_ediv_1x2_half", Category::Layout),
        // "fp8" in a KV-cache type.
        (
            "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(int)",
            Category::KvCache,
        ),
        // "kv...cache" in a template argument of attention.
        (
            "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0, 1, 128>(int)",
            Category::Attention,
        ),
        // "copy" hid the concatenation rule; "gemm" is in "fbgemm".
        (
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)",
            Category::Copy,
        ),
        (
            "void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*, int*, int*)",
            Category::Index,
        ),
        // "act_kernel" in "exact_kernel", "transform" in "transformer_engine".
        ("fast_topk_clusters_exact_kernel", Category::SamplingTopk),
        ("void transformer_engine::gated_kernel<1, float>(int)", Category::Activation),
    ] {
        assert_eq!(category(name), expected, "{name}");
    }
}

#[test]
fn a_foreach_copy_is_no_optimizer() {
    let copy = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::CopyFunctor<long, long, 2, 1, 1>, at::native::Copy<long, long> >(int)";
    let add = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>(int)";
    let adam =
        "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)";
    assert_eq!(category(copy), Category::Copy);
    assert_eq!(category(add), Category::Elementwise);
    assert_eq!(category(adam), Category::Optimizer);
}

#[test]
fn the_raw_category_comes_before_any_name() {
    let copy = classify(RawKind::Memcpy, "gemm_like_name", Platform::Cuda);
    assert_eq!((copy.category, copy.family), (Category::Memcpy, Family::Runtime));
    let fill = classify(RawKind::Memset, "attention", Platform::Rocm);
    assert_eq!((fill.category, fill.family), (Category::Memset, Family::Runtime));
}

#[test]
fn unknown_names_are_called_other() {
    for name in
        ["", "kernel", "xyzzy_plugh", "void frobnicate<int>(int)", "☃", "_Z", "<", ">>", "((("]
    {
        let class = classify(RawKind::Kernel, name, Platform::Unknown);
        assert_eq!((class.category, class.rule), (Category::Other, ""), "{name}");
    }
}

#[test]
fn odd_text_does_not_panic() {
    let pieces = [
        "_ZN",
        "<",
        ">",
        "(",
        ")",
        "operator",
        "5aiter",
        "é",
        "::",
        "{lambda",
        "triton_red_fused_",
        "Cijk_",
        "ISA",
        "sm",
        " ",
    ];
    for a in pieces {
        for b in pieces {
            for c in pieces {
                let name = format!("{a}{b}{c}");
                let _ = classify(RawKind::Kernel, &name, Platform::Unknown);
                let _ = catalog::facts(&name);
                let _ = catalog::head(&name);
            }
        }
    }
}
