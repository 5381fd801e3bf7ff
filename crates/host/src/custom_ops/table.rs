//! The custom ops of vLLM, SGLang, AITER and FlashAttention whose operations are counted, and those whose arguments do not
//! determine them.
//!
//! Argument numbers count every argument of the schema, from 0. A row's source is a file of the project that declares the schema,
//! or a trace in which the arguments were seen. Where releases differ, the formula compares sizes with shapes and gives no figure
//! if they disagree.

use super::Unknown;
use super::formulas::{Experts, Formula, Keys, Pairs, Product, Sequences, Stage, ValueSize, Width};
use crate::flops::{Attention, Corner, Layout};

/// Ops with one formula.
pub(super) struct Row {
    /// Their names.
    pub names: &'static [&'static str],
    /// Their operations.
    pub formula: Formula,
    /// The arguments whose number format is that of the arithmetic, if they agree.
    pub operands: &'static [usize],
    /// Tensors that are read or written as a whole, each once. Empty where a part may be left out: the bytes are then not counted.
    pub moved: &'static [usize],
    /// Where the argument numbers come from.
    pub source: &'static str,
}

const VLLM: &str = "vLLM csrc/torch_bindings.cpp, csrc/libtorch_stable/torch_bindings.cpp";
const VLLM_MOE: &str = "vLLM csrc/moe/torch_bindings.cpp";
const VLLM_PYTHON: &str = "vLLM model_executor/layers/fused_moe/fused_moe.py";
const VLLM_TRACE: &str = "vLLM trace of an MI300X";
const SGLANG: &str = "SGLang sgl-kernel/csrc/common_extension.cc";
const SGLANG_PYTHON: &str = "SGLang layers/moe/fused_moe_triton/fused_moe.py";
const SGLANG_FLASH: &str = "SGLang sgl-kernel/csrc/flash_extension.cc";
const AITER: &str = "AITER aiter/ops";
const AITER_MOE: &str = "AITER aiter/fused_moe.py, aiter/ops/moe_op.py";
const AITER_MHA: &str = "AITER aiter/ops/mha.py";
const AITER_TRACE: &str = "SGLang trace of an MI300X, AITER aiter/ops";
const FLASH: &str = "flash-attention flash_attn/flash_attn_interface.py";
const FLASH_VLLM: &str = "vllm-project/flash-attention csrc/common/pytorch_shim.h and flash_api";
const FLASH_MLA: &str = "SGLang and vLLM, flash_mla registration";

/// The result is an argument.
const fn into(result: usize, left: usize, packed: i128) -> Formula {
    let columns = Width::Result(result);
    Formula::Product(Product { left, packed, columns, grouped: false })
}

/// The same with rows of several experts.
const fn grouped_into(result: usize, left: usize, packed: i128) -> Formula {
    let columns = Width::Result(result);
    Formula::Product(Product { left, packed, columns, grouped: true })
}

/// `x[..,K]` times the transpose of `W[..,N,K]`.
const fn rows(left: usize, weight: usize, packed: i128) -> Formula {
    let columns = Width::Rows(weight);
    Formula::Product(Product { left, packed, columns, grouped: false })
}

/// `x[..,K]` times `W[..,K,N]`, with so many columns in an element of `W`.
const fn columns(left: usize, weight: usize, packed_columns: i128) -> Formula {
    let columns = Width::Columns(weight, packed_columns);
    Formula::Product(Product { left, packed: 1, columns, grouped: false })
}

const fn experts(hidden: usize, pairs: Pairs) -> Formula {
    Formula::Experts(Experts { hidden, pairs })
}

const fn stage(left: usize, weights: usize, pairs: Pairs) -> Formula {
    Formula::Stage(Stage { left, weights, pairs })
}

/// Attention of flash-attn and AITER: batch, sequence, heads, size; the mask is aligned at the bottom right.
const fn dense(
    query: usize,
    causal: usize,
    backward: bool,
    window: usize,
    packed: Option<usize>,
) -> Formula {
    let at = Attention {
        query,
        layout: Layout::SequenceFirst,
        causal,
        mask_number: false,
        backward,
        packed: None,
        corner: Corner::BottomRight,
    };
    Formula::Dense(at, Some(window), packed)
}

