//! The first sentence about a snapshot.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use serde_json::{Value, json};
use snapshot::{Reader, analyze, state_before};

const MIB: i64 = 1 << 20;

fn first(document: &Value) -> String {
    let mut reader = Reader::new();
    reader.push(document.to_string().as_bytes()).unwrap();
    analyze(&reader.finish().unwrap()).sections()[0].intro[0].clone()
}

fn frames(line: i64) -> Value {
    json!([{"name": "forward", "filename": "/app/net.py", "line": line}])
}

fn event(action: &str, address: i64, size: i64, line: i64) -> Value {
    json!({"action": action, "addr": address, "size": size, "stream": 0, "frames": frames(line)})
}

fn block(address: i64, size: i64, state: &str) -> Value {
    json!({"address": address, "size": size, "requested_size": size, "state": state, "frames": []})
}

/// One segment of 40 MiB: 30 MiB from line 7, then 10 MiB from line 9, which go again.
fn document(extra: &[Value]) -> Value {
    sized(30, extra)
}

/// The same with as many MiB of line 7, and the rest of line 9.
fn sized(mib: i64, extra: &[Value]) -> Value {
    let (size, rest, behind) = (mib * MIB, (40 - mib) * MIB, (1 << 40) + mib * MIB);
    let mut events = vec![
        event("segment_alloc", 1 << 40, 40 * MIB, 7),
        event("alloc", 1 << 40, size, 7),
        event("alloc", behind, rest, 9),
        event("free_requested", behind, rest, 9),
        event("free_completed", behind, rest, 9),
    ];
    events.extend_from_slice(extra);
    let blocks = [block(1 << 40, size, "active_allocated"), block(behind, rest, "inactive")];
    json!({
        "segments": [{"device": 0, "address": 1i64 << 40, "total_size": 40 * MIB, "allocated_size": size,
            "active_size": size, "requested_size": size, "stream": 0, "segment_type": "large",
            "segment_pool_id": [0, 0], "is_expandable": false, "frames": [], "blocks": blocks}],
        "device_traces": [events],
    })
}

#[test]
fn a_peak_is_named_with_the_site_that_holds_most() {
    assert_eq!(
        first(&document(&[])),
        "Memory in use peaks at 40.0 MiB on device 0, before event 3 of 5, 30.0 MiB (75%) of it from /app/net.py:7:forward."
    );
}

#[test]
fn a_recording_that_ends_with_its_peak_says_so() {
    let mut grows = document(&[]);
    grows["device_traces"][0].as_array_mut().unwrap().truncate(3);
    let blocks = [
        block(1 << 40, 30 * MIB, "active_allocated"),
        block((1 << 40) + 30 * MIB, 10 * MIB, "active_allocated"),
    ];
    let segment = &mut grows["segments"][0];
    segment["allocated_size"] = json!(40 * MIB);
    segment["active_size"] = json!(40 * MIB);
    segment["blocks"] = json!(blocks);
    let said = first(&grows);
    assert!(
        said.contains(
            "at the end of 3 events (memory still grew when the recording ended: the run may peak higher)"
        ),
        "{said}"
    );
}

#[test]
fn a_failed_allocation_comes_before_the_peak() {
    let oom = json!({"action": "oom", "device_free": 0, "size": 90 * MIB, "stream": 0, "frames": frames(11)});
    assert_eq!(
        first(&document(&[oom])),
        "Device 0 ran out of memory: an allocation of 90.0 MiB failed at /app/net.py:11:forward, with 30.0 MiB of the 40.0 MiB \
         reserved in use. The peak was 40.0 MiB, 30.0 MiB (75%) of it from /app/net.py:7:forward."
    );
}

#[test]
fn events_that_contradict_the_segments_have_no_peak() {
    let stray = event("free_completed", 1 << 40, 30 * MIB, 7);
    assert_eq!(
        first(&document(&[stray])),
        "The events of device 0 contradict its segments: its levels and its peak are not reliable."
    );
}

