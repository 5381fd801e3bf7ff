//! Kernels that follow each other in any PyTorch program and could be one.
//!
//! A chain is a list of steps, in stream order. A step names [kinds](super::kind_of) separated by `|`, with
//! a sign behind it: `?` once or not at all, `*` any number, `+` once or more, `{3}` three times or more. A
//! step that begins with `~` must be there, but its time does not count: fusing would not save it.

use std::num::NonZeroU16;

use super::kinds::{Kinds, named};
use super::{Framework, runs_on};
use crate::Platform;

/// Kernels that follow each other, and what could run instead.
#[derive(Clone, Copy, Debug)]
pub struct FuseChain {
    /// `K01`.
    pub id: &'static str,
    /// What is fused.
    pub title: &'static str,
    /// The kernels that follow each other, in words.
    pub what: &'static str,
    /// What could run instead, separated by `; `. Before what only one vendor's GPUs run stands `rocm:` or `cuda:`, before
    /// what only one framework has `vllm:` or `sglang:`.
    path: &'static str,
    /// The chains, any of which suffices.
    chains: &'static [&'static str],
    /// Each kernel that counts is at most this long, in microseconds.
    pub max_us: Option<u32>,
    /// Whether all kernels that count have the same name.
    pub same_name: bool,
    /// Whether all kernels that count are matrix products of one input: the sizes that their ops were called with, where
    /// they are known, must allow it.
    pub same_input: bool,
    /// How often it must be found.
    pub min_times: usize,
    /// The share of GPU time, in percent, below which nothing is said.
    pub min_pct: f64,
    /// The share of GPU time, in percent, from which it is said with confidence; infinite where names
    /// alone can never prove it.
    pub likely_pct: f64,
    /// Chains of higher priority take their kernels first.
    pub priority: u8,
}

/// One step of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What may stand here.
    pub kinds: Kinds,
    /// How often at least.
    pub min: u16,
    /// How often at most; no limit if `None`.
    pub max: Option<NonZeroU16>,
    /// Whether the time of what stands here counts.
    pub counts: bool,
}

impl FuseChain {
    /// What could run instead on GPUs of `platform` (if that is not known, all with whose it is) and in `framework` (if
    /// there is none, in any).
    #[must_use]
    pub fn fused_path(&self, platform: Platform, framework: Option<Framework>) -> String {
        let ways = self.path.split("; ").filter_map(|way| {
            let (marks, way) = way.rsplit_once(':').unwrap_or(("", way));
            let mut whose = "";
            for mark in marks.split_terminator(':') {
                let (fits, vendor) = match mark {
                    "rocm" => (runs_on(Platform::Rocm, platform), " (ROCm)"),
                    "cuda" => (runs_on(Platform::Cuda, platform), " (CUDA)"),
                    "vllm" => (framework.is_none_or(|of| of == Framework::Vllm), ""),
                    "sglang" => (framework.is_none_or(|of| of == Framework::Sglang), ""),
                    _ => return None,
                };
                if !fits {
                    return None;
                }
                if platform == Platform::Unknown {
                    whose = vendor;
                }
            }
            Some(format!("{way}{whose}"))
        });
        ways.collect::<Vec<_>>().join("; ")
    }

    /// The chains, each as its steps.
    pub fn steps(&self) -> impl Iterator<Item = Vec<Step>> + use<> {
        self.chains.iter().map(|chain| chain.split_ascii_whitespace().map(step).collect())
    }
}

fn step(text: &str) -> Step {
    let (counts, text) = match text.strip_prefix('~') {
        Some(text) => (false, text),
        None => (true, text),
    };
    let once = NonZeroU16::new(1);
    let (words, min, max) = if let Some(words) = text.strip_suffix('?') {
        (words, 0, once)
    } else if let Some(words) = text.strip_suffix('*') {
        (words, 0, None)
    } else if let Some(words) = text.strip_suffix('+') {
        (words, 1, None)
    } else if let Some((words, n)) = text.strip_suffix('}').and_then(|text| text.split_once('{')) {
        (words, n.parse().unwrap_or(1), None)
    } else {
        (text, 1, once)
    };
    Step { kinds: named(words), min, max, counts }
}

