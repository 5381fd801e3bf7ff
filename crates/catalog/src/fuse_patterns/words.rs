//! Words in names: as parts of a text, but never a short word inside a longer one.
//!
//! A word such as `rmsnorm` is looked for anywhere, and also as if neither text nor word had signs, so
//! that it finds `rms_norm`. A word that begins (ends) with four characters or fewer, such as `rope`,
//! `gate` or `q_norm`, must begin (end) where a word of the text does: `gate` is not in `aggregate`,
//! `fp4` is not in `mxfp4`, `kv_cache` is not in `PagedKVCacheDataType`. After `un` a word says the contrary:
//! `rocm_unquantized_gemm` quantizes nothing.

/// Words this short are looked for whole.
const SHORT: usize = 4;

/// Without signs, a word of fewer characters would be found in too much.
const SQUEEZED: usize = 6;

/// Lower-case text in which words are looked for.
#[derive(Clone, Debug)]
pub struct Text {
    raw: Vec<u8>,
    /// Letters and digits of `raw` alone.
    squeezed: Vec<u8>,
    /// Where each character of `squeezed` stands in `raw`.
    at: Vec<u32>,
    names: Names,
}

/// What a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    Kernel,
    Op,
    Function,
    Callers,
}

impl Text {
    /// The head of a kernel's name, as [`crate::head`] gives it.
    #[must_use]
    pub fn kernel(head: &str) -> Self {
        Self::new(head, Names::Kernel)
    }

    /// The name of an operator. Words that begin with `op:` are looked for here alone.
    #[must_use]
    pub fn op(name: &str) -> Self {
        Self::new(name, Names::Op)
    }

    /// The name of a Python function.
    #[must_use]
    pub fn function(name: &str) -> Self {
        Self::new(name, Names::Function)
    }

    /// The names of the Python functions on the way to the launch. Words that begin with `in:` are looked for here, and
    /// no others: what a caller is called says little of each kernel below it.
    #[must_use]
    pub fn callers(names: &str) -> Self {
        Self::new(names, Names::Callers)
    }

    fn new(text: &str, names: Names) -> Self {
        let raw = text.to_ascii_lowercase().into_bytes();
        let letters = raw.iter().zip(0_u32..).filter(|(byte, _)| byte.is_ascii_alphanumeric());
        let (squeezed, at) = letters.map(|(byte, at)| (*byte, at)).unzip();
        Self { raw, squeezed, at, names }
    }

    /// Whether the text has one of `words`, which are separated by `|`.
    #[must_use]
    pub fn has_any(&self, words: &str) -> bool {
        words.split('|').any(|word| match (word.strip_prefix("op:"), word.strip_prefix("in:")) {
            (Some(word), _) => self.names == Names::Op && self.has(word),
            (_, Some(word)) => self.names == Names::Callers && self.has(word),
            _ => self.names != Names::Callers && self.has(word),
        })
    }

    /// Whether `un` stands before the word at `first`.
    fn is_denied(&self, first: usize) -> bool {
        let before = self.raw[..first].strip_suffix(b"un");
        before.is_some_and(|before| !before.last().is_some_and(u8::is_ascii_alphanumeric))
    }

    fn has(&self, word: &str) -> bool {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric()).as_bytes();
        let Some(last) = word.len().checked_sub(1) else { return false };
        let run = |bytes: &mut dyn Iterator<Item = &u8>| {
            bytes.take_while(|byte| byte.is_ascii_alphanumeric()).count()
        };
        let whole_start = run(&mut word.iter()) <= SHORT;
        let whole_end = run(&mut word.iter().rev()) <= SHORT;
        // From the first to the last character in `raw`.
        let stands = |first: usize, last: usize| {
            !self.is_denied(first)
                && (!whole_start || first == 0 || !self.raw[first - 1].is_ascii_alphanumeric())
                && (!whole_end || !self.raw.get(last + 1).is_some_and(u8::is_ascii_alphanumeric))
        };
        let in_raw = find(&self.raw, word, |first| stands(first, first + last));
        if in_raw {
            return true;
        }
        let squeezed: Vec<u8> = word.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
        squeezed.len() >= SQUEEZED
            && find(&self.squeezed, &squeezed, |first| {
                stands(self.at[first] as usize, self.at[first + squeezed.len() - 1] as usize)
            })
    }
}

fn find(text: &[u8], word: &[u8], stands: impl Fn(usize) -> bool) -> bool {
    // Comparing first characters first is several times faster than comparing whole windows.
    let Some(first) = word.first() else { return false };
    let windows = text.windows(word.len()).enumerate();
    windows.filter(|(_, here)| here[0] == *first).any(|(at, here)| here == word && stands(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_words_are_whole_words() {
        for (word, text, expected) in [
            ("gate", "aggregate_kernel", false),
            ("gate", "moe_fused_gate", true),
            ("gate", "gated_delta_rule", false),
            ("v", "vllm::merge", false),
            ("v", "pack_k_v", true),
            ("ada", "adam_kernel", false),
            ("add", "padding", false),
            ("fp4", "_matmul_ogs_nnt_bf16xbf16xmxfp4", false),
            ("fp8", "per_token_quant_fp8", true),
            ("rope", "apply_rope", true),
            ("rope", "property", false),
            ("mla", "flashmla", false),
            ("topk", "_topk_forward", true),
            ("q_norm", "seq_norm", false),
            ("q_norm", "q_norm", true),
            ("k_norm", "block_normalize", false),
            ("kv_cache", "store_kvcache", true),
            ("kv_cache", "fp8kvcachedatatype", false),
            ("kv_cache", "batchprefillwithpagedkvcachekernel", false),
            ("quant", "rocm_unquantized_gemm_impl", false),
            ("quant", "runquant", true),
            ("fused_moe", "unfused_moe", false),
            ("set_kv", "offset_kv", false),
            ("set_kv", "set_kv_buffer", true),
        ] {
            assert_eq!(Text::kernel(text).has_any(word), expected, "{word} in {text}");
        }
    }

    #[test]
    fn signs_do_not_matter_in_long_words() {
        for (word, text) in [
            ("rmsnorm", "vllm::rms_norm_kernel"),
            ("all_reduce", "AllReduceKernel"),
            ("fused_moe_router", "FusedMoeRouterLarge"),
            ("router logits", "router_logits"),
            ("_mla_kv_pack", "mla_kv_pack_kernel"),
        ] {
            assert!(Text::function(text).has_any(word), "{word} in {text}");
        }
    }

    #[test]
    fn words_of_operators_are_looked_for_there_alone() {
        assert!(Text::op("aiter::add_rmsnorm").has_any("x|op:aiter::add_rmsnorm"));
        assert!(!Text::kernel("aiter::add_rmsnorm_quant_kernel").has_any("op:aiter::add_rmsnorm"));
    }

    #[test]
    fn of_callers_only_the_words_for_them_are_looked_for() {
        let callers = Text::callers("forward forward_prepare apply_qk_norm");
        assert!(callers.has_any("q_norm|in:apply_qk_norm"));
        assert!(!callers.has_any("apply_qk_norm"));
        assert!(!Text::function("apply_qk_norm").has_any("in:apply_qk_norm"));
    }

    #[test]
    fn nothing_is_in_nothing() {
        assert!(!Text::kernel("").has_any("rmsnorm"));
        assert!(!Text::kernel("kernel").has_any(""));
        assert!(!Text::kernel("a").has_any("||_|"));
    }
}
