//! Every simulated, recorded and real trace gives the independent reference figures.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;

use serde_json::Value;
use trace::{Flags, Phase, Trace};

fn letter(phase: Phase) -> &'static str {
    match phase {
        Phase::Complete => "X",
        Phase::Begin => "B",
        Phase::End => "E",
        Phase::Instant => "i",
        Phase::FlowStart => "s",
        Phase::FlowStep => "t",
        Phase::FlowEnd => "f",
        Phase::Counter => "C",
        Phase::Metadata => "M",
        Phase::AsyncBegin => "b",
        Phase::AsyncInstant => "n",
        Phase::AsyncEnd => "e",
        Phase::Other => "?",
    }
}

/// The reference's figures, computed from our columns.
fn figures(trace: &Trace) -> BTreeMap<String, i64> {
    let mut figures = BTreeMap::new();
    let mut add = |key: String, n: i64| *figures.entry(key).or_default() += n;
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    for row in trace.rows() {
        add("n_events".to_owned(), 1);
        let phase = trace.phase(row);
        add(format!("ph {}", letter(phase)), 1);
        let category = trace.raw_category_text(row);
        if !category.is_empty() {
            add(format!("cat {category}"), 1);
        }
        let flags = trace.flags(row);
        if phase != Phase::Complete || !flags.has(Flags::HAS_TS) {
            continue;
        }
        add("sub ns".to_owned(), i64::from(flags.has(Flags::SUB_NS)));
        add("without dur".to_owned(), i64::from(!flags.has(Flags::HAS_DUR)));
        let dur = trace.dur_ns(row).max(0);
        first = first.min(trace.ts_ns(row));
        last = last.max(trace.ts_ns(row) + dur);
        if trace.name_text(row).starts_with("ProfilerStep") {
            add("steps".to_owned(), 1);
            add("steps ns".to_owned(), dur);
        }
        let lower = category.to_lowercase();
        let kind = ["kernel", "memcpy", "memset"].into_iter().find(|kind| lower.contains(kind));
        let on_gpu = flags.has(Flags::KERNEL) || flags.has(Flags::GPU_MEMORY);
        assert_eq!(on_gpu, trace.stream(row).is_some());
        if let (true, Some(kind)) = (on_gpu, kind) {
            assert_eq!(flags.has(Flags::KERNEL), kind == "kernel");
            add(format!("{kind} n"), 1);
            add(format!("{kind} ns"), dur);
            let stream = trace.streams[usize::from(trace.stream(row).unwrap().0)];
            let stream = format!(
                "stream {} {}",
                stream.device.display(&trace.strings),
                stream.stream.display(&trace.strings)
            );
            add(format!("{stream} n"), 1);
            add(format!("{stream} ns"), dur);
        }
    }
    figures.insert("first".to_owned(), first);
    figures.insert("last".to_owned(), last);
    figures.retain(|key, n| *n != 0 || key.starts_with("first"));
    figures
}

fn expected(truth: &Value) -> BTreeMap<String, i64> {
    let mut figures = BTreeMap::new();
    let mut set = |key: String, value: &Value| {
        figures.insert(key, value.as_i64().unwrap());
    };
    for (key, field) in [
        ("n_events", "n_events"),
        ("sub ns", "events_with_sub_ns_digits"),
        ("without dur", "x_without_dur"),
        ("first", "x_first_ts_ns"),
        ("last", "x_last_end_ns"),
    ] {
        set(key.to_owned(), &truth[field]);
    }
    for (name, field) in [("ph", "by_ph"), ("cat", "by_cat")] {
        for (key, n) in truth[field].as_object().unwrap().iter().filter(|(key, _)| !key.is_empty())
        {
            set(format!("{name} {key}"), n);
        }
    }
    let gpu = &truth["gpu"];
    for kind in ["kernel", "memcpy", "memset"] {
        let plural = if kind == "kernel" { "n_kernels".to_owned() } else { format!("n_{kind}") };
        set(format!("{kind} n"), &gpu[plural]);
        set(format!("{kind} ns"), &gpu[format!("sum_{kind}_ns")]);
    }
    for (device, facts) in gpu["devices"].as_object().into_iter().flatten() {
        for (stream, facts) in facts["streams"].as_object().unwrap() {
            set(format!("stream {device} {stream} n"), &facts["n"]);
            set(format!("stream {device} {stream} ns"), &facts["sum_ns"]);
        }
    }
    let steps = truth["profiler_steps"].as_array().unwrap();
    figures.insert("steps".to_owned(), steps.len() as i64);
    figures.insert(
        "steps ns".to_owned(),
        steps.iter().map(|step| step["dur_ns"].as_i64().unwrap()).sum(),
    );
    figures.retain(|key, n| *n != 0 || key.starts_with("first"));
    figures
}

#[test]
fn every_trace_gives_the_reference_figures() {
    for sample in testkit::trace_samples() {
        let (name, truth) = (&sample.name, sample.truth());
        let decoded = common::decode(sample.bytes()).unwrap();
        let trace = &decoded.trace;
        assert_eq!(figures(trace), expected(&truth), "{name}");
        assert_eq!(decoded.source.json_bytes, truth["raw_bytes"].as_u64().unwrap(), "{name}");
        assert!(decoded.source.gzip);
        assert_eq!(trace.layout.file_len, decoded.source.json_bytes, "{name}");
        assert!(trace.layout.end.is_some() && trace.layout.documents == 1, "{name}");
        assert!(!trace.layout.gaps_need_rewrite, "{name}");
        assert!(trace.metadata.get("schemaVersion").is_some(), "{name}");
        assert_eq!(common::ids(&decoded.problems), Vec::<&str>::new(), "{name}");
    }
}