const BASE: FuseChain = FuseChain {
    id: "",
    title: "",
    what: "",
    path: "",
    chains: &[],
    max_us: None,
    same_name: false,
    same_input: false,
    min_times: 1,
    min_pct: 0.1,
    likely_pct: 2.0,
    priority: 0,
};

/// Every chain, in the order of their ids.
pub const CHAINS: &[FuseChain] = &[
    FuseChain {
        id: "K01",
        title: "RMSNorm out of single PyTorch kernels",
        what: "pow, mean, add, rsqrt and two mul, with casts between them,",
        path: "torch.nn.functional.rms_norm; torch.compile; rocm:AITER RMSNorm; Liger RMSNorm",
        chains: &["copy? pow mean add_number rsqrt mul copy? mul", "pow mean add_number rsqrt mul"],
        priority: 90,
        ..BASE
    },
    FuseChain {
        id: "K02",
        title: "Activation and multiplication as separate kernels",
        what: "an activation (SiLU or GELU) and the multiplication with its gate",
        path: "silu_and_mul of a serving framework; rocm:silu_and_mul of AITER; Liger SwiGLU; torch.compile",
        chains: &[
            "silu ~fill? ~gemm? ~split_k? mul",
            "mul_number pow mul_number add mul_number tanh add_number mul ~fill? ~gemm? ~split_k? mul",
            "mul_number pow mul_number add mul_number tanh add_number mul",
        ],
        priority: 70,
        ..BASE
    },
    FuseChain {
        id: "K03",
        title: "Rotary embedding out of single PyTorch kernels",
        what: "neg, cat, mul and add around queries or keys",
        path: "rotary embedding of a serving framework; rocm:rotary embedding of AITER; Liger rotary embedding; torch.compile",
        chains: &["mul neg cat mul add", "neg copy? cat mul mul? add"],
        priority: 90,
        ..BASE
    },
    FuseChain {
        id: "K04",
        title: "Attention out of matrix products and softmax",
        what: "a matrix product, scale or mask, softmax and a second matrix product",
        path: "torch.nn.functional.scaled_dot_product_attention; FlashAttention; rocm:attention of AITER",
        chains: &["gemm ~fill? aten|copy|fill* softmax aten|copy|random* ~fill? gemm"],
        priority: 80,
        ..BASE
    },
    FuseChain {
        id: "K05",
        title: "Residual add before a norm",
        what: "the residual add and the norm",
        path: "fused_add_rms_norm of a serving framework; rocm:add with norm of AITER; Liger fused add with norm; torch.compile",
        chains: &["add copy? norm", "add ~copy? ~pow ~mean ~add_number ~rsqrt"],
        priority: 60,
        ..BASE
    },
    FuseChain {
        id: "K06",
        title: "Norm or activation before quantization",
        what: "a norm or an activation and the quantization of its result",
        path: "vllm:fuse_norm_quant and fuse_act_quant of vLLM; rocm:norm or activation with quantization of AITER; torch.compile",
        chains: &["norm|act quantize"],
        priority: 60,
        ..BASE
    },
    FuseChain {
        id: "K07",
        title: "All-reduce before a norm",
        what: "an all-reduce and the norm of its result",
        path: "cuda:all-reduce with RMSNorm of FlashInfer; rocm:all-reduce with RMSNorm of AITER",
        chains: &["allreduce copy? add? copy? norm"],
        priority: 75,
        ..BASE
    },
    FuseChain {
        id: "K08",
        title: "Rotary embedding before the KV cache write",
        what: "the rotary embedding and the write to the KV cache",
        path: "rocm:vllm:fuse_rope_kvcache of vLLM with AITER; rocm:fused_qk_rope_reshape_and_cache of AITER; sglang:fused_set_kv_buffer of SGLang; torch.compile",
        chains: &["rope ~copy? kv_write"],
        priority: 60,
        ..BASE
    },
    FuseChain {
        id: "K09",
        title: "Layout changed around convolutions",
        what: "transposition and convolution",
        path: "memory_format=torch.channels_last for model and input; rocm:before ROCm 7 with PYTORCH_MIOPEN_SUGGEST_NHWC=1 and PYTORCH_MIOPEN_SUGGEST_NHWC_BATCHNORM=1, which are the default since",
        chains: &["layout{2} ~conv ~aten? layout*", "layout ~conv ~aten? layout+", "layout ~conv"],
        priority: 50,
        ..BASE
    },
    FuseChain {
        id: "K10",
        title: "Several matrix products of one input",
        what: "three matrix products of one kernel",
        path: "one product with the weights side by side (merged QKV or gate and up projection)",
        chains: &["gemm ~fill? gemm ~fill? gemm"],
        same_name: true,
        same_input: true,
        likely_pct: f64::INFINITY,
        priority: 40,
        ..BASE
    },
    FuseChain {
        id: "K11",
        title: "Short PyTorch kernels in a row",
        what: "four or more of PyTorch's elementwise kernels, 10 µs or less each,",
        path: "torch.compile; cuda:CUDA graph; rocm:HIP graph",
        chains: &["aten{4}"],
        min_times: 2,
        max_us: Some(10),
        likely_pct: f64::INFINITY,
        ..BASE
    },
    FuseChain {
        id: "K12",
        title: "Optimizer step out of many kernels",
        what: "four or more of the optimizer's kernels",
        path: "fused=True of the PyTorch optimizer; apex FusedAdam",
        chains: &["foreach{4}"],
        priority: 30,
        ..BASE
    },
    FuseChain {
        id: "K13",
        title: "Expert routing out of small kernels",
        what: "top-k, sorting and index kernels and the experts' matrix product",
        path: "rocm:topk_softmax and moe_sorting of AITER; sglang:moe_fused_gate of SGLang; routing in one kernel of a serving framework",
        chains: &["route small|route{2} ~moe_gemm"],
        max_us: Some(50),
        priority: 50,
        ..BASE
    },
    FuseChain {
        id: "K14",
        title: "Fill or reduction around split matrix products",
        what: "a fill and a matrix product, or a split matrix product and the sum over its parts,",
        path: "rocm:tuned GEMM without split-K by a search among hipBLASLt algorithms, or stream-K; cuda:tuned GEMM without split-K by a search among cuBLASLt algorithms, or stream-K",
        chains: &["fill ~gemm split_k?", "~gemm split_k"],
        priority: 20,
        ..BASE
    },
    FuseChain {
        id: "K15",
        title: "Small collectives in a row",
        what: "three or more collectives, 50 µs or less each,",
        path: "larger buckets (bucket_cap_mb), or coalescing (torch.distributed coalescing manager)",
        chains: &["comm{3}"],
        max_us: Some(50),
        priority: 20,
        ..BASE
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_whole() {
        assert_eq!(CHAINS.len(), 15);
        for (at, chain) in (1..).zip(CHAINS) {
            assert_eq!(chain.id, format!("K{at:02}"));
            assert!(!chain.title.is_empty() && !chain.what.is_empty(), "{}", chain.id);
            assert!(!chain.path.is_empty() && chain.steps().count() > 0, "{}", chain.id);
            for steps in chain.steps() {
                for step in &steps {
                    assert_ne!(step.kinds, Kinds(0), "{}: a kind that is not known", chain.id);
                }
                assert!(steps.iter().any(|step| step.counts), "{}", chain.id);
                assert!(steps[0].min > 0 || steps[1].min > 0, "{}", chain.id);
            }
            let words = chain.chains.iter().flat_map(|chain| chain.split_ascii_whitespace());
            for word in words.flat_map(|step| step.split(['|', '~', '?', '*', '+', '{'])) {
                let is_count = word.ends_with('}') || word.is_empty();
                assert!(is_count || named(word) != Kinds(0), "{}: {word}", chain.id);
            }
        }
    }

    #[test]
    fn all_ways_fit_the_bits_by_which_they_are_looked_up() {
        let ways: usize = CHAINS.iter().map(|chain| chain.steps().count()).sum();
        assert!(ways <= 64, "{ways}: analysis keeps one bit of a u64 for each");
    }

    #[test]
    fn signs_say_how_often() {
        let counts = |text| {
            let step = step(text);
            (step.min, step.max.map(NonZeroU16::get), step.counts)
        };
        assert_eq!(counts("mul"), (1, Some(1), true));
        assert_eq!(counts("~mul?"), (0, Some(1), false));
        assert_eq!(counts("mul*"), (0, None, true));
        assert_eq!(counts("mul|add+"), (1, None, true));
        assert_eq!(counts("mul{4}"), (4, None, true));
        assert_eq!(step("mul|add").kinds, Kinds(named("mul").0 | named("add").0));
    }
}
