//! Laws of the decoder and of the replay, on generated allocator histories.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::prelude::*;
use serde_json::Value;
use snapshot::{NotASnapshot, Reader, Snapshot, analyze};

fn read(file: &[u8], size: usize) -> Result<Snapshot, NotASnapshot> {
    let mut reader = Reader::new();
    for chunk in file.chunks(size.max(1)) {
        reader.push(chunk)?;
    }
    reader.finish()
}

fn figures(file: &[u8], size: usize) -> Value {
    serde_json::to_value(analyze(&read(file, size).unwrap())).unwrap()
}

const SEGMENT: i64 = 64 << 20;
const SLOT: i64 = 1 << 20;
const SLOTS: usize = 64;

/// A history of one segment with 64 slots: each step toggles a slot. The levels are those of a forward replay; the file has the
/// last `keep` events only, as a ring buffer does.
struct History {
    file: String,
    /// Requested bytes before each event that was kept, and at the end.
    levels: Vec<i64>,
}

fn history(steps: &[(usize, i64)], keep: usize) -> History {
    let mut live: BTreeMap<usize, i64> = BTreeMap::new();
    let (mut events, mut levels, mut level) = (Vec::new(), vec![0], 0i64);
    for (at, (slot, requested)) in steps.iter().enumerate() {
        let address = (1i64 << 40) + *slot as i64 * SLOT;
        let (action, size) = match live.remove(slot) {
            Some(size) => {
                level -= size;
                ("free_completed", size)
            }
            None => {
                live.insert(*slot, *requested);
                level += requested;
                ("alloc", *requested)
            }
        };
        events.push(format!(
            r#"{{"action": "{action}", "addr": {address}, "size": {size}, "stream": 0, "time_us": {at},
            "frames": [{{"name": "f\"{}", "filename": "/src/a.py", "line": {slot}}}]}}"#,
            slot % 3
        ));
        levels.push(level);
    }
    let skip = events.len().saturating_sub(keep);
    let mut blocks = String::new();
    for slot in 0..SLOTS {
        let (state, requested) = match live.get(&slot) {
            Some(size) => ("active_allocated", *size),
            None => ("inactive", 7),
        };
        let comma = if slot > 0 { "," } else { "" };
        let address = (1i64 << 40) + slot as i64 * SLOT;
        write!(
            blocks,
            r#"{comma}{{"address": {address}, "size": {SLOT}, "requested_size": {requested}, "state": "{state}", "frames": []}}"#
        )
        .unwrap();
    }
    let allocated = live.len() as i64 * SLOT;
    let file = format!(
        r#"{{"segments": [{{"device": 0, "address": {}, "total_size": {SEGMENT}, "allocated_size": {allocated}, "active_size": {allocated},
        "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [], "blocks": [{blocks}]}}],
        "device_traces": [[{}]], "allocator_settings": {{"max_split_size": -1}}, "external_annotations": []}}"#,
        1i64 << 40,
        events[skip..].join(", ")
    );
    History { file, levels: levels[skip..].to_vec() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn backward_replay_equals_forward_replay(
        steps in prop::collection::vec((0..SLOTS, 1..=SLOT), 2..200),
        keep in 2..200usize,
    ) {
        let history = history(&steps, keep);
        let figures = figures(history.file.as_bytes(), 1 << 16);
        let replay = &figures["devices"]["0"]["replay"];
        let peak = *history.levels.iter().max().unwrap();
        let index = history.levels.iter().position(|level| *level == peak).unwrap();
        prop_assert_eq!(&replay["peak_requested"], peak);
        prop_assert_eq!(&replay["peak_index"], index);
        prop_assert_eq!(&replay["peak_live_bytes"], peak);
        prop_assert_eq!(&replay["start_requested"], history.levels[0]);
        prop_assert_eq!(&replay["end_requested"], *history.levels.last().unwrap());
        prop_assert_eq!(&replay["trace_matches_snapshot"], true);
    }

    #[test]
    fn any_chunking_gives_the_same_snapshot(
        steps in prop::collection::vec((0..SLOTS, 1..=SLOT), 2..40),
        size in 1..300usize,
        cut in 0.0..1.0f64,
    ) {
        let file = history(&steps, 1000).file;
        prop_assert_eq!(figures(file.as_bytes(), size), figures(file.as_bytes(), usize::MAX));
        let part = &file.as_bytes()[..(file.len() as f64 * cut) as usize];
        let (small, whole) = (read(part, size), read(part, usize::MAX));
        match (small, whole) {
            (Ok(small), Ok(whole)) => {
                prop_assert!(whole.reading.is_cut);
                prop_assert_eq!(
                    serde_json::to_value(analyze(&small)).unwrap(),
                    serde_json::to_value(analyze(&whole)).unwrap()
                );
            }
            (small, whole) => prop_assert_eq!(small.err(), whole.err()),
        }
    }
}

