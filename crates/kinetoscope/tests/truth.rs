//! Every figure of every sample, equal to the reference to the nanosecond.
//!
//! The reference of a real trace (`../shared/corpus/truth/*.truth.json`), and of a recording, is computed by another program
//! in another language. That of a simulated trace follows from what its events were made of. Neither knows our scanner or
//! our sweeps.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use analysis::{TraceReport, analyze};
use serde_json::{Value, json};
use timeline::Options;

/// Traces with their reference, by name: our own always, and the real ones where the corpus is there.
fn corpus() -> impl Iterator<Item = (String, trace::Trace, Value)> {
    testkit::trace_samples()
        .into_iter()
        .map(|sample| (sample.stem().to_owned(), decode(&sample.bytes()), sample.truth()))
}

fn decode(file: &[u8]) -> trace::Trace {
    let mut decoder = decode::Decoder::new();
    for chunk in file.chunks(1 << 16) {
        decoder.push(chunk).unwrap();
    }
    decoder.finish().unwrap().trace
}

/// The report in the reference's words.
fn gpu(report: &TraceReport) -> Value {
    let gpu = &report.overview.gpu;
    let mut found = json!({
        "n_gpu_events": gpu.n_gpu_events,
        "n_kernels": gpu.n_kernels,
        "n_memcpy": gpu.n_memcpy,
        "n_memset": gpu.n_memset,
        "n_kernel_names": gpu.n_kernel_names,
        "sum_kernel_ns": gpu.kernel_sum_ns,
        "sum_memcpy_ns": gpu.memcpy_sum_ns,
        "sum_memset_ns": gpu.memset_sum_ns,
        "zero_dur_gpu_events": gpu.n_zero_dur,
    });
    if gpu.n_gpu_events == 0 {
        return found;
    }
    let devices: serde_json::Map<String, Value> = report
        .devices
        .iter()
        .map(|device| {
            let streams: serde_json::Map<String, Value> = report
                .streams
                .iter()
                .filter(|stream| stream.device == device.device)
                .map(|stream| {
                    let figures = json!({
                        "n": stream.n_slices,
                        "sum_ns": stream.total_ns,
                        "busy_ns": stream.busy_ns,
                    });
                    (stream.stream.clone(), figures)
                })
                .collect();
            let figures = json!({
                "n": device.n_slices,
                "span_ns": device.span_ns,
                "busy_ns": device.busy_ns,
                "idle_ns": device.idle_ns,
                "streams": streams,
            });
            (device.device.clone(), figures)
        })
        .collect();
    let kernels = &report.kernels;
    let more = json!({
        "first_ns": gpu.first_ns,
        "last_ns": gpu.last_ns,
        "span_ns": gpu.span_ns,
        "busy_ns": gpu.busy_ns,
        "idle_ns": gpu.idle_ns,
        "kernel_busy_ns": gpu.kernel_busy_ns,
        "devices": devices,
        "kernels_top20": kernels.iter().take(20).map(|kernel| json!({
            "name": kernel.kernel_name,
            "count": kernel.launches,
            "sum_ns": kernel.total_ns,
            "min_ns": kernel.min_ns,
            "max_ns": kernel.max_ns,
        })).collect::<Vec<_>>(),
        "kernels_all": kernels.iter().map(|kernel| {
            json!([kernel.kernel_name, kernel.launches, kernel.total_ns])
        }).collect::<Vec<_>>(),
    });
    if let (Some(found), Value::Object(more)) = (found.as_object_mut(), more) {
        found.extend(more);
    }
    found
}

/// Ids are compared as the reference prints them: a number in its file may be text in ours.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn every_gpu_figure_equals_the_reference() {
    for (name, trace, truth) in corpus() {
        let report = analyze(&trace, &Options::default());
        let (found, expected) = (gpu(&report), &truth["gpu"]);
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&found[key], value, "{name}: gpu.{key}");
        }
        assert_eq!(found.as_object().unwrap().len(), expected.as_object().unwrap().len(), "{name}");
    }
}

#[test]
fn every_step_equals_the_reference() {
    for (name, trace, truth) in corpus() {
        let report = analyze(&trace, &Options::default());
        let expected = truth["profiler_steps"].as_array().unwrap();
        assert_eq!(report.steps.len(), expected.len(), "{name}");
        for (step, expected) in report.steps.iter().zip(expected) {
            assert_eq!(json!(step.name), expected["name"], "{name}");
            assert_eq!(json!(step.raw_category), expected["cat"], "{name}");
            assert_eq!(step.pid, text(&expected["pid"]), "{name}");
            assert_eq!(step.tid, text(&expected["tid"]), "{name}");
            assert_eq!(json!(step.ts_ns), expected["ts_ns"], "{name}");
            assert_eq!(json!(step.dur_ns), expected["dur_ns"], "{name}");
        }
    }
}

