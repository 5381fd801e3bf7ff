//! Detects the format of a file by its content.

use memchr::memmem::find;

use crate::{FileKind, NotATrace, gunzip};

/// Bytes looked at before reading on.
pub(crate) const HEAD: usize = 2048;
/// The same for a database, whose table names lie in its first pages.
const DATABASE_HEAD: usize = 64 << 10;

const SQLITE: &[u8] = b"SQLite format 3\0";

/// How much of a file that begins so must be seen to name it.
pub(crate) fn wanted(head: &[u8]) -> usize {
    if head.starts_with(SQLITE) { DATABASE_HEAD } else { HEAD }
}

/// What the first bytes of the (decompressed) file rule out at once; `None` when it may be JSON.
/// `head` is as much as [`wanted`] asks for, or the whole file when it is shorter.
pub(crate) fn refuse(head: &[u8]) -> Option<NotATrace> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let blanks = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let text = &text[blanks..];
    let offset = (head.len() - text.len()) as u64;
    let kind = magic(head).or_else(|| not_json(text))?;
    let shown = if magic(head).is_some() { (0, head) } else { (offset, text) };
    Some(NotATrace::new(kind, shown.0, &shown.1[..shown.1.len().min(480)]))
}

/// Formats with a signature.
fn magic(head: &[u8]) -> Option<FileKind> {
    let kind = match head {
        [0x1f, 0x8b, ..] if head.starts_with(&gunzip::MAGIC) => FileKind::NestedGzip,
        [0x80, 2..=5, ..] => FileKind::Pickle,
        [b'P', b'K', 3, 4, ..] => match find(head, b"/data.pkl").or(find(head, b"/version")) {
            Some(_) => FileKind::TorchSave,
            None => FileKind::Zip,
        },
        [b'P', b'K', 5, 6, ..] => FileKind::Zip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => FileKind::Zstd,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => FileKind::Xz,
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..] => FileKind::Bzip2,
        [0x04, 0x22, 0x4d, 0x18, ..] => FileKind::Lz4,
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [b'{' | b'[', 0, ..] | [0, b'{' | b'[', ..] => {
            FileKind::Utf16
        }
        _ if head.starts_with(SQLITE) => database(head),
        _ if head.starts_with(b"NVIDIA Tegra Profiler Report") => FileKind::Nsys,
        // (Text may hold that word in that very place, too.)
        [first, ..] if !b"{[ \t\r\n".contains(first) && head.get(257..262) == Some(b"ustar") => {
            FileKind::Tar
        }
        [0x0a, rest @ ..] if xplane(rest) => FileKind::Xplane,
        [0x08, 1..=63, rest @ ..] if onnx_model(rest) => FileKind::OnnxModel,
        // A Perfetto trace is TracePacket fields, number 1: tag 0x0a, a length, then the packet's own
        // first field. Text may start with a newline, too, but not go on like that.
        [0x0a, rest @ ..] if protobuf_packet(rest) => FileKind::PerfettoTrace,
        _ => return None,
    };
    Some(kind)
}

/// Whose database it is, by the names of its tables (Nsight Systems 2020 to 2025; rocpd of ROCm 7).
fn database(head: &[u8]) -> FileKind {
    let has = |name: &[u8]| find(head, name).is_some();
    if has(b"rocpd_") {
        FileKind::Rocpd
    } else if has(b"CUPTI_ACTIVITY_KIND_") || has(b"TARGET_INFO_") || has(b"NVTX_EVENTS") {
        FileKind::NsysSqlite
    } else {
        FileKind::Sqlite
    }
}

/// What follows a number of a protobuf message: a number of at most four bytes.
fn after_varint(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().take(4).take_while(|byte| **byte >= 0x80).count() + 1;
    bytes.get(len..).unwrap_or_default()
}

/// Whether an `XPlane` comes next (`XSpace.planes`, field 1; xplane.proto of OpenXLA): its length, its id if it has one, and
/// its name.
fn xplane(rest: &[u8]) -> bool {
    let plane = after_varint(rest);
    let name = match plane {
        [0x08, id @ ..] => after_varint(id),
        name => name,
    };
    match name {
        [0x12, len, text @ ..] => {
            let text = &text[..text.len().min(usize::from(*len))];
            [&b"/host:"[..], b"/device:", b"Task Environment"].iter().any(|it| text.starts_with(it))
        }
        _ => false,
    }
}

