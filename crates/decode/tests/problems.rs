//! A small file for every kind of problem.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{decode, ids, problem};
use decode::{Decoded, ProblemKind};
use testkit::gzip;
use trace::{Container, Flags, IdToken, Phase};

const GOOD: &str = r#"{"ph":"X","name":"good","cat":"kernel","pid":0,"tid":7,"ts":1,"dur":2}"#;

/// A document with `events` between two good ones, commas included.
fn among(events: &str) -> String {
    format!(r#"{{"traceEvents":[{GOOD}{events}{GOOD}]}}"#)
}

/// Decodes a document with one more event in the middle.
#[track_caller]
fn one(event: &str, expected: &[&str]) -> Decoded {
    let text = among(&format!(",{event},"));
    let decoded = decode(&text).unwrap();
    assert_eq!(ids(&decoded.problems), expected, "{event}");
    assert_eq!(decoded.trace.len(), 3, "{event}");
    for problem in &decoded.problems {
        assert_eq!((problem.count, problem.first_row), (1, Some(1)), "{event}: {problem:?}");
        assert!(problem.first_offset > GOOD.len() as u64, "{problem:?}");
    }
    decoded
}

/// Decodes a whole file.
#[track_caller]
fn file(text: &str, n: usize, expected: &[&str]) -> Decoded {
    let decoded = decode(text).unwrap();
    assert_eq!(ids(&decoded.problems), expected, "{text}");
    assert_eq!(decoded.trace.len(), n, "{text}");
    decoded
}

#[test]
fn times() {
    let flags = |event: &str, expected: &[&str]| one(event, expected).trace.flags(1);
    assert!(!flags(r#"{"ph":"X","dur":1}"#, &["missing-ts"]).has(Flags::HAS_TS));
    for ts in ["null", "\"soon\"", "[]", "true"] {
        let event = format!(r#"{{"ph":"X","ts":{ts},"dur":1}}"#);
        assert!(flags(&event, &["unreadable-ts"]).has(Flags::TS_UNREADABLE));
    }
    let nan = flags(r#"{"ph":"X","ts":NaN,"dur":1}"#, &["non-finite-number", "unreadable-ts"]);
    assert!(nan.has(Flags::TS_UNREADABLE) && nan.has(Flags::TEXT));
    flags(r#"{"ph":"i","ts":-1}"#, &["negative-ts"]);
    flags(r#"{"ph":"X","ts":1}"#, &["missing-dur"]);
    let null = flags(r#"{"ph":"B","ts":1,"dur":null}"#, &["unreadable-dur"]);
    assert!(null.has(Flags::DUR_UNREADABLE) && !null.has(Flags::HAS_DUR));
    assert!(flags(r#"{"ph":"X","ts":1,"dur":-1}"#, &["negative-dur"]).has(Flags::HAS_DUR));
    flags(r#"{"ph":"X","ts":1,"dur":1,"tdur":null}"#, &["unreadable-thread-time"]);
    flags(r#"{"ph":"X","ts":1,"dur":1,"tts":5,"tdur":"0.5"}"#, &[]);
    let text = one(r#"{"ph":"X","ts":"1.5","dur":"2"}"#, &["string-time"]);
    assert_eq!((text.trace.ts_ns(1), text.trace.dur_ns(1)), (1_500, 2_000));
    let sub = one(r#"{"ph":"X","ts":1.0005,"dur":2.0001}"#, &["sub-ns-digits"]);
    assert!(sub.trace.flags(1).has(Flags::SUB_NS));
    assert_eq!(sub.trace.ts_ns(1), 1_000);
    let importer = sub.trace.importer_ns(1).unwrap();
    assert_eq!((importer.ts_ns, importer.dur_ns), (1_001, 2_000));
    let far = one(r#"{"ph":"X","ts":1e20,"dur":1}"#, &["time-out-of-range"]);
    assert!(far.trace.flags(1).has(Flags::TS_UNREADABLE));
    let long = one(r#"{"ph":"X","ts":1,"dur":9223372036854775807}"#, &["time-out-of-range"]);
    assert!(long.trace.flags(1).has(Flags::DUR_UNREADABLE));
}

#[test]
fn an_odd_time_takes_its_neighbour_with_it() {
    // `ts` is odd, so the importer's reading of `dur` is kept, too, and `origin` plays no part in it.
    let it = one(r#"{"ph":"X","ts":1700000000000000.1234,"dur":1.1}"#, &["sub-ns-digits"]);
    let importer = it.trace.importer_ns(1).unwrap();
    assert_eq!((importer.ts_ns, importer.dur_ns), (1_700_000_000_000_000_000, 1_100));
}

/// Slices whose times need more than 64 bits, and one at 5 us behind them.
fn far_and_near(n_far: usize) -> String {
    let far = |n: usize| {
        format!(r#"{{"ph":"X","name":"a","ts":17000000000000{:05},"dur":5}},"#, 99 * n + 1)
    };
    let far: String = (0..n_far).map(far).collect();
    format!(r#"[{{"ph":"M","name":"m","ts":0}},{far}{{"ph":"X","name":"c","ts":5,"dur":5}}]"#)
}

#[test]
fn times_beyond_64_bits_are_kept_relative_to_an_origin() {
    let it = file(&far_and_near(64), 66, &["time-out-of-range"]);
    let trace = &it.trace;
    assert_eq!(trace.origin_ns, 1_700_000_000_000_000_000_000);
    assert_eq!((trace.ts_ns(1), trace.ts_ns(2)), (1_000, 100_000));
    // int64 multiplication that wraps, as in the importer.
    let wrapped = 1_700_000_000_000_000_001_i64.wrapping_mul(1000);
    assert_eq!(trace.importer_ns(1).map(|it| it.ts_ns), Some(wrapped));
    assert!(trace.flags(65).has(Flags::TS_UNREADABLE));
    assert_eq!(problem(&it, ProblemKind::TimeOutOfRange).first_row, Some(65));
}

#[test]
fn a_few_times_beyond_64_bits_do_not_cost_the_others_theirs() {
    for n_far in [1, 2, 63] {
        let it = file(&far_and_near(n_far), n_far + 2, &["time-out-of-range"]);
        let trace = &it.trace;
        assert_eq!((trace.origin_ns, trace.ts_ns(n_far as u32 + 1)), (0, 5_000));
        assert!((1..=n_far as u32).all(|row| trace.flags(row).has(Flags::TS_UNREADABLE)));
        let wrapped = 1_700_000_000_000_000_001_i64.wrapping_mul(1000);
        assert_eq!(trace.importer_ns(1).map(|it| it.ts_ns), Some(wrapped));
        let problem = problem(&it, ProblemKind::TimeOutOfRange);
        assert_eq!((problem.first_row, problem.count), (Some(1), n_far as u64));
    }
}

#[test]
fn phases() {
    for ph in ["", r#""ph":5,"#, r#""ph":"","#, r#""ph":null,"#] {
        let it = one(&format!(r#"{{{ph}"ts":1,"dur":1}}"#), &["unreadable-phase"]);
        assert_eq!(it.trace.phase(1), Phase::Other);
        assert!(it.trace.flags(1).has(Flags::PHASE_UNREADABLE));
    }
    assert_eq!(one(r#"{"ph":"X1","ts":1,"dur":1}"#, &[]).trace.phase(1), Phase::Complete);
    assert_eq!(one(r#"{"ph":"Q","ts":1}"#, &["ignored-phase"]).trace.phase(1), Phase::Other);
    assert_eq!(one(r#"{"p\u0068":"\u0058","ts":1,"dur":1}"#, &[]).trace.phase(1), Phase::Complete);
    one("{}", &["empty-event"]);
    one("{ }", &["empty-event"]);
}

#[test]
fn ids_of_flows_and_async_events() {
    let link = |event: &str| one(event, &[]).trace.link(1);
    assert_eq!(link(r#"{"ph":"s","ts":1,"id":42}"#), Some(42));
    assert_eq!(link(r#"{"ph":"t","ts":1,"id":"2a"}"#), Some(42));
    assert_eq!(link(r#"{"ph":"f","ts":1,"id":"0x2A","bp":"e"}"#), Some(42));
    assert_eq!(link(r#"{"ph":"s","ts":1,"bind_id":1}"#), None);
    assert_eq!(link(r#"{"ph":"X","ts":1,"dur":1,"args":{"correlation":-3}}"#), Some(-3));
    let it = one(r#"{"ph":"f","ts":1,"id":1,"bp":"e"}"#, &[]);
    assert!(it.trace.flags(1).has(Flags::BIND_ENCLOSING));
    for id in ["1.5", "\"xyz\"", "null", "[]"] {
        let it = one(&format!(r#"{{"ph":"s","ts":1,"id":{id}}}"#), &["unreadable-flow-id"]);
        assert!(it.trace.flags(1).has(Flags::ID_UNREADABLE));
    }
    for sound in [r#""id":1"#, r#""id":"x""#, r#""id2":{"local":"0x1"}"#, r#""id2":{"global":5}"#] {
        one(&format!(r#"{{"ph":"b","ts":1,"pid":1,{sound}}}"#), &[]);
        let it = one(&format!(r#"{{"ph":"e","ts":1,{sound}}}"#), &["missing-async-id"]);
        assert!(it.trace.flags(1).has(Flags::ID_UNREADABLE));
    }
    one(r#"{"ph":"n","ts":1,"pid":1}"#, &["missing-async-id"]);
    one(r#"{"ph":"n","ts":1,"pid":1,"id2":{}}"#, &["missing-async-id"]);
    one(r#"{"ph":"X","ts":1,"dur":1,"bind_id":1}"#, &["flow-without-direction"]);
    one(r#"{"ph":"X","ts":1,"dur":1,"bind_id":1,"flow_out":true}"#, &[]);
}

#[test]
fn counters_instants_and_metadata() {
    one(r#"{"ph":"C","ts":1,"pid":1,"args":{"a":1,"b":"2.5","c":"1e3"}}"#, &[]);
    for args in [r#"{"a":1,"b":"x"}"#, r#"{"a":null}"#, r#"{"a":{}}"#, "5"] {
        let it = one(&format!(r#"{{"ph":"C","ts":1,"args":{args}}}"#), &["counter-argument"]);
        assert!(it.trace.flags(1).has(Flags::ARGS_UNREADABLE));
    }
    one(r#"{"ph":"C","ts":1}"#, &["counter-argument"]);
    one(r#"{"ph":"i","ts":1,"s":"t"}"#, &[]);
    assert!(one(r#"{"ph":"i","ts":1,"s":"p"}"#, &[]).trace.flags(1).has(Flags::SCOPE_WIDE));
    assert!(one(r#"{"ph":"I","ts":1,"s":"g"}"#, &[]).trace.flags(1).has(Flags::SCOPE_GLOBAL));
    let it = one(r#"{"ph":"R","ts":1,"s":"x"}"#, &["instant-scope"]);
    assert!(it.trace.flags(1).has(Flags::SCOPE_UNREADABLE));
    one(r#"{"ph":"M","name":"thread_name","pid":0,"tid":7}"#, &[]);
    one(r#"{"ph":"M","name":"process_labels","pid":0,"args":{"labels":5}}"#, &[]);
    let it = one(r#"{"ph":"M","name":"thread_name","args":{"name":5}}"#, &["metadata-argument"]);
    assert!(it.trace.flags(1).has(Flags::ARGS_UNREADABLE));
    one(
        r#"{"ph":"M","name":"process_sort_index","pid":0,"args":{"sort_index":"x"}}"#,
        &["metadata-argument"],
    );
    one(r#"{"ph":"M","name":"anything else"}"#, &[]);
    let it = file(
        r#"[{"ph":"M","name":"process_name","pid":0,"tid":7,"args":{"name":"pyth\u006fn"}},
            {"ph":"M","name":"process_labels","pid":0,"tid":7,"args":{"labels":"GPU 0"}},
            {"ph":"M","name":"process_sort_index","pid":0,"tid":7,"args":{"sort_index":5}},
            {"ph":"M","name":"thread_name","pid":0,"tid":7,"args":{"name":"first"}},
            {"ph":"M","name":"thread_name","pid":0,"tid":7,"args":{"name":"a","name":"stream 7"}},
            {"ph":"M","name":"thread_sort_index","pid":0,"tid":7,"args":{"sort_index":-1}}]"#,
        6,
        &[],
    );
    let trace = &it.trace;
    let text = |id: Option<trace::StringId>| id.map(|id| trace.strings.get(id));
    let (process, track) = (&trace.processes[0], &trace.tracks[0]);
    assert_eq!((text(process.name), text(process.labels)), (Some("python"), Some("GPU 0")));
    assert_eq!((process.sort_index, track.sort_index), (Some(5), Some(-1)));
    assert_eq!((text(track.name), track.n_timed), (Some("stream 7"), 0));
}

#[test]
fn streams_as_the_reference_defines_them() {
    let it = file(
        r#"[{"ph":"X","cat":"Kernel","pid":3,"tid":4,"ts":1,"dur":1,"args":{"device":1,"stream":2}},
            {"ph":"X","cat":"gpu_memcpy","pid":3,"tid":4,"ts":1,"dur":1,"args":{"Device Id":1,"Stream":2}},
            {"ph":"X","cat":"MEMSET","pid":3,"tid":"4","ts":1,"dur":1},
            {"ph":"X","cat":"cpu_op","pid":3,"tid":4,"ts":1,"dur":1,"args":{"device":1,"stream":2}},
            {"ph":"B","cat":"kernel","pid":3,"tid":4,"ts":1}]"#,
        5,
        &[],
    );
    let trace = &it.trace;
    let streams: Vec<_> = trace.rows().map(|row| trace.stream(row).map(|id| id.0)).collect();
    assert_eq!(streams, [Some(0), Some(0), Some(1), None, None]);
    assert_eq!(trace.streams[0].device, IdToken::Int(1));
    assert_eq!(trace.streams[1].device, IdToken::Int(3));
    assert!(matches!(trace.streams[1].stream, IdToken::Text(_)));
    assert!(trace.flags(0).has(Flags::KERNEL) && trace.flags(1).has(Flags::GPU_MEMORY));
    assert!(!trace.flags(4).has(Flags::KERNEL));
}

#[test]
fn text_inside_events() {
    for (part, kind) in [
        ("\"name\":\"a\nb\"", "control-character"),
        ("\"name\":\"a\u{1}b\"", "control-character"),
        (r#""name":"\ud83d\ude00""#, "surrogate-escape"),
        (r#""name":"C:\temp\new\x""#, "bad-escape"),
        (r#""args":{"a":NaN}"#, "non-finite-number"),
        (r#""args":{"a":[1,-inf]}"#, "non-finite-number"),
        (r#""args":{"a":01}"#, "odd-number"),
        (r#""args":{"a":1,}"#, "comma-in-event"),
        (r#""args":{"a":1 "b":2}"#, "comma-in-event"),
        (r#""args":{"a":[1,2}}"#, "wrong-bracket"),
        (r#""dur":2"#, "duplicate-key"),
    ] {
        let it = one(&format!(r#"{{"ph":"X","ts":1,"dur":1,{part}}}"#), &[kind]);
        assert_eq!(it.trace.flags(1).has(Flags::TEXT), kind != "duplicate-key", "{part}");
        assert!(!it.trace.flags(0).has(Flags::TEXT) && !it.trace.flags(2).has(Flags::TEXT));
    }
    let odd = decode(among(r#",{"ph":"X","ts":+.5,"dur":05.},"#)).unwrap();
    assert_eq!(problem(&odd, ProblemKind::OddNumber).count, 2);
    assert_eq!((odd.trace.ts_ns(1), odd.trace.dur_ns(1)), (500, 5_000));
}

#[test]
fn invalid_utf8_is_replaced() {
    let mut text = among(r#",{"ph":"X","ts":1,"dur":1,"name":"caf_"},"#).into_bytes();
    let at = text.iter().position(|byte| *byte == b'_').unwrap();
    text[at] = 0xe9;
    let it = decode(&text).unwrap();
    assert_eq!(ids(&it.problems), ["invalid-utf8"]);
    assert_eq!(problem(&it, ProblemKind::InvalidUtf8).first_offset, at as u64);
    assert_eq!(it.trace.name_text(1), "caf\u{fffd}");
    // Sound UTF-8 is no problem.
    file("[{\"ph\":\"i\",\"ts\":1,\"name\":\"caf\u{e9} \u{1f600}\"}]", 1, &[]);
    file("[\t{\"ph\":\"i\",\r\n\"ts\":1}\t]", 1, &[]);
}

#[test]
fn commas_between_events() {
    let sound = decode(among(" ,\n ")).unwrap();
    assert!(sound.problems.is_empty() && !sound.trace.layout.gaps_need_rewrite);
    for (text, kind) in [
        (among(" "), "missing-comma"),
        (among(",,"), "extra-comma"),
        (format!("[,{GOOD},{GOOD}]"), "extra-comma"),
        (format!("[{GOOD},{GOOD} , ]"), "trailing-comma"),
    ] {
        let it = file(&text, 2, &[kind]);
        assert!(it.trace.layout.gaps_need_rewrite, "{text}");
        assert!(!it.trace.layout.prefix_needs_rewrite && !it.trace.layout.suffix_needs_rewrite);
    }
}

#[test]
fn junk_between_events() {
    for junk in ["null", "12", "\"text\"", "[{\"ph\":\"X\"}]", "/* note */ 1", "nonsense"] {
        let it = decode(among(&format!(",{junk},"))).unwrap();
        assert_eq!(ids(&it.problems), ["junk-between-events"], "{junk}");
        assert_eq!(it.trace.len(), 2);
        assert!(it.trace.layout.gaps_need_rewrite);
    }
    file(&among(", // note\n"), 2, &["junk-between-events"]);
}

#[test]
fn damaged_events_are_stepped_over() {
    for bad in [r#"{"ph":"X","name":"a"b"}"#, r#"{"ph":"X""ts" 1}"#, r#"{"ph":"X","args":{"a":[1}"#]
    {
        let it = decode(among(&format!(",{bad},"))).unwrap();
        assert_eq!(ids(&it.problems)[..1], ["malformed-event"], "{bad}");
        assert_eq!(it.trace.len(), 2, "{bad}");
        assert!(it.trace.layout.gaps_need_rewrite);
    }
}

#[test]
fn the_frame() {
    let it = file(
        &format!("{{\"a\":1,,\"b\":\"x\ny\",\"traceEvents\":[{GOOD}]}}"),
        1,
        &["control-character", "extra-comma"],
    );
    assert!(it.trace.layout.prefix_needs_rewrite && !it.trace.layout.suffix_needs_rewrite);
    assert_eq!(it.trace.metadata.get("b"), Some(r#""x\ny""#));

    let it = file(
        &format!("{{\"traceEvents\":[{GOOD}],\"a\":NaN,}}"),
        1,
        &["non-finite-number", "trailing-comma"],
    );
    assert!(!it.trace.layout.prefix_needs_rewrite && it.trace.layout.suffix_needs_rewrite);
    assert_eq!(it.trace.metadata.get("a"), Some("\"NaN\""));

    file(&format!("{{nonsense,\"traceEvents\":[{GOOD}]}}"), 1, &["junk-in-frame"]);

    let it =
        file(&format!("{{\"traceEvents\":[{GOOD}],\"z\":0"), 1, &["truncated", "unclosed-object"]);
    assert!(it.trace.layout.end.is_none() && it.trace.layout.suffix_needs_rewrite);
    assert_eq!(it.trace.layout.lost_tail_bytes, 0);

    let it = file(&format!("{{\"traceEvents\":[{GOOD}}}"), 1, &["unclosed-array"]);
    assert!(it.trace.layout.suffix_needs_rewrite);

    let it = file(&format!("{{\"traceEvents\":[{GOOD}}},\"z\":1}}"), 1, &["wrong-bracket"]);
    assert!(it.trace.layout.suffix_needs_rewrite);
    assert_eq!(it.trace.layout.after.len(), 1);

    let it = file(
        &format!("{{\"traceEvents\":[{GOOD}],\"traceEvents\":[{GOOD}]}}"),
        2,
        &["second-event-array"],
    );
    assert!(it.trace.layout.suffix_needs_rewrite && it.trace.layout.gaps_need_rewrite);

    let it = file(
        &format!("{{\"traceEvents\":[{GOOD}]}} [{GOOD}] {{\"z\":1}} end"),
        2,
        &["concatenated", "trailing-text"],
    );
    assert_eq!((it.trace.layout.documents, it.trace.layout.trailing_bytes), (3, 3));
    assert_eq!(it.trace.layout.container, Container::Object);
    assert_eq!(it.trace.metadata.get("z"), Some("1"));
    assert!(it.trace.layout.after.is_empty() && !it.trace.layout.suffix_needs_rewrite);

    let it = file(&format!("{{\"z\":1}}\n[{GOOD}]"), 1, &["concatenated"]);
    assert_eq!(it.trace.layout.container, Container::Array);
    assert!(it.trace.layout.prefix_needs_rewrite && it.trace.layout.before.len() == 1);

    file(&format!("\u{feff}[{GOOD}]"), 1, &["bom"]);
    file(&format!("[{GOOD}"), 1, &["unclosed-array"]);
    file(&format!("[{GOOD},"), 1, &["unclosed-array"]);
}

#[test]
fn spans_and_frame_offsets_are_exact() {
    let text = format!(" {{\"é\" : [1] ,\"traceEvents\" : [ {GOOD} ,{GOOD}\n] , \"z\":2 }} ");
    let it = file(&text, 2, &[]);
    let at = |span: trace::ByteSpan| &text[span.start as usize..span.end() as usize];
    let layout = &it.trace.layout;
    assert!(it.trace.rows().all(|row| at(it.trace.span(row)) == GOOD));
    let array = layout.array.unwrap();
    assert!(text[..array.open as usize].ends_with('['));
    assert!(text[array.close.unwrap() as usize..].starts_with(']'));
    assert_eq!(&text[layout.end.unwrap() as usize..], " ");
    assert_eq!((at(layout.before[0].key_span), at(layout.before[0].value_span)), ("\"é\"", "[1]"));
    assert_eq!((at(layout.after[0].key_span), at(layout.after[0].value_span)), ("\"z\"", "2"));
    assert_eq!((layout.start, layout.file_len), (0, text.len() as u64));
}

#[test]
fn gzip_damage() {
    let text = among(",");
    let sound = gzip(text.as_bytes());
    let check = |file: &[u8], expected: &[&str], n: usize| {
        let it = decode(file).unwrap();
        assert_eq!(ids(&it.problems), expected);
        assert_eq!(it.trace.len(), n);
    };
    check(&sound, &[], 2);
    check(&[gzip(&text.as_bytes()[..90]), gzip(&text.as_bytes()[90..])].concat(), &[], 2);
    let flipped = |from_end: usize| {
        let mut file = sound.clone();
        let at = file.len() - from_end;
        file[at] ^= 1;
        file
    };
    check(&flipped(8), &["gzip-crc"], 2);
    check(&flipped(4), &["gzip-length"], 2);
    check(&[&sound[..], b"xyz"].concat(), &["gzip-trailing"], 2);
    check(&[&sound[..], &[0; 512]].concat(), &[], 2);
    check(&sound[..sound.len() - 4], &["gzip-truncated"], 2);
    let mut corrupt = gzip(&text.as_bytes()[..90]);
    corrupt.extend_from_slice(&sound[..10]);
    corrupt.push(0xff);
    check(&corrupt, &["gzip-corrupt", "truncated", "unclosed-array"], 1);
}

#[test]
fn too_many_streams() {
    let mut text = "[".to_owned();
    for stream in 0..65_540 {
        text += &format!(
            "{{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":1,\"dur\":1,\"args\":{{\"stream\":{stream}}}}},\n"
        );
    }
    text += "{}]";
    let it = file(&text, 65_541, &["empty-last-event", "too-many-streams"]);
    assert_eq!(problem(&it, ProblemKind::TooManyStreams).count, 5);
}

#[test]
fn excerpts_show_the_place() {
    let it = one(r#"{"ph":"X","ts":1,"dur":1,"args":{"x":"ok","y":NaN}}"#, &["non-finite-number"]);
    let excerpt = &problem(&it, ProblemKind::NonFinite).excerpt;
    assert!(excerpt.contains("NaN") && excerpt.chars().count() <= 120, "{excerpt}");
    let long = format!(r#"{{"ph":"X","ts":1,"name":"{}"}}"#, "x\n".repeat(1000));
    let it = decode(among(&format!(",{long},"))).unwrap();
    assert!(it.problems.iter().all(|it| it.excerpt.chars().count() <= 120));
    assert_eq!(problem(&it, ProblemKind::ControlCharacter).count, 1000);
}

#[test]
fn frames_of_python_keep_their_ids_and_launches_their_kernel() {
    let frame = r#"{"ph":"X","cat":"python_function","name":"a.py(1): f","pid":1,"tid":1,"ts":1,"dur":2,"args":{"Python parent id":7,"Python id":9,"Ev Idx":3}}"#;
    let launch = r#"{"ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","pid":1,"tid":1,"ts":1,"dur":2,"args":{"External id":5,"kernel":"void k<int>(int)","correlation":6}}"#;
    let trace = file(&format!("[{frame},{launch},{GOOD}]"), 3, &[]).trace;
    assert!(trace.flags(0).has(Flags::PYTHON_IDS));
    assert_eq!(trace.link(0).zip(trace.external(0)).map(|(own, caller)| own - caller), Some(2));
    assert!(!trace.flags(1).has(Flags::PYTHON_IDS));
    assert_eq!((trace.link(1), trace.external(1)), (Some(6), Some(5)));
    let kernel = trace.launched_kernel(1).map(|id| trace.strings.get(id));
    assert_eq!(kernel, Some("void k<int>(int)"));
    assert_eq!((trace.launched_kernel(0), trace.launched_kernel(2)), (None, None));
    // What has an id of its own is no frame, and neither is what ran on the GPU.
    let op = frame.replace("\"Ev Idx\":3", "\"External id\":3");
    let kernel = frame.replace("python_function", "kernel");
    let trace = file(&format!("[{op},{kernel}]"), 2, &[]).trace;
    assert_eq!((trace.link(0), trace.external(0), trace.link(1)), (None, Some(3), None));
}

#[test]
fn one_empty_object_ends_a_list_and_is_no_damage() {
    let ends = |text: &str| ids(&decode(text).unwrap().problems).join(",");
    assert_eq!(ends(r#"{"traceEvents":[{"ph":"M","name":"a","pid":1},{}]}"#), "empty-last-event");
    assert_eq!(ends(r#"{"traceEvents":[{"ph":"M","name":"a","pid":1},{},{}]}"#), "empty-event");
    assert_eq!(ends(r#"{"traceEvents":[{},{"ph":"M","name":"a","pid":1}]}"#), "empty-event");
    assert_eq!(ends(r#"{"traceEvents":[{}]}"#), "empty-event");
}
