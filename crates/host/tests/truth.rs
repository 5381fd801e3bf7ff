//! Every figure of the host on every real trace, equal to the reference to the nanosecond.
//!
//! The reference (`../shared/corpus/truth/*.cpu.truth.json`) is computed by another program in another language, which knows
//! nothing of our scanner, nesting or sweeps.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use serde_json::Value;

fn read(file: &[u8]) -> Value {
    figures(file, true)
}

/// `adds_up`: whether the totals of its memory are those of the events.
fn figures(file: &[u8], adds_up: bool) -> Value {
    let mut decoder = decode::Decoder::new();
    for chunk in file.chunks(1 << 16) {
        decoder.push(chunk).unwrap();
    }
    let decoded = decoder.finish().unwrap();
    let mut reader = decode::DetailsReader::with_host(&decoded, host::wants_inputs);
    for chunk in file.chunks(1 << 16) {
        reader.push(chunk);
    }
    let (index, details) = (host::HostIndex::of(&decoded.trace), reader.finish());
    let found = host::host(&index, &details);
    if adds_up {
        memory_adds_up(
            &found.memory,
            &host::memory_over_time::memory_over_time(&index.slices, &details),
        );
    }
    serde_json::to_value(found).unwrap()
}

/// Memory over time by what allocated it has the peak and the end that the events tell, and the reference with them.
fn memory_adds_up(
    rows: &[host::memory::MemoryRow],
    over_time: &[host::memory_over_time::MemoryOverTime],
) {
    assert_eq!(rows.len(), over_time.len());
    for row in rows {
        let is_own = |of: &&host::memory_over_time::MemoryOverTime| {
            (of.device_type, of.device_id) == (row.device_type, row.device_id)
        };
        let of = over_time.iter().find(is_own).unwrap();
        let levels = of.changes.iter().scan(0_i64, |level, change| {
            *level += change.bytes;
            change.at_ns.map(|_| *level).or(Some(i64::MIN))
        });
        let levels: Vec<i64> = levels.filter(|level| *level != i64::MIN).collect();
        // Without totals the level counts from the first event on.
        let has_totals = row.peak_total_allocated.is_some();
        assert_eq!(of.changes.first().is_some_and(|change| change.at_ns.is_none()), has_totals);
        if has_totals {
            assert_eq!(levels.iter().max().copied(), row.peak_total_allocated);
            assert_eq!(levels.last().copied(), row.last.total_allocated);
        } else {
            assert_eq!(levels.last().copied(), Some(row.sum_alloc - row.sum_free));
        }
        let reserved = of.changes.iter().map(|change| change.reserved).max();
        assert_eq!(reserved, row.peak_total_reserved.or(Some(0)));
        assert!(of.changes.iter().all(|change| (change.label as usize) < of.labels.len()));
        assert_eq!(levels.len(), row.n, "every change is recorded by an event");
    }
}

