//! What other allocator settings would have reserved: histories computed by hand, and the snapshots of the corpus.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use serde_json::{Value, json};
use snapshot::{Reader, analyze};

const MIB: i64 = 1 << 20;
const A: i64 = 1 << 40;
const B: i64 = 1 << 41;

fn report(document: &[u8]) -> Value {
    let mut reader = Reader::new();
    reader.push(document).unwrap();
    serde_json::to_value(analyze(&reader.finish().unwrap())).unwrap()
}

fn event(action: &str, address: i64, size: i64) -> Value {
    json!({"action": action, "addr": address, "size": size, "stream": 0, "frames": []})
}

fn free(address: i64, size: i64) -> [Value; 2] {
    [event("free_requested", address, size), event("free_completed", address, size)]
}

/// A segment of the large pool: blocks by size and whether they are in use.
fn segment(address: i64, blocks: &[(i64, bool)]) -> Value {
    let total: i64 = blocks.iter().map(|block| block.0).sum();
    let used: i64 = blocks.iter().filter(|block| block.1).map(|block| block.0).sum();
    let mut at = address;
    let blocks: Vec<Value> = blocks
        .iter()
        .map(|(size, is_used)| {
            let state = if *is_used { "active_allocated" } else { "inactive" };
            let block = json!({"address": at, "size": size, "requested_size": size, "state": state, "frames": []});
            at += size;
            block
        })
        .collect();
    json!({"device": 0, "address": address, "total_size": total, "allocated_size": used, "active_size": used,
        "requested_size": used, "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0],
        "is_expandable": false, "frames": [], "blocks": blocks})
}

fn run(segments: &[Value], events: &[Value], settings: &Value) -> Value {
    let document =
        json!({"segments": segments, "device_traces": [events], "allocator_settings": settings});
    report(document.to_string().as_bytes())
}

fn defaults() -> Value {
    json!({"max_split_size": -1, "garbage_collection_threshold": 0.0, "expandable_segments": false})
}

/// 80 MiB, freed; 12 MiB are split from it; 80 MiB need a second segment.
fn split_history() -> (Vec<Value>, Vec<Value>) {
    let mut events = vec![event("segment_alloc", A, 80 * MIB), event("alloc", A, 80 * MIB)];
    events.extend(free(A, 80 * MIB));
    events.push(event("alloc", A, 12 * MIB));
    events.extend([event("segment_alloc", B, 80 * MIB), event("alloc", B, 80 * MIB)]);
    let segments =
        vec![segment(A, &[(12 * MIB, true), (68 * MIB, false)]), segment(B, &[(80 * MIB, true)])];
    (segments, events)
}

fn rules(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings
        .map(|finding| finding["rule"].as_str().unwrap())
        .filter(|rule| rule.starts_with("allocator-"))
        .collect()
}

