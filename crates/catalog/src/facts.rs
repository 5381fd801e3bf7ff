//! Other facts in a kernel's name: tile sizes, number formats, architecture.

use crate::pattern::is_match;
use crate::{Category, RawKind};

/// What a Tensile name (`Cijk_...`) says about its matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensile {
    /// Whether A is read transposed.
    pub transpose_a: bool,
    /// Whether B is read transposed.
    pub transpose_b: bool,
    /// Rows, columns and depth of the macro tile (`MT128x256x32`).
    pub macro_tile: Option<[u32; 3]>,
    /// The matrix instruction's shape (`MI16x16x1`).
    pub instruction: Option<[u32; 3]>,
    /// Work is handed out in equal streams of K (`GSUAMBSK`, `SK3`).
    pub stream_k: bool,
    /// Built by hipBLASLt's tuning rather than rocBLAS's.
    pub hipblaslt: bool,
}

/// Facts read off a name. `None` and empty mean that the name does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameFacts {
    /// Settings of a Tensile kernel.
    pub tensile: Option<Tensile>,
    /// Block tile of other matrix kernels: `tilesize128x128x64`, igemm `bt128x256x32`, `128x64_tn`.
    pub tile: Option<String>,
    /// Number format of the inputs: `bf16`, `fp16`, `fp32`, `tf32`, `fp8`, `int8`, `fp64`, `mxfp4`.
    pub dtype: Option<&'static str>,
    /// AMD architecture the code was built for, and so the device's: `gfx942`.
    pub gfx: Option<String>,
    /// Lowest NVIDIA architecture the code needs, *not* the device's: sm_80 code runs on an H100.
    pub sm: Option<u32>,
    /// Direction of a MIOpen implicit GEMM: `fwd`, `bwd`, `wrw`.
    pub igemm: Option<&'static str>,
    /// Other operations that the kernel also does, such as `quant` in `add_rmsnorm_quant_kernel`.
    pub fused_with: Vec<&'static str>,
}

/// Reads the facts off a kernel name.
#[must_use]
pub fn facts(name: &str) -> NameFacts {
    let lower = name.to_ascii_lowercase();
    let (is_tensile, igemm) = (is_tensile(&lower), igemm(&lower));
    NameFacts {
        tensile: is_tensile.then(|| tensile(name)),
        tile: if is_tensile { None } else { tile(&lower) },
        dtype: if is_tensile { tensile_dtype(name) } else { dtype(&lower) },
        gfx: gfx(name, &lower, is_tensile || igemm.is_some()),
        sm: sm(&lower),
        igemm,
        fused_with: if is_tensile { Vec::new() } else { fused_with(name) },
    }
}

/// Whether the name is that of a matrix product of 32-bit floats without tensor cores: cuBLAS's `ampere_sgemm_...` and
/// `..._f32f32_f32f32_f32_...`, CUTLASS's `simt_sgemm`.
#[must_use]
pub fn is_f32_without_tensor_cores(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let has = |word: &str| lower.contains(word);
    let tensor = ["tensorop", "tf32", "1688", "16816", "wmma", "convolve", "cudnn"];
    (has("sgemm") || has("f32f32_f32f32_f32")) && !tensor.iter().any(|word| has(word))
}

/// Whether the name is that of a convolution kernel of 32-bit floats without tensor cores: cuDNN's `volta_scudnn_...`,
/// `implicit_convolve_sgemm<float, float, ...>`, `winograd...<float, float>`.
#[must_use]
pub fn is_f32_convolution_without_tensor_cores(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let has = |word: &str| lower.contains(word);
    let tensor = ["tensorop", "tf32", "1688", "16816", "wmma", "half", "h884", "xmma", "bfloat"];
    (has("sgemm") || has("scudnn") || has("<float")) && !tensor.iter().any(|word| has(word))
}

/// Of the facts only [`NameFacts::gfx`] and [`NameFacts::sm`].
#[must_use]
pub fn architecture(name: &str) -> (Option<String>, Option<u32>) {
    let lower = name.to_ascii_lowercase();
    (gfx(name, &lower, is_tensile(&lower) || igemm(&lower).is_some()), sm(&lower))
}

fn is_tensile(lower: &str) -> bool {
    lower.starts_with("cijk_") || lower.starts_with("custom_cijk_")
}

