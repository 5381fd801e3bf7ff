//! Operations and bytes of custom ops: a trace of one op for each family of formulas, with figures worked out by hand.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test: helpers fail as the tests do")]

mod common;

use host::HostReport;
use serde_json::{Value, json};

/// An op with its `Input Dims`, `Input type` and `Concrete Inputs`.
type Op<'a> = (&'a str, Value, Value, Value);

/// A trace of ops, each inside the one before, on an H100. The innermost launches a kernel of 1 ms.
fn trace(ops: &[Op<'_>]) -> HostReport {
    report_of(&events_of(ops))
}

fn events_of(ops: &[Op<'_>]) -> Vec<Value> {
    let mut events: Vec<Value> = (0..)
        .zip(ops)
        .map(|(n, (name, dims, types, values))| {
            json!({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": n, "dur": 100 - 2 * n,
                "args": {"Input Dims": dims, "Input type": types, "Concrete Inputs": values}})
        })
        .collect();
    let at = ops.len() + 1;
    events.push(json!({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at, "dur": 2,
        "args": {"correlation": 1}}));
    events.push(
        json!({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 200, "dur": 1000,
        "args": {"correlation": 1, "device": 0, "stream": 7}}),
    );
    events
}

fn report_of(events: &[Value]) -> HostReport {
    let file = json!({
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "numSms": 132,
            "warpSize": 32}],
        "traceEvents": events,
    });
    common::report_of(&file)
}

/// Argument lists with holes: `(number, value)`; every other one is `rest`.
fn args(n: usize, rest: &Value, these: &[(usize, Value)]) -> Value {
    let value = |at| these.iter().find(|(of, _)| *of == at).map_or(rest, |(_, value)| value);
    Value::Array((0..n).map(|at| value(at).clone()).collect())
}

fn dims(n: usize, these: &[(usize, Value)]) -> Value {
    args(n, &json!([]), these)
}

fn texts(n: usize, these: &[(usize, &str)]) -> Value {
    let these: Vec<(usize, Value)> =
        these.iter().map(|(at, text)| (*at, Value::from(*text))).collect();
    args(n, &json!(""), &these)
}

/// Of the one counted op: operations, bound, format, bytes.
fn only(report: &HostReport) -> (i128, &'static str, Option<&'static str>, Option<i128>) {
    let custom = &report.custom_ops;
    assert!(custom.uncounted.is_empty(), "{:?}", custom.uncounted);
    let [row] = &custom.rows[..] else { panic!("{:?}", custom.rows) };
    assert_eq!((row.calls, row.device_ns, row.flops), (1, 1_000_000, row.flops_with_device));
    // The figures of PyTorch's ops stay as they are, and the kernel is covered.
    assert_eq!((report.flops.total, report.flops.counted), (0, 0));
    assert!(report.traffic.uncovered.is_empty(), "{:?}", report.traffic.uncovered);
    (row.flops, row.bound.words(), row.format, row.bytes_at_least)
}

fn why(report: &HostReport) -> (&str, &'static str) {
    assert!(report.custom_ops.rows.is_empty(), "{:?}", report.custom_ops.rows);
    let [row] = &report.traffic.uncovered[..] else { panic!("{:?}", report.traffic.uncovered) };
    assert_eq!(row.device_ns, 1_000_000);
    (row.name.as_deref().unwrap(), row.why.words())
}

const BF16: &str = "c10::BFloat16";
const FP8: &str = "c10::Float8_e4m3fn";

