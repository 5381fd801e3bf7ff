//! Memory by module: the chain of functions `forward` in the stacks, computed by hand.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use serde_json::{Value, json};
use snapshot::{Reader, analyze};

const MIB: i64 = 1 << 20;
const A: i64 = 1 << 40;
const APP: &str = "/app/gpt.py";
const LIBRARY: &str = "/x/site-packages/transformers/models/bert.py";
/// Hooks and decorators may be between a call of a module and its function.
const CALL: &[(&str, i64, &str)] = &[
    ("/x/site-packages/accelerate/hooks.py", 12, "new_forward"),
    ("/x/site-packages/torch/nn/modules/module.py", 1751, "_call_impl"),
    ("/x/site-packages/torch/nn/modules/module.py", 1740, "_wrapped_call_impl"),
    ("/x/site-packages/torch/nn/modules/container.py", 250, "forward"),
    ("/x/site-packages/torch/nn/modules/module.py", 1751, "_call_impl"),
];

/// A stack: functions `forward` from the outermost to the innermost, each called as a module or not, within `main`.
fn stack(chain: &[(&str, i64)], is_called: bool) -> Value {
    let mut frames = vec![("/app/train.py", 9, "main")];
    for (file, line) in chain {
        if is_called {
            frames.extend(CALL.iter().rev());
        }
        frames.push((*file, *line, "forward"));
    }
    let innermost = ("/x/site-packages/torch/nn/modules/linear.py", 134, "forward");
    frames.extend(CALL.iter().rev().chain([&innermost]).filter(|_| is_called));
    frames
        .iter()
        .rev()
        .map(|(file, line, name)| json!({"filename": file, "name": name, "line": line}))
        .collect()
}

/// Blocks of MiB with stacks, one segment each, all in use; the first is also allocated and freed before.
fn report(blocks: &[(i64, Value)]) -> (Value, String) {
    let (mut segments, mut events) = (Vec::new(), Vec::new());
    for (at, (mib, frames)) in (0..).zip(blocks) {
        let (address, size) = (A + at * 1024 * MIB, mib * MIB);
        let block = json!({"address": address, "size": size, "requested_size": size, "state": "active_allocated", "frames": frames});
        segments.push(json!({"device": 0, "address": address, "total_size": size, "allocated_size": size, "active_size": size,
            "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [], "blocks": [block]}));
        let mut event = |action: &str| {
            events.push(json!({"action": action, "addr": address, "size": size, "stream": 0, "frames": frames, "time_us": events.len()}));
        };
        event("segment_alloc");
        event("alloc");
        if at == 0 {
            event("free_requested");
            event("free_completed");
            event("alloc");
        }
    }
    let document = json!({"segments": segments, "device_traces": [events]});
    let mut reader = Reader::new();
    reader.push(document.to_string().as_bytes()).unwrap();
    let report = analyze(&reader.finish().unwrap());
    let text = report::document("", &report.sections()).replace('\\', "");
    (serde_json::to_value(report).unwrap(), text)
}

#[test]
fn memory_is_counted_for_each_module_of_the_chain() {
    let (found, text) = report(&[
        (8, stack(&[(APP, 70), (APP, 56), ("/app/attention.py", 36)], true)),
        (16, stack(&[(APP, 70), (APP, 56), ("/app/attention.py", 38)], true)),
        (4, stack(&[(APP, 70), (APP, 57), (APP, 44)], true)),
        (2, stack(&[(APP, 72)], true)),
        (1, stack(&[], true)),
        // A workspace of a library is nobody's, whoever called it first.
        (1, {
            let mut frames = stack(&[(APP, 72)], true);
            let workspace =
                json!({"filename": "??", "name": "at::cuda::getNewWorkspace()", "line": 0});
            frames.as_array_mut().unwrap().insert(0, workspace);
            frames
        }),
        (32, stack(&[(LIBRARY, 5), (LIBRARY, 9)], true)),
    ]);
    let rows = found["memory_by_module"]["0"].as_array().unwrap();
    let row = |row: &Value| {
        let mib = |key: &str| row[key].as_i64().unwrap() / MIB;
        let of = (mib("peak_bytes"), mib("peak_own_bytes"), mib("allocated_bytes"));
        (row["module"].as_str().unwrap().to_owned(), row["depth"].as_i64().unwrap(), of)
    };
    let found: Vec<_> = rows.iter().map(row).collect();
    let expected = [
        // (A called module of PyTorch is no row: torch.nn.Linear is the line that calls it.)
        ("transformers/models/bert.py:forward", 0, (32, 0, 32)),
        ("transformers/models/bert.py:5 → forward", 1, (32, 32, 32)),
        ("/app/gpt.py:forward", 0, (30, 2, 38)),
        ("/app/gpt.py:70 → :56 → /app/attention.py:forward", 2, (24, 24, 32)),
        ("/app/gpt.py:70 → forward", 1, (28, 0, 36)),
        ("/app/gpt.py:70 → :57 → forward", 2, (4, 4, 4)),
        ("outside of forward functions", 0, (2, 2, 2)),
    ];
    let mut expected: Vec<_> =
        expected.iter().map(|(name, depth, of)| ((*name).to_owned(), *depth, *of)).collect();
    expected.sort_by_key(|row| std::cmp::Reverse(row.2.0));
    assert_eq!(found, expected);
    assert!(rows.iter().take(6).all(|row| row["confidence"] == "high"), "{rows:?}");
    assert_eq!(rows[6]["confidence"], "none");
    // What models and the rest hold is what is in use at the peak.
    let tops = rows.iter().filter(|row| row["depth"] == 0);
    assert_eq!(tops.map(|row| row["peak_count"].as_i64().unwrap()).sum::<i64>(), 7);
    assert!(text.contains("Memory by module") && text.contains("/app/gpt.py:70 → :56"), "{text}");
    let is_small = "less than a twentieth of the peak is for the page";
    assert!(!text.contains("outside of forward functions"), "{is_small}: {text}");
}

#[test]
fn a_forward_that_is_not_called_as_a_module_is_less_sure() {
    let (found, text) =
        report(&[(8, stack(&[(APP, 70), (APP, 56)], false)), (4, stack(&[(APP, 70)], true))]);
    let confidence: Vec<&str> = found["memory_by_module"]["0"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["confidence"].as_str().unwrap())
        .collect();
    assert_eq!(confidence, ["medium", "medium", "none"]);
    // A direct call within a model leaves the model sure: the frames of the outermost call are the last ones before its `forward`.
    let mut inner_is_direct = stack(&[(APP, 70), (APP, 56)], true);
    let frames = inner_is_direct.as_array_mut().unwrap();
    frames.drain(..CALL.len() + 1);
    frames.drain(1..=CALL.len());
    let (found, _) = report(&[(8, inner_is_direct)]);
    let rows = found["memory_by_module"]["0"].as_array().unwrap();
    let sure = rows.iter().map(|row| (row["depth"].as_i64(), row["confidence"].as_str()));
    let sure: std::collections::BTreeMap<_, _> = sure.collect();
    assert_eq!(sure[&Some(1)], Some("medium"), "{rows:?}");
    assert!(rows.iter().any(|row| row["confidence"] == "high"), "the model is called: {rows:?}");
    // One model with one module in it: call sites say as much.
    assert!(!text.contains("Memory by module"), "{text}");
    let (found, _) = report(&[(8, stack(&[], true))]);
    assert_eq!(found["memory_by_module"], json!({}), "nothing of the program is a module");
}