#[test]
fn shares_add_up_and_categories_cover_everything() {
    for (name, trace, _) in corpus() {
        let report = analyze(&trace, &Options::default());
        let gpu = &report.overview.gpu;
        let sum = gpu.kernel_sum_ns + gpu.memcpy_sum_ns + gpu.memset_sum_ns;
        let total = |rows: &mut dyn Iterator<Item = i64>| rows.sum::<i64>();
        assert_eq!(total(&mut report.categories.iter().map(|row| row.total_ns)), sum, "{name}");
        assert_eq!(total(&mut report.families.iter().map(|row| row.total_ns)), sum, "{name}");
        assert_eq!(total(&mut report.matrix.iter().map(|row| row.total_ns)), sum, "{name}");
        assert!(report.categories.iter().all(|row| row.busy_ns <= gpu.busy_ns), "{name}");
        if sum > 0 {
            let share: f64 = report.categories.iter().map(|row| row.share_pct).sum();
            assert!((share - 100.0).abs() < 1e-6, "{name}: {share}");
            let other = report.categories.iter().find(|row| row.category == "other").unwrap();
            assert!(other.share_pct < 2.0, "{name}: {}% is not named", other.share_pct);
        }
    }
}

/// Kernels without a launch in the file, counted once by an independent script over the same files.
#[test]
fn kernels_launched_before_the_window_are_counted_apart() {
    let expected = [
        ("attention_naive", 51, 1_469_211, 12, 23_103),
        ("branches_graph", 207, 1_214_876, 0, 0),
        ("conv_nchw", 479, 26_380_989, 35, 105_406),
        ("streams", 21, 3_125_766, 0, 0),
        ("dlrm_w3", 64, 176_000, 0, 0),
        ("h100_qwen15_0.5b", 436, 13_672_640, 73, 69_187),
        ("mi300_qwen15_0.5b", 463, 13_318_864, 0, 0),
        ("mi300_resnet_training", 757, 30_821_422, 211, 1_012_983),
    ];
    for (name, trace, _) in corpus() {
        let report = analyze(&trace, &Options::default());
        let before = &report.overview.before_window;
        let (_, n_kernels, kernel_ns, n_memory_ops, memory_ns) =
            *expected.iter().find(|row| row.0 == name).unwrap_or(&("", 0, 0, 0, 0));
        assert_eq!(
            (before.n_kernels, before.kernel_ns, before.n_memory_ops, before.memory_ns),
            (n_kernels, kernel_ns, n_memory_ops, memory_ns),
            "{name}"
        );
        let marked: u64 = report.kernels.iter().map(|row| row.before_window_launches).sum();
        assert_eq!(marked, n_kernels, "{name}: the kernel table marks them");
        // A trace with kernels but no launches would have a reason instead; the corpus has none.
        assert_eq!(before.unknown.is_some(), before.n_launches == 0, "{name}");
    }
}

/// The page's example needs no corpus: it shows something in every view.
#[test]
fn the_example_fills_every_view() {
    let mut decoder = decode::Decoder::new();
    decoder.push(&testkit::example::json_gz()).unwrap();
    let trace = decoder.finish().unwrap().trace;
    let report = analyze(&trace, &Options::default());
    assert_eq!(report.overview.platform, "cuda");
    assert_eq!(report.overview.rank, Some(0));
    assert_eq!(report.streams.len(), 3);
    assert_eq!(report.steps.len(), 13);
    assert_eq!(report.kernels.len(), 24);
    assert!(report.categories.len() >= 12, "{}", report.categories.len());
    assert!(report.families.len() >= 7, "{}", report.families.len());
    let other = report.categories.iter().find(|row| row.category == "other").unwrap();
    assert_eq!(other.total_ns, 0, "every kernel of the example has a category");
    // Ten layers of an earlier decode, enough to be worth a finding.
    assert!(report.overview.before_window.n_kernels > 100);
    assert_eq!(report.sections()[0].findings.len(), 1);
    assert!(report.overview.gpu.busy_ns < report.overview.gpu.span_ns);
}

/// Whatever a file holds, an analysis gives figures that fit together, and a report that can be printed.
#[test]
fn nasty_traces_are_analysed_too() {
    let mut n = 0;
    for sample in testkit::nasty_samples() {
        let mut decoder = decode::Decoder::new();
        if decoder.push(&sample.bytes()).is_err() {
            continue;
        }
        let Ok(decoded) = decoder.finish() else { continue };
        let report = analyze(&decoded.trace, &Options::default());
        let gpu = &report.overview.gpu;
        let name = &sample.name;
        assert_eq!(gpu.busy_ns + gpu.idle_ns, gpu.span_ns, "{name}");
        assert!(gpu.kernel_busy_ns <= gpu.busy_ns, "{name}");
        assert_eq!(gpu.n_gpu_events, gpu.n_kernels + gpu.n_memcpy + gpu.n_memset, "{name}");
        let launches: u64 = report.kernels.iter().map(|row| row.launches).sum();
        assert_eq!(gpu.n_kernels, launches, "{name}");
        let document = report::document("Report", &report.sections());
        assert_eq!(document.contains("## Kernels"), launches > 0, "{name}");
        n += 1;
    }
    assert!(n >= 30, "{n} nasty traces decode");
}