#[test]
fn a_product_into_a_result_counts_by_the_result() {
    let op = |out: Value| -> Op<'static> {
        (
            "_C::cutlass_scaled_mm",
            dims(6, &[(0, out), (1, json!([64, 512])), (2, json!([512, 256])), (3, json!([1]))]),
            texts(6, &[(0, BF16), (1, FP8), (2, FP8), (3, "float")]),
            texts(6, &[]),
        )
    };
    let report = trace(&[op(json!([64, 256]))]);
    let bytes = 64 * 512 + 512 * 256 + 64 * 256 * 2;
    assert_eq!(only(&report), (2 * 64 * 512 * 256, "exact", Some("fp8"), Some(bytes)));
    let row = &report.custom_ops.rows[0];
    assert_eq!(row.peak_tflops, Some(1979.0));
    let tflops = (2 * 64 * 512 * 256) as f64 / 1e9;
    assert!((row.tflops.unwrap() - tflops).abs() < 1e-9);
    // A result with other rows is not that of this product.
    let report = trace(&[op(json!([65, 256]))]);
    assert_eq!(report.custom_ops.uncounted[0].why, "rank");
    assert_eq!(why(&report), ("_C::cutlass_scaled_mm", "sizes not recorded, or not usable"));
}

#[test]
fn two_values_of_4_bits_are_one_element() {
    let op = (
        "aiter::_gemm_a4w4_asm",
        dims(11, &[(0, json!([64, 256])), (1, json!([128, 256])), (4, json!([64, 128]))]),
        texts(11, &[(0, "unsigned char"), (1, "unsigned char"), (4, BF16)]),
        texts(11, &[]),
    );
    let bytes = 64 * 256 + 128 * 256 + 64 * 128 * 2;
    assert_eq!(only(&trace(&[op])), (2 * 64 * 128 * 512, "exact", None, Some(bytes)));
}

#[test]
fn a_product_with_a_weight_counts_by_its_rows_or_columns() {
    let rows = (
        "aiter::gemm_a16w16",
        dims(7, &[(0, json!([2, 32, 512])), (1, json!([128, 512]))]),
        texts(7, &[(0, BF16), (1, BF16), (3, "Scalar")]),
        texts(7, &[(3, "15")]),
    );
    let bytes = (64 * 512 + 128 * 512) * 2;
    assert_eq!(only(&trace(&[rows])), (2 * 64 * 128 * 512, "exact", Some("bf16"), Some(bytes)));
    // Eight columns of AWQ's weight are one element.
    let awq = (
        "_C::awq_gemm",
        dims(5, &[(0, json!([4, 512])), (1, json!([512, 16]))]),
        texts(5, &[(0, "c10::Half"), (1, "int")]),
        texts(5, &[(4, "8")]),
    );
    let bytes = 4 * 512 * 2 + 512 * 16 * 4;
    assert_eq!(only(&trace(&[awq])), (2 * 4 * 128 * 512, "exact", Some("fp16"), Some(bytes)));
}

#[test]
fn marlin_has_its_sizes_among_the_arguments_wherever_a_release_puts_them() {
    let op = |first: usize, inner: &'static str| {
        let sizes = [(first, "16"), (first + 1, "4096"), (first + 2, inner)];
        (
            "_C::gptq_marlin_gemm",
            dims(20, &[(0, json!([16, 512])), (2, json!([32, 8192]))]),
            texts(20, &[(0, BF16), (2, "int")]),
            texts(20, &sizes),
        )
    };
    for first in [9, 12] {
        let flops = 2 * 16 * 4096 * 512;
        let bytes = Some(16 * 512 * 2);
        assert_eq!(only(&trace(&[op(first, "512")])), (flops, "exact", Some("bf16"), bytes));
    }
    let report = trace(&[op(12, "513")]);
    assert_eq!(report.custom_ops.uncounted[0].why, "sizes disagree");
}

/// Hidden states of 10 tokens, four experts with two gates of 256 and two experts for each token.
fn experts(up: Value, down: Value) -> Op<'static> {
    (
        "vllm::outplace_fused_experts",
        dims(
            12,
            &[(0, json!([10, 64])), (1, up), (2, down), (3, json!([10, 2])), (4, json!([10, 2]))],
        ),
        texts(12, &[(0, BF16), (1, BF16), (2, BF16), (3, "float"), (4, "int")]),
        texts(12, &[]),
    )
}

