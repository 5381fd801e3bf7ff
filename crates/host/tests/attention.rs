//! Operations of attention whose mask is a number, on traces of one op: its place among the arguments depends on the version of PyTorch.

mod common;

use serde_json::json;

/// Operations of one call for 64 sequences of 16 queries and keys in 8 heads of 32, by the arguments that are no tensors.
fn operations(values: &[&str]) -> i128 {
    let shape = json!([64, 16, 8, 32]);
    let dims: Vec<_> =
        (0..values.len()).map(|at| if at < 3 { shape.clone() } else { json!([]) }).collect();
    let types: Vec<_> = (0..values.len()).map(|at| if at < 3 { "float" } else { "" }).collect();
    let file = json!({"traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::_efficient_attention_forward", "pid": 1, "tid": 1, "ts": 0, "dur": 50,
            "args": {"Input Dims": dims, "Input type": types, "Concrete Inputs": values}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 5, "dur": 2,
            "args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "fmha_cutlassF_f32", "pid": 0, "tid": 7, "ts": 20, "dur": 100,
            "args": {"correlation": 1, "device": 0, "stream": 7}},
    ]});
    common::report_of(&file).flops.total
}

#[test]
fn the_mask_is_before_the_flag_that_follows_it_in_any_version() {
    const FULL: i128 = 2 * 64 * 8 * 16 * 16 * (32 + 32);
    const CAUSAL: i128 = 2 * 64 * 8 * (16 * 17 / 2) * (32 + 32);
    // PyTorch 2.1: one longest length, dropout, the mask, whether sums are kept.
    let older = |mask| operations(&["", "", "", "", "", "", "", "0.", mask, "False", "", "", ""]);
    assert_eq!((older("0"), older("1")), (FULL, CAUSAL));
    // PyTorch 2.3: two of them.
    let newer =
        |mask| operations(&["", "", "", "", "", "", "", "", "0.", mask, "False", "", "", ""]);
    assert_eq!((newer("0"), newer("1")), (FULL, CAUSAL));
}
