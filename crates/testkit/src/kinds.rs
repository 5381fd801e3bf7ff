//! Tiny files of every kind that the entrance recognises.

/// Files that are no traces: the id of the kind, and the bytes. Every kind has one at least.
#[must_use]
pub fn kinds() -> Vec<(&'static str, Vec<u8>)> {
    let mut all: Vec<(&str, Vec<u8>)> =
        BYTES.iter().chain(TEXTS).chain(JSON).map(|(id, bytes)| (*id, bytes.to_vec())).collect();
    let trace = b"{\"traceEvents\":[]}";
    all.push(("nested-gzip", crate::gzip(&crate::gzip(trace))));
    all.push(("damaged-gzip", crate::gzip(&crate::gzip(trace))[..10].to_vec()));
    all.push(("zip", zip("traces/")));
    all.push(("zip", zip("a.json/b.txt")));
    all.push(("zip-of-json", zip("rank0.json")));
    all.push(("zip-of-json", zip("run/run-TP-0.trace.json.gz")));
    let mut tar = b"rank0.json".to_vec();
    tar.resize(257, 0);
    tar.extend(b"ustar\x0000");
    all.push(("tar", tar));
    all
}

/// Tiny traces: the program that writes such ones, and the text.
pub const TRACES: &[(&str, &str)] = &[
    (
        "torch",
        "{\"schemaVersion\": 1, \"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"model_run\"}]}",
    ),
    ("torch", "{\"traceEvents\":[{\"name\":\"no phase\"}],\"segments\":[]}"),
    ("torch", "{\"segments\":[],\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\"}]}"),
    ("torch", "\n\n[ {\"ph\":\"X\",\"cat\":\"Session\",\"name\":\"request\"}]"),
    (
        "onnxruntime",
        "[\n{\"cat\" : \"Session\",\"pid\" :7,\"tid\" :7,\"dur\" :5,\"ts\" :1,\"ph\" : \"X\",\"name\" :\"model_loading_uri\",\"args\" : {}}\n]",
    ),
    (
        "onnxruntime",
        "[{\"ph\":\"X\",\"name\":\"model_run\",\"cat\":\"Session\",\"ts\":1,\"dur\":2}]",
    ),
    (
        "xla",
        "{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},\"traceEvents\":[{\"ph\":\"M\",\"pid\":701,\
         \"name\":\"process_name\",\"args\":{\"name\":\"/host:CPU\"}},{}]}",
    ),
    (
        "xla",
        "{ \"traceEvents\": [ {\"args\": {\"name\": \"/device:GPU:0\"}, \"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1}]}",
    ),
];

/// Files with a signature.
const BYTES: &[(&str, &[u8])] = &[
    ("pickle", b"\x80\x04\x95\x00"),
    ("pickle", b"\x80\x05\x95\x10\x00"),
    ("pickle", b"(dp0\nS'segments'"),
    ("torch-save", b"PK\x03\x04....archive/data.pkl"),
    ("torch-save", b"PK\x03\x04\x14\x00archive/data.pkl"),
    ("zip", b"PK\x03\x04....trace.json"),
    ("zip", b"PK\x05\x06\0\0\0\0"),
    ("zstd", b"\x28\xb5\x2f\xfd"),
    ("xz", b"\xfd7zXZ\0"),
    ("bzip2", b"BZh91AY&SY"),
    ("lz4", b"\x04\x22\x4d\x18"),
    ("utf-16", b"\xff\xfe{\0\"\0"),
    ("utf-16", b"\xfe\xff\0{\0\""),
    ("utf-16", b"{\0\"\0"),
    ("utf-16", b"\0[\0\""),
    ("sqlite", b"SQLite format 3\0"),
    ("nsys-sqlite", b"SQLite format 3\0..CREATE TABLE TARGET_INFO_GPU("),
    ("rocpd", b"SQLite format 3\0..CREATE TABLE rocpd_string_0("),
    ("nsys-rep", b"NVIDIA Tegra Profiler Report\0\x01"),
    ("xplane", b"\x0a\x94\x07\x12\x0d/device:GPU:0\x1a"),
    ("xplane", b"\x0a\x14\x08\x02\x12\x09/host:CPU\x1a"),
    ("onnx-model", b"\x08\x07\x12\x07pytorch\x1a\x03"),
    ("onnx-model", b"\x08\x08\x3a\xe8\x84\x01\x0a\x50"),
    ("perfetto-protobuf", b"\x0a\x0b\x50\x01\xb2\x01\x06\x18\x01"),
    ("binary", b"\x08\x08\x3b\xe8\x84\x01\x0a\x50"),
    ("binary", b"\x7fELF\x02\x01\x01\0"),
    // A compressed file that was copied in text mode.
    ("binary", b"\x1f\xef\xbf\xbd\x08"),
];

