//! Each rule of repair on the smallest trace that needs it.

mod common;

use common::{document, events, named, on, plan, repair, repair_in, slice, thread_names};
use kinetoscope::PlanOptions;
use serde_json::Value;

#[test]
fn a_sound_file_comes_out_byte_for_byte() {
    let file = " {\"a\" : 1,\n \"traceEvents\":[\n{\"ph\":\"X\",\"ts\":1.500,\"dur\":2,\"pid\":0,\"tid\":7} ,\n\n{\"ph\":\"M\",\"name\":\"x\"}] , \"z\":[{}] }\n\n";
    assert_eq!(repair(file.as_bytes()).0, file);
}

#[test]
fn crossing_kernels_move_to_a_lane_named_after_their_stream() {
    let name =
        r#"{"ph": "M", "name": "thread_name", "pid": 5, "tid": 7, "args": {"name": "stream 7 "}}"#;
    let sort = r#"{"ph": "M", "name": "thread_sort_index", "pid": 5, "tid": 7, "args": {"sort_index": 3}}"#;
    let (a, b, c) = (slice("a", 100, 12), slice("b", 110, 10), slice("c", 120, 5));
    let file = document(&[name, sort, &a, &b, &c]);
    let (json, proof) = repair(file.as_bytes());
    assert!(proof.holds, "{proof:?}");
    assert_eq!(named(&json, "a")["tid"], 7);
    assert_eq!(named(&json, "b")["tid"], 8, "the smallest free tid above the parent's");
    assert_eq!(named(&json, "c")["tid"], 7);
    assert!(thread_names(&json).contains(&(8, "stream 7 (overlap 1)".to_owned())));
    let index = events(&json)
        .into_iter()
        .find(|event| event["name"] == "thread_sort_index" && event["tid"] == 8);
    assert_eq!(index.unwrap()["args"]["sort_index"], 3);
    // What was not moved is there byte for byte.
    for untouched in [name, sort, &a, &c] {
        assert!(json.contains(untouched), "{untouched}");
    }
    assert_eq!(named(&json, "b")["dur"], 10);
}

#[test]
fn a_lane_never_takes_a_tid_that_the_file_uses() {
    // Lanes get the next unused tids, also of flow events: 9 is taken by one.
    let flow = r#"{"ph": "s", "id": 1, "cat": "c", "name": "n", "pid": 1, "tid": 9, "ts": 0}"#;
    let file = document(&[
        &slice("a", 0, 10),
        &slice("b", 5, 20),
        &on(8, "c", "kernel", 6, 4),
        &on(9, "d", "kernel", 0, 4),
        flow,
    ]);
    let (json, _) = repair(file.as_bytes());
    assert_eq!(named(&json, "b")["tid"], 10);
}

#[test]
fn of_a_bogus_kernel_and_its_victims_the_bogus_one_leaves() {
    // A kernel of 20 ms among kernels of 25 us.
    let mut slices = vec![slice("bogus", 1_000, 20_000)];
    slices.extend((0..900).map(|n| slice(&format!("k{n}"), 1_010 + n * 30, 25)));
    let slices: Vec<&str> = slices.iter().map(String::as_str).collect();
    let plan = plan(document(&slices).as_bytes());
    assert_eq!(plan.edits().len(), 1);
    assert!(plan.edits().contains_key(&0));
    assert_eq!(plan.impossible.len(), 1);
    assert_eq!(plan.impossible[0].overrun_ns, 19_990_000);
}

#[test]
fn an_annotation_leaves_for_a_lane_of_its_own_and_the_frame_stays() {
    let file = document(&[
        &on(7, "_record_function_enter_", "python_function", 0, 10),
        &on(7, "ProfilerStep#3", "user_annotation", 8, 400_000),
        &on(7, "aten::add", "cpu_op", 20, 5),
    ]);
    let (json, _) = repair(file.as_bytes());
    assert_eq!(named(&json, "_record_function_enter_")["tid"], 7);
    assert_eq!(named(&json, "aten::add")["tid"], 7);
    let lane = named(&json, "ProfilerStep#3")["tid"].as_i64().unwrap();
    assert!(thread_names(&json).contains(&(lane, "Thread 7 (annotations)".to_owned())));
}