const fn sequences(
    query: usize,
    value: usize,
    offsets: Option<usize>,
    keys: Keys,
    (causal, window): (Option<usize>, Option<usize>),
    backward: bool,
) -> Formula {
    let value = ValueSize::LastOf(value);
    Formula::Sequences(Sequences { query, value, offsets, keys, causal, window, backward })
}

const fn row(
    names: &'static [&'static str],
    formula: Formula,
    operands: &'static [usize],
    moved: &'static [usize],
    source: &'static str,
) -> Row {
    Row { names, formula, operands, moved, source }
}

/// Products of matrices.
#[rustfmt::skip]
const PRODUCTS: &[Row] = &[
    row(&["vllm::rocm_unquantized_gemm"], rows(0, 1, 1), &[0, 1], &[0, 1], VLLM_TRACE),
    row(&["_C::cutlass_scaled_mm", "_C::cutlass_scaled_mm_azp"], into(0, 1, 1), &[1, 2], &[0, 1, 2], VLLM),
    // Two values of 4 bits are one element.
    row(&["_C::cutlass_scaled_fp4_mm"], into(0, 1, 2), &[], &[0, 1, 2], VLLM),
    row(&["sgl_kernel::cutlass_scaled_fp4_mm"], into(0, 1, 2), &[], &[0, 1, 2], SGLANG),
    // Weights of 4 or 8 bits are unpacked to the format of the left matrix.
    row(
        &["_C::marlin_gemm", "_C::gptq_marlin_gemm", "_C::awq_marlin_gemm", "_C::fp8_marlin_gemm", "_C::marlin_qqq_gemm"],
        Formula::Sizes, &[0], &[0], VLLM,
    ),
    row(&["sgl_kernel::gptq_marlin_gemm"], Formula::Sizes, &[0], &[0], SGLANG),
    row(&["_C::awq_gemm"], columns(0, 1, 8), &[0], &[0, 1], VLLM),
    row(&["_C::gptq_gemm"], columns(0, 1, 1), &[0], &[0, 1], VLLM),
    row(&["sgl_kernel::gptq_gemm"], columns(0, 1, 1), &[0], &[0, 1], SGLANG),
    row(
        &["_C::allspark_w8a16_gemm"],
        Formula::Product(Product { left: 0, packed: 1, columns: Width::Value(4), grouped: false }), &[0], &[0, 1], VLLM,
    ),
    row(&["_C::dsv3_fused_a_gemm", "_C::fp32_router_gemm"], into(0, 1, 1), &[1, 2], &[0, 1, 2], VLLM),
    row(&["sgl_kernel::dsv3_fused_a_gemm", "sgl_kernel::dsv3_router_gemm"], into(0, 1, 1), &[1, 2], &[0, 1, 2], SGLANG),
    row(
        &["sgl_kernel::fp8_scaled_mm", "sgl_kernel::int8_scaled_mm", "sgl_kernel::fp8_blockwise_scaled_mm"],
        columns(0, 1, 1), &[0, 1], &[0, 1], SGLANG,
    ),
    row(&["sgl_kernel::bmm_fp8"], into(2, 0, 1), &[0, 1], &[0, 1, 2], SGLANG),
    row(&["aiter::gemm_a16w16"], rows(0, 1, 1), &[0, 1], &[0, 1], AITER_TRACE),
    row(&["aiter::gemm_a16w16_asm", "aiter::_gemm_a16w16_asm"], into(2, 0, 1), &[0, 1], &[0, 1, 2], AITER),
    row(
        &[
            "aiter::gemm_a8w8_ck", "aiter::gemm_a8w8_asm", "aiter::_gemm_a8w8_asm", "aiter::gemm_a8w8_bpreshuffle_ck",
            "aiter::gemm_a8w8_bpreshuffle_cktile", "aiter::gemm_a8w8_blockscale_ck", "aiter::gemm_a8w8_blockscale_cktile",
            "aiter::gemm_a8w8_blockscale_bpreshuffle_ck", "aiter::gemm_a8w8_blockscale_bpreshuffle_cktile",
            "aiter::flatmm_a8w8_blockscale_asm", "aiter::_flatmm_a8w8_blockscale_asm",
        ],
        into(4, 0, 1), &[0, 1], &[0, 1, 4], AITER,
    ),
    row(
        &["aiter::gemm_a8w8_blockscale_bpreshuffle_asm", "aiter::_gemm_a8w8_blockscale_bpreshuffle_asm"],
        into(2, 0, 1), &[0, 1], &[0, 1, 2], AITER,
    ),
    row(
        &["aiter::gemm_a8w8", "aiter::gemm_a8w8_bpreshuffle", "aiter::gemm_a8w8_blockscale", "aiter::gemm_a8w8_blockscale_bpreshuffle"],
        rows(0, 1, 1), &[0, 1], &[0, 1], AITER,
    ),
    row(&["aiter::gemm_a4w4_asm", "aiter::_gemm_a4w4_asm", "aiter::gemm_a4w4_blockscale"], into(4, 0, 2), &[], &[0, 1, 4], AITER),
    row(&["aiter::gemm_a4w4"], rows(0, 1, 2), &[], &[0, 1], AITER),
    row(&["aiter::batched_gemm_a8w8"], into(4, 0, 1), &[0, 1], &[0, 1, 4], AITER),
    row(&["aiter::batched_gemm_bf16"], into(2, 0, 1), &[0, 1], &[0, 1, 2], AITER),
];

