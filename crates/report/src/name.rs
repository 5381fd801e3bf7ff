//! Long names, shortened for reading.

mod cpp;
mod mangled;

use std::collections::{BTreeMap, BTreeSet};

use self::cpp::Namespaces;

/// A kernel's name for reading, in at most `max` characters: without return type, parameter list and the namespaces of
/// PyTorch and the standard library, and with as many levels of template arguments as fit.
///
/// `void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, ...>(int, ...)`
/// reads `vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, …>`. The namespace of a library stays
/// (`vllm::rms_norm_kernel`), and so does the first level of arguments, which tells ATen's hundreds of elementwise
/// kernels apart. What is too long even so loses its middle: the end often tells kernels of one family apart. The whole
/// name belongs in tooltips, JSON and TSV.
#[must_use]
pub fn short_name(name: &str, max: usize) -> String {
    if let Some(kernel) = cutlass(name) {
        return elide(kernel.to_owned(), max);
    }
    if let Some(path) = mangled::path(name, max) {
        return elide(path, max);
    }
    if !(name.contains('<') || name.contains('(') || name.contains("::")) || is_spoken(name) {
        return elide(name.to_owned(), max);
    }
    let mut plain = name.to_owned();
    for filler in ["(anonymous namespace)::", "(anonymous_namespace)::", "(unnamed namespace)::"] {
        plain = plain.replace(filler, "");
    }
    for (namespaces, depth) in [
        (Namespaces::All, 4),
        (Namespaces::All, 3),
        (Namespaces::All, 2),
        (Namespaces::Outermost, 2),
        (Namespaces::Terse, 4),
        (Namespaces::Terse, 3),
        (Namespaces::Terse, 2),
    ] {
        let Some(short) = cpp::function(&plain, namespaces, depth) else {
            return elide(name.to_owned(), max);
        };
        if short.chars().count() <= max {
            return short;
        }
    }
    // The first arguments tell what a kernel does; the last are types of its loops.
    let fewer = [4, 3, 2].iter().find_map(|depth| cpp::first_arguments(&plain, *depth, max));
    fewer
        .unwrap_or_else(|| elide(cpp::function(&plain, Namespaces::Terse, 2).unwrap_or(plain), max))
}

/// Whether brackets in a name are no parameter list: a frame of Python (`graphs.py(139): replay`), or a name that goes on behind them
/// (`execute_32_context_0(0)_generation_32(32)`).
fn is_spoken(name: &str) -> bool {
    let after = name.find(')').map(|at| &name[at + 1..]);
    !name.contains('<')
        && !name.contains("::")
        && (after.is_some_and(|rest| rest.starts_with(['_', ':'])) || is_marked(name))
        || name.contains(".py(")
}

/// Whether a name ends with a letter in brackets, as people mark parts of a step: `dispatch(F)`. (No type of C++ is so short and
/// begins with a capital.)
fn is_marked(name: &str) -> bool {
    let inside = name.strip_suffix(')').and_then(|rest| rest.split_once('('));
    inside.is_some_and(|(_, mark)| {
        (1..=2).contains(&mark.len())
            && mark.starts_with(|first: char| first.is_ascii_uppercase())
            && mark.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// What CUTLASS's wrapper `cutlass::Kernel<...>` launches, mangled or not: its argument says all, `cutlass_80_simt_sgemm_128x64_8x5_nn_align1`.
/// `None` of any other name, and where the argument is a template or in a namespace.
fn cutlass(name: &str) -> Option<&str> {
    const PLAIN: [&str; 3] =
        ["cutlass::Kernel<", "cutlass::Kernel2<", "cutlass__5x_cudnn::Kernel<"];
    const MANGLED: [&str; 3] =
        ["_ZN7cutlass6KernelI", "_ZN7cutlass7Kernel2I", "_ZN17cutlass__5x_cudnn6KernelI"];
    let bare = name.strip_prefix("void ").unwrap_or(name);
    let argument = match PLAIN.iter().find_map(|wrapper| bare.strip_prefix(wrapper)) {
        Some(rest) => rest.split('>').next()?,
        None => {
            let rest = MANGLED.iter().find_map(|wrapper| name.strip_prefix(wrapper))?;
            let digits = rest.len() - rest.trim_start_matches(|of: char| of.is_ascii_digit()).len();
            // (A mangled name says how long it is, and ends there.)
            let end = digits.checked_add(rest.get(..digits)?.parse().ok()?)?;
            rest.get(digits..end).filter(|_| rest.get(end..end + 1) == Some("E"))?
        }
    };
    let is_word = argument.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_word && argument.starts_with("cutlass_")).then_some(argument)
}

/// [`short_name`] for the names of one table, which must stay apart: names that differ do not read the same. Where they
/// would, each shows what it has from the first difference on; what even so reads the same is numbered.
#[must_use]
#[inline(never)]
pub fn short_names<'a>(names: &[&'a str], max: usize) -> BTreeMap<&'a str, String> {
    let mut by_short: BTreeMap<String, BTreeSet<&'a str>> = BTreeMap::new();
    for name in names {
        by_short.entry(short_name(name, max)).or_default().insert(name);
    }
    // (Collecting would compile a sort for the type.)
    let mut taken: BTreeSet<String> = BTreeSet::new();
    taken.extend(by_short.keys().cloned());
    let mut shown: BTreeMap<&str, String> = BTreeMap::new();
    for (short, alike) in by_short {
        if alike.len() == 1 {
            shown.extend(alike.into_iter().map(|name| (name, short.clone())));
            continue;
        }
        let from = first_difference(&alike);
        let mut seen = taken.clone();
        for (number, name) in (1..).zip(alike) {
            let apart = around(&short, name, from, max);
            let apart = if seen.contains(&apart) { format!("{short} ({number})") } else { apart };
            seen.insert(apart.clone());
            shown.insert(name, apart);
        }
    }
    shown
}