/// Whether what comes after the version of an ONNX `ModelProto` is the rest of one (onnx.proto): the producer's name, the
/// graph with its first node, or the operator sets.
fn onnx_model(rest: &[u8]) -> bool {
    match rest {
        [0x12, len @ 1..=64, text @ ..] => {
            let name = text.get(..usize::from(*len)).unwrap_or_default();
            !name.is_empty() && name.iter().all(|byte| matches!(byte, b' '..=b'~'))
        }
        [0x3a, graph @ ..] => after_varint(graph).first() == Some(&0x0a),
        [0x42, set @ ..] => matches!(after_varint(set).first(), Some(0x0a | 0x10)),
        _ => false,
    }
}

/// Whether a length and a plausible field tag of a `TracePacket` come next.
fn protobuf_packet(rest: &[u8]) -> bool {
    let len = rest.iter().take(4).take_while(|byte| **byte >= 0x80).count() + 1;
    let binary = rest.iter().take(256).any(|byte| matches!(byte, 0..=8 | 14..=31));
    match rest.get(len) {
        // A field tag has wire type 0, 1, 2 or 5 and is no blank, quote or bracket.
        Some(tag) => matches!(tag & 7, 0 | 1 | 2 | 5) && *tag != 0 && binary,
        None => false,
    }
}

/// Text that cannot be JSON of an object or an array.
fn not_json(text: &[u8]) -> Option<FileKind> {
    let second =
        text.get(1..).and_then(|rest| rest.iter().find(|byte| !byte.is_ascii_whitespace()));
    match (text.first()?, second) {
        (b'{' | b'[', Some(b'\'')) => Some(FileKind::PythonRepr),
        (b'[', Some(b'{')) if python_dict(text) => Some(FileKind::PythonRepr),
        (b'{' | b'[', _) => None,
        (b'<', _) => Some(match find(text, b"GPU Memory Timeline") {
            Some(_) => FileKind::MemoryTimelineHtml,
            None => FileKind::Html,
        }),
        _ if text.iter().all(|byte| *byte == 0) => Some(FileKind::Empty),
        // A pickle of protocol 0 or 1 has no signature: `(dp0` or `}q`, and strings in its own form.
        (b'(' | b'}' | b']', Some(b'd' | b'l' | b'q' | b'(')) => Some(FileKind::Pickle),
        _ if text.iter().any(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31)) => {
            Some(FileKind::Binary)
        }
        _ => Some(table(text)),
    }
}

/// Columns that tell whose table it is: one of the first and, unless that is empty, one of the second must be there.
/// (rocprofv3 of ROCm 6.2 to 7.2, rocprof-compute 2.0 to 3.3: headers of real files.)
const TABLES: &[(FileKind, &[&str], &[&str])] = &[
    (FileKind::RocprofCompute, &["Dispatch_ID"], &["GPU_ID"]),
    (FileKind::RocprofCompute, &["workload_name"], &["ip_blocks", "gpu_arch"]),
    (FileKind::RocprofCompute, &["HBMBw", "hbm_bw"], &["L2Bw", "l2_bw"]),
    (
        FileKind::RocprofCsv,
        &["Dispatch_Id", "Correlation_Id", "Sample_Timestamp", "Kind"],
        &["Start_Timestamp", "End_Timestamp", "Exec_Mask", "Counter_Name"],
    ),
    (FileKind::RocprofCsv, &["TotalDurationNs"], &["Calls", "Percentage"]),
    (FileKind::RocprofCsv, &["KernelName"], &["gpu-id", "DurationNs"]),
];

