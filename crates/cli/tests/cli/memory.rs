//! `memory`: what it takes beside snapshots.

use crate::common::Folder;

/// A parameter from before, an activation that is freed, and a gradient.
const ROWS: &str =
    "[[-1, 1, 1048576, 0], [5000, 2, 4194304, 4], [6000, 2, 1024, 5], [9000, 4, -4194304, 4]]";
/// The same as levels.
const LEVELS: &str = "[[0, 5, 6, 9], [[0, 1048576, 0, 0, 0, 0, 0, 0, 0], [0, 1048576, 0, 0, 0, 4194304, 0, 0, 0], \
                      [0, 1048576, 0, 0, 0, 4194304, 1024, 0, 0], [0, 1048576, 0, 0, 0, 0, 1024, 0, 0]]]";

#[test]
fn timelines_of_both_forms_are_read_as_what_they_are() {
    let folder = Folder::new("memory-timeline");
    for (name, text) in [("a.memory_timeline.raw.json", ROWS), ("b.json", LEVELS)] {
        folder.write(name, text);
        let said = folder.run(&["memory", name]).done().stdout;
        assert!(said.contains("The most memory is 5.00 MiB"), "{name}: {said}");
        let figures = folder.run(&["memory", name, "--json"]).done().json();
        assert_eq!(figures["timeline"]["peak_bytes"], 5_243_904, "{name}");
        assert_eq!(figures["timeline"]["end_bytes"], 1_049_600, "{name}");
        let refused = folder.run(&["memory", name, "--at-peak"]);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains("a memory timeline have no blocks"), "{}", refused.stderr);
    }
}

#[test]
fn another_array_is_no_timeline() {
    let folder = Folder::new("memory-array");
    folder.write("a.json", "[1, 2, 3]");
    let refused = folder.run(&["memory", "a.json"]);
    assert!(
        refused.code != 0 && refused.stderr.contains("no memory snapshot"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_snapshot_is_compared_with_an_earlier_one() {
    let snapshot = |mib: u64| {
        let size = mib << 20;
        format!(
            r#"{{"segments": [{{"device": 0, "address": 1048576, "total_size": {size}, "allocated_size": {size}, "active_size": {size},
            "stream": 0, "segment_type": "large", "blocks": [{{"address": 1048576, "size": {size}, "requested_size": {size},
            "state": "active_allocated", "frames": [{{"filename": "/app/a.py", "line": 3, "name": "load"}}]}}]}}], "device_traces": [[]]}}"#
        )
    };
    let folder = Folder::new("memory-against");
    folder.write("before.json", snapshot(64));
    folder.write("after.json", snapshot(96));
    let said = folder.run(&["memory", "after.json", "--against", "before.json"]).done().stdout;
    let first = "Memory in use at the end of device 0: 96.0 MiB, 32.0 MiB more than before (64.0 MiB, +50.0%). The largest part: \
                 32.0 MiB more from /app/a.py:3:load.";
    assert!(said.contains(first), "{said}");
    let found =
        folder.run(&["memory", "after.json", "--against", "before.json", "--json"]).done().json();
    assert_eq!(found["comparison"]["sites"]["0"][0]["end_change"], 32 << 20);
    assert_eq!(
        found["devices"]["0"]["totals"]["active"],
        96 << 20,
        "the figures of the file are those of the later one"
    );
    let refused = folder.run(&["memory", "after.json", "--against", "none.json"]);
    assert!(refused.code == 1 && refused.stderr.contains("none.json"), "{}", refused.stderr);
}

/// A weight from before, an activation of a line of Python, a buffer of an op that only allocates inside of one that does more, and
/// a free of the weight. Slices spell their thread as text and events as a number, as old files do.
fn trace_with_memory(memory: bool) -> String {
    let event = |ts: u32, address: u32, bytes: i64, total: i64| {
        format!(
            r#"{{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": {ts}, "args": {{
            "Total Reserved": 8388608, "Total Allocated": {total}, "Bytes": {bytes}, "Addr": {address}, "Device Id": 0, "Device Type": 1}}}}"#
        )
    };
    let slice = |cat: &str, name: &str, tid: u32, ts: u32, dur: u32| {
        format!(
            r#"{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": 1, "tid": "{tid}", "ts": {ts}, "dur": {dur}, "args": {{}}}}"#
        )
    };
    const MIB: i64 = 1 << 20;
    let mut events = vec![
        slice("python_function", "/app/train.py(12): forward", 1, 10, 30),
        slice("cpu_op", "aten::relu", 1, 15, 20),
        slice("cpu_op", "aten::mm", 1, 50, 20),
        slice("cpu_op", "aten::empty", 1, 55, 5),
    ];
    if memory {
        events.push(event(20, 4096, 2 * MIB, 3 * MIB));
        events.push(event(57, 8192, 3 * MIB, 6 * MIB));
        events.push(event(80, 4096, -2 * MIB, 4 * MIB));
        events.push(event(90, 512, -MIB, 3 * MIB));
    }
    format!(r#"{{"traceEvents": [{}]}}"#, events.join(","))
}

