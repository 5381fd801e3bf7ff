//! Kernels that follow each other in any PyTorch program and could be one.
//!
//! A chain is a list of steps, in stream order. A step names [kinds](super::kind_of) separated by `|`, with
//! a sign behind it: `?` once or not at all, `*` any number, `+` once or more, `{3}` three times or more. A
//! step that begins with `~` must be there, but its time does not count: fusing would not save it.
//!
//! What to do about a chain is in [`crate::remedies`]: a chain names the ids of the rows that may apply.

use std::num::NonZeroU16;

use super::kinds::{Kinds, named};
use crate::remedies::RunType;

/// Kernels that follow each other, and what could run instead.
#[derive(Clone, Copy, Debug)]
pub struct FuseChain {
    /// `K01`.
    pub id: &'static str,
    /// What is found: `Unfused RMSNorm`.
    pub title: &'static str,
    /// The kernels that follow each other, in words.
    pub what: &'static str,
    /// Those of them whose time counts, in words.
    pub counted: &'static str,
    /// The same where only the first one counts, in chains of which others count more.
    pub first: Option<&'static str>,
    /// Ids of the remedies that may apply: rows of the table of remedies.
    pub remedies: &'static [&'static str],
    /// What a fused kernel still takes.
    pub keeps: Keeps,
    /// The chains, any of which suffices.
    chains: &'static [&'static str],
    /// Each kernel that counts is at most this long, in microseconds.
    pub max_us: Option<u32>,
    /// Whether all kernels that count have the same name.
    pub same_name: bool,
    /// Whether all kernels that count are matrix products of one input: the sizes that their ops were called with must be
    /// recorded and equal.
    pub same_input: bool,
    /// Whether an op of a matrix product must have launched the fills that count.
    pub fills_of_product: bool,
    /// Whether all kernels that count must work on equally many elements, outside an optimizer step: a compiler makes one kernel of
    /// them only then. The sizes that their ops were called with must be recorded, and no op of a matrix product launches them.
    pub same_elements: bool,
    /// Whether its parts may have pauses between them: those of an optimizer step belong together however late a launch is.
    pub across_pauses: bool,
    /// Whether kernels that count must be (`true`), or must not be (`false`), launched by `zero_grad`.
    pub zero_grad: Option<bool>,
    /// The type of run outside which it is nothing to find; `None` for any.
    pub run: Option<RunType>,
    /// How often it must be found.
    pub min_times: usize,
    /// The share of GPU time, in percent, below which nothing is said.
    pub min_pct: f64,
    /// Whether all parts seen in this order are the pattern. Where names and order cannot prove it, it stays a candidate.
    pub proven: bool,
    /// Chains of higher priority take their kernels first.
    pub priority: u8,
}

/// What is left of the time of a chain when one kernel does its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// Nothing: another kernel does it on the way, or it is not needed.
    Nothing,
    /// The longest kernel of each place: the fused kernel takes about as long. Where all of them only pass over their tensors, one pass over
    /// the largest.
    Longest,
    /// Four passes over memory, if the first kernel, an addition, takes three: the fused kernel reads both inputs, and writes the
    /// sum and the result. Where the norm is not a kernel of its own, one pass of the addition goes away.
    FourPasses,
    /// The kernels of the name that takes most time in each place.
    LargestName,
    /// Of the longest kernel of each place, one pass over its tensor: it is read and written once.
    OnePass,
    /// All but the latency of each: the bytes stay. The shortest kernels show how long the latency is.
    AllButLatency,
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
    /// Whether it is arithmetic of single ops that a compiler or another kernel could take.
    #[must_use]
    pub fn is_arithmetic(&self) -> bool {
        self.remedies.contains(&"torch-compile")
    }

    /// How many kernels count at least.
    #[must_use]
    pub fn least(&self) -> usize {
        let counted = |steps: Vec<Step>| {
            steps.iter().filter(|step| step.counts).map(|step| usize::from(step.min)).sum()
        };
        self.steps().map(counted).min().unwrap_or_default()
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
    counted: "These kernels",
    first: None,
    remedies: &[],
    keeps: Keeps::Longest,
    chains: &[],
    max_us: None,
    same_name: false,
    same_input: false,
    fills_of_product: false,
    same_elements: false,
    across_pauses: false,
    zero_grad: None,
    run: None,
    min_times: 1,
    min_pct: 0.1,
    proven: true,
    priority: 0,
};

