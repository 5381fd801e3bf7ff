//! Text that is no JSON object or array: tables, web pages, logs.

use memchr::memmem::find;

use crate::FileKind;

/// What text is that cannot be JSON of an object or an array; `text` begins without blanks.
pub(super) fn of(text: &[u8]) -> Option<FileKind> {
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
