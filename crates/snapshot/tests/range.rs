//! A range of the events has the levels, the peak and the states that the whole recording has there.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use std::ops::Range;

use serde_json::Value;
use snapshot::{Reader, Snapshot, analyze, state_before};

fn read(file: &[u8], size: usize, events: Option<Range<usize>>) -> Snapshot {
    let mut reader = events.map_or_else(Reader::new, Reader::of_events);
    for chunk in file.chunks(size) {
        reader.push(chunk).unwrap();
    }
    reader.finish().unwrap()
}

/// Blocks that are there before, within and behind the range, one address that is used again, and pages that come and go.
fn made() -> Vec<u8> {
    let event = |action: &str, address: u64, size: u64, at: usize| {
        format!(
            r#"{{"action": "{action}", "addr": {address}, "size": {size}, "stream": 0, "time_us": {at},
                "frames": [{{"filename": "a.py", "line": {at}, "name": "f"}}]}}"#
        )
    };
    const LOW: u64 = 1 << 21;
    let events = [
        ("segment_alloc", LOW, 1 << 21),
        ("alloc", LOW, 1000),
        ("alloc", LOW + 1024, 2000),
        ("free_requested", LOW, 1000),
        ("free_completed", LOW, 1000),
        ("alloc", LOW, 512),
        ("segment_alloc", 3 * LOW, 1 << 21),
        ("alloc", 3 * LOW, 4096),
        ("free_requested", LOW + 1024, 2000),
        ("free_completed", LOW + 1024, 2000),
        ("free_requested", 3 * LOW, 4096),
        ("free_completed", 3 * LOW, 4096),
        ("segment_free", 3 * LOW, 1 << 21),
        ("alloc", LOW + 1024, 700),
    ];
    let events: Vec<String> =
        (0..).zip(events).map(|(at, of)| event(of.0, of.1, of.2, at)).collect();
    let block = |address: u64, size: u64, requested: u64, state: &str| {
        format!(
            r#"{{"address": {address}, "size": {size}, "requested_size": {requested}, "state": "{state}", "frames": []}}"#
        )
    };
    let blocks = [
        block(LOW, 512, 512, "active_allocated"),
        block(LOW + 512, 512, 0, "inactive"),
        block(LOW + 1024, 1024, 700, "active_allocated"),
        block(LOW + 2048, (1 << 21) - 2048, 0, "inactive"),
    ];
    format!(
        r#"{{"segments": [{{"device": 0, "address": {LOW}, "total_size": 2097152, "allocated_size": 1536, "active_size": 1536,
            "stream": 0, "segment_type": "small", "blocks": [{}]}}], "device_traces": [[{}]]}}"#,
        blocks.join(", "),
        events.join(", ")
    )
    .into_bytes()
}

/// Compares a range with the same events of the whole recording.
fn compare(name: &str, file: &[u8], whole: &Snapshot, range: Range<usize>) -> usize {
    let part = read(file, 1 << 16, Some(range.clone()));
    let (full, own) = (analyze(whole), analyze(&part));
    let (mut figures, mut compared) = (serde_json::to_value(&own).unwrap(), 0);
    for device in 0..whole.traces.len() {
        let (n, key) = (whole.traces[device].len(), device.to_string());
        let range = range.start.min(n)..range.end.min(n);
        let kept = part.traces.get(device).map_or(0, Vec::len);
        assert_eq!(kept, range.len(), "{name}, device {device}");
        if range.is_empty() || full.peak_index(&key).is_none() {
            continue;
        }
        let left_out = &figures["reading"]["left_out"][&key];
        let told = |what: &str| left_out[what].as_u64().unwrap_or_default() as usize;
        assert_eq!((told("before"), told("behind")), (range.start, n - range.end), "{name}");
        let levels: Vec<i64> =
            (range.start..=range.end).map(|at| full.live_requested(&key, at).unwrap()).collect();
        for (at, level) in levels.iter().enumerate() {
            assert_eq!(
                own.live_requested(&key, at),
                Some(*level),
                "{name}, device {key}, event {at}"
            );
        }
        let replay: Value = figures["devices"][&key]["replay"].take();
        let peak = *levels.iter().max().unwrap();
        assert_eq!(replay["peak_requested"], peak, "{name}, device {key}");
        assert_eq!(replay["peak_live_bytes"], peak, "{name}, device {key}");
        if range.len() > 1 {
            assert_eq!(replay["trace_matches_snapshot"], true, "{name}, device {key}: {replay}");
        }
        for at in [0, range.len() / 2, range.len()] {
            let state = |of: &Snapshot, at| {
                let state = state_before(of, device as i64, at);
                (state.reserved, state.cached_free, state.largest_cached_free, state.faults)
            };
            assert_eq!(
                state(&part, at),
                state(whole, range.start + at),
                "{name}, device {key}, before event {at} of {range:?}"
            );
            compared += 1;
        }
    }
    compared
}

#[test]
fn every_range_of_a_small_recording_has_the_levels_and_states_of_the_whole() {
    let file = made();
    let whole = read(&file, 7, None);
    let n = whole.traces[0].len();
    assert!(analyze(&whole).peak_index("0").is_some());
    for from in 0..n {
        for to in from + 1..=n {
            compare("made", &file, &whole, from..to);
        }
    }
}

#[test]
fn ranges_of_the_corpus_have_the_levels_and_states_of_the_whole() {
    let Some(shared) = testkit::shared("corpus/snapshots") else { return };
    let mut compared = 0;
    for entry in std::fs::read_dir(&shared).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".json.gz") {
            continue;
        }
        let file = std::fs::read(&path).unwrap();
        let whole = read(&file, 1 << 16, None);
        let most = whole.traces.iter().map(Vec::len).max().unwrap_or_default();
        for range in [0..most / 2, most / 3..most / 3 * 2, most / 2..usize::MAX] {
            if !range.is_empty() {
                compared += compare(&name, &file, &whole, range);
            }
        }
    }
    assert!(compared > 60, "{compared} states");
}

#[test]
fn what_contradicts_behind_a_range_is_found() {
    let text = String::from_utf8(made()).unwrap();
    // The last allocation has another size than its block.
    let file = text.replace(r#""size": 700"#, r#""size": 600"#).into_bytes();
    let part = read(&file, 1 << 16, Some(0..6));
    assert_eq!(analyze(&part).peak_index("0"), None);
    assert!(analyze(&read(text.as_bytes(), 1 << 16, Some(0..6))).peak_index("0").is_some());
}

#[test]
fn events_that_are_left_out_take_no_stacks() {
    let part = read(&made(), 1 << 16, Some(5..6));
    // The empty stack, and that of the one event.
    assert_eq!(part.stacks.len(), 2);
    assert_eq!(part.traces[0].len(), 1);
}
