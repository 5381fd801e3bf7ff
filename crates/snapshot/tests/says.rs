//! Sentences that a person acts on: who calls a wrapper, which devices matter after a failure, what steps and sizes show.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use serde_json::{Value, json};
use snapshot::{Reader, analyze};

const MIB: i64 = 1 << 20;
const A: i64 = 1 << 40;

fn document(document: &Value) -> (Value, String) {
    let mut reader = Reader::new();
    reader.push(document.to_string().as_bytes()).unwrap();
    let report = analyze(&reader.finish().unwrap());
    let text = report::document("", &report.sections()).replace('\\', "");
    (serde_json::to_value(report).unwrap(), text)
}

/// Frames of a program, innermost first: the function and the line.
fn frames(lines: &[(&str, i64)]) -> Value {
    let frame =
        |(name, line): &(&str, i64)| json!({"filename": "/app/run.py", "name": name, "line": line});
    lines.iter().map(frame).collect()
}

/// One segment per block: MiB and frames. Each is also allocated by an event, if asked for.
fn device(number: i64, blocks: &[(i64, Value)], has_events: bool) -> (Vec<Value>, Vec<Value>) {
    let (mut segments, mut events) = (Vec::new(), Vec::new());
    for (at, (mib, frames)) in (0..).zip(blocks) {
        let (address, size) = (A + at * 1024 * MIB, mib * MIB);
        let block = json!({"address": address, "size": size, "requested_size": size, "state": "active_allocated", "frames": frames});
        segments.push(json!({"device": number, "address": address, "total_size": size, "allocated_size": size, "active_size": size,
            "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [], "blocks": [block]}));
        if has_events {
            let mut event = |action: &str| {
                events.push(json!({"action": action, "addr": address, "size": size, "stream": 0, "frames": frames, "time_us": events.len()}));
            };
            event("segment_alloc");
            event("alloc");
        }
    }
    (segments, events)
}

#[test]
fn a_wrapper_that_all_memory_goes_through_is_told_with_its_callers() {
    let by = |line: i64| frames(&[("allocate", 3), ("init", 20), ("weights", line), ("main", 90)]);
    let blocks = [(70, by(31)), (36, by(32)), (4, by(33)), (1, by(34))];
    let callers = "all of it from /app/run.py:3:allocate, called by /app/run.py:31:weights (70.0 MiB), /app/run.py:32:weights \
                   (36.0 MiB), /app/run.py:33:weights (4.00 MiB).";
    for has_events in [false, true] {
        let (segments, events) = device(0, &blocks, has_events);
        let (_, text) = document(&json!({"segments": segments, "device_traces": [events]}));
        assert!(text.contains(callers), "{text}");
    }
    // One caller has all of it.
    let (segments, _) = device(0, &[(70, by(31)), (36, by(31))], false);
    let (_, text) = document(&json!({"segments": segments, "device_traces": [[]]}));
    assert!(text.contains("all of it from /app/run.py:3:allocate."), "{text}");
}

#[test]
fn a_device_that_did_not_run_out_of_memory_has_one_line() {
    let blocks = [(40, frames(&[("a", 1)])), (30, frames(&[("b", 2)])), (20, frames(&[("c", 3)]))];
    let (mut segments, first) = device(0, &blocks, true);
    let (others, mut second) = device(1, &blocks, true);
    segments.extend(others);
    let whole = |second: &[Value]| {
        document(&json!({"segments": segments, "device_traces": [first, second]}))
    };
    let (_, text) = whole(&second);
    assert!(
        text.contains("Device 0: segments and blocks")
            && text.contains("Device 1: recorded events"),
        "{text}"
    );
    second.push(json!({"action": "oom", "size": 60 * MIB, "device_free": 0, "stream": 0, "frames": frames(&[("d", 4)])}));
    let (found, text) = whole(&second);
    let line =
        "Device 0 did not run out of memory: 90.0 MiB are in use at its peak, 90.0 MiB reserved.";
    assert!(text.contains(line), "{text}");
    let (_, chapters) = text.split_once("## Device 0").unwrap();
    let (own, other) = chapters.split_once("## Device 1").unwrap();
    assert!(!own.contains('|') && other.contains("/app/run.py:1:a"), "{text}");
    let findings = found["findings"].as_array().unwrap();
    assert!(findings.iter().all(|it| it["observation"].as_str().unwrap().starts_with("Device 1")));
}

#[test]
fn blocks_without_stacks_are_told_by_size() {
    let blocks: Vec<(i64, Value)> = [40, 30, 30, 10, 10, 10, 10, 10, 10, 10, 10]
        .into_iter()
        .map(|mib| (mib, json!([])))
        .collect();
    let (segments, _) = device(0, &blocks, false);
    let (_, text) = document(&json!({"segments": segments, "device_traces": [[]]}));
    let said =
        "Device 0: 3 of 11 blocks hold 100 MiB of the 180 MiB in use (40.0 MiB, 2 of 30.0 MiB).";
    assert!(text.contains(said), "{text}");
}

#[test]
fn a_default_workspace_of_cublas_is_known_by_its_exact_size() {
    const BYTES: i64 = 8_519_680;
    let document = |bytes: i64, frames: Value| {
        let block = json!({"address": A, "size": bytes, "requested_size": bytes, "state": "active_allocated", "frames": frames});
        let segment = json!({"device": 0, "address": A, "total_size": bytes, "allocated_size": bytes, "active_size": bytes,
            "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [], "blocks": [block]});
        document(&json!({"segments": [segment], "device_traces": [[]]})).1
    };
    let python = || frames(&[("forward", 7)]);
    let text = document(BYTES, python());
    assert!(text.contains("cuBLAS (probable, by its size)"), "{text}");
    let text = document(BYTES + 512, python());
    assert!(text.contains("all of it from /app/run.py:7:forward"), "{text}");
    // Frames of C++ tell it for certain, or that it is something else.
    let mut native = python();
    native
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"filename": "??", "name": "at::empty()", "line": 0}));
    let text = document(BYTES, native);
    assert!(text.contains("all of it from /app/run.py:7:forward"), "{text}");
    let text = document(BYTES, json!([]));
    assert!(text.contains("hold 8.13 MiB of the 8.13 MiB in use. A block of"), "{text}");
    assert!(text.contains("is probably a workspace of cuBLAS"), "{text}");
    assert!(!document(BYTES + 512, json!([])).contains("cuBLAS"));
}

#[test]
fn many_blocks_of_the_size_of_a_workspace_are_tensors() {
    const BYTES: i64 = 8_519_680;
    // (As a tensor of 1040 by 4096 numbers of 2 bytes.)
    let text = |n: i64, frames: Value, events: Value| {
        let blocks: Vec<Value> = (0..n)
            .map(|at| json!({"address": A + at * BYTES, "size": BYTES, "requested_size": BYTES, "state": "active_allocated", "frames": frames}))
            .collect();
        let segment = json!({"device": 0, "address": A, "total_size": n * BYTES, "allocated_size": n * BYTES, "active_size": n * BYTES,
            "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [], "blocks": blocks});
        document(&json!({"segments": [segment], "device_traces": [events]})).1
    };
    for (n, is_workspace) in [(1, true), (2, true), (3, false), (30, false)] {
        let python = text(n, frames(&[("forward", 7)]), json!([]));
        assert_eq!(python.contains("cuBLAS (probable, by its size)"), is_workspace, "{python}");
        assert_eq!(python.contains("all of it from /app/run.py:7:forward"), !is_workspace, "{n}");
        let nameless = text(n, json!([]), json!([]));
        assert_eq!(nameless.contains("size of PyTorch's default before Hopper"), is_workspace);
    }
    // One at a time, as in a loop: only the last one is in use.
    let event = |action: &str| json!({"action": action, "addr": A, "size": BYTES, "stream": 0, "frames": frames(&[("forward", 7)])});
    let turn = ["alloc", "free_requested", "free_completed"];
    let events: Vec<Value> = turn.iter().cycle().take(7).map(|action| event(action)).collect();
    let text = text(1, frames(&[("forward", 7)]), json!(events));
    assert!(text.contains("/app/run.py:7:forward") && !text.contains("cuBLAS"), "{text}");
}

/// Steps of 10 MiB that are freed again, each behind a snapshot, and of some MiB that stay.
fn steps(stays: i64) -> String {
    let (mut segments, mut events, mut time) = (Vec::new(), Vec::new(), 0);
    let mut event = |action: &str, address: i64, mib: i64| {
        time += 1;
        events.push(json!({"action": action, "addr": address, "size": mib * MIB, "stream": 0, "frames": frames(&[("step", 7)]), "time_us": time}));
    };
    for step in 0..5 {
        let kept = A + (step + 1) * 1024 * MIB;
        event("alloc", A, 10);
        if stays > 0 {
            event("alloc", kept, stays);
        }
        event("free_requested", A, 10);
        event("free_completed", A, 10);
        event("snapshot", 0, stays * (step + 1));
        if stays > 0 {
            segments.extend(device(0, &[(stays, json!([]))], false).0);
            let segment = segments.last_mut().unwrap();
            segment["address"] = json!(kept);
            segment["blocks"][0]["address"] = json!(kept);
        }
    }
    segments.push(json!({"device": 0, "address": A, "total_size": 64 * MIB, "allocated_size": 0, "active_size": 0, "stream": 0,
        "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [],
        "blocks": [{"address": A, "size": 64 * MIB, "requested_size": 0, "state": "inactive", "frames": []}]}));
    document(&json!({"segments": segments, "device_traces": [events]})).1
}

#[test]
fn steps_that_are_alike_are_one_sentence() {
    let text = steps(0);
    let said = "memory does not grow. Each of the 4 steps after the first peaks at 10.0 MiB and ends with 0 B in use, to within 1% of the peak.";
    assert!(text.contains(said) && !text.contains("Memory by step"), "{text}");
    let text = steps(3);
    assert!(!text.contains("does not grow") && text.contains("Memory by step"), "{text}");
}

#[test]
fn checks_for_nan_by_the_engine_are_the_anomaly_mode() {
    let cpp = |names: &[&str]| -> Value {
        names.iter().map(|name| json!({"filename": "??", "name": name, "line": 0})).collect()
    };
    const ENGINE: &str =
        "torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&)";
    let check =
        cpp(&["at::detail::empty_cuda(long)", "at::_ops::isnan::call(at::Tensor const&)", ENGINE]);
    let node = cpp(&[
        "at::_ops::isnan::call(at::Tensor const&)",
        "torch::autograd::generated::MulBackward0::apply(x)",
        ENGINE,
    ]);
    let (segments, events) = device(0, &[(9, check), (8, node), (7, frames(&[("a", 1)]))], true);
    let (found, text) = document(&json!({"segments": segments, "device_traces": [events]}));
    let findings = found["findings"].as_array().unwrap();
    let own = findings.iter().find(|it| it["rule"] == "anomaly-detection").unwrap();
    let said = own["observation"].as_str().unwrap();
    assert!(said.starts_with("Device 0: 1 of 3 allocations (9.00 MiB) are NaN checks"), "{said}");
    assert!(
        text.contains("<autograd> MulBackward0") || text.contains("&lt;autograd&gt; MulBackward0"),
        "{text}"
    );
}
