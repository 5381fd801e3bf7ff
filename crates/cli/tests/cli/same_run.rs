//! `memory --trace`: a trace and a snapshot of one run.

use crate::common::Folder;

/// Unix time of the trace's 0, in ns.
const BASE_NS: u64 = 1_700_000_000_000_000_000;
const MIB: u64 = 1 << 20;

/// Four allocations in two steps: (us, address, bytes). The second is freed in the first step.
const ALLOCATIONS: [(u64, u64, u64); 4] = [
    (10_100, 0x1000_0000, 8 * MIB),
    (10_300, 0x2000_0000, 2 * MIB),
    (30_100, 0x3000_0000, 16 * MIB),
    (30_120, 0x4000_0000, 16 * MIB),
];

/// A trace of two steps: `aten::mm` on a thread around the first two allocations, `aten::addmm` around the others, with
/// `aten::empty` inside. `later_us` moves its events, `with_memory` records `[memory]` events, `devices` are listed.
fn trace(later_us: u64, with_memory: bool, devices: usize) -> String {
    let slice = |cat: &str, name: &str, ts: u64, dur: u64| {
        let ts = ts + later_us;
        format!(
            r#"{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": 1, "tid": 1, "ts": {ts}, "dur": {dur}, "args": {{}}}}"#
        )
    };
    let mut events = vec![
        slice("user_annotation", "ProfilerStep#0", 10_000, 9_000),
        slice("user_annotation", "ProfilerStep#1", 30_000, 9_000),
        slice("cpu_op", "aten::mm", 10_090, 400),
        slice("cpu_op", "aten::empty", 10_095, 20),
        slice("cpu_op", "aten::addmm", 30_090, 400),
        slice("cpu_op", "aten::empty", 30_095, 40),
        slice("python_function", "/app/model.py(7): forward", 30_050, 900),
    ];
    // The recorded window is wider than that of the snapshot's allocations.
    let edges = [(1_000, 0x9000_0000, MIB), (60_000, 0x9100_0000, MIB)];
    for (at, address, bytes) in ALLOCATIONS.into_iter().chain(edges).filter(|_| with_memory) {
        let ts = at + later_us + 3;
        events.push(format!(
            r#"{{"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": {ts}, "args": {{
            "Bytes": {bytes}, "Addr": {address}, "Device Id": 0, "Device Type": 1}}}}"#
        ));
    }
    let devices = (0..devices).map(|id| format!(r#"{{"id": {id}, "name": "G"}}"#));
    let devices = devices.collect::<Vec<_>>().join(",");
    format!(
        r#"{{"baseTimeNanoseconds": {BASE_NS}, "deviceProperties": [{devices}], "traceEvents": [{}]}}"#,
        events.join(",\n")
    )
}

/// The snapshot of the same run. `moved` is added to every address.
fn snapshot(moved: u64) -> String {
    let base_us = BASE_NS / 1_000;
    let mut events = Vec::new();
    let mut blocks = Vec::new();
    for (at, address, bytes) in ALLOCATIONS {
        let (line, time_us, address) =
            (if at < 20_000 { 3 } else { 7 }, base_us + at, address + moved);
        let event = |action: &str, time_us: u64| {
            format!(
                r#"{{"action": "{action}", "addr": {address}, "size": {bytes}, "stream": 0, "time_us": {time_us}, "frames":
                [{{"filename": "/app/model.py", "line": {line}, "name": "forward"}}]}}"#
            )
        };
        events.push((at, event("alloc", time_us)));
        if bytes == 2 * MIB {
            events.push((at + 100, event("free_requested", time_us + 100)));
            events.push((at + 100, event("free_completed", time_us + 100)));
        } else {
            blocks.push((address, bytes, line));
        }
    }
    let events: Vec<String> = events.into_iter().map(|(_, text)| text).collect();
    let segments: Vec<String> = blocks
        .into_iter()
        .map(|(address, bytes, line)| {
            format!(
                r#"{{"device": 0, "address": {address}, "total_size": {bytes}, "allocated_size": {bytes}, "active_size": {bytes},
                "stream": 0, "segment_type": "large", "blocks": [{{"address": {address}, "size": {bytes}, "requested_size": {bytes},
                "state": "active_allocated", "frames": [{{"filename": "/app/model.py", "line": {line}, "name": "forward"}}]}}]}}"#
            )
        })
        .collect();
    format!(
        r#"{{"segments": [{}], "device_traces": [[{}]]}}"#,
        segments.join(","),
        events.join(",")
    )
}

/// The figures and the text.
fn said(name: &str, trace: &str, snapshot: &str) -> (serde_json::Value, String) {
    let folder = Folder::new(name);
    folder.write("run.json", trace);
    folder.write("snapshot.json", snapshot);
    let arguments = ["memory", "snapshot.json", "--trace", "run.json"];
    let text = folder.run(&arguments).done().stdout;
    let mut with_json = arguments.to_vec();
    with_json.push("--json");
    (folder.run(&with_json).done().json()["same_run"].clone(), text)
}

