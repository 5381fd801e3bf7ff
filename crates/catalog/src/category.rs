//! Kernel categories, and the coarser groups of reports.

/// Coarse class for overlap: which kernels can run concurrently with which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OverlapClass {
    /// Keeps the arithmetic units busy: GEMM, attention, convolution.
    Compute,
    /// Moves data between devices.
    Communication,
    /// Short, bandwidth-bound kernels.
    Elementwise,
    /// Moves data within a device or between device and host.
    Memory,
    /// Unknown work.
    Other,
}

impl OverlapClass {
    /// The word used in files.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Communication => "communication",
            Self::Elementwise => "elementwise",
            Self::Memory => "memory",
            Self::Other => "other",
        }
    }
}

/// Declares the enum and its table in one place, so that a category cannot lack a column.
macro_rules! categories {
    ($($variant:ident { $id:literal, $title:literal, $bucket:literal, $overlap:ident, $doc:literal })*) => {
        /// What a kernel does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Category { $(#[doc = $doc] $variant,)* }

        impl Default for Category {
            fn default() -> Self {
                Self::Other
            }
        }

        impl Category {
            /// Every category, in the order reports list them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word used in files, such as `moe_gemm`.
            #[must_use]
            pub const fn id(self) -> &'static str { match self { $(Self::$variant => $id,)* } }

            /// The category with this id.
            #[must_use]
            pub fn from_id(id: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|category| category.id() == id)
            }

            /// The words shown to people, as in "Most GPU time goes to MoE GEMM".
            #[must_use]
            pub const fn title(self) -> &'static str { match self { $(Self::$variant => $title,)* } }

            /// What the category means, in one sentence.
            #[must_use]
            pub const fn help(self) -> &'static str { match self { $(Self::$variant => $doc,)* } }

            /// The reporting group of the ROCm artifact contract.
            #[must_use]
            pub const fn bucket(self) -> &'static str { match self { $(Self::$variant => $bucket,)* } }

            /// The class for questions of overlap.
            #[must_use]
            pub const fn overlap_class(self) -> OverlapClass {
                match self { $(Self::$variant => OverlapClass::$overlap,)* }
            }
        }
    };
}

categories! {
    Gemm { "gemm", "GEMM", "GEMM / Linear", Compute, "Dense matrix products of linear layers." }
    Attention { "attention", "Attention", "Attention", Compute, "Softmax attention: prefill, decode and backward." }
    LinearAttn { "linear_attn", "Linear attention", "Attention", Compute, "State-space and linear-attention scans with their short convolutions." }
    MoeGemm { "moe_gemm", "MoE GEMM", "MoE / Routing", Compute, "Grouped matrix products of MoE experts." }
    MoeRoute { "moe_route", "MoE routing", "MoE / Routing", Elementwise, "Expert selection, token sorting and permutation." }
    Rnn { "rnn", "Recurrent layer", "GEMM / Linear", Compute, "Steps of an LSTM or a GRU that run as one kernel." }
    Conv { "conv", "Convolution", "Convolution", Compute, "Convolutions, including implicit GEMM, Winograd and FFT." }
    Sparse { "sparse", "Sparse", "GEMM / Linear", Elementwise, "Products with sparse matrices, and changes of their format." }
    Communication { "communication", "Communication", "Communication", Communication, "Collectives and transfers between devices." }
    Quantize { "quantize", "Quantization", "Quantization", Elementwise, "Quantization, dequantization and scale computation." }
    Norm { "norm", "Norm", "Norm / Elementwise", Elementwise, "Layer, RMS, batch and group normalisation." }
    Rope { "rope", "Rotary embedding", "Norm / Elementwise", Elementwise, "Rotary position embedding." }
    Softmax { "softmax", "Softmax", "Norm / Elementwise", Elementwise, "Softmax outside attention kernels." }
    Activation { "activation", "Activation", "Norm / Elementwise", Elementwise, "SiLU, GELU, ReLU and gated variants." }
    Elementwise { "elementwise", "Elementwise", "Norm / Elementwise", Elementwise, "Other pointwise arithmetic." }
    Reduce { "reduce", "Reduction", "Norm / Elementwise", Elementwise, "Sums, means and maxima." }
    Loss { "loss", "Loss", "Norm / Elementwise", Elementwise, "Loss functions." }
    Random { "random", "Random", "Norm / Elementwise", Elementwise, "Random number generation and dropout." }
    Optimizer { "optimizer", "Optimizer", "Norm / Elementwise", Elementwise, "Parameter updates and gradient clipping." }
    PoolResize { "pool_resize", "Pooling and resizing", "Norm / Elementwise", Elementwise, "Pooling, interpolation and sampling of images." }
    Layout { "layout", "Layout change", "Norm / Elementwise", Elementwise, "Transposition, padding and shuffling." }
    Index { "index", "Indexing", "Norm / Elementwise", Elementwise, "Gather, scatter and embedding lookup." }
    ScanSort { "scan_sort", "Scan, sort and select", "Norm / Elementwise", Elementwise, "Prefix sums, sorting, compaction and search." }
    SamplingTopk { "sampling_topk", "Sampling and top-k", "Norm / Elementwise", Elementwise, "Token sampling, top-k and arg-max." }
    Memcpy { "memcpy", "Memcpy", "Memory / Scheduler", Memory, "Copies by the copy engine or the runtime's blit kernel." }
    Memset { "memset", "Memset", "Memory / Scheduler", Memory, "Fills by the runtime." }
    Copy { "copy", "Copy kernel", "Memory / Scheduler", Memory, "Copies, casts and concatenations that run as kernels." }
    Fill { "fill", "Fill kernel", "Memory / Scheduler", Memory, "Fills that run as kernels." }
    KvCache { "kv_cache", "KV cache", "Memory / Scheduler", Memory, "Writes to and copies within the key-value cache." }
    ServingMeta { "serving_meta", "Serving metadata", "Memory / Scheduler", Memory, "Index tables, positions and bookkeeping of an inference server." }
    Wait { "wait", "Waiting", "Memory / Scheduler", Other, "Kernels that only wait: requested sleeps and delays." }
    Other { "other", "Other", "Other", Other, "Not classified." }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_lower_case() {
        let mut ids: Vec<_> = Category::ALL.iter().map(|c| c.id()).collect();
        ids.sort_unstable();
        let n = ids.len();
        ids.dedup();
        assert_eq!(n, ids.len());
        for category in Category::ALL {
            assert_eq!(Category::from_id(category.id()), Some(*category));
        }
        assert_eq!(Category::from_id("nonsense"), None);
        assert!(ids.iter().all(|id| id.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
    }

    #[test]
    fn a_copy_kernel_is_no_memcpy_but_both_are_memory() {
        assert_ne!(Category::Copy, Category::Memcpy);
        assert_eq!(Category::Copy.overlap_class(), OverlapClass::Memory);
        assert_eq!(Category::Memcpy.overlap_class(), OverlapClass::Memory);
        assert_eq!(Category::MoeGemm.overlap_class(), OverlapClass::Compute);
        assert_eq!(Category::MoeRoute.overlap_class(), OverlapClass::Elementwise);
    }
}
