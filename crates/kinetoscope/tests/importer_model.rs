//! The importer's model against figures measured with Perfetto's trace processor v55.3.
//!
//! Each row is a small document and the error stats that the real engine raised for it. The end-to-end
//! tests run the engine itself; these run everywhere.

mod common;

use common::{document, on, plan, slice};
use kinetoscope::Prediction;

fn predict(events: &[&str]) -> Prediction {
    plan(document(events).as_bytes()).before
}

fn at(ph: &str, name: &str, ts: i64, more: &str) -> String {
    format!(
        r#"{{"ph": "{ph}", "name": "{name}", "cat": "c", "pid": 5, "tid": 7, "ts": {ts}{more}}}"#
    )
}

#[test]
fn crossing_slices_are_dropped_and_touching_or_nested_ones_are_not() {
    let crossing = |events: &[String]| {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        predict(&events).drops_v51_v56()
    };
    assert_eq!(crossing(&[slice("a", 0, 10), slice("b", 5, 10)]), 1);
    assert_eq!(crossing(&[slice("a", 0, 10), slice("b", 10, 10)]), 0);
    assert_eq!(crossing(&[slice("a", 0, 10), slice("a", 0, 10)]), 0);
    assert_eq!(crossing(&[slice("a", 0, 10), slice("b", 5, 5)]), 0);
    // No length, no crossing; and a child before its parent in the file nests all the same.
    assert_eq!(crossing(&[slice("a", 0, 10), slice("z", 5, 0), slice("z", 10, 0)]), 0);
    assert_eq!(crossing(&[slice("child", 0, 5), slice("parent", 0, 10)]), 0);
    // 20 frames, each 35 us, one every 10 us: every fourth stays.
    let staircase: Vec<String> = (0..20).map(|n| slice("f", n * 10, 35)).collect();
    assert_eq!(crossing(&staircase), 15);
}

#[test]
fn an_open_begin_hides_crossings_but_misplaces_ends() {
    let open_in_slice = predict(&[&slice("a", 0, 10), &at("B", "b", 5, ""), &slice("c", 20, 5)]);
    assert_eq!((open_in_slice.drops_v51_v56(), open_in_slice.misplaced_ends), (0, 1));
    let ends_after = predict(&[
        &slice("x", 0, 10),
        &at("B", "b", 5, ""),
        &at("E", "b", 15, ""),
        &slice("z", 30, 1),
    ]);
    assert_eq!(ends_after.misplaced_ends, 1);
    let interleaved = predict(&[
        &at("B", "b", 0, ""),
        &at("B", "c", 1, ""),
        &at("E", "b", 5, ""),
        &at("E", "c", 6, ""),
    ]);
    assert_eq!(interleaved.misplaced_ends, 1);
    let nested = predict(&[
        &slice("x", 0, 10),
        &at("B", "b", 5, ""),
        &at("E", "b", 8, ""),
        &slice("z", 30, 1),
    ]);
    assert!(nested.is_clean());
    assert!(predict(&[&at("E", "q", 5, ""), &slice("a", 10, 5)]).is_clean());
}

#[test]
fn threads_fold_as_the_importer_folds_them() {
    // Measured with trace processor v55.3: -1, 0, 2^32 + 4 and the pid itself are one thread.
    let events: Vec<String> = [-1, 0, 4_294_967_300, 5]
        .iter()
        .zip(0..)
        .map(|(tid, n)| on(*tid, "f", "cpu_op", n, 10))
        .collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    assert_eq!(predict(&events).drops_v51_v56(), 3);
    // Text is another thread than the number it spells.
    let text = r#"{"ph":"X","name":"t","pid":5,"tid":"7","ts":5,"dur":10}"#;
    assert!(predict(&[&slice("a", 0, 10), text]).is_clean());
}

