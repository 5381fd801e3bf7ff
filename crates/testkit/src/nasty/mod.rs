//! Small traces, each wrong in one way: written here, so that they are under version control and can be read.
//!
//! The names are those of the defects that real files showed; where the corpus of real traces is next to the checkout, it
//! has a file of the same name, and the same expectations hold for both.

use crate::{Kineto, KinetoEvent, event, gzip};

/// A file that is wrong in one way.
pub struct Nasty {
    /// The name of the file.
    pub name: &'static str,
    /// What is wrong with it.
    pub defect: &'static str,
    make: fn() -> Vec<u8>,
}

impl Nasty {
    /// The file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        (self.make)()
    }
}

const fn nasty(name: &'static str, defect: &'static str, make: fn() -> Vec<u8>) -> Nasty {
    Nasty { name, defect, make }
}

/// Python's notation, not JSON: the one file that no JSON reader can read.
pub const UNREADABLE: &str = "49_single_quotes.json";

/// Every defect that a file of the corpus shows, one file each.
pub const NASTY: &[Nasty] = &[
    nasty("01_pdl_overlap.json", "every second kernel overlaps its successor by 1.5 us", || {
        let mut trace = on_stream_7();
        for n in 0..12 {
            trace.push(kernel(n, 100 + 10 * n, if n % 2 == 0 { 11_500 } else { 9_000 }));
        }
        text(&trace)
    }),
    nasty("02_rocm_huge_dur.json", "a duration of 20 ms crosses 900 kernels of 25 us", || {
        let mut trace = on_stream_7();
        trace.push(kernel(0, 1_000, 20_000_000));
        (1..901).for_each(|n| trace.push(kernel(n, 980 + 30 * n, 25_000)));
        text(&trace)
    }),
    nasty("03_zero_dur_same_ts.json", "slices without a length where others start and end", || {
        let mut trace = on_stream_7();
        for (n, (at, us)) in (1..).zip([(10, 0), (10, 0), (10, 5), (15, 0), (15, 5), (12, 0)]) {
            trace.push(kernel(n, at, us * 1_000));
        }
        text(&trace)
    }),
    nasty(
        "05_big_ts_subns.json",
        "kernels without a gap at 1.7e15 us, where doubles are 0.25 us apart",
        || {
            let mut trace = on_stream_7();
            for n in 0..40 {
                let slice = event("X", "kernel", &format!("k{n}")).on(0, 7);
                let slice = slice.at_ns(1_700_000_000_123_450_000 + 1_100 * n).lasting_ns(1_100);
                trace.push(slice.arg("correlation", n));
            }
            text(&trace)
        },
    ),
    nasty("07_flows_moved.json", "the arrow to a kernel that must move to another lane", || {
        let mut trace = on_stream_7();
        for n in 1..=2 {
            trace.push(launch(n, 5 * (n - 1)));
            trace.push(kernel(n, 15 + 5 * n, 10_000));
            trace.push(arrow("s", n).on(1, 1).at_ns(5_000 * (n - 1)));
            trace.push(arrow("f", n).member("bp", "e").on(0, 7).at_ns(15_000 + 5_000 * n));
        }
        text(&trace)
    }),
    nasty("09_async.json", "async slices of one name that overlap", || {
        let mut trace = Kineto::new();
        for (ph, id, at) in
            [("b", "0x1", 0), ("b", "0x2", 5), ("n", "0x1", 6), ("e", "0x1", 10), ("e", "0x2", 15)]
        {
            trace.push(event(ph, "request", "A").member("id", id).on(1, 1).at_ns(at * 1_000));
        }
        trace.push(event("X", "kernel", "x").on(1, 1).at_ns(1_000).lasting_ns(2_000));
        text(&trace)
    }),
    nasty("10_counters_instants.json", "counters, and instants of the three scopes", || {
        let mut trace = Kineto::new();
        for n in 0..5 {
            let counter = event("C", "", "memory").on(1, 1).at_ns(1_000 * n);
            trace.push(counter.arg("allocated", 10 * n).arg("reserved", 20 * n));
        }
        for (scope, pid, at) in [("t", "1", 3), ("g", "\"Traces\"", 2), ("p", "1", 4)] {
            let instant = event("i", "", "mark").member("s", scope).raw("pid", pid);
            trace.push(instant.member("tid", 1).at_ns(1_000 * at));
        }
        trace.push(event("X", "kernel", "a").on(1, 1).at_ns(2_000).lasting_ns(2_000));
        text(&trace)
    }),
    nasty(
        "11_python_cross.json",
        "20 frames of Python, each of which crosses the next three",
        || {
            let mut trace = Kineto::new();
            trace.push(
                event("M", "", "thread_name").on(100, 100).arg("name", "thread 100 (python)"),
            );
            for n in 0..20 {
                let frame = event("X", "python_function", &format!("f{n}.py(1): run")).on(100, 100);
                trace.push(frame.at_ns(10_000 * n).lasting_ns(35_000).arg("Python id", n + 1));
            }
            text(&trace)
        },
    ),
    nasty("13_truncated_mid_event.json", "the file ends inside an event", || {
        let whole = text(&thirty());
        let cut = start_of(&whole, "k20") + 57;
        whole[..cut].to_vec()
    }),
    nasty("14_trailing_comma.json", "a comma after the last event", || {
        replaced(&thirty(), "}}\n  ]", "}},\n  ]")
    }),
    nasty("15_nan_inf_args.json", "NaN and infinities among the arguments", || {
        document(&[
            r#"{"ph":"X","name":"a","cat":"kernel","pid":0,"tid":7,"ts":1,"dur":5,"args":{"occupancy":NaN,"registers per thread":1}}"#,
            r#"{"ph":"X","name":"b","cat":"kernel","pid":0,"tid":7,"ts":3,"dur":5,"args":{"warps per SM":Infinity,"registers per thread":1}}"#,
            r#"{"ph":"X","name":"c","cat":"kernel","pid":0,"tid":7,"ts":30,"dur":5,"args":{"x":-Infinity}}"#,
        ])
    }),
    nasty("17_invalid_utf8.json", "a name in Latin-1 with broken UTF-8 behind it", || {
        let [before, after] = [
            r#"{"traceEvents":[{"ph":"X","name":"caf"#,
            r#"","pid":0,"tid":7,"ts":1,"dur":5},{"ph":"X","name":"b","pid":0,"tid":7,"ts":3,"dur":5}]}"#,
        ];
        [before.as_bytes(), b"\xe9 \xff\xfe", after.as_bytes()].concat()
    }),
    nasty("18_bom.json", "a byte order mark", || {
        [b"\xef\xbb\xbf".as_slice(), &text(&thirty())].concat()
    }),
    nasty("19_concatenated.json", "two documents in one file", || {
        [text(&thirty()), text(&thirty())].concat()
    }),
    nasty("20_empty.json", "no events", || text(&Kineto::new())),
    nasty("23_bare_array_unclosed.json", "an array without its end, as the format allows", || {
        let whole = text(&thirty());
        let (open, end) = (at(&whole, "["), whole.len() - "\n  ]\n}\n".len());
        whole[open..end].to_vec()
    }),
    nasty("24_no_dur.json", "a slice without a duration", || {
        document(&[
            r#"{"ph":"X","name":"a","cat":"kernel","pid":0,"tid":7,"ts":0,"dur":10}"#,
            r#"{"ph":"X","name":"endless","pid":0,"tid":7,"ts":5}"#,
            r#"{"ph":"X","name":"b","cat":"kernel","pid":0,"tid":7,"ts":20,"dur":5}"#,
        ])
    }),
    nasty("26_dup_lane.json", "the tids that a plain rule would give a lane are taken", || {
        let mut trace = on_stream_7();
        trace.push(event("M", "", "thread_name").on(0, 7_001).arg("name", "stream 7001"));
        trace.push(kernel(1, 0, 10_000));
        trace.push(kernel(2, 5, 20_000));
        trace.push(event("X", "kernel", "k3").on(0, 7_001).at_ns(6_000).lasting_ns(4_000));
        trace.push(event("X", "kernel", "k4").on(0, "7 lane 1").at_ns(8_000).lasting_ns(30_000));
        text(&trace)
    }),
    nasty("28_neg_dur_ts.json", "a negative duration, and a negative time", || {
        document(&[
            r#"{"ph":"X","name":"neg","cat":"kernel","pid":0,"tid":7,"ts":10,"dur":-5}"#,
            r#"{"ph":"X","name":"negts","cat":"kernel","pid":0,"tid":7,"ts":-20,"dur":5}"#,
            r#"{"ph":"X","name":"ok","cat":"kernel","pid":0,"tid":7,"ts":30,"dur":5}"#,
        ])
    }),
    nasty(
        "29_surrogate.json",
        "names with escapes of a surrogate pair, and of half of one",
        || {
            document(&[
                r#"{"ph":"X","name":"\ud83d\ude00 step","pid":0,"tid":7,"ts":1,"dur":5}"#,
                r#"{"ph":"X","name":"lone \ud83d","pid":0,"tid":7,"ts":10,"dur":5}"#,
                r#"{"ph":"X","name":"ok","pid":0,"tid":7,"ts":20,"dur":5}"#,
            ])
        },
    ),
    nasty(
        "32_same_tid_two_pids.json",
        "the same tid in two processes, as a number and as text",
        || {
            document(&[
                r#"{"ph":"X","name":"a","cat":"kernel","pid":0,"tid":7,"ts":0,"dur":10}"#,
                r#"{"ph":"X","name":"b","cat":"kernel","pid":1,"tid":7,"ts":5,"dur":10}"#,
                r#"{"ph":"X","name":"c","cat":"kernel","pid":0,"tid":"s","ts":0,"dur":10}"#,
                r#"{"ph":"X","name":"d","cat":"kernel","pid":1,"tid":"s","ts":5,"dur":10}"#,
            ])
        },
    ),
    nasty("33_sort_order.json", "children before their parent, all at one time", || {
        document(&[
            r#"{"ph":"X","name":"child","cat":"kernel","pid":0,"tid":7,"ts":0,"dur":5}"#,
            r#"{"ph":"X","name":"parent","cat":"kernel","pid":0,"tid":7,"ts":0,"dur":10}"#,
            r#"{"ph":"X","name":"grandchild","cat":"kernel","pid":0,"tid":7,"ts":0,"dur":2}"#,
        ])
    }),
    nasty("34_reversed.json", "the last event first", || {
        let mut trace = Kineto::new();
        (0..50).rev().for_each(|n| trace.push(kernel(n, 10 * n, 5_000)));
        text(&trace)
    }),
    nasty("35_gz.json.gz", "a gzip file", || gzip(&text(&thirty()))),
    nasty("37_gz_truncated.json.gz", "a gzip file that is cut short", || {
        let whole = text(&thirty());
        // One stored block, so that the place of the cut is exact: inside the event of k6.
        let cut = start_of(&whole, "k6") + 22;
        let len = whole.len() as u16;
        let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
        file.extend(len.to_le_bytes());
        file.extend((!len).to_le_bytes());
        file.extend(&whole[..cut]);
        file
    }),
    nasty("38_meta_only_end.json", "metadata after the slices, members after the events", || {
        let mut trace = Kineto::new()
            .with_after("deviceProperties", r#"[{"id": 0, "name": "Synthetic device"}]"#)
            .with_after("baseTimeNanoseconds", "1695835535000000000")
            .with_after("distributedInfo", r#"{"rank": 3}"#)
            .with_after("with_stack", "1")
            .with_after("traceName", "\"run.json\"");
        trace.push(kernel(1, 0, 10_000));
        trace.push(kernel(2, 5, 10_000));
        head(&mut trace);
        trace.push(event("M", "", "thread_name").on(0, 7).arg("name", "stream 7 again"));
        text(&trace)
    }),
    nasty("39_empty_obj_events.json", "empty objects around the only event", || {
        document(&["{}", r#"{"ph":"X","name":"a","pid":0,"tid":7,"ts":1,"dur":5}"#, "{}"])
    }),
    nasty("42_dup_keys.json", "a key twice in an event: the last value counts", || {
        document(&[
            r#"{"dur":5,"ts":1,"tid":7,"pid":0,"name":"x","ph":"X","dur":6}"#,
            r#"{"ph":"X","name":"y","pid":0,"tid":7,"ts":10,"dur":5}"#,
        ])
    }),
    nasty(
        "43_leading_ws_key_after.json",
        "blank lines first, brackets in strings, a member after the events",
        || {
            let events = r#"{"ph":"X","name":"a}]","pid":0,"tid":7,"ts":1,"dur":5} , {"ph":"X","name":"y","pid":0,"tid":7,"ts":10,"dur":5}"#;
            format!(r#"{}{{ "a":{{"b":"]}}{{["}},"traceEvents" : [ {events} ], "z":[1,[2,{{"q":"\"]"}}]] }}"#, " \n\n").into_bytes()
        },
    ),
    nasty("45_surrogate_in_args.json", "an escaped surrogate pair among the arguments", || {
        document(&[
            r#"{"ph":"X","name":"a","pid":0,"tid":7,"ts":1,"dur":5,"args":{"k":"\ud83d\ude00","after":1}}"#,
            r#"{"ph":"X","name":"b","pid":0,"tid":7,"ts":8,"dur":5}"#,
        ])
    }),
    nasty("47_ctrl_toplevel.json", "a line end inside a string of the frame", || {
        let events = r#"{"ph":"X","name":"a","pid":0,"tid":7,"ts":1,"dur":5},{"ph":"X","name":"b","pid":0,"tid":7,"ts":8,"dur":5}"#;
        format!("{{\"traceName\":\"a\nb\",\"traceEvents\":[{events}]}}").into_bytes()
    }),
    nasty(UNREADABLE, "what Python prints", || {
        b"{'traceEvents':[{'ph':'X','name':'a','pid':0,'tid':7,'ts':1,'dur':5}]}".to_vec()
    }),
    nasty("50_exp_ts.json", "times with an exponent", || {
        document(&[
            r#"{"ph":"X","name":"a","pid":0,"tid":7,"ts":1.5e3,"dur":5}"#,
            r#"{"ph":"X","name":"b","pid":0,"tid":7,"ts":1.6e3,"dur":5.0e0}"#,
        ])
    }),
    nasty("52_flow_before_slice.json", "an arrow that ends a nanosecond before its slice", || {
        let mut trace = Kineto::new();
        trace.push(arrow("s", 1).on(1, 1).at_ns(0));
        trace.push(launch(1, 0));
        trace.push(arrow("f", 1).member("bp", "e").on(0, 7).at_ns(19_999));
        trace.push(kernel(1, 20, 5_000));
        text(&trace)
    }),
    nasty("54_dup_flow_id.json", "two arrows of one id", || {
        let mut trace = Kineto::new();
        for n in [1, 2] {
            trace.push(launch(n, 5 * (n - 1)));
        }
        for at in [0, 5_000] {
            trace.push(arrow("s", 1).on(1, 1).at_ns(at));
        }
        trace.push(kernel(1, 20, 5_000));
        trace.push(arrow("f", 1).member("bp", "e").on(0, 7).at_ns(20_000));
        text(&trace)
    }),
    nasty("55_text_after_close.json", "text after the document", || {
        let mut file = text(&thirty());
        file.truncate(file.len() - 1);
        file.extend(b"\n\0\0garbage");
        file
    }),
];

/// What the model of Perfetto's importer, or the repair, once got wrong.
pub const COUNTEREXAMPLES: &[Nasty] = &[
    nasty("60_sort_index_string.json", "the order of a thread as text", || {
        document(&[
            A_SLICE,
            r#"{"ph":"M","name":"thread_sort_index","pid":1,"tid":1,"args":{"sort_index":"7"}}"#,
        ])
    }),
    nasty("61_v2_duplicate_flow_out.json", "two slices start the same arrow of version 2", || {
        document(&[
            r#"{"ph":"X","name":"a","cat":"c","pid":1,"tid":1,"ts":0,"dur":5,"bind_id":"0x1","flow_out":true}"#,
            r#"{"ph":"X","name":"b","cat":"c","pid":1,"tid":1,"ts":10,"dur":5,"bind_id":"0x1","flow_out":true}"#,
            r#"{"ph":"X","name":"c","cat":"c","pid":1,"tid":1,"ts":20,"dur":5,"bind_id":"0x1","flow_in":true}"#,
        ])
    }),
    nasty("62_phase_t.json", "an event of the phase T", || {
        document(&[A_SLICE, r#"{"ph":"T","name":"odd","pid":1,"tid":1,"ts":1,"args":{"a":1}}"#])
    }),
    nasty("63_unnamed_begin.json", "a begin without a name and without an end", || {
        document(&[
            r#"{"ph":"B","name":"named","pid":1,"tid":1,"ts":1}"#,
            r#"{"ph":"B","pid":1,"tid":1,"ts":2}"#,
            r#"{"ph":"E","name":"named","pid":1,"tid":1,"ts":3}"#,
            r#"{"ph":"X","name":"k","cat":"c","pid":1,"tid":1,"ts":10,"dur":2}"#,
        ])
    }),
    nasty("64_outlier_ts0.json", "one event at 0 next to times of 1.7e15 us", || {
        let mut trace = Kineto::new();
        trace.push(event("X", "c", "z").on(1, 9).at_ns(0).lasting_ns(1_000));
        for n in 0..8 {
            let slice = event("X", "kernel", &format!("k{n}")).on(0, 7);
            trace.push(slice.at_ns(1_712_000_000_000_000_003 + 100 * n).lasting_ns(100));
        }
        text(&trace)
    }),
    nasty(
        "66_set_aside_holds_base.json",
        "the first time belongs to an event that is set aside",
        || {
            document(&[
                r#"{"ph":"t","id":"0x5","name":"w","cat":"w","pid":77,"tid":1,"ts":151.411}"#,
                r#"{"ph":"X","cat":"python_function","name":"s","pid":4294967306,"tid":7,"ts":1712000000000000.013,"dur":1.000,"args":{"k":[1,{"a":null}]}}"#,
            ])
        },
    ),
    nasty(
        "67_flow_before_zero_dur_slice.json",
        "an arrow to a slice without a length that comes later",
        || {
            document(&[
                r#"{"ph":"X","name":"launch","cat":"c","pid":1,"tid":1,"ts":0,"dur":5}"#,
                r#"{"ph":"s","id":1,"cat":"ac2g","name":"ac2g","pid":1,"tid":1,"ts":0}"#,
                r#"{"ph":"f","bp":"e","id":1,"cat":"ac2g","name":"ac2g","pid":0,"tid":7,"ts":20}"#,
                r#"{"ph":"X","name":"before","cat":"kernel","pid":0,"tid":7,"ts":10,"dur":5}"#,
                r#"{"ph":"X","name":"k0","cat":"kernel","pid":0,"tid":7,"ts":20,"dur":0}"#,
            ])
        },
    ),
    nasty("68_sort_index_1e3.json", "the order of a thread with an exponent", || {
        document(&[
            A_SLICE,
            r#"{"ph":"M","name":"thread_sort_index","pid":1,"tid":1,"args":{"sort_index":1e3}}"#,
        ])
    }),
    nasty(
        "69_begins_and_an_end.json",
        "an end whose begin is far from the top of the stack",
        || {
            document(&[
                r#"{"ph":"E","pid":10,"tid":7,"ts":2000263.049,"name":"q2"}"#,
                r#"{"ph":"B","pid":10,"tid":7,"ts":2000144.751}"#,
                r#"{"ph":"B","pid":10,"tid":7,"ts":2000279.519,"name":"q0"}"#,
                r#"{"ph":"B","pid":10,"tid":7,"ts":2000123.920,"name":"q2"}"#,
            ])
        },
    ),
];

const A_SLICE: &str = r#"{"ph":"X","name":"a","cat":"c","pid":1,"tid":1,"ts":0,"dur":5}"#;

fn text(trace: &Kineto) -> Vec<u8> {
    trace.text().into_bytes()
}

/// Where `part` begins in a text that holds it.
fn at(text: &[u8], part: &str) -> usize {
    text.windows(part.len()).position(|window| window == part.as_bytes()).unwrap_or(text.len())
}

/// Where the event of the kernel called `name` begins.
fn start_of(text: &[u8], name: &str) -> usize {
    at(text, &format!("{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{name}\""))
}

fn replaced(trace: &Kineto, from: &str, to: &str) -> Vec<u8> {
    trace.text().replace(from, to).into_bytes()
}

/// A document of events that are written as they are.
fn document(events: &[&str]) -> Vec<u8> {
    format!("{{\"traceEvents\":[{}]}}", events.join(",")).into_bytes()
}

/// The names of a process and of its stream 7.
fn head(trace: &mut Kineto) {
    trace.push(event("M", "", "process_name").on(0, 0).arg("name", "python"));
    trace.push(event("M", "", "process_labels").on(0, 0).arg("labels", "GPU 0"));
    trace.push(event("M", "", "process_sort_index").on(0, 0).arg("sort_index", 5_000_000));
    trace.push(event("M", "", "thread_name").on(0, 7).arg("name", "stream 7 "));
    trace.push(event("M", "", "thread_sort_index").on(0, 7).arg("sort_index", 7));
}

fn on_stream_7() -> Kineto {
    let mut trace = Kineto::new().with("schemaVersion", "1");
    head(&mut trace);
    trace
}

/// A sound frame around kernels that cross: 5 names and 30 slices.
fn thirty() -> Kineto {
    let mut trace = on_stream_7();
    (0..30).for_each(|n| trace.push(kernel(n, 100 + 10 * n, 12_000)));
    trace
}

fn kernel(n: i64, at_us: i64, ns: i64) -> KinetoEvent {
    let slice = event("X", "kernel", &format!("k{n}")).on(0, 7);
    let slice = slice.at_ns(1_000 * at_us).lasting_ns(ns).arg("registers per thread", 32);
    slice.arg("correlation", n).arg("stream", 7)
}

fn launch(n: i64, at_us: i64) -> KinetoEvent {
    let call = event("X", "cuda_runtime", "cudaLaunchKernel").on(1, 1);
    call.at_ns(1_000 * at_us).lasting_ns(4_000).arg("correlation", n)
}

fn arrow(ph: &str, id: i64) -> KinetoEvent {
    event(ph, "ac2g", "ac2g").member("id", id)
}