fn igemm(lower: &str) -> Option<&'static str> {
    let rest = lower.strip_prefix("igemm_")?;
    ["fwd", "bwd", "wrw"].into_iter().find(|direction| rest.starts_with(direction))
}

fn tensile(name: &str) -> Tensile {
    let words = || name.split('_');
    let has = |word: &str| words().any(|w| w == word);
    let stream_k = words().any(|w| {
        w == "GSUAMBSK"
            || w.strip_prefix("SK")
                .is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()) && !n.is_empty() && n != "0")
    });
    Tensile {
        // Alik: the summation index l runs fastest in A, so A is transposed; Bjlk likewise for B.
        transpose_a: has("Alik"),
        transpose_b: has("Bjlk"),
        macro_tile: words().find_map(|w| dimensions(w.strip_prefix("MT")?)),
        instruction: words().find_map(|w| dimensions(w.strip_prefix("MI")?)),
        stream_k,
        hipblaslt: has("UserArgs") || has("SAV") || words().any(|w| w.starts_with("GSUAMB")),
    }
}

/// The first three numbers of `128x256x32`.
fn dimensions(text: &str) -> Option<[u32; 3]> {
    let mut numbers = text.split('x').map_while(|n| n.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

/// The type code follows the index names: `BBS` is bf16 in and out with single-precision sums.
fn tensile_dtype(name: &str) -> Option<&'static str> {
    let words = name.strip_prefix("Custom_").unwrap_or(name);
    let code = words.split('_').nth(3)?;
    Some(match code {
        _ if code.starts_with("F8") || code.starts_with("B8") => "fp8",
        _ if code.starts_with("I8") => "int8",
        _ if code.starts_with("F4") => "mxfp4",
        _ if code.starts_with('B') => "bf16",
        _ if code.starts_with('H') => "fp16",
        _ if code.starts_with('S') => "fp32",
        _ if code.starts_with('D') => "fp64",
        _ if code.starts_with('X') => "tf32",
        _ => return None,
    })
}

fn dtype(lower: &str) -> Option<&'static str> {
    const DTYPES: &[(&str, &[&str])] = &[
        ("mxfp4", &["mxfp4", "mxf4"]),
        ("nvfp4", &["nvfp4"]),
        ("fp8", &["fp8", "e4m3", "e5m2", "float8", "f8_"]),
        ("bf16", &["bf16", "bfloat16", "idf16b", "_bf_"]),
        ("fp16", &["fp16", "f16_", "_half", "\\<half\\>", "hgemm", "c10::half", "h884"]),
        ("tf32", &["tf32", "s1688", "tfloat32"]),
        ("int8", &["int8", "i8816", "s8_"]),
        ("fp64", &["dgemm", "\\<double\\>", "\\<double,"]),
        ("fp32", &["sgemm", "scudnn", "fp32", "\\<float\\>", "\\<float,", "f32_f32"]),
    ];
    DTYPES
        .iter()
        .find(|(_, any)| any.iter().any(|word| is_match(word, lower)))
        .map(|(dtype, _)| *dtype)
}

fn tile(lower: &str) -> Option<String> {
    if let Some(at) = lower.find("tilesize") {
        return size_at(&lower[at + 8..]);
    }
    if lower.starts_with("igemm_") {
        return lower.split("_bt").nth(1).and_then(size_at);
    }
    lower.split('_').find_map(|word| {
        let size = size_at(word)?;
        (size.len() == word.len()).then_some(size)
    })
}

/// `128x64` or `128x64x32` at the start of `text`.
fn size_at(text: &str) -> Option<String> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == 'x')).unwrap_or(text.len());
    let size = text[..end].trim_end_matches('x');
    let parts = size.split('x').filter(|part| !part.is_empty()).count();
    (size.contains('x') && (2..=3).contains(&parts)).then(|| size.to_owned())
}

