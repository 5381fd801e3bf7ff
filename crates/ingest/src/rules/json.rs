//! JSON documents, by their first key, by all their keys, and by the events that they begin with.

use dialect::{onnxruntime, xla};
use memchr::memmem::{find, find_iter};
use trace::Producer;

use super::Document;
use crate::FileKind;

/// An object that its first key and some keys soon after it name: no trace begins so.
struct FirstKey {
    kind: FileKind,
    key: &'static str,
    also: &'static [&'static str],
}

/// These files may have gigabytes; they are not read to find out that no events follow.
const FIRST_KEYS: &[FirstKey] = &[
    // torch.cuda.memory._snapshot() as JSON (PyTorch 2.0 to 2.9); some tools write the history first.
    FirstKey {
        kind: FileKind::MemorySnapshot,
        key: "segments",
        also: &["address", "total_size", "segment_type"],
    },
    FirstKey {
        kind: FileKind::MemorySnapshot,
        key: "device_traces",
        also: &["action", "addr", "size"],
    },
    FirstKey { kind: FileKind::Rocprofiler, key: "rocprofiler-sdk-tool", also: &[] },
];

/// Keys of a segment of a memory snapshot that come before its blocks, as PyTorch writes them and sorted by name.
const SEGMENT: &[&str] = &["address", "allocated_size", "active_size"];

/// What an object is by its first key, or a list by its first object; `text` begins without blanks.
pub(super) fn of_first_key(text: &[u8]) -> Option<FileKind> {
    // torch.cuda.memory_snapshot() as JSON.
    if let Some(list) = text.strip_prefix(b"[") {
        let is_list = list.trim_ascii_start().starts_with(b"{") && has_keys(text, SEGMENT);
        return is_list.then_some(FileKind::MemorySnapshot);
    }
    let key = text.strip_prefix(b"{")?.trim_ascii_start().strip_prefix(b"\"")?;
    let fits = |row: &&FirstKey| {
        let rest = key.strip_prefix(row.key.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"\"")) && has_keys(text, row.also)
    };
    FIRST_KEYS.iter().find(fits).map(|row| row.kind)
}

