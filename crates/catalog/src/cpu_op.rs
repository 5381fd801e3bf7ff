//! Classifies kernels without a category by the operator that launched them.

use crate::Category;
use crate::pattern::is_match;

/// First match wins, on the lower-case operator name.
const RULES: &[(Category, &[&str])] = {
    use Category::*;
    &[
        (Communication, &["nccl", "rccl", "^c10d::", "record_param_comms"]),
        (Attention, &["attention", "sdpa", "flash", "fmha", "mha"]),
        (
            Sparse,
            &[
                "aten::_?sparse",
                "to_sparse",
                "sparse_csr",
                "sparse_coo",
                "spmm",
                "_coalesce",
                "aten::coalesce",
            ],
        ),
        (Gemm, &["mm$", "matmul", "linear", "bmm", "addmm", "_scaled_mm", "einsum", "baddbmm"]),
        (Conv, &["conv"]),
        (Norm, &["norm"]),
        (Softmax, &["softmax"]),
        (Loss, &["_loss", "cross_entropy"]),
        (Activation, &["silu", "gelu", "relu", "sigmoid", "swiglu"]),
        (Copy, &["copy_", "contiguous", "clone", "aten::cat", "aten::to$", "_to_copy"]),
        (PoolResize, &["pool", "upsample"]),
        (SamplingTopk, &["topk", "argmax", "multinomial", "aten::sort"]),
        (ScanSort, &["cumsum", "nonzero", "unique"]),
        (Random, &["dropout", "aten::rand", "aten::normal_", "aten::uniform_", "bernoulli"]),
        (Index, &["index", "gather", "scatter", "embedding"]),
        (Fill, &["aten::fill_", "aten::zero_", "aten::zeros", "aten::ones"]),
        (Reduce, &["sum", "mean", "max", "min", "all$", "any$"]),
        (
            Elementwise,
            &[
                "^aten::add",
                "^aten::mul",
                "^aten::sub",
                "^aten::div",
                "^aten::neg",
                "^aten::pow",
                "^aten::exp",
                "^aten::where",
            ],
        ),
    ]
};

/// The category of the work that the operator `op` (`aten::addmm`) launches; `None` if the operator is not known.
///
/// Only for kernels that [`crate::classify`] left at [`Category::Other`]: an operator launches helper
/// kernels too, so a name that says something knows better.
#[must_use]
pub fn category_of_cpu_op(op: &str) -> Option<Category> {
    let op = op.to_ascii_lowercase();
    RULES
        .iter()
        .find(|(_, any)| any.iter().any(|pattern| is_match(pattern, &op)))
        .map(|(category, _)| *category)
}

/// Families of operators in a report of resources, by parts of the name where the category does not tell.
const FAMILIES: &[(&str, &[&str])] = &[
    ("dataloader", &["dataloader"]),
    ("optimizer", &["optimizer", "adam", "sgd", "_foreach_", "lamb"]),
    ("regularization", &["dropout"]),
    ("autograd", &["^autograd::engine"]),
];

/// The family of an operator in a report of resources: `matmul`, `normalization`,
/// `data movement`, ...; `other` where nothing tells.
#[must_use]
pub fn op_family(op: &str) -> &'static str {
    let lower = op.to_ascii_lowercase();
    let named = FAMILIES.iter().find(|(_, any)| any.iter().any(|part| is_match(part, &lower)));
    if let Some((family, _)) = named {
        return family;
    }
    match category_of_cpu_op(op) {
        Some(Category::Gemm) => "matmul",
        Some(Category::Conv) => "convolution",
        Some(Category::Attention) => "attention",
        Some(Category::Norm | Category::Softmax) => "normalization",
        Some(Category::Activation) => "activation",
        Some(Category::Copy) => "data movement",
        Some(Category::Communication) => "communication",
        Some(Category::Elementwise | Category::Reduce) => "elementwise",
        Some(Category::Index) => "indexing",
        _ => "other",
    }
}

/// Whether the operator `op` picks tokens or the largest values, so that what sorts for it samples.
#[must_use]
pub fn samples(op: &str) -> bool {
    let op = op.to_ascii_lowercase();
    ["topk", "top_k", "top_p", "multinomial", "sampl"].iter().any(|word| op.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_of_operators() {
        for (op, family) in [
            ("aten::addmm", "matmul"),
            ("aten::_softmax", "normalization"),
            ("aten::native_layer_norm", "normalization"),
            ("aten::native_dropout", "regularization"),
            ("aten::_fused_adamw_", "optimizer"),
            ("aten::copy_", "data movement"),
            ("aten::common_thing", "other"),
            ("aten::empty", "other"),
            ("autograd::engine::evaluate_function: MmBackward0", "autograd"),
        ] {
            assert_eq!(op_family(op), family, "{op}");
        }
    }

    #[test]
    fn what_samples() {
        for op in ["aten::topk", "sgl_kernel::top_k_top_p_sampling", "aten::multinomial"] {
            assert!(samples(op), "{op}");
        }
        for op in ["aten::_index_put_impl_", "aten::sort", "aten::embedding_dense_backward"] {
            assert!(!samples(op), "{op}");
        }
    }

    #[test]
    fn operators() {
        for (op, category) in [
            ("aten::addmm", Some(Category::Gemm)),
            ("aten::linear", Some(Category::Gemm)),
            ("aten::_sparse_addmm", Some(Category::Sparse)),
            ("aten::_to_sparse_csr", Some(Category::Sparse)),
            ("aten::cudnn_convolution", Some(Category::Conv)),
            ("aten::_scaled_dot_product_flash_attention", Some(Category::Attention)),
            ("FlashAttnFunc", Some(Category::Attention)),
            ("aten::native_layer_norm", Some(Category::Norm)),
            ("aten::linalg_vector_norm", Some(Category::Norm)),
            ("aten::_softmax", Some(Category::Softmax)),
            ("aten::copy_", Some(Category::Copy)),
            ("aten::to", Some(Category::Copy)),
            ("aten::index_select", Some(Category::Index)),
            ("aten::sum", Some(Category::Reduce)),
            ("aten::add_", Some(Category::Elementwise)),
            ("mylib::thing", None),
        ] {
            assert_eq!(category_of_cpu_op(op), category, "{op}");
        }
    }
}
