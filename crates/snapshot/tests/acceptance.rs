//! Points of the specification that other tests show only in passing: what a file is told as, and the figures that it must have.
//! `docs/memory.md` lists the test of every point.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use serde_json::{Value, json};
use snapshot::{Reader, Snapshot, SnapshotReport, analyze};

/// The snapshot of the corpus, its report as JSON, and what a person reads.
fn of(name: &str) -> Option<(Value, String)> {
    let file = testkit::shared(&format!("corpus/snapshots/{name}.json.gz"))?;
    Some(told(&std::fs::read(file).unwrap()))
}

fn read(bytes: &[u8]) -> Snapshot {
    let mut reader = Reader::new();
    reader.push(bytes).unwrap();
    reader.finish().unwrap()
}

fn told(bytes: &[u8]) -> (Value, String) {
    let report: SnapshotReport = analyze(&read(bytes));
    let text = report::document("", &report.sections()).replace('\\', "");
    (serde_json::to_value(report).unwrap(), text)
}

fn rules(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|finding| finding["rule"].as_str().unwrap()).collect()
}

#[test]
fn live_bytes_at_the_peak_are_the_peak() {
    let Some(folder) = testkit::shared("corpus/snapshots") else { return };
    let mut n = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some((report, _)) = name.strip_suffix(".json.gz").and_then(of) else { continue };
        for (device, figures) in report["devices"].as_object().unwrap() {
            let replay = &figures["replay"];
            if replay.is_object() {
                assert_eq!(replay["peak_live_bytes"], replay["peak_requested"], "{name} {device}");
                n += 1;
            }
        }
    }
    assert!(n >= 18, "{n} devices with events");
}

#[test]
fn fabricated_and_trimmed_files_are_inconsistent_and_have_no_chart() {
    for name in ["mosaic_test_output", "nuggets_mini_trimmed"] {
        let Some((report, text)) = of(name) else { return };
        assert_eq!(rules(&report), ["inconsistent-trace"], "{name}");
        assert!(
            !text.contains("peaks at") && !text.contains("Alive at the peak"),
            "{name}: {text}"
        );
        let file = testkit::shared(&format!("corpus/snapshots/{name}.json.gz")).unwrap();
        let snapshot = read(&std::fs::read(file).unwrap());
        assert!(snapshot::Chart::of(&snapshot, 0).is_none(), "{name}");
    }
}

#[test]
fn a_single_event_is_no_timeline_and_segments_alone_are_no_trace() {
    for (name, events) in [("yiyi_oom", 1), ("blockzero_state", 1), ("verl_pools_pendingfree", 0)] {
        let Some((report, text)) = of(name) else { return };
        let figures = &report["devices"]["0"];
        assert_eq!(figures["events"], events, "{name}");
        assert_eq!(figures["replay"].is_object(), events > 0, "{name}");
        if events > 0 {
            assert_eq!(figures["replay"]["timeline_usable"], false, "{name}");
            assert!(text.contains("The file records no timeline"), "{name}: {text}");
        }
        assert!(!text.contains("peaks at"), "{name}: {text}");
    }
}

#[test]
fn a_legacy_file_has_blocks_without_addresses_and_events_without_times() {
    let Some((report, _)) = of("yiyi_oom") else { return };
    assert_eq!(report["format"]["block_format"], "history-legacy");
    assert_eq!(report["format"]["has_time"], false);
    assert_eq!(report["devices"]["0"]["invariant_violations"], json!({}));
}

#[test]
fn a_ring_buffer_that_lost_its_oldest_events_is_labelled() {
    let Some((report, text)) = of("synth_ring") else { return };
    assert!(rules(&report).contains(&"recording-cut"), "{:?}", rules(&report));
    assert!(text.contains("Of what is recorded, memory in use peaks at"), "{text}");
}

#[test]
fn a_failed_allocation_that_defragmentation_would_serve_is_no_lack_of_capacity() {
    let Some((report, text)) = of("synth_oom_frag") else { return };
    let ooms = report["devices"]["0"]["ooms"].as_array().unwrap();
    let fits: Vec<&Value> = ooms.iter().map(|oom| &oom["fits_if_defragmented"]).collect();
    assert_eq!(fits, [false, true], "the first one is a lack of capacity");
    let said =
        "the 900 MiB request would have fit if defragmented: 2.63 GiB free in 96 gaps on stream 0.";
    assert!(text.contains(said), "{text}");
}

