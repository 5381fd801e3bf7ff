//! Work that is often fused into one kernel, and how to see in a trace whether it is.
//!
//! Two tables. [`patterns`] are fused kernels that inference frameworks have: words that name the fused
//! kernel itself (`active`), and words that name the parts it replaces (`groups`). [`CHAINS`] are kernels
//! that follow each other in any PyTorch program, said in [kinds](kind_of) instead of words.
//!
//! A match proves nothing yet. Whoever uses the tables must also find the parts next to each other on one
//! stream; the tables only say which kernel may be which part.

mod chains;
mod inflight;
mod kinds;
mod mainline;
mod upstream;
mod words;

use crate::remedies::{Gate, Norm, Parts, RunFacts, Stack, remedy};
use crate::{Category, Platform};

pub use chains::{CHAINS, FuseChain, Keeps, Step};
pub use kinds::{Kinds, kind_of, named as kind_named};
pub use words::Text;

/// An inference framework that has fused kernels of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Framework {
    /// SGLang.
    Sglang,
    /// vLLM.
    Vllm,
    /// TensorRT-LLM.
    TensorRtLlm,
    /// TokenSpeed.
    TokenSpeed,
}

impl Framework {
    fn title(self) -> &'static str {
        match self {
            Self::Sglang => "SGLang",
            Self::Vllm => "vLLM",
            Self::TensorRtLlm => "TensorRT-LLM",
            Self::TokenSpeed => "TokenSpeed",
        }
    }
}

/// Where a pattern comes from: how far its fused kernel is from the one who reads the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// Released with the framework.
    Mainline,
    /// In an open pull request.
    Inflight,
    /// In another project or a branch of it.
    Upstream,
}

/// What attention, matrix products and convolutions may be in a pattern. They take most of the time of
/// most traces, and next to everything, so that they are parts only where a pattern is about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Heavy {
    /// No part of it.
    Ignored,
    /// A part beside which another stands, but not one that fusion would save: its time does not count.
    Beside,
    /// The fused kernel does the attention, too: its time counts. Other heavy work is no part.
    Attention,
    /// The fused kernel does the matrix product, too: its time counts. Other heavy work is no part.
    Gemm,
}

/// What switches a fused kernel on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    /// Nobody has looked for it in the framework's source.
    Unknown,
    /// The framework's source has none: the code of a model calls the kernel or does not.
    Absent,
    /// An instruction, without the full stop.
    By(&'static str),
}

/// Whether parts must stand in the order of their groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The parts hand data on in the order of the groups.
    Fixed,
    /// The parts are next to each other in any order.
    Any,
}

/// One fused kernel of a framework.
#[derive(Clone, Copy, Debug)]
pub struct FusePattern {
    /// `F01`.
    pub id: &'static str,
    /// What is fused.
    pub title: &'static str,
    /// Where the fused kernel is.
    pub origin: Origin,
    /// The framework that can use it.
    pub framework: Framework,
    /// Whose GPUs the fused kernel runs on; `Unknown`: anybody's.
    pub platform: Platform,
    /// The smallest tensor parallel size with which it makes sense.
    pub min_tp: u32,
    /// Words, one of which the model's name has, separated by `|`; empty: any model.
    pub models: &'static str,
    /// Words that the model's name must not have.
    pub not_models: &'static str,
    /// Words of the fused kernel, separated by `|`.
    pub active: &'static str,
    /// Words of each part that the fused kernel replaces. All parts are needed.
    pub groups: &'static [&'static str],
    /// Words of kernels and operators that are no part, whatever else they are called.
    pub not_parts: &'static str,
    /// Whether the parts have an order.
    pub order: Order,
    /// What attention, matrix products and convolutions are in it.
    pub heavy: Heavy,
    /// The parts' share of GPU time, in percent, below which nothing is said.
    pub min_pct: f64,
    /// The kinds of norm that the fused kernel does; empty where it does none, or any.
    pub norms: &'static [Norm],
    /// Patterns of higher priority are tried first.
    pub priority: u8,
    /// Ids of patterns that this one makes needless, separated by blanks.
    pub subsumes: &'static str,
    /// What switches the fused kernel on.
    switch: Switch,
    /// Sources of the fused kernel, short; see [`FusePattern::fused_path`].
    path: &'static str,
    /// `"a text"` is the fused kernel, `"1 text"` the first part. A text is a kernel's name, or `op`, `fn` or
    /// `in` and the name of an operator, of a Python function, or of callers.
    #[cfg(test)]
    yes: &'static [&'static str],
    /// Texts that are neither the fused kernel nor a part.
    #[cfg(test)]
    no: &'static [&'static str],
}

