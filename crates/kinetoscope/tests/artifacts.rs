//! Artifacts: what they hold, that they fit their schemas, and that they are the same every time.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use std::collections::BTreeSet;

use kinetoscope::artifacts::{
    ArtifactInput, ArtifactOptions, FuseArtifact, KernelArtifact, Micros, OverlapArtifact, Percent,
    Role, RunFacts, STRIPPED, SourceDigest, Stored, Tables, Triaged, UserFacts, archive, artifacts,
    triage_artifacts,
};
use kinetoscope::{
    Decoded, KernelMapFacts, Options, PlanOptions, Sources, TriageOptions, analyze, kernel_map,
    kernel_map_from_json, kernel_map_json, plan_repair, triage,
};
use serde_json::{Value, json};
use triage::{Framework, FrameworkVote, ObservedArch};

fn run_facts() -> RunFacts {
    RunFacts {
        arch: ObservedArch {
            observed_arch: "gfx942".to_owned(),
            evidence: vec!["device name AMD Instinct MI300X".to_owned()],
            conflict: None,
        },
        framework: FrameworkVote {
            framework: Framework::Vllm,
            evidence: vec!["vllm: 9 Python calls".to_owned()],
        },
        profile_stage: "decode".to_owned(),
        busy: "GPU busy 90.0% of 3 ms.".to_owned(),
        before_window_counted: false,
        mapped_pct: Some(200.0 / 3.0),
        batch_shape: None,
        has_inputs: false,
        has_ops: true,
        has_cpu: true,
        warnings: vec!["see /home/jo/log".to_owned()],
    }
}

fn kernel() -> KernelArtifact {
    KernelArtifact {
        stage: "decode".to_owned(),
        device: "0".to_owned(),
        kernel_name: "gemm".to_owned(),
        category: "gemm".to_owned(),
        time_share_pct: Percent(100.0 / 3.0),
        python_location: "/home/jo/run.py:3 main".to_owned(),
        notes: "graph-launched;locations:2".to_owned(),
        family: "hipblaslt".to_owned(),
        total_us: Micros(12_345),
        launches: 3,
        avg_us: Micros(4_115),
        p50_us: Micros(4_000),
        max_us: Micros(5_000),
        exposed_us: Micros(1),
        queue_us: None,
        cpu_op: "aten::mm".to_owned(),
        mapping_confidence: "exact".to_owned(),
        location_share_pct: Percent(100.0),
        modules: None,
        arch_hint: None,
        locations: vec!["/home/jo/run.py:3 main (60.0%)".to_owned()],
        shapes: Some("bf16[32,4096], bf16[4096,4096]".to_owned()),
        n_shapes: Some(1),
        gemm_shape: Some("32 x 4096 x 4096".to_owned()),
        grid: Some([296, 1, 1]),
        block: Some([256, 1, 1]),
        est_occupancy_pct: Some(Percent(12.5)),
        registers: Some(88),
        shared_bytes: Some(33_792),
        blocks_per_sm: Some(0.606),
        warps_per_sm: None,
        n_launch_configs: Some(2),
        streams: vec!["7".to_owned()],
        first_us: Some(Micros(12_345)),
    }
}

