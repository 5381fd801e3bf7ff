//! The program on every real and every nasty trace.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::Folder;

/// The files of a folder of the corpus, in order; none (and a line on stderr) without a corpus.
fn files(folder: &str) -> Vec<PathBuf> {
    let Some(folder) = testkit::shared(folder) else { return Vec::new() };
    // The program runs in another folder.
    let folder = folder.canonicalize().unwrap();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn figures_of_real_traces_equal_the_reference() {
    let folder = Folder::new("truth");
    for file in testkit::real_traces() {
        let name = file.file_name().unwrap().to_str().unwrap();
        let stem = name.strip_suffix(".json.gz").unwrap();
        let truth = testkit::shared(&format!("corpus/truth/{stem}.truth.json")).unwrap();
        let truth: Value = serde_json::from_slice(&std::fs::read(truth).unwrap()).unwrap();
        let json = folder.run(&["breakdown", file.to_str().unwrap(), "--json"]).done().json();
        let crossings =
            (&json["perfetto"]["crossings_exact"], &json["perfetto"]["crossing_slices_exact"]);
        let tracks = &truth["tracks"];
        assert_eq!(crossings, (&tracks["crossing_pairs"], &tracks["crossing_events"]), "{name}");
        for (ours, theirs) in [
            ("busy_ns", "busy_ns"),
            ("idle_ns", "idle_ns"),
            ("span_ns", "span_ns"),
            ("kernel_sum_ns", "sum_kernel_ns"),
            ("kernel_busy_ns", "kernel_busy_ns"),
            ("n_kernels", "n_kernels"),
            ("n_memcpy", "n_memcpy"),
            ("n_memset", "n_memset"),
            ("n_gpu_events", "n_gpu_events"),
            ("memcpy_sum_ns", "sum_memcpy_ns"),
            ("memset_sum_ns", "sum_memset_ns"),
            ("n_kernel_names", "n_kernel_names"),
            ("n_zero_dur", "zero_dur_gpu_events"),
            ("first_ns", "first_ns"),
            ("last_ns", "last_ns"),
        ] {
            // The reference leaves out what has no meaning without GPU slices.
            let without_gpu = truth["gpu"]["n_gpu_events"] == 0;
            let zero = if ours.ends_with("st_ns") { Value::Null } else { 0.into() };
            let expected = match &truth["gpu"][theirs] {
                Value::Null if without_gpu => &zero,
                expected => expected,
            };
            assert_eq!(&json["gpu"][ours], expected, "{name}: {ours}");
        }
        let kernels: Vec<Value> = json["kernels"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| serde_json::json!([row["kernel_name"], row["launches"], row["total_ns"]]))
            .collect();
        let expected = truth["gpu"]["kernels_all"].as_array().cloned().unwrap_or_default();
        assert!(kernels == expected, "{name}: kernels");
    }
}

#[test]
fn nasty_traces_are_repaired_and_the_result_needs_nothing() {
    let folder = Folder::new("nasty");
    for file in files("corpus/nasty") {
        let name = file.file_name().unwrap().to_str().unwrap();
        if name == "index.tsv" {
            continue;
        }
        let path = file.to_str().unwrap();
        let run = folder.run(&["perfetto-fix", path, "-o", "out.json", "--log", "log.json"]);
        if name == "49_single_quotes.json" {
            assert_eq!(run.code, 3, "{name}: {}", run.stderr);
            continue;
        }
        assert_eq!(run.code, 0, "{name}: {}", run.stderr);
        let log: Value = serde_json::from_slice(&folder.read("log.json")).unwrap();
        assert_eq!(log["proof"]["holds"], true, "{name}");
        serde_json::from_slice::<Value>(&folder.read("out.json")).unwrap();
        let json = folder.run(&["breakdown", "out.json", "--json"]).done().json();
        assert_eq!(json["perfetto"]["predicted_drops_v51_v56"], 0, "{name}");
        assert_eq!(json["perfetto"]["crossings_exact"], 0, "{name}");
        let again = folder.run(&["perfetto-fix", "out.json", "-o", "again.json"]).done();
        assert!(again.stderr.contains("No problems found"), "{name}: {}", again.stderr);
        assert!(folder.read("again.json") == folder.read("out.json"), "{name}");
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    let folder = Folder::new("not-traces");
    for file in files("corpus/not-traces") {
        let path = file.to_str().unwrap();
        for arguments in [&["breakdown", path][..], &["perfetto-fix", path, "-o", "out.json"]] {
            let run = folder.run(arguments);
            assert_eq!(run.code, 3, "{path}: {}", run.stderr);
        }
    }
    assert!(folder.names().is_empty());
}
