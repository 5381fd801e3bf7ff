//! Reads an Itanium-mangled name (`_ZN7ck_tile6kentryI...`) as its demangled form is spelled, near enough for rules:
//! `ck_tile::kentry<1, Rmsnorm2dFwd<...`.
//!
//! Not a demangler: what a substitution (`S0_`) stands for, qualifiers, pointers and the parameters of the kernel itself are
//! left out. A name that the profiler cut short gives what is left of it.

/// Whether `name` looks mangled.
#[must_use]
pub(crate) fn is_mangled(name: &str) -> bool {
    name.starts_with("_Z") && name.len() > 3
}

// Functions are small and not inlined: the loop over a name is short, and a browser compiles what it runs a second time with all
// that is inlined in it.

/// What is open at a place of the name; all end with `E`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// `N`: a name of several parts.
    Nested,
    /// `I`: template arguments.
    Arguments,
    /// `J`, `F`: a pack, a function type.
    Other,
    /// `X`: an expression.
    Expression,
    /// `Z`: a function, of which an entity inside follows. Whether its name is over, so that parameters follow.
    Local(bool),
    /// `Ul`: a lambda's parameters.
    Lambda,
    /// `L` with a type that is no letter. Whether the type is over, so that the value follows.
    Literal(bool),
}

struct Reader<'a> {
    rest: &'a str,
    out: String,
    /// What is open, each with the number of its parts.
    stack: Vec<(Open, usize)>,
    /// The next part belongs to what is spelled already.
    glue: bool,
}

