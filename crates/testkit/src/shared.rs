//! The corpus of real traces beside the checkout, which a test may need and a checkout may lack.

use std::io::Write as _;
use std::path::PathBuf;

/// The file or folder `path` of the shared material (`../shared` beside the checkout, or
/// `KINETOSCOPE_SHARED`); `None`, and a loud line on stderr, when it is not there.
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
/// bytes that are no gzip come back as they are, a broken file as `None`.
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