/// Text that is no JSON.
const TEXTS: &[(&str, &[u8])] = &[
    ("empty", b""),
    ("empty", b" \n\n"),
    ("empty", b"\0\0\0"),
    ("rocprofv3-csv", b"\"Kind\",\"Agent_Id\",\"Start_Timestamp\"\n\"KERNEL_DISPATCH\",4,17"),
    ("rocprofv3-csv", b"\"Name\",\"Calls\",\"TotalDurationNs\"\n"),
    ("rocprof-compute", b"Dispatch_ID,Kernel_Name,GPU_ID\r\n0,a,2\r\n"),
    ("rocprof-compute", b"device,HBMBw,HBMBwLow,L2Bw\n0,1,2,3\n"),
    ("rocprofv3-list", b"GPU     :\t0\nName    :\tgfx90a\n"),
    ("csv", b"rank,name,time\n0,a,1\n"),
    ("text", b"BZh11BY"),
    ("text", b"error, at once, here\n"),
    ("text", b"Traceback (most recent call last)"),
    ("python-repr", b"{'traceEvents': [{'ph': 'X'}]}"),
    ("python-repr", b"[{'ph': 'X'}]"),
    ("html", b"<!doctype html><html><head><title>Sign in</title>"),
    ("memory-timeline-html", b"<html><title>GPU Memory Timeline HTML"),
];

/// JSON without events.
const JSON: &[(&str, &[u8])] = &[
    (
        "memory-snapshot",
        b"{\"segments\": [{\"device\": 0, \"address\": 7, \"total_size\": 2, \"segment_type\": \"large\"",
    ),
    ("memory-snapshot", b"{\"device_traces\": [[{\"action\": \"alloc\", \"addr\": 1, \"size\": 2}]]}"),
    ("memory-snapshot", b"{\"segments\":[],\"device_traces\":[[]]"),
    ("memory-snapshot", b"[{\"device_traces\": [[]]}]"),
    (
        "memory-snapshot",
        b"[{\"device\": 0, \"address\": 7, \"total_size\": 2, \"allocated_size\": 2, \"active_size\": 2}]",
    ),
    ("rocprofiler", b"{\"rocprofiler-sdk-tool\": [{\"metadata\": {}}]}"),
    ("rocprofiler", b"{\"note\": 1, \"rocprofiler-sdk-tool\": [{\"metadata\": {}}]}"),
    ("kernel-map", b"{\"version\":2,\"generated_from\":[],\"stages\":{},\"global\":{\"kernels\":{}}}"),
    ("server-flags", b"{\"model_path\": \"m\", \"tokenizer_path\": \"m\", \"tp_size\": 8}"),
    ("execution-trace", b"{\"schema\":\"1.1.0-chakra.0.0.4\",\"nodes\":[{\"id\":1}]}"),
    ("execution-details", b"[{\"file\": \"a.json.gz\", \"batch_size\": 1}]"),
    ("memory-timeline", b"[[-1, 1, 512, 7], [-1, 1, 512, 7]]"),
    ("speedscope", b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}"),
    ("speedscope", b"{\"shared\":{\"frames\":[]},\"profiles\":[]}"),
    ("cpuprofile", b"{\"nodes\":[],\"samples\":[1],\"timeDeltas\":[1]}"),
    ("cpuprofile", b"{\"meta\":{},\"threads\":[]}"),
    ("json-schema", b"{\"$schema\": \"http://json-schema.org/draft-07/schema#\"}"),
    (
        "tensorrt-profile",
        b"[\n  { \"count\" : 1 }\n, { \"name\" : \"c\", \"timeMs\" : 0.1, \"averageMs\" : 0.1 }\n]",
    ),
    ("tensorrt-times", b"[{ \"startEnqMs\" : 2.6, \"latencyMs\" : 0.8 }]"),
    ("tensorrt-layers", b"{\"Layers\": [\"Conv_0\"], \"Bindings\": []}"),
    (
        "tensorrt-metadata",
        b"[{\"Name\": \"A100\", \"ComputeCapability\": [8, 0], \"TotalMemory\": 1}]",
    ),
    ("tensorrt-metadata", b"{\"performance_summary\": {\"Throughput\": 1.5}}"),
    ("tensorrt-metadata", b"{\"model_options\": {}, \"build_options\": {}}"),
    ("nsys-json", b"{\"Type\":79,\"CudaEvent\":{\"startNs\":\"1\"}}\n{\"Type\":59}"),
    ("nsys-json", b"[\"a\",\"b\"]\n{\"Type\":79,\"CudaEvent\":{\"startNs\":\"1\"}}"),
    ("json-without-events", b"{\"a\": 1}"),
    ("json-without-events", b"{\"traceEvents\": null}"),
    ("json-without-events", b"[1, 2]"),
    ("cut-before-events", b"{\"schemaVersion\": 1, \"devi"),
];

/// The beginning of a zip archive whose first file has this name (APPNOTE 4.3.7).
fn zip(name: &str) -> Vec<u8> {
    let mut file = b"PK\x03\x04\x14\0\0\0\x08\0".to_vec();
    file.resize(26, 0);
    file.extend((name.len() as u16).to_le_bytes());
    file.extend([0, 0]);
    file.extend(name.as_bytes());
    file
}
