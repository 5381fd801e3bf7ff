//! The program on every sample.

use serde_json::Value;

use crate::common::Folder;

#[test]
fn figures_equal_the_reference() {
    let folder = Folder::new("truth");
    for sample in testkit::trace_samples() {
        let (name, truth) = (&sample.name, sample.truth());
        let file = sample.file_in(folder.path());
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
    for sample in testkit::nasty_samples() {
        let name = &*sample.name;
        let file = sample.file_in(folder.path());
        let path = file.to_str().unwrap();
        let run = folder.run(&["perfetto-fix", path, "-o", "out.json", "--log", "log.json"]);
        if name == testkit::nasty::UNREADABLE {
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
    for (name, text) in [
        (
            "execution_details.json",
            r#"[{"file": "bs_8.json.gz", "batch_size": 8, "mode": "FULL"}]"#,
        ),
        ("execution_trace.json", r#"{"schema": "1.1.1-chakra.0.0.4", "nodes": [{"id": 1}]}"#),
        ("snapshot.json", r#"{"segments": [], "device_traces": [[]]}"#),
        ("page.html", "<!doctype html><title>Sign in</title>"),
    ] {
        folder.write(name, text);
    }
    let own = folder.names();
    let mut paths = own.clone();
    if let Some(corpus) = testkit::shared("corpus/not-traces") {
        let corpus = corpus.canonicalize().unwrap();
        let entries = std::fs::read_dir(corpus).unwrap();
        paths.extend(entries.map(|entry| entry.unwrap().path().to_str().unwrap().to_owned()));
    }
    for path in &paths {
        for arguments in [&["breakdown", path][..], &["perfetto-fix", path, "-o", "out.json"]] {
            let run = folder.run(arguments);
            assert_eq!(run.code, 3, "{path}: {}", run.stderr);
        }
    }
    assert_eq!(folder.names(), own);
}
