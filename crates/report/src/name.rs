//! Long names, shortened for reading.

/// A C++ kernel name without what only the compiler needs: return type, parameter list, namespaces, and as
/// many levels of template arguments as do not fit `max` characters.
///
/// `void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, ...>(int, ...)`
/// reads `vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, …>`. The first level always stays because
/// it tells ATen's hundreds of elementwise kernels apart; what is too long even so loses its middle. The
/// whole name is never lost: it is in the title and in every copy.
#[must_use]
pub fn short_name(name: &str, max: usize) -> String {
    let name = name.strip_prefix("void ").unwrap_or(name);
    if let Some(path) = mangled_path(name) {
        return elide(path, max);
    }
    if !(name.contains('<') || name.contains('(') || name.contains("::")) {
        return elide(name.to_owned(), max);
    }
    let name = name.replace("(anonymous namespace)::", "");
    for depth in [4, 3, 2] {
        let short = without_noise(&name, depth);
        if short.chars().count() <= max {
            return short;
        }
    }
    elide(without_noise(&name, 1), max)
}

/// `name` with template arguments down to `depth` levels.
fn without_noise(name: &str, depth: u32) -> String {
    let mut out = String::with_capacity(name.len());
    // Where the path at each level of angles began in `out`: `a<b>::c` keeps only `c`.
    let mut paths = vec![0];
    let mut angles = 0_u32;
    let mut parens = 0_u32;
    // Inside an argument, everything after a parameter list belongs to a lambda or to a function's type;
    // it is skipped up to the end of the argument, which is one of this level of angles.
    let mut skipping: Option<u32> = None;
    let mut chars = name.chars().peekable();
    while let Some(char) = chars.next() {
        if parens > 0 {
            match char {
                '(' => parens += 1,
                ')' => parens -= 1,
                _ => {}
            }
            continue;
        }
        let shown = angles <= depth && skipping.is_none();
        match char {
            // "Memcpy HtoD (Pageable -> Device)" is no C++: a parameter list follows its name directly.
            '(' if angles == 0 && !out.ends_with(' ') => break,
            '(' | ')' if angles == 0 => out.push(char),
            // A function as an argument, `&(float ns::f<int>(int))`, is told by its name.
            '(' if out.ends_with('&') => {}
            // A cast before a value, `(ns::Type)0`, says nothing that the value does not.
            '(' if shown && paths.last() == Some(&out.len()) => parens = 1,
            '(' => {
                parens = 1;
                skipping.get_or_insert(angles);
            }
            '<' => {
                angles += 1;
                if shown {
                    out.push('<');
                    if angles > depth {
                        out.push('…');
                    }
                }
                paths.push(out.len());
            }
            '>' if angles == 0 => {
                out.push('>');
                begin(&mut paths, out.len());
            }
            '>' => {
                if skipping == Some(angles) {
                    skipping = None;
                }
                angles -= 1;
                paths.pop();
                if angles <= depth && skipping.is_none() {
                    out.push('>');
                }
            }
            ',' if skipping == Some(angles) => {
                skipping = None;
                out.push(',');
                begin(&mut paths, out.len());
            }
            _ if !shown => {}
            ',' | ' ' => {
                if char == ',' || chars.peek() != Some(&'>') {
                    out.push(char);
                }
                begin(&mut paths, out.len());
            }
            ':' if chars.peek() == Some(&':') => {
                chars.next();
                out.truncate(paths.last().copied().unwrap_or(0));
            }
            other => out.push(other),
        }
    }
    out
}

/// A new path begins at `at`.
fn begin(paths: &mut [usize], at: usize) {
    if let Some(path) = paths.last_mut() {
        *path = at;
    }
}

/// The path of an Itanium-mangled name (ROCm often leaves names so), with the first identifier of its
/// template arguments: `_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdI...` reads `ck_tile::kentry<Rmsnorm2dFwd…>`.
fn mangled_path(name: &str) -> Option<String> {
    let mut rest = name.strip_prefix("_Z")?;
    let nested = rest.strip_prefix('N');
    rest = nested.unwrap_or(rest).trim_start_matches(['K', 'V']);
    let mut components = Vec::new();
    while let Some((identifier, after)) = identifier(rest) {
        // GCC's and Clang's spelling of an anonymous namespace.
        if !identifier.starts_with("_GLOBAL__N_") {
            components.push(identifier);
        }
        rest = after;
        if nested.is_none() {
            break;
        }
    }
    // The outermost namespace names the library; those between say little.
    let mut path = match components.as_slice() {
        [] => return None,
        [only] => (*only).to_owned(),
        [first, .., last] => format!("{first}::{last}"),
    };
    if let Some(arguments) = rest.strip_prefix('I') {
        // Digits stand in types and literals too (`DF16b`, `Li256E`): a class begins after one of these.
        let first = arguments.char_indices().skip(1).find_map(|(at, char)| {
            let before = arguments[..at].chars().next_back();
            let begins = char.is_ascii_digit() && matches!(before, Some('N' | '_' | 'E'));
            begins.then(|| identifier(&arguments[at..])).flatten()
        });
        match first.filter(|(argument, _)| argument.len() > 2) {
            Some((argument, _)) => path.push_str(&format!("<{argument}…>")),
            // Sizes and switches are all that tells such kernels apart.
            None => {
                let values = literals(arguments);
                if !values.is_empty() {
                    path.push_str(&format!("<{}>", values.join(", ")));
                }
            }
        }
    }
    Some(path)
}