fn tables() -> Tables {
    let overlap = OverlapArtifact {
        stage: "decode".to_owned(),
        device: "0".to_owned(),
        priority: "P1".to_owned(),
        kernel_name: "ncclDevKernel".to_owned(),
        python_scope: "unresolved".to_owned(),
        recommendation: "Move it to another stream.".to_owned(),
        dependency_risk: "unclear".to_owned(),
        category: "communication".to_owned(),
        overlap_class: "communication".to_owned(),
        total_us: Micros(10),
        share_pct: Percent(1.0),
        exclusive_us: Micros(4),
        hidden_us: Micros(6),
        hidden_by_compute_us: Micros(5),
        exclusive_ratio: 0.4,
        hidden_ratio: 0.6,
        hidden_by: Some("gemm".to_owned()),
        savings_bound_us: Some(Micros(4)),
        savings_share_pct: Some(Percent(0.5)),
        instances: 1,
        verdict: "headroom".to_owned(),
        formal_signal: "exposed".to_owned(),
        reason: "alone".to_owned(),
    };
    let fuse = FuseArtifact {
        stage: "decode".to_owned(),
        device: "0".to_owned(),
        pattern: "RMSNorm".to_owned(),
        time_share_pct: Percent(3.0),
        current_location: "unresolved".to_owned(),
        candidate_fused_path: "torch.nn.functional.rms_norm".to_owned(),
        pattern_id: "K01".to_owned(),
        confidence: "Candidate".to_owned(),
        status: "opportunity".to_owned(),
        related_us: Micros(20),
        occurrences: 2,
        evidence: vec!["pow, mean, rsqrt".to_owned()],
        rationale: "Adjacent.".to_owned(),
        priority: Some("P2".to_owned()),
        savings_bound_us: Some(Micros(15)),
        savings_share_pct: Some(Percent(2.5)),
        gain_confidence: Some("Estimate".to_owned()),
        action: Some("Call torch.nn.functional.rms_norm.".to_owned()),
        check: None,
    };
    Tables { kernels: Some(vec![kernel()]), overlap: Some(vec![overlap]), fuse: Some(vec![fuse]) }
}

fn write(
    decoded: &Decoded,
    tables: &Tables,
    facts: &UserFacts,
    keep_names: bool,
) -> Vec<(String, String)> {
    let report = analyze(&decoded.trace, &Options::default());
    let plan = plan_repair(&decoded.trace, &PlanOptions::default());
    let mut digest = SourceDigest::default();
    digest.push(b"abc");
    let files = artifacts(&ArtifactInput {
        decoded,
        report: &report,
        run: &run_facts(),
        tables,
        sections: &[],
        plan: Some(&plan),
        sources: &[digest.finish("/home/jo/node7_12.pt.trace.json", Role::Formal)],
        facts,
        options: ArtifactOptions { keep_names },
    });
    files.unwrap().into_iter().map(|file| (file.name, file.text)).collect()
}

fn json_of(files: &[(String, String)], name: &str) -> Value {
    let (_, text) = files.iter().find(|(found, _)| found == name).unwrap();
    serde_json::from_str(text).unwrap()
}

fn schema(name: &str) -> Value {
    let path = format!("{}/../../docs/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A document fits its schema, and the schema describes every key of it and no other.
fn fits(schema: &Value, document: &Value) {
    let errors: Vec<String> = jsonschema::validator_for(schema)
        .unwrap()
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    describes(schema, document, "");
}

fn describes(schema: &Value, document: &Value, place: &str) {
    match document {
        Value::Object(members) if schema["properties"].is_object() => {
            let known: BTreeSet<&String> =
                schema["properties"].as_object().unwrap().keys().collect();
            assert_eq!(members.keys().collect::<BTreeSet<_>>(), known, "{place}");
            for (key, value) in members {
                describes(&schema["properties"][key], value, &format!("{place}/{key}"));
            }
        }
        Value::Array(values) if schema["items"].is_object() => {
            values.iter().for_each(|value| describes(&schema["items"], value, place));
        }
        _ => {}
    }
}

fn all_fit(files: &[(String, String)]) {
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "profile_summary.md",
            "profile_metadata.json",
            "kernel_table.json",
            "overlap_opportunities.json",
            "fuse_opportunities.json"
        ]
    );
    for name in ["profile_metadata", "kernel_table", "overlap_opportunities", "fuse_opportunities"]
    {
        fits(&schema(name), &json_of(files, &format!("{name}.json")));
    }
}

const PRIVATE: &str = r#"{"host_name": "node7", "username": "mojif", "tw_user": "q", "INFO": ["secret"],
    "trial_id": "t-1", "metadata": {"base_image": "rocm/vllm:1", "system": {"uname": {"node": "moca-12"}},
    "experiment": {"repo_id": "Qwen/Q"}, "current_task": {"shape": {"batch_size": 16}}},
    "server_flags": {"host": "10.1.1.1", "tp_size": 8, "api_key": "k"},
    "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
    "deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X", "computeMajor": 9, "computeMinor": 4,
        "numSms": 304, "warpSize": 64, "totalGlobalMem": 206141652992}],
    "hip_runtime_version": 71326183, "roctracer_version": 4.1, "with_stack": 1, "traceName": "/home/mojif/t.json",
    "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2.5,
        "args": {"device": 2, "stream": 7}}]}"#;

