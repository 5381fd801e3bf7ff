//! Any bytes give the same snapshot in any pieces, and its figures and tables are computed without a panic.
#![no_main]

use kinetoscope::{SnapshotReader, SnapshotReport, analyze_snapshot};
use libfuzzer_sys::fuzz_target;

fn figures(file: &[u8], size: usize) -> Option<SnapshotReport> {
    let mut reader = SnapshotReader::new();
    for chunk in file.chunks(size) {
        reader.push(chunk).ok()?;
    }
    Some(analyze_snapshot(&reader.finish().ok()?))
}

fuzz_target!(|input: &[u8]| {
    // The last byte says how to cut the rest.
    let Some((size, file)) = input.split_last() else { return };
    let whole = figures(file, usize::MAX);
    assert_eq!(figures(file, usize::from(*size) + 1), whole);
    if let Some(report) = whole {
        assert!(!report.sections().is_empty());
    }
});
