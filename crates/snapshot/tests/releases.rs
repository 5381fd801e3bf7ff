//! Segments that go back to the driver: asked for, or because memory ran short.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use serde_json::{Value, json};
use snapshot::{Reader, analyze};

const MIB: i64 = 1 << 20;

fn report(events: &[Value]) -> Value {
    let document = json!({"segments": [], "device_traces": [events]}).to_string();
    let mut reader = Reader::new();
    reader.push(document.as_bytes()).unwrap();
    serde_json::to_value(analyze(&reader.finish().unwrap())).unwrap()
}

fn event(action: &str, by: &str) -> Value {
    let frames = json!([{"filename": "/torch/memory.py", "name": by, "line": 1}, {"filename": "/app/run.py", "name": "main", "line": 7}]);
    json!({"action": action, "addr": 1i64 << 40, "size": 64 * MIB, "stream": 0, "frames": frames})
}

fn rules(report: &Value) -> Vec<&str> {
    let rule = |finding: &'_ Value| -> Option<&'static str> {
        ["allocation-retries", "empty-cache"].into_iter().find(|rule| finding["rule"] == *rule)
    };
    report["findings"].as_array().unwrap().iter().filter_map(rule).collect()
}

#[test]
fn a_release_before_a_new_segment_is_a_retry() {
    let events =
        [event("segment_alloc", "f"), event("segment_free", "f"), event("segment_alloc", "f")];
    let found = report(&events);
    assert_eq!(found["cache_releases"]["0"]["retries"], 1, "{found}");
    assert_eq!(found["cache_releases"]["0"]["retry_bytes"], 64 * MIB);
    assert_eq!(rules(&found), ["allocation-retries"]);
    // Before a failure the failure says more.
    let mut failed = events.to_vec();
    failed.push(event("segment_free", "f"));
    failed.push(
        json!({"action": "oom", "size": 900 * MIB, "device_free": 0, "stream": 0, "frames": []}),
    );
    let found = report(&failed);
    assert_eq!(found["cache_releases"]["0"]["retries"], 2);
    assert!(rules(&found).is_empty());
}

/// Why the driver refused memory.
fn why(report: &Value) -> &str {
    let mut findings = report["findings"].as_array().unwrap().iter();
    let own = findings.find(|finding| finding["rule"] == "allocation-retries").unwrap();
    own["hypothesis"].as_str().unwrap()
}

#[test]
fn a_retry_tells_whether_the_cache_was_in_pieces_on_other_streams_or_too_small() {
    let of = |action: &str, mib: i64, stream: i64| {
        let mut event = event(action, "f");
        event["size"] = json!(mib * MIB);
        event["stream"] = json!(stream);
        event
    };
    let retry = |freed: &[(i64, i64)]| {
        let mut events = vec![of("segment_alloc", 64, 0)];
        events.extend(freed.iter().map(|(mib, stream)| of("segment_free", *mib, *stream)));
        events.push(of("segment_alloc", 100, 0));
        // (What the driver grants later, it did not refuse.)
        let mut back = event("segment_free", "empty_cache");
        back["size"] = json!(100 * MIB);
        events.push(back);
        events
    };
    let found = report(
        &[retry(&[(60, 0), (60, 0)]), retry(&[(60, 0), (60, 1)]), retry(&[(60, 0)])].concat(),
    );
    let releases = &found["cache_releases"]["0"];
    assert_eq!(releases["retries"], 3);
    assert_eq!(releases["retries_in_pieces"], 1);
    assert_eq!(releases["retries_of_other_streams"], 1);
    let said = why(&found);
    assert!(said.starts_with(
        "At 1 of them the cache held enough on the stream of the request, in pieces; at 1 of them it held enough, but on other \
         streams; at 1 of them it held less than the request."
    ), "{said}");
    // One alone is not counted.
    let found = report(&retry(&[(60, 0), (60, 1)]));
    let said = why(&found);
    assert!(said.starts_with("The cache held enough, but on other streams."), "{said}");
}

#[test]
fn a_release_before_a_capture_or_with_room_left_is_no_retry() {
    let retries = |events: &[Value]| report(events)["cache_releases"]["0"]["retries"].clone();
    let run = |by: &str| {
        vec![event("segment_alloc", "f"), event("segment_free", "f"), event("segment_alloc", by)]
    };
    assert_eq!(retries(&run("f")), 1);
    assert_eq!(retries(&run("at::cuda::CUDAGraph::capture_begin()")), Value::Null);
    // Later the driver grants as much as it would have refused.
    let more = [run("f"), vec![event("segment_alloc", "f"), event("segment_alloc", "f")]].concat();
    assert_eq!(retries(&more), Value::Null);
}

#[test]
fn what_empty_cache_gives_back_and_the_run_takes_again_is_told() {
    let round = [event("segment_alloc", "f"), event("segment_free", "empty_cache")];
    let events: Vec<Value> = round.iter().cycle().take(8).cloned().collect();
    let found = report(&events);
    let releases = &found["cache_releases"]["0"];
    assert_eq!((&releases["retries"], &releases["empty_cache_calls"]), (&json!(0), &json!(4)));
    assert_eq!(releases["reserved_again_bytes"], 3 * 64 * MIB);
    assert_eq!(rules(&found), ["empty-cache"]);
    // Two calls, or memory that is not needed again, are no fault.
    assert!(rules(&report(&events[..4])).is_empty());
}

#[test]
fn the_retry_of_a_real_run_that_failed_is_found() {
    let Some(shared) = testkit::shared("corpus/snapshots") else { return };
    let mut reader = Reader::new();
    reader
        .push(&std::fs::read(shared.join("code_location_expandable_oom_3gpu.json.gz")).unwrap())
        .unwrap();
    let report = serde_json::to_value(analyze(&reader.finish().unwrap())).unwrap();
    let found = &report["cache_releases"]["1"];
    assert_eq!(
        (&found["retries"], &found["retry_bytes"]),
        (&json!(1), &json!(3_963_617_280i64)),
        "{found}"
    );
}
