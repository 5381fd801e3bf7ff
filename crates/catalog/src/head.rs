//! The head of a kernel name: without template arguments, parameters, return type and anonymous namespaces.
//!
//! A demangled name of a thousand characters mentions the types of everything it touches; only the head
//! names the work. Mangled names (usual on ROCm) are read first ([`crate::mangled`]), so that both forms of a name have one head.

use crate::mangled;
use crate::pattern::find;

/// Names of kernels that run whatever their first template argument names.
const GENERIC: &[&str] = &["kentry", "kentry_pt", "kernel", "kernel_func", "device_kernel"];

/// The head of a kernel name, in lower case, as the rules see it.
#[must_use]
pub fn head(name: &str) -> String {
    if !mangled::is_mangled(name) {
        return short_head(name).to_ascii_lowercase();
    }
    head_of_readable(name, &mangled::readable(name))
}

/// The head of a mangled name that reads as `readable`.
fn head_of_readable(name: &str, readable: &str) -> String {
    let head = short_head(readable).to_ascii_lowercase();
    let last = head.rsplit("::").next().unwrap_or_default();
    if GENERIC.contains(&last) {
        return mangled::identifiers(name, 6).join("::").to_ascii_lowercase();
    }
    head
}

/// [`head`] and [`without_parameters`]: a mangled name is read once for both.
#[must_use]
pub(crate) fn head_and_whole(name: &str) -> (String, String) {
    if !mangled::is_mangled(name) {
        return (head(name), without_parameters(name));
    }
    let readable = mangled::readable(name);
    (head_of_readable(name, &readable), readable.to_ascii_lowercase())
}

/// `name` without what the ROCm loader appends: ` [clone .kd]`, `.kd`.
#[must_use]
pub(crate) fn without_decoration(name: &str) -> &str {
    let name = find(name, " [clone").and_then(|at| name.get(..at)).unwrap_or(name);
    name.strip_suffix(".kd").unwrap_or(name)
}

/// `name` without its parameter list, in lower case: what rules about the whole name see. Parameters
/// only repeat the types of the template arguments.
#[must_use]
pub(crate) fn without_parameters(name: &str) -> String {
    if mangled::is_mangled(name) {
        return mangled::readable(name).to_ascii_lowercase();
    }
    name[..parameters(name)].to_ascii_lowercase()
}

/// Where the parameter list starts: the first `(` outside template arguments that is no
/// `(anonymous namespace)` and not part of `operator()`. The length of the name if there is none.
fn parameters(name: &str) -> usize {
    let bytes = name.as_bytes();
    let mut open = Brackets::default();
    for (at, &byte) in bytes.iter().enumerate() {
        if byte == b'('
            && open.is_outside()
            && !name[at..].starts_with("(anonymous")
            && !name[at..].starts_with("(unnamed")
            && !(name[..at].ends_with("operator") && name[at..].starts_with("()"))
        {
            return at;
        }
        open.see(byte);
    }
    name.len()
}

/// The head of a demangled name, as it is spelled.
#[inline(never)]
fn short_head(name: &str) -> String {
    let name = without_decoration(name);
    let mut head = Vec::with_capacity(64);
    let mut open = Brackets::default();
    let declaration = &name.as_bytes()[..parameters(name)];
    for (at, &byte) in declaration.iter().enumerate() {
        // (An operator's sign is none but these: the word before is looked at for them alone.)
        let operator_sign = matches!(byte, b'<' | b'>' | b'(' | b')' | b'-')
            && declaration[..at].ends_with(b"operator");
        let outside = open.is_outside();
        if !operator_sign {
            open.see(byte);
        }
        if outside && open.is_outside() && (byte != b'>' || operator_sign) {
            head.push(byte);
        }
    }
    // (Whole characters only, as no byte of one beyond ASCII is a bracket.)
    let mut head = String::from_utf8(head).unwrap_or_default();
    for filler in ["(anonymous namespace)::", "(anonymous_namespace)::", "(unnamed namespace)::"] {
        if find(&head, filler).is_some() {
            head = head.replace(filler, "");
        }
    }
    // Copies are reported as "Memcpy HtoD (Pageable -> Device)": words, not a return type.
    let head = head.trim();
    let last = head.split_ascii_whitespace().next_back().unwrap_or_default();
    if head.starts_with("Mem") || last.is_empty() { head.to_owned() } else { last.to_owned() }
}

/// Counts brackets. Inside parentheses `<` and `>` are comparison signs or belong to types that
/// the parentheses enclose; either way they open and close nothing outside.
#[derive(Default)]
struct Brackets {
    stack: Vec<u8>,
    previous: u8,
}

impl Brackets {
    fn is_outside(&self) -> bool {
        self.stack.is_empty()
    }

    fn see(&mut self, byte: u8) {
        let top = self.stack.last().copied();
        match byte {
            b'<' if top != Some(b'(') => self.stack.push(b'<'),
            // "->" is an arrow.
            b'>' if top == Some(b'<') && self.previous != b'-' => {
                self.stack.pop();
            }
            // Parentheses matter only inside template arguments.
            b'(' if top.is_some() => self.stack.push(b'('),
            b')' if top == Some(b'(') => {
                self.stack.pop();
            }
            _ => {}
        }
        self.previous = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads() {
        for (name, expected) in [
            ("volta_sgemm_64x64_nt", "volta_sgemm_64x64_nt"),
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, \
                 at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
                "at::native::vectorized_elementwise_kernel",
            ),
            (
                "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2>(float*, long)",
                "at::native::catarraybatchedcopy",
            ),
            (
                "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>(cublasGemvParams<int>)",
                "internal::gemvx::kernel",
            ),
            // ">" inside parentheses is an operator.
            ("void f::g<(a > b), (c < d), int>(int)", "f::g"),
            (
                "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda\
                 (at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&)",
                "at::native::elementwise_kernel",
            ),
            (
                "void fbgemm_gpu::permute<false, decltype(nullptr)>(decltype(nullptr) const*)",
                "fbgemm_gpu::permute",
            ),
            ("Memcpy HtoD (Pageable -> Device)", "memcpy htod"),
            ("my_kernel(float*) [clone .kd]", "my_kernel"),
            ("paged_attention_kernel.kd", "paged_attention_kernel"),
            ("void Functor::operator()<int>(int)", "functor::operator()"),
            // Cut short by the profiler.
            ("void cub::DeviceScanKernel<cub::AgentScanPolicy<128, 15", "cub::devicescankernel"),
            ("", ""),
            ("<<<", ""),
        ] {
            assert_eq!(head(name), expected, "{name}");
        }
    }
}
