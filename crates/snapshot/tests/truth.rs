//! Every figure of every snapshot of the corpus, equal to the reference program's.
//!
//! The reference (`../shared/corpus/truth/snapshot_*.truth.json`) is computed by another program in another language.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use serde_json::Value;
use snapshot::{By, Chart, Reader, Snapshot, TimelineReader, Walk, analyze, figures, state_before};

fn read(file: &[u8], size: usize) -> Snapshot {
    let mut reader = Reader::new();
    for chunk in file.chunks(size) {
        reader.push(chunk).unwrap();
    }
    reader.finish().unwrap()
}

/// Appends a line for each place where `found` is not `expected`.
fn differences(path: &str, expected: &Value, found: &Value, lines: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (key, value) in expected {
                let path = format!("{path}.{key}");
                match found.get(key) {
                    Some(other) => differences(&path, value, other, lines),
                    None => lines.push(format!("{path}: missing, expected {value}")),
                }
            }
            for (key, value) in found.iter().filter(|(key, _)| !expected.contains_key(*key)) {
                lines.push(format!("{path}.{key}: found {value}, the reference has none"));
            }
        }
        (Value::Array(expected), Value::Array(found)) => {
            if expected.len() != found.len() {
                lines.push(format!("{path}: {} items, expected {}", found.len(), expected.len()));
            }
            for (at, (expected, found)) in expected.iter().zip(found).enumerate() {
                differences(&format!("{path}[{at}]"), expected, found, lines);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let same = match (a.as_i64(), b.as_i64()) {
                (Some(a), Some(b)) => a == b,
                // A last decimal may round otherwise. (The reference has an integer 0 for a ratio without denominator.)
                _ => {
                    let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
                    (a - b).abs() <= 1e-9 * a.abs().max(1.0) + 1.001e-9
                }
            };
            if !same {
                lines.push(format!("{path}: {b}, expected {a}"));
            }
        }
        _ if expected == found => {}
        _ => lines.push(format!("{path}: {found}, expected {expected}")),
    }
}

#[test]
fn figures_equal_those_of_the_reference() {
    let Some(shared) = testkit::shared("corpus/snapshots") else { return };
    let mut lines = Vec::new();
    let mut n = 0;
    let mut paths: Vec<_> =
        std::fs::read_dir(&shared).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".json.gz") else { continue };
        let truth = shared.parent().unwrap().join(format!("truth/snapshot_{stem}.truth.json"));
        let truth: Value = serde_json::from_slice(&std::fs::read(truth).unwrap()).unwrap();
        let snapshot = read(&std::fs::read(&path).unwrap(), 1 << 16);
        let first = serde_json::to_value(figures(&snapshot)).unwrap();
        let report = analyze(&snapshot);
        assert_eq!(report.reading.damaged_elements, 0, "{name}");
        assert_eq!(report.reading.unreadable_numbers, 0, "{name}");
        let found = serde_json::to_value(report).unwrap();
        for key in ["devices", "format"] {
            assert!(first[key] == found[key], "{name}: the first answer has other {key}");
            differences(&format!("{stem}.{key}"), &truth[key], &found[key], &mut lines);
        }
        n += 1;
    }
    assert!(n >= 18, "{n} snapshots");
    assert!(
        lines.is_empty(),
        "{} differences:\n{}",
        lines.len(),
        lines[..lines.len().min(60)].join("\n")
    );
}