/// The numbers and truth values among template arguments: `Li256E` and `Lb1E` are 256 and true.
fn literals(arguments: &str) -> Vec<String> {
    let value = |(at, _): (usize, &str)| {
        let (kind, rest) = arguments[at + 1..].split_at_checked(1)?;
        let (sign, rest) = rest.strip_prefix('n').map_or(("", rest), |rest| ("-", rest));
        let digits = &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()];
        if digits.is_empty() || !rest[digits.len()..].starts_with('E') {
            return None;
        }
        match kind {
            "b" => Some(if digits == "0" { "false" } else { "true" }.to_owned()),
            "i" | "j" | "l" | "m" | "s" | "t" | "x" | "y" | "a" | "h" | "c" => {
                Some(format!("{sign}{digits}"))
            }
            _ => None,
        }
    };
    arguments.match_indices('L').filter_map(value).collect()
}

/// A length-prefixed identifier and what follows it.
fn identifier(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let len: usize = text.get(..digits)?.parse().ok()?;
    let name = text.get(digits..digits.checked_add(len)?)?;
    let word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let starts = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    (word && starts).then(|| (name, &text[digits + len..]))
}

fn elide(text: String, max: usize) -> String {
    let length = text.chars().count();
    if length <= max || max < 3 {
        return text;
    }
    let (head, tail) = ((max - 1) * 2 / 3, (max - 1) - (max - 1) * 2 / 3);
    let mut short: String = text.chars().take(head).collect();
    short.push('…');
    short.extend(text.chars().skip(length - tail));
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_kernels_apart_stays() {
        for (name, short) in [
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)",
                "vectorized_elementwise_kernel<4, CUDAFunctor_add<BFloat16>, array<char*, 3ul>>",
            ),
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)",
                "vectorized_elementwise_kernel<4, GeluCUDAKernelImpl, array<char*, 2ul>>",
            ),
            (
                "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)",
                "vectorized_layer_norm_kernel<BFloat16, float>",
            ),
            (
                "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(cutlass_80::Params)",
                "Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>",
            ),
            ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
            (
                "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bfLi256ELi8EEEvPT0_PT_",
                "aiter::add_rmsnorm_quant_kernel<256, 8>",
            ),
            ("_ZN5aiter4normIDF16bLb1ELb0ELin3ELlEvPT0_", "aiter::norm<true, false, -3>"),
            (
                "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_26Rmsnorm2dFwdPipelineOnePassEEEEEvv",
                "ck_tile::kentry<Rmsnorm2dFwd…>",
            ),
            ("_ZN2ck12_GLOBAL__N_13fooEv", "ck::foo"),
            ("_Z12batched_gemmPKf", "batched_gemm"),
            ("_Z", "_Z"),
            ("_ZN99x", "_ZN99x"),
            ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
            (
                "void k<A<B<C<int>, at::f(int)::{lambda(x<y>)#1}, D<E<F>>, G<H>>, a_quite_long_name_of_a_type_indeed>, another_long_name_of_a_type>(int)",
                "k<A<B<C<…>, f, D<…>, G<…>>, a_quite_long_name_of_a_type_indeed>, another_long_name_of_a_type>",
            ),
            (
                "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(int)",
                "act_and_mul_kernel<BFloat16, BFloat16 silu_kernel<BFloat16>, true>",
            ),
            ("void a::f<a::B, (a::Kind)0>(int)", "f<B, 0>"),
            ("k<a<b>::value, f(x)::y<z>, 3>", "k<value, f, 3>"),
            ("a<b", "a<b"),
            ("a>b::c", "a>c"),
            ("", ""),
        ] {
            assert_eq!(short_name(name, 96), short, "{name}");
        }
    }

    #[test]
    fn the_middle_goes_when_a_name_is_too_long() {
        let name = format!("Cijk_{}_end", "x".repeat(300));
        let short = short_name(&name, 40);
        assert_eq!(short.chars().count(), 40);
        assert!(short.starts_with("Cijk_xxx") && short.ends_with("x_end"), "{short}");
        assert_eq!(short_name("日本語日本語", 4), "日本…語");
    }
}
