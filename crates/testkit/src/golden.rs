//! Golden files: text that users see, compared with the checked-in file.

use std::path::Path;

/// Compares `actual` with the file at `path`, and writes it instead when `UPDATE_EXPECT=1` is set.
///
/// `path` is relative to the directory of the crate under test: `concat!(env!("CARGO_MANIFEST_DIR"), ...)`.
///
/// # Panics
/// When they differ, with the first line that does.
#[allow(clippy::panic, reason = "a failed assertion")]
pub fn assert_golden(path: impl AsRef<Path>, actual: &str) {
    let path = path.as_ref();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(path, actual));
        if let Err(error) = written {
            panic!("cannot write {}: {error}", path.display());
        }
        return;
    }
    // A checkout on Windows may have converted the line ends.
    let expected = match std::fs::read_to_string(path) {
        Ok(text) => text.replace("\r\n", "\n"),
        Err(error) => panic!("cannot read {}: {error}; UPDATE_EXPECT=1 writes it", path.display()),
    };
    if expected == actual {
        return;
    }
    let (mut old, mut new) = (expected.lines(), actual.lines());
    for number in 1.. {
        match (old.next(), new.next()) {
            (a, b) if a == b && a.is_some() => {}
            (a, b) => panic!(
                "{} differs at line {number} (UPDATE_EXPECT=1 accepts it)\nexpected: {}\n  actual: {}",
                path.display(),
                a.unwrap_or("(end of file)"),
                b.unwrap_or("(end of text)")
            ),
        }
    }
}
