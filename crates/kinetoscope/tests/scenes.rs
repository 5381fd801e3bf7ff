//! What triage says of the simulated traces, compared with how they were made, and with a second reading of them.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use std::collections::BTreeMap;

use kinetoscope::{Category, Confidence, Options, Sources, TriageOptions, TriageReport, triage};
use serde_json::Value;

/// A part of a kernel's name, and the op that launches it in every scene.
const OPS: [(&str, &str); 7] = [
    ("fused_add_rms_norm", "_C::fused_add_rms_norm"),
    ("nvjet", "aten::mm"),
    ("Cijk", "aten::mm"),
    ("flash_fwd", "vllm::unified_attention_with_output"),
    ("paged_attention", "vllm::unified_attention_with_output"),
    ("act_and_mul", "_C::silu_and_mul"),
    ("ncclDevKernel", "vllm::all_reduce"),
];

fn report(file: &[u8], captures: &[&[u8]]) -> TriageReport {
    let captures: Vec<_> = captures.iter().map(|file| common::decode(file).trace).collect();
    let captures: Vec<_> = captures.iter().collect();
    let everything = TriageOptions { slices: Options::default(), ..TriageOptions::default() };
    let sources = Sources { captures: &captures, ..Sources::default() };
    triage(&common::decode(file).trace, &everything, &sources)
}

fn assert_ops(name: &str, report: &TriageReport, confidence: Confidence) {
    let mut n = 0;
    for row in report.kernels.iter().filter(|row| !row.kernel_name.starts_with("Memcpy")) {
        let (_, op) = OPS.iter().find(|(part, _)| row.kernel_name.contains(part)).unwrap();
        assert_eq!((&*row.cpu_op, row.mapping_confidence), (*op, confidence), "{name}");
        n += 1;
    }
    assert!(n >= 4, "{name}: {n} rows");
}

#[test]
fn every_kernel_has_the_op_that_launched_it() {
    for name in
        ["dependent_launch", "epoch_times", "folded_tids", "rank_0", "rank_1", "rocm_overrun"]
    {
        assert_ops(name, &report(&testkit::scene_gz(name), &[]), Confidence::Exact);
    }
}

#[test]
fn a_replayed_kernel_has_its_op_from_the_capture_and_from_nowhere_else() {
    let (replay, capture) = (testkit::scene_gz("graph_replay"), testkit::scene_gz("graph_capture"));
    for row in report(&replay, &[]).kernels.iter().filter(|row| row.category != Category::Memcpy) {
        assert_ne!(row.mapping_confidence, Confidence::Exact, "{}", row.kernel_name);
        assert!(OPS.iter().all(|(_, op)| row.cpu_op != *op), "{}: {}", row.kernel_name, row.cpu_op);
    }
    assert_ops("graph_replay", &report(&replay, &[&capture]), Confidence::Replay);
}

/// A GPU slice of the second reading: device, name, stream, start and end.
type Slice = (String, String, i64, i64, i64);

fn gpu_slices(file: &[u8]) -> Vec<Slice> {
    let document: Value = serde_json::from_slice(&testkit::gunzip(file).unwrap()).unwrap();
    let events = document["traceEvents"].as_array().unwrap().iter();
    // Below 2^42 us a double holds a nanosecond.
    let ns = |value: &Value| (value.as_f64().unwrap() * 1000.0).round() as i64;
    let is_gpu = |event: &&Value| {
        event["ph"] == "X" && ["kernel", "gpu_memcpy"].iter().any(|cat| event["cat"] == *cat)
    };
    let slice = |event: &Value| {
        let (start, args) = (ns(&event["ts"]), &event["args"]);
        let stream = args["stream"].as_i64().unwrap();
        let name = event["name"].as_str().unwrap().to_owned();
        (args["device"].to_string(), name, stream, start, start + ns(&event["dur"]))
    };
    events.filter(is_gpu).map(slice).collect()
}

/// The part of `slice` in which no other stream of its device runs: between all edges, piece by piece.
fn exposed(slice: &Slice, all: &[Slice]) -> i64 {
    let others: Vec<(i64, i64)> = all
        .iter()
        .filter(|other| other.0 == slice.0 && other.2 != slice.2)
        .map(|other| (other.3, other.4))
        .collect();
    let mut edges: Vec<i64> = others.iter().flat_map(|(start, end)| [*start, *end]).collect();
    edges.extend([slice.3, slice.4]);
    edges.retain(|edge| (slice.3..=slice.4).contains(edge));
    edges.sort_unstable();
    let free =
        |piece: &&[i64]| others.iter().all(|other| piece[1] <= other.0 || other.1 <= piece[0]);
    edges.windows(2).filter(free).map(|piece| piece[1] - piece[0]).sum()
}

#[test]
fn exposed_time_is_that_of_a_second_reading() {
    let mut hidden = 0;
    for name in ["dependent_launch", "folded_tids", "merged_ranks", "rank_0", "rank_1"] {
        let file = testkit::scene_gz(name);
        let slices = gpu_slices(&file);
        let mut expected: BTreeMap<(&str, &str), (i64, i64)> = BTreeMap::new();
        for slice in &slices {
            let sums = expected.entry((&slice.0, &slice.1)).or_default();
            *sums = (sums.0 + slice.4 - slice.3, sums.1 + exposed(slice, &slices));
        }
        let report = report(&file, &[]);
        let mut found: BTreeMap<(&str, &str), (i64, i64)> = BTreeMap::new();
        for row in &report.kernels {
            let sums = found.entry((&row.device, &row.kernel_name)).or_default();
            *sums = (sums.0 + row.total_ns, sums.1 + row.exposed_ns);
        }
        assert_eq!(found, expected, "{name}");
        hidden += expected.values().map(|(total, exposed)| total - exposed).sum::<i64>();
    }
    assert!(hidden > 0, "something is hidden in them");
}