#[test]
fn addresses_show_that_two_files_are_of_one_run() {
    let (found, text) = said("same-run", &trace(0, true, 1), &snapshot(0));
    assert_eq!(found["verdict"], "shown", "{found:#}");
    assert_eq!(found["evidence"]["same"], 4);
    assert_eq!(found["evidence"]["apart_ns"], 3_000);
    assert!(
        text.contains("4 of 4 allocations within the time that both record have the same address at the same time"),
        "{text}"
    );
    let places = found["places"].as_array().expect("rows");
    let peak = places.iter().find(|row| row["asked"] == "peak").expect("the peak");
    assert_eq!(
        (&peak["op"], &peak["line"]),
        (&"aten::addmm".into(), &"/app/model.py:7 forward".into())
    );
    assert_eq!(peak["bytes"], 40 * MIB);
    let late = places
        .iter()
        .find(|row| row["asked"] == "at_peak" && row["site"] == "/app/model.py:7:forward")
        .expect("the larger site");
    assert_eq!(late["op"], "aten::addmm");
    assert_eq!(
        (&late["op_bytes"], &late["placed_bytes"]),
        (&(32 * MIB).into(), &(32 * MIB).into())
    );
    assert_eq!(late["steps"], serde_json::json!(["ProfilerStep#1"]));
    let early = places
        .iter()
        .find(|row| row["asked"] == "at_peak" && row["site"] == "/app/model.py:3:forward")
        .expect("the smaller site");
    assert_eq!((&early["op"], &early["bytes"]), (&"aten::mm".into(), &(8 * MIB).into()));
    assert_eq!(early["line"], serde_json::Value::Null, "no frame is around it");
}

#[test]
fn a_file_of_another_rank_is_not_taken_for_the_run() {
    // The same times, other addresses.
    let (found, text) = said("same-run-rank", &trace(0, true, 1), &snapshot(0x10_0000));
    assert_eq!((&found["verdict"], &found["evidence"]["same"]), (&"not_shown".into(), &0.into()));
    assert!(text.contains("Another rank or process wrote it."), "{text}");
    assert_eq!(found["places"], serde_json::json!([]));
}

#[test]
fn clocks_alone_make_it_likely_and_its_ops_an_estimate() {
    let (found, text) = said("same-run-clock", &trace(0, false, 1), &snapshot(0));
    assert_eq!((&found["verdict"], &found["is_estimate"]), (&"likely".into(), &true.into()));
    assert!(text.contains("Estimate: ops are found by time alone."), "{text}");
    let peak = &found["places"][0];
    assert_eq!((&peak["asked"], &peak["op"]), (&"peak".into(), &"aten::addmm".into()));
    // Another number of devices is another run, or another machine.
    let (found, text) = said("same-run-devices", &trace(0, false, 2), &snapshot(0));
    assert_eq!(found["verdict"], "not_shown");
    assert!(text.contains("it lists 2 devices, the snapshot 1 device"), "{text}");
}

#[test]
fn recordings_of_different_times_are_told_apart() {
    let (found, text) = said("same-run-apart", &trace(5_000_000, true, 1), &snapshot(0));
    assert_eq!(found["evidence"]["by"], "apart", "{found:#}");
    // From the last event of the snapshot (30.12 ms) to the first step of the trace (5010 ms).
    assert_eq!(found["evidence"]["ns"], 4_979_880_000_i64);
    assert!(text.contains("lie between the two recordings"), "{text}");
    let without_base = trace(0, true, 1).replace("baseTimeNanoseconds", "baseTime");
    let (found, _) = said("same-run-no-base", &without_base, &snapshot(0));
    assert_eq!(found["evidence"], serde_json::json!({"by": "no_time", "is_trace": true}));
}

#[test]
fn the_report_says_whether_its_two_files_are_of_one_run() {
    let folder = Folder::new("same-run-report");
    folder.write("run.json", trace(0, true, 1));
    folder.write("snapshot.json", snapshot(0));
    let arguments = [
        "report",
        "--cpu-trace",
        "run.json",
        "--memory-json",
        "snapshot.json",
        "--md-out",
        "r.md",
        "--json-out",
        "r.json",
    ];
    folder.run(&arguments).done();
    let text = folder.text("r.md");
    assert_eq!(text.matches("is of the same run: 4 of 4 allocations").count(), 2, "{text}");
    let json: serde_json::Value = serde_json::from_str(&folder.text("r.json")).expect("JSON");
    assert_eq!(json["memory"]["same_run"]["verdict"], "shown");
}
