//! The ops whose bytes are counted. Argument numbers are those of PyTorch's schemas (`native_functions.yaml`); of custom ops
//! those of the source that their row names.

/// What an op writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// A result as large as each of these arguments, in their types.
    Like(&'static [usize]),
    /// The broadcast of the arguments, in their widest type; floats come before integers.
    Broadcast,
    /// The broadcast of the arguments, one byte each.
    Booleans,
    /// Those of these arguments that were recorded, in their types.
    LikeRecorded(&'static [usize]),
    /// A row of the first argument for each index of the second.
    Rows,
    /// The rotated part of the heads, in place.
    Rotated(Rotated),
    /// What it writes is not in the arguments: not counted.
    NotKnown,
}

/// Where a rotary embedding has its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotated {
    /// Number of the positions.
    pub positions: usize,
    /// The queries; the keys follow, if there are any.
    pub query: usize,
    /// The argument that is the size of a head.
    pub head: usize,
    /// The table of angles: its last dimension is the part of a head that is rotated.
    pub angles: usize,
}

/// How the bytes of an op are counted.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Arguments that it reads as a whole, each once.
    pub reads: &'static [usize],
    /// What it writes.
    pub writes: Writes,
    /// With a tensor at this argument it leaves rows out: there is no figure then.
    pub unless: Option<usize>,
}

const fn rule_of(reads: &'static [usize], writes: Writes) -> Rule {
    Rule { reads, writes, unless: None }
}

const fn like(reads: &'static [usize], writes: &'static [usize]) -> Rule {
    rule_of(reads, Writes::Like(writes))
}

const fn rotary(positions: usize, query: usize, head: usize, angles: usize) -> Rule {
    rule_of(&[], Writes::Rotated(Rotated { positions, query, head, angles }))
}

const UNARY: Rule = like(&[0], &[0]);
const BINARY: Rule = rule_of(&[0, 1], Writes::Broadcast);
const COMPARISON: Rule = rule_of(&[0, 1], Writes::Booleans);
const IN_PLACE: Rule = like(&[0, 1], &[0]);
const FILL: Rule = like(&[], &[0]);
const REDUCTION: Rule = rule_of(&[0], Writes::NotKnown);

/// Ops by name. An op in place reads and writes what the other form does.
#[rustfmt::skip]
const OPS: &[(&[&str], Rule)] = &[
    (
        &[
            "aten::relu", "aten::gelu", "aten::silu", "aten::sigmoid", "aten::tanh", "aten::exp", "aten::neg", "aten::abs",
            "aten::rsqrt", "aten::sqrt", "aten::cos", "aten::sin", "aten::log", "aten::clamp", "aten::clamp_min",
            "aten::reciprocal", "aten::erf", "aten::relu_", "aten::silu_", "aten::sigmoid_", "aten::tanh_", "aten::exp_",
            "aten::neg_", "aten::sqrt_", "aten::rsqrt_", "aten::clamp_", "aten::clamp_min_", "aten::reciprocal_",
            "aten::cumsum", "aten::_softmax", "aten::_log_softmax", "aten::hardtanh", "aten::hardswish", "aten::leaky_relu",
        ],
        UNARY,
    ),
    (
        &["aten::add", "aten::sub", "aten::rsub", "aten::mul", "aten::div", "aten::maximum", "aten::minimum", "aten::pow"],
        BINARY,
    ),
    (&["aten::add_", "aten::sub_", "aten::mul_", "aten::div_", "aten::pow_"], IN_PLACE),
    (&["aten::where"], rule_of(&[0, 1, 2], Writes::Broadcast)),
    (&["aten::addcmul_", "aten::addcdiv_"], like(&[0, 1, 2], &[0])),
    (&["aten::eq", "aten::ne", "aten::lt", "aten::gt", "aten::le", "aten::ge"], COMPARISON),
    (&["aten::copy_"], like(&[1], &[0])),
    (&["aten::fill_", "aten::zero_"], FILL),
    (
        &[
            "aten::sigmoid_backward", "aten::tanh_backward", "aten::threshold_backward", "aten::gelu_backward",
            "aten::silu_backward", "aten::_softmax_backward_data", "aten::_log_softmax_backward_data",
        ],
        like(&[0, 1], &[0]),
    ),
    (&["aten::native_layer_norm"], like(&[0, 2, 3], &[0])),
    (&["aten::_fused_rms_norm"], like(&[0, 2], &[0])),
    (
        &[
            "aten::native_group_norm", "aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm",
            "aten::native_dropout",
        ],
        UNARY,
    ),
    (
        &[
            "aten::sum", "aten::mean", "aten::var", "aten::std", "aten::max", "aten::min", "aten::amax", "aten::amin",
            "aten::argmax", "aten::argmin", "aten::norm", "aten::linalg_vector_norm", "aten::prod", "aten::any", "aten::all",
            "aten::topk", "aten::sort",
        ],
        REDUCTION,
    ),
    // The rows that are read may be the same one, which a cache then has: only the result and the indices count.
    (&["aten::embedding"], rule_of(&[1], Writes::Rows)),
];