/// Products of experts: how many tokens each expert has is in GPU memory, and with expert parallelism other ranks compute a part of
/// the pairs.
#[rustfmt::skip]
const EXPERTS: &[Row] = &[
    row(
        &["vllm::fused_experts", "vllm::inplace_fused_experts", "vllm::outplace_fused_experts", "vllm::rocm_aiter_fused_moe"],
        experts(0, Pairs::Elements(4)), &[0, 1, 2], &[], VLLM_PYTHON,
    ),
    row(
        &["sglang::inplace_fused_experts", "sglang::outplace_fused_experts"],
        experts(0, Pairs::Elements(4)), &[0, 1, 2], &[], SGLANG_PYTHON,
    ),
    row(&["aiter::fused_moe_"], experts(0, Pairs::Elements(4)), &[0, 1, 2], &[], AITER_MOE),
    row(
        &[
            "aiter::fmoe", "aiter::fmoe_g1u1", "aiter::fmoe_g1u1_a16", "aiter::fmoe_g1u1_tkw1", "aiter::fmoe_int8_g1u0",
            "aiter::fmoe_int8_g1u0_a16", "aiter::fmoe_fp8_blockscale_g1u1",
        ],
        experts(1, Pairs::PerToken(8)), &[1, 2, 3], &[], AITER_MOE,
    ),
    row(&["aiter::ck_moe_stage1", "aiter::moe_stage1_g1u1"], stage(0, 1, Pairs::Rows(6)), &[0, 1], &[], AITER_MOE),
    row(&["aiter::ck_moe_stage2"], stage(0, 2, Pairs::Rows(0)), &[0, 2], &[], AITER_MOE),
    row(&["aiter::moe_cktile2stages_gemm1_ck"], stage(0, 1, Pairs::Rows(2)), &[0, 1], &[], AITER_MOE),
    row(&["aiter::moe_cktile2stages_gemm2_ck"], stage(0, 1, Pairs::Rows(0)), &[0, 1], &[], AITER_MOE),
    row(&["aiter::deepgemm", "aiter::deepgemm_ck"], grouped_into(2, 0, 1), &[0, 1], &[], AITER),
    row(&["_C::cutlass_moe_mm"], grouped_into(0, 1, 1), &[1, 2], &[], VLLM),
    row(&["_C::cutlass_w4a8_moe_mm"], grouped_into(0, 1, 1), &[1], &[], VLLM),
    row(&["_C::cutlass_fp4_group_mm", "_C::cutlass_mxfp4_group_mm"], grouped_into(0, 1, 2), &[], &[], VLLM),
    row(&["sgl_kernel::cutlass_fp4_group_mm"], grouped_into(0, 1, 2), &[], &[], SGLANG),
    row(&["sgl_kernel::cutlass_w4a8_moe_mm"], grouped_into(0, 1, 1), &[1], &[], SGLANG),
    row(&["sgl_kernel::fp8_blockwise_scaled_grouped_mm"], grouped_into(0, 6, 1), &[6, 7], &[], SGLANG),
    row(&["_moe_C::moe_wna16_gemm"], grouped_into(1, 0, 1), &[0], &[], VLLM_MOE),
    row(&["_moe_C::marlin_gemm_moe"], Formula::ExpertSizes(Pairs::Elements(4), 16), &[0], &[], VLLM_MOE),
    row(&["sgl_kernel::moe_wna16_marlin_gemm"], Formula::ExpertSizes(Pairs::Elements(11), 13), &[0], &[], SGLANG),
];