#[test]
fn what_the_importer_rejects_is_counted_where_it_counts_it() {
    type Count = fn(&Prediction) -> u64;
    let rejected: Count = |p| p.rejected_events;
    let unreadable: Count = |p| p.unreadable_events;
    let flow_ids: Count = |p| p.unreadable_flow_ids;
    let table: &[(&str, Count, u64)] = &[
        (r#"{"ph":"X","name":"n","pid":1,"tid":1,"ts":1}"#, rejected, 1),
        (r#"{"ph":"C","name":"c","pid":1,"ts":1}"#, rejected, 1),
        (r#"{"ph":"C","name":"c","pid":1,"ts":1,"args":{}}"#, rejected, 0),
        (r#"{"ph":"i","name":"n","ts":4}"#, rejected, 1),
        (r#"{"ph":"i","s":"p","name":"n","ts":4}"#, rejected, 1),
        (r#"{"ph":"i","s":"g","name":"n","ts":4}"#, rejected, 0),
        (r#"{"ph":"b","cat":"c","name":"n","pid":1,"ts":4}"#, rejected, 1),
        (r#"{"ph":"b","cat":"c","name":"n","id":1.5,"pid":1,"ts":4}"#, rejected, 1),
        (r#"{"ph":"b","cat":"c","name":"n","id":"zz","pid":1,"ts":4}"#, rejected, 0),
        (r#"{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":5}}"#, rejected, 1),
        (r#"{"ph":"M","name":"thread_name","pid":1,"tid":1}"#, rejected, 0),
        (r#"{"ph":"M","name":"unheard_of","pid":1,"tid":1,"args":{"x":1}}"#, rejected, 0),
        (r#"{}"#, unreadable, 1),
        (r#"{"name":"n","pid":1,"tid":1,"ts":1}"#, unreadable, 1),
        (r#"{"ph":5,"name":"n","pid":1,"tid":1,"ts":1}"#, unreadable, 1),
        (r#"{"ph":"Z","name":"n","pid":1,"tid":1}"#, unreadable, 1),
        (r#"{"ph":"X","name":"n","pid":1,"tid":1,"ts":"abc","dur":1}"#, unreadable, 1),
        (r#"{"ph":"s","name":"n","cat":"c","pid":5,"tid":7,"ts":0}"#, flow_ids, 1),
        (r#"{"ph":"s","name":"n","cat":"c","id":1.5,"pid":5,"tid":7,"ts":0}"#, flow_ids, 1),
        (r#"{"ph":"s","name":"n","cat":"c","id":"zz","pid":5,"tid":7,"ts":0}"#, flow_ids, 1),
        (r#"{"ph":"s","name":"n","cat":"c","id":"0x1F","pid":5,"tid":7,"ts":0}"#, flow_ids, 0),
    ];
    for (event, count, expected) in table {
        let prediction = predict(&[&slice("a", 0, 10), event]);
        assert_eq!(count(&prediction), *expected, "{event}: {prediction:?}");
        assert_eq!(prediction.is_clean(), *expected == 0, "{event}: {prediction:?}");
    }
}

#[test]
fn what_stops_the_import_is_said() {
    for event in [
        r#"{"ph":"X","name":"n","pid":1,"tid":1,"ts":1,"dur":null}"#,
        r#"{"ph":"X","name":"n","pid":1,"tid":1,"ts":1,"dur":2,"tdur":null}"#,
        r#"{"ph":"X","name":"n","pid":1,"tid":1,"ts":1,"dur":2,"tts":"zz"}"#,
        r#"{"ph":"i","s":"t","name":"n","pid":1,"tid":1,"ts":1,"dur":null}"#,
    ] {
        assert!(predict(&[event]).stops.is_some(), "{event}");
    }
    assert!(plan(b"\xef\xbb\xbf{\"traceEvents\":[]}").before.stops.is_some());
    assert!(
        plan(b"{\"traceEvents\":[{\"ph\":\"X\",\"ts\":1,\"dur\":1},{\"ph\"").before.stops.is_some()
    );
}

#[test]
fn flows_bind_and_repeat_as_measured() {
    let start = |ts: i64, id: i64| at("s", "n", ts, &format!(r#", "id": {id}"#));
    let end = |ts: i64, id: i64| at("f", "n", ts, &format!(r#", "id": {id}, "bp": "e""#));
    let reuse = predict(&[
        &slice("a", 0, 5),
        &start(0, 1),
        &end(2, 1),
        &slice("b", 30, 5),
        &start(30, 1),
        &end(32, 1),
    ]);
    assert_eq!(reuse.duplicate_flow_starts, 1);
    let early = predict(&[&start(0, 1), &slice("a", 5, 5)]);
    assert_eq!(early.flows_without_slice, 1);
    // A start that binds to nothing starts nothing, so the second is the first.
    let both = predict(&[&start(0, 1), &slice("a", 5, 5), &start(5, 1)]);
    assert_eq!((both.flows_without_slice, both.duplicate_flow_starts), (1, 0));
}

#[test]
fn slices_deeper_than_512_levels_are_counted() {
    let tower: Vec<String> = (0..520).map(|n| slice("d", n, 2_000 - 2 * n)).collect();
    let tower: Vec<&str> = tower.iter().map(String::as_str).collect();
    assert_eq!(predict(&tower).too_deep, 8);
}

#[test]
fn big_times_cross_only_in_the_importers_arithmetic() {
    // Back-to-back kernels of 1.1 us at 1.7e15 us, where doubles are 0.25 us apart.
    let events: Vec<String> = (0..40)
        .map(|n| {
            let ns = 1_695_835_535_123_450_000_i64 + n * 1_100;
            format!(
                r#"{{"ph":"X","name":"k","cat":"kernel","pid":5,"tid":7,"ts":{}.{:03},"dur":1.100}}"#,
                ns / 1000,
                ns % 1000
            )
        })
        .collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let prediction = predict(&events);
    assert_eq!((prediction.crossing_slices, prediction.crossing_slices_if_exact), (16, 0));
    assert!(prediction.worst_rounding_ns > 0 && prediction.worst_rounding_ns <= 125);
}

#[test]
fn of_several_documents_only_the_first_is_imported() {
    let one = document(&[&slice("a", 0, 10), &slice("b", 5, 10)]);
    let both = plan(format!("{one}{one}").as_bytes());
    assert_eq!(both.before.drops_v51_v56(), 1);
    assert!(both.after.is_clean());
}
