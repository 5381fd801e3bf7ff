//! Any pieces of the same file give the same trace.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{decode, decode_in, digest};
use decode::FileKind;
use proptest::prelude::*;
use testkit::gzip;

/// Parts which make files that are nearly traces.
const PARTS: &[&str] = &[
    "{\"traceEvents\":[",
    "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0}], \"traceEvents\": [\n",
    "\"traceEvents\":[",
    "[",
    "]",
    "}",
    "]}",
    "],\"z\":{\"a\":[1,{}]}}",
    ",",
    ", ",
    ",\n    ",
    "\"key\":",
    "{\"ph\":\"X\",\"name\":\"k\",\"cat\":\"kernel\",\"pid\":0,\"tid\":7,\"ts\":1.25,\"dur\":2,\"args\":{\"stream\":7}}",
    "{\"ph\":\"X\",\"name\":\"\\ud83d\\ude00\",\"ts\":1e3,\"dur\":-2,\"args\":{\"a\":[1,2},\"b\":NaN}}",
    "{\"ph\": \"X\", \"name\": \"k\", \"cat\": \"kernel\", \"pid\": 0, \"tid\": 7, \"ts\": 1.25, \"dur\": 2, \"args\":  {\"stream\": 7, \"External id\": 12}}",
    "{\"ph\": \"X\", \"args\": null, \"args\": {\"correlation\": 4, \"grid\": [1, 2, 3]}, \"ts\": 0012, \"dur\": 1.2345}",
    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":\"p\",\"tid\":7,\"args\":{\"name\":\"stream\"}}",
    "{\"ph\":\"s\",\"id\":\"0x1f\",\"pid\":1,\"tid\":1,\"ts\":5,\"cat\":\"ac2g\",\"name\":\"ac2g\"}",
    "{\"ph\":\"C\",\"name\":\"é\u{1}\",\"ts\":\"5\",\"args\":{\"v\":1,}}",
    "{\"ph\":\"X\",\"name\":\"broken\"x\",\"ts\":1}",
    "{\"ph\":\"X\",\"args\":{\"open\":[1,",
    "{}",
    "null",
    "\"text\"",
    "// note\n",
    "/* note */",
    "\u{feff}",
    " ",
    "\\",
    "\"",
    "{\"",
    ":",
    "-",
];

fn files() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        8 => (0..PARTS.len()).prop_map(|n| PARTS[n].as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 1..4),
    ];
    let tail = proptest::collection::vec(part, 0..14);
    // Most begin as a trace does; otherwise the sniffer would have the only say.
    (0..6_usize, tail).prop_map(|(head, tail)| {
        let head = if head < 5 { PARTS[head % 4] } else { "" };
        [head.as_bytes(), &tail.concat()].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_pieces_give_the_same_trace(file in files(), sizes in proptest::collection::vec(1_usize..200, 1..20)) {
        let whole = digest(&decode(&file));
        prop_assert_eq!(&digest(&decode_in(&file, 1)), &whole);
        let mut decoder = decode::Decoder::new();
        let mut rest = &file[..];
        let mut refused = None;
        for size in sizes.iter().cycle() {
            let (piece, more) = rest.split_at(rest.len().min(*size));
            if let Err(error) = decoder.push(piece) {
                refused = Some(error);
                break;
            }
            rest = more;
            if rest.is_empty() {
                break;
            }
        }
        let result = match refused {
            Some(error) => Err(error),
            None => decoder.finish(),
        };
        prop_assert_eq!(&digest(&result), &whole);
    }

    #[test]
    fn gzip_gives_the_same_trace(file in files(), size in 1_usize..100) {
        prop_assert_eq!(digest(&decode_in(&gzip(&file), size)), digest(&decode(&file)));
    }
}

#[test]
fn a_trace_in_odd_pieces() {
    let mut files = vec![testkit::scene_gz("graph_capture"), testkit::scene_gz("epoch_times")];
    for name in ["torch_compile_triton", "mi300_sglang_decode_formal"] {
        files.extend(testkit::real_trace(name).map(|path| std::fs::read(path).unwrap()));
    }
    for (at, file) in files.iter().enumerate() {
        let whole = digest(&decode(file));
        for size in [1, 61, 4096] {
            assert!(digest(&decode_in(file, size)) == whole, "file {at} in pieces of {size}");
        }
    }
}

#[test]
fn a_cut_at_any_byte_keeps_every_whole_event() {
    let event = |n: usize| {
        format!(
            "{{\"ph\":\"X\",\"name\":\"k{n}\",\"pid\":0,\"tid\":7,\"ts\":{n}.5,\"dur\":1,\"args\":{{\"a\":[1,{{\"b\":\"]\"}}]}}}}"
        )
    };
    let events: Vec<_> = (0..6).map(event).collect();
    for (head, tail) in
        [("{\"a\":[{}],\"traceEvents\":[", "],\"z\":{\"y\":\"x\"}}"), ("[\n", "\n]")]
    {
        let file = format!("{head}{}{tail}", events.join(",\n"));
        for len in 0..=file.len() {
            let cut = &file[..len];
            let n = events.iter().filter(|event| cut.contains(event.as_str())).count();
            for cut in [cut.as_bytes().to_vec(), gzip(cut.as_bytes())] {
                match decode(&cut) {
                    Ok(it) => {
                        assert_eq!(it.trace.len(), n, "{len}");
                        assert_eq!(it.problems.is_empty(), it.trace.layout.end.is_some(), "{len}");
                        let whole = it.trace.rows().map(|row| it.trace.span(row).end()).max();
                        let lost = it.trace.layout.lost_tail_bytes;
                        assert!(whole.unwrap_or_default() + lost <= len as u64);
                    }
                    Err(error) => {
                        // Nothing says yet that this array, or object, is one of events.
                        assert!(n == 0 && (head.starts_with('[') || len < head.len()), "{len}");
                        let (cut, empty) = (FileKind::CutBeforeEvents, FileKind::Empty);
                        assert!(error.kind == if len == 0 { empty } else { cut }, "{len} {error}");
                    }
                }
            }
        }
    }
}
