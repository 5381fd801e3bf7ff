//! The laws of repair, on random traces that are wrong in many ways at once, and on every sample.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{decode, plan, repair, repair_in};
use kinetoscope::trace::{Flags, Trace};
use kinetoscope::{Output, PlanOptions, Repairer, plan_repair};
use proptest::prelude::*;
use repair::perfetto::predict_after;

/// One event, perhaps a strange one, as JSON text.
fn event() -> impl Strategy<Value = String> {
    let ph =
        prop::sample::select(vec!["X", "X", "X", "X", "B", "E", "i", "s", "t", "f", "C", "M", "b"]);
    let tid = prop::sample::select(vec!["7", "7", "7", "8", "0", "-1", "5", "\"t\"", "4294967299"]);
    let category =
        prop::sample::select(vec!["kernel", "cpu_op", "user_annotation", "python_function"]);
    let time = (0_i64..60, 0_i64..1000, any::<bool>());
    let extra = prop::sample::select(vec![
        "",
        "",
        "",
        ",\"bp\":\"e\"",
        ",\"args\":{\"correlation\":3,\"x\":[1,{\"y\":\"}\"}]}",
        ",\"args\":{\"v\":NaN}",
        ",\"args\":{\"v\":\"\\ud83d\\ude00\"}",
        ",\"dur\":null",
        ",\"dur\":-1",
        ",\"tts\":\"zz\"",
        ",\"s\":\"q\"",
    ]);
    (ph, tid, category, time, 0_i64..40, 0_i64..6, extra).prop_map(
        |(ph, tid, category, (us, ns, fine), dur, id, extra)| {
            let ts = if fine { format!("{us}.{ns:03}") } else { us.to_string() };
            format!(
                "{{\"ph\":\"{ph}\",\"name\":\"n{id}\",\"cat\":\"{category}\",\"pid\":5,\
                 \"tid\":{tid},\"ts\":{ts},\"dur\":{dur},\"id\":{id}{extra}}}"
            )
        },
    )
}

/// Whether the times lie close enough together for the importer's doubles: no base makes a file exact whose first and
/// last nanosecond are further apart than 2^53.
fn fits_doubles(trace: &Trace) -> bool {
    let timed = || trace.rows().filter(|row| trace.flags(*row).has(Flags::HAS_TS));
    let first = timed().map(|row| i128::from(trace.ts_ns(row))).min();
    let last =
        timed().map(|row| i128::from(trace.ts_ns(row)) + i128::from(trace.dur_ns(row).max(0)));
    first.zip(last.max()).is_none_or(|(first, last)| last - first < 1 << 53)
}

