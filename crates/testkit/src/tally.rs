//! What the tests ran on: a line for each use of samples, in the file that `KINETOSCOPE_TALLY` names. `cargo xtask test` sets
//! it, and prints the sums at the end.

use std::io::Write as _;
use std::path::Path;

/// A test uses samples of this repository.
pub(crate) const OWN: &str = "own";
/// A test uses the corpus next to the checkout.
pub(crate) const SHARED: &str = "shared";
/// A test would use the corpus, which is not there.
pub(crate) const SKIPPED: &str = "skipped";

/// Notes that the current test uses samples. Nothing happens outside `cargo xtask test`.
pub(crate) fn note(what: &str) {
    let Some(path) = std::env::var_os("KINETOSCOPE_TALLY") else { return };
    let program = std::env::current_exe().unwrap_or_default();
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo appends a digest to the name of a test program.
    let program = stem.rsplit_once('-').map_or(&*stem, |(name, _)| name);
    // The test harness gives the thread of a test the test's name.
    let thread = std::thread::current();
    let line = format!("{what}\t{program}\t{}\n", thread.name().unwrap_or_default());
    append(Path::new(&path), &line);
}

/// One write for a line: programs that run at the same time do not mix theirs.
fn append(path: &Path, line: &str) {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        let _ = writeln!(std::io::stderr(), "cannot write {}: {error}", path.display());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_are_added() {
        let path = std::env::temp_dir().join(format!("kinetoscope-tally-{}", std::process::id()));
        super::append(&path, "a\n");
        super::append(&path, "b\n");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, "a\nb\n");
    }
}
