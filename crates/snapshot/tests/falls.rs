//! How far the peak falls without a call site, and what is inside of a call site that calls a module.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use serde_json::{Value, json};
use snapshot::{Reader, analyze};

const MIB: i64 = 1 << 20;
const A: i64 = 1 << 40;

/// A line of the program; below it a line of an installed package, in the call of a module.
fn frames(line: i64, package: &[i64]) -> Value {
    let mut frames = Vec::new();
    for line in package.iter().rev() {
        frames.push(json!({"filename": "/py/site-packages/torch/nn/functional.py", "name": "silu", "line": 1}));
        frames.push(
            json!({"filename": "/py/site-packages/pkg/mlp.py", "name": "forward", "line": line}),
        );
        frames.push(json!({"filename": "/py/site-packages/torch/nn/modules/module.py", "name": "_call_impl", "line": 1}));
    }
    frames.push(json!({"filename": "/app/run.py", "name": "main", "line": line}));
    json!(frames)
}

/// Blocks by slot: MiB and stack; 0 MiB frees.
fn report(steps: &[(i64, i64, Value)]) -> (Value, String) {
    let mut live: Vec<(i64, i64, Value)> = Vec::new();
    let mut events = Vec::new();
    let mut put = |action: &str, slot: i64, mib: i64, frames: &Value| {
        events.push(json!({"action": action, "addr": A + slot * 64 * MIB, "size": mib * MIB, "stream": 0, "frames": frames}));
    };
    for (slot, mib, frames) in steps {
        if *mib > 0 {
            put("alloc", *slot, *mib, frames);
            live.push((*slot, *mib, frames.clone()));
            continue;
        }
        let place = live.iter().position(|live| live.0 == *slot).unwrap();
        let (_, mib, _) = live.remove(place);
        put("free_requested", *slot, mib, &json!([]));
        put("free_completed", *slot, mib, &json!([]));
    }
    let segments: Vec<Value> = (0..16)
        .map(|slot| {
            let at = A + slot * 64 * MIB;
            let size = live.iter().find(|live| live.0 == slot).map_or(0, |live| live.1 * MIB);
            let block = |at: i64, size: i64, state: &str| json!({"address": at, "size": size, "requested_size": size, "state": state, "frames": []});
            let blocks: Vec<Value> = [
                block(at, size, "active_allocated"),
                block(at + size, 64 * MIB - size, "inactive"),
            ]
            .into_iter()
            .filter(|block| block["size"] != 0)
            .collect();
            json!({"device": 0, "address": at, "total_size": 64 * MIB, "allocated_size": size, "active_size": size,
                "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [],
                "blocks": blocks})
        })
        .collect();
    let document = json!({"segments": segments, "device_traces": [events]}).to_string();
    let mut reader = Reader::new();
    reader.push(document.as_bytes()).unwrap();
    let report = analyze(&reader.finish().unwrap());
    let first = report.sections()[0].intro[0].clone();
    (serde_json::to_value(report).unwrap(), first)
}

fn finding(report: &Value) -> Option<Value> {
    let mut findings = report["findings"].as_array().unwrap().iter();
    findings.find(|finding| finding["rule"] == "dominant-site").cloned()
}

#[test]
fn the_peak_falls_to_that_of_the_events_without_the_call_site() {
    let line = |line| frames(line, &[]);
    let none = json!([]);
    // 40 of 50 MiB; later 20 of others.
    let steps = [(0, 10, line(1)), (1, 40, line(2)), (1, 0, none.clone()), (2, 10, line(3))];
    let (found, _) = report(&steps);
    let own = finding(&found).unwrap();
    assert_eq!(
        own["observation"],
        "Device 0: /app/run.py:2:main allocated 40.0 MiB of the 50.0 MiB in use at the peak (80%) in 1 block."
    );
    assert_eq!(own["hypothesis"], "");
    assert!(
        own["validation"].as_str().unwrap().starts_with(
            "Without these blocks the recorded events peak at 20.0 MiB instead of 50.0 MiB."
        ),
        "{own}"
    );
    // As much again, but of many lines: without the first nothing falls, and no other one makes a peak.
    let mut many = steps.to_vec();
    many.extend((3..10).map(|slot| (slot, 5, line(slot))));
    assert_eq!(finding(&report(&many).0), None);
}

#[test]
fn call_sites_that_make_equal_peaks_are_one_finding() {
    let line = |line| frames(line, &[]);
    let none = json!([]);
    let steps = [
        (0, 10, line(1)),
        (1, 40, line(2)),
        (1, 0, none.clone()),
        (2, 39, line(3)),
        (2, 0, none),
        (3, 10, line(4)),
    ];
    let own = finding(&report(&steps).0).unwrap();
    assert_eq!(
        own["observation"],
        "Device 0: /app/run.py:2:main allocated 40.0 MiB of the 50.0 MiB in use at the peak (80%) in 1 block. Of the 49.0 MiB in use \
         before event 5, /app/run.py:3:main allocated 39.0 MiB."
    );
    assert!(own["hypothesis"].as_str().unwrap().contains("all of these call sites"), "{own}");
    assert!(
        own["validation"].as_str().unwrap().contains("at 20.0 MiB instead of 50.0 MiB"),
        "{own}"
    );
}

