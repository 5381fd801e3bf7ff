//! Every kernel of every trace of the shared corpus gets a class.
//!
//! The corpus lies beside the checkout (`../shared`, or `KINETOSCOPE_SHARED`) and is not part of the
//! project; without it these tests say so and pass.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it skips"
)]

use std::path::PathBuf;

use catalog::{Category, Platform, RawKind, classify};

/// Kernel names of one trace with their GPU time in ns.
struct Kernels {
    trace: String,
    rows: Vec<(String, u64)>,
}

fn corpus() -> Option<Vec<Kernels>> {
    let shared = std::env::var_os("KINETOSCOPE_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let truth = shared.join("corpus/truth");
    let Ok(entries) = std::fs::read_dir(&truth) else {
        eprintln!("SKIPPED (no ../shared): kernel names of the corpus are not checked");
        return None;
    };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut corpus = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let truth: serde_json::Value = serde_json::from_str(&text).unwrap();
        let Some(rows) = truth["gpu"]["kernels_all"].as_array() else { continue };
        let rows = rows
            .iter()
            .map(|row| {
                (
                    row[0].as_str().unwrap_or_default().to_owned(),
                    row[2].as_u64().unwrap_or_default(),
                )
            })
            .collect();
        let trace = file.file_name().unwrap().to_string_lossy().into_owned();
        corpus.push(Kernels { trace, rows });
    }
    assert!(!corpus.is_empty(), "{} holds no truth", truth.display());
    Some(corpus)
}

#[test]
fn less_than_two_percent_of_the_time_is_other() {
    let Some(corpus) = corpus() else { return };
    for Kernels { trace, rows } in corpus {
        let total: u64 = rows.iter().map(|(_, ns)| ns).sum();
        let other: Vec<_> = rows
            .iter()
            .filter(|(name, _)| {
                classify(RawKind::Kernel, name, Platform::Unknown).category == Category::Other
            })
            .collect();
        let other_ns: u64 = other.iter().map(|(_, ns)| ns).sum();
        let percent = 100.0 * other_ns as f64 / total.max(1) as f64;
        println!("{percent:6.3} % other  {trace}");
        assert!(percent < 2.0, "{trace}: {percent:.2} % other: {other:#?}");
    }
}

#[test]
fn tensile_names_of_the_corpus_give_their_architecture() {
    let Some(corpus) = corpus() else { return };
    let mut n = 0;
    for Kernels { trace, rows } in corpus {
        for (name, _) in rows.iter().filter(|(name, _)| name.starts_with("Cijk_")) {
            let facts = catalog::facts(name);
            let expected = if trace.starts_with("mi210") || trace.starts_with("mi250") {
                "gfx90a"
            } else {
                "gfx942"
            };
            assert_eq!(facts.gfx.as_deref(), Some(expected), "{trace}: {name}");
            assert!(facts.tensile.is_some_and(|t| t.macro_tile.is_some()), "{name}");
            assert!(facts.dtype.is_some(), "{name}");
            n += 1;
        }
    }
    assert!(n > 0);
}
