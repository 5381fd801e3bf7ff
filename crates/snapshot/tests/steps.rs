//! Memory by step: sums and peaks of the steps are those of the recording.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod made;

use serde_json::{Value, json};
use snapshot::{Reader, analyze};

const MIB: i64 = 1 << 20;

fn report(document: &[u8]) -> Value {
    let mut reader = Reader::new();
    reader.push(document).unwrap();
    serde_json::to_value(analyze(&reader.finish().unwrap())).unwrap()
}

#[test]
fn steps_end_with_their_annotations() {
    let at = |slot: i64| (1i64 << 40) + slot * MIB;
    let event = |action: &str, slot: i64, mib: i64, time: i64| json!({"action": action, "addr": at(slot), "size": mib * MIB, "stream": 0, "frames": [], "time_us": time});
    let events = [
        event("segment_alloc", 0, 64, 1),
        event("alloc", 0, 8, 2),
        event("alloc", 8, 4, 3),
        event("free_requested", 8, 4, 10),
        event("free_completed", 8, 4, 10),
        event("alloc", 8, 6, 11),
        event("alloc", 14, 1, 21),
    ];
    let mark = |time: i64| json!({"stage": "END", "name": "Optimizer.step#SGD.step", "device": 0, "time_us": time});
    let block = |slot: i64, mib: i64, state: &str| json!({"address": at(slot), "size": mib * MIB, "requested_size": mib * MIB, "state": state, "frames": []});
    let blocks = [
        block(0, 8, "active_allocated"),
        block(8, 6, "active_allocated"),
        block(14, 1, "active_allocated"),
        block(15, 49, "inactive"),
    ];
    let document = json!({"segments": [{"device": 0, "address": at(0), "total_size": 64 * MIB, "allocated_size": 15 * MIB,
        "active_size": 15 * MIB, "requested_size": 15 * MIB, "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0],
        "is_expandable": false, "frames": [], "blocks": blocks}], "device_traces": [events], "external_annotations": [mark(10), mark(20)]});
    let report = report(document.to_string().as_bytes());
    let rows = report["memory_by_step"]["0"].as_array().unwrap().iter();
    let found: Vec<Vec<i64>> = rows
        .map(|row| {
            ["step", "events", "peak_requested", "end_requested", "allocations", "segment_allocs"]
                .map(|key| row[key].as_i64().unwrap())
                .to_vec()
        })
        .collect();
    assert_eq!(
        found,
        [
            [1, 5, 12 * MIB, 8 * MIB, 2, 1],
            [2, 1, 14 * MIB, 14 * MIB, 1, 0],
            [0, 1, 15 * MIB, 15 * MIB, 1, 0]
        ]
    );
}

#[test]
fn steps_of_the_corpus_add_up() {
    let Some(shared) = testkit::shared("corpus/snapshots") else { return };
    for (stem, n) in [("synth_leak", 8), ("synth_expandable", 5), ("synth_small_train", 2)] {
        let report = report(&std::fs::read(shared.join(format!("{stem}.json.gz"))).unwrap());
        let rows = report["memory_by_step"]["0"].as_array().unwrap();
        assert_eq!(rows.iter().filter(|row| row["step"] != 0).count(), n, "{stem}");
        let figures = &report["devices"]["0"];
        let sum = |key: &str| rows.iter().map(|row| row[key].as_i64().unwrap()).sum::<i64>();
        let most = |key: &str| rows.iter().map(|row| row[key].as_i64().unwrap()).max();
        assert_eq!(sum("events"), figures["events"].as_i64().unwrap(), "{stem}");
        assert_eq!(sum("allocations"), figures["churn"]["alloc_count"].as_i64().unwrap(), "{stem}");
        assert_eq!(most("peak_requested"), figures["replay"]["peak_requested"].as_i64(), "{stem}");
        assert_eq!(most("peak_reserved"), figures["replay"]["peak_reserved"].as_i64(), "{stem}");
    }
}

#[test]
fn a_recording_that_lost_its_oldest_events_says_so() {
    const STEP: made::Stack =
        &[("/app/opt.py", "step", 3), ("/py/site-packages/torch/optim/optimizer.py", "step", 1)];
    let mut run = made::Run::default();
    run.mark("Optimizer.step#A.step", 0).mark("Optimizer.step#A.step", 0).mark("Forward", 0);
    run.old(0, 20)
        .old(1, 5)
        .free(1, STEP)
        .alloc(2, 8, STEP)
        .free(2, STEP)
        .mark("Optimizer.step#A.step", 0);
    run.alloc(3, 2, STEP).mark("Optimizer.step#A.step", 0);
    let (found, text) = run.report();
    let rows = found["memory_by_step"]["0"].as_array().unwrap();
    let of = |at: usize| (rows[at]["step"].as_i64().unwrap(), rows[at].get("is_cut").is_some());
    assert_eq!((rows.len(), of(0), of(1)), (2, (3, true), (4, false)));
    assert!(text.contains("Of what is recorded, memory in use peaks at 28.0 MiB"), "{text}");
    assert!(text.contains("| 3 (its end) |"), "{text}");
    let cut = made::finding(&found, "recording-cut").unwrap();
    assert_eq!(
        cut["observation"],
        "Device 0: only the last 6 events are recorded, which span 52.0 µs; the first ones free blocks that no event allocates, and \
         annotations begin 15.0 µs earlier. Steps 1 to 2 end before them."
    );
    // The steps alone, or the frees alone, are those of a recording that began late.
    let mut run = made::Run::default();
    run.old(0, 20).old(1, 5).free(1, STEP).alloc(2, 8, STEP).mark("Optimizer.step#A.step", 0);
    let (found, text) = run.report();
    assert_eq!(made::finding(&found, "recording-cut"), None);
    assert!(!text.contains("Of what is recorded"), "{text}");
}