#[test]
fn memory_events_of_a_trace_are_told_by_what_allocated() {
    let folder = Folder::new("memory-of-trace");
    folder.write("trace.json", trace_with_memory(true));
    folder.write("none.json", trace_with_memory(false));
    let said = folder.run(&["memory", "trace.json"]).done().stdout;
    let first = "The most memory is 6.00 MiB, 37.0 µs after the first event: aten::mm 3.00 MiB, /app/train.py:12 forward 2.00 MiB, \
                 allocated before the first event 1.00 MiB.";
    for wanted in ["## Memory of device 0", first, "Then 8.00 MiB is reserved."] {
        assert!(said.replace('\\', "").contains(wanted), "{wanted}: {said}");
    }
    let found = folder.run(&["memory", "trace.json", "--json"]).done().json();
    let memory = &found["memory_events"][0]["memory"];
    assert_eq!(memory["preexisting_bytes"], 1 << 20);
    assert_eq!(
        memory["end_by_category"],
        serde_json::json!([{ "category": "aten::mm", "bytes": 3 << 20 }])
    );
    let refused = folder.run(&["memory", "none.json"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("profile_memory=True"),
        "{}",
        refused.stderr
    );
    let refused = folder.run(&["memory", "trace.json", "--at-peak"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

#[test]
fn a_range_of_the_events_is_told_and_the_rest_is_counted() {
    let events: Vec<String> = (0..6)
        .map(|at| {
            let address = 1_048_576 + at * 1024;
            format!(r#"{{"action": "alloc", "addr": {address}, "size": 1000, "stream": 0, "frames": []}}"#)
        })
        .collect();
    let blocks: Vec<String> = (0..6)
        .map(|at| {
            let address = 1_048_576 + at * 1024;
            format!(
                r#"{{"address": {address}, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": []}}"#
            )
        })
        .collect();
    let folder = Folder::new("memory-events");
    let snapshot = format!(
        r#"{{"segments": [{{"device": 0, "address": 1048576, "total_size": 6144, "allocated_size": 6144, "active_size": 6144,
        "stream": 0, "segment_type": "small", "blocks": [{}]}}], "device_traces": [[{}]]}}"#,
        blocks.join(", "),
        events.join(", ")
    );
    folder.write("a.json", snapshot);
    let said = folder.run(&["memory", "a.json", "--events", "1..3", "--at-peak"]).done().stdout;
    for part in [
        "Memory in use peaks at 2.93 KiB on device 0, at the end of 2 events in the chosen range",
        "Device 0: only events 1 to 2 of 6 were kept, 1 before and 3 after them left out.",
        "Device 0: before event 2",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let found = folder.run(&["memory", "a.json", "--events", "..2", "--json"]).done().json();
    assert_eq!(found["reading"]["left_out"]["0"]["behind"], 4);
    assert_eq!(found["devices"]["0"]["replay"]["peak_requested"], 2000);
    assert!(
        folder.run(&["memory", "a.json", "--json"]).done().json()["reading"]["left_out"].is_null()
    );
    for (range, why) in [
        ("6..9", "no device has as many events"),
        ("3..3", "the range has no event"),
        ("3", "expected FROM..TO"),
        ("a..3", "is not an event number"),
    ] {
        let refused = folder.run(&["memory", "a.json", "--events", range]);
        assert_eq!(refused.code, 2, "{range}: {}", refused.stderr);
        assert!(refused.stderr.contains(why), "{range}: {}", refused.stderr);
    }
}

#[test]
fn a_snapshot_without_a_timeline_is_printed_though_its_peak_was_asked_for() {
    let folder = Folder::new("memory-no-peak");
    let block = r#"{"address": 1048576, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": []}"#;
    let snapshot = format!(
        r#"{{"segments": [{{"device": 0, "address": 1048576, "total_size": 1024, "allocated_size": 1024, "active_size": 1024,
        "stream": 0, "segment_type": "small", "blocks": [{block}]}}], "device_traces": [[]]}}"#
    );
    folder.write("a.json", snapshot);
    let said = folder.run(&["memory", "a.json", "--at-peak"]).done().stdout;
    assert!(said.contains("Device 0 at the time of the snapshot"), "{said}");
    assert!(said.contains("The file has no timeline, so it shows no peak"), "{said}");
    let found = folder.run(&["memory", "a.json", "--at-peak", "--json"]).done().json();
    assert_eq!(found["states"], serde_json::json!({}));
}
