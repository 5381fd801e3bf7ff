//! What a file is, by its content.

use memchr::memmem::find;

use crate::{FileKind, NotATrace, gunzip};

/// Bytes looked at before reading on.
pub(crate) const HEAD: usize = 2048;

/// What the first bytes of the (decompressed) file rule out at once; `None` when it may be JSON.
/// `head` is [`HEAD`] bytes, or the whole file when it is shorter.
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
        _ if head.starts_with(b"SQLite format 3\0") => FileKind::Sqlite,
        _ if head.starts_with(b"NVIDIA Tegra Profiler Report") => FileKind::Nsys,
        // (Text may hold that word in that very place, too.)
        [first, ..] if !b"{[ \t\r\n".contains(first) && head.get(257..262) == Some(b"ustar") => {
            FileKind::Tar
        }
        // A Perfetto trace is TracePacket fields, number 1: tag 0x0a, a length, then the packet's own
        // first field. Text may start with a newline, too, but not go on like that.
        [0x0a, rest @ ..] if protobuf_packet(rest) => FileKind::PerfettoTrace,
        _ => return None,
    };
    Some(kind)
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
        _ => Some(FileKind::Text),
    }
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
        (Some(b'{'), _) if records => FileKind::ExecutionDetails,
        _ if !whole => FileKind::CutBeforeEvents,
        _ => FileKind::JsonWithoutEvents,
    }
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