impl Reader<'_> {
    fn top(&self) -> Option<Open> {
        self.stack.last().map(|(open, _)| *open)
    }

    fn skip(&mut self, n: usize) {
        self.rest = self.rest.get(n..).unwrap_or_default();
    }

    /// Spells what stands between two parts.
    #[inline(never)]
    fn begin(&mut self) {
        let glue = std::mem::take(&mut self.glue);
        let Some((open, n)) = self.stack.last_mut() else {
            self.out.push_str(if glue { "::" } else { "" });
            return;
        };
        *n += 1;
        let between = match open {
            _ if glue => "::",
            _ if *n == 1 => "",
            Open::Nested => "::",
            _ => ", ",
        };
        self.out.push_str(between);
    }

    fn push(&mut self, open: Open, opening: &str) {
        self.out.push_str(opening);
        self.stack.push((open, 0));
    }

    /// A name or type is over.
    #[inline(never)]
    fn ended(&mut self) {
        if self.rest.starts_with('I') {
            return;
        }
        match self.stack.last_mut() {
            Some((Open::Local(over @ false), n)) => {
                (*over, *n) = (true, 0);
                self.out.push('(');
            }
            Some((Open::Literal(over @ false), _)) => {
                *over = true;
                self.out.push(')');
            }
            _ => {}
        }
    }

    /// `E`.
    #[inline(never)]
    fn close(&mut self) {
        self.skip(1);
        let Some((open, _)) = self.stack.pop() else { return };
        match open {
            Open::Arguments => self.out.push('>'),
            Open::Local(over) => {
                self.out.push_str(if over { ")" } else { "" });
                self.glue = true;
                return;
            }
            Open::Lambda => {
                self.out.push_str(")}");
                let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
                self.skip(digits + usize::from(self.rest[digits..].starts_with('_')));
            }
            Open::Nested | Open::Other | Open::Expression | Open::Literal(_) => {}
        }
        self.ended();
    }

    /// A literal that begins with `L`.
    #[inline(never)]
    fn literal(&mut self) {
        let bytes = self.rest.as_bytes();
        match bytes.get(1) {
            Some(kind) if kind.is_ascii_lowercase() => {
                let end = self.rest.find('E').unwrap_or(self.rest.len());
                let value = self.rest.get(2..end).unwrap_or_default().replacen('n', "-", 1);
                self.begin();
                self.out.push_str(match (kind, value.as_str()) {
                    (b'b', "0") => "false",
                    (b'b', _) => "true",
                    (_, value) => value,
                });
                self.skip(end + 1);
            }
            // (In a name of several parts, a part that other files do not see.)
            Some(_) if self.top() == Some(Open::Nested) => self.skip(1),
            Some(b'_') => {
                self.begin();
                self.push(Open::Other, "");
                self.skip(3);
            }
            _ => {
                self.begin();
                self.push(Open::Literal(false), "(");
                self.skip(1);
            }
        }
    }

    /// A substitution that begins with `S`, or a template parameter that begins with `T`.
    #[inline(never)]
    fn substitution(&mut self) {
        let second = self.rest.as_bytes().get(1).copied().unwrap_or_default();
        if self.rest.starts_with("St") {
            self.begin();
            self.out.push_str("std");
            self.skip(2);
            self.glue = self.top() != Some(Open::Nested);
            return;
        }
        let n = self.rest[1..].bytes().take_while(|b| is_sequence_digit(*b)).count();
        let is_whole = self.rest.as_bytes().get(1 + n) == Some(&b'_');
        self.skip(if is_whole { n + 2 } else { 1 + usize::from(second.is_ascii_lowercase()) });
        self.ended();
    }

    /// An identifier, behind its length.
    #[inline(never)]
    fn word(&mut self) {
        match identifier(self.rest) {
            Some((word, used)) => {
                if !is_anonymous(word) {
                    self.begin();
                    self.out.push_str(word);
                }
                self.skip(used);
                self.ended();
            }
            None => self.skip(1),
        }
    }

    /// One step; whether the name goes on.
    fn step(&mut self) -> bool {
        let bytes = self.rest.as_bytes();
        let Some(first) = bytes.first().copied() else { return false };
        let is_over = self.stack.is_empty() && !self.out.is_empty() && !self.glue;
        if is_over && first != b'I' {
            return false;
        }
        let second = bytes.get(1).copied().unwrap_or_default();
        match first {
            b'E' => self.close(),
            b'0'..=b'9' | b'n' if self.top() == Some(Open::Literal(true)) => {
                let end = self.rest.find('E').unwrap_or(self.rest.len());
                let value = self.rest.get(..end).unwrap_or_default().to_owned();
                self.out.push_str(&value);
                self.skip(end);
            }
            b'0'..=b'9' => self.word(),
            b'I' => {
                self.push(Open::Arguments, "<");
                self.skip(1);
            }
            b'N' => {
                self.begin();
                self.push(Open::Nested, "");
                self.skip(1);
            }
            b'Z' => {
                self.begin();
                self.push(Open::Local(false), "");
                self.skip(1);
            }
            b'J' | b'F' => {
                self.push(Open::Other, "");
                self.skip(1);
            }
            b'X' => {
                self.push(Open::Expression, "");
                self.skip(1);
            }
            b'L' => self.literal(),
            b'S' | b'T' => self.substitution(),
            b'U' if second == b'l' => {
                self.begin();
                self.push(Open::Lambda, "{lambda(");
                self.skip(2);
            }
            b'U' if second == b't' => {
                let end = self.rest.find('_').unwrap_or(self.rest.len());
                self.skip(end + 1);
            }
            b'A' | b'D'
                if second.is_ascii_digit() || (first == b'D' && b"Fv".contains(&second)) =>
            {
                let from = 1 + usize::from(first == b'D');
                let digits = self.rest[from..].bytes().take_while(u8::is_ascii_digit).count();
                self.skip(from + digits);
            }
            b'c' if second == b'l' && self.top() == Some(Open::Nested) => {
                self.begin();
                self.out.push_str("operator()");
                self.skip(2);
            }
            _ => {
                let types = self.top() == Some(Open::Arguments);
                if let Some((_, name)) = TYPES.iter().find(|(sign, _)| types && *sign == first) {
                    self.begin();
                    self.out.push_str(name);
                }
                self.skip(1);
            }
        }
        true
    }
}

