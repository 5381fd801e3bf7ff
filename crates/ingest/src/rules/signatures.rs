//! Formats with a signature: bytes that no text begins with.

use dialect::xla;
use memchr::memmem::find;

use crate::{FileKind, gunzip};

/// Bytes looked at before reading on.
const HEAD: usize = 2048;
/// The same for a database, whose table names lie in its first pages.
const DATABASE_HEAD: usize = 64 << 10;

const SQLITE: &[u8] = b"SQLite format 3\0";

/// How much of a file that begins so must be seen to name it.
pub(super) fn wanted(head: &[u8]) -> usize {
    if head.starts_with(SQLITE) { DATABASE_HEAD } else { HEAD }
}

/// Bytes at a place, and what else must hold.
struct Signature {
    kind: FileKind,
    at: usize,
    bytes: &'static [u8],
    and: fn(&[u8]) -> bool,
}

const fn is(kind: FileKind, bytes: &'static [u8]) -> Signature {
    if_also(kind, bytes, |_| true)
}

const fn if_also(kind: FileKind, bytes: &'static [u8], and: fn(&[u8]) -> bool) -> Signature {
    Signature { kind, at: 0, bytes, and }
}

/// The first row that fits counts.
const SIGNATURES: &[Signature] = &[
    is(FileKind::NestedGzip, &gunzip::MAGIC),
    // Protocols 2 to 5 of Python's pickle.
    if_also(FileKind::Pickle, b"\x80", |head| matches!(head.get(1), Some(2..=5))),
    if_also(FileKind::TorchSave, b"PK\x03\x04", |head| {
        has(head, b"/data.pkl") || has(head, b"/version")
    }),
    if_also(FileKind::ZipOfJson, b"PK\x03\x04", first_is_json),
    is(FileKind::Zip, b"PK\x03\x04"),
    is(FileKind::Zip, b"PK\x05\x06"),
    is(FileKind::Zstd, b"\x28\xb5\x2f\xfd"),
    is(FileKind::Xz, b"\xfd7zXZ\0"),
    if_also(FileKind::Bzip2, b"BZh", is_bzip2),
    is(FileKind::Lz4, b"\x04\x22\x4d\x18"),
    is(FileKind::Utf16, b"\xff\xfe"),
    is(FileKind::Utf16, b"\xfe\xff"),
    is(FileKind::Utf16, b"{\0"),
    is(FileKind::Utf16, b"[\0"),
    is(FileKind::Utf16, b"\0{"),
    is(FileKind::Utf16, b"\0["),
    // Names of tables: rocpd of ROCm 7; Nsight Systems 2020 to 2025.
    if_also(FileKind::Rocpd, SQLITE, |head| has(head, b"rocpd_")),
    if_also(FileKind::NsysSqlite, SQLITE, |head| {
        has(head, b"CUPTI_ACTIVITY_KIND_")
            || has(head, b"TARGET_INFO_")
            || has(head, b"NVTX_EVENTS")
    }),
    is(FileKind::Sqlite, SQLITE),
    is(FileKind::Nsys, b"NVIDIA Tegra Profiler Report"),
    // (Text may have that word in that very place, too.)
    Signature {
        kind: FileKind::Tar,
        at: 257,
        bytes: b"ustar",
        and: |head| head.first().is_some_and(|first| !b"{[ \t\r\n".contains(first)),
    },
    if_also(FileKind::Xplane, b"\x0a", |head| xplane(&head[1..])),
    if_also(
        FileKind::OnnxModel,
        b"\x08",
        |head| matches!(head, [_, 1..=63, rest @ ..] if onnx_model(rest)),
    ),
    // A Perfetto trace is TracePacket fields, number 1: tag 0x0a, a length, then the packet's own
    // first field. Text may start with a newline, too, but not go on like that.
    if_also(FileKind::PerfettoTrace, b"\x0a", |head| protobuf_packet(&head[1..])),
];

/// The format of a file that begins so, if it has a signature.
pub(super) fn of(head: &[u8]) -> Option<FileKind> {
    let fits = |row: &&Signature| {
        head.get(row.at..).is_some_and(|from| from.starts_with(row.bytes)) && (row.and)(head)
    };
    SIGNATURES.iter().find(fits).map(|row| row.kind)
}

fn has(head: &[u8], text: &[u8]) -> bool {
    find(head, text).is_some()
}

/// A block size, then the first digits of pi.
fn is_bzip2(head: &[u8]) -> bool {
    matches!(head.get(3..6), Some([b'1'..=b'9', 0x31, 0x41]))
}

/// Whether the first file of a zip archive is JSON by its name (local file header, APPNOTE 4.3.7: the length of the name is at
/// byte 26, the name at byte 30). The name itself is all that can be seen without decompression.
fn first_is_json(head: &[u8]) -> bool {
    let Some([low, high]) = head.get(26..28) else { return false };
    let len = usize::from(u16::from_le_bytes([*low, *high]));
    let name = head.get(30..).and_then(|rest| rest.get(..len)).unwrap_or_default();
    name.ends_with(b".json") || name.ends_with(b".json.gz")
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
            let mut planes = xla::PLANES.iter().chain(&["Task Environment"]);
            planes.any(|plane| text.starts_with(plane.as_bytes()))
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