/// Custom ops of vLLM, SGLang and AITER: (names, rule, source of the argument numbers).
#[rustfmt::skip]
const CUSTOM: &[(&[&str], Rule, &str)] = &[
    // Norms: result, input, weight.
    (&["_C::rms_norm"], like(&[1, 2], &[0]), VLLM),
    (&["sgl_kernel::rmsnorm", "sgl_kernel::gemma_rmsnorm"], like(&[1, 2], &[0]), SGLANG),
    (&["aiter::rmsnorm", "aiter::rms_norm_cu"], like(&[1, 2], &[0]), AITER),
    (&["_C::rms_norm_weightless"], like(&[1], &[0]), VLLM),
    (&["_C::fused_add_rms_norm_weightless"], like(&[0, 1], &[0, 1]), VLLM),
    (
        &["aiter::rms_norm", "aiter::rmsnorm2d_fwd", "aiter::rmsnorm2d_fwd_ck", "aiter::layer_norm", "aiter::layernorm2d_fwd"],
        like(&[0, 1], &[0]), AITER,
    ),
    (&["_C::fused_add_rms_norm"], like(&[0, 1, 2], &[0, 1]), VLLM),
    (&["sgl_kernel::fused_add_rmsnorm", "sgl_kernel::gemma_fused_add_rmsnorm"], like(&[0, 1, 2], &[0, 1]), SGLANG),
    (&["aiter::fused_add_rms_norm_cu"], like(&[0, 1, 2], &[0, 1]), AITER),
    (
        &[
            "aiter::add_rmsnorm", "aiter::rmsnorm2d_fwd_with_add", "aiter::rmsnorm2d_fwd_with_add_ck",
            "aiter::layernorm2d_fwd_with_add",
        ],
        like(&[1, 2, 4], &[0, 3]), AITER,
    ),
    // An older release has the input at 0, a newer one the result, of the same size.
    (&["aiter::_groupnorm_run"], UNARY, "xDiT trace of an MI300X, AITER aiter/ops/groupnorm.py"),
    // Norms that also quantize.
    (&["_C::rms_norm_static_fp8_quant"], like(&[1, 2], &[0]), VLLM),
    (&["_C::fused_add_rms_norm_static_fp8_quant"], like(&[1, 2, 3], &[0, 2]), VLLM),
    (
        &["_C::rms_norm_dynamic_per_token_quant", "_C::rms_norm_per_block_quant"],
        rule_of(&[1, 2, 6], Writes::LikeRecorded(&[0, 3, 6])), VLLM,
    ),
    (&["aiter::rmsnorm_quant", "aiter::rmsnorm2d_fwd_with_dynamicquant"], like(&[1, 3], &[0, 2]), AITER),
    (&["aiter::rmsnorm2d_fwd_with_smoothquant"], like(&[1, 2, 4], &[0, 3]), AITER),
    (&["aiter::add_rmsnorm_quant", "aiter::rmsnorm2d_fwd_with_add_dynamicquant"], like(&[1, 2, 5], &[0, 3, 4]), AITER),
    // Gated activations: result, input.
    (
        &[
            "_C::silu_and_mul", "_C::gelu_and_mul", "_C::gelu_tanh_and_mul", "_C::mul_and_silu", "_C::fatrelu_and_mul",
            "_C::swigluoai_and_mul", "_C::gelu_new", "_C::gelu_fast", "_C::gelu_quick", "_C::silu_and_mul_quant",
        ],
        like(&[1], &[0]), VLLM,
    ),
    (&["_C::silu_and_mul_per_block_quant"], like(&[1], &[0, 2]), VLLM),
    (&["sgl_kernel::silu_and_mul", "sgl_kernel::gelu_and_mul", "sgl_kernel::gelu_tanh_and_mul"], like(&[1], &[0]), SGLANG),
    (
        &[
            "aiter::silu_and_mul", "aiter::gelu_and_mul", "aiter::gelu_tanh_and_mul", "aiter::gelu_fast", "aiter::swiglu_and_mul",
            "aiter::scaled_silu_and_mul",
        ],
        like(&[1], &[0]), AITER,
    ),
    (&["aiter::silu_and_mul_quant"], like(&[1], &[0, 2]), AITER),
    // Quantization: result, input, scale.
    (&["_C::static_scaled_fp8_quant", "_C::static_scaled_int8_quant"], like(&[1], &[0]), VLLM),
    // (A scale for the whole tensor needs a first pass; a cache may serve the second.)
    (&["_C::dynamic_scaled_fp8_quant"], like(&[1], &[0]), VLLM),
    (&["_C::dynamic_per_token_scaled_fp8_quant", "_C::dynamic_scaled_int8_quant"], like(&[1], &[0, 2]), VLLM),
    (&["_C::per_token_group_fp8_quant", "_C::per_token_group_quant_int8"], like(&[0], &[1, 2]), VLLM),
    (
        &["sgl_kernel::sgl_per_token_group_quant_fp8", "sgl_kernel::sgl_per_token_group_quant_int8", "sgl_kernel::sgl_per_token_quant_fp8"],
        like(&[0], &[1, 2]), SGLANG,
    ),
    (&["sgl_kernel::sgl_per_tensor_quant_fp8"], like(&[0], &[1]), SGLANG),
    (&["sgl_kernel::scaled_fp4_quant"], like(&[1], &[0]), SGLANG),
    (&["aiter::static_per_tensor_quant", "aiter::dynamic_per_tensor_quant"], like(&[1], &[0]), AITER),
    (&["aiter::smoothquant_fwd"], like(&[1, 2], &[0, 3]), AITER),
    (
        &["aiter::dynamic_per_token_scaled_quant", "aiter::dynamic_per_group_scaled_quant_fp4", "aiter::dynamic_per_group_scaled_quant"],
        Rule { reads: &[1], writes: Writes::Like(&[0, 2]), unless: Some(5) }, AITER,
    ),
    // Rotary embeddings.
    (&["_C::rotary_embedding"], rotary(0, 1, 3, 4), VLLM),
    (&["sgl_kernel::rotary_embedding"], rotary(0, 1, 3, 4), "SGLang trace of an MI300X"),
    // Caches.
    (&["sglang::store_cache"], like(&[0, 1, 4], &[0, 1]), "SGLang trace of an MI300X"),
    (&["sgl_kernel::store_kv_cache"], like(&[2, 3, 4], &[3, 4]), SGLANG),
    (&["_C_cache_ops::concat_mla_q"], like(&[0, 1], &[2]), VLLM),
    (&["sgl_kernel::concat_mla_k"], like(&[1, 2], &[0]), SGLANG),
    (&["sgl_kernel::merge_state", "sgl_kernel::merge_state_v2"], like(&[0, 1, 2, 3], &[4, 5]), SGLANG),
    // Routing.
    (&["_moe_C::topk_softmax"], like(&[3], &[0, 1, 2]), VLLM_MOE),
    (&["_moe_C::moe_sum"], like(&[0], &[1]), VLLM_MOE),
    (&["sgl_kernel::topk_softmax"], like(&[2], &[0, 1]), SGLANG),
    (&["sgl_kernel::shuffle_rows"], like(&[1], &[2]), SGLANG),
    (&["sgl_kernel::top_k_renorm_probs", "sgl_kernel::top_p_renorm_probs"], like(&[0], &[1]), SGLANG),
    (&["aiter::topk_softmax"], like(&[3], &[0, 1, 2]), AITER),
    (&["aiter::biased_grouped_topk_hip"], like(&[0, 1], &[2, 3]), AITER),
    (&["aiter::moe_sum"], like(&[0], &[1]), AITER),
];

const VLLM: &str = "vLLM csrc/torch_bindings.cpp, csrc/libtorch_stable/torch_bindings.cpp";
const VLLM_MOE: &str = "vLLM csrc/moe/torch_bindings.cpp";
const SGLANG: &str = "SGLang sgl-kernel/csrc/common_extension.cc";
const AITER: &str = "AITER aiter/ops";

/// The rule of an op.
#[must_use]
pub fn rule(op: &str) -> Option<Rule> {
    let of_pytorch = OPS.iter().find(|(names, _)| names.contains(&op)).map(|(_, rule)| *rule);
    let custom = || CUSTOM.iter().find(|(names, ..)| names.contains(&op));
    of_pytorch.or_else(|| custom().map(|(_, rule, _)| *rule))
}