/// What the rows of a table have in common.
const BASE: FusePattern = FusePattern {
    id: "",
    title: "",
    origin: Origin::Mainline,
    framework: Framework::Sglang,
    platform: Platform::Unknown,
    min_tp: 1,
    models: "",
    not_models: "",
    active: "",
    groups: &[],
    not_parts: "",
    order: Order::Fixed,
    heavy: Heavy::Ignored,
    min_pct: 0.3,
    norms: &[],
    priority: 0,
    subsumes: "",
    switch: Switch::Unknown,
    path: "",
    #[cfg(test)]
    yes: &[],
    #[cfg(test)]
    no: &[],
};

/// Declares a table of rows on top of a base; examples stay out of shipped builds.
macro_rules! rows {
    ($table:ident, $base:expr => $({ $($field:ident: $value:expr,)* }
        yes: [$($yes:literal),* $(,)?],
        no: [$($no:literal),* $(,)?];
    )*) => {
        pub(super) const $table: &[crate::fuse_patterns::FusePattern] =
            &[$(crate::fuse_patterns::FusePattern {
                $($field: $value,)*
                #[cfg(test)]
                yes: &[$($yes),*],
                #[cfg(test)]
                no: &[$($no),*],
                ..$base
            }),*];
    };
}
use rows;

/// What a text says about a pattern: bit 0 to 5 for a group, [`ACTIVE`] for the fused kernel. The bits of
/// a kernel's name, of its operator and of its function are put together with `|`.
pub type Roles = u8;

/// The text names the fused kernel.
pub const ACTIVE: Roles = 0x80;

/// The text says that its kernel is no part: words of two groups, which no other text can take back.
const VETO: Roles = 0b11;

/// What a kernel is in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The fused kernel.
    Active,
    /// A part, by its group.
    Group(u8),
}

/// The part that `roles` give. A kernel with words of two groups is no part: it is fused already, or the
/// words say nothing about it.
#[must_use]
pub fn part(roles: Roles) -> Option<Part> {
    if roles & ACTIVE != 0 {
        Some(Part::Active)
    } else if roles.count_ones() == 1 {
        Some(Part::Group(roles.trailing_zeros() as u8))
    } else {
        None
    }
}

impl FusePattern {
    /// What a text says about this pattern.
    #[must_use]
    pub fn roles(&self, text: &Text) -> Roles {
        let mut roles = if text.has_any(self.active) { ACTIVE } else { 0 };
        if text.has_any(self.not_parts) {
            return roles | VETO;
        }
        for (at, words) in self.groups.iter().enumerate() {
            roles |= u8::from(text.has_any(words)) << at;
        }
        roles
    }

    /// The gate that keeps the fused kernel from being advised; `None` where it may be. What is not known opens no gate.
    #[must_use]
    pub fn closed(&self, facts: &RunFacts) -> Option<Gate> {
        let stack = Some(match self.framework {
            Framework::Sglang => Stack::Sglang,
            Framework::Vllm => Stack::Vllm,
            Framework::TensorRtLlm => Stack::TensorRtLlm,
            Framework::TokenSpeed => Stack::TokenSpeed,
        });
        if facts.stack != stack {
            return Some(Gate::Framework);
        }
        if self.platform != Platform::Unknown && self.platform != facts.platform {
            return Some(Gate::Vendor);
        }
        if !self.norms.is_empty() && !facts.norm.is_some_and(|norm| self.norms.contains(&norm)) {
            return Some(Gate::Norm);
        }
        if matches!(facts.parts, None | Some(Parts::Compiled)) {
            return Some(Gate::Parts);
        }
        remedy("framework-kernel").and_then(|remedy| remedy.gates.closed(facts))
    }

    /// Where the fused kernel is: files of the framework, or a pull request.
    #[must_use]
    pub fn fused_path(&self) -> String {
        self.path.replace("sgl:", "python/sglang/").replace("trt:", "tensorrt_llm/")
    }

    /// What to do to get the fused kernel. `place`: where it is, in words.
    #[must_use]
    pub fn action(&self, place: &str) -> String {
        match self.switch {
            Switch::Unknown => format!("Enable the framework's fused kernel: {place}."),
            Switch::Absent => format!(
                "Call the framework's fused kernel in the model's code: {place}. {} has no switch for it.",
                self.framework.title()
            ),
            Switch::By(action) => {
                format!("{action}. That enables the framework's fused kernel: {place}.")
            }
        }
    }

