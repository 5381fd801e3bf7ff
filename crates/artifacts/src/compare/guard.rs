//! Checks whether two runs are comparable, key by key over their `profile_metadata.json` (docs/artifacts.md).
//!
//! A comparison measures the effect of a change only if everything else is equal. Where the hardware, the flags or the rank
//! differ, that difference is what is compared, and the banner says so.

mod facts;
mod row;

use serde_json::Value;

use facts::{FACTS, Subject};

pub use row::{GuardRow, Sameness};

/// The verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparability {
    /// Every deciding key is the same.
    Comparable,
    /// No deciding key differs, but some are not recorded.
    Conditional,
    /// A deciding key differs.
    NotComparable,
}

/// The verdict and its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// The verdict.
    pub verdict: Comparability,
    /// The verdict as a sentence, shown above everything else.
    pub banner: String,
    /// Differences that do not affect the verdict.
    pub warnings: Vec<String>,
    /// Every key, those that decide first.
    pub rows: Vec<GuardRow>,
}

fn labels(rows: &[&GuardRow]) -> String {
    rows.iter().map(|row| row.label.as_str()).collect::<Vec<_>>().join(", ")
}

/// Compares two documents.
#[must_use]
pub fn guard(a: &Value, b: &Value) -> Guard {
    let mut rows: Vec<GuardRow> = FACTS.iter().flat_map(|fact| fact.rows(a, b)).collect();
    let of = |result: Sameness, decides: bool| -> Vec<&GuardRow> {
        rows.iter().filter(|row| row.result == result && row.decides == decides).collect()
    };
    let (different, missing) = (of(Sameness::Different, true), of(Sameness::Missing, true));
    let (verdict, banner) = if !different.is_empty() {
        (Comparability::NotComparable, differing(&different))
    } else if !missing.is_empty() {
        let banner = format!(
            "Conditionally comparable: no required fact differs, but {} {} not recorded for both runs.",
            labels(&missing),
            if missing.len() == 1 { "is" } else { "are" },
        );
        (Comparability::Conditional, banner)
    } else {
        let banner = "Comparable: all required facts are equal.".to_owned();
        (Comparability::Comparable, banner)
    };
    let mut warnings = Vec::new();
    let other = of(Sameness::Different, false);
    if !other.is_empty() {
        warnings
            .push(format!("Other differences that may explain the results: {}.", labels(&other)));
    }
    let is = |rows: &[&GuardRow], key: &str| rows.iter().any(|row| row.key == key);
    if is(&of(Sameness::Same, true), "observed_arch")
        && (is(&other, "device.cu_or_sm") || is(&other, "device.total_global_mem"))
    {
        warnings.push(
            "The architecture is the same, but the device differs in compute units or memory."
                .to_owned(),
        );
    }
    trace::sort_by_key(&mut rows, |row| !row.decides);
    Guard { verdict, banner, warnings, rows }
}

