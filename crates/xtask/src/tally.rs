//! What the tests ran on: samples of this repository, and the corpus of real traces. The tests note it line by line
//! (`crates/testkit/src/tally.rs`, `web/tests/environment.mjs`), and the sums are printed at the end. So is each test in Node that
//! failed (`web/tests/failures.mjs`): the other steps print hundreds of lines after it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Removes the notes of an earlier run.
pub fn clear(workspace: &Workspace) -> Result<()> {
    let path = workspace.tally();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(&path, "").with_context(|| format!("cannot write {}", path.display()))
}

/// The notes of this run; nothing if no test that notes anything was run.
pub fn read(workspace: &Workspace) -> Option<String> {
    fs::read_to_string(workspace.tally()).ok().filter(|notes| !notes.is_empty())
}

/// The sums as text. A test is counted once, whatever it reads.
pub fn summary(notes: &str, corpus_is_there: bool) -> String {
    let tests = |what: &str| -> BTreeSet<&str> {
        notes.lines().filter_map(|line| line.strip_prefix(what)?.strip_prefix('\t')).collect()
    };
    let (own, shared, skipped) = (tests("own"), tests("shared"), tests("skipped"));
    let mut text = format!("{} tests ran on samples of this repository.\n", own.len());
    if corpus_is_there {
        // (Only the Rust tests note that they read it.)
        let _ = match shared.len() {
            0 => writeln!(text, "The corpus ../shared is there."),
            n => writeln!(text, "The corpus ../shared is there: {n} tests of Rust read it."),
        };
    } else {
        let only: Vec<&str> = skipped.difference(&own).copied().collect();
        let _ = writeln!(
            text,
            "NO CORPUS: ../shared is not there. SKIPPED without another sample, in whole or in part: {}.",
            only.len()
        );
        for test in only {
            let _ = writeln!(text, "  SKIPPED {}", test.replace('\t', " "));
        }
    }
    for test in tests("failed") {
        let _ = writeln!(text, "FAILED {}", test.replace('\t', " "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::summary;

    const NOTES: &str =
        "own\ttruth\ta\nown\ttruth\ta\nskipped\ttruth\ta\nskipped\tcli\tmaps::b\nown\tnasty\tc\n";

    #[test]
    fn what_is_skipped_is_listed() {
        let text = summary(NOTES, false);
        assert!(text.starts_with("2 tests ran on samples of this repository.\n"), "{text}");
        assert!(text.contains("in whole or in part: 1.\n  SKIPPED cli maps::b\n"), "{text}");
        assert!(!text.contains("truth"), "a test that ran on a sample of our own: {text}");
    }

    #[test]
    fn what_failed_is_named_once_more() {
        let text = summary("own\ttruth\ta\nfailed\tin Node:\tb (kept.test.mjs:9: 1 !== 2)\n", true);
        assert!(text.ends_with("\nFAILED in Node: b (kept.test.mjs:9: 1 !== 2)\n"), "{text}");
    }

    #[test]
    fn a_corpus_is_counted() {
        let text = summary("shared\tx\ta\nshared\tx\tb\nown\tx\ta\n", true);
        assert!(
            text.contains("1 tests ran on") && text.contains("there: 2 tests of Rust read it"),
            "{text}"
        );
    }
}
