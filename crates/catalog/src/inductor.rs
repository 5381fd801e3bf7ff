//! Names that TorchInductor gives its Triton kernels: `triton_red_fused_add_mean_rsqrt_3`.
//!
//! The list in the name is of the graph operations that the kernel's *inputs and outputs* touch, so the
//! neighbours of a fused kernel are in it, too: `triton_red_fused_fmha_fwd_mean_pow_rsqrt_2` is an RMS
//! norm that reads an attention result. Only operations that Inductor writes itself may decide; matrix
//! products, attention and experts never do, unless the kernel is a template (`tem`, `mm`, `bmm`).

use crate::Category;
use crate::pattern::is_match;

/// Losses, as the graph's operations name them.
const LOSSES: &[&str] = &["nll_loss", "cross_entropy", "mse_loss", "smooth_l1", "kl_div"];

/// How Inductor generated the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pointwise,
    Reduction,
    Scan,
    Template,
}

/// Whether the name is one that TorchInductor gives to every kernel alike: `triton__0d1d2de` of PyTorch 2.0 and 2.1, whose
/// `unique_kernel_names` is off by default. Pointwise kernels, reductions and templates of matrix products have it.
#[must_use]
pub fn is_bare_inductor_name(name: &str) -> bool {
    let rest = name.strip_prefix("triton_").unwrap_or(name);
    rest.len() < name.len()
        && (rest.is_empty()
            || rest.strip_prefix('_').is_some_and(|arguments| {
                arguments.bytes().all(|byte| byte.is_ascii_digit() || b"dec".contains(&byte))
            }))
}

/// Category and rule of an Inductor kernel; `None` if the name is none. `name` is lower case.
#[inline(never)]
pub(crate) fn classify(name: &str) -> Option<(Category, &'static str)> {
    let rest = name.strip_prefix("triton_")?;
    let (prefix, rest) = rest.split_once('_')?;
    let kind = match prefix {
        "poi" | "for" | "unk" => Kind::Pointwise,
        "red" | "per" => Kind::Reduction,
        "spl" => Kind::Scan,
        "tem" | "mm" | "bmm" => Kind::Template,
        _ => return None,
    };
    let operations = match rest.strip_prefix("fused") {
        Some(operations) => operations,
        None if kind == Kind::Template => rest,
        None => return None,
    };
    Some(of_operations(kind, operations))
}

fn of_operations(kind: Kind, operations: &str) -> (Category, &'static str) {
    let any = |words: &[&str]| words.iter().any(|word| is_match(word, operations));
    let reduces = kind == Kind::Reduction;
    if kind == Kind::Template {
        return if any(&["flex", "attention"]) {
            (Category::Attention, "inductor.template_attention")
        } else if any(&["<conv"]) {
            (Category::Conv, "inductor.template_conv")
        } else {
            (Category::Gemm, "inductor.template")
        };
    }
    let norm_by_name =
        any(&["layer_norm", "group_norm", "rms_norm", "batch_norm", "instance_norm"]);
    if norm_by_name || (any(&["<rsqrt>"]) && any(&["<mean>", "<pow>", "<var"])) {
        (Category::Norm, "inductor.norm")
    } else if any(&["log_softmax"]) || (reduces && any(LOSSES)) {
        // (Attention has a softmax without a logarithm.)
        (Category::Loss, "inductor.loss")
    } else if any(&["softmax"]) || (reduces && any(&["<amax>"]) && any(&["<exp>"])) {
        (Category::Softmax, "inductor.softmax")
    } else if any(&[
        "<silu",
        "<gelu",
        "<relu",
        "leaky_relu",
        "<sigmoid",
        "<mish",
        "<elu>",
        "threshold_backward",
        "hardtanh",
        "hardswish",
    ]) {
        (Category::Activation, "inductor.activation")
    } else if any(LOSSES) {
        // (A gradient of the loss is an input of the whole backward pass: with an activation, that decides.)
        (Category::Loss, "inductor.loss")
    } else if any(&["<amax>", "<quantize", "<fp8", "float8"]) && (reduces || any(&["<clamp>"])) {
        (Category::Quantize, "inductor.quantize")
    } else if any(&["<cos>"]) && any(&["<sin>"]) && any(&["<neg>", "<stack>", "<cat>"]) {
        (Category::Rope, "inductor.rope")
    } else if draws(operations) {
        (Category::Random, "inductor.random")
    } else if any(&["_pool", "upsample", "interpolate"]) {
        (Category::PoolResize, "inductor.pool_resize")
    } else if kind == Kind::Scan || any(&["<cumsum>", "<cumprod>"]) {
        (Category::ScanSort, "inductor.scan")
    } else if any(&["<argmax>", "<argmin>", "<topk>", "<sort>"]) {
        (Category::SamplingTopk, "inductor.sampling_topk")
    } else if only_moves_data(operations) {
        (Category::Copy, "inductor.copy")
    } else if any(&["<embedding", "<index>", "<index_put", "<index_select", "<gather>", "<scatter"])
        && !reduces
    {
        (Category::Index, "inductor.index")
    } else if reduces {
        (Category::Reduce, "inductor.reduce")
    } else {
        (Category::Elementwise, "inductor.elementwise")
    }
}