#[test]
fn states_equal_those_of_the_reference() {
    let Some(shared) = testkit::shared("corpus/truth/snapshot_states.truth.json") else { return };
    let truth: Value = serde_json::from_slice(&std::fs::read(&shared).unwrap()).unwrap();
    let folder = shared.parent().unwrap().parent().unwrap().join("snapshots");
    let mut n = 0;
    for (key, states) in truth["cached_state"].as_object().unwrap() {
        let (name, device) = key.split_once('/').unwrap();
        let file = std::fs::read(folder.join(format!("{name}.json.gz"))).unwrap();
        let snapshot = read(&file, 1 << 20);
        for expected in states.as_array().unwrap() {
            let index = usize::try_from(expected["index"].as_u64().unwrap()).unwrap();
            let state = state_before(&snapshot, device.parse().unwrap(), index);
            assert_eq!(state.reserved, expected["reserved"], "{key} {index}");
            assert_eq!(state.cached_free, expected["cached_free"], "{key} {index}");
            assert_eq!(state.largest_cached_free, expected["largest_cached_free"], "{key} {index}");
            let streams = serde_json::to_value(&state.cached_free_by_stream).unwrap();
            assert_eq!(streams, expected["cached_free_by_stream"], "{key} {index}");
            n += 1;
        }
    }
    assert!(n >= 12, "{n} states");
}

/// The peaks and ends are plain sums of the rows, computed by another program.
#[test]
fn memory_timelines_add_up() {
    let Some(shared) = testkit::shared("corpus/inputs/memory-timeline") else { return };
    for (name, rows, peak, end) in [
        ("conv_train.memory_timeline.json.gz", 674, 1_541_200, 96_420),
        ("conv_train.memory_timeline.raw.json.gz", 902, 1_541_200, 96_420),
        ("hta_memory_timeline.raw.json.gz", 16_845, 3_082_832_104, 332_060_904),
    ] {
        let mut reader = TimelineReader::new();
        for piece in std::fs::read(shared.join(name)).unwrap().chunks(1000) {
            reader.push(piece);
        }
        let report = reader.finish().unwrap().report();
        assert_eq!((report.rows, report.peak_bytes, report.end_bytes), (rows, peak, end), "{name}");
        let sum = |rows: &[snapshot::CategoryRow]| rows.iter().map(|row| row.bytes).sum::<i64>();
        assert_eq!(sum(&report.peak_by_category), peak, "{name}");
        assert_eq!(sum(&report.end_by_category), end, "{name}");
        assert_eq!((report.damaged_rows, report.is_cut), (0, false), "{name}");
    }
}

/// Whatever is asked in whatever order, blocks, ranges and layers of a moment add up to the levels that the replay found.
#[test]
fn blocks_ranges_and_layers_add_up_to_the_levels() {
    let Some(shared) = testkit::shared("corpus/snapshots") else { return };
    let mut compared = 0;
    for entry in std::fs::read_dir(&shared).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".json.gz") {
            continue;
        }
        let snapshot = read(&std::fs::read(&path).unwrap(), 1 << 16);
        for device in 0..snapshot.traces.len() as i64 {
            let Some(chart) = Chart::of(&snapshot, device) else { continue };
            let mut walk = Walk::new(&snapshot, device);
            let n = chart.len();
            for step in 0..40 {
                let at = (step * 7919 + 13) * n / 40 % n;
                walk.go(&snapshot, at);
                let held: i64 = walk.held().map(|held| held.requested).sum();
                let place = format!("{name}, device {device}, before event {at}");
                assert_eq!(held, chart.level(at).0, "{place}");
                assert_eq!(chart.stack(at).iter().sum::<i64>(), chart.level(at).0, "{place}");
                let state = state_before(&snapshot, device, at);
                let reserved: u64 = walk.ranges().map(|range| range.high - range.low).sum();
                assert_eq!(reserved as i64, state.reserved, "{place}");
                compared += 1;
            }
            for by in
                [By::Event, By::Time].into_iter().filter(|by| *by == By::Event || chart.has_times())
            {
                let columns = chart.columns(0.0, chart.end(by), 97, by);
                let peak = columns.iter().map(|column| chart.level(column.at).0).max();
                assert_eq!(
                    peak,
                    Some(chart.level(chart.highest(0..n)).0),
                    "{name}: a column shows the peak"
                );
            }
        }
    }
    assert!(compared > 400, "{compared} moments");
}