/// Text that is not JSON: a table of a known tool, a table, or anything.
fn table(text: &[u8]) -> FileKind {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let header = lines.next().unwrap_or_default();
    let columns: Vec<&[u8]> = header
        .split(|byte| *byte == b',')
        .map(|column| column.trim_ascii())
        .map(|column| column.strip_prefix(b"\"").unwrap_or(column))
        .map(|column| column.strip_suffix(b"\"").unwrap_or(column))
        .collect();
    let any = |names: &[&str]| names.iter().any(|name| columns.contains(&name.as_bytes()));
    let known = TABLES.iter().find(|(_, one, other)| any(one) && (other.is_empty() || any(other)));
    if let Some((kind, ..)) = known {
        return *kind;
    }
    let starts = |line: &[u8], word: &[u8]| {
        line.strip_prefix(word).is_some_and(|rest| rest.trim_ascii_start().starts_with(b":"))
    };
    let second = lines.next().unwrap_or_default();
    if starts(header, b"GPU") && starts(second, b"Name") && find(text, b"gfx").is_some() {
        return FileKind::RocprofList;
    }
    let commas = |line: &[u8]| line.iter().filter(|byte| **byte == b',').count();
    let is_table = commas(header) >= 2 && commas(second) >= commas(header);
    if is_table { FileKind::Csv } else { FileKind::Text }
}

/// `[{'...`
fn python_dict(text: &[u8]) -> bool {
    let mut rest = text.iter().filter(|byte| !byte.is_ascii_whitespace());
    rest.nth(2) == Some(&b'\'')
}

/// What a JSON file without events is. `keys` are its first top-level keys, `records` says whether there
/// are objects where events would be.
pub(crate) fn classify(
    head: &[u8],
    keys: &[String],
    object: bool,
    records: bool,
    whole: bool,
) -> FileKind {
    let has = |key: &str| keys.iter().any(|known| known == key);
    if object {
        return if has("segments") || has("device_traces") {
            FileKind::MemorySnapshot
        } else if has("rocprofiler-sdk-tool") {
            FileKind::Rocprofiler
        } else if has("nodes") && has("schema") {
            FileKind::ExecutionTrace
        } else if has("$schema") && find(head, b"speedscope").is_some()
            || has("shared") && has("profiles")
        {
            FileKind::Speedscope
        } else if has("$schema") && find(head, b"json-schema.org").is_some() {
            FileKind::JsonSchema
        } else if has("Layers") {
            FileKind::TensorRtLayers
        } else if has("performance_summary") || has("model_options") && has("build_options") {
            FileKind::TensorRtSide
        } else if has("Type") && NSYS_EVENTS.iter().any(|event| has(event)) {
            FileKind::NsysJson
        } else if has("timeDeltas") && has("samples") || has("meta") && has("threads") {
            FileKind::CpuProfile
        } else if has("global") && (has("stages") || has("generated_from") || has("version"))
            || has("generated_from") && has("stages")
        {
            FileKind::KernelMap
        } else if whole {
            FileKind::JsonWithoutEvents
        } else {
            FileKind::CutBeforeEvents
        };
    }
    let mut first = head.iter().filter(|byte| !byte.is_ascii_whitespace()).skip(1);
    match (first.next(), first.next()) {
        (Some(b'['), Some(b'-' | b'0'..=b'9' | b'[' | b']')) => FileKind::MemoryTimeline,
        (Some(b'{'), _) if find(head, b"\"device_traces\"").is_some() => FileKind::MemorySnapshot,
        (Some(b'{'), _) if has_keys(head, &["timeMs", "averageMs"]) => FileKind::TensorRtProfile,
        (Some(b'{'), _) if has_keys(head, &["startEnqMs", "latencyMs"]) => FileKind::TensorRtTimes,
        (Some(b'{'), _) if has_keys(head, &["ComputeCapability", "TotalMemory"]) => {
            FileKind::TensorRtSide
        }
        // The first line of Nsight Systems' JSON Lines lists the texts that the events refer to.
        (Some(b'"'), _) if has_keys(head, &["Type"]) => FileKind::NsysJson,
        (Some(b'{'), _) if records => FileKind::ExecutionDetails,
        _ if !whole => FileKind::CutBeforeEvents,
        _ => FileKind::JsonWithoutEvents,
    }
}

/// Members of the objects that Nsight Systems writes, one a line (nsys export --type=jsonlines).
const NSYS_EVENTS: [&str; 5] =
    ["CudaEvent", "NvtxEvent", "TraceProcessEvent", "StringEvent", "GenericEvent"];