#[test]
fn experts_count_each_pair_of_token_and_expert_as_a_bound() {
    let flops = 2 * 20 * 64 * (512 + 256);
    let report = trace(&[experts(json!([4, 512, 64]), json!([4, 64, 256]))]);
    assert_eq!(only(&report), (flops, "at most", Some("bf16"), None));
    // Weights of 4 bits, two in an element.
    let report = trace(&[experts(json!([4, 512, 32]), json!([4, 64, 128]))]);
    assert_eq!(only(&report).0, flops);
    let report = trace(&[experts(json!([4, 512, 64]), json!([4, 64, 250]))]);
    assert_eq!(report.custom_ops.uncounted[0].why, "inner dims differ");
}

#[test]
fn the_op_inside_counts_and_not_the_one_around_it() {
    let stage = (
        "aiter::ck_moe_stage1",
        dims(
            19,
            &[
                (0, json!([10, 64])),
                (1, json!([4, 512, 64])),
                (2, json!([4, 64, 256])),
                (6, json!([10, 2, 256])),
            ],
        ),
        texts(19, &[(0, FP8), (1, FP8), (2, FP8), (6, BF16)]),
        texts(19, &[(7, "2")]),
    );
    let around = experts(json!([4, 512, 64]), json!([4, 64, 256]));
    let report = trace(&[around, stage]);
    assert_eq!(only(&report), (2 * 20 * 64 * 512, "at most", Some("fp8"), None));
    assert_eq!(report.custom_ops.rows[0].name, "aiter::ck_moe_stage1");
    assert_eq!(report.custom_ops.outer_not_counted, 1);
    // An op of PyTorch inside counts in the other table.
    let mm = ("aten::mm", json!([[8, 4], [4, 2]]), json!([BF16, BF16]), json!(["", ""]));
    let report = trace(&[experts(json!([4, 512, 64]), json!([4, 64, 256])), mm]);
    assert_eq!((report.custom_ops.rows.len(), report.custom_ops.outer_not_counted), (0, 1));
    assert_eq!(report.flops.total, 2 * 8 * 4 * 2);
}

#[test]
fn grouped_rows_and_sizes_of_experts_are_bounds() {
    let grouped = (
        "_C::cutlass_moe_mm",
        dims(12, &[(0, json!([40, 128])), (1, json!([20, 64])), (2, json!([4, 64, 128]))]),
        texts(12, &[(0, BF16), (1, FP8), (2, FP8)]),
        texts(12, &[]),
    );
    assert_eq!(only(&trace(&[grouped])), (2 * 40 * 128 * 64, "at most", Some("fp8"), None));
    let marlin = |per_row: &'static str, m: &'static str| {
        let sizes = [(13, per_row), (17, m), (18, "128"), (19, "64")];
        let left = json!([m.parse::<u64>().unwrap(), 64]);
        (
            "sgl_kernel::moe_wna16_marlin_gemm",
            dims(24, &[(0, left), (11, json!([10, 2]))]),
            texts(24, &[(0, BF16), (11, "float")]),
            texts(24, &sizes),
        )
    };
    // The first product has a row for each token, the second for each pair.
    for (per_row, m) in [("2", "10"), ("1", "20")] {
        let flops = 2 * 20 * 128 * 64;
        assert_eq!(only(&trace(&[marlin(per_row, m)])), (flops, "at most", Some("bf16"), None));
    }
    let report = trace(&[marlin("2", "20")]);
    assert_eq!(report.custom_ops.uncounted[0].why, "sizes disagree");
}

#[test]
fn dense_attention_is_exact_without_a_window() {
    let op = |window: &'static str| {
        (
            "aiter::fmha_v3_fwd",
            dims(
                18,
                &[(0, json!([2, 8, 4, 16])), (1, json!([2, 8, 2, 16])), (2, json!([2, 8, 2, 16]))],
            ),
            texts(18, &[(0, BF16), (1, BF16), (2, BF16)]),
            texts(18, &[(5, "True"), (6, window), (7, "0")]),
        )
    };
    let flops = 2 * 2 * 4 * 36 * (16 + 16);
    let bytes = (2 * 8 * 4 * 16 + 2 * 2 * 8 * 2 * 16) * 2;
    assert_eq!(only(&trace(&[op("-1")])), (flops, "exact", Some("bf16"), Some(bytes)));
    assert_eq!(only(&trace(&[op("3")])).1, "at most");
}