    /// Whether the pattern may be looked for. An unknown framework allows all; an unknown parallel size
    /// counts as 1; an unknown model is none of those that a pattern asks for.
    #[must_use]
    pub fn is_for(
        &self,
        framework: Option<Framework>,
        tp: Option<u32>,
        model: Option<&str>,
    ) -> bool {
        let model = model.unwrap_or_default().to_ascii_lowercase();
        let has =
            |words: &str| words.split('|').any(|word| !word.is_empty() && model.contains(word));
        framework.is_none_or(|framework| framework == self.framework)
            && tp.unwrap_or(1) >= self.min_tp
            && (self.models.is_empty() || has(self.models))
            && !has(self.not_models)
    }
}

/// What a kernel of a category may be in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// No part.
    None,
    /// A part whose time does not count.
    Beside,
    /// A part, or the fused kernel.
    Counted,
}

impl Heavy {
    /// What a kernel of `category` may be.
    #[must_use]
    pub fn role(self, category: Category) -> Role {
        let own = match category {
            Category::Attention | Category::LinearAttn => Self::Attention,
            Category::Gemm | Category::MoeGemm => Self::Gemm,
            Category::Conv => return Role::None,
            _ => return Role::Counted,
        };
        match self {
            Self::Beside => Role::Beside,
            _ if self == own => Role::Counted,
            _ => Role::None,
        }
    }
}

/// What may stand between two parts: copies, casts and fills that a fused kernel would not need.
#[must_use]
pub fn between() -> Kinds {
    kinds::named("copy|fill")
}

