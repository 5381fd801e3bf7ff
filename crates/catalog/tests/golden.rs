//! What users see for the kernels of well-known stacks, as a file that reviews can read.
//!
//! The names are those that the libraries' public sources give their kernels. `UPDATE_EXPECT=1`
//! classifies the file's names again and rewrites it; a new name may be added with anything in front.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it skips"
)]

use std::fmt::Write as _;

use catalog::{Platform, RawKind, classify};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/kernels.txt");

#[test]
fn well_known_kernels() {
    let before = std::fs::read_to_string(GOLDEN).unwrap();
    let mut after = String::new();
    for line in before.lines() {
        if line.starts_with('#') || line.is_empty() {
            writeln!(after, "{line}").unwrap();
            continue;
        }
        let name = line.rsplit(" | ").next().unwrap();
        let class = classify(RawKind::Kernel, name, Platform::Unknown);
        let (category, family) = (class.category.id(), class.family.id());
        writeln!(after, "{category} | {family} | {} | {name}", class.rule).unwrap();
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(GOLDEN, after).unwrap();
        return;
    }
    for (n, (was, is)) in before.lines().zip(after.lines()).enumerate() {
        assert_eq!(was, is, "line {} of tests/golden/kernels.txt", n + 1);
    }
}