#[test]
fn a_pickle_is_refused_with_the_snippet_to_export_again() {
    let pickles = (0..=5_u8).map(|protocol| match protocol {
        0 | 1 => b"(dp0\nS'segments'\np1\n(lp2\n".to_vec(),
        protocol => [&[0x80, protocol][..], b"\x95\x10\0\0\0\0\0\0\0}\x94"].concat(),
    });
    let saved =
        b"PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\x12\0archive/data.pkl"
            .to_vec();
    for file in pickles.chain([saved]) {
        for file in [file.clone(), testkit::gzip(&file)] {
            let error = read(&file, 3).unwrap_err();
            assert!(error.kind.is_some(), "{error}");
            assert!(error.to_string().contains("json.dump(s"), "{error}");
        }
    }
    // (An archive whose content its first bytes do not tell.)
    assert!(read(b"PK\x03\x04aaaaaaaaaaaa", 3).unwrap_err().kind.is_some());
    for file in ["", "[]", r#"{"traceEvents": []}"#, "hello"] {
        assert!(read(file.as_bytes(), 1).is_err(), "{file}");
    }
}

#[test]
fn a_part_of_a_file_has_no_findings_and_no_timeline() {
    // Two sites, each half of the peak.
    let steps = [(0, SLOT), (1, SLOT)];
    let file = history(&steps, 1000).file;
    let report = analyze(&read(file.as_bytes(), 100).unwrap());
    assert!(!report.findings.is_empty());
    assert_eq!(report.peak_index("0"), Some(2));
    let report = analyze(&read(&file.as_bytes()[..file.len() * 9 / 10], 100).unwrap());
    assert!(report.reading.is_cut && report.findings.is_empty());
    assert_eq!(report.peak_index("0"), None);
}

#[test]
fn what_is_unknown_is_counted() {
    let file = r#"{"segments": [{"device": 0, "address": 4096, "total_size": 1024, "new": 1, "blocks": [
        {"size": 512, "state": "active_awaiting_free"}, {"size": 512, "state": "strange", "requested_size": -3}]}],
        "device_traces": [[{"action": "user_defined", "addr": 0, "size": 0}, {"action": "alloc", "addr": NaN}]], "odd": [1]} x"#;
    let snapshot = read(file.as_bytes(), 5).unwrap();
    let reading = &snapshot.reading;
    assert_eq!(reading.unknown_keys.keys().collect::<Vec<_>>(), ["odd", "segment.new"]);
    assert_eq!(reading.unknown_actions, ["user_defined"]);
    assert_eq!(reading.unknown_states["strange"], 1);
    assert_eq!(reading.unreadable_numbers, 1);
    assert_eq!(reading.bytes_after, 1);
    assert_eq!(snapshot.blocks[1].address, 4096 + 512);
    let figures = serde_json::to_value(analyze(&snapshot)).unwrap();
    assert_eq!(figures["devices"]["0"]["totals"]["pending_free"], 1024);
    assert_eq!(figures["devices"]["0"]["actions"]["user_defined"], 1);
}
