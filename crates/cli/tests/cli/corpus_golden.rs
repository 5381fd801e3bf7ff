//! What users get of samples, alone and in pairs, as checked in: the Markdown whole, the JSON without its tail.
//!
//! `golden/own` has the reports of samples of this repository, `golden/corpus` those of the real traces, which stay outside. The JSON of large traces is mostly
//! kernels that take next to no time, so rows below [`CUTOFF_PCT`] stand in one row of sums, and the digest of each
//! whole file tells whether anything at all has changed.

use kinetoscope::artifacts::sha256_hex;
use serde_json::{Map, Value, json};

use crate::common::{Folder, assert_golden};

/// Rows of at least this share of their stage are kept as they are.
const CUTOFF_PCT: f64 = 2.0;

/// Tables of `triage --out`, with the column of a row's share.
const TABLES: [(&str, &str); 3] = [
    ("kernel_table", "time_share_pct"),
    ("overlap_opportunities", "share_pct"),
    ("fuse_opportunities", "time_share_pct"),
];

/// The same text for every version of ours.
fn versionless(text: &str) -> String {
    text.replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

/// The rows above the cutoff, and the sums of the others.
fn compact(rows: &mut Vec<Value>, share: impl Fn(&Value) -> f64) {
    let (kept, others): (Vec<Value>, Vec<Value>) =
        std::mem::take(rows).into_iter().partition(|row| share(row) >= CUTOFF_PCT);
    *rows = kept;
    if others.is_empty() {
        return;
    }
    let mut sums = Map::new();
    sums.insert("rows below the cutoff".to_owned(), others.len().into());
    for key in ["launches", "instances", "occurrences", "total_ns"] {
        let sum: u64 = others.iter().filter_map(|row| row[key].as_u64()).sum();
        if others[0].get(key).is_some() {
            sums.insert(key.to_owned(), sum.into());
        }
    }
    rows.push(Value::Object(sums));
}

/// Compares everything that the program says of one trace.
fn check(folder: &Folder, group: &str, name: &str, trace: &str, others: &[&str]) {
    let triage = [&["triage", trace, "--out", name], others].concat();
    assert_golden(&format!("{group}/{name}.triage.md"), &folder.run(&triage).done().stdout);
    let mut digests = Map::new();
    let mut read = |file: &str, text: &str| -> Value {
        digests.insert(file.to_owned(), sha256_hex(text.as_bytes()).into());
        serde_json::from_str(text).unwrap()
    };
    let mut document = Map::new();
    let metadata = versionless(&folder.text(&format!("{name}/profile_metadata.json")));
    document.insert("profile_metadata".to_owned(), read("profile_metadata", &metadata));
    for (file, share) in TABLES {
        let mut table = read(file, &folder.text(&format!("{name}/{file}.json")));
        compact(table.as_array_mut().unwrap(), |row| row[share].as_f64().unwrap());
        document.insert(file.to_owned(), table);
    }
    // What other traces tell changes nothing in the breakdown.
    if others.is_empty() {
        let markdown = folder.run(&["breakdown", trace]).done().stdout;
        assert_golden(&format!("{group}/{name}.breakdown.md"), &markdown);
        let markdown = folder.run(&["diagnose", trace]).done().stdout;
        assert_golden(&format!("{group}/{name}.diagnose.md"), &markdown);
        // (The figures of the real traces are compared with the reference's.)
        if group == "own" {
            let markdown = folder.run(&["cpu", trace]).done().stdout;
            assert_golden(&format!("{group}/{name}.cpu.md"), &markdown);
        }
        let text = folder.run(&["breakdown", trace, "--json"]).done().stdout;
        let mut breakdown = read("breakdown", &text);
        let sum = breakdown["gpu"]["kernel_sum_ns"].as_f64().unwrap();
        for key in ["kernels", "categories"] {
            let mut rows = breakdown[key].take();
            compact(rows.as_array_mut().unwrap(), |row| {
                100.0 * row["total_ns"].as_f64().unwrap() / sum.max(1.0)
            });
            document.insert(format!("breakdown.{key}"), rows);
        }
        document.insert("breakdown".to_owned(), breakdown);
    }
    document.insert("sha256 of the whole files".to_owned(), json!(digests));
    assert_golden(&format!("{group}/{name}.json"), &one_row_a_line(&document));
}

/// JSON with every row of a table on one line.
fn one_row_a_line(document: &Map<String, Value>) -> String {
    let members = document.iter().map(|(key, value)| {
        let text = match value.as_array() {
            Some(rows) => {
                let rows: Vec<String> = rows.iter().map(|row| format!("\n  {row}")).collect();
                format!("[{}\n ]", rows.join(","))
            }
            None => serde_json::to_string_pretty(value).unwrap(),
        };
        format!("\n {}: {text}", json!(key))
    });
    format!("{{{}\n}}\n", members.collect::<Vec<String>>().join(","))
}

#[test]
fn samples_of_our_own_read_as_checked_in() {
    let folder = Folder::new("own-golden");
    let path =
        |name: &str| folder.path().join(format!("{name}.json.gz")).to_str().unwrap().to_owned();
    for sample in testkit::own_trace_samples() {
        std::fs::write(path(sample.stem()), sample.bytes()).unwrap();
    }
    for name in [
        "attention_naive",
        "conv_nchw",
        "copy_pageable",
        "cpu_item_syncs",
        "decode_replay",
        "dependent_launch",
        "merged_ranks",
        "oom",
        "rocm_overrun",
        "train",
    ] {
        check(&folder, "own", name, &path(name), &[]);
    }
    let (formal, capture) = (path("graph_replay"), path("graph_capture"));
    check(&folder, "own", "pair_graph_replay", &formal, &["--capture", &capture]);
    // The run without graphs as the mapping trace.
    let mapping = path("rocm_overrun");
    check(&folder, "own", "pair_mapping", &formal, &["--mapping", &mapping]);
}

#[test]
fn every_real_trace_reads_as_checked_in() {
    let Some(traces) = testkit::shared("corpus/traces") else { return };
    // The program runs in another folder.
    let traces = traces.canonicalize().unwrap();
    let folder = Folder::new("corpus-golden");
    for file in testkit::real_traces() {
        let name = file.file_name().unwrap().to_str().unwrap().strip_suffix(".json.gz").unwrap();
        check(&folder, "corpus", name, file.to_str().unwrap(), &[]);
    }
    for kind in ["vllm", "sglang"] {
        let path = |role: &str| {
            let file = traces.join(format!("mi300_{kind}_decode_{role}.json.gz"));
            file.to_str().unwrap().to_owned()
        };
        let (formal, capture) = (path("formal"), path("capture"));
        check(&folder, "corpus", &format!("pair_{kind}_decode"), &formal, &["--capture", &capture]);
    }
    // The largest trace as its own mapping: what a pair of traces without graphs gives.
    let largest = traces.join("mi300_xdit_sd35.json.gz");
    let largest = largest.to_str().unwrap();
    check(&folder, "corpus", "pair_xdit_sd35", largest, &["--mapping", largest]);
}