#[test]
fn a_split_block_costs_what_the_hand_computes() {
    let (segments, events) = split_history();
    let report = run(&segments, &events, &defaults());
    let it = &report["what_if"]["0"];
    assert_eq!(it["reproduced"], true, "{it}");
    assert_eq!(it["recorded_peak_reserved"], 160 * MIB);
    let found: Vec<(&str, i64)> = it["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (run["setting"].as_str().unwrap(), run["peak_reserved"].as_i64().unwrap() / MIB))
        .collect();
    let expected = [
        // 4 pages of 20 MiB; 68 MiB free at the end need one page more for 80.
        ("expandable_segments:True", 100),
        // The 80 MiB block is not given to 12 MiB, which get a segment of 12, and is used again.
        ("max_split_size_mb:64", 92),
        ("max_split_size_mb:128", 160),
        ("max_split_size_mb:256", 160),
        ("max_split_size_mb:512", 160),
        // 80 is a multiple of 64 / 4 and 12 of 8 / 4.
        ("roundup_power2_divisions:4", 160),
    ];
    assert_eq!(found, expected);
    // The most bytes first: 68 and 60 MiB.
    assert_eq!(rules(&report), ["allocator-max-split-size", "allocator-expandable-segments"]);
}

/// Requests of `sizes` MiB, each freed before the next: one that no freed block holds gets a segment.
fn one_at_a_time(sizes: &[i64]) -> Value {
    let (mut segments, mut events) = (Vec::<(i64, i64)>::new(), Vec::new());
    for mib in sizes {
        let size = mib * MIB;
        // (The best fit is the smallest; a rest above 1 MiB is split off and merged again.)
        let mut fits: Vec<_> = segments.iter().filter(|it| it.1 >= size).copied().collect();
        fits.sort_by_key(|it| it.1);
        let at = fits.first().map_or(A + segments.len() as i64 * 1024 * MIB, |it| it.0);
        if fits.is_empty() {
            events.push(event("segment_alloc", at, size));
            segments.push((at, size));
        }
        events.push(event("alloc", at, size));
        events.extend(free(at, size));
    }
    let segments: Vec<Value> =
        segments.iter().map(|(at, size)| segment(*at, &[(*size, false)])).collect();
    run(&segments, &events, &defaults())
}

#[test]
fn rounding_is_advised_where_it_makes_one_size_of_many_and_saves_memory() {
    let of = |report: &Value| {
        let mut findings = report["findings"].as_array().unwrap().iter();
        findings.find(|it| it["rule"] == "allocator-roundup-power2").cloned()
    };
    // Every request is a little larger than all before: 20 segments, of which rounding needs two (112 and 128 MiB, and 160).
    let grows: Vec<i64> = (0..20).map(|step| 98 + 2 * step).collect();
    let report = one_at_a_time(&grows);
    let finding = of(&report).unwrap();
    let reserved: i64 = grows.iter().sum();
    let rounded = 112 + 128 + 160;
    let observation = finding["observation"].as_str().unwrap();
    assert!(
        observation.contains(
            "under roundup_power2_divisions:4 the recorded allocations reserve 400 MiB at most"
        ) && observation.contains("Its blocks above 1 MiB have 3 sizes, the recorded ones 20."),
        "{observation}"
    );
    let runs = report["what_if"]["0"]["runs"].as_array().unwrap();
    let run = runs.iter().find(|run| run["setting"] == "roundup_power2_divisions:4").unwrap();
    assert_eq!(run["saved"], (reserved - rounded) * MIB);
    assert!(finding["action"].as_str().unwrap().contains("up to a quarter larger"));
    // Few sizes: the same gain is no reason to round.
    assert!(of(&one_at_a_time(&[98, 100, 102, 104, 106, 108])).is_none());
    // The same sizes, the largest first: its block holds all others, and rounding would only make it larger.
    let falls: Vec<i64> = grows.iter().rev().copied().collect();
    assert!(of(&one_at_a_time(&falls)).is_none());
}

#[test]
fn a_run_that_the_model_does_not_reproduce_has_no_figures() {
    let (segments, events) = split_history();
    let withheld = |events: &[Value], settings: &Value, segments: &[Value]| {
        let report = run(segments, events, settings);
        let it = &report["what_if"]["0"];
        assert_eq!((&it["reproduced"], &it["runs"]), (&json!(false), &json!([])), "{it}");
        assert!(rules(&report).is_empty());
        (it["withheld"].as_str().unwrap().to_owned(), it["first_difference"].clone())
    };
    // Best fit takes the start of the free block, not its middle.
    let mut moved = events.clone();
    moved[4] = event("alloc", A + 20 * MIB, 12 * MIB);
    let blocks = [(20 * MIB, false), (12 * MIB, true), (48 * MIB, false)];
    let other = [segment(A, &blocks), segments[1].clone()];
    let (why, at) = withheld(&moved, &defaults(), &other);
    assert_eq!(at, 4, "{why}");
    // The cached segment would do for the second 80 MiB.
    let mut needless = vec![events[0].clone(), events[1].clone()];
    needless.extend(free(A, 80 * MIB));
    needless.extend(events[5..].iter().cloned());
    let (why, at) =
        withheld(&needless, &defaults(), &[segment(A, &[(80 * MIB, false)]), segments[1].clone()]);
    assert_eq!(at, 5, "{why}");
    let mut collecting = defaults();
    collecting["garbage_collection_threshold"] = json!(0.8);
    let (why, at) = withheld(&events, &collecting, &segments);
    assert!(why.starts_with("garbage_collection_threshold") && at.is_null(), "{why}");
    let mut private = segments.clone();
    private[1]["segment_pool_id"] = json!([0, 1]);
    assert!(withheld(&events, &defaults(), &private).0.contains("private pools"));
}

#[test]
fn a_release_is_replayed_and_a_part_of_one_withheld() {
    let mut events = vec![event("segment_alloc", A, 40 * MIB), event("alloc", A, 40 * MIB)];
    events.extend([event("segment_alloc", B, 60 * MIB), event("alloc", B, 60 * MIB)]);
    events.extend(free(A, 40 * MIB));
    events.extend(free(B, 60 * MIB));
    events.push(event("segment_free", B, 60 * MIB));
    let mut whole = events.clone();
    whole.push(event("segment_free", A, 40 * MIB));
    let last = [event("segment_alloc", B, 80 * MIB), event("alloc", B, 80 * MIB)];
    whole.extend(last.clone());
    let end = [segment(B, &[(80 * MIB, true)])];
    let report = run(&end, &whole, &defaults());
    let it = &report["what_if"]["0"];
    assert_eq!(
        (&it["reproduced"], &it["recorded_peak_reserved"]),
        (&json!(true), &json!(100 * MIB)),
        "{it}"
    );
    assert_eq!(
        it["runs"][0]["peak_reserved"],
        100 * MIB,
        "40 + 60 are whole pages, 80 come after the release"
    );
    events.extend(last);
    let end = [segment(A, &[(40 * MIB, false)]), end[0].clone()];
    let report = run(&end, &events, &defaults());
    let why = report["what_if"]["0"]["withheld"].as_str().unwrap();
    assert!(why.contains("only a part of the cached segments was released"), "{why}");
}

#[test]
fn settings_that_are_set_and_platforms_that_cannot_get_no_advice() {
    let (segments, mut events) = split_history();
    events[0]["frames"] = json!([{"name": "main", "filename": "C:\\train.py", "line": 1}]);
    assert_eq!(rules(&run(&segments, &events, &defaults())), ["allocator-max-split-size"]);
    let mut settings = defaults();
    settings["max_split_size"] = json!(100 * MIB);
    let report = run(&segments, &events, &settings);
    assert_eq!(report["what_if"]["0"]["reproduced"], true);
    assert!(rules(&report).is_empty());
}

/// Two blocks of 60 MiB, freed; 100 MiB are refused, and granted after both segments went back.
fn retry_history(second_stream: i64) -> (Vec<Value>, Vec<Value>) {
    let mut events = vec![event("segment_alloc", A, 60 * MIB), event("alloc", A, 60 * MIB)];
    events.extend([event("segment_alloc", B, 60 * MIB), event("alloc", B, 60 * MIB)]);
    events.extend(free(A, 60 * MIB));
    events.extend(free(B, 60 * MIB));
    events.extend([event("segment_free", A, 60 * MIB), event("segment_free", B, 60 * MIB)]);
    events.extend([event("segment_alloc", A, 100 * MIB), event("alloc", A, 100 * MIB)]);
    for event in events.iter_mut().filter(|event| event["addr"] == B) {
        event["stream"] = json!(second_stream);
    }
    (vec![segment(A, &[(100 * MIB, true)])], events)
}

#[test]
fn retries_are_counted_within_what_the_driver_granted() {
    let action = |report: &Value| {
        let mut findings = report["findings"].as_array().unwrap().iter();
        let own = findings.find(|finding| finding["rule"] == "allocation-retries").unwrap();
        own["action"].as_str().unwrap().to_owned()
    };
    let (segments, events) = retry_history(0);
    let report_of = |events: &[Value]| run(&segments, events, &defaults());
    let report = report_of(&events);
    let it = &report["what_if"]["0"];
    assert_eq!((&it["retries"], &it["refused"]), (&json!(1), &json!(220 * MIB)), "{it}");
    // 6 pages of 20 MiB hold both blocks, and then the third.
    let expandable = &it["runs"][0];
    assert_eq!(
        (&expandable["retries"], &expandable["peak_reserved"]),
        (&json!(0), &json!(120 * MIB))
    );
    let said = action(&report);
    assert!(
        said.contains("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
            && said.contains("needs 0 retries instead of 1"),
        "{said}"
    );
    // The peak is the limit: it is no reason for a setting.
    assert!(rules(&report).is_empty());
    // What another stream cached does not help, under no setting.
    let (_, events) = retry_history(7);
    let report = report_of(&events);
    let runs = report["what_if"]["0"]["runs"].as_array().unwrap();
    assert!(runs.iter().all(|run| run["retries"].as_u64() >= Some(1)), "{runs:?}");
    let said = action(&report);
    assert!(!said.contains("PYTORCH_CUDA_ALLOC_CONF") && said.contains("one stream"), "{said}");
}

#[test]
fn a_setting_for_a_failed_allocation_is_tried_in_the_model() {
    // 60 and 60 MiB with 8 in between; both go again, and neither range holds 100.
    let mut events = vec![event("segment_alloc", A, 128 * MIB), event("alloc", A, 128 * MIB)];
    events.extend(free(A, 128 * MIB));
    let (middle, last) = (A + 60 * MIB, A + 68 * MIB);
    events.extend([event("alloc", A, 60 * MIB), event("alloc", middle, 8 * MIB)]);
    events.push(event("alloc", last, 60 * MIB));
    events.extend(free(A, 60 * MIB));
    events.extend(free(last, 60 * MIB));
    let mut oom = event("oom", 0, 100 * MIB);
    oom["device_free"] = json!(20 * MIB);
    events.push(oom);
    let segments = [segment(A, &[(60 * MIB, false), (8 * MIB, true), (60 * MIB, false)])];
    let action = |settings: &Value| {
        let report = run(&segments, &events, settings);
        let own = report["findings"][0].clone();
        assert_eq!(own["rule"], "out-of-memory");
        assert!(own["hypothesis"].as_str().unwrap().starts_with("Fragmentation"), "{own}");
        own["action"].as_str().unwrap().to_owned()
    };
    let said = action(&defaults());
    assert!(said.contains("expandable_segments:True: a model"), "{said}");
    // Where the model does not apply, no setting is advised.
    let mut settings = defaults();
    settings["garbage_collection_threshold"] = json!(0.8);
    let said = action(&settings);
    assert!(
        said.starts_with("Allocate what stays before temporaries") && !said.contains("ALLOC_CONF"),
        "{said}"
    );
}

/// Device, and the start of the reason where the run is withheld.
const CORPUS: &[(&str, &str, &str)] = &[
    ("blockzero_state", "0", "the file records no timeline"),
    ("code_location_expandable_oom_3gpu", "0", ""),
    ("code_location_expandable_oom_3gpu", "1", ""),
    ("code_location_expandable_oom_3gpu", "2", ""),
    ("cs336_medium_512_inference", "0", BEFORE),
    ("eor_snapshot_markers", "0", ""),
    ("kkaitlyn_small_annotations", "0", ""),
    ("magma27", "0", BEFORE),
    ("mosaic_test_output", "0", "the events contradict the segments"),
    ("nuggets_mini_trimmed", "0", "the events contradict the segments"),
    ("silmont_mem", "0", ""),
    // Its simulator never maps the pages that it unmapped again; PyTorch does.
    ("synth_expandable", "0", "event 2409: the model reserves"),
    ("synth_fragmentation", "0", ""),
    ("synth_leak", "0", ""),
    ("synth_multistream", "0", ""),
    ("synth_oom_frag", "0", ""),
    ("synth_ring", "0", BEFORE),
    ("synth_small_train", "0", ""),
    ("yiyi_oom", "0", "the file records no timeline"),
];

/// Of runs that reserve nothing in the recording: the model reproduces them, and no setting can show anything.
const BEFORE: &str = "all reserved memory exists before the first event";

#[test]
fn runs_of_the_corpus_are_reproduced_or_withheld_with_the_reason() {
    let Some(shared) = testkit::shared("corpus/snapshots") else { return };
    for (stem, device, why) in CORPUS {
        let report = report(&std::fs::read(shared.join(format!("{stem}.json.gz"))).unwrap());
        let it = &report["what_if"][device];
        let found = it["withheld"].as_str().unwrap_or_default();
        assert!(
            found.starts_with(why) && found.is_empty() == why.is_empty(),
            "{stem} {device}: {it}"
        );
        let is_all_before = *why == BEFORE;
        assert_eq!(it["reproduced"], why.is_empty() || is_all_before, "{stem} {device}");
        if it["reproduced"] == true {
            let reserves_nothing = it["start_reserved"] == it["recorded_peak_reserved"];
            assert_eq!(is_all_before, reserves_nothing, "{stem} {device}");
        }
        let replay = &report["devices"][device]["replay"];
        assert_eq!(it["recorded_peak_reserved"], replay["peak_reserved"], "{stem} {device}");
        for run in it["runs"].as_array().unwrap() {
            let peak = run["peak_reserved"].as_i64().unwrap();
            assert!(peak >= replay["peak_requested"].as_i64().unwrap(), "{stem} {device}: {run}");
            assert!(peak >= it["start_reserved"].as_i64().unwrap(), "{stem} {device}: {run}");
        }
    }
}

#[test]
fn fragmentation_that_costs_nothing_is_no_finding() {
    // 512 MiB each, live; a block of 8 MiB stays at the start of the first, 504 MiB behind it are free.
    let large = 512 * MIB;
    let (c, small) = (B + (1 << 40), 8 * MIB);
    let mut events = Vec::new();
    for at in [A, B, c] {
        events.extend([event("segment_alloc", at, large), event("alloc", at, large)]);
    }
    events.extend(free(A, large));
    events.push(event("alloc", A, small));
    let segments = [
        segment(A, &[(small, true), (large - small, false)]),
        segment(B, &[(large, true)]),
        segment(c, &[(large, true)]),
    ];
    let has = |report: &Value, rule: &str| {
        report["findings"].as_array().unwrap().iter().any(|it| it["rule"] == rule)
    };
    let report = run(&segments, &events, &defaults());
    assert!(!has(&report, "fragmentation") && rules(&report).is_empty(), "{report}");
    // Where the replay does not apply, the heuristic speaks: of 1,536 MiB reserved 504 are free and cannot go back. But no more
    // than what the peak of reserved memory has beyond the memory in use can be gained, and that is nothing here.
    let mut settings = defaults();
    settings["garbage_collection_threshold"] = json!(0.8);
    assert!(!has(&run(&segments, &events, &settings), "fragmentation"));
    // Without events nobody knows the peak.
    assert!(has(&run(&segments, &[], &defaults()), "fragmentation"));
}

#[test]
fn the_rest_of_a_block_is_read_from_the_block_behind_it() {
    // Before the first event: 4 MiB were asked for, 4.5 MiB are taken (the rest was too small to split).
    let (rest, tail) = (MIB / 2, 20 * MIB);
    let high = A + 4 * MIB + rest;
    let mut events = vec![event("alloc", high, 8 * MIB)];
    events.extend(free(A, 4 * MIB));
    let segments =
        [segment(A, &[(4 * MIB + rest, false), (8 * MIB, true), (tail - 8 * MIB, false)])];
    let report = run(&segments, &events, &defaults());
    assert_eq!(report["what_if"]["0"]["reproduced"], true, "{}", report["what_if"]["0"]);
}
