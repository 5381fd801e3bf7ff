//! What is no trace is named for what it is.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;

use decode::FileKind;
use trace::Producer;

#[test]
fn the_files_of_the_corpus() {
    if let Some(folder) = testkit::shared("corpus/not-traces") {
        for (name, kind) in [
            ("execution_details.json", FileKind::ExecutionDetails),
            ("execution_trace.json.gz", FileKind::ExecutionTrace),
            ("memory_timeline.raw.gz", FileKind::MemoryTimeline),
        ] {
            let file = fs::read(folder.join(name)).unwrap();
            for size in [1 << 20, 7] {
                assert_eq!(common::decode_in(&file, size).unwrap_err().kind, kind, "{name}");
            }
        }
    }
    if let Some(folder) = testkit::shared("corpus/snapshots") {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|it| it == "gz") {
                let error = common::decode(fs::read(&path).unwrap()).unwrap_err();
                assert_eq!(error.kind, FileKind::MemorySnapshot, "{}", path.display());
            }
        }
    }
}

#[test]
fn every_kind_has_a_sample_and_is_named_in_any_form() {
    let samples = testkit::kinds();
    for (id, file) in &samples {
        // (A file that is damaged or compressed twice is another one when it is compressed again.)
        let compressed = (!id.ends_with("-gzip")).then(|| testkit::gzip(file));
        for file in std::iter::once(file).chain(&compressed) {
            let error = common::decode(file).unwrap_err();
            assert_eq!(error.kind.id(), *id, "{}", file.escape_ascii());
            assert!(error.to_string().contains("not a trace"));
            assert_eq!(common::decode_in(file, 1).unwrap_err(), error);
        }
    }
    for kind in FileKind::ALL {
        assert!(samples.iter().any(|(id, _)| *id == kind.id()), "{kind:?} has no sample");
    }
    assert_eq!(common::decode(b"\x1f\x8b\x08").unwrap_err().kind, FileKind::DamagedGzip);
}

#[test]
fn a_large_file_is_not_read_to_its_end_to_be_named() {
    let head = "{\"segments\": [{\"address\": 1, \"total_size\": 2, \"segment_type\": \"small\"}";
    for head in [head, "{\"rocprofiler-sdk-tool\": [{\"metadata\": {}}"] {
        let mut decoder = decode::Decoder::new();
        decoder.push(head.as_bytes()).unwrap();
        let more = ", {\"address\": 1}".repeat(200);
        assert!(decoder.push(more.as_bytes()).is_err(), "{head}");
    }
}

#[test]
fn a_trace_has_its_producer() {
    for (program, text) in testkit::TRACES {
        let producer = match *program {
            "torch" => Producer::Torch,
            "onnxruntime" => Producer::OnnxRuntime,
            "xla" => Producer::Xla,
            other => panic!("a new producer, {other}"),
        };
        for file in [text.as_bytes().to_vec(), testkit::gzip(text.as_bytes())] {
            for size in [1, 1 << 20] {
                let decoded = common::decode_in(&file, size).unwrap();
                assert_eq!(decoded.trace.producer, producer, "{text}");
            }
        }
    }
}

#[test]
fn weird_but_valid_ones_are_traces() {
    for (file, n) in [
        ("[]", 0),
        ("{\"traceEvents\":[]}", 0),
        ("{\"traceEvents\":[{}]}", 1),
        ("{\"traceEvents\":[{\"name\":\"no phase\"}],\"segments\":[]}", 1),
        ("[{\"ph\":\"Z\"}]", 1),
        ("{\"traceEvents\":[{\"ph\":\"X\"", 0),
        ("[{\"name\":1,\"ph\":\"X\"},", 1),
    ] {
        assert_eq!(common::decode(file).unwrap().trace.len(), n, "{file}");
    }
}
