//! Long names, shortened for reading.

/// A C++ kernel name without what only the compiler needs: return type, parameter list, namespaces, and
/// template arguments deeper than one level.
///
/// `void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, ...>(int, ...)`
/// reads `vectorized_elementwise_kernel<4, CUDAFunctor_add<…>, array<…>>`. The first level stays because it
/// tells ATen's hundreds of elementwise kernels apart. Whatever is longer than `max` characters after that
/// loses its middle. The whole name is never lost: it is in the title and in every copy.
#[must_use]
pub fn short_name(name: &str, max: usize) -> String {
    let name = name.strip_prefix("void ").unwrap_or(name);
    let short = if name.contains('<') || name.contains('(') || name.contains("::") {
        without_noise(name)
    } else {
        name.to_owned()
    };
    elide(short, max)
}

fn without_noise(name: &str) -> String {
    let name = name.replace("(anonymous namespace)::", "");
    let mut out = String::with_capacity(name.len());
    // Where the current path component began in `out`: `a::b` keeps only `b`.
    let mut component = 0;
    let mut angles = 0_u32;
    let mut parens = 0_u32;
    // Inside an argument, everything after a parameter list belongs to a lambda or to a function's type.
    let mut rest_of_argument = false;
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
        match char {
            // "Memcpy HtoD (Pageable -> Device)" is no C++: a parameter list follows its name directly.
            '(' if angles == 0 && !out.ends_with(' ') => break,
            '(' | ')' if angles == 0 => out.push(char),
            '(' => {
                parens = 1;
                rest_of_argument = true;
            }
            '<' => {
                angles += 1;
                match angles {
                    1 => out.push('<'),
                    2 if !rest_of_argument => out.push_str("<…"),
                    _ => {}
                }
                component = out.len();
            }
            '>' if angles == 0 => {
                out.push('>');
                component = out.len();
            }
            '>' => {
                match angles {
                    1 => out.push('>'),
                    2 if !rest_of_argument => out.push('>'),
                    _ => {}
                }
                angles = angles.saturating_sub(1);
                if angles == 0 {
                    rest_of_argument = false;
                }
            }
            _ if angles > 1 => {}
            ',' if angles == 1 => {
                rest_of_argument = false;
                out.push(',');
                component = out.len();
            }
            _ if rest_of_argument => {}
            ':' if chars.peek() == Some(&':') => {
                chars.next();
                out.truncate(component);
            }
            ' ' if chars.peek() == Some(&'>') => {}
            ' ' => {
                out.push(' ');
                component = out.len();
            }
            other => out.push(other),
        }
    }
    out
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
                "vectorized_elementwise_kernel<4, CUDAFunctor_add<…>, array<…>>",
            ),
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)",
                "vectorized_elementwise_kernel<4, GeluCUDAKernelImpl, array<…>>",
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
            ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
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
