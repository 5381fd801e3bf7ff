//! Snapshots that were recorded on a GPU for this project, against what PyTorch's allocator itself counted, and against what the same
//! program reserved under other settings.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]
// (As wasm, all of them pass too, and then Node 20.20.2 ends with a segmentation fault.)
#![cfg(not(target_family = "wasm"))]

use serde_json::Value;
use snapshot::{Reader, analyze};
use testkit::{Sample, gunzip, recorded_snapshots};

fn report(sample: &Sample) -> Value {
    let mut reader = Reader::new();
    reader.push(&gunzip(&sample.bytes()).unwrap()).unwrap();
    serde_json::to_value(analyze(&reader.finish().unwrap())).unwrap()
}

fn named<'a>(samples: &'a [Sample], name: &str) -> &'a Sample {
    samples.iter().find(|sample| sample.stem() == name).unwrap()
}

/// What `torch.cuda.memory_stats()` said, in bytes.
fn counted(sample: &Sample, key: &str) -> i64 {
    sample.truth()["stats"][key].as_i64().unwrap()
}

fn rules(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|finding| finding["rule"].as_str().unwrap()).collect()
}

fn n_pools(report: &Value) -> usize {
    report["format"]["pools"].as_array().unwrap().len()
}

/// What a setting reserves at most, by the model.
fn foretold(report: &Value, setting: &str) -> i64 {
    let runs = report["what_if"]["0"]["runs"].as_array().unwrap().iter();
    let mut of_setting = runs.filter(|run| run["setting"] == setting);
    of_setting.next().unwrap()["peak_reserved"].as_i64().unwrap()
}

#[test]
fn figures_are_those_that_the_allocator_counted() {
    for sample in recorded_snapshots() {
        let report = report(&sample);
        let (name, device) = (sample.stem(), &report["devices"]["0"]);
        let (totals, replay) = (&device["totals"], &device["replay"]);
        for (found, key) in [
            (&totals["reserved"], "reserved_bytes.all.current"),
            (&totals["allocated"], "allocated_bytes.all.current"),
            (&totals["active"], "active_bytes.all.current"),
            (&totals["requested_active"], "requested_bytes.all.current"),
            (&replay["peak_requested"], "requested_bytes.all.peak"),
            (&replay["peak_reserved"], "reserved_bytes.all.peak"),
        ] {
            assert_eq!(found.as_i64().unwrap(), counted(&sample, key), "{name}: {key}");
        }
        assert_eq!(replay["trace_matches_snapshot"], true, "{name}");
        // (Expandable segments are not counted.)
        let segments = counted(&sample, "segment.all.current");
        assert!(segments == 0 || totals["segments"] == segments, "{name}: {segments} segments");
    }
}

#[test]
fn the_model_of_the_allocator_reproduces_every_run_under_its_settings() {
    let mut private = 0;
    for sample in recorded_snapshots() {
        let report = report(&sample);
        let it = &report["what_if"]["0"];
        // (Events do not tell in which pool a block is.)
        let has_private_pools = n_pools(&report) > 1;
        assert_eq!(it["reproduced"], !has_private_pools, "{}: {}", sample.stem(), it["withheld"]);
        private += usize::from(has_private_pools);
    }
    assert_eq!(private, 2);
}

/// The program ran once under each setting. Of free blocks of one size the allocator takes the one with the lowest address, and addresses
/// differ from run to run: rounded sizes are often equal, so that such a figure is near and not exact.
#[test]
fn a_setting_reserves_what_the_model_foretells() {
    let samples = recorded_snapshots();
    let mut checked = 0;
    for (from, to, setting, error_pct) in [
        ("whatif_train", "whatif_train_expandable", "expandable_segments:True", 0.0),
        ("whatif_train", "whatif_train_round4", "roundup_power2_divisions:4", 0.0),
        ("whatif_train_round4", "whatif_train", "roundup_power2_divisions:0", 0.0),
        ("whatif_train_round8", "whatif_train", "roundup_power2_divisions:0", 0.0),
        ("whatif_train_round8", "whatif_train_round4", "roundup_power2_divisions:4", 0.0),
        ("whatif_random_round4", "whatif_random", "roundup_power2_divisions:0", 0.0),
        ("whatif_random_round8", "whatif_random", "roundup_power2_divisions:0", 0.0),
        ("whatif_random", "whatif_random_round4", "roundup_power2_divisions:4", 1.2),
    ] {
        let found = foretold(&report(named(&samples, from)), setting);
        let measured = counted(named(&samples, to), "reserved_bytes.all.peak");
        let error = 100.0 * (found - measured).abs() as f64 / measured as f64;
        assert!(error <= error_pct, "{from}: {setting} reserves {measured}, foretold {found}");
        checked += 1;
    }
    assert_eq!(checked, 8);
}

#[test]
fn each_recording_is_told_what_it_was_made_to_show() {
    let samples = recorded_snapshots();
    let of = |name: &str| report(named(&samples, name));
    let leak = of("memory_leak");
    assert!(rules(&leak).contains(&"growing-memory"), "{:?}", rules(&leak));
    // The line that leaks makes the peak: one finding has it.
    assert!(!rules(&leak).contains(&"dominant-site"), "{:?}", rules(&leak));
    // The programs had limits of 300, 256 and 512 MiB, which the files do not record.
    for (name, below) in [
        ("memory_oom_expandable", "336 MiB"),
        ("memory_oom_gaps", "260 MiB"),
        ("memory_oom_profiled", "566 MiB"),
    ] {
        let report = of(name);
        assert_eq!(rules(&report).first(), Some(&"out-of-memory"), "{name}");
        let action = report["findings"][0]["action"].as_str().unwrap();
        assert!(
            action.starts_with(&format!("Raise the limit, which is below {below},")),
            "{action}"
        );
    }
    // The first events free what was allocated before recording began, and nothing was overwritten.
    assert!(!rules(&of("memory_same_run")).contains(&"recording-cut"));
    assert!(n_pools(&of("memory_graph_pools")) > 1);
    assert!(of("memory_two_streams")["devices"]["0"]["totals"]["pending_free"].as_i64() > Some(0));
}