#[test]
fn packed_sequences_have_at_most_the_pairs_that_their_maxima_allow() {
    // 15 sequences of at most 1,024 queries and keys, 15,360 queries in all: the call of the SGLang trace.
    let op = |causal: &'static str| {
        (
            "aiter::mha_batch_prefill",
            dims(
                30,
                &[
                    (0, json!([15360, 32, 128])),
                    (1, json!([835_874, 8, 128])),
                    (2, json!([835_874, 8, 128])),
                    (3, json!([16])),
                    (4, json!([16])),
                    (5, json!([15616])),
                ],
            ),
            texts(30, &[(0, BF16), (1, BF16), (2, BF16), (3, "int"), (4, "int"), (5, "int")]),
            texts(30, &[(6, "1024"), (7, "1024"), (12, causal)]),
        )
    };
    let pairs = 15 * (1024 * 1025 / 2);
    let found = only(&trace(&[op("True")]));
    assert_eq!(found, (2 * 32 * pairs * 256, "at most", Some("bf16"), None));
    let found = only(&trace(&[op("False")]));
    assert_eq!(found.0, 2 * 32 * 15360 * 1024 * 256);
    let report = trace(&[op("True")]);
    assert_eq!(report.custom_ops.rows[0].intensity, None);
}

#[test]
fn the_annotation_of_a_pass_has_the_lengths_of_its_sequences() {
    let op: Op<'_> = (
        "vllm::unified_attention_with_output",
        dims(
            8,
            &[
                (0, json!([5, 8, 64])),
                (1, json!([5, 2, 64])),
                (2, json!([5, 2, 64])),
                (3, json!([5, 8, 64])),
            ],
        ),
        texts(8, &[(0, BF16), (1, BF16), (2, BF16), (3, BF16)]),
        texts(8, &[]),
    );
    let within = |name: &str| {
        let mut events = vec![
            json!({"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": 0, "dur": 150}),
        ];
        events.extend(events_of(std::slice::from_ref(&op)));
        report_of(&events)
    };
    // Four queries with six keys, and one with nine. Whether the layer has a window is not recorded.
    let report = within("execute_5_context_1(sq4sk6sqsq16sqsk24)_generation_1(sq1sk9sqsq1sqsk9)");
    assert_eq!(only(&report), (2 * 8 * (24 + 9) * 128, "at most", Some("bf16"), None));
    for other in [
        "execute_6_context_1(sq5sk6sqsq25sqsk30)_generation_1(sq1sk9sqsq1sqsk9)",
        "execute_context_1(5)_generation_1(1)",
    ] {
        let report = within(other);
        // (A part of the first pass has five queries, too.)
        match other.starts_with("execute_6") {
            true => assert_eq!(only(&report).0, 2 * 8 * 30 * 128),
            false => assert_eq!(why(&report).0, "vllm::unified_attention_with_output"),
        }
    }
}

#[test]
fn a_causal_call_without_a_window_is_exact_within_such_a_pass() {
    let op = |window: &'static str| -> Op<'static> {
        (
            "aiter::mha_batch_prefill",
            dims(
                30,
                &[
                    (0, json!([5, 8, 64])),
                    (1, json!([99, 2, 64])),
                    (2, json!([99, 2, 64])),
                    (3, json!([3])),
                ],
            ),
            texts(30, &[(0, BF16), (1, BF16), (2, BF16), (3, "int")]),
            texts(30, &[(6, "4"), (7, "9"), (12, "True"), (13, window), (14, "-1")]),
        )
    };
    let name = "execute_5_context_1(sq4sk6sqsq16sqsk24)_generation_1(sq1sk9sqsq1sqsk9)";
    let pass = json!({"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": 0, "dur": 150});
    let within = |window| {
        let mut events = vec![pass.clone()];
        events.extend(events_of(&[op(window)]));
        only(&report_of(&events))
    };
    let flops = 2 * 8 * (18 + 9) * 128;
    assert_eq!(within("-1"), (flops, "exact", Some("bf16"), None));
    assert_eq!(within("2"), (flops, "at most", Some("bf16"), None));
}

