//! Colours by the id of a category: each has a fixed colour, the same in every report.
//!
//! Eight hues that colour-blind readers can distinguish (Okabe and Ito). More categories reuse a hue with a hatch; there is no
//! ninth hue.

/// One of the eight hues, and that of the host; the stylesheet has a token for each (`--hue-gemm`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hue {
    /// Matrix products, convolutions.
    Gemm,
    /// Attention.
    Attention,
    /// Collectives.
    Communication,
    /// Element-wise work.
    Elementwise,
    /// Normalisation.
    Norm,
    /// Copies, fills, layout.
    Memory,
    /// Quantisation, mixture of experts.
    Quant,
    /// Everything else on the GPU.
    Other,
    /// The host: no kernel, so no category; a quiet colour between the lanes' own.
    Host,
}

/// How a second and third category of one hue differ from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hatch {
    /// Solid.
    None,
    /// Lines to the right.
    Lines,
    /// Dots.
    Dots,
    /// Lines both ways.
    Cross,
}

/// A hue and its hatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    /// Which hue.
    pub hue: Hue,
    /// Which hatch.
    pub hatch: Hatch,
}

/// Category, hue, hatch: every id of the catalog, which a test of the page proves, then raw categories of the file.
const PAINTS: &[(&str, Hue, Hatch)] = &[
    ("gemm", Hue::Gemm, Hatch::None),
    ("conv", Hue::Gemm, Hatch::Lines),
    ("optimizer", Hue::Gemm, Hatch::Dots),
    ("sparse", Hue::Gemm, Hatch::Cross),
    ("attention", Hue::Attention, Hatch::None),
    ("linear_attn", Hue::Attention, Hatch::Lines),
    ("rnn", Hue::Gemm, Hatch::Lines),
    ("softmax", Hue::Attention, Hatch::Dots),
    ("communication", Hue::Communication, Hatch::None),
    ("elementwise", Hue::Elementwise, Hatch::None),
    ("activation", Hue::Elementwise, Hatch::Lines),
    ("reduce", Hue::Elementwise, Hatch::Dots),
    ("random", Hue::Elementwise, Hatch::Cross),
    ("norm", Hue::Norm, Hatch::None),
    ("rope", Hue::Norm, Hatch::Lines),
    ("pool_resize", Hue::Norm, Hatch::Dots),
    ("loss", Hue::Norm, Hatch::Cross),
    ("memcpy", Hue::Memory, Hatch::None),
    ("copy", Hue::Memory, Hatch::Lines),
    ("kv_cache", Hue::Memory, Hatch::Dots),
    ("layout", Hue::Memory, Hatch::Cross),
    ("memset", Hue::Memory, Hatch::Lines),
    ("fill", Hue::Memory, Hatch::Dots),
    ("quantize", Hue::Quant, Hatch::None),
    ("moe_gemm", Hue::Quant, Hatch::Lines),
    ("moe_route", Hue::Quant, Hatch::Dots),
    ("other", Hue::Other, Hatch::None),
    ("index", Hue::Other, Hatch::Lines),
    ("scan_sort", Hue::Other, Hatch::Dots),
    ("sampling_topk", Hue::Other, Hatch::Cross),
    ("serving_meta", Hue::Other, Hatch::Lines),
    ("wait", Hue::Other, Hatch::Dots),
    // Parts of the wall time ("communication" is one, too).
    ("compute", Hue::Gemm, Hatch::None),
    ("copies", Hue::Memory, Hatch::None),
    ("data_loading", Hue::Attention, Hatch::Lines),
    ("host_compute", Hue::Elementwise, Hatch::Lines),
    ("launch", Hue::Quant, Hatch::Lines),
    ("start", Hue::Quant, Hatch::Dots),
    ("host_waits", Hue::Norm, Hatch::Lines),
    ("allocation", Hue::Memory, Hatch::Cross),
    ("loading", Hue::Attention, Hatch::Cross),
    ("profiler", Hue::Norm, Hatch::Cross),
    ("between_kernels", Hue::Other, Hatch::Dots),
    ("queued", Hue::Other, Hatch::Lines),
    ("unexplained", Hue::Other, Hatch::Cross),
    // Raw categories of the file, for slices that are no kernels.
    ("kernel", Hue::Gemm, Hatch::None),
    ("gpu_memcpy", Hue::Memory, Hatch::None),
    ("gpu_memset", Hue::Memory, Hatch::Lines),
    ("user_annotation", Hue::Attention, Hatch::None),
    ("gpu_user_annotation", Hue::Attention, Hatch::Lines),
    ("cpu_op", Hue::Elementwise, Hatch::None),
    ("python_function", Hue::Norm, Hatch::None),
    ("cuda_runtime", Hue::Memory, Hatch::Cross),
    ("cuda_driver", Hue::Memory, Hatch::Dots),
    ("cuda_sync", Hue::Communication, Hatch::None),
    // The layers of a stack that are no categories: the largest first.
    ("series_0", Hue::Gemm, Hatch::None),
    ("series_1", Hue::Communication, Hatch::None),
    ("series_2", Hue::Elementwise, Hatch::None),
    ("series_3", Hue::Memory, Hatch::None),
    ("series_4", Hue::Attention, Hatch::None),
    ("series_5", Hue::Norm, Hatch::None),
    ("series_6", Hue::Quant, Hatch::None),
];