#[test]
fn without_events_the_state_is_told() {
    let mut alone = document(&[]);
    alone["device_traces"] = json!([[]]);
    assert_eq!(
        first(&alone),
        "Device 0 at the time of the snapshot: 40.0 MiB reserved, 30.0 MiB allocated (75% of reserved), 10.0 MiB free and not returnable."
    );
}

#[test]
fn what_has_no_stack_is_told_with_the_first_site_of_the_rest() {
    // 30 MiB stand before the first event.
    let later = |mib: i64| {
        let mut later = sized(mib, &[]);
        let events = later["device_traces"][0].as_array().unwrap().clone();
        later["device_traces"][0] = Value::Array(events.into_iter().skip(2).collect());
        first(&later)
    };
    assert_eq!(
        later(30),
        "Memory in use peaks at 40.0 MiB on device 0, before event 1 of 3, 30.0 MiB (75%) of it allocated before the first event; 10.0 MiB of the \
         rest from /app/net.py:9:forward."
    );
    // Of nearly all of it something has to be known, unless it stands all the time, as weights do.
    let advice = " Start recording before the model is loaded to see what holds the memory that has no stack.";
    assert!(!later(32).contains(advice), "{}", later(32));
    let extra = ["free_requested", "free_completed"].map(|it| event(it, 1 << 40, 32 * MIB, 7));
    let mut freed = sized(32, &extra);
    freed["device_traces"][0].as_array_mut().unwrap().drain(..2);
    let segment = &mut freed["segments"][0];
    (segment["allocated_size"], segment["active_size"]) = (json!(0), json!(0));
    segment["blocks"][0]["state"] = json!("inactive");
    let said = first(&freed);
    assert!(said.ends_with(advice), "{said}");
}

#[test]
fn free_memory_is_told_where_it_is_a_part_that_matters() {
    let said = |mib: i64, extra: &[Value]| {
        let mut reader = Reader::new();
        reader.push(sized(mib, extra).to_string().as_bytes()).unwrap();
        let snapshot = reader.finish().unwrap();
        let state = |at| state_before(&snapshot, 0, at).section("0").intro[0].clone();
        (analyze(&snapshot).sections()[0].intro.join("\n"), state(2), state(3))
    };
    let (all, before, peak) = said(30, &[]);
    // The peak needs all that is reserved.
    assert!(all.ends_with("40.0 MiB reserved, 30.0 MiB allocated (75% of reserved)."), "{all}");
    assert_eq!(
        before,
        "40.0 MiB reserved, at most 10.0 MiB of it free; the largest free range has at most 10.0 MiB."
    );
    assert_eq!(peak, "40.0 MiB reserved, less than 10% of it free.");
    let (all, ..) = said(32, &[]);
    assert!(!all.contains("at the time of the snapshot"), "{all}");
    let (all, before, _) = said(39, &[]);
    assert!(!all.contains("at the time of the snapshot"), "{all}");
    assert_eq!(before, "40.0 MiB reserved, less than 10% of it free.");
    // More is reserved than the peak needs, or an allocation failed.
    let mut spare = sized(30, &[event("segment_alloc", 1 << 41, 100 * MIB, 7)]);
    let segment = json!({"device": 0, "address": 1i64 << 41, "total_size": 100 * MIB, "allocated_size": 0, "active_size": 0,
        "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [],
        "blocks": [block(1 << 41, 100 * MIB, "inactive")]});
    spare["segments"].as_array_mut().unwrap().push(segment);
    let mut reader = Reader::new();
    reader.push(spare.to_string().as_bytes()).unwrap();
    let all = analyze(&reader.finish().unwrap()).sections()[0].intro.join("\n");
    let free = "100 MiB free and returnable, 10.0 MiB free and not returnable.";
    assert!(all.ends_with(free), "{all}");
    let oom = json!({"action": "oom", "device_free": 0, "size": 90 * MIB, "stream": 0, "frames": frames(11)});
    let free_part = event("alloc", (1 << 40) + 30 * MIB, 5 * MIB, 9);
    let (all, ..) = said(
        30,
        &[free_part.clone(), oom, event("free_completed", (1 << 40) + 30 * MIB, 5 * MIB, 9)],
    );
    assert!(all.contains("10.0 MiB free and not returnable"), "{all}");
}
