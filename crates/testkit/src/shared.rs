//! The corpus of real traces next to the checkout. Tests may use it; a checkout may lack it.

use std::io::Write as _;
use std::path::PathBuf;

/// The file or folder `path` of the corpus (`../shared` next to the checkout, or
/// `KINETOSCOPE_SHARED`); `None`, and a line on stderr, when it is not there.
#[must_use]
pub fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("KINETOSCOPE_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let found = root.join(path);
    if found.exists() {
        return Some(found);
    }
    // Not `eprintln!`: the test harness keeps what a passing test prints to itself.
    let _ = writeln!(std::io::stderr(), "SKIPPED (no ../shared): {path}");
    None
}

/// The content of a gzip file of one member, for a test that must not rely on the product's own reader;
/// bytes that are not gzip are returned unchanged, for a broken file `None`.
#[must_use]
pub fn gunzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let Some(rest) = bytes.strip_prefix(&[0x1f, 0x8b, 8]) else { return Some(bytes.to_vec()) };
    let flags = *rest.first()?;
    let mut body = rest.get(7..)?;
    if flags & 4 != 0 {
        let len = usize::from(u16::from_le_bytes([*body.first()?, *body.get(1)?]));
        body = body.get(2 + len..)?;
    }
    for text in [8, 16] {
        if flags & text != 0 {
            body = body.get(body.iter().position(|byte| *byte == 0)? + 1..)?;
        }
    }
    if flags & 2 != 0 {
        body = body.get(2..)?;
    }
    miniz_oxide::inflate::decompress_to_vec(body).ok()
}

/// Folders of the corpus that hold real traces.
const REAL_TRACES: [&str; 2] = ["corpus/traces", "corpus/training"];

/// Every real trace (`*.json.gz`) of the corpus, by name; empty, with a line on stderr, without the corpus.
pub fn real_traces() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = REAL_TRACES
        .into_iter()
        .filter_map(shared)
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".json.gz"))
        // Programs under test run in another folder.
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    files.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    assert!(files.is_empty() || files.len() >= 25, "the corpus is not whole: {files:?}");
    files
}

/// The real trace called `name`, without `.json.gz`.
pub fn real_trace(name: &str) -> Option<PathBuf> {
    REAL_TRACES
        .into_iter()
        .filter_map(shared)
        .map(|folder| folder.join(format!("{name}.json.gz")))
        .find(|path| path.exists())
}