/// Layers with a colour of their own.
pub const SERIES: usize = 7;

/// The id of a layer that is no category, from 0.
#[must_use]
pub fn series(layer: usize) -> &'static str {
    const IDS: [&str; SERIES] =
        ["series_0", "series_1", "series_2", "series_3", "series_4", "series_5", "series_6"];
    IDS.get(layer).copied().unwrap_or("other")
}

/// The paint of a category; unknown ones are `other`, slices of the host have none.
#[must_use]
pub fn paint(category: &str) -> Paint {
    if category.is_empty() {
        return Paint { hue: Hue::Host, hatch: Hatch::None };
    }
    let found = PAINTS.iter().find(|(id, ..)| id.eq_ignore_ascii_case(category));
    found.map_or(Paint { hue: Hue::Other, hatch: Hatch::None }, |(_, hue, hatch)| Paint {
        hue: *hue,
        hatch: *hatch,
    })
}

/// Whether the table has the category.
#[must_use]
pub fn is_known(category: &str) -> bool {
    PAINTS.iter().any(|(id, ..)| *id == category)
}

impl Hue {
    /// Every hue.
    pub const ALL: [Self; 9] = [
        Self::Gemm,
        Self::Attention,
        Self::Communication,
        Self::Elementwise,
        Self::Norm,
        Self::Memory,
        Self::Quant,
        Self::Other,
        Self::Host,
    ];

    /// Name of the class and of the token.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::Attention => "attention",
            Self::Communication => "communication",
            Self::Elementwise => "elementwise",
            Self::Norm => "norm",
            Self::Memory => "memory",
            Self::Quant => "quant",
            Self::Other => "other",
            Self::Host => "host",
        }
    }
}

impl Paint {
    /// The class of a shape filled with the hue.
    #[must_use]
    pub fn class(self) -> String {
        format!("hue-{}", self.hue.id())
    }

    /// The `fill` of the hatch laid over it, for a shape that has one.
    #[must_use]
    pub fn hatch_fill(self) -> Option<&'static str> {
        match self.hatch {
            Hatch::None => None,
            Hatch::Lines => Some("url(#hatch-lines)"),
            Hatch::Dots => Some("url(#hatch-dots)"),
            Hatch::Cross => Some("url(#hatch-cross)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_category_has_one_row() {
        for (place, (id, ..)) in PAINTS.iter().enumerate() {
            assert!(!PAINTS[..place].iter().any(|(other, ..)| other == id), "{id} twice");
        }
    }

    #[test]
    fn an_unknown_category_is_other() {
        assert_eq!(paint("moon").hue, Hue::Other);
        assert_eq!(paint("").hue, Hue::Host);
        assert_eq!(paint("conv"), Paint { hue: Hue::Gemm, hatch: Hatch::Lines });
    }
}