#[test]
fn a_leak_is_told_with_its_site_and_a_training_run_has_none() {
    let Some((report, text)) = of("synth_leak") else { return };
    let leaks = report["devices"]["0"]["leaks"].as_array().unwrap();
    assert_eq!(leaks[0]["site"], "/workspace/train/metrics.py:52:log_metrics");
    assert_eq!(leaks[0]["bytes_per_step"], 3_145_928);
    assert!(text.contains("/workspace/train/metrics.py:52:log_metrics grew"), "{text}");
    for name in ["synth_small_train", "synth_expandable", "synth_multistream"] {
        let Some((report, _)) = of(name) else { return };
        assert!(!rules(&report).contains(&"growing-memory"), "{name}");
    }
}

#[test]
fn streams_pages_and_devices_have_the_figures_of_the_specification() {
    let Some((report, _)) = of("synth_multistream") else { return };
    assert_eq!(report["devices"]["0"]["totals"]["pending_free"], 67_108_864);
    // Expandable segments: the peak of reserved memory follows from what is mapped and unmapped.
    let Some((report, _)) = of("synth_expandable") else { return };
    let figures = &report["devices"]["0"];
    let actions = figures["actions"].as_object().unwrap();
    assert!(actions.contains_key("segment_map") && !actions.contains_key("segment_alloc"));
    assert_eq!(figures["replay"]["peak_reserved"], 2_204_106_752_i64);
    // Several GPUs, each with figures of its own.
    let Some((report, _)) = of("code_location_expandable_oom_3gpu") else { return };
    let devices = report["devices"].as_object().unwrap();
    let reserved: Vec<&Value> =
        devices.values().map(|device| &device["replay"]["peak_reserved"]).collect();
    assert_eq!(reserved, [8_541_700_096_i64, 84_202_749_952, 21_883_781_120]);
}

/// One segment with one block, and one event.
const SMALL: &str = r#"{"segments": [{"device": 0, "address": 140000000000000, "total_size": 2097152, "allocated_size": 1024,
    "active_size": 1024, "requested_size": 1000, "stream": 0, "segment_type": "small", "segment_pool_id": [0, 0], "is_expandable": false,
    "frames": [], "blocks": [{"address": 140000000000000, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": []},
    {"address": 140000000001024, "size": 2096128, "requested_size": 0, "state": "inactive", "frames": []}]}],
    "device_traces": [[{"action": "segment_alloc", "addr": 140000000000000, "size": 2097152, "stream": 0, "time_us": 1780000000000000},
    {"action": "alloc", "addr": 140000000000000, "size": 1000, "stream": 9223372036854775807, "time_us": 1780000000000001,
    "later_key": {"a": [1, 2]}}, {"action": "a_new_action", "addr": 18446744073709551615, "size": 1, "stream": 0}]],
    "allocator_settings": {"max_split_size": -1, "expandable_segments": false}, "later_member": null}"#;

#[test]
fn unknown_keys_unlimited_splits_and_integers_beyond_doubles_are_read() {
    let (report, _) = told(SMALL.as_bytes());
    let figures = &report["devices"]["0"];
    assert_eq!(figures["events"], 3);
    assert_eq!(figures["actions"]["a_new_action"], 1, "an unknown action is counted");
    assert_eq!(figures["replay"]["trace_matches_snapshot"], true);
    assert_eq!(figures["totals"]["requested_active"], 1000);
    assert_eq!(report["what_if"]["0"]["settings_recorded"], true, "-1 is no limit");
    assert_eq!(report["reading"]["unreadable_numbers"], 0);
}

#[test]
fn a_file_that_is_cut_anywhere_is_read_as_far_as_it_goes_or_refused() {
    let text = SMALL.as_bytes();
    let mut read = 0;
    for end in 1..text.len() {
        let mut reader = Reader::new();
        if reader.push(&text[..end]).is_err() {
            continue;
        }
        let Ok(snapshot) = reader.finish() else { continue };
        let report = analyze(&snapshot);
        assert!(report.reading.is_partial(), "{end} of {} bytes", text.len());
        assert!(report.findings.is_empty(), "a part of a file has no findings");
        read += 1;
    }
    assert!(read > text.len() / 2, "{read} of {}", text.len());
}