fn gfx(name: &str, lower: &str, built_for_one: bool) -> Option<String> {
    if built_for_one {
        if let Some(isa) = name.split('_').find_map(|word| word.strip_prefix("ISA")) {
            // Tensile writes 90a as 90a or, in old names, as three numbers; 000 means any.
            return (isa.len() >= 3 && isa != "000")
                .then(|| format!("gfx{}", isa.to_ascii_lowercase()));
        }
        // MIOpen's assembly kernels carry the generation of the matrix instructions.
        if lower.contains("_gtcx3_") {
            return Some("gfx942".to_owned());
        }
        if lower.contains("_gtcx2_") {
            return Some("gfx90a".to_owned());
        }
        if lower.contains("_gtcx_") {
            return Some("gfx908".to_owned());
        }
    }
    let at = lower
        .match_indices("gfx")
        .map(|(at, _)| at)
        .find(|at| lower.as_bytes().get(at + 3).is_some_and(u8::is_ascii_digit))?;
    let word: String = lower[at..].chars().take_while(char::is_ascii_alphanumeric).collect();
    // "gfx9" names a family, not an architecture.
    (word.len() >= 6).then_some(word)
}

fn sm(lower: &str) -> Option<u32> {
    let digits = |text: &str| -> Option<u32> {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number = text[..end].parse().ok()?;
        (50..=130).contains(&number).then_some(number)
    };
    for (at, _) in lower.match_indices("sm") {
        let inside_word = at > 0 && lower.as_bytes()[at - 1].is_ascii_lowercase();
        let rest = lower[at + 2..].trim_start_matches('_');
        // "FmhaSm100a" has its boundary in the letter case only, so accept a number of sm size there.
        if let Some(number) = digits(rest)
            && (!inside_word || number >= 70)
        {
            return Some(number);
        }
    }
    if let Some(at) = lower.find("cutlass_")
        && let Some(number) = digits(&lower[at + 8..])
    {
        return Some(number);
    }
    const GENERATIONS: &[(&str, u32)] =
        &[("<volta_", 70), ("<turing_", 75), ("<ampere_", 80), ("<hopper_", 90), ("<maxwell_", 50)];
    GENERATIONS.iter().find(|(word, _)| is_match(word, lower)).map(|(_, sm)| *sm)
}