#[test]
fn one_slice_leaves_rather_than_the_many_that_it_crosses() {
    // One long op crosses the ends of three nested frames... and each of three later ones.
    let file = document(&[
        &on(7, "f1", "python_function", 0, 30),
        &on(7, "f2", "python_function", 1, 28),
        &on(7, "f3", "python_function", 2, 26),
        &on(7, "op", "cpu_op", 10, 100),
    ]);
    let plan = plan(file.as_bytes());
    assert_eq!(plan.edits().keys().copied().collect::<Vec<_>>(), [3]);
}

#[test]
fn flows_go_where_their_slices_go_even_from_the_middle() {
    let flow = |ph: &str, id: i64, tid: i64, ts: i64| {
        format!(
            r#"{{"ph": "{ph}", "id": {id}, "cat": "ac2g", "name": "ac2g", "pid": 5, "tid": {tid}, "ts": {ts}, "bp": "e"}}"#
        )
    };
    let file = document(&[
        &on(1, "launch1", "cuda_runtime", 0, 4),
        &on(1, "launch2", "cuda_runtime", 5, 4),
        &slice("k1", 20, 10),
        &slice("k2", 25, 10),
        &flow("s", 1, 1, 0),
        &flow("f", 1, 7, 20),
        &flow("s", 2, 1, 5),
        // In the middle of the slice that moves.
        &flow("f", 2, 7, 32),
    ]);
    let plan = plan(file.as_bytes());
    assert_eq!((plan.flows_bound_before, plan.flows_bound_after), (3, 4));
    let (json, proof) = repair(file.as_bytes());
    assert!(proof.holds);
    let lane = named(&json, "k2")["tid"].clone();
    let ends: Vec<_> = events(&json).into_iter().filter(|event| event["ph"] == "f").collect();
    assert_eq!((&ends[0]["tid"], &ends[1]["tid"]), (&serde_json::json!(7), &lane));
}

#[test]
fn a_flow_end_without_bp_binds_to_the_slice_it_stands_on() {
    let file = document(&[
        &slice("a", 0, 5),
        r#"{"ph":"s","id":1,"cat":"c","name":"n","pid":5,"tid":7,"ts":0}"#,
        &on(8, "b", "kernel", 20, 5),
        r#"{"ph":"f","id":1,"cat":"c","name":"n","pid":5,"tid":8,"ts":20}"#,
        &on(8, "c", "kernel", 30, 5),
    ]);
    let (json, _) = repair(file.as_bytes());
    let end = events(&json).into_iter().find(|event| event["ph"] == "f").unwrap();
    assert_eq!(end["bp"], "e");
}

#[test]
fn folded_threads_get_a_tid_of_their_own_and_keep_their_name() {
    let file = document(&[
        r#"{"ph":"M","name":"thread_name","pid":5,"tid":-9,"args":{"name":"autograd"}}"#,
        &on(5, "main", "cpu_op", 0, 10),
        &on(5, "main2", "cpu_op", 20, 10),
        &on(-9, "backward", "cpu_op", 5, 10),
    ]);
    let (json, _) = repair(file.as_bytes());
    assert_eq!(named(&json, "main")["tid"], 5);
    assert_eq!(named(&json, "backward")["tid"], 6);
    assert_eq!(thread_names(&json), [(6, "autograd".to_owned())]);
}

/// RTP-LLM writes waits without pid and tid, and the arrows to them with 0 for both.
#[test]
fn arrows_of_a_thread_without_slices_stay_with_the_slices_that_they_fold_onto() {
    let wait = r#"{"ph":"X","name":"wait","cat":"synchronization","ts":10,"dur":5}"#;
    let flow = |ph: &str, tid: i64, ts: i64| {
        format!(
            r#"{{"ph":"{ph}","name":"ac2g","cat":"ac2g","id":3,"bp":"e","pid":0,"tid":{tid},"ts":{ts}}}"#
        )
    };
    let call = on(8, "call", "cuda_runtime", 1, 5).replace("\"pid\": 5", "\"pid\": 0");
    let file = document(&[&call, &flow("s", 8, 1), wait, &flow("f", 0, 10)]);
    assert_eq!(repair(file.as_bytes()).0, file, "nothing is wrong with it");
}

