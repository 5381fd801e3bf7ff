//! `triage`: what it prints, what it writes, which files it takes.

use serde_json::Value;
use testkit::{Kineto, event};

use crate::common::{Folder, assert_golden, sound};

const FILES: [&str; 6] = [
    "fuse_opportunities.json",
    "kernel_table.json",
    "overlap_opportunities.json",
    "perfetto_fixed_trace.json.gz",
    "profile_metadata.json",
    "profile_summary.md",
];

pub fn names_in(folder: &Folder, path: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path().join(path)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub fn json(folder: &Folder, path: &str) -> Value {
    serde_json::from_slice(&folder.read(path)).unwrap()
}

/// A trace of one rank: one kernel that has the rank's name.
pub fn of_rank(rank: Option<i32>) -> String {
    let mut trace = Kineto::new();
    if let Some(rank) = rank {
        trace = trace.with("distributedInfo", &format!("{{\"rank\": {rank}, \"world_size\": 2}}"));
    }
    let name = format!("kernel_{}", rank.unwrap_or(-1));
    let kernel = event("X", "kernel", &name).on(0, 7).at_ns(1_000).lasting_ns(2_000);
    trace.push(kernel.arg("device", 0).arg("stream", 7));
    trace.text()
}

#[test]
fn the_example_reads_and_writes_as_checked_in() {
    let folder = Folder::new("triage-example");
    folder.write("example.json.gz", testkit::example::json_gz());
    let run =
        folder.run(&["triage", "example.json.gz", "--out", "out", "--target-arch", "sm_90"]).done();
    assert_golden("triage.md", &run.stdout);
    assert_eq!(run.stdout, folder.text("out/profile_summary.md"));
    assert_eq!(names_in(&folder, "out"), FILES);
    for name in FILES.iter().filter(|name| name.ends_with(".json")) {
        assert_golden(&format!("triage.{name}"), &folder.text(&format!("out/{name}")));
    }
    // The repaired trace is perfetto-fix's.
    folder.run(&["perfetto-fix", "example.json.gz", "-o", "fixed.json.gz"]).done();
    assert!(folder.read("fixed.json.gz") == folder.read("out/perfetto_fixed_trace.json.gz"));

    let again = folder
        .run(&["triage", "example.json.gz", "--out", "again", "--zip", "--target-arch", "sm_90"])
        .done();
    assert_eq!(again.stdout, run.stdout);
    for name in FILES {
        assert!(
            folder.read(&format!("out/{name}")) == folder.read(&format!("again/{name}")),
            "{name}"
        );
    }
    let zip = folder.read("again/kinetoscope_artifacts.zip");
    assert!(zip.starts_with(b"PK\x03\x04"));
}

#[test]
fn what_only_the_user_knows() {
    let folder = Folder::new("triage-facts");
    std::fs::create_dir_all(folder.path().join("run/traces")).unwrap();
    folder.write("run/traces/a.json", sound());
    folder.write("run/server_args.json", r#"{"tp_size": 8, "model_path": "m/x", "api_key": "k"}"#);
    folder.write("facts.json", r#"{"experiment_id": "e-1", "gpu_device_ids": [3]}"#);
    folder.write("bench.json", r#"{"b": 1, "a": 2}"#);
    let arguments = [
        "triage",
        "run/traces/a.json",
        "--out",
        "out",
        "--facts",
        "facts.json",
        "--benchmark-config",
        "bench.json",
    ];
    folder.run(&arguments).done();
    let metadata = json(&folder, "out/profile_metadata.json");
    assert_eq!(metadata["experiment_id"], "e-1");
    assert_eq!(
        (&metadata["model_name"], &metadata["server_flags"]["tp_size"]),
        (&"m/x".into(), &8.into())
    );
    assert_eq!(metadata["server_flags"]["api_key"], "[stripped]");
    assert!(metadata["benchmark_config_hash"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(metadata["source_trace_path"], "a.json");
    assert_eq!(metadata["sources"][0]["bytes"], sound().len());

    folder.write("facts.json", "[]");
    let run = folder.run(&["triage", "run/traces/a.json", "--facts", "facts.json"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("facts.json"), "{}", run.stderr);
}

#[test]
fn a_folder_gives_its_traces_of_the_lowest_rank() {
    let folder = Folder::new("triage-ranks");
    std::fs::create_dir_all(folder.path().join("run/deep")).unwrap();
    folder.write("run/TP-7.json", of_rank(Some(1)));
    folder.write("run/deep/TP-2.json", of_rank(None));
    folder.write("run/merged.json", of_rank(None));
    folder.write("run/server_args.json", "{}");
    folder.write("run/notes.txt", "no trace");
    let run = folder.run(&["triage", "run", "--out", "out"]).done();
    // The file's own word, 1, comes before its name's, 7; the other file only has its name's.
    assert!(run.stdout.contains("kernel\\_1") || run.stdout.contains("kernel_1"), "{}", run.stdout);
    assert_eq!(names_in(&folder, "out"), ["TP-7", "merged"]);
    assert!(run.stderr.contains("using rank 1"), "{}", run.stderr);
    folder.run(&["triage", "run", "--rank", "2", "--out", "two"]).done();
    assert_eq!(names_in(&folder, "two"), ["TP-2", "merged"]);
    let none = folder.run(&["triage", "run", "--rank", "5"]);
    assert_eq!((none.code, none.stderr.contains("ranks: 1, 2")), (2, true), "{}", none.stderr);
}

#[test]
fn one_stage() {
    let folder = Folder::new("triage-stage");
    folder.write("a.json", sound());
    folder.run(&["triage", "a.json", "--stage", "all"]).done();
    let run = folder.run(&["triage", "a.json", "--stage", "decode"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("its stages: all"), "{}", run.stderr);
    assert_eq!(folder.run(&["triage", "a.json", "--stage", "lunch"]).code, 2);
    assert_eq!(folder.run(&["triage", "a.json", "--cutoff", "101"]).code, 2);
}

#[test]
fn two_runs_side_by_side() {
    let folder = Folder::new("compare");
    folder.write("a.json", sound());
    folder.write(
        "b.json",
        sound().replace("ampere_sgemm_128x64_tn", "ampere_sgemm_64x64_tn").replace("12.0", "9.0"),
    );
    let from_traces = folder.run(&["compare", "a.json", "b.json"]).done().stdout;
    assert_golden("compare.md", &from_traces);
    // The same from artifacts, but for the title.
    folder.run(&["triage", "a.json", "--out", "a"]).done();
    folder.run(&["triage", "b.json", "--out", "b"]).done();
    let from_artifacts = folder.run(&["compare", "a", "b"]).done().stdout;
    let body = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    // What became of the actions stands in reports only.
    let without_actions = |text: &str| {
        let (before, rest) = text.split_once("\n## What moved\n").unwrap();
        let (_, after) = rest.split_once("\n## Comparison\n").unwrap();
        [body(before), after.to_owned()]
    };
    assert_eq!(without_actions(&from_artifacts), without_actions(&from_traces));
    assert!(from_artifacts.contains("one of the runs has no report.json"), "{from_artifacts}");
    for run in ["a", "b"] {
        let (trace, out) = (format!("{run}.json"), format!("{run}/report.json"));
        folder.run(&["report", "--cpu-trace", &trace, "--json-out", &out]).done();
    }
    let from_artifacts = folder.run(&["compare", "a", "b"]).done().stdout;
    assert_eq!(body(&from_artifacts), body(&from_traces));
}

#[test]
fn a_capture_maps_every_replayed_kernel() {
    let folder = Folder::new("triage-capture");
    folder.write("formal.json.gz", testkit::scene_gz("graph_replay"));
    folder.write("capture.json.gz", testkit::scene_gz("graph_capture"));
    assert_replayed(&folder, "formal.json.gz", "capture.json.gz", 4);
    let path = |name: &str| Some(testkit::real_trace(name)?.to_str().unwrap().to_owned());
    let real = path("mi300_vllm_decode_formal").zip(path("mi300_vllm_decode_capture"));
    let Some((formal, capture)) = real else { return };
    assert_replayed(&folder, &formal, &capture, 11);
    let metadata = json(&folder, "out/profile_metadata.json");
    assert_eq!(metadata["rocm_version"], "7.0");
    assert_eq!(metadata["resource_class"], "single-gpu");
}

/// At least `n_rows` rows of kernels are mapped by replay, and all of them have an op.
fn assert_replayed(folder: &Folder, formal: &str, capture: &str, n_rows: usize) {
    folder
        .run(&["triage", formal, "--capture", capture, "--out", "out", "--target-arch", "gfx950"])
        .done();
    let metadata = json(folder, "out/profile_metadata.json");
    for (key, value) in [
        ("observed_arch", "gfx942"),
        ("arch_match", "compatible"),
        ("framework", "vllm"),
        ("profile_stage", "decode"),
    ] {
        assert_eq!(metadata[key], value, "{key}");
    }
    assert_eq!(metadata["warnings"], serde_json::json!([]));
    assert_eq!(metadata["sources"][1]["role"], "capture");
    let rows = json(folder, "out/kernel_table.json");
    let replayed =
        rows.as_array().unwrap().iter().filter(|row| row["mapping_confidence"] == "replay");
    assert!(replayed.clone().count() >= n_rows);
    assert!(replayed.clone().all(|row| row["cpu_op"] != "unresolved"));
}
