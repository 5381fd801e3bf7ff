//! The corpus of real traces next to the checkout. Tests may use it; a checkout may lack it.

use std::io::Write as _;
use std::path::PathBuf;

use crate::tally;

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
        tally::note(tally::SHARED);
        return Some(found);
    }
    tally::note(tally::SKIPPED);
    // Not `eprintln!`: the test harness keeps what a passing test prints to itself.
    let _ = writeln!(std::io::stderr(), "SKIPPED (no ../shared): {path}");
    None
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