/// Appends a line for each place where `found` is not `expected`. The reference cuts long lists; what it has comes first.
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
            // (The reference has no 95th percentile; that of a recording of 120 steps is compared below.)
            let is_more = |key: &str| !expected.contains_key(key) && !key.starts_with("p95_");
            for (key, value) in found.iter().filter(|(key, _)| is_more(key)) {
                lines.push(format!("{path}.{key}: found {value}, the reference has none"));
            }
        }
        (Value::Array(expected), Value::Array(found)) => {
            let cut = [100, 200].contains(&expected.len());
            if expected.len() > found.len() || expected.len() < found.len() && !cut {
                lines.push(format!("{path}: {} items, expected {}", found.len(), expected.len()));
            }
            for (at, (expected, found)) in expected.iter().zip(found).enumerate() {
                differences(&format!("{path}[{at}]"), expected, found, lines);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let same = match (a.as_i64(), b.as_i64()) {
                (Some(a), Some(b)) => a == b,
                // A last decimal may round otherwise; whole numbers never come here.
                _ => {
                    let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
                    (a - b).abs() <= 1.001e-3_f64.min(1e-9 * a.abs().max(1.0) + 1.001e-6)
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

/// Without the name of the file and the unit.
fn without_labels(mut truth: Value) -> Value {
    let object = truth.as_object_mut().unwrap();
    object.remove("file");
    object.remove("unit");
    truth
}

fn sum(rows: &Value, key: &str) -> i64 {
    rows.as_array().unwrap().iter().map(|row| row[key].as_i64().unwrap()).sum()
}

/// What the launching threads did adds up to the time in which the device waited for them: that of the gaps, and the edges of
/// the steps.
fn places_add_up(stem: &str, idle: &Value, gaps: &Value) {
    for (device, places) in idle.as_object().unwrap() {
        let ns = |key: &str| places[key].as_i64().unwrap();
        let lines = sum(&places["lines"], "total_ns") + ns("outside_lines_ns");
        let ops = sum(&places["ops"], "total_ns") + ns("outside_ops_ns");
        assert_eq!((lines, ops), (ns("host_ns"), ns("host_ns")), "{stem}, device {device}");
        assert!(ns("host_ns") >= gaps[device]["all"]["host_ns"].as_i64().unwrap(), "{stem}");
    }
}

/// The places of each purpose add up to its GPU time.
fn copies_add_up(stem: &str, places: &Value, by_purpose: &Value) {
    // (The reference counts a copy inside a copy twice: no more than twice, and not nothing.)
    for (purpose, of) in by_purpose.as_object().unwrap() {
        let ns = places.get(purpose).map_or(0, |places| sum(places, "device_ns"));
        let reference = of["device_ns"].as_i64().unwrap();
        let least = if purpose == "no_gpu" { 0 } else { reference / 2 };
        assert!((least..=reference).contains(&ns), "{stem}, {purpose}: {ns} of {reference}");
    }
}

#[test]
fn every_figure_is_that_of_the_reference() {
    let Some(folder) = testkit::shared("corpus/truth") else { return };
    let mut wrong = Vec::new();
    let mut n = 0;
    for path in testkit::real_traces() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let stem = name.trim_end_matches(".gz").trim_end_matches(".json");
        let Ok(text) = std::fs::read(folder.join(format!("{stem}.cpu.truth.json"))) else {
            continue;
        };
        let truth: Value = serde_json::from_slice(&text).unwrap();
        if truth.get("not_a_trace").is_some() {
            continue;
        }
        n += 1;
        let mut found = read(&std::fs::read(&path).unwrap());
        // (The reference has none of these. The rates are of the operations that it counts.)
        found.as_object_mut().unwrap().remove("key_averages");
        found.as_object_mut().unwrap().remove("traffic");
        found.as_object_mut().unwrap().remove("misaligned");
        let idle = found.as_object_mut().unwrap().remove("idle_places").unwrap();
        places_add_up(stem, &idle, &found["gaps"]);
        let places = found.as_object_mut().unwrap().remove("copy_places").unwrap();
        copies_add_up(stem, &places, &found["copies"]["copy__diag"]);
        found.as_object_mut().unwrap().remove("custom_ops");
        let rates = found.as_object_mut().unwrap().remove("rates").unwrap();
        let rows = rates["rows"].as_array().unwrap().iter();
        let sums = rows.fold((0, 0), |(flops, ns), row| {
            (flops + row["flops"].as_i64().unwrap(), ns + row["device_ns"].as_i64().unwrap())
        });
        let counted = &found["flops"];
        let counted = (counted["flops_with_device"].as_i64(), counted["device_ns"].as_i64());
        assert_eq!((Some(sums.0), Some(sums.1)), counted, "{stem}");
        let mut lines = Vec::new();
        differences("", &without_labels(truth), &found, &mut lines);
        if !lines.is_empty() {
            wrong.push(format!("{stem}: {} differences\n  {}", lines.len(), {
                lines.truncate(12);
                lines.join("\n  ")
            }));
        }
    }
    assert!(wrong.is_empty(), "{} of {n} traces\n{}", wrong.len(), wrong.join("\n"));
    assert!(n >= 20, "only {n} traces have a reference");
}

/// PyTorch's own table, which a recording's process printed, and what it counts that the file does not tell.
#[test]
fn key_averages_are_those_of_pytorch() {
    let Some(folder) = testkit::shared("corpus/inputs/kineto-cpu") else { return };
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut wrong = Vec::new();
    let (mut n_files, mut n_rows, mut n_products) = (0, 0, 0);
    for path in files {
        let name = path.to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".json.gz") else { continue };
        let truth: Value =
            serde_json::from_slice(&std::fs::read(format!("{stem}.truth.json")).unwrap()).unwrap();
        let found = read(&std::fs::read(&path).unwrap());
        n_files += 1;
        n_products += flops_are_those_of_pytorch(stem, &truth["key_averages"], &found["flops"]);
        if let Some(percentiles) = truth["step_percentiles_ns_nearest_rank"].as_object() {
            for (name, expected) in percentiles {
                let ours = &found["steps"]["cpu_dur"][format!("{name}_ns")];
                assert_eq!(ours, expected, "{stem} {name}");
            }
        }
        let mut of_name: std::collections::BTreeMap<&str, [i64; 3]> = Default::default();
        for row in truth["key_averages"].as_array().unwrap() {
            let keys = ["count", "self_cpu_ns", "cpu_total_ns"];
            let sum = of_name.entry(row["name"].as_str().unwrap()).or_default();
            for (sum, key) in sum.iter_mut().zip(keys) {
                *sum += row[key].as_i64().unwrap();
            }
        }
        for (name, [count, own, total]) in of_name {
            n_rows += 1;
            let row = &found["key_averages"][name];
            let expected = [count, own, total];
            if !name.is_ascii() {
                // PyTorch 2.6 writes the quotes in this name as they are: the event is no JSON, and the decoder counts it.
                if stem.ends_with("torch26_threads_no_schedule") {
                    continue;
                }
                // PyTorch 2.15 writes "unknown": only the figures can be found.
                let rows = found["key_averages"].as_object().unwrap().values();
                let same = rows.filter(|row| row["cpu_total_ns"] == total && row["count"] == count);
                assert!(same.clone().any(|row| row["self_cpu_ns"] == own), "{stem} {name}");
                continue;
            }
            let same =
                ["count", "self_cpu_ns", "cpu_total_ns"].map(|key| row[key].as_i64().unwrap_or(-1));
            if same != expected {
                wrong.push(format!("{stem} {name}: {same:?}, expected {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {n_rows}\n{}", wrong.len(), wrong.join("\n"));
    assert!(n_files >= 19, "only {n_files} recordings");
    assert!(n_products >= 19, "only {n_products} operations with FLOPs");
}

/// The same of recordings in this repository.
#[test]
fn key_averages_and_flops_of_our_recordings_are_those_of_pytorch() {
    let mut n = 0;
    for sample in testkit::own_trace_samples() {
        let (stem, truth) = (sample.stem(), sample.truth());
        let Some(rows) = truth["key_averages"].as_array() else { continue };
        n += 1;
        // (PyTorch's totals leave out tensors that came from a worker: memory_totals.rs.)
        let found = figures(&sample.bytes(), stem != "cpu_loader_workers");
        assert_eq!(found["key_averages"].as_object().unwrap().len(), rows.len(), "{stem}");
        for row in rows {
            let name = row["name"].as_str().unwrap();
            for key in ["count", "self_cpu_ns", "cpu_total_ns"] {
                assert_eq!(found["key_averages"][name][key], row[key], "{stem} {name} {key}");
            }
        }
        assert!(flops_are_those_of_pytorch(stem, &truth["key_averages"], &found["flops"]) > 0);
        let counter = truth["flop_counter"].as_object().unwrap().values();
        let counted: i64 = counter.map(|flops| flops.as_i64().unwrap()).sum();
        assert_eq!(found["flops"]["total"].as_i64(), Some(counted), "{stem}");
    }
    assert_eq!(n, 2);
}

/// The operations that PyTorch counts as we do. It counts them where `with_flops=True`; returns how many it did.
fn flops_are_those_of_pytorch(stem: &str, theirs: &Value, ours: &Value) -> usize {
    // It counts an element's sum and product, too; no product of matrices.
    const ELEMENTWISE: [&str; 2] = ["aten::add", "aten::mul"];
    // It has no formula for these.
    const MORE: [&str; 3] = [
        "aten::convolution_backward",
        "aten::scaled_dot_product_attention",
        "aten::_addmm_activation",
    ];
    // It counts a convolution where it is asked for, we where it is computed.
    let is_convolution = |name: &str| matches!(name, "aten::conv2d") || name.contains("_conv");
    let by_name = |rows: &Value, left_out: &[&str]| {
        let mut found: std::collections::BTreeMap<String, i64> = Default::default();
        for row in rows.as_array().unwrap() {
            let (name, flops) = (row["name"].as_str().unwrap(), row["flops"].as_i64().unwrap());
            if flops > 0 && !left_out.contains(&name) {
                let name = if is_convolution(name) { "aten::conv2d" } else { name };
                *found.entry(name.to_owned()).or_default() += flops;
            }
        }
        found
    };
    let expected = by_name(theirs, &ELEMENTWISE);
    if !expected.is_empty() {
        assert_eq!(by_name(&ours["ops"], &MORE), expected, "{stem}");
    }
    expected.len()
}