#[test]
fn a_bound_above_the_peak_has_no_share_of_it() {
    // Decoding with room for a million keys.
    let op = (
        "_C::paged_attention_v1",
        dims(
            20,
            &[
                (0, json!([256, 64, 128])),
                (1, json!([256, 64, 128])),
                (2, json!([99, 8, 16, 16, 8])),
            ],
        ),
        texts(20, &[(0, BF16), (1, BF16), (2, BF16), (3, BF16)]),
        texts(20, &[(9, "1048576")]),
    );
    let report = trace(&[op]);
    assert_eq!(only(&report).0, 2 * 64 * 256 * 1_048_576 * 256);
    let row = &report.custom_ops.rows[0];
    assert!(row.tflops.unwrap() > row.peak_tflops.unwrap() && row.peak_pct.is_none());
}

#[test]
fn pages_bound_the_keys_where_no_maximum_is_recorded() {
    let op = (
        "sgl_kernel::fwd",
        dims(
            33,
            &[
                (0, json!([4, 8, 64])),
                (1, json!([99, 16, 2, 64])),
                (2, json!([99, 16, 2, 64])),
                (7, json!([5])),
                (14, json!([4, 6])),
            ],
        ),
        texts(33, &[(0, BF16), (1, BF16), (2, BF16), (7, "int"), (14, "int")]),
        texts(33, &[(24, "True")]),
    );
    // Each of four sequences has one query, which sees all of its at most 96 keys.
    assert_eq!(only(&trace(&[op])).0, 2 * 8 * 4 * 96 * 128);
}

#[test]
fn what_the_arguments_do_not_determine_is_listed_with_the_reason() {
    let none =
        || (json!([[8, 64, 64], [8, 8, 64], []]), json!([BF16, BF16, ""]), json!(["", "", ""]));
    for (name, reason) in [
        (
            "vllm::unified_attention_with_output",
            "sizes of weights or cache are not among the arguments",
        ),
        ("vllm::moe_forward", "sizes of weights or cache are not among the arguments"),
        ("aiter::paged_attention_ragged", "lengths of the sequences are in GPU memory"),
        (
            "sglang_profiler::attention_paged_attention_ragged_100",
            "lengths of the sequences are in GPU memory",
        ),
        ("_C_cache_ops::reshape_and_cache_flash", "the number of padding tokens is in GPU memory"),
        ("aiter::moe_sorting_fwd", "tokens of each expert are in GPU memory"),
        ("some::op", "no formula for this op"),
    ] {
        let (dims, types, values) = none();
        assert_eq!(why(&trace(&[(name, dims, types, values)])), (name, reason));
    }
}

#[test]
fn bytes_of_custom_ops_are_among_those_of_others() {
    let op = (
        "sgl_kernel::rotary_embedding",
        json!([[32], [32, 4096], [32, 1024], [], [41216, 128], []]),
        json!(["long int", BF16, BF16, "Scalar", BF16, "Scalar"]),
        json!(["", "", "", "128", "", "True"]),
    );
    let report = trace(&[op]);
    let [row] = &report.traffic.rows[..] else { panic!("{:?}", report.traffic.rows) };
    assert_eq!(row.bytes_at_least, 32 * 8 + 2 * 32 * (4096 + 1024) * 2);
    assert!(report.traffic.uncovered.is_empty());
}

