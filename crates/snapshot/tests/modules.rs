//! What a report says of modules.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use snapshot::{Reader, analyze};

/// A block that is allocated below a frame of a file.
fn intro(file: &str) -> Vec<String> {
    let frames = format!(
        r#"[{{"filename": "/app/model.py", "line": 3, "name": "forward"}},
            {{"filename": "{file}", "line": 1, "name": "_call_impl"}}]"#
    );
    let text = format!(
        r#"{{"segments": [{{"device": 0, "address": 4096, "total_size": 1024, "allocated_size": 1024, "active_size": 1024, "stream": 0,
            "segment_type": "small", "blocks": [{{"address": 4096, "size": 1024, "requested_size": 1000,
            "state": "active_allocated", "frames": {frames}}}]}}], "device_traces": [[
            {{"action": "segment_alloc", "addr": 4096, "size": 1024, "stream": 0, "frames": []}},
            {{"action": "alloc", "addr": 4096, "size": 1000, "stream": 0, "frames": {frames}}}]]}}"#
    );
    let mut reader = Reader::new();
    reader.push(text.as_bytes()).unwrap();
    let report = analyze(&reader.finish().unwrap());
    report.sections().into_iter().next().map(|section| section.intro).unwrap_or_default()
}

#[test]
fn memory_by_module_is_said_to_be_not_recorded_where_modules_ran() {
    let says =
        |file| intro(file).iter().filter(|line| line.contains("by module is not recorded")).count();
    assert_eq!(says("/x/site-packages/torch/nn/modules/module.py"), 1);
    assert_eq!(says("/app/train.py"), 0);
}