/// The banner of runs in which these deciding facts differ.
fn differing(different: &[&GuardRow]) -> String {
    let found: Vec<Subject> = Subject::ALL
        .into_iter()
        .filter(|of| different.iter().any(|row| row.subject == Some(*of)))
        .collect();
    let keys = format!(
        "{} {}",
        labels(different),
        if different.len() == 1 { "differs" } else { "differ" }
    );
    match found.as_slice() {
        found if found.contains(&Subject::Work) => {
            format!("Cannot be compared: the runs do not measure the same work ({keys}).")
        }
        [Subject::Rank] => format!(
            "Not comparable as a measurement of a change: {}. Differences between the ranks of one job show how work and waiting are distributed.",
            different
                .first()
                .map_or_else(String::new, |row| format!("rank {} and rank {}", row.a, row.b))
        ),
        found => {
            let titles: Vec<&str> = found.iter().map(|subject| subject.title()).collect();
            format!(
                "Not comparable as a measurement of a change: this compares {} ({keys}).",
                titles.join(" and ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::STRIPPED;
    use serde_json::json;

    fn run() -> Value {
        json!({"base_image": "rocm/vllm:1", "resource_class": "single-gpu", "gpu_device_ids": [2],
            "provenance": {"gpu_device_ids": "derived: x"}, "server_flags": {"tp_size": 1, "model": "m"},
            "benchmark_config_hash": "sha256:1", "observed_arch": "gfx942", "rocm_version": "7.0",
            "before_window_counted": false,
            "device": {"name": "MI300X"}})
    }

    fn with(pointer: &str, value: Value) -> Value {
        let mut run = run();
        *run.pointer_mut(pointer).unwrap() = value;
        run
    }

    fn result(guard: &Guard, key: &str) -> Sameness {
        guard.rows.iter().find(|row| row.key == key).map(|row| row.result).unwrap()
    }

    #[test]
    fn the_three_verdicts() {
        let same = guard(&run(), &run());
        assert_eq!(same.verdict, Comparability::Comparable);
        assert!(same.warnings.is_empty());
        let missing = guard(&run(), &with("/base_image", Value::Null));
        assert_eq!(missing.verdict, Comparability::Conditional);
        assert!(missing.banner.contains("container image is not recorded"), "{}", missing.banner);
        assert_eq!(result(&missing, "base_image"), Sameness::Missing);
        for (pointer, value) in [
            ("/base_image", json!("rocm/vllm:2")),
            ("/resource_class", json!("full-node")),
            ("/benchmark_config_hash", json!("sha256:2")),
            ("/observed_arch", json!("gfx950")),
            ("/server_flags/tp_size", json!(8)),
            ("/gpu_device_ids", json!([0, 1])),
            ("/before_window_counted", json!(true)),
        ] {
            let found = guard(&run(), &with(pointer, value));
            assert_eq!(found.verdict, Comparability::NotComparable, "{pointer}");
        }
        let other = guard(&run(), &with("/rocm_version", json!("7.2")));
        assert_eq!(other.verdict, Comparability::Comparable);
        assert!(other.warnings[0].contains("ROCm version"));
    }

    #[test]
    fn ranks_of_a_job_differ_by_their_work_and_not_by_a_change() {
        let of_rank = |rank: i64| {
            let mut run = run();
            run["distributed"] = json!({"rank": rank, "world_size": 8});
            run
        };
        let found = guard(&of_rank(0), &of_rank(3));
        assert_eq!(found.verdict, Comparability::NotComparable);
        assert!(
            found.banner.contains("rank 0 and rank 3. Differences between the ranks of one job"),
            "{found:?}"
        );
        assert_eq!(guard(&of_rank(3), &of_rank(3)).verdict, Comparability::Comparable);
        // The name of the file counts where the trace records no rank.
        let named = |name: &str| {
            let mut run = run();
            run["source_trace_path"] = json!(name);
            run
        };
        let found = guard(&named("run-TP-0.json.gz"), &named("run-TP-1.json.gz"));
        assert!(found.banner.contains("rank 0 and rank 1"), "{found:?}");
        assert!(!guard(&run(), &run()).rows.iter().any(|row| row.key == "rank"), "nobody has one");
    }

    #[test]
    fn the_banner_says_what_is_compared_if_it_is_not_a_change() {
        let banner = |pointer: &str, value: Value| guard(&run(), &with(pointer, value)).banner;
        let change = "Not comparable as a measurement of a change: this compares";
        for (pointer, value, said) in [
            ("/observed_arch", json!("gfx950"), "hardware (GPU architecture differs)"),
            ("/server_flags/tp_size", json!(8), "launch flags (launch flag tp_size differs)"),
            ("/base_image", json!("rocm/vllm:2"), "software (container image differs)"),
        ] {
            assert_eq!(banner(pointer, value), format!("{change} {said}."));
        }
        for (pointer, value) in
            [("/benchmark_config_hash", json!("sha256:2")), ("/before_window_counted", json!(true))]
        {
            let banner = banner(pointer, value);
            assert!(banner.starts_with("Cannot be compared: "), "{banner}");
        }
    }

    #[test]
    fn flags_are_compared_one_by_one() {
        let found = guard(&run(), &with("/server_flags", json!({"model": "m", "chunk": 2})));
        assert_eq!(result(&found, "server_flags.tp_size"), Sameness::Different);
        let chunk = found.rows.iter().find(|row| row.key == "server_flags.chunk").unwrap();
        assert_eq!((chunk.a.as_str(), chunk.b.as_str()), ("not set", "2"));
        assert!(!found.rows.iter().any(|row| row.key == "server_flags.model"));
    }

    #[test]
    fn what_was_taken_out_of_one_run_does_not_differ() {
        let flags =
            |host: &str| with("/server_flags", json!({"tp_size": 1, "model": "m", "host": host}));
        let found = guard(&flags("10.0.0.4"), &flags(STRIPPED));
        assert_eq!(found.verdict, Comparability::Comparable);
        assert_eq!(result(&found, "server_flags.host"), Sameness::Missing);
        assert_eq!(result(&found, "server_flags"), Sameness::Same);
        let found = guard(&flags("10.0.0.4"), &flags("10.0.0.5"));
        assert_eq!(found.verdict, Comparability::NotComparable);
    }

    #[test]
    fn device_numbers_of_a_process_are_only_counted() {
        assert_eq!(
            guard(&run(), &with("/gpu_device_ids", json!([9]))).verdict,
            Comparability::Comparable
        );
        let user = |ids: Value| {
            let mut run = with("/gpu_device_ids", ids);
            run["provenance"]["gpu_device_ids"] = json!("user");
            run
        };
        let found = guard(&user(json!([2])), &user(json!([9])));
        assert_eq!(found.verdict, Comparability::NotComparable);
        assert_eq!(guard(&user(json!([2])), &user(json!([2]))).verdict, Comparability::Comparable);
    }
}
