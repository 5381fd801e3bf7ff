//! Rules about what ops were called with: 64-bit floats (M24), and a tensor that grows by `aten::cat` (M25).

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::with_details;
use diagnosis::{Diagnosis, Finding};
use fixture::{Fixture, slice};
use trace::{Details, OpInputs};

const A100: &str = "NVIDIA A100-SXM4-80GB";
const RTX_4090: &str = "NVIDIA GeForce RTX 4090";
const PAGEABLE: &str = "Memcpy HtoD (Pageable -> Device)";

/// Ops from the outside in, the sizes and types of the innermost one, and its GPU slice with its length in us.
#[derive(Clone)]
struct Call {
    ops: &'static [&'static str],
    dims: String,
    types: &'static str,
    on_gpu: &'static str,
    us: i64,
}

fn call(ops: &'static [&'static str], dims: &str, types: &'static str, us: i64) -> Call {
    Call { ops, dims: dims.to_owned(), types, on_gpu: "some_kernel", us }
}

/// A run of these calls, one every `every_ns` on the CPU, the GPU's work as early as it can be.
fn run(calls: &[Call], device: &str, every_ns: i64) -> Diagnosis {
    let (mut fixture, mut details) = (Fixture::default(), Details::default());
    let json = format!(r#"[{{"id": 0, "name": "{device}", "numSms": 108, "warpSize": 32}}]"#);
    fixture.metadata("deviceProperties", &json);
    let (mut row, mut free_ns) = (0_u32, 0_i64);
    for (call, n) in calls.iter().zip(0_i64..) {
        let at = n * every_ns;
        for (op, inner) in call.ops.iter().zip(0_i64..) {
            fixture.push(slice("cpu_op", op).at(at + inner, 8_000 - 2 * inner).on(1, 1));
            row += 1;
        }
        let (dims, types) = (details.texts.intern(&call.dims), details.texts.intern(call.types));
        details.ops.push((row - 1, details.inputs.len() as u32));
        details.inputs.push(OpInputs { dims, types });
        let launch = slice("cuda_runtime", "cudaLaunchKernel").at(at + 1_000, 2_000).on(1, 1);
        fixture.push(launch.link(n + 1));
        let category = if call.on_gpu.starts_with("Memcpy") { "gpu_memcpy" } else { "kernel" };
        let start = free_ns.max(at + 4_000);
        fixture.push(slice(category, call.on_gpu).at(start, call.us * 1_000).link(n + 1));
        free_ns = start + call.us * 1_000;
        row += 2;
    }
    with_details(&fixture.finish(), &details)
}

fn told<'d>(found: &'d Diagnosis, rule: &str) -> Option<&'d Finding> {
    found.findings.iter().find(|finding| finding.rule.id() == rule)
}

const BF16: &str = r#"["c10::BFloat16","c10::BFloat16"]"#;