/// Every chain, in the order of their ids.
pub const CHAINS: &[FuseChain] = &[
    FuseChain {
        id: "K01",
        title: "Unfused RMSNorm",
        what: "pow, mean, add, rsqrt and two mul",
        remedies: &["rms-norm-op", "liger-rms-norm", "torch-compile"],
        chains: &["copy? pow mean add_number rsqrt mul copy? mul", "pow mean add_number rsqrt mul"],
        priority: 90,
        ..BASE
    },
    FuseChain {
        id: "K02",
        title: "Unfused activation",
        what: "an activation (SiLU or GELU) and the multiplication with its gate, or a GELU of single ops,",
        remedies: &[
            "vllm-act-and-mul",
            "sglang-act-and-mul",
            "gelu-tanh-op",
            "liger-swiglu",
            "torch-compile",
        ],
        chains: &[
            "silu ~fill? ~gemm? ~split_k? mul",
            "mul_number pow mul_number add mul_number tanh add_number mul",
        ],
        priority: 70,
        ..BASE
    },
    FuseChain {
        id: "K03",
        title: "Unfused rotary embedding",
        what: "neg, cat, mul and add around queries or keys",
        remedies: &["framework-rope", "liger-rope", "torch-compile"],
        chains: &["mul neg cat mul add", "neg copy? cat mul mul? add"],
        priority: 90,
        ..BASE
    },
    FuseChain {
        id: "K04",
        title: "Unfused attention",
        what: "a GEMM, scale or mask, softmax and a second GEMM",
        remedies: &["hf-sdpa", "sdpa-causal", "sdpa", "flash-attention"],
        chains: &["gemm ~fill? aten|copy|fill|mask* softmax aten|copy|random|mask* ~fill? gemm"],
        priority: 80,
        ..BASE
    },
    FuseChain {
        id: "K05",
        title: "Residual add before a norm",
        what: "the residual add and the norm",
        first: Some("The additions"),
        remedies: &["vllm-add-rms-norm", "sglang-add-rms-norm", "torch-compile"],
        keeps: Keeps::FourPasses,
        chains: &["add copy? norm", "add ~copy? ~pow ~mean ~add_number ~rsqrt"],
        priority: 60,
        ..BASE
    },
    FuseChain {
        id: "K06",
        title: "Norm or activation before quantization",
        what: "a norm or an activation and the quantization of its result",
        remedies: &["vllm-norm-quant", "vllm-act-quant"],
        chains: &["norm|act quantize"],
        priority: 60,
        ..BASE
    },
    FuseChain {
        id: "K07",
        title: "All-reduce before a norm",
        what: "an all-reduce and the norm of its result",
        counted: "Without the all-reduces, these kernels",
        remedies: &[
            "vllm-allreduce-norm",
            "sglang-allreduce-norm",
            "sglang-allreduce-norm-unavailable",
            "aiter-allreduce-norm",
        ],
        keeps: Keeps::Nothing,
        chains: &["~allreduce copy? add? copy? norm"],
        priority: 75,
        ..BASE
    },
    FuseChain {
        id: "K08",
        title: "Rotary embedding before the KV cache write",
        what: "the rotary embedding and the write to the KV cache",
        remedies: &["vllm-rope-cache", "sglang-rope-cache"],
        chains: &["rope ~copy? kv_write"],
        priority: 60,
        ..BASE
    },
    FuseChain {
        id: "K09",
        title: "Layout changes around convolutions",
        what: "transposition and convolution",
        counted: "The transpositions",
        remedies: &["channels-last", "channels-last-rocm"],
        keeps: Keeps::Nothing,
        // (cuDNN clears its workspace before a convolution that adds up parts.)
        chains: &[
            "layout{2} ~fill? ~conv ~aten? layout*",
            "layout ~fill? ~conv ~aten? layout+",
            "layout ~fill? ~conv",
        ],
        priority: 50,
        ..BASE
    },
    FuseChain {
        id: "K10",
        title: "GEMMs sharing one input",
        what: "three GEMMs of one kernel",
        remedies: &["merge-projections"],
        chains: &["gemm ~fill? gemm ~fill? gemm"],
        same_name: true,
        same_input: true,
        proven: false,
        priority: 40,
        ..BASE
    },
    FuseChain {
        id: "K11",
        title: "Short PyTorch kernels in a row",
        what: "four or more of PyTorch's elementwise kernels, 10 µs or less each,",
        remedies: &["foreach-optimizer", "newer-optimizer", "torch-compile"],
        chains: &["aten{4}"],
        same_elements: true,
        zero_grad: Some(false),
        min_times: 2,
        max_us: Some(10),
        proven: false,
        ..BASE
    },
    FuseChain {
        id: "K12",
        title: "Unfused optimizer step",
        what: "four or more of the optimizer's kernels",
        remedies: &["fused-optimizer", "fused-sgd"],
        keeps: Keeps::LargestName,
        across_pauses: true,
        chains: &["foreach{4}"],
        priority: 30,
        ..BASE
    },
    FuseChain {
        id: "K13",
        title: "Unfused expert routing",
        what: "top-k, sorting and index kernels before the experts' GEMM",
        remedies: &["framework-routing"],
        chains: &["route small|route{2} ~moe_gemm"],
        max_us: Some(50),
        priority: 50,
        ..BASE
    },
    FuseChain {
        id: "K14",
        title: "Fill or reduction around split-K GEMMs",
        what: "a fill and a GEMM, or a split GEMM and the sum over its parts,",
        counted: "Without the GEMMs, these kernels",
        remedies: &["tune-gemm"],
        keeps: Keeps::Nothing,
        chains: &["fill ~gemm split_k?", "~gemm split_k"],
        fills_of_product: true,
        zero_grad: Some(false),
        proven: false,
        priority: 20,
        ..BASE
    },
    FuseChain {
        id: "K15",
        title: "Small collectives in a row",
        what: "three or more collectives by one kernel, 500 µs or less each,",
        remedies: &["larger-buckets", "coalesced-collectives"],
        keeps: Keeps::AllButLatency,
        chains: &["comm{3}"],
        max_us: Some(500),
        // (Collectives of two kinds or number formats are no one collective.)
        same_name: true,
        priority: 20,
        ..BASE
    },
    FuseChain {
        id: "K16",
        title: "Gradients filled with zeros",
        what: "fills that zero_grad launches",
        remedies: &["set-to-none"],
        keeps: Keeps::Nothing,
        chains: &["fill|foreach+"],
        zero_grad: Some(true),
        priority: 95,
        ..BASE
    },
    FuseChain {
        id: "K17",
        title: "Batch norm in training mode",
        what: "the count of batches and a batch norm that computes the statistics of its batch",
        remedies: &["eval-mode"],
        keeps: Keeps::OnePass,
        chains: &["counter? batch_statistics"],
        run: Some(RunType::Inference),
        min_pct: 2.0,
        proven: false,
        priority: 85,
        ..BASE
    },
    FuseChain {
        id: "K18",
        title: "Batch norm after a convolution",
        what: "a convolution and a batch norm with running statistics",
        counted: "The batch norms",
        remedies: &["fold-batch-norm"],
        keeps: Keeps::Nothing,
        chains: &["~conv ~layout* ~aten? batch_norm_inference"],
        run: Some(RunType::Inference),
        min_pct: 2.0,
        across_pauses: true,
        priority: 85,
        ..BASE
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_whole() {
        assert_eq!(CHAINS.len(), 18);
        for (at, chain) in (1..).zip(CHAINS) {
            assert_eq!(chain.id, format!("K{at:02}"));
            assert!(!chain.title.is_empty() && !chain.what.is_empty(), "{}", chain.id);
            assert!(!chain.remedies.is_empty() && chain.steps().count() > 0, "{}", chain.id);
            for id in chain.remedies {
                assert!(crate::remedies::remedy(id).is_some(), "{}: no remedy {id}", chain.id);
            }
            for steps in chain.steps() {
                for step in &steps {
                    assert_ne!(step.kinds, Kinds(0), "{}: a kind that is not known", chain.id);
                }
                assert!(steps.iter().any(|step| step.counts), "{}", chain.id);
                assert!(steps.iter().take(2).any(|step| step.min > 0), "{}", chain.id);
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
