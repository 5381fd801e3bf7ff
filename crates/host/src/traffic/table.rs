//! The ops whose bytes are counted. Argument numbers are those of PyTorch's schemas (`native_functions.yaml`); of extensions
//! those of events in real traces (vLLM, SGLang, AITER).

/// What an op writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// A result as large as each of these arguments, in their types.
    Like(&'static [usize]),
    /// The broadcast of the arguments, in their widest type; floats come before integers.
    Broadcast,
    /// The broadcast of the arguments, one byte each.
    Booleans,
    /// A row of the first argument for each index of the second.
    Rows,
    /// What it writes is not in the arguments: not counted.
    NotKnown,
}

/// How the bytes of an op are counted.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Arguments that it reads as a whole, each once.
    pub reads: &'static [usize],
    /// What it writes.
    pub writes: Writes,
}

const fn like(reads: &'static [usize], writes: &'static [usize]) -> Rule {
    Rule { reads, writes: Writes::Like(writes) }
}

const UNARY: Rule = like(&[0], &[0]);
const BINARY: Rule = Rule { reads: &[0, 1], writes: Writes::Broadcast };
const COMPARISON: Rule = Rule { reads: &[0, 1], writes: Writes::Booleans };
const IN_PLACE: Rule = like(&[0, 1], &[0]);
const FILL: Rule = like(&[], &[0]);
const REDUCTION: Rule = Rule { reads: &[0], writes: Writes::NotKnown };

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
    (&["aten::where"], Rule { reads: &[0, 1, 2], writes: Writes::Broadcast }),
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
    (&["aten::embedding"], Rule { reads: &[1], writes: Writes::Rows }),
    (&["_C::rms_norm", "sgl_kernel::rmsnorm", "sgl_kernel::gemma_rmsnorm", "aiter::rmsnorm"], like(&[1, 2], &[0])),
    (&["aiter::rms_norm", "aiter::rmsnorm2d_fwd_ck"], like(&[0, 1], &[0])),
    (
        &["_C::fused_add_rms_norm", "sgl_kernel::fused_add_rmsnorm", "sgl_kernel::gemma_fused_add_rmsnorm"],
        like(&[0, 1, 2], &[0, 1]),
    ),
    (&["aiter::add_rmsnorm", "aiter::rmsnorm2d_fwd_with_add_ck"], like(&[1, 2, 4], &[0, 3])),
    (
        &[
            "_C::silu_and_mul", "_C::gelu_and_mul", "_C::gelu_tanh_and_mul", "_C::mul_and_silu", "sgl_kernel::silu_and_mul",
            "sgl_kernel::gelu_and_mul", "sgl_kernel::gelu_tanh_and_mul", "aiter::silu_and_mul",
        ],
        like(&[1], &[0]),
    ),
    (&["_C::static_scaled_fp8_quant", "_C::dynamic_per_token_scaled_fp8_quant"], like(&[1], &[0])),
    (&["sglang::store_cache"], like(&[0, 1, 4], &[0, 1])),
];

/// The rule of an op.
#[must_use]
pub fn rule(op: &str) -> Option<Rule> {
    OPS.iter().find(|(names, _)| names.contains(&op)).map(|(_, rule)| *rule)
}
