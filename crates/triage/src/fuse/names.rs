//! What the names of a candidate's kernels tell: the facts that gates of remedies ask for.

use catalog::fuse_patterns::{Kinds, kind_named};
use catalog::remedies::{Activation, Mask, Norm, Parts};
use catalog::{Category, Family};

use super::find::Candidate;
use super::lanes::Lanes;
use super::related;

/// The different kernels of a candidate, in lower case, with what the catalog knows of them.
pub(super) struct Names {
    all: Vec<(String, Category, Family, Kinds)>,
    /// The number formats of the GEMMs, where their names say so.
    gemm_dtypes: Vec<Option<&'static str>>,
}

impl Names {
    pub(super) fn of(lanes: &Lanes<'_>, candidate: &Candidate) -> Self {
        let mut works: Vec<(u32, Kinds)> = related(candidate)
            .map(|at| lanes.code_of_slice(at))
            .map(|code| (code.work, code.kinds))
            .collect();
        trace::sort_by_key(&mut works, |(work, _)| *work);
        works.dedup_by_key(|(work, _)| *work);
        let mut gemm_dtypes = Vec::new();
        let all = works.into_iter().map(|(work, kinds)| {
            let of = &lanes.gpu.works[work as usize];
            let name = lanes.name_of(work);
            gemm_dtypes.push((of.category == Category::Gemm).then(|| catalog::facts(name).dtype));
            (name.to_ascii_lowercase(), of.category, of.family, kinds)
        });
        let all = all.collect();
        Self { all, gemm_dtypes: gemm_dtypes.into_iter().flatten().collect() }
    }

    /// `Some` if all that `tell` says is the same.
    fn agreed<T: PartialEq>(&self, tell: impl Fn(&str, Category) -> Option<T>) -> Option<T> {
        let mut said = self.all.iter().filter_map(|(name, category, ..)| tell(name, *category));
        let first = said.next()?;
        said.all(|other| other == first).then_some(first)
    }

    pub(super) fn parts(&self) -> Option<Parts> {
        if self.all.is_empty() {
            return None;
        }
        let any = |of: fn(Family) -> bool| self.all.iter().any(|(_, _, family, _)| of(*family));
        Some(if any(|family| family == Family::Inductor) {
            Parts::Compiled
        } else if any(|family| !matches!(family, Family::Aten | Family::Runtime)) {
            Parts::Library
        } else {
            Parts::Aten
        })
    }

    pub(super) fn norm(&self, chain: &str) -> Option<Norm> {
        let of_name = self.agreed(|name, category| {
            (category == Category::Norm).then(|| {
                if name.contains("rms") {
                    Norm::Rms
                } else if name.contains("layer_norm") || name.contains("layernorm") {
                    Norm::Layer
                } else {
                    Norm::Other
                }
            })
        });
        let named = self.all.iter().any(|(_, category, ..)| *category == Category::Norm);
        match chain {
            // pow, mean and rsqrt without a mean to subtract are RMSNorm.
            "K01" => Some(Norm::Rms),
            "K05" if !named => Some(Norm::Rms),
            _ => of_name,
        }
    }

    pub(super) fn activation(&self) -> Option<Activation> {
        let tanh = kind_named("tanh");
        if self.all.iter().any(|(.., kinds)| kinds.meets(tanh)) {
            return Some(Activation::NewGelu);
        }
        self.agreed(|name, category| {
            if category != Category::Activation {
                return None;
            }
            let of = [
                ("silu", Activation::Silu),
                ("swiglu", Activation::Silu),
                ("gelu", Activation::Gelu),
            ];
            let of = of.into_iter().chain([("relu", Activation::Relu)]);
            of.into_iter().find(|(word, _)| name.contains(word)).map(|(_, activation)| activation)
        })
    }

    /// What stands between the products and the softmax. Anything that is not known to be harmless makes it unknown.
    pub(super) fn mask(&self) -> Option<Mask> {
        let add = kind_named("add");
        let harmless = kind_named("copy|mul_number|fill|random|mean");
        let masks = kind_named("mask");
        let mut mask = Mask::None;
        for (name, category, _, kinds) in &self.all {
            let of = if *category == Category::Softmax {
                match () {
                    () if name.contains("upper_triang") => Mask::Causal,
                    () if name.contains("masked") => Mask::Boolean,
                    () => continue,
                }
            } else if matches!(category, Category::Gemm) {
                continue;
            } else if kinds.meets(add) {
                Mask::Additive
            } else if kinds.meets(masks) || name.contains("where") {
                Mask::Boolean
            } else if kinds.meets(harmless)
                || name.contains("divfunctor")
                || name.contains("div_true")
            {
                continue;
            } else {
                return None;
            };
            mask = match (mask, of) {
                (Mask::Additive, _) | (_, Mask::Additive) => Mask::Additive,
                (Mask::None, of) => of,
                (Mask::Boolean, _) | (_, Mask::Boolean) => Mask::Boolean,
                (mask, _) => mask,
            };
        }
        Some(mask)
    }

    pub(super) fn half(&self) -> Option<bool> {
        let mut all = None;
        for dtype in &self.gemm_dtypes {
            let half = matches!((*dtype)?, "bf16" | "fp16");
            all = Some(all.unwrap_or(true) && half);
        }
        all
    }
}