#[test]
fn artifacts_fit_their_schemas() {
    for file in [PRIVATE.to_owned(), "{\"traceEvents\": []}".to_owned(), testkit::example::json()] {
        all_fit(&write(&common::decode(file.as_bytes()), &tables(), &UserFacts::default(), false));
    }
    for sample in testkit::own_trace_samples() {
        all_fit(&triaged(&sample.bytes(), &sample.name));
    }
}

#[test]
fn artifacts_of_real_traces_fit_their_schemas() {
    let Some(folder) = testkit::shared("corpus/traces") else { return };
    for name in
        ["mi300_bert_small", "nccl", "cpu_only", "mi210_gpu_only", "ns_resolution_absolute_us"]
    {
        let file = std::fs::read(folder.join(format!("{name}.json.gz"))).unwrap();
        let files = write(&common::decode(&file), &tables(), &UserFacts::default(), false);
        all_fit(&files);
        let text: String = files.iter().map(|(_, text)| text.as_str()).collect();
        for private in ["mojif", "twshared", "sraikund", "moca-profile", "pnb3", "mast_hpc"] {
            assert!(!text.contains(private), "{name}: {private}");
        }
    }
    let file = std::fs::read(folder.join("mi300_bert_small.json.gz")).unwrap();
    let files = write(&common::decode(&file), &tables(), &UserFacts::default(), false);
    let metadata = json_of(&files, "profile_metadata.json");
    assert_eq!(metadata["base_image"], "docker.io/rocm/vllm:latest");
    assert_eq!(metadata["provenance"]["base_image"], "trace: metadata.base_image");
    assert_eq!(metadata["model_name"], "gaunernst/bert-small-uncased");
    assert_eq!(
        (&metadata["rocm_version"], &metadata["cuda_version"]),
        (&json!("6.4"), &Value::Null)
    );
    assert_eq!(metadata["batch_shape"]["text_input_length"], 512);
}

