//! Two snapshots compared: laws that hold for every pair of the corpus, and what is said of a small one.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use serde_json::{Value, json};
use snapshot::{Reader, Summary, analyze, compare};

const MIB: i64 = 1 << 20;

fn summary(document: &[u8]) -> Summary {
    let mut reader = Reader::new();
    reader.push(document).unwrap();
    analyze(&reader.finish().unwrap()).summary()
}

/// Weights from one line and a cache from another, both still in use: MiB and line.
fn run(weights: (i64, i64), cache: (i64, i64)) -> Summary {
    let (mut at, mut events, mut blocks) = (1i64 << 40, vec![], vec![]);
    let start = at;
    let sizes = [(weights, "build"), (cache, "fill")];
    let total: i64 = sizes.iter().map(|((mib, _), _)| mib * MIB).sum();
    events.push(
        json!({"action": "segment_alloc", "addr": at, "size": total, "stream": 0, "frames": []}),
    );
    for ((mib, line), name) in sizes {
        let frames = json!([{"filename": "/app/serve.py", "line": line, "name": name}]);
        events.push(json!({"action": "alloc", "addr": at, "size": mib * MIB, "stream": 0, "frames": frames}));
        blocks.push(json!({"address": at, "size": mib * MIB, "requested_size": mib * MIB, "state": "active_allocated", "frames": frames}));
        at += mib * MIB;
    }
    let document = json!({"segments": [{"device": 0, "address": start, "total_size": total, "allocated_size": total,
        "active_size": total, "requested_size": total, "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0],
        "is_expandable": false, "frames": [], "blocks": blocks}], "device_traces": [events]});
    summary(document.to_string().as_bytes())
}

fn json_of(before: &Summary, after: &Summary) -> Value {
    serde_json::to_value(compare(before, after)).unwrap()
}

#[test]
fn what_grew_is_told_with_its_site_though_the_line_moved() {
    let (before, after) = (run((100, 10), (20, 30)), run((100, 10), (50, 34)));
    let comparison = compare(&before, &after);
    assert_eq!(
        comparison.sections()[0].intro,
        [
            "Memory in use at the peak of device 0: 150 MiB, 30.0 MiB more than before (120 MiB, +25.0%). The largest part: 30.0 MiB \
          more from /app/serve.py:34:fill."
        ]
    );
    let rows = &json_of(&before, &after)["sites"]["0"];
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
    assert_eq!(rows[0]["matched"], "line_moved");
    assert_eq!(
        (&rows[0]["peak_change"], &rows[0]["end_change"]),
        (&json!(30 * MIB), &json!(30 * MIB))
    );
    // The other way round it shrank.
    let text = compare(&after, &before).sections()[0].intro.join(" ");
    assert!(text.contains("30.0 MiB less than before (150 MiB, -20.0%)"), "{text}");
}

#[test]
fn two_ranks_are_compared_by_call_site() {
    let rank = |device: &str, cache: (i64, i64)| -> Summary {
        let text = serde_json::to_string(&run((100, 10), cache)).unwrap();
        serde_json::from_str(&text.replace("{\"0\":", &format!("{{\"{device}\":"))).unwrap()
    };
    let found = compare(&rank("0", (20, 30)), &rank("1", (20, 30)));
    let said = found.sections()[0].intro.join(" ");
    assert_eq!(
        said,
        "Memory in use at the peak is the same in both: 120 MiB. The earlier snapshot is of device 0, the later one of device 1: they \
         are compared as two ranks, by call site."
    );
    let found = json_of(&rank("0", (20, 30)), &rank("1", (50, 30)));
    assert_eq!(found["ranks"], json!(["0", "1"]));
    let rows = found["sites"].as_object().unwrap();
    assert_eq!(rows.keys().collect::<Vec<_>>(), ["1"]);
    assert_eq!(
        (&rows["1"][0]["matched"], &rows["1"][0]["peak_change"]),
        (&json!("same_line"), &json!(30 * MIB))
    );
}

#[test]
fn a_summary_survives_its_way() {
    let summary = run((100, 10), (20, 30));
    let text = serde_json::to_string(&summary).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
}

#[test]
fn changes_of_sites_add_up_to_the_change_and_nothing_changes_against_itself() {
    let Some(shared) = testkit::shared("corpus/snapshots") else { return };
    let of = |stem: &str| summary(&std::fs::read(shared.join(format!("{stem}.json.gz"))).unwrap());
    let stems =
        ["synth_small_train", "synth_leak", "silmont_mem", "cs336_medium_512_inference", "magma27"];
    let all: Vec<Summary> = stems.iter().map(|stem| of(stem)).collect();
    for (before, first) in all.iter().zip(stems) {
        for (after, second) in all.iter().zip(stems) {
            let found = json_of(before, after);
            let rows = found["sites"]["0"].as_array().unwrap();
            assert_eq!(found["omitted_sites"], 0, "{first} {second}");
            for (key, total) in [("peak_change", 0), ("end_change", 3)] {
                let sum: i64 = rows.iter().map(|row| row[key].as_i64().unwrap()).sum();
                assert_eq!(
                    sum,
                    found["totals"][total]["change"].as_i64().unwrap(),
                    "{first} {second} {key}"
                );
            }
            assert_eq!(rows.is_empty(), first == second, "{first} {second}");
        }
    }
}