/// What else a fused kernel does: words in its head that belong to another category than its own.
fn fused_with(name: &str) -> Vec<&'static str> {
    const PARTS: &[(&str, Option<Category>, &[&str])] = &[
        ("allreduce", Some(Category::Communication), &["all_?reduce"]),
        ("add", None, &["<add_", "_add_", "fused_?add", "residual"]),
        (
            "norm",
            Some(Category::Norm),
            &["rms_?norm", "layer_?norm", "qk_?norm", "group_?norm", "rmsnorm"],
        ),
        ("rope", Some(Category::Rope), &["<rope", "_rope", "rotary", "mrope"]),
        ("kv_cache", Some(Category::KvCache), &["and_cache", "kv_?cache_", "store_kv"]),
        (
            "activation",
            Some(Category::Activation),
            &["silu", "gelu", "swiglu", "geglu", "act_and_mul", "relu"],
        ),
        ("softmax", Some(Category::Softmax), &["softmax"]),
        ("topk", Some(Category::SamplingTopk), &["topk"]),
        ("quant", Some(Category::Quantize), &["quant>", "quant_", "_quant", "fp8_quant"]),
        ("transpose", Some(Category::Layout), &["transpose"]),
        ("dropout", Some(Category::Random), &["dropout"]),
        ("bias", None, &["<bias_", "_bias_", "biasadd", "bias_add"]),
    ];
    if name.starts_with("triton_") || name.is_empty() {
        return Vec::new();
    }
    let own = crate::classify(RawKind::Kernel, name, crate::Platform::Unknown).category;
    // Library words of generic GEMM, attention and embedding names describe settings, not stages.
    if matches!(
        own,
        Category::Gemm | Category::Conv | Category::Attention | Category::MoeGemm | Category::Other
    ) {
        return Vec::new();
    }
    let head = crate::head(name);
    PARTS
        .iter()
        .filter(|(_, category, any)| {
            *category != Some(own) && any.iter().any(|pattern| is_match(pattern, &head))
        })
        .map(|(tag, _, _)| *tag)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM_K: &str = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32_MI16x16x1_SN_LDSB1_GSUAMBSK_GLS0_ISA942_IU1_K1";

    #[test]
    fn tensile_names() {
        let facts = facts(STREAM_K);
        assert_eq!(
            facts.tensile,
            Some(Tensile {
                transpose_a: true,
                transpose_b: false,
                macro_tile: Some([128, 256, 32]),
                instruction: Some([16, 16, 1]),
                stream_k: true,
                hipblaslt: true,
            })
        );
        assert_eq!(facts.dtype, Some("bf16"));
        assert_eq!(facts.gfx.as_deref(), Some("gfx942"));
        assert_eq!(facts.sm, None);
        assert!(facts.fused_with.is_empty(), "_Bias_ is an ability, not a bias kernel");
        let old = super::facts(
            "Cijk_Ailk_Bljk_HHS_BH_MT256x256x32_MI32x32x8x1_SN_GSU1_ISA90a_IU1_K1_SK0",
        );
        assert_eq!(old.gfx.as_deref(), Some("gfx90a"));
        assert_eq!(old.dtype, Some("fp16"));
        let tensile = old.tensile.expect("tensile");
        assert!(!tensile.stream_k && !tensile.hipblaslt && !tensile.transpose_a);
        assert_eq!(tensile.instruction, Some([32, 32, 8]));
    }

    #[test]
    fn products_of_32_bits_without_tensor_cores() {
        for (name, expected) in [
            ("ampere_sgemm_128x32_tn", true),
            ("volta_sgemm_32x128_tn", true),
            ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_ffma_cublas", true),
            ("void cutlass::Kernel<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)", true),
            ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_cublas", false),
            ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_tn_align4>(P)", false),
            ("void precomputed_convolve_sgemm<float, 1024, 5, 5, 4, 3, 3, 1, true>(int)", false),
            ("ampere_h16816gemm_128x64_tn", false),
        ] {
            assert_eq!(is_f32_without_tensor_cores(name), expected, "{name}");
        }
    }

    #[test]
    fn convolutions_of_32_bits_without_tensor_cores() {
        for (name, expected) in [
            ("volta_scudnn_128x64_relu_interior_nn_v1", true),
            (
                "void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false>(int)",
                true,
            ),
            ("void cudnn::winograd_nonfused::winogradForwardOutput4x4<float, float>(int)", true),
            ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int)", true),
            ("volta_h884cudnn_256x64_ldg8_relu_exp_small_nhwc_tn_v1", false),
            ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc", false),
            (
                "void cudnn::cnn::wgrad_alg0_engine<__half, 512, 6, 5, 3, 3, 3, false, 512>(int)",
                false,
            ),
        ] {
            assert_eq!(is_f32_convolution_without_tensor_cores(name), expected, "{name}");
        }
    }

    #[test]
    fn miopen_names() {
        let three = facts("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x256x32_wt32x32x8_ws1x2");
        assert_eq!((three.igemm, three.gfx.as_deref()), (Some("fwd"), Some("gfx942")));
        assert_eq!(three.tile.as_deref(), Some("128x256x32"));
        let two = facts("igemm_wrw_gtcx2_nhwc_bf16_bx0_ex1_bt64x64x64_wt32x32x8");
        assert_eq!((two.igemm, two.gfx.as_deref()), (Some("wrw"), Some("gfx90a")));
    }

    #[test]
    fn nvidia_names() {
        for (name, sm) in [
            ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas", Some(90)),
            (
                "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(int)",
                Some(80),
            ),
            ("fmhaSm100aKernel_QkvBfloat16", Some(100)),
            ("volta_sgemm_64x64_nt", Some(70)),
            ("ampere_sgemm_128x64_nn", Some(80)),
            ("softmax_kernel", None),
            ("cosm2_kernel", None),
            ("nvjet_tst_128x64_64x8_2x1_v_bz_TNT", None),
        ] {
            assert_eq!(facts(name).sm, sm, "{name}");
        }
        assert_eq!(
            facts("sm90_xmma_gemm_tilesize128x128x64_warp").tile.as_deref(),
            Some("128x128x64")
        );
        assert_eq!(facts("volta_sgemm_32x128_tn").tile.as_deref(), Some("32x128"));
        assert_eq!(facts("volta_sgemm_32x128_tn").dtype, Some("fp32"));
        assert_eq!(facts("void f<c10::BFloat16>(int)").dtype, Some("bf16"));
    }

    #[test]
    fn fused_kernels_keep_one_category_and_name_the_rest() {
        assert_eq!(
            facts("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bEv").fused_with,
            ["add", "quant"]
        );
        assert_eq!(facts("_fused_qk_rope_reshape_and_cache_kernel").fused_with, ["rope"]);
        assert!(
            facts("void at::native::vectorized_elementwise_kernel<4>(int)").fused_with.is_empty()
        );
        assert!(facts("attn_fwd").fused_with.is_empty());
    }
}
