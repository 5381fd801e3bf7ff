//! The tables of triage on every sample: sums, counts and what was launched before the window, equal to the
//! nanosecond to figures that know nothing of our reader.
//!
//! Two references: `../shared/corpus/truth/*.truth.json`, and a second reading of the trace here, by another JSON parser,
//! which tells what was launched before the window. The second is held to the first.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use std::collections::{BTreeMap, HashSet};

use kinetoscope::trace::Trace;
use kinetoscope::{Note, Options, Sources, TriageOptions, TriageReport, triage};
use serde_json::Value;

/// Launches and nanoseconds.
type Sum = (u64, i64);

/// A trace as the second reader sees it.
#[derive(Default)]
struct Reference {
    /// Kernels alone, by name.
    kernels: BTreeMap<String, Sum>,
    /// Every GPU slice, by name.
    all: BTreeMap<String, Sum>,
    /// Those of them that a runtime call of the file launched.
    launched: BTreeMap<String, Sum>,
    before_window: Sum,
}

/// Nanoseconds of a duration in microseconds, from its decimal digits; those below a nanosecond are cut.
fn ns(duration: &Value) -> i64 {
    let text = match duration {
        Value::String(text) => text.clone(),
        number => number.to_string(),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    whole.parse::<i64>().map_or(0, |us| us * 1000 + digits.parse::<i64>().unwrap_or(0)).max(0)
}

impl Reference {
    fn read(file: &[u8]) -> Self {
        let document: Value =
            serde_json::from_slice(&testkit::gunzip(file).unwrap()).unwrap_or(Value::Null);
        let events = document.get("traceEvents").unwrap_or(&document).as_array().unwrap();
        let slices = || {
            let slices = events.iter().filter(|event| event["ph"] == "X");
            slices.map(|event| (event, event["cat"].as_str().unwrap_or("").to_lowercase()))
        };
        let launches: HashSet<i64> = slices()
            .filter(|(_, category)| {
                ["cuda_runtime", "cuda_driver", "hip_runtime", "runtime"].contains(&&**category)
            })
            .filter_map(|(event, _)| event["args"]["correlation"].as_i64())
            .collect();
        let mut found = Self::default();
        for (event, category) in slices() {
            let kernel = category == "kernel";
            if !kernel && !["gpu_memcpy", "gpu_memset", "memcpy", "memset"].contains(&&*category) {
                continue;
            }
            let ns = ns(&event["dur"]);
            let name = event["name"].as_str().unwrap();
            let add = |sums: &mut BTreeMap<String, Sum>| {
                let sum = sums.entry(name.to_owned()).or_default();
                *sum = (sum.0 + 1, sum.1 + ns);
            };
            if kernel {
                add(&mut found.kernels);
            }
            add(&mut found.all);
            // Where no call was recorded, nothing can be said of when a kernel was launched.
            let correlation = event["args"]["correlation"].as_i64();
            match correlation {
                Some(id) if !launches.is_empty() && !launches.contains(&id) => {
                    found.before_window = (found.before_window.0 + 1, found.before_window.1 + ns);
                }
                _ => add(&mut found.launched),
            }
        }
        found
    }
}

/// Every sample: name, trace, second reading, truth.
fn each(mut check: impl FnMut(&str, &Trace, &Reference, &Value)) {
    for sample in testkit::trace_samples() {
        let file = sample.bytes();
        check(
            sample.stem(),
            &common::decode(&file).trace,
            &Reference::read(&file),
            &sample.truth(),
        );
    }
}

/// The kernel table without its stages and shares.
fn by_name(report: &TriageReport) -> BTreeMap<String, Sum> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for row in &report.kernels {
        let sum = sums.entry(row.kernel_name.clone()).or_default();
        *sum = (sum.0 + row.launches, sum.1 + row.total_ns);
    }
    sums
}

fn total(sums: &BTreeMap<String, Sum>) -> Sum {
    sums.values().fold((0, 0), |all, sum| (all.0 + sum.0, all.1 + sum.1))
}

/// Launches and nanoseconds, for all the tables of one report.
fn assert_tables_add_up(name: &str, report: &TriageReport, expected: Sum) {
    let stages = report.stages.iter().map(|row| (row.n_slices, row.total_ns));
    let stages = stages.fold((0, 0), |all, sum| (all.0 + sum.0, all.1 + sum.1));
    assert_eq!(stages, expected, "{name}: stages");
    assert_eq!(report.coverage.total_ns, expected.1, "{name}: coverage");
    assert_wall_adds_up(name, report);
    for stage in &report.stages {
        let rows = report
            .kernels
            .iter()
            .filter(|row| row.stage == Some(stage.stage) && row.device == stage.device);
        let rows = rows.fold((0, 0, 0.0), |sum, row| {
            (sum.0 + row.launches, sum.1 + row.total_ns, sum.2 + row.share_pct)
        });
        assert_eq!((rows.0, rows.1), (stage.n_slices, stage.total_ns), "{name}: {:?}", stage.stage);
        assert!(stage.total_ns == 0 || (rows.2 - 100.0).abs() < 1e-6, "{name}: {}", rows.2);
        // Time is exposed or hidden, never both, and never more than there is.
        let exposed = report.kernels.iter().filter(|row| row.exposed_ns > row.total_ns);
        assert_eq!(exposed.count(), 0, "{name}");
    }
}