/// Attention without a cache of pages, or with the sequences' maxima among the arguments.
#[rustfmt::skip]
const ATTENTION: &[Row] = &[
    row(&["flash_attn::_flash_attn_forward"], dense(0, 5, false, 6, None), &[0, 1, 2], &[0, 1, 2], FLASH),
    row(&["flash_attn::_flash_attn_backward"], dense(1, 11, true, 12, None), &[1, 2, 3], &[0, 1, 2, 3, 4], FLASH),
    row(&["aiter::fmha_v3_fwd"], dense(0, 5, false, 6, None), &[0, 1, 2], &[0, 1, 2], AITER_MHA),
    row(&["aiter::_flash_attn_forward"], dense(0, 5, false, 6, Some(17)), &[0, 1, 2], &[0, 1, 2], AITER_MHA),
    // Newer releases have the offsets of packed sequences at 11, older ones the result.
    row(&["aiter::mha_fwd"], dense(0, 5, false, 6, Some(11)), &[0, 1, 2], &[0, 1, 2], AITER_MHA),
    row(&["aiter::mha_bwd", "aiter::fmha_v3_bwd"], dense(1, 8, true, 9, None), &[1, 2, 3], &[0, 1, 2, 3, 4], AITER_MHA),
    row(
        &["flash_attn::_flash_attn_varlen_forward"],
        sequences(0, 2, Some(3), Keys::Longest(6), (Some(9), Some(10)), false), &[0, 1, 2], &[], FLASH,
    ),
    row(
        &["flash_attn::_flash_attn_varlen_backward"],
        sequences(1, 3, Some(9), Keys::Longest(12), (Some(15), Some(16)), true), &[1, 2, 3], &[], FLASH,
    ),
    // (The number of the causal argument has moved between releases: all pairs are a bound, too.)
    row(
        &["aiter::mha_varlen_fwd", "aiter::fmha_v3_varlen_fwd"],
        sequences(0, 2, Some(3), Keys::Longest(6), (None, None), false), &[0, 1, 2], &[], AITER_MHA,
    ),
    row(
        &["aiter::mha_varlen_bwd", "aiter::fmha_v3_varlen_bwd"],
        sequences(1, 3, Some(6), Keys::Longest(9), (None, None), true), &[1, 2, 3], &[], AITER_MHA,
    ),
    row(
        &["aiter::mha_batch_prefill"],
        sequences(0, 2, Some(3), Keys::Longest(7), (Some(12), Some(13)), false), &[0, 1, 2], &[], AITER_TRACE,
    ),
    row(
        &["_vllm_fa2_C::varlen_fwd"],
        sequences(0, 2, Some(4), Keys::Longest(11), (Some(15), Some(16)), false), &[0, 1, 2], &[], FLASH_VLLM,
    ),
    row(
        &["flash_attn_3::fwd", "sgl_kernel::fwd", "_vllm_fa3_C::fwd"],
        sequences(0, 2, Some(7), Keys::LongestOrPages(13, (14, 1)), (Some(24), Some(25)), false), &[0, 1, 2], &[], SGLANG_FLASH,
    ),
    // The cache is found by the name of the layer, and whether the layer has a window is not recorded.
    row(
        &["vllm::unified_attention", "vllm::unified_attention_with_output"],
        sequences(0, 2, None, Keys::NotRecorded, (None, None), false), &[0, 1, 2], &[], VLLM_TRACE,
    ),
    row(
        &["aiter::paged_attention_ragged"], sequences(2, 0, None, Keys::NotRecorded, (None, None), false), &[2, 3, 4], &[], AITER,
    ),
    row(&["_C::paged_attention_v1"], sequences(1, 0, None, Keys::Longest(9), (None, None), false), &[1, 2, 3], &[], VLLM),
    row(&["_C::paged_attention_v2"], sequences(4, 0, None, Keys::Longest(12), (None, None), false), &[4, 5, 6], &[], VLLM),
    row(
        &["_flashmla_C::fwd_kvcache_mla", "sgl_kernel::fwd_kvcache_mla"],
        Formula::Sequences(Sequences {
            query: 0,
            value: ValueSize::Value(2),
            offsets: None,
            keys: Keys::Pages((4, 1)),
            causal: None,
            window: None,
            backward: false,
        }),
        &[0, 1], &[], FLASH_MLA,
    ),
];