/// The first byte at which some of the names differ.
fn first_difference(names: &BTreeSet<&str>) -> usize {
    // Of sorted names the first and the last have least in common.
    let (first, last) = (names.first().copied(), names.last().copied());
    let pairs = first.unwrap_or_default().bytes().zip(last.unwrap_or_default().bytes());
    pairs.take_while(|(a, b)| a == b).count()
}

/// The beginning of `short`, and `name` from the word on that holds the byte `from`.
fn around(short: &str, name: &str, from: usize, max: usize) -> String {
    let head: String = short.chars().take(max / 2).collect();
    let head = head.trim_end_matches('…');
    let before = name.get(..from).unwrap_or_default();
    let word = before.rfind(['_', '<', ' ', '(', ':']).map_or(0, |at| at + 1);
    let rest = name.get(word..).unwrap_or_default();
    let room = max.saturating_sub(head.chars().count() + 2);
    let part: String = rest.chars().take(room).collect();
    let end = if part.len() < rest.len() { "…" } else { "" };
    format!("{head}…{part}{end}")
}

/// `text` without its middle, if it has more than `max` characters: two thirds of what is left are its beginning.
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
    fn the_kernel_in_cutlass_wrapper_is_the_name() {
        for name in [
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_tn_align1>(cutlass_80_simt_sgemm_256x128_8x4_tn_align1::Params)",
            "_ZN7cutlass7Kernel2I43cutlass_80_simt_sgemm_256x128_8x4_tn_align1EEvNT_6ParamsE",
        ] {
            assert_eq!(short_name(name, 60), "cutlass_80_simt_sgemm_256x128_8x4_tn_align1");
        }
        let of_cudnn = "_ZN17cutlass__5x_cudnn6KernelI66cutlass_tensorop_s1688fprop_optimized_tf32_64x64_16x10_nhwc_align4EEvNT_6ParamsE";
        assert_eq!(
            short_name(of_cudnn, 80),
            "cutlass_tensorop_s1688fprop_optimized_tf32_64x64_16x10_nhwc_align4"
        );
        for other in [
            "_ZN7cutlass7Kernel2I99cutlass_80",
            "_ZN7cutlass7Kernel2I0cutlass_80",
            "_ZN7cutlass13device_kernelIN4vllm15cutlass_3x_gemmIfE10GemmKernelEEEvNT_6ParamsE",
            "void cutlass::Kernel<my_cutlass_ops::Foo>(int)",
        ] {
            assert_eq!(cutlass(other), None, "{other}");
        }
    }

    #[test]
    fn brackets_of_frames_and_annotations_are_no_parameter_list() {
        for name in
            ["torch/cuda/graphs.py(139): replay", "execute_32_context_0(0)_generation_32(32)"]
        {
            assert_eq!(short_name(name, 60), name);
        }
        assert_eq!(short_name("void gemm(int) [clone .kd]", 60), short_name("void gemm(int)", 60));
    }

    #[test]
    fn what_tells_kernels_apart_stays() {
        for (name, short) in [
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)",
                "vectorized_elementwise_kernel<4, CUDAFunctor_add<BFloat16>, array<char*, 3ul>>",
            ),
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)",
                "vectorized_elementwise_kernel<4, GeluCUDAKernelImpl(BFloat16), array<char*, 2ul>>",
            ),
            (
                "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)",
                "vectorized_layer_norm_kernel<BFloat16, float>",
            ),
            (
                "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(cutlass_80::Params)",
                "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8",
            ),
            ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
            (
                "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bfLi256ELi8EEEvPT0_PT_",
                "aiter::add_rmsnorm_quant_kernel<256, 8>",
            ),
            ("_ZN5aiter4normIDF16bLb1ELb0ELin3ELlEvPT0_", "aiter::norm<true, false, -3>"),
            (
                "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_26Rmsnorm2dFwdPipelineOnePassEEEEEvv",
                "ck_tile::kentry<Rmsnorm2dFwd…, 1>",
            ),
            ("_ZN2ck12_GLOBAL__N_13fooEv", "ck::foo"),
            ("_Z12batched_gemmPKf", "batched_gemm"),
            ("_Z", "_Z"),
            ("_ZN99x", "_ZN99x"),
            ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
            (
                "void k<A<B<C<int>, at::f(int)::{lambda(x<y>)#1}, D<E<F>>, G<H>>, a_quite_long_name_of_a_type_indeed>, another_long_name_of_a_type>(int)",
                "k<A<B<…>, a_quite_long_name_of_a_type_indeed>, another_long_name_of_a_type>",
            ),
            (
                "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(int)",
                "vllm::act_and_mul_kernel<BFloat16, vllm::silu_kernel<BFloat16>, true>",
            ),
            ("void a::f<a::B, (a::Kind)0>(int)", "a::f<B, 0>"),
            ("k<a<b>::value, f(x)::y<z>, 3>", "k<a<b>::value, f, 3>"),
            ("a<b", "a<b"),
            ("a>b::c", "a>b::c"),
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

    #[test]
    fn a_return_type_is_gone_and_a_library_keeps_its_name() {
        for (name, short) in [
            (
                "std::enable_if<(((0) > (0))) && vllm::_typeConvert<c10::BFloat16>::exists, void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long)",
                "vllm::fused_add_rms_norm_kernel<BFloat16, 8>",
            ),
            (
                "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float>(cublasGemvParams<int>)",
                "gemvx::kernel<int, float>",
            ),
            ("unsigned int lib::count(int)", "lib::count"),
            ("void Functor::operator()<int>(int)", "Functor::operator()<int>"),
            (
                "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<at_cuda_detail::cub::DeviceRadixSortPolicy<long, int, int>::Policy800, false>(int*)",
                "cub::DeviceRadixSortOnesweepKernel<DeviceRadixSortPolicy<long, int, int>::Policy800, false>",
            ),
            (
                "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> >(int)",
                "reduce_kernel<512, 1, ReduceOp<float, sum_functor<…>(float, float), unsigned int, float, 4>>",
            ),
            // Cut short by the profiler.
            (
                "void cub::DeviceScanKernel<cub::AgentScanPolicy<128, 15",
                "cub::DeviceScanKernel<AgentScanPolicy<128, 15",
            ),
        ] {
            assert_eq!(short_name(name, 96), short, "{name}");
        }
    }

    #[test]
    fn names_of_one_table_stay_apart() {
        let gemm = |of: &str| {
            format!(
                "void cutlass::device_kernel<dpsk::gemm::cuda::{of}::GemmKernel>(dpsk::gemm::cuda::{of}::GemmKernel::Params)"
            )
        };
        let (a, b, c) = (gemm("fp8_acc"), gemm("fp8"), gemm("m_grouped_fp8"));
        let copy = |n: u32| {
            format!(
                "void at::native::vectorized_elementwise_kernel<4, at::native::exp_kernel_cuda(at::TensorIteratorBase&)::{{lambda()#{n}}}::operator()() const::{{lambda(float)#1}}, std::array<char*, 2ul> >(int)"
            )
        };
        let (d, e) = (copy(2), copy(4));
        let tile =
            |middle: &str| format!("Cijk_{}_{middle}_{}", "A1_".repeat(60), "B2_".repeat(60));
        let (f, g) = (tile("MT64"), tile("MT128"));
        let names: Vec<&str> = [&a, &b, &c, &d, &e, &f, &g].map(String::as_str).to_vec();
        for max in [40, 56, 96] {
            let shown = short_names(&names, max);
            let distinct: BTreeSet<&String> = shown.values().collect();
            assert_eq!(distinct.len(), names.len(), "{shown:#?}");
        }
        let shown = short_names(&names, 96);
        assert_eq!(shown[a.as_str()], "cutlass::device_kernel<fp8_acc::GemmKernel>");
        assert_eq!(shown[c.as_str()], "cutlass::device_kernel<m_grouped_fp8::GemmKernel>");
        assert!(shown[f.as_str()].contains("…MT64_B2"), "{}", shown[f.as_str()]);
        assert_eq!(short_names(&["one", "one"], 96).len(), 1);
    }

    #[test]
    fn any_text_can_be_shortened() {
        let pieces = [
            "<",
            ">",
            "(",
            ")",
            "::",
            "{lambda(",
            "#1",
            "&(",
            "operator",
            " ",
            "é",
            ",",
            "_Z",
            "3ab",
            "func_wrapper_t<",
        ];
        for a in pieces {
            for b in pieces {
                for c in pieces {
                    let _ = short_name(&format!("{a}{b}{c}x{a}{c}{b}"), 8);
                }
            }
        }
        let deep = format!("void k{}int{}(int)", "<a".repeat(20_000), ">".repeat(20_000));
        assert!(short_name(&deep, 96).chars().count() <= 96);
    }
}