/// Types of one letter.
const TYPES: &[(u8, &str)] = &[
    (b'b', "bool"),
    (b'c', "char"),
    (b'd', "double"),
    (b'f', "float"),
    (b'h', "unsigned char"),
    (b'i', "int"),
    (b'j', "unsigned int"),
    (b'l', "long"),
    (b'm', "unsigned long"),
    (b's', "short"),
    (b'x', "long long"),
    (b'y', "unsigned long long"),
];

/// A mangled name as it is spelled in the source, without the parameters of the function.
#[must_use]
pub(crate) fn readable(name: &str) -> String {
    let rest = name.strip_prefix("_Z").unwrap_or(name);
    let mut reader = Reader { rest, out: String::new(), stack: Vec::new(), glue: false };
    while reader.step() {}
    reader.out
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

/// The first `most` identifiers of a mangled name, template arguments included, anonymous namespaces left out.
#[must_use]
pub(crate) fn identifiers(name: &str, most: usize) -> Vec<String> {
    let readable = readable(name);
    let words = readable.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_type = |word: &str| {
        TYPES.iter().any(|(_, name)| name.split(' ').any(|part| part == word))
            || ["true", "false", "lambda"].contains(&word)
    };
    let starts = |word: &str| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    words.filter(|word| starts(word) && !is_type(word)).take(most).map(str::to_owned).collect()
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
    fn names_read_as_their_demangled_form() {
        for (name, expected) in [
            (
                "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLy3EEEEviT0_T1_",
                "at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, std::array<char, 3>>",
            ),
            (
                "_ZN2at6native40_GLOBAL__N__0b46c3ea_8_Shape_cu_85d9f36c19CatArrayBatchedCopyINS1_10OpaqueTypeILj4EEEjLi4ELi64ELi64EEEvPT_NS1_25CatArrInputTensorMetadataIS5_T0_XT2_EXT3_EEE",
                "at::native::CatArrayBatchedCopy<OpaqueType<4>, unsigned int, 4, 64, 64>",
            ),
            (
                "_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_49_GLOBAL__N__97375e57_16_TensorCompare_cu_71e06f4e19launch_clamp_scalarERNS_18TensorIteratorBaseEN3c106ScalarES6_NS0_6detail11ClampLimitsEENKUlvE_clEvENKUlvE5_clEvEUlfE_St5arrayIPcLy2EEEEviT0_T1_",
                "at::native::vectorized_elementwise_kernel<4, launch_clamp_scalar(TensorIteratorBase, c10::Scalar, detail::ClampLimits)::{lambda()}::operator()()::{lambda()}::operator()()::{lambda()}, std::array<char, 2>>",
            ),
            (
                "_ZN5cudnn19engines_precompiled16nchwToNhwcKernelIfffLb0ELb1EL21cudnnKernelDataType_t2EEEvNS0_18nchw2nhwc_params_tIT1_EEPKT_PT0_",
                "cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>",
            ),
            (
                "_Z23implicit_convolve_sgemmIffLi1024ELi5ELb0EEviiiPKT_iPT0_S2_18kernel_conv_paramsyiffiPKS3_S7_bbii",
                "implicit_convolve_sgemm<float, float, 1024, 5, false>",
            ),
            ("_Z6kernelPf", "kernel"),
        ] {
            assert_eq!(readable(name), expected);
        }
    }

    #[test]
    fn nonsense_gives_little_and_does_not_panic() {
        for name in [
            "_Z",
            "_Z9",
            "_Z99999999999999999999x",
            "_ZN",
            "_ZL",
            "_ZS",
            "_ZDF",
            "_ZN5aé",
            "_ZEEE",
            "_ZUl",
            "_ZUlE9",
            "_ZZE",
            "_ZLé",
            "_ZSé",
            "_ZA9",
            "_ZUt",
            "_ZNLb",
            "_ZIL_",
            "_ZL_Z",
        ] {
            let _ = identifiers(name, 6);
        }
        assert_eq!(identifiers("_ZN5aiter24add_rms", 6), ["aiter", "add_rms"]);
    }
}