/// Every fused kernel, in the order of their ids.
pub fn patterns() -> impl Iterator<Item = &'static FusePattern> + Clone {
    [mainline::MAINLINE, inflight::INFLIGHT, upstream::UPSTREAM].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The roles of an example.
    fn roles(pattern: &FusePattern, example: &str) -> Roles {
        let text = match example.split_once(' ') {
            Some(("op", name)) => Text::op(name),
            Some(("fn", name)) => Text::function(name),
            Some(("in", names)) => Text::callers(names),
            _ => Text::kernel(&crate::head(example)),
        };
        pattern.roles(&text)
    }

    #[test]
    fn every_example_is_what_its_row_says() {
        let mut wrong = Vec::new();
        for pattern in patterns() {
            let mut seen = 0;
            for example in pattern.yes {
                let (place, text) = example.split_once(' ').unwrap();
                let expected = match place {
                    "a" => Part::Active,
                    group => Part::Group(group.parse::<u8>().unwrap() - 1),
                };
                let found = part(roles(pattern, text));
                if found != Some(expected) {
                    wrong.push(format!("{}: {example}: {found:?}", pattern.id));
                }
                seen |= match expected {
                    Part::Active => ACTIVE,
                    Part::Group(at) => 1 << at,
                };
            }
            let all = ACTIVE | ((1 << pattern.groups.len()) - 1);
            if seen != all {
                wrong.push(format!("{}: examples show {seen:b} of {all:b}", pattern.id));
            }
            if pattern.no.is_empty() {
                wrong.push(format!("{}: no near miss", pattern.id));
            }
            for example in pattern.no {
                if let Some(found) = part(roles(pattern, example)) {
                    wrong.push(format!("{}: {example} is {found:?}", pattern.id));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn rows_are_whole() {
        let ids: Vec<_> = patterns().map(|pattern| pattern.id).collect();
        assert_eq!(ids.len(), 47);
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 47, "ids are unique");
        for (at, id) in (1..).zip(sorted) {
            assert_eq!(id, format!("F{at:02}"));
        }
        for pattern in patterns() {
            assert!(!pattern.title.is_empty() && !pattern.path.is_empty(), "{}", pattern.id);
            assert!(!pattern.active.is_empty() && pattern.groups.len() <= 6, "{}", pattern.id);
            for id in pattern.subsumes.split_terminator(' ') {
                assert!(ids.contains(&id), "{} subsumes {id}", pattern.id);
            }
            for words in pattern.groups.iter().chain([&pattern.active]) {
                assert_eq!(*words, words.to_ascii_lowercase(), "{}", pattern.id);
                assert!(words.split('|').all(|word| !word.trim().is_empty()), "{}", pattern.id);
            }
        }
        let of = |origin| patterns().filter(|pattern| pattern.origin == origin).count();
        assert_eq!((of(Origin::Mainline), of(Origin::Inflight), of(Origin::Upstream)), (23, 3, 21));
    }

    #[test]
    fn gates_open_for_what_they_name() {
        let of = |id: &str| patterns().find(|pattern| pattern.id == id).copied().unwrap();
        let sglang = Some(Framework::Sglang);
        assert!(of("F01").is_for(None, None, None), "an unknown framework allows all");
        assert!(!of("F01").is_for(Some(Framework::Vllm), None, None));
        assert!(!of("F02").is_for(sglang, None, None), "an unknown parallel size is 1");
        assert!(of("F02").is_for(sglang, Some(2), None));
        assert!(of("F13").is_for(sglang, None, Some("Qwen/Qwen3-8B")));
        assert!(!of("F13").is_for(sglang, None, Some("Qwen/Qwen3.5-8B")));
        assert!(!of("F13").is_for(sglang, None, None), "an unknown model is no Qwen3");
        assert!(of("F24").is_for(sglang, None, Some("Qwen/Qwen3.5-8B")));
    }

    #[test]
    fn a_kernel_with_words_of_two_parts_is_no_part() {
        assert_eq!(part(0b01), Some(Part::Group(0)));
        assert_eq!(part(0b100), Some(Part::Group(2)));
        assert_eq!(part(0b11), None);
        assert_eq!(part(0), None);
        assert_eq!(part(ACTIVE | 0b11), Some(Part::Active));
    }

    #[test]
    fn heavy_work_is_a_part_only_where_a_pattern_is_about_it() {
        assert_eq!(Heavy::Ignored.role(Category::Norm), Role::Counted);
        assert_eq!(Heavy::Ignored.role(Category::Gemm), Role::None);
        assert_eq!(Heavy::Beside.role(Category::MoeGemm), Role::Beside);
        assert_eq!(Heavy::Attention.role(Category::Attention), Role::Counted);
        assert_eq!(Heavy::Attention.role(Category::Gemm), Role::None);
        assert_eq!(Heavy::Gemm.role(Category::Gemm), Role::Counted);
        assert_eq!(Heavy::Gemm.role(Category::Attention), Role::None);
    }

    #[test]
    fn a_framework_s_kernel_is_advised_only_where_it_can_run() {
        use crate::remedies::RunType;
        let closed = |id: &str, facts: &RunFacts| {
            patterns()
                .find(|pattern| pattern.id == id)
                .map(|pattern| pattern.closed(facts))
                .unwrap()
        };
        let facts = RunFacts {
            platform: Platform::Cuda,
            stack: Some(Stack::Sglang),
            run: Some(RunType::Inference),
            norm: Some(Norm::Rms),
            parts: Some(Parts::Library),
            ..RunFacts::default()
        };
        let rocm = RunFacts { platform: Platform::Rocm, ..facts };
        assert_eq!(closed("F02", &facts), None);
        assert_eq!(closed("F02", &rocm), Some(Gate::Vendor), "FlashInfer is CUDA's");
        assert_eq!(closed("F13", &rocm), None);
        assert_eq!(closed("F13", &facts), Some(Gate::Vendor), "AITER is ROCm's");
        let unknown = RunFacts { platform: Platform::Unknown, ..facts };
        assert_eq!(closed("F02", &unknown), Some(Gate::Vendor));
        assert_eq!(closed("F07", &unknown), Some(Gate::Vendor), "anybody's, but not of no GPU");
        let with = |stack, run| closed("F02", &RunFacts { stack, run, ..facts });
        assert_eq!(with(Some(Stack::Vllm), facts.run), Some(Gate::Framework));
        assert_eq!(with(None, facts.run), Some(Gate::Framework), "not known is not enough");
        assert_eq!(with(facts.stack, Some(RunType::Training)), Some(Gate::RunType));
        let layer = RunFacts { norm: Some(Norm::Layer), ..facts };
        assert_eq!(closed("F02", &layer), Some(Gate::Norm));
        let compiled = RunFacts { parts: Some(Parts::Compiled), ..facts };
        assert_eq!(closed("F02", &compiled), Some(Gate::Parts));
    }

    #[test]
    fn an_action_names_the_switch_or_that_none_is_known() {
        let of = |id: &str| patterns().find(|pattern| pattern.id == id).unwrap().action("a.py");
        let with = "Start SGLang with --enable-fused-qk-norm-rope. That enables the framework's fused kernel: a.py.";
        assert_eq!(of("F06"), with);
        let without = "Call the framework's fused kernel in the model's code: a.py. SGLang has no switch for it.";
        assert_eq!(of("F07"), without);
        assert_eq!(of("F22"), "Enable the framework's fused kernel: a.py.");
    }

    #[test]
    fn paths_are_spelled_out() {
        let first = patterns().next().unwrap();
        assert!(first.fused_path().starts_with("python/sglang/srt/"), "{}", first.fused_path());
    }
}