/// The same where the thread of the arrow has slices of its own, so that the smaller one moves.
#[test]
fn an_arrow_stays_with_a_slice_that_its_thread_is_told_apart_from() {
    let of_zero =
        |text: &str| format!(r#"{{"pid":0,"tid":0,"id":3,"bp":"e","cat":"ac2g",{text}}}"#);
    let call = on(8, "call", "cuda_runtime", 1, 5).replace("\"pid\": 5", "\"pid\": 0");
    let start = of_zero(r#""ph":"s","name":"a","ts":1"#).replace("\"tid\":0", "\"tid\":8");
    for n_own in [1, 5] {
        let waits = (1..4).map(|n| format!(r#"{{"ph":"X","name":"wait {n}","ts":{n}0,"dur":5}}"#));
        let own = (0..n_own).map(|n| {
            of_zero(&format!(r#""ph":"X","name":"own {n}","ts":{},"dur":5"#, 40 + 10 * n))
        });
        let end = of_zero(r#""ph":"f","name":"a","ts":10"#);
        let all: Vec<String> =
            [call.clone(), start.clone(), end].into_iter().chain(waits).chain(own).collect();
        let file = document(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let (json, proof) = repair(file.as_bytes());
        assert!(proof.holds);
        let tid = |event: &Value| event["tid"].as_i64().unwrap_or(0);
        let (wait, own) = (named(&json, "wait 1"), named(&json, "own 0"));
        assert_ne!(tid(&wait), tid(&own), "{json}");
        let arrow = events(&json).into_iter().find(|event| event["ph"] == "f").expect(&json);
        assert_eq!((tid(&arrow), &arrow["ts"]), (tid(&wait), &10.into()), "{json}");
        assert_eq!(plan(file.as_bytes()).flows_bound_after, 2);
    }
}

#[test]
fn one_base_repairs_big_times_and_moves_nothing() {
    let file = concat!(
        "{\"baseTimeNanoseconds\": 7, \"traceEvents\": [\n",
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":5,\"tid\":7,\"ts\":0,\"args\":{\"name\":\"s\"}},\n",
        "{\"ph\":\"X\",\"name\":\"a\",\"pid\":5,\"tid\":7,\"ts\":1695835535123451.100,\"dur\":1.100},\n",
        "{\"ph\":\"X\",\"name\":\"b\",\"pid\":5,\"tid\":7,\"ts\":1695835535123452.2,\"dur\":1.100}\n]}"
    );
    let (json, proof) = repair(file.as_bytes());
    assert!(proof.holds);
    assert!(json.contains("\"ts\":451.100,\"dur\":1.100"), "{json}");
    assert!(json.contains("\"ts\":452.2,\"dur\":1.100"), "decimals stay as they were: {json}");
    assert!(json.contains("\"baseTimeNanoseconds\": 1695835535123000007,"), "{json}");
    assert!(json.contains("\"tid\":7,\"ts\":0,"), "metadata has no place in time");
    assert!(plan(file.as_bytes()).lanes.is_empty());
}

#[test]
fn events_that_kill_the_import_become_instants_or_are_set_aside() {
    let file = document(&[
        &slice("a", 0, 10),
        r#"{"ph": "X", "name": "nodur", "pid": 5, "tid": 7, "ts": 5, "args": {"k": 1}}"#,
        r#"{"ph": "X", "name": "null", "pid": 5, "tid": 7, "ts": 6, "dur": null}"#,
        r#"{"ph": "X", "name": "negative", "pid": 5, "tid": 7, "ts": 7, "dur": -3}"#,
        r#"{"ph": "X", "name": "nan", "pid": 5, "tid": 7, "ts": NaN, "dur": 1}"#,
        "{}",
    ]);
    let (json, proof) = repair(file.as_bytes());
    assert!(proof.holds, "{proof:?}");
    for (name, dur) in [("null", "null"), ("negative", "-3")] {
        let event = named(&json, name);
        assert_eq!((&event["ph"], &event["s"]), (&"i".into(), &"t".into()), "{event}");
        assert_eq!(event["args"]["original dur"].to_string(), dur);
        assert!(event.get("dur").is_none());
    }
    assert_eq!(named(&json, "nodur")["args"]["k"], 1);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["kinetoscope"]["nSetAside"], 2);
    assert_eq!(value["kinetoscope"]["setAside"][0]["ts"], "NaN");
    assert_eq!(events(&json).len(), 4);
}

#[test]
fn an_impossible_duration_is_clipped_only_when_asked_and_the_original_stays() {
    let mut slices = vec![slice("bogus", 0, 5_000)];
    slices.extend((0..10).map(|n| slice(&format!("k{n}"), 20 + n * 30, 25)));
    let slices: Vec<&str> = slices.iter().map(String::as_str).collect();
    let file = document(&slices);
    assert_eq!(named(&repair(file.as_bytes()).0, "bogus")["dur"], 5_000);
    let options = PlanOptions { clip_impossible: true, ..PlanOptions::default() };
    let (json, proof) = repair_in(file.as_bytes(), &options, usize::MAX);
    assert!(proof.holds, "{proof:?}");
    let bogus = named(&json, "bogus");
    assert_eq!((&bogus["dur"], &bogus["args"]["original dur"]), (&20.into(), &5_000.into()));
    assert_eq!(bogus["tid"], 7, "clipped, it crosses nothing");
}

#[test]
fn dense_streams_that_touch_by_4_us_are_not_impossible() {
    // Hyperloom #1116: the worst overrun of a healthy trace was about 4 us.
    let slices: Vec<String> = (0..1000).map(|n| slice("k", n * 6, 10)).collect();
    let slices: Vec<&str> = slices.iter().map(String::as_str).collect();
    assert_eq!(plan(document(&slices).as_bytes()).impossible, []);
    // ... but one of 2 s among 60 s of kernels is, though it is a thirtieth of the span.
    let mut slices: Vec<String> = (0..1000).map(|n| slice("k", n * 60_000, 100)).collect();
    slices.push(slice("bad", 30_000_001, 2_000_000));
    let slices: Vec<&str> = slices.iter().map(String::as_str).collect();
    assert_eq!(plan(document(&slices).as_bytes()).impossible.len(), 1);
}

#[test]
fn labels_join_the_process_name_only_when_asked() {
    let file = document(&[
        r#"{"ph":"M","name":"process_name","pid":5,"tid":0,"args":{"name":"python"}}"#,
        r#"{"ph":"M","name":"process_labels","pid":5,"tid":0,"args":{"labels":"GPU 0"}}"#,
        &slice("a", 0, 1),
    ]);
    assert_eq!(repair(file.as_bytes()).0, file);
    let options = PlanOptions { fold_process_labels: true, ..PlanOptions::default() };
    let (json, _) = repair_in(file.as_bytes(), &options, usize::MAX);
    assert_eq!(named(&json, "process_name")["args"]["name"], "python [GPU 0]");
    let (again, _) = repair_in(json.as_bytes(), &options, usize::MAX);
    assert_eq!(again, json);
}

#[test]
fn the_document_around_the_events_is_mended() {
    let (a, b) = (slice("a", 0, 1), slice("b", 5, 1));
    let table = [
        (format!("\u{feff}{{\"traceEvents\":[{a},{b}]}}"), 2),
        (format!("{{\"traceEvents\":[{a},,{b},],\"z\":1,}}"), 2),
        (format!("{{\"traceEvents\":[{a} {b}]}}"), 2),
        (format!("{{\"traceEvents\":[null,{a},7,{b}]}} tail"), 2),
        (format!("{{\"traceEvents\":[{a},{b},{{\"ph\":\"X\",\"na"), 2),
        (format!("[{a},{b}"), 2),
        (format!("{{\"traceEvents\":[{a}],\"k\":[1]}}{{\"traceEvents\":[{b}],\"k\":2}}"), 2),
        (format!("{{\"x\":\"a\nb\",\"traceEvents\":[{a}]}}"), 1),
        (format!("{{\"traceEvents\":[{a}],\"m\":1,\"traceEvents\":[{b}],\"z\":2}}"), 2),
    ];
    for (file, n) in table {
        let (json, proof) = repair(file.as_bytes());
        assert!(proof.holds, "{file}: {proof:?}");
        assert_eq!(events(&json).len(), n, "{file} -> {json}");
        assert!(json.contains(&a));
        assert_eq!(repair(json.as_bytes()).0, json);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        for (key, expected) in [("z", "1"), ("m", "1"), ("k", "[1]")] {
            if file.contains(&format!("\"{key}\":{expected}")) {
                assert_eq!(value[key].to_string(), expected, "{file} -> {json}");
            }
        }
    }
}

#[test]
fn a_time_that_fits_no_64_bits_is_no_time_for_the_proof_either() {
    let file = document(&[
        &slice("a", 0, 10),
        r#"{"ph": "X", "name": "long", "pid": 5, "tid": 7, "ts": 20, "dur": 9223372036854775807}"#,
        r#"{"ph": "X", "name": "late", "pid": 5, "tid": 7, "ts": 9223372036854775807, "dur": 1}"#,
    ]);
    let (json, proof) = repair(file.as_bytes());
    assert!(proof.holds, "{proof:?}");
    assert_eq!(named(&json, "long")["ph"], "i");
    assert!(json.contains("\"nSetAside\": 1"), "{json}");
}

#[test]
fn what_fuzzing_found_stays_found() {
    for file in [
        r#"{"a":5}[{"ph":"i","name":"x","pid":0,"tid":7,"ts":1}]"#,
        r#"[{"ph":"X","pid":0.,"tid":7,"ts":1,"dur":5},{"ph":"X","pid":0.,"tid":7,"ts":3,"dur":5}]"#,
        r#"{"traceEvents":[{"ph":"Q","ts":1,"dur":1e30}]}"#,
        r#"{"traceEvents":[{"ph":"M","name":"process_sort_index","ts":0,"args":{"sort_index":50000.0}}]}"#,
        r#"{"traceEvents":[{"ph":"X","pid":100,"tid":100,"ts":70,"dur":7},{"ph":"X","pid":100,"ts":0}]}"#,
        r#"{"traceEvents":[{"ph":"X","ts":0},{"ph":"X","ts":150,"dur":12}]}"#,
        r#"{"traceEvents":[{"ph":"M","name":"x","ts":5},{"ph":"X","name":"n","ts":9300000000000000,"dur":1}]}"#,
        r#"{"traceEvents":[{"ph":"X","pid":5,"tid":7,"ts":20,"dur":9223372036854775807}]}"#,
        r#"{"traceEvents":[{"ph":"M","name":"process_name","pid":1,"tid":0,"ts":-100,"args":{"name":"p"}},{"ph":"s","id":1,"pid":1,"tid":7,"ts":-5000,"name":"f","cat":"c"},{"ph":"X","pid":1,"tid":2,"ts":5,"dur":3,"name":"k"}]}"#,
        r#"{"traceEvents":[{"ph":"M","name":"process_name","pid":1,"tid":0,"ts":-100.0001,"args":{"name":"p"}},{"ph":"X","pid":1,"tid":2,"ts":5,"dur":3,"name":"k"}]}"#,
        r#"{"traceEvents":[{"ph":"X","pid":1,"tid":1,"ts":5,"dur":1}]}{"traceEvents":[{"ph":"X","pid":1,"tid":1,"ts":-7,"dur":1}]}"#,
        r#"{"traceEvents":[{"ph":"i","s":"p","name":"p","tid":1,"ts":4},{"ph":"X","pid":0,"tid":1,"ts":2,"dur":2}]}"#,
    ] {
        let (json, proof) = repair(file.as_bytes());
        assert!(proof.holds, "{file}: {proof:?}");
        let parsed: Result<serde_json::Value, _> = serde_json::from_str(&json);
        assert!(parsed.is_ok(), "{file} -> {json}");
        let again = plan(json.as_bytes());
        assert!(again.before.is_clean(), "{file} -> {json}: {:?}", again.before);
        assert_eq!(repair(json.as_bytes()).0, json, "{file}");
    }
}

#[test]
fn a_counter_keeps_every_value_that_is_a_number_however_large() {
    let counter = r#"{"ph":"C","name":"n","pid":1,"ts":5,"args":{"a":1e99,"b":"x","c":"\u0031"}}"#;
    let (json, proof) = repair(document(&[counter, &slice("a", 0, 10)]).as_bytes());
    assert!(proof.holds, "{proof:?}");
    let args = &named(&json, "n")["args"];
    assert_eq!(args["a"], 1e99);
    assert!(args.get("c").is_some() && args.get("b").is_none(), "{args}");
}