/// The wall time of the stages of a device is that of its bar, part by part.
fn assert_wall_adds_up(name: &str, report: &TriageReport) {
    type Parts<'a> = BTreeMap<(&'a str, &'a str), i64>;
    let mut bars: Parts<'_> = BTreeMap::new();
    for row in &report.wall {
        *bars.entry((&row.device, row.part.id())).or_default() += row.total_ns;
    }
    let mut stages: Parts<'_> = BTreeMap::new();
    for wall in &report.wall_stages {
        assert_eq!(wall.parts.values().sum::<i64>(), wall.total_ns, "{name}: {:?}", wall.stage);
        for (part, ns) in &wall.parts {
            *stages.entry((&wall.device, part)).or_default() += ns;
        }
    }
    let has_stages = |device: &str| report.wall_stages.iter().any(|wall| wall.device == device);
    bars.retain(|(device, _), _| has_stages(device));
    assert_eq!(stages, bars, "{name}: wall time by stage");
}

#[test]
fn the_second_reading_is_that_of_the_reference() {
    each(|name, _, read, truth| {
        let gpu = &truth["gpu"];
        let (n, ns) = total(&read.kernels);
        assert_eq!(
            (n, ns),
            (gpu["n_kernels"].as_u64().unwrap(), gpu["sum_kernel_ns"].as_i64().unwrap())
        );
        for row in gpu["kernels_all"].as_array().into_iter().flatten() {
            let expected = (row[1].as_u64().unwrap(), row[2].as_i64().unwrap());
            assert_eq!(read.kernels[row[0].as_str().unwrap()], expected, "{name}: {}", row[0]);
        }
        let all: i64 = ["sum_kernel_ns", "sum_memcpy_ns", "sum_memset_ns"]
            .map(|key| gpu[key].as_i64().unwrap())
            .iter()
            .sum();
        assert_eq!(total(&read.all), (gpu["n_gpu_events"].as_u64().unwrap(), all), "{name}");
    });
}

#[test]
fn every_row_of_triage_equals_the_reference() {
    each(|name, trace, read, _| {
        let report = triage(trace, &TriageOptions::default(), &Sources::default());
        assert!(by_name(&report) == read.launched, "{name}: kernels by name");
        assert_tables_add_up(name, &report, total(&read.launched));

        // What was launched before the window, and only that, comes back on request.
        let everything = TriageOptions { slices: Options::default(), ..TriageOptions::default() };
        let report = triage(trace, &everything, &Sources::default());
        assert!(by_name(&report) == read.all, "{name}: with what came before the window");
        assert_tables_add_up(name, &report, total(&read.all));
        let (all, launched) = (total(&read.all), total(&read.launched));
        let before = (all.0 - launched.0, all.1 - launched.1);
        assert_eq!(before, read.before_window, "{name}");
        let marked: u64 = report
            .kernels
            .iter()
            .flat_map(|row| &row.notes)
            .map(|note| match note {
                Note::LaunchedBeforeWindow(n) => *n,
                _ => 0,
            })
            .sum();
        assert_eq!(marked, before.0, "{name}: marked in the notes");
    });
}

/// Captures and mappings tell where kernels come from; they change no time and no count.
#[test]
fn other_traces_change_no_figure() {
    let mut pairs = vec![(testkit::scene_gz("graph_replay"), testkit::scene_gz("graph_capture"))];
    for kind in ["vllm", "sglang"] {
        let read = |role: &str| {
            let path = testkit::real_trace(&format!("mi300_{kind}_decode_{role}"))?;
            Some(std::fs::read(path).unwrap())
        };
        pairs.extend(read("formal").zip(read("capture")));
    }
    for (at, (formal, capture)) in pairs.iter().enumerate() {
        let reference = Reference::read(formal);
        let (formal, capture) = (common::decode(formal), common::decode(capture));
        let captures = [&capture.trace];
        for sources in [
            Sources { captures: &captures, ..Sources::default() },
            Sources { mapping: Some(&capture.trace), ..Sources::default() },
            Sources { captures: &captures, mapping: Some(&formal.trace), ..Sources::default() },
        ] {
            let report = triage(&formal.trace, &TriageOptions::default(), &sources);
            let name = format!("pair {at}");
            assert!(by_name(&report) == reference.launched, "{name}");
            assert_tables_add_up(&name, &report, total(&reference.launched));
        }
    }
}