/// An object by its keys: of each group one must be there. The text, if any, must be in the first bytes.
struct Object {
    kind: FileKind,
    keys: &'static [&'static [&'static str]],
    text: &'static str,
}

const fn object(kind: FileKind, keys: &'static [&'static [&'static str]]) -> Object {
    Object { kind, keys, text: "" }
}

/// The first row that fits counts.
const OBJECTS: &[Object] = &[
    object(FileKind::MemorySnapshot, &[&["segments", "device_traces"]]),
    object(FileKind::Rocprofiler, &[&["rocprofiler-sdk-tool"]]),
    object(FileKind::ExecutionTrace, &[&["nodes"], &["schema"]]),
    Object { kind: FileKind::Speedscope, keys: &[&["$schema"]], text: "speedscope" },
    object(FileKind::Speedscope, &[&["shared"], &["profiles"]]),
    Object { kind: FileKind::JsonSchema, keys: &[&["$schema"]], text: "json-schema.org" },
    object(FileKind::TensorRtLayers, &[&["Layers"]]),
    object(FileKind::TensorRtSide, &[&["performance_summary"]]),
    object(FileKind::TensorRtSide, &[&["model_options"], &["build_options"]]),
    // The members of the objects that Nsight Systems writes, one a line (nsys export --type=jsonlines).
    object(
        FileKind::NsysJson,
        &[
            &["Type"],
            &["CudaEvent", "NvtxEvent", "TraceProcessEvent", "StringEvent", "GenericEvent"],
        ],
    ),
    object(FileKind::CpuProfile, &[&["timeDeltas"], &["samples"]]),
    object(FileKind::CpuProfile, &[&["meta"], &["threads"]]),
    object(FileKind::KernelMap, &[&["global"], &["stages", "generated_from", "version"]]),
    object(FileKind::KernelMap, &[&["generated_from"], &["stages"]]),
    // The fields of SGLang's ServerArgs (python/sglang/srt/server_args.py). tp_size comes late: the first keys may end before it.
    object(FileKind::ServerFlags, &[&["model_path"], &["tokenizer_path", "tp_size"]]),
];

/// An array by the byte after its bracket, and keys in the first bytes.
struct Array {
    kind: FileKind,
    first: u8,
    keys: &'static [&'static str],
}

/// The first row that fits counts.
const ARRAYS: &[Array] = &[
    Array { kind: FileKind::MemorySnapshot, first: b'{', keys: &["device_traces"] },
    Array { kind: FileKind::TensorRtProfile, first: b'{', keys: &["timeMs", "averageMs"] },
    Array { kind: FileKind::TensorRtTimes, first: b'{', keys: &["startEnqMs", "latencyMs"] },
    Array {
        kind: FileKind::TensorRtSide,
        first: b'{',
        keys: &["ComputeCapability", "TotalMemory"],
    },
    // The first line of Nsight Systems' JSON Lines lists the texts that the events refer to.
    Array { kind: FileKind::NsysJson, first: b'"', keys: &["Type"] },
];

/// What a document without events is.
pub(super) fn of_document(document: &Document<'_>) -> FileKind {
    let Document { beginning, keys, is_object, has_records, is_whole } = *document;
    let head = beginning.bytes();
    let mut inner = head.iter().filter(|byte| !byte.is_ascii_whitespace()).skip(1);
    let known = if is_object {
        let has = |key: &&str| keys.iter().any(|known| known == key);
        let fits = |row: &&Object| {
            row.keys.iter().all(|group| group.iter().any(has))
                && find(head, row.text.as_bytes()).is_some()
        };
        OBJECTS.iter().find(fits).map(|row| row.kind)
    } else {
        match (inner.next(), inner.next()) {
            // Lists of numbers, or empty ones.
            (Some(b'['), Some(b'-' | b'0'..=b'9' | b'[' | b']')) => Some(FileKind::MemoryTimeline),
            (Some(first), _) => {
                let fits = |row: &&Array| row.first == *first && has_keys(head, row.keys);
                let records = *first == b'{' && has_records;
                let other = records.then_some(FileKind::ExecutionDetails);
                ARRAYS.iter().find(fits).map(|row| row.kind).or(other)
            }
            (None, _) => None,
        }
    };
    known.unwrap_or(if is_whole { FileKind::JsonWithoutEvents } else { FileKind::CutBeforeEvents })
}

/// Whether all these keys are in the first bytes.
fn has_keys(head: &[u8], keys: &[&str]) -> bool {
    keys.iter().all(|key| find(head, format!("\"{key}\"").as_bytes()).is_some())
}

/// Events that a trace of a producer begins with: some member has each of these keys with a text that begins so.
struct FirstEvents {
    producer: Producer,
    members: &'static [(&'static str, &'static [&'static str])],
}

const FIRST_EVENTS: &[FirstEvents] = &[
    // Every profile of ONNX Runtime begins with its session.
    FirstEvents {
        producer: Producer::OnnxRuntime,
        members: &[("cat", &[onnxruntime::SESSION]), ("name", onnxruntime::SESSION_STARTS)],
    },
    // The XLA profiler names the planes as processes before all events.
    FirstEvents {
        producer: Producer::Xla,
        members: &[("name", &["process_name"]), ("name", xla::PLANES)],
    },
];

/// The program that wrote a trace which begins so.
pub(super) fn producer(text: &[u8]) -> Producer {
    let fits = |row: &&FirstEvents| {
        row.members.iter().all(|(key, starts)| starts.iter().any(|it| has_text(text, key, it)))
    };
    FIRST_EVENTS.iter().find(fits).map_or(Producer::Torch, |row| row.producer)
}

/// Whether some member `key` is a text that begins with `start`.
fn has_text(text: &[u8], key: &str, start: &str) -> bool {
    let key = format!("\"{key}\"");
    find_iter(text, key.as_bytes()).any(|at| {
        let rest = text.get(at + key.len()..).unwrap_or_default().trim_ascii_start();
        let value = rest.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        let value = value.and_then(|value| value.strip_prefix(b"\""));
        value.is_some_and(|value| value.starts_with(start.as_bytes()))
    })
}
