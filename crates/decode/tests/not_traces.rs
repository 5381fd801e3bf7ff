//! What is no trace is named for what it is.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;

use decode::FileKind;

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
fn small_ones_of_our_own() {
    for (file, kind) in [
        (&b""[..], FileKind::Empty),
        (b" \n\n", FileKind::Empty),
        (b"\x80\x05\x95\x10\x00", FileKind::Pickle),
        (b"PK\x03\x04\x14\x00archive/data.pkl", FileKind::TorchSave),
        (b"<!doctype html><html><head><title>Sign in</title>", FileKind::Html),
        (b"{\"rocprofiler-sdk-tool\": [{\"metadata\": {}}]}", FileKind::Rocprofiler),
        (
            b"{\"version\":2,\"generated_from\":[],\"stages\":{},\"global\":{\"kernels\":{}}}",
            FileKind::KernelMap,
        ),
        (b"{\"schema\":\"1.1.0-chakra.0.0.4\",\"nodes\":[{\"id\":1}]}", FileKind::ExecutionTrace),
        (b"{\"segments\":[],\"device_traces\":[[]]", FileKind::MemorySnapshot),
        (
            b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}",
            FileKind::Speedscope,
        ),
        (b"{\"nodes\":[],\"samples\":[1],\"timeDeltas\":[1]}", FileKind::CpuProfile),
        (b"{\"a\": 1}", FileKind::JsonWithoutEvents),
        (b"{\"traceEvents\": null}", FileKind::JsonWithoutEvents),
        (b"{\"schemaVersion\": 1, \"devi", FileKind::CutBeforeEvents),
        (b"[[-1, 1, 512, 7], [-1, 1, 512, 7]]", FileKind::MemoryTimeline),
        (b"[{\"file\": \"a.json.gz\"}]", FileKind::ExecutionDetails),
        (b"[1, 2]", FileKind::JsonWithoutEvents),
        (b"{'traceEvents': [{'ph': 'X'}]}", FileKind::PythonRepr),
        (b"\xff\xfe{\x00\"\x00", FileKind::Utf16),
        (b"CUDA error: out of memory", FileKind::Text),
        (
            b"[\n  { \"count\" : 1 }\n, { \"name\" : \"c\", \"timeMs\" : 0.1, \"averageMs\" : 0.1 }\n]",
            FileKind::TensorRtProfile,
        ),
        (b"[{ \"startEnqMs\" : 2.6, \"latencyMs\" : 0.8 }]", FileKind::TensorRtTimes),
        (b"{\"Layers\": [\"Conv_0\"], \"Bindings\": []}", FileKind::TensorRtLayers),
        (
            b"[{\"Name\": \"A100\", \"ComputeCapability\": [8, 0], \"TotalMemory\": 1}]",
            FileKind::TensorRtSide,
        ),
        (b"{\"performance_summary\": {\"Throughput\": 1.5}}", FileKind::TensorRtSide),
        (b"{\"Type\":79,\"CudaEvent\":{\"startNs\":\"1\"}}\n{\"Type\":59}", FileKind::NsysJson),
        (b"{\"$schema\": \"http://json-schema.org/draft-07/schema#\"}", FileKind::JsonSchema),
    ] {
        for file in [file.to_vec(), common::gzip(file)] {
            // An empty file in gzip is an empty file.
            let error = common::decode(&file).unwrap_err();
            assert_eq!(error.kind, kind, "{}", file.escape_ascii());
            assert!(error.to_string().contains("not a trace"));
            assert_eq!(common::decode_in(&file, 1).unwrap_err(), error);
        }
    }
    let twice = common::gzip(&common::gzip(b"{}"));
    assert_eq!(common::decode(&twice).unwrap_err().kind, FileKind::NestedGzip);
    assert_eq!(common::decode(&twice[..10]).unwrap_err().kind, FileKind::DamagedGzip);
    assert_eq!(common::decode(b"\x1f\x8b\x08").unwrap_err().kind, FileKind::DamagedGzip);
    // The output of str() in a browser's console, a compressed file in text mode...
    assert_eq!(common::decode(b"\x1f\xef\xbf\xbd\x08").unwrap_err().kind, FileKind::Binary);
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
