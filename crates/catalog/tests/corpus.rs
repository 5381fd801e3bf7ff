//! Every kernel of every simulated and every real trace gets a class.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use catalog::{Category, Platform, RawKind, classify};

/// Kernel names of one trace with their GPU time in ns.
struct Kernels {
    trace: String,
    rows: Vec<(String, u64)>,
}

fn corpus() -> Vec<Kernels> {
    let with_kernels = testkit::trace_samples().into_iter().filter_map(|sample| {
        let rows = sample.truth()["gpu"]["kernels_all"].as_array()?.clone();
        let row = |row: &serde_json::Value| {
            (row[0].as_str().unwrap().to_owned(), row[2].as_u64().unwrap())
        };
        Some(Kernels { trace: sample.name, rows: rows.iter().map(row).collect() })
    });
    with_kernels.collect()
}

#[test]
fn less_than_two_percent_of_the_time_is_other() {
    for Kernels { trace, rows } in corpus() {
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
    let mut n = 0;
    for Kernels { trace, rows } in corpus() {
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
