//! Kernel maps: what is exported is what the mapping trace tells; captures are chosen among several.

use serde_json::Value;

use crate::common::{Folder, sound};
use crate::triage::json;

const TABLES: [&str; 3] =
    ["kernel_table.json", "overlap_opportunities.json", "fuse_opportunities.json"];

/// Triage of `formal` with `mapping` itself and with a map that was exported from it gives the same tables; what was
/// mapped is returned.
#[track_caller]
fn law(folder: &Folder, formal: &str, mapping: &str) -> usize {
    folder.run(&["triage", mapping, "--export-map", "map.json"]).done();
    let map = folder.read("map.json");
    folder.run(&["triage", mapping, "--export-map", "again.json"]).done();
    assert!(map == folder.read("again.json"), "{mapping}: the same bytes each time");
    folder.run(&["triage", formal, "--mapping", mapping, "--out", "of-trace"]).done();
    folder.run(&["triage", formal, "--map", "map.json", "--out", "of-map"]).done();
    for name in TABLES {
        let [of_trace, of_map] =
            ["of-trace", "of-map"].map(|out| folder.text(&format!("{out}/{name}")));
        assert!(of_trace == of_map, "{formal} by {mapping}: {name}");
    }
    let metadata = |out: &str| {
        let mut metadata = json(folder, &format!("{out}/profile_metadata.json"));
        assert_eq!(metadata["sources"][1]["role"], "mapping");
        metadata["sources"] = Value::Null;
        metadata
    };
    assert_eq!(metadata("of-trace"), metadata("of-map"), "{formal} by {mapping}");
    let rows = json(folder, "of-map/kernel_table.json");
    let rows = rows.as_array().unwrap().iter();
    rows.filter(|row| row["mapping_confidence"] == "mapping").count()
}

#[test]
fn a_map_tells_what_its_trace_tells() {
    let folder = Folder::new("map-example");
    folder.write("example.json.gz", testkit::example::json_gz());
    // What the graphs of the decode steps launch ran in the prompt, too, without graphs.
    assert!(law(&folder, "example.json.gz", "example.json.gz") > 5);
    folder.write("replay.json.gz", testkit::scene_gz("graph_replay"));
    folder.write("eager.json.gz", testkit::scene_gz("rocm_overrun"));
    assert!(law(&folder, "replay.json.gz", "eager.json.gz") >= 4);
    folder.write("map.json.gz", testkit::gzip(&folder.read("map.json")));
    folder.run(&["triage", "replay.json.gz", "--map", "map.json.gz", "--out", "of-gzip"]).done();
    let [of_map, of_gzip] =
        ["of-map", "of-gzip"].map(|out| folder.text(&format!("{out}/kernel_table.json")));
    assert!(of_map == of_gzip, "a map may be compressed");
}

#[test]
fn a_map_of_a_real_trace_tells_what_its_trace_tells() {
    let Some(corpus) = testkit::shared("corpus/traces") else { return };
    let path = |name: &str| corpus.join(format!("{name}.json.gz")).to_string_lossy().into_owned();
    let folder = Folder::new("map-corpus");
    for (formal, mapping, at_least) in [
        ("mi300_sglang_decode_formal", "mi300_sglang_prefilldecode", 9),
        ("mi300_vllm_decode_formal", "mi300_sglang_prefilldecode", 0),
        ("mi300_vllm_decode_formal", "mi300_vllm_decode_capture", 0),
        ("mi300_sglang_prefilldecode", "mi300_qwen15_0.5b", 0),
        ("h100_qwen15_0.5b", "h100_bert_small", 0),
    ] {
        let mapped = law(&folder, &path(formal), &path(mapping));
        assert!(mapped >= at_least, "{formal} by {mapping}: {mapped}");
    }
}

#[test]
fn a_map_of_a_replay_holds_what_its_capture_told() {
    let folder = Folder::new("map-replay");
    folder.write("formal.json.gz", testkit::scene_gz("graph_replay"));
    folder.write("capture.json.gz", testkit::scene_gz("graph_capture"));
    let mut pairs = vec![("formal.json.gz".to_owned(), "capture.json.gz".to_owned(), 120)];
    let path = |name: &str| Some(testkit::real_trace(name)?.to_str().unwrap().to_owned());
    let real = path("mi300_vllm_decode_formal").zip(path("mi300_vllm_decode_capture"));
    pairs.extend(real.map(|(formal, capture)| (formal, capture, 421)));
    for (formal, capture, mapped) in pairs {
        folder.run(&["triage", &formal, "--capture", &capture, "--export-map", "map.json"]).done();
        let run = folder.run(&["triage", &formal, "--map", "map.json"]).done();
        let said = format!("{mapped} of them map to ops");
        assert!(run.stdout.contains(&said), "{said}: {}", run.stdout);
    }
}

#[test]
fn what_is_no_map_is_refused_with_its_place() {
    let folder = Folder::new("map-wrong");
    folder.write("run.json", sound());
    folder.write("example.json.gz", testkit::example::json_gz());
    folder.run(&["triage", "example.json.gz", "--export-map", "map.json"]).done();
    let good = folder.text("map.json");
    for (text, part) in [
        ("{", "not JSON"),
        (&sound(), "version is missing"),
        (&good.replace("\"version\": 2", "\"version\": 1"), "(at version)"),
        (&good.replacen("\"launches\": ", "\"launches\": -", 1), ".sites[0].launches)"),
    ] {
        folder.write("wrong.json", text);
        let run = folder.run(&["triage", "run.json", "--map", "wrong.json"]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
        for part in ["cannot use wrong.json", part, "--export-map"] {
            assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
        }
    }
    // A map in place of a trace says what it is, and where to put it.
    let run = folder.run(&["triage", "run.json", "--mapping", "map.json"]);
    assert_eq!(run.code, 3);
    assert!(run.stderr.contains("kernel map") && run.stderr.contains("--map"), "{}", run.stderr);
}

#[test]
fn of_several_captures_the_one_with_the_kernels_is_used_and_named() {
    let Some(corpus) = testkit::shared("corpus/traces") else { return };
    let folder = Folder::new("captures");
    std::fs::create_dir(folder.path().join("captures")).unwrap();
    for (name, copy) in [("sglang", "bs_32_rank0"), ("vllm", "bs_64_rank0")] {
        let trace = std::fs::read(corpus.join(format!("mi300_{name}_decode_capture.json.gz")));
        folder.write(&format!("captures/{copy}.json.gz"), trace.unwrap());
    }
    let details = r#"[{"file": "bs_32_rank0.json.gz", "batch_size": 32, "mode": "FULL"},
        {"file": "bs_64_rank0.json.gz", "batch_size": 64, "mode": "FULL"}]"#;
    folder.write("captures/execution_details.json", details);
    let formal = corpus.join("mi300_sglang_decode_formal.json.gz").to_string_lossy().into_owned();
    let run = folder.run(&["triage", &formal, "--capture", "captures"]).done();
    for part in [
        "544 of them map to ops",
        "bs\\_32\\_rank0.json.gz (FULL, batch 32) for 1 graph launch",
        // (The trace's own word, 32, counts before the list's.)
        "No graph launch replays bs\\_64\\_rank0.json.gz",
        "| bs\\_64\\_rank0.json.gz | capture |",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    // A list that cannot be read is said, and the kernels' names decide as well.
    folder.write("captures/execution_details.json", "{}");
    let run = folder.run(&["triage", &formal, "--capture", "captures"]).done();
    assert!(
        run.stderr.contains("execution_details.json: not a list of captures"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("544 of them map to ops"));
}