/// Whether all these keys are in the first bytes.
fn has_keys(head: &[u8], keys: &[&str]) -> bool {
    keys.iter().all(|key| find(head, format!("\"{key}\"").as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures() {
        for (head, kind) in [
            (&b""[..], None),
            (b"  {\"a\":1}", None),
            (b"\n\n[ {\"ph\":\"X\"}]", None),
            (b"\xef\xbb\xbf{", None),
            (b"\x80\x04\x95\x00", Some(FileKind::Pickle)),
            (b"(dp0\nS'segments'", Some(FileKind::Pickle)),
            (b"PK\x03\x04....archive/data.pkl", Some(FileKind::TorchSave)),
            (b"PK\x03\x04....trace.json", Some(FileKind::Zip)),
            (b"\x28\xb5\x2f\xfd", Some(FileKind::Zstd)),
            (b"\xfd7zXZ\0", Some(FileKind::Xz)),
            (b"BZh91AY&SY", Some(FileKind::Bzip2)),
            (b"\x04\x22\x4d\x18", Some(FileKind::Lz4)),
            (b"\x1f\x8b\x08", Some(FileKind::NestedGzip)),
            (b"\xff\xfe{\0\"\0", Some(FileKind::Utf16)),
            (b"{\0\"\0", Some(FileKind::Utf16)),
            (b"SQLite format 3\0", Some(FileKind::Sqlite)),
            (b"SQLite format 3\0..CREATE TABLE TARGET_INFO_GPU(", Some(FileKind::NsysSqlite)),
            (b"SQLite format 3\0..CREATE TABLE rocpd_string_0(", Some(FileKind::Rocpd)),
            (b"\x0a\x94\x07\x12\x0d/device:GPU:0\x1a", Some(FileKind::Xplane)),
            (b"\x0a\x14\x08\x02\x12\x09/host:CPU\x1a", Some(FileKind::Xplane)),
            (b"\x08\x07\x12\x07pytorch\x1a\x03", Some(FileKind::OnnxModel)),
            (b"\x08\x08\x3a\xe8\x84\x01\x0a\x50", Some(FileKind::OnnxModel)),
            (b"\x08\x08\x3b\xe8\x84\x01\x0a\x50", Some(FileKind::Binary)),
            (
                b"\"Kind\",\"Agent_Id\",\"Start_Timestamp\"\n\"KERNEL_DISPATCH\",4,17",
                Some(FileKind::RocprofCsv),
            ),
            (b"\"Name\",\"Calls\",\"TotalDurationNs\"\n", Some(FileKind::RocprofCsv)),
            (b"Dispatch_ID,Kernel_Name,GPU_ID\r\n0,a,2\r\n", Some(FileKind::RocprofCompute)),
            (b"device,HBMBw,HBMBwLow,L2Bw\n0,1,2,3\n", Some(FileKind::RocprofCompute)),
            (b"GPU     :\t0\nName    :\tgfx90a\n", Some(FileKind::RocprofList)),
            (b"rank,name,time\n0,a,1\n", Some(FileKind::Csv)),
            (b"error, at once, here\n", Some(FileKind::Text)),
            (b"\x0a\x0b\x50\x01\xb2\x01\x06\x18\x01", Some(FileKind::PerfettoTrace)),
            (b"{'traceEvents': []}", Some(FileKind::PythonRepr)),
            (b"[{'ph': 'X'}]", Some(FileKind::PythonRepr)),
            (b"<!DOCTYPE html><title>Sign in</title>", Some(FileKind::Html)),
            (b"<html><title>GPU Memory Timeline HTML", Some(FileKind::MemoryTimelineHtml)),
            (b"Traceback (most recent call last)", Some(FileKind::Text)),
            (b"\0\0\0", Some(FileKind::Empty)),
            (b"\x7fELF\x02\x01\x01\0", Some(FileKind::Binary)),
        ] {
            assert_eq!(refuse(head).map(|error| error.kind), kind, "{}", head.escape_ascii());
        }
    }
}
