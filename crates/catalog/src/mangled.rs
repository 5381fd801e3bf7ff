//! Reads the identifiers out of an Itanium-mangled name (`_ZN7ck_tile6kentryI...`).
//!
//! Not a demangler: it reads just enough of the grammar to distinguish the length in front of an
//! identifier from the digits of a literal, a substitution or a builtin type.

/// Whether `name` looks mangled.
#[must_use]
pub fn is_mangled(name: &str) -> bool {
    name.starts_with("_Z") && name.len() > 3
}

/// Every identifier of a mangled name, in its order.
struct Identifiers<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Identifiers<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            let bytes = self.rest.as_bytes();
            let first = *bytes.first()?;
            let skip = match first {
                b'0'..=b'9' => match identifier(self.rest) {
                    Some((word, used)) => {
                        self.rest = &self.rest[used..];
                        return Some(word);
                    }
                    None => 1,
                },
                // A literal: type and value, `Li128E`, `Lb0E`, `Lin1E`.
                b'L' if bytes.get(1).is_some_and(u8::is_ascii_lowercase) => {
                    self.rest.find('E').map_or(bytes.len(), |end| end + 1)
                }
                // A substitution: `St`, `Sa` or `S_`, `S4_`, `SA_`.
                b'S' if bytes.get(1).is_some_and(u8::is_ascii_lowercase) => 2,
                b'S' | b'T' => match self.rest[1..].find('_') {
                    Some(n) if self.rest[1..=n].bytes().all(is_sequence_digit) => n + 2,
                    _ => 1,
                },
                // `DF16b`, `DF16_`, `Dv4_f`.
                b'D' if matches!(bytes.get(1), Some(b'F' | b'v')) => {
                    2 + bytes[2..].iter().take_while(|b| b.is_ascii_digit()).count()
                }
                _ => 1,
            };
            self.rest = self.rest.get(skip..)?;
        }
    }
}

fn is_sequence_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || byte.is_ascii_uppercase()
}

/// The identifier behind the decimal length that `text` starts with, and the bytes used.
/// A name that the profiler cut short gives what is left of the identifier.
fn identifier(text: &str) -> Option<(&str, usize)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length: usize = text.get(..digits)?.parse().ok()?;
    let end = digits.checked_add(length)?.min(text.len());
    let word = text.get(digits..end)?;
    let sound = word.len() > 1
        && !word.as_bytes()[0].is_ascii_digit()
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    sound.then_some((word, end))
}

fn is_anonymous(word: &str) -> bool {
    word.starts_with("_GLOBAL__N") || word.starts_with("_INTERNAL_")
}

/// The first `most` identifiers of a mangled name, template arguments included, anonymous namespaces
/// left out.
#[must_use]
pub fn identifiers(name: &str, most: usize) -> Vec<&str> {
    let all = Identifiers { rest: name.strip_prefix("_Z").unwrap_or(name) };
    all.filter(|word| !is_anonymous(word)).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KENTRY: &str = "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_40BlockFmhaBatchPrefillPipelineQRKSVSAsyncINS_36BlockFmha";
    const GROUPED_CONV: &str = "_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_34GridwiseGemmMultiD_xdl_cshuffle_v3INS_13tensor_layout4gemm8RowMajorE";

    #[test]
    fn literals_substitutions_and_builtin_types_are_no_lengths() {
        assert_eq!(
            identifiers(
                "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0EEEvPT0_PT_PfS4_",
                6
            ),
            ["aiter", "add_rmsnorm_quant_kernel"]
        );
        assert_eq!(
            identifiers(KENTRY, 3),
            ["ck_tile", "kentry", "FmhaBatchPrefillWithPagedKVCacheKernel"]
        );
        assert_eq!(
            identifiers(GROUPED_CONV, 4),
            ["ck", "tensor_operation", "device", "kernel_grouped_conv_fwd_xdl_cshuffle_v3"]
        );
    }

    #[test]
    fn nonsense_gives_little_and_does_not_panic() {
        for name in ["_Z", "_Z9", "_Z99999999999999999999x", "_ZN", "_ZL", "_ZS", "_ZDF", "_ZN5aé"]
        {
            let _ = identifiers(name, 6);
        }
        assert_eq!(identifiers("_ZN5aiter24add_rms", 6), ["aiter", "add_rms"]);
    }
}