/// A model in bf16 of 700 us, and 300 us on points that come as 64-bit floats.
fn points() -> Vec<Call> {
    let copy = call(
        &["aten::to", "aten::_to_copy", "aten::copy_"],
        "[[64,2],[64,2],[]]",
        r#"["double","double","Scalar"]"#,
        20,
    );
    vec![
        call(&["aten::mm"], "[[4096,4096],[4096,4096]]", BF16, 500),
        Call { on_gpu: PAGEABLE, ..copy },
        call(
            &["aten::upsample_bilinear2d"],
            "[[64,3,256,256],[],[]]",
            r#"["double","ScalarList","Scalar"]"#,
            200,
        ),
        call(&["aten::gt"], "[[192,534,800],[]]", r#"["double","Scalar"]"#, 60),
        call(&["aten::index"], "[[192,534,800],[]]", r#"["double",""]"#, 20),
        call(&["aten::add"], "[[4096,4096],[4096,4096]]", BF16, 200),
    ]
}

/// The verdict of the rule about 64-bit floats on these calls.
fn is_told(calls: &[Call]) -> bool {
    told(&run(calls, A100, 10_000), "M24").is_some()
}

#[test]
fn float64_in_a_bf16_model_is_told_with_its_ops_and_where_it_begins() {
    let found = run(&points(), A100, 10_000);
    let own = told(&found, "M24").unwrap();
    assert_eq!(
        own.observation,
        "Float64 ops take 300 µs of GPU time (30.0% of the busy time): aten::upsample_bilinear2d 200 µs, aten::gt 60.0 µs, \
         aten::copy_ 20.0 µs, 1 more."
    );
    assert_eq!(
        own.meaning,
        "The first is aten::to of [64,2], from the CPU: float64 is NumPy's default. In float32 they move half the bytes: the bound, an \
         estimate, is by how much half of that time shortens the run."
    );
    assert_eq!(own.bound_ns, Some(150_000));
    let action = found.actions.iter().find(|action| action.remedy == "float32").unwrap();
    assert_eq!((action.rule.as_str(), action.bound_ns), ("M24", 150_000));
}

#[test]
fn a_conversion_on_the_gpu_is_where_float64_begins() {
    let mut calls = points();
    calls[1].on_gpu = "some_kernel";
    calls[1].types = r#"["double","c10::BFloat16","Scalar"]"#;
    let found = run(&calls, A100, 10_000);
    let meaning = &told(&found, "M24").unwrap().meaning;
    assert!(meaning.starts_with("The first is aten::to of [64,2]. In float32"), "{meaning}");
}

#[test]
fn a_gpu_that_is_slow_on_float64_has_no_bound() {
    let found = run(&points(), RTX_4090, 10_000);
    let own = told(&found, "M24").unwrap();
    assert!(
        own.bound_ns.is_none() && own.meaning.ends_with("so that no bound is known."),
        "{own:?}"
    );
    assert!(!found.actions.iter().any(|action| action.remedy == "float32"));
}

#[test]
fn float64_that_is_meant_or_that_no_kernel_computes_is_not_told() {
    let with = |change: &dyn Fn(&mut Vec<Call>)| {
        let mut calls = points();
        change(&mut calls);
        is_told(&calls)
    };
    assert!(with(&|_| ()));
    assert!(!with(&|calls| calls[0].types = r#"["double","double"]"#), "products are of float64");
    assert!(
        !with(&|calls| calls[0].ops = &["aten::add"]),
        "no product says what the model runs in"
    );
    assert!(!with(&|calls| calls[2].us = 2_000), "most of the time is on float64");
    assert!(!with(&|calls| calls[0].us = 20_000), "1.5% of the wall time");
    let is_number = |calls: &mut Vec<Call>| {
        for call in &mut calls[1..5] {
            call.dims = "[[],[],[]]".to_owned();
        }
    };
    assert!(!with(&is_number), "a number of Python");
    let is_compiled = |calls: &mut Vec<Call>| {
        for call in &mut calls[1..5] {
            call.ops = &["CompiledFunction"];
        }
    };
    assert!(!with(&is_compiled), "a compiled function may use it for a part");
    // Where each kernel waits for its launch, a shorter one saves nothing.
    let late = run(&points(), A100, 1_000_000);
    let own = told(&late, "M24").unwrap();
    assert!(own.is_aside && own.bound_ns.is_none(), "{own:?}");
}

/// A run with a product and calls of `aten::cat` with these sizes, of a length in us.
fn cats(calls: &[(String, i64)], every_ns: i64) -> Diagnosis {
    let of =
        |(dims, us): &(String, i64)| call(&["aten::cat"], dims, r#"["TensorList","Scalar"]"#, *us);
    let mut all: Vec<Call> = calls.iter().map(of).collect();
    all.insert(0, call(&["aten::mm"], "[[4096,4096],[4096,4096]]", BF16, 500));
    run(&all, A100, every_ns)
}

/// Six calls that append `rows` to what the call before made of it, along a dimension of three.
fn growing(rows: i64, dimension: usize) -> Vec<(String, i64)> {
    let sizes = |n: i64| {
        let mut sizes = [1, 16, 32];
        sizes[dimension] = n;
        format!("[{},{},{}]", sizes[0], sizes[1], sizes[2])
    };
    let of = |n: i64| (format!("[[{},{}],[]]", sizes(100 + n * rows), sizes(rows)), 10 * (n + 1));
    (0..6).map(of).collect()
}

#[test]
fn a_tensor_that_grows_by_cat_is_told_with_all_but_its_last_copy() {
    let found = cats(&growing(64, 0), 10_000);
    let own = told(&found, "M25").unwrap();
    assert_eq!(
        own.observation,
        "6 aten::cat make 1 tensor that grows: 210 µs of GPU time. The last of the longest, of [[420,16,32],[64,16,32]], \
         takes 60.0 µs."
    );
    // 10 + 20 + 30 + 40 + 50 us.
    assert_eq!(own.bound_ns, Some(150_000));
    let action = found.actions.iter().find(|action| action.remedy == "one-cat").unwrap();
    assert_eq!((action.rule.as_str(), action.bound_ns), ("M25", 150_000));
}

#[test]
fn two_tensors_that_grow_in_one_loop_are_two_chains() {
    let (rows, others) = (growing(64, 0), growing(7, 1));
    let both: Vec<_> = rows.into_iter().zip(others).flat_map(|(a, b)| [a, b]).collect();
    let found = cats(&both, 10_000);
    let own = told(&found, "M25").unwrap();
    assert!(
        own.observation.starts_with("12 aten::cat make 2 tensors that grow: "),
        "{}",
        own.observation
    );
    assert_eq!(own.bound_ns, Some(300_000));
    // One that takes less than a tenth is left out.
    let mut all = growing(64, 0);
    all.extend(growing(7, 1).into_iter().map(|(dims, _)| (dims, 1)));
    let found = cats(&all, 10_000);
    assert!(told(&found, "M25").unwrap().observation.starts_with("6 aten::cat"));
}

#[test]
fn cats_that_do_not_grow_or_grow_by_a_token_are_not_told() {
    let is_told = |calls: &[(String, i64)]| told(&cats(calls, 10_000), "M25").is_some();
    assert!(is_told(&growing(64, 1)));
    assert!(is_told(&growing(1, 0)), "one row after the other");
    assert!(!is_told(&growing(1, 1)), "keys and values of a decoder");
    assert!(!is_told(&growing(64, 2)), "features of a layer, between those of others");
    assert!(!is_told(&growing(64, 0)[..3]), "too few");
    let same = vec![growing(64, 0)[3].clone(); 6];
    assert!(!is_told(&same), "equal calls");
    let mut other = growing(64, 0);
    for (n, (dims, _)) in other.iter_mut().enumerate() {
        *dims = format!("[[[{},16,32],[64,16,32]],[]]", 100 + 50 * n);
    }
    assert!(!is_told(&other), "no result of another call");
    let unknown: Vec<_> =
        growing(64, 0).into_iter().map(|(_, us)| ("[[],[]]".to_owned(), us)).collect();
    assert!(!is_told(&unknown), "sizes of lists are not recorded");
    let mut little = growing(64, 0);
    little.insert(0, ("[[[8,8],[9,8]],[]]".to_owned(), 20_000));
    assert!(!is_told(&little), "0.7% of the wall time");
}