fn file() -> impl Strategy<Value = String> {
    let base = prop::sample::select(vec!["", "1712195495406"]);
    let frame = prop::sample::select(vec![
        ("{\"traceEvents\":[", "]}"),
        ("{\"baseTimeNanoseconds\":5,\"traceEvents\":[", "],\"z\":{}}"),
        ("[", "]"),
        ("\u{feff}{\"traceEvents\":[", ",],}"),
        ("{\"traceEvents\":[", ",{\"ph\":\"X\",\"ts"),
    ]);
    (prop::collection::vec(event(), 0..40), frame, base).prop_map(
        |(events, (open, close), base)| {
            let events = events.join(",").replace("\"ts\":", &format!("\"ts\":{base}"));
            format!("{open}{events}{close}")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_repaired_trace_is_clean_whole_and_needs_no_repair(file in file()) {
        let first = plan(file.as_bytes());
        let trace = decode(file.as_bytes()).trace;
        prop_assert!(!first.after.has_errors(), "{:?}", first.after);
        // Perfetto does not know an array without events for a trace, and nothing can be added to it.
        let is_array = file.trim_start_matches('\u{feff}').starts_with('[');
        let nothing_left = is_array && first.after.stops.is_some();
        // No base makes times exact that are further apart than the importer's doubles reach.
        let exact = fits_doubles(&trace);
        prop_assert!(first.after.stops.is_none() || nothing_left, "{:?}", first.after);
        prop_assert!(first.after.is_clean() || !exact || nothing_left, "{:?}", first.after);
        if !nothing_left {
            // The plan followed its changes thread by thread; from nothing, the model says the same.
            prop_assert_eq!(&first.after, &predict_after(&trace, &first));
        }
        // With instants and begin events in between, an arrow may have hit its slice by accident before.
        if !["\"i\"", "\"B\"", "\"E\"", "null"].iter().any(|text| file.contains(text)) {
            prop_assert!(first.flows_bound_after >= first.flows_bound_before);
        }
        let (json, proof) = repair(file.as_bytes());
        prop_assert!(proof.holds, "{:?}", proof);
        // Another parser reads it.
        let parsed: Result<serde_json::Value, _> = serde_json::from_str(&json);
        prop_assert!(parsed.is_ok(), "{json}");
        // The model finds nothing wrong with what was written, and it comes out as it went in.
        let second = plan(json.as_bytes());
        prop_assert!(!second.before.has_errors(), "{:?}", second.before);
        prop_assert!(second.before.stops.is_none() || nothing_left, "{:?}", second.before);
        prop_assert!(second.before.is_clean() || !exact || nothing_left, "{:?}", second.before);
        prop_assert!(second.is_identity(), "{:?}", second.counts);
        prop_assert_eq!(repair(json.as_bytes()).0, json);
    }

    #[test]
    fn pieces_do_not_matter(file in file(), piece in 1_usize..50) {
        let options = PlanOptions::default();
        prop_assert_eq!(repair_in(file.as_bytes(), &options, piece).0, repair(file.as_bytes()).0);
    }

    #[test]
    fn events_that_the_plan_does_not_name_keep_every_byte(file in file()) {
        let decoded = decode(file.as_bytes());
        let plan = plan_repair(&decoded.trace, &PlanOptions::default());
        let (json, _) = repair(file.as_bytes());
        if plan.base.is_some() {
            return Ok(());
        }
        for row in decoded.trace.rows() {
            let untouched = plan.edit(row).is_none()
                && !decoded.trace.flags(row).has(kinetoscope::trace::Flags::TEXT);
            if untouched {
                let span = decoded.trace.span(row);
                let text = &file[span.start as usize..span.end() as usize];
                prop_assert!(json.contains(text), "{text} is not in {json}");
            }
        }
    }
}

#[test]
fn every_sample_comes_out_whole() {
    let samples = [testkit::trace_samples(), testkit::nasty_samples(), testkit::counterexamples()];
    for sample in samples.into_iter().flatten() {
        if sample.name == testkit::nasty::UNREADABLE {
            continue;
        }
        let (name, file) = (&sample.name, sample.bytes());
        let decoded = decode(&file);
        let plan = plan_repair(&decoded.trace, &PlanOptions::default());
        assert!(plan.after.is_clean(), "{name}: {:?}", plan.after);
        assert_eq!(plan.after, predict_after(&decoded.trace, &plan), "{name}");
        assert_eq!(plan.flows_bound_after, plan.flow_targets.len() as u64, "{name}");
        let mut repairer = Repairer::new(&decoded, &plan, Output::Gzip);
        let mut out = Vec::new();
        file.chunks(1 << 18).for_each(|piece| repairer.push(piece, &mut out));
        let proof = repairer.finish(&mut out);
        assert!(proof.holds, "{name}: {proof:?}");
        if plan.is_identity() && decoded.source.gzip {
            assert!(out == file, "{name}: a sound file passes through");
        }
        let again = decode(&out);
        let second = plan_repair(&again.trace, &PlanOptions::default());
        assert!(second.is_identity(), "{name}: {:?}", second.counts);
        assert_eq!(again.problems.iter().filter(|p| p.kind.id() == "truncated").count(), 0);
    }
}

/// The defect of each simulated trace is what the model finds, and what the repair is for.
#[test]
fn the_simulated_traces_need_what_they_are_made_for() {
    let planned = |name: &str| plan(&testkit::scene_gz(name));
    // Kernels of a chain alternate between two lanes; an annotation that crosses a frame leaves it.
    let launched = planned("dependent_launch");
    assert!(launched.before.crossing_slices > 20, "{:?}", launched.before);
    assert!(launched.base.is_none());
    assert!(!launched.lanes.is_empty());
    // Nothing crosses but by the importer's arithmetic: a time base repairs it, and no slice moves.
    let absolute = planned("epoch_times");
    assert!(absolute.before.crossing_slices > 0, "{:?}", absolute.before);
    assert_eq!(absolute.before.crossing_slices_if_exact, 0);
    assert!(absolute.base.is_some());
    assert!(absolute.lanes.iter().all(|lane| lane.kind == repair::LaneKind::Split));
    // Four threads are read as the main thread, and get tids of their own.
    let folded = planned("folded_tids");
    assert!(folded.before.crossing_slices > 0, "{:?}", folded.before);
    assert_eq!(folded.lanes.iter().filter(|lane| lane.kind == repair::LaneKind::Split).count(), 4);
    // The slice that is too long leaves, not the many that it crosses.
    let overrun = planned("rocm_overrun");
    assert_eq!(overrun.lanes.len(), 1);
    assert_eq!(overrun.impossible.len(), 1, "what --clip-impossible would clip");
    assert_eq!(overrun.edits().len(), 1, "{:?}", overrun.counts);
    // A second rank starts arrows under ids of the first.
    let merged = planned("merged_ranks");
    assert!(merged.before.duplicate_flow_starts > 100, "{:?}", merged.before);
    for name in ["graph_capture", "graph_replay", "rank_0", "rank_1"] {
        let plan = planned(name);
        assert_eq!(plan.before.crossing_slices, 0, "{name}");
    }
}

#[test]
fn the_known_traces_need_what_was_measured() {
    let crossing = |name: &str| Some(plan(&std::fs::read(testkit::real_trace(name)?).unwrap()));
    let Some(absolute) = crossing("ns_resolution_absolute_us") else { return };
    // All 774 drops come from the importer's arithmetic: a time base repairs them, and no slice moves.
    assert_eq!(
        (absolute.before.crossing_slices, absolute.before.crossing_slices_if_exact),
        (774, 0)
    );
    assert!(absolute.base.is_some());
    assert!(absolute.lanes.iter().all(|lane| lane.kind == repair::LaneKind::Split));
    let Some(sd35) = crossing("mi300_xdit_sd35") else { return };
    assert_eq!(sd35.before.crossing_slices, 2092);
}