/// Whether random numbers are drawn. (The gradient of a dropout multiplies with the mask that its forward pass has drawn.)
fn draws(operations: &str) -> bool {
    let operations = operations.replace("dropout_backward", "");
    let words = ["dropout", "bernoulli", "<rand", "inductor_seeds"];
    words.iter().any(|word| is_match(word, &operations))
}

/// Whether the list holds at least one operation and nothing but views, copies and concatenations. (Attention is no
/// work of such a kernel: it makes its inputs ready, or takes its result.)
fn only_moves_data(operations: &str) -> bool {
    const ATTENTION: &[&str] =
        &["scaled", "dot", "product", "flash", "efficient", "fused", "cudnn", "attention"];
    const MOVES: &[&str] = &[
        "unsafe",
        "view",
        "clone",
        "transpose",
        "permute",
        "cat",
        "slice",
        "split",
        "with",
        "sizes",
        "to",
        "copy",
        "unbind",
        "stack",
        "select",
        "expand",
        "squeeze",
        "unsqueeze",
        "as",
        "strided",
        "reshape",
        "t",
        "contiguous",
        "flatten",
        "unflatten",
        "detach",
        "alias",
        "chunk",
        "convert",
        "element",
        "type",
        "lift",
        "fresh",
    ];
    let beside_attention = operations.contains("attention");
    let skipped = |word: &str| {
        word.bytes().all(|b| b.is_ascii_digit()) || (beside_attention && ATTENTION.contains(&word))
    };
    let mut n = 0;
    let all_move = operations.split('_').filter(|word| !skipped(word)).all(|word| {
        n += 1;
        MOVES.contains(&word)
    });
    all_move && n > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use Category::*;

    #[test]
    fn bare_names() {
        for name in ["triton__0d1d2d3de", "triton__0d1d2de3", "triton_", "triton__0d1c"] {
            assert!(is_bare_inductor_name(name), "{name}");
        }
        for name in ["triton_poi_fused_add_0", "triton__add", "triton", "my_triton__0d"] {
            assert!(!is_bare_inductor_name(name), "{name}");
        }
    }

    #[test]
    fn neighbours_do_not_decide() {
        for (name, category) in [
            ("triton_red_fused_fmha_v3_fwd_mean_pow_rsqrt_2", Norm),
            ("triton_poi_fused_constant_pad_nd_moe_forward_0", Elementwise),
            ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_1", Norm),
            ("triton_red_fused_add_addmm_mul_native_layer_norm_split_unsqueeze_view_16", Norm),
            ("triton_poi_fused_addmm_gelu_view_15", Activation),
            ("triton_poi_fused__scaled_dot_product_flash_attention_add_mul_10", Elementwise),
            ("triton_poi_fused__scaled_dot_product_flash_attention_cat_transpose_view_10", Copy),
            ("triton_poi_fused__unsafe_view_clone_slice_transpose_13", Copy),
            ("triton_poi_fused__to_copy_1", Copy),
            ("triton_poi_fused_0", Elementwise),
            ("triton_poi_fused_arange_cat_cos_div_exp_mul_sin_unsqueeze_0", Rope),
            ("triton_per_fused__softmax_add_3", Softmax),
            ("triton_red_fused_abs_amax_clamp_mul_4", Quantize),
            ("triton_poi_fused_add_mul_sum_2", Elementwise),
            ("triton_red_fused_sum_7", Reduce),
            ("triton_tem_fused_addmm_1", Gemm),
            ("triton_tem_fused_flex_attention_0", Attention),
            ("triton_mm_5", Gemm),
            ("triton_poi_fused_embedding_0", Index),
            ("triton_spl_fused_cumsum_1", ScanSort),
            ("triton_poi_fused_max_pool2d_with_indices_3", PoolResize),
            ("triton_poi_fused_add_addmm_native_dropout_view_13", Random),
            ("triton_poi_fused_native_dropout_native_dropout_backward_2", Random),
            ("triton_poi_fused_native_dropout_backward_view_1", Elementwise),
            ("triton_red_fused_native_dropout_backward_sum_view_2", Reduce),
        ] {
            assert_eq!(classify(name).map(|(c, _)| c), Some(category), "{name}");
        }
        assert_eq!(classify("triton_scaled_mm_kernel"), None);
        assert_eq!(classify("triton_red"), None);
    }
}
