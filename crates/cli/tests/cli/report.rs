//! `kinetoscope report`: three forms of one report, whatever the files hold.

use serde_json::Value;

use crate::common::{Folder, damaged};

/// The chapters that every report has, in order.
const CHAPTERS: [&str; 5] =
    ["Resource summary", "Top bottlenecks", "Diagnosis", "Prioritised actions", "Not available"];

#[test]
fn a_report_has_its_chapters_in_three_forms() {
    let folder = Folder::new("report");
    folder.write("run.json", damaged());
    let outputs = ["--md-out", "r.md", "--json-out", "r.json", "--html-out", "r.html"];
    folder.run(&[&["report", "--cpu-trace", "run.json"], &outputs[..]].concat()).done();
    let (markdown, html) = (folder.text("r.md"), folder.text("r.html"));
    assert!(markdown.starts_with("# Resource report: run.json\n"), "{markdown}");
    let headings = |text: &str, start: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(start));
        lines.map(|line| line.trim_end_matches("</h2>").to_owned()).collect()
    };
    assert_eq!(headings(&markdown, "## "), CHAPTERS);
    assert_eq!(headings(&html, "<h2>"), CHAPTERS);
    assert!(!html.contains("<script") && !html.contains("://"), "nothing runs, nothing is fetched");
    let json: Value = serde_json::from_str(&folder.text("r.json")).unwrap();
    assert_eq!(json["schema"], 1);
    assert!(json["cpu"]["event_count"].is_u64() && json["actions"].is_array(), "{json}");
    let missing = json["not_available"].as_array().unwrap();
    assert!(missing.iter().all(|row| row["reason"].is_string() && row["how"].is_string()));
    // What is not recorded is said in the text, too.
    for row in missing {
        assert!(markdown.contains(row["reason"].as_str().unwrap()), "{row}");
    }
}

#[test]
fn a_report_needs_an_input_and_an_output_and_keeps_inputs() {
    let folder = Folder::new("report-usage");
    folder.write("run.json", damaged());
    assert_eq!(folder.run(&["report", "--md-out", "r.md"]).code, 2);
    assert_eq!(folder.run(&["report", "--cpu-trace", "run.json"]).code, 2);
    let over = folder.run(&["report", "--cpu-trace", "run.json", "--json-out", "run.json"]);
    assert_eq!(over.code, 2, "{}", over.stderr);
    assert_eq!(folder.read("run.json"), damaged().as_bytes());
    folder.write("no.json", "{\"a\": 1}");
    let refused = folder.run(&["report", "--cpu-trace", "no.json", "--md-out", "r.md"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert_eq!(folder.names(), ["no.json", "run.json"], "no report of nothing");
}

#[test]
fn a_report_says_what_diagnose_says() {
    let folder = Folder::new("report-diagnose");
    folder.write("run.json", damaged());
    folder.run(&["report", "--cpu-trace", "run.json", "--json-out", "r.json"]).done();
    let report: Value = serde_json::from_str(&folder.text("r.json")).unwrap();
    let said = folder.run(&["diagnose", "run.json", "--json"]).done().json();
    assert_eq!(report["headline"], said["headline"]);
    assert_eq!(report["diagnosis"], said["findings"]);
    assert_eq!(report["wall"], said["wall"]);
}

/// Two segments: one in use but for a free gap, one free as a whole.
const SNAPSHOT: &str = r#"{"segments": [
 {"device": 0, "address": 1000, "total_size": 4096, "allocated_size": 3072, "active_size": 3072, "requested_size": 3000,
  "stream": 0, "segment_type": "small", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [],
  "blocks": [{"address": 1000, "size": 3072, "requested_size": 3000, "state": "active_allocated", "frames": []},
             {"address": 4072, "size": 1024, "requested_size": 0, "state": "inactive", "frames": []}]},
 {"device": 0, "address": 9000, "total_size": 4096, "allocated_size": 0, "active_size": 0, "requested_size": 0,
  "stream": 0, "segment_type": "small", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [],
  "blocks": [{"address": 9000, "size": 4096, "requested_size": 0, "state": "inactive", "frames": []}]}],
 "device_traces": [[]], "allocator_settings": {"expandable_segments": false}}"#;

#[test]
fn a_snapshot_alone_or_beside_a_trace_is_in_the_report() {
    let folder = Folder::new("report-memory");
    folder.write("s.json", SNAPSHOT);
    folder.write("run.json", damaged());
    let outputs = ["--md-out", "r.md", "--json-out", "r.json"];
    folder.run(&[&["report", "--memory-json", "s.json"], &outputs[..]].concat()).done();
    let json: Value = serde_json::from_str(&folder.text("r.json")).unwrap();
    let memory = &json["memory"];
    let of = |key: &str| memory[key].as_i64().unwrap();
    assert_eq!((of("total_reserved_bytes"), of("total_allocated_bytes")), (8192, 3072));
    assert_eq!((of("total_inactive_bytes"), of("releasable_bytes")), (5120, 4096));
    assert_eq!((of("split_inactive_bytes"), of("num_segments")), (1024, 2));
    assert_eq!(memory["fragmentation_risk"], "HIGH");
    assert_eq!(memory["allocator_settings"]["expandable_segments"], false);
    assert!(json["cpu"].is_null());
    let markdown = folder.text("r.md");
    for chapter in CHAPTERS {
        assert!(markdown.contains(&format!("\n## {chapter}\n")), "{chapter}");
    }
    assert!(markdown.contains("no trace was given") && !markdown.contains("no snapshot was given"));
    let both = ["report", "--cpu-trace", "run.json", "--memory-json", "s.json"];
    folder.run(&[&both, &outputs[..]].concat()).done();
    let json: Value = serde_json::from_str(&folder.text("r.json")).unwrap();
    assert!(json["cpu"].is_object() && json["memory"]["num_segments"] == 2, "{json}");
    assert_eq!(folder.run(&["report", "--memory-json", "run.json", "--md-out", "x.md"]).code, 3);
}