/// What is newly covered in real traces, against figures worked out from the events' arguments.
#[test]
fn real_traces_have_the_operations_of_their_attention() {
    let Some(folder) = testkit::shared("corpus/traces") else { return };
    let read = |name: &str| {
        let file = std::fs::read(folder.join(format!("{name}.json.gz"))).unwrap();
        let mut decoder = decode::Decoder::new();
        decoder.push(&file).unwrap();
        let decoded = decoder.finish().unwrap();
        let mut reader = decode::DetailsReader::with_host(&decoded, host::wants_inputs);
        reader.push(&file);
        host::host(&host::HostIndex::of(&decoded.trace), &reader.finish())
    };
    let report = read("mi300_sglang_prefilldecode");
    let custom = &report.custom_ops;
    let [row] = &custom.rows[..] else { panic!("{:?}", custom.rows) };
    assert_eq!((row.name.as_str(), row.calls), ("aiter::mha_batch_prefill", 36));
    // The annotation of the pass has the lengths: 15 sequences of 1,024 tokens.
    assert_eq!(row.flops, 36 * 2 * 32 * 15 * (1024 * 1025 / 2) * 256);
    assert_eq!(row.bound.words(), "exact");
    // Each of 144 products calls aten::mm, which counts.
    assert_eq!(custom.outer_not_counted, 144);
    let rotary = report.traffic.rows.iter().find(|row| row.name.ends_with("rotary_embedding"));
    let each = 15360 * 8 + 2 * 15360 * (4096 + 1024) * 2;
    assert_eq!(rotary.map(|row| (row.calls, row.bytes_at_least)), Some((36, 36 * each)));
    // A capture runs nothing, but its ops have their sizes.
    let report = read("mi300_vllm_decode_capture");
    assert!(report.custom_ops.rows.iter().all(|row| row.device_ns == 0), "{:?}", report.custom_ops);
}

#[test]
fn a_product_of_one_kernel_is_its_rate_and_that_of_several_is_of_none() {
    let (sizes, types) =
        (json!([[64, 512], [512, 256]]), json!(["c10::BFloat16", "c10::BFloat16"]));
    let product = ("aten::mm", sizes, types, json!(["", ""]));
    let report = trace(std::slice::from_ref(&product));
    let [row] = &report.rates.kernels[..] else { panic!("one kernel: {:?}", report.rates.kernels) };
    let flops = 2 * 64 * 512 * 256;
    assert_eq!(
        (&*row.name, row.format, row.flops, row.device_ns),
        ("k", Some("bf16"), flops, 1_000_000)
    );
    assert_eq!(row.peak_tflops, Some(989.4));
    let bytes = (64 * 512 + 512 * 256 + 64 * 256) * 2;
    assert_eq!(row.gb_per_s, Some(f64::from(bytes) / 1e6));
    // A fill before it does no operations.
    let mut events = events_of(&[product]);
    let fill = json!({"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": 150, "dur": 20,
        "args": {"correlation": 3, "device": 0, "stream": 7}});
    let call = json!({"ph": "X", "cat": "cuda_runtime", "name": "cudaMemsetAsync", "pid": 1, "tid": 1, "ts": 8, "dur": 2,
        "args": {"correlation": 3}});
    let filled = report_of(&[&events[..], &[fill, call]].concat());
    assert_eq!(filled.rates.kernels[0].device_ns, 1_000_000);
    assert_eq!(filled.rates.rows[0].device_ns, 1_020_000);
    // A second kernel of the call, as where a sum is split.
    events.push(json!({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 5, "dur": 2,
        "args": {"correlation": 2}}));
    events.push(json!({"ph": "X", "cat": "kernel", "name": "reduce", "pid": 0, "tid": 7, "ts": 1300, "dur": 10,
        "args": {"correlation": 2, "device": 0, "stream": 7}}));
    let report = report_of(&events);
    assert!(report.rates.kernels.is_empty(), "{:?}", report.rates.kernels);
    assert_eq!(report.rates.rows[0].device_ns, 1_010_000);
}
