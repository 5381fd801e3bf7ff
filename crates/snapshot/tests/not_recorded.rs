//! Snapshots without a timeline: what they say, once, and how to record one.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use serde_json::{Value, json};
use snapshot::{Reader, Snapshot, analyze};

fn read(text: &str, size: usize) -> Snapshot {
    let mut reader = Reader::new();
    for piece in text.as_bytes().chunks(size) {
        reader.push(piece).unwrap();
    }
    reader.finish().unwrap()
}

/// All sentences of the report.
fn says(snapshot: &Snapshot) -> String {
    let sections = analyze(snapshot).sections();
    let lines: Vec<String> = sections.into_iter().flat_map(|section| section.intro).collect();
    lines.join("\n")
}

fn segments(frames: &Value) -> Value {
    json!([{"device": 0, "address": 4096, "total_size": 1024, "allocated_size": 1024, "active_size": 1024, "requested_size": 1000,
        "stream": 0, "segment_type": "small", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [],
        "blocks": [{"address": 4096, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": frames}]}])
}

const HOW: &str = "torch.cuda.memory._record_memory_history()";

#[test]
fn a_snapshot_without_events_says_once_that_recording_was_off() {
    let line = json!([{"filename": "/app/run.py", "name": "main", "line": 7}]);
    let event = json!({"action": "alloc", "addr": 4096, "size": 1000, "stream": 0, "frames": line});
    let free =
        json!({"action": "free_completed", "addr": 8192, "size": 1000, "stream": 0, "frames": []});
    for (frames, events, what) in [
        (json!([]), json!([]), "no events and no stacks: recording was off"),
        (line.clone(), json!([]), "stacks and no events: recording was on, and off when"),
        (line.clone(), json!([event]), "a single event"),
    ] {
        let text = json!({"segments": segments(&frames), "device_traces": [events]}).to_string();
        let said = says(&read(&text, 1 << 16));
        // (Stacks show that recording was on: it needs no call, but to stay on.)
        let how = if what.starts_with("stacks and") { "(enabled=None)" } else { HOW };
        assert_eq!(said.matches(how).count(), 1, "{said}");
        assert!(said.contains(what), "{said}");
    }
    let text = json!({"segments": segments(&line), "device_traces": [[event, free]]}).to_string();
    let said = says(&read(&text, 1 << 16));
    assert!(!said.contains(HOW), "{said}");
}

#[test]
fn a_list_of_segments_is_a_snapshot_and_named_as_such() {
    let line = json!([{"filename": "/app/run.py", "name": "main", "line": 7}]);
    let text = segments(&line).to_string();
    for size in [1, 7, 1 << 16] {
        let snapshot = read(&format!("\u{feff} {text}\n"), size);
        assert!(!snapshot.reading.is_cut && snapshot.reading.is_segment_list);
        assert_eq!((snapshot.segments.len(), snapshot.blocks.len()), (1, 1));
        let said = says(&snapshot);
        assert!(
            said.contains(
                "1.00 KiB in use at the time of the snapshot, all of it from /app/run.py:7:main"
            ),
            "{said}"
        );
        assert!(
            said.contains("torch.cuda.memory_snapshot()") && said.matches(HOW).count() == 1,
            "{said}"
        );
    }
    for cut in [text.len() - 1, text.len() - 4, text.len() - 40] {
        let snapshot = read(text.get(..cut).unwrap(), 1 << 16);
        assert!(snapshot.reading.is_cut, "{cut}");
        assert_eq!(snapshot.segments.len(), 1, "{cut}");
    }
}