#[test]
fn the_file_tells_what_it_can_and_nothing_is_invented() {
    let decoded = common::decode(PRIVATE.as_bytes());
    let files = write(&decoded, &tables(), &UserFacts::default(), false);
    let metadata = json_of(&files, "profile_metadata.json");
    for (key, value) in [
        ("trial_id", json!("t-1")),
        ("base_image", json!("rocm/vllm:1")),
        ("model_name", json!("Qwen/Q")),
        ("resource_class", json!("full-node")),
        ("gpu_device_ids", json!([2])),
        ("rocm_version", json!("HIP 7.13 (ROCm release not derivable)")),
        ("hip_runtime_version", json!("7.13.26183")),
        ("experiment_id", Value::Null),
        ("benchmark_config_hash", Value::Null),
        ("gpu_clocks_mhz", Value::Null),
        ("preflight_passed", Value::Null),
        ("observed_arch", json!("gfx942")),
        ("arch_match", json!("unknown")),
        ("window_us", json!(2.5)),
        ("mapped_pct", json!(66.6667)),
        ("source_trace_path", json!("~_12.pt.trace.json")),
        ("orphan_kernels", Value::Null),
        ("counts", json!({"kernel": 1})),
    ] {
        assert_eq!(metadata[key], value, "{key}");
    }
    assert_eq!(metadata["provenance"]["resource_class"], "derived: distributedInfo.world_size");
    assert_eq!(
        metadata["server_flags"],
        json!({"host": STRIPPED, "tp_size": 8, "api_key": STRIPPED})
    );
    assert_eq!(metadata["trace"]["traceName"], "t.json");
    assert_eq!(
        (&metadata["trace"]["with_stack"], &metadata["trace"]["with_flops"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(json_of(&files, "kernel_table.json")[0]["python_location"], "/home/~/run.py:3 main");
    assert_eq!(json_of(&files, "kernel_table.json")[0]["time_share_pct"], 33.3333);

    let empty = write(
        &common::decode(b"{\"traceEvents\": []}"),
        &Tables::default(),
        &UserFacts::default(),
        false,
    );
    let metadata = json_of(&empty, "profile_metadata.json");
    for key in
        ["model_name", "rocm_version", "resource_class", "device", "distributed", "server_flags"]
    {
        assert_eq!(metadata[key], Value::Null, "{key}");
    }
    assert_eq!(metadata["gpu_device_ids"], json!([]));
    assert_eq!(empty.len(), 2, "a table that was not made is absent");
}

#[test]
fn what_the_user_says_comes_first() {
    let facts: UserFacts = serde_json::from_value(json!({
        "trial_id": "t-2", "target_arch": "gfx950", "gpu_device_ids": [4], "resource_class": "single-gpu",
        "preflight_passed": true, "gpu_clocks_mhz": {"4": 2100.0}, "framework": "mine"
    }))
    .unwrap();
    let files = write(&common::decode(PRIVATE.as_bytes()), &tables(), &facts, false);
    all_fit(&files);
    let metadata = json_of(&files, "profile_metadata.json");
    for (key, value) in [
        ("trial_id", json!("t-2")),
        ("arch_match", json!("compatible")),
        ("arch_relation", json!("same_family")),
        ("gpu_device_ids", json!([4])),
        ("resource_class", json!("single-gpu")),
        ("framework", json!("mine")),
    ] {
        assert_eq!(metadata[key], value, "{key}");
        assert!(!key.starts_with("arch") || metadata["provenance"][key].is_null());
    }
    assert_eq!(metadata["provenance"]["trial_id"], "user");
}

#[test]
fn names_stay_only_if_somebody_asks() {
    let decoded = common::decode(PRIVATE.as_bytes());
    let text = |keep| -> String {
        let files = write(&decoded, &tables(), &UserFacts::default(), keep);
        files.into_iter().map(|(_, text)| text).collect()
    };
    for name in ["node7", "mojif", "moca-12", "/home/jo", "10.1.1.1", "\"k\"}", "secret"] {
        assert!(!text(false).contains(name), "{name}");
    }
    assert!(text(true).contains("node7_12.pt.trace.json") && text(true).contains("10.1.1.1"));
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let decoded = common::decode(testkit::example::json().as_bytes());
    let report = analyze(&decoded.trace, &Options::default());
    let run = run_facts();
    let (tables, facts) = (tables(), UserFacts::default());
    let input = ArtifactInput {
        decoded: &decoded,
        report: &report,
        run: &run,
        tables: &tables,
        sections: &report.sections(),
        plan: None,
        sources: &[],
        facts: &facts,
        options: ArtifactOptions::default(),
    };
    let once = artifacts(&input).unwrap();
    assert_eq!(once, artifacts(&input).unwrap());
    let mut stored = Stored::default();
    stored.push(b"\x1f\x8b");
    let zip = archive(&once, Some(&stored)).unwrap();
    assert_eq!(zip, archive(&once, Some(&stored)).unwrap());
    assert!(zip.before.starts_with(b"PK") && zip.after.starts_with(b"PK\x01\x02"));
}

fn triaged(file: &[u8], name: &str) -> Vec<(String, String)> {
    let decoded = common::decode(file);
    let options = TriageOptions { file_name: Some(name.to_owned()), ..TriageOptions::default() };
    let found = triage(&decoded.trace, &options, &Sources::default());
    let mut digest = SourceDigest::default();
    digest.push(file);
    let files = triage_artifacts(&Triaged {
        decoded: &decoded,
        report: &analyze(&decoded.trace, &Options::default()),
        triage: &found,
        plan: None,
        sources: &[digest.finish(name, Role::Formal)],
        facts: &UserFacts::default(),
        options: ArtifactOptions::default(),
        cutoff_pct: 1.0,
    });
    files.unwrap().into_iter().map(|file| (file.name, file.text)).collect()
}

#[test]
fn the_artifacts_of_triage_fit_their_schemas() {
    all_fit(&triaged(testkit::example::json().as_bytes(), "example.json"));
    all_fit(&triaged(b"{\"traceEvents\": []}", "empty.json"));
}

#[test]
fn samples_are_known_by_architecture_and_framework() {
    for (name, arch, framework) in [
        ("cpu_mlp_train", "unknown", "pytorch"),
        ("dependent_launch", "sm_90", "vllm"),
        ("gloo_rank1", "unknown", "pytorch"),
        ("graph_replay", "gfx942", "vllm"),
        ("rank_1", "sm_90", "vllm"),
        ("rocm_overrun", "gfx942", "vllm"),
    ] {
        let samples = testkit::own_trace_samples();
        let sample = samples.iter().find(|sample| sample.stem() == name).unwrap();
        let metadata = json_of(&triaged(&sample.bytes(), name), "profile_metadata.json");
        assert_eq!(
            (&metadata["observed_arch"], &metadata["framework"]),
            (&json!(arch), &json!(framework)),
            "{name}"
        );
    }
}

/// Architecture, framework and HIP or CUDA version of every real trace: by hand, from the traces.
#[test]
fn real_traces_are_known_by_architecture_and_framework() {
    let Some(folder) = testkit::shared("corpus/traces") else { return };
    for (name, arch, framework, runtime) in [
        ("alexnet", "sm_80", "pytorch", Value::Null),
        ("h100_bert_small", "sm_90", "pytorch", json!("12.4")),
        ("h100_qwen15_0.5b", "sm_90", "pytorch", json!("12.4")),
        ("mi210_gpu_only", "gfx90a", "pytorch", json!("6.4.43483")),
        ("mi250_toy_training", "gfx90a", "pytorch", Value::Null),
        ("mi300_qwen15_0.5b", "gfx942", "pytorch", json!("6.4.43483")),
        ("mi300_resnet_training", "gfx942", "pytorch", json!("6.4.43483")),
        ("mi300_sglang_decode_formal", "gfx942", "sglang", json!("7.2.53211")),
        ("mi300_sglang_prefilldecode", "gfx942", "sglang", json!("7.2.53211")),
        ("mi300_vllm_decode_formal", "gfx942", "vllm", json!("7.0.51831")),
        ("mi300_xdit_sd35", "gfx942", "diffusers/xdit", json!("7.13.26183")),
        ("ns_resolution_absolute_us", "sm_70", "pytorch", Value::Null),
        ("torch_compile_triton", "gfx942", "pytorch", json!("7.2.26015")),
        ("cpu_only", "unknown", "pytorch", Value::Null),
    ] {
        let file = std::fs::read(folder.join(format!("{name}.json.gz"))).unwrap();
        let files = triaged(&file, name);
        all_fit(&files);
        let metadata = json_of(&files, "profile_metadata.json");
        assert_eq!(
            (&metadata["observed_arch"], &metadata["framework"]),
            (&json!(arch), &json!(framework)),
            "{name}"
        );
        let hip = &metadata["hip_runtime_version"];
        let found = if hip.is_null() { &metadata["cuda_runtime_version"] } else { hip };
        assert_eq!(*found, runtime, "{name}");
        let reason = metadata["hardware_relevance_reason"].as_str().unwrap();
        assert!(!reason.contains("Conflicting"), "{name}: {reason}");
    }
}

#[test]
fn kernel_maps_fit_their_schema() {
    let trace = common::decode(testkit::example::json().as_bytes()).trace;
    let map = kernel_map(&trace, &Sources::default());
    assert!(map.global.len() > 5 && map.stages.len() > 1, "{map:?}");
    let flags = json!({"tp_size": 2, "api_key": "k"});
    for facts in [
        KernelMapFacts::default(),
        KernelMapFacts {
            generated_at: Some("2026-01-02"),
            server_flags: flags.as_object(),
            ..KernelMapFacts::default()
        },
    ] {
        let text = kernel_map_json(&map, &trace.metadata, &facts).unwrap();
        let document = serde_json::from_str(&text).unwrap();
        fits(&schema("kernel_map"), &document);
        for kernels in [&document["global"], &document["stages"]["decode"]] {
            let kernel = kernels["kernels"].as_object().unwrap().values().next().unwrap();
            let schema = schema("kernel_map");
            describes(&schema["$defs"]["kernel"], kernel, "kernel");
            describes(&schema["$defs"]["site"], &kernel["sites"][0], "site");
        }
        assert_eq!(kernel_map_from_json(&text), Ok(map.clone()));
        assert!(!text.contains("\"k\""), "keys do not leave");
    }
}