#[test]
fn a_call_of_a_module_is_named_with_its_deepest_line_that_holds_half() {
    // Of 50 MiB 30 come from line 54, which line 12 calls; 20 from line 12 by itself.
    let steps = [(0, 30, frames(2, &[12, 54])), (1, 20, frames(2, &[12]))];
    let (found, first) = report(&steps);
    let own = finding(&found).unwrap();
    let said = own["observation"].as_str().unwrap();
    assert!(said.ends_with("in 2 blocks (30.0 MiB of it in pkg/mlp.py:54:forward)."), "{said}");
    assert!(own["action"].as_str().unwrap().contains("pkg/mlp.py:54:forward"), "{own}");
    assert!(
        first.ends_with(
            "all of it from /app/run.py:2:main (30.0 MiB of it in pkg/mlp.py:54:forward)."
        ),
        "{first}"
    );
    // No single line below line 12 has a half.
    let steps = [
        (0, 20, frames(2, &[12, 54])),
        (1, 20, frames(2, &[12, 55])),
        (2, 20, frames(2, &[12, 56])),
    ];
    let said = finding(&report(&steps).0).unwrap()["observation"].as_str().unwrap().to_owned();
    assert!(said.ends_with("(60.0 MiB of it in pkg/mlp.py:12:forward)."), "{said}");
    // No module is called.
    let said = report(&[(0, 30, frames(2, &[])), (1, 1, frames(2, &[]))]).1;
    assert!(said.ends_with("all of it from /app/run.py:2:main."), "{said}");
}

#[test]
fn lines_of_one_function_are_summed_where_none_of_them_is_large() {
    let own = |file: &str, line: i64| json!([{"filename": file, "name": "update", "line": line}]);
    let (a, b) = ("/app/a.py", "/app/b.py");
    let steps = [
        (0, 20, own(a, 1)),
        (1, 20, own(a, 2)),
        (2, 20, own(b, 3)),
        (3, 20, frames(4, &[])),
        (4, 20, frames(5, &[])),
    ];
    let (found, first) = report(&steps);
    let said = finding(&found).unwrap()["observation"].as_str().unwrap().to_owned();
    assert_eq!(
        said,
        "Device 0: /app/a.py:update (2 of its lines together) allocated 40.0 MiB of the 100 MiB in use at the peak (40%) in 2 blocks."
    );
    // So does the first sentence.
    assert!(
        first.ends_with("40.0 MiB (40%) of it from /app/a.py:update (2 of its lines together)."),
        "{first}"
    );
}

#[test]
fn temporaries_of_an_optimizer_of_pytorch_are_a_finding() {
    let own = json!({"filename": "/app/run.py", "name": "main", "line": 2});
    let by = |file: &str, name: &str| {
        json!([{"filename": file, "name": name, "line": 5},
            {"filename": "/py/site-packages/torch/optim/optimizer.py", "name": "wrapper", "line": 4}, own])
    };
    let temporaries = |frames: Value, n_freed: usize| {
        let mut steps = vec![(0, 30, json!([own])), (1, 6, frames.clone()), (2, 4, frames)];
        steps.extend([(1, 0, json!([])), (2, 0, json!([]))].into_iter().take(n_freed));
        let found = report(&steps).0;
        let mut findings = found["findings"].as_array().unwrap().iter();
        findings.find(|finding| finding["rule"] == "optimizer-temporaries").cloned()
    };
    let adam = "/py/site-packages/torch/optim/adam.py";
    let found = temporaries(by(adam, "_multi_tensor_adam"), 2).unwrap();
    assert_eq!(
        found["observation"],
        "Device 0: 10.0 MiB of the 40.0 MiB in use at the peak (25%) are temporaries of the optimizer, freed within its step, in 2 blocks \
         (10.0 MiB of it in torch/optim/adam.py:5:_multi_tensor_adam)."
    );
    assert!(found["action"].as_str().unwrap().contains("fused=True"), "{found}");
    assert_eq!(
        found["validation"],
        "Without these temporaries the recorded events peak at 30.0 MiB instead of 40.0 MiB. With foreach=False, the temporaries of one \
         parameter come on top."
    );
    // One parameter at a time: only the fused kernel needs less.
    let found = temporaries(by(adam, "_single_tensor_adam"), 2).unwrap();
    assert!(!found["action"].as_str().unwrap().contains("foreach=False"), "{found}");
    // It has no fused kernel.
    let found = temporaries(by("/py/site-packages/torch/optim/rprop.py", "_multi_tensor_rprop"), 2);
    assert!(!found.unwrap()["action"].as_str().unwrap().contains("fused"));
    // What stays is its state; an optimizer of the program has no such settings.
    assert_eq!(temporaries(by(adam, "_multi_tensor_adam"), 0), None);
    assert_eq!(temporaries(by("/app/adam.py", "_multi_tensor_adam"), 2), None);
}

#[test]
fn what_stands_for_the_whole_recording_is_no_dominant_site() {
    let line = |line| frames(line, &[]);
    let run = |is_freed: bool| {
        let mut steps = vec![(0, 40, line(1))];
        for slot in 1..6 {
            steps.extend([(slot, slot, line(slot + 1)), (slot, 0, json!([]))]);
        }
        if is_freed {
            steps.push((0, 0, json!([])));
        }
        report(&steps)
    };
    let (found, first) = run(false);
    assert_eq!(finding(&found), None);
    assert!(
        first.ends_with(
            "/app/run.py:1:main. This block is in use from event 0 to the end of the recording; all other memory in use peaks at 5.00 MiB."
        ),
        "{first}"
    );
    let (found, first) = run(true);
    let action = finding(&found).unwrap()["action"].clone();
    assert_eq!(action, "Free what this line allocates earlier, or compute it in parts.");
    assert!(!first.contains("all other memory"), "{first}");
}