/// Ops whose arguments do not determine what they do, and why. Those that have a row above, too, are counted where the annotation of
/// the pass has the lengths.
#[rustfmt::skip]
const UNKNOWN: &[(&[&str], Unknown)] = &[
    (
        &[
            "vllm::unified_attention", "vllm::unified_attention_with_output", "vllm::unified_mla_attention",
            "vllm::unified_mla_attention_with_output", "vllm::moe_forward", "vllm::moe_forward_shared", "vllm::gdn_attention",
            "vllm::gdn_attention_core", "vllm::mamba_mixer2", "vllm::mamba_mixer", "vllm::unified_kv_cache_update",
            "sglang::unified_attention_with_output",
        ],
        Unknown::ByName,
    ),
    (
        &[
            "aiter::paged_attention_ragged", "aiter::paged_attention_rocm", "aiter::paged_attention_v1", "aiter::pa_fwd_asm",
            "aiter::_pa_fwd_asm", "aiter::pa_decode_gluon", "aiter::mla_decode_stage1_asm_fwd", "aiter::mla_prefill_ps_fwd",
            "_rocm_C::paged_attention", "_C::sm100_cutlass_mla_decode", "sgl_kernel::cutlass_mla_decode",
            "sglang_profiler::attention_paged_attention_ragged",
        ],
        Unknown::KvLengths,
    ),
    (
        &[
            "_C_cache_ops::reshape_and_cache", "_C_cache_ops::reshape_and_cache_flash", "_C_cache_ops::concat_and_cache_mla",
            "aiter::reshape_and_cache", "aiter::reshape_and_cache_flash", "aiter::concat_and_cache_mla",
        ],
        Unknown::Slots,
    ),
    (
        &[
            "_moe_C::moe_align_block_size", "_moe_C::moe_permute", "_moe_C::moe_unpermute", "sgl_kernel::moe_align_block_size",
            "aiter::moe_align_block_size", "aiter::moe_sorting_fwd", "aiter::moe_sorting_opus_fwd",
        ],
        Unknown::Routing,
    ),
];

/// `sglang_profiler::name_17` is `sglang_profiler::name`: the number is that of the call site.
fn without_call_site(op: &str) -> &str {
    if !op.starts_with("sglang_profiler::") {
        return op;
    }
    let text = op.trim_end_matches(|letter: char| letter.is_ascii_digit());
    text.strip_suffix('_').unwrap_or(op)
}

/// How an op is counted.
pub(super) fn find(op: &str) -> Option<&'static Row> {
    [PRODUCTS, EXPERTS, ATTENTION].into_iter().flatten().find(|row| row.names.contains(&op))
}

/// Why the arguments of an op do not determine what it does.
pub(super) fn unknown(op: &str) -> Option<Unknown> {
    let op = without_call_site(op);
    UNKNOWN.iter().find(|(names, _)| names.contains(&op)).map(|(_, why)| *why)
}

/// Every name that has a formula, and every name that has a reason.
#[cfg(test)]
pub(super) fn names() -> [Vec<&'static str>; 2] {
    let rows = [PRODUCTS, EXPERTS, ATTENTION].into_iter().flatten();
    let names = rows.flat_map(|row| row.names.iter()).copied().collect();
    [names, UNKNOWN.iter().flat_map(|(names, _)| names.iter()).copied().collect()]
}
