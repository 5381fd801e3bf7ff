//! Checks whether two runs are comparable, key by key over their `profile_metadata.json` (docs/artifacts.md).
//!
//! A comparison measures the effect of a change only if everything else is equal. Where the hardware, the flags or the rank
//! differ, that difference is what is compared, and the banner says so.

use std::collections::BTreeSet;

use report::{Cell, Column, Row, Unit};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::STRIPPED;
use crate::rank_of_name;

/// The verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparability {
    /// Every deciding key is the same.
    Comparable,
    /// No deciding key differs, but some are not recorded.
    Conditional,
    /// A deciding key differs.
    NotComparable,
}

/// The result for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sameness {
    /// Both runs have it, with the same value.
    Same,
    /// Both runs have it, with different values.
    Different,
    /// At least one run lacks it.
    Missing,
}

impl Sameness {
    /// The id in the JSON.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
            Self::Missing => "missing",
        }
    }
}

/// One key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuardRow {
    /// The key; of launch flags `server_flags.tp_size`.
    pub key: String,
    /// same, different or missing.
    pub result: String,
    /// Whether a difference makes the runs not comparable.
    pub decides: bool,
    /// The first run's value.
    pub a: String,
    /// The second run's value.
    pub b: String,
}

/// The verdict and its reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// What two runs differ in when a deciding key differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// Other work, or other work counted: no figure of one run answers to one of the other.
    Work,
    /// The machine.
    Hardware,
    /// The launch flags.
    Flags,
    /// The software image.
    Software,
    /// The process of a distributed job.
    Rank,
}

impl Subject {
    /// In the order of the banner.
    const ALL: [Self; 5] = [Self::Work, Self::Hardware, Self::Flags, Self::Software, Self::Rank];

    fn title(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Hardware => "hardware",
            Self::Flags => "launch flags",
            Self::Software => "software",
            Self::Rank => "ranks",
        }
    }
}

/// A key, and where it is in the document.
struct Key {
    name: &'static str,
    /// The words for it in sentences and tables.
    label: &'static str,
    pointer: &'static str,
    /// `None` where a difference does not decide.
    subject: Option<Subject>,
}

const fn decides(
    name: &'static str,
    label: &'static str,
    pointer: &'static str,
    subject: Subject,
) -> Key {
    Key { name, label, pointer, subject: Some(subject) }
}

const fn key(name: &'static str, label: &'static str, pointer: &'static str) -> Key {
    Key { name, label, pointer, subject: None }
}

const KEYS: &[Key] = &[
    decides("base_image", "container image", "/base_image", Subject::Software),
    decides("resource_class", "resource class", "/resource_class", Subject::Hardware),
    decides("gpu_device_ids", "GPUs", "/gpu_device_ids", Subject::Hardware),
    decides("server_flags", "launch flags", "/server_flags", Subject::Flags),
    decides(
        "benchmark_config_hash",
        "benchmark configuration",
        "/benchmark_config_hash",
        Subject::Work,
    ),
    decides("observed_arch", "GPU architecture", "/observed_arch", Subject::Hardware),
    decides(
        "before_window_counted",
        "kernels launched before profiling",
        "/before_window_counted",
        Subject::Work,
    ),
    decides(RANK, "rank", "/distributed/rank", Subject::Rank),
    key("device.name", "GPU model", "/device/name"),
    key("device.cu_or_sm", "compute units or SMs", "/device/cu_or_sm"),
    key("device.total_global_mem", "GPU memory", "/device/total_global_mem"),
    key("rocm_version", "ROCm version", "/rocm_version"),
    key("cuda_version", "CUDA version", "/cuda_version"),
    key("framework", "framework", "/framework"),
    key("model_name", "model", "/model_name"),
    key("profile_stage", "profiled stage", "/profile_stage"),
    key("world_size", "world size", "/distributed/world_size"),
    key("with_stack", "Python stacks recorded", "/trace/with_stack"),
    key("record_shapes", "input shapes recorded", "/trace/record_shapes"),
    key("batch_shape", "batch", "/batch_shape"),
    key("rules_version", "rules of Kinetoscope", "/tool/rules_version"),
];

const RANK: &str = "rank";

/// The words for a key: "GPU architecture"; of launch flags "launch flag tp_size".
fn label(name: &str) -> String {
    let known = |name: &str| KEYS.iter().find(|key| key.name == name).map(|key| key.label);
    match name.strip_prefix("server_flags.") {
        Some(flag) => format!("launch flag {flag}"),
        None => known(name).unwrap_or(name).to_owned(),
    }
}

fn labels(names: &[&str]) -> String {
    names.iter().map(|name| label(name)).collect::<Vec<_>>().join(", ")
}

/// The process of a distributed job, as the trace records it, else as its file name says.
fn rank(document: &Value) -> Option<Value> {
    let recorded = document.pointer("/distributed/rank").filter(|rank| rank.is_i64()).cloned();
    recorded.or_else(|| {
        let name = document.pointer("/source_trace_path")?.as_str()?;
        rank_of_name(name).map(Value::from)
    })
}

/// Compares two documents.
#[must_use]
pub fn guard(a: &Value, b: &Value) -> Guard {
    let mut rows = Vec::new();
    for key in KEYS {
        let ranks = (key.name == RANK).then(|| (rank(a), rank(b)));
        let (left, right) = match &ranks {
            Some((left, right)) => (left.as_ref(), right.as_ref()),
            None => (known(a, key), known(b, key)),
        };
        // Neither platform has the other's version, older documents do not say what they count, and a job of one process has
        // no rank: nothing is missing.
        let absent = ["rocm_version", "cuda_version", "before_window_counted", RANK];
        if left.is_none() && right.is_none() && absent.contains(&key.name) {
            continue;
        }
        match (key.name, left, right) {
            ("server_flags", Some(Value::Object(left)), Some(Value::Object(right))) => {
                rows.extend(flags(left, right));
            }
            ("gpu_device_ids", Some(left), Some(right)) => {
                rows.push(devices(key, (a, left), (b, right)))
            }
            (_, left, right) => rows.push(row(key.name, key.subject.is_some(), left, right)),
        }
    }
    let of = |result: Sameness, decides: bool| -> Vec<&str> {
        let rows = rows.iter().filter(|row| row.result == result.id() && row.decides == decides);
        rows.map(|row| row.key.as_str()).collect()
    };
    let (different, missing) = (of(Sameness::Different, true), of(Sameness::Missing, true));
    let (verdict, banner) = if !different.is_empty() {
        (Comparability::NotComparable, differing(&rows, &different))
    } else if !missing.is_empty() {
        let banner = format!(
            "Conditionally comparable: no required fact differs, but {} not recorded for both runs.",
            match &missing[..] {
                [one] => format!("{} is", label(one)),
                many => format!("{} are", labels(many)),
            }
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
    let same_arch =
        rows.iter().any(|row| row.key == "observed_arch" && row.result == Sameness::Same.id());
    if same_arch
        && (other.contains(&"device.cu_or_sm") || other.contains(&"device.total_global_mem"))
    {
        warnings.push(
            "The architecture is the same, but the device differs in compute units or memory."
                .to_owned(),
        );
    }
    trace::sort_by_key(&mut rows, |row| !row.decides);
    Guard { verdict, banner, warnings, rows }
}

/// The banner of runs in which these deciding keys differ.
fn differing(rows: &[GuardRow], different: &[&str]) -> String {
    let subject = |name: &str| {
        let name = name.split('.').next().unwrap_or(name);
        KEYS.iter().find(|key| key.name == name).and_then(|key| key.subject)
    };
    let found: Vec<Subject> = Subject::ALL
        .into_iter()
        .filter(|of| different.iter().any(|name| subject(name) == Some(*of)))
        .collect();
    let keys = match different {
        [one] => format!("{} differs", label(one)),
        many => format!("{} differ", labels(many)),
    };
    if found.contains(&Subject::Work) {
        return format!("Cannot be compared: the runs do not measure the same work ({keys}).");
    }
    if found == [Subject::Rank]
        && let Some(row) = rows.iter().find(|row| row.key == RANK)
    {
        return format!(
            "Not comparable as a measurement of a change: rank {} and rank {}. Differences between the ranks of one job show how work and waiting are distributed.",
            row.a, row.b
        );
    }
    let titles: Vec<&str> = found.iter().map(|subject| subject.title()).collect();
    format!(
        "Not comparable as a measurement of a change: this compares {} ({keys}).",
        titles.join(" and ")
    )
}

/// The value, unless the document does not record it: null, an empty text or list, or `unknown`.
fn known<'a>(document: &'a Value, key: &Key) -> Option<&'a Value> {
    let value = document.pointer(key.pointer)?;
    let empty = match value {
        Value::Null => true,
        Value::String(text) => text.is_empty() || text == "unknown",
        Value::Array(values) => values.is_empty(),
        _ => false,
    };
    (!empty).then_some(value)
}

fn row(name: &str, decides: bool, a: Option<&Value>, b: Option<&Value>) -> GuardRow {
    let result = match (a, b) {
        (Some(a), Some(b)) if a == b => Sameness::Same,
        (Some(_), Some(_)) => Sameness::Different,
        _ => Sameness::Missing,
    };
    let text = |value: Option<&Value>| match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    GuardRow {
        key: name.to_owned(),
        result: result.id().to_owned(),
        decides,
        a: text(a),
        b: text(b),
    }
}

/// Compares flags one by one. Only those that differ get a row, because there are hundreds.
fn flags(a: &serde_json::Map<String, Value>, b: &serde_json::Map<String, Value>) -> Vec<GuardRow> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let mut different: Vec<GuardRow> = names
        .iter()
        .filter(|name| a.get(name.as_str()) != b.get(name.as_str()))
        .map(|name| {
            let side = |flags: &serde_json::Map<String, Value>| {
                flags.get(name.as_str()).map_or_else(|| "not set".to_owned(), Value::to_string)
            };
            // Addresses and secrets that were removed from one run cannot be compared.
            let taken_out = [a, b]
                .iter()
                .any(|flags| flags.get(name.as_str()).is_some_and(|value| value == STRIPPED));
            let result = if taken_out { Sameness::Missing } else { Sameness::Different };
            GuardRow {
                key: format!("server_flags.{name}"),
                result: result.id().to_owned(),
                decides: !taken_out,
                a: side(a),
                b: side(b),
            }
        })
        .collect();
    if !different.iter().any(|row| row.decides) {
        let all = format!("{} flags", names.len());
        different.push(GuardRow {
            key: "server_flags".to_owned(),
            result: Sameness::Same.id().to_owned(),
            decides: true,
            a: all.clone(),
            b: all,
        });
    }
    different
}

/// Ids from the user are compared. Ids from the file number the process's own devices, so only their
/// count is compared.
fn devices(key: &Key, (a, left): (&Value, &Value), (b, right): (&Value, &Value)) -> GuardRow {
    let is_derived = |document: &Value| {
        let from = document.pointer("/provenance/gpu_device_ids").and_then(Value::as_str);
        from.is_some_and(|from| from.starts_with("derived"))
    };
    if !is_derived(a) && !is_derived(b) {
        return row(key.name, key.subject.is_some(), Some(left), Some(right));
    }
    let count = |ids: &Value| Value::from(ids.as_array().map_or(0, Vec::len));
    let mut row = row(key.name, key.subject.is_some(), Some(&count(left)), Some(&count(right)));
    for side in [&mut row.a, &mut row.b] {
        side.push_str(" (count)");
    }
    row
}

impl Row for GuardRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "key",
            title: "Fact",
            unit: Unit::Text,
            help: "The fact that is compared. Launch flags are compared one by one.",
            cell: |row| Cell::Word {
                id: row.key.clone().into(),
                label: label(&row.key).into(),
                meaning: "".into(),
            },
        },
        Column {
            key: "result",
            title: "Result",
            unit: Unit::Text,
            help: "same, different, or missing in at least one run.",
            cell: |row| row.result.as_str().into(),
        },
        Column {
            key: "decides",
            title: "Required",
            unit: Unit::Flag,
            help: "Whether a difference in this fact makes the runs incomparable.",
            cell: |row| Cell::Flag(row.decides),
        },
        Column {
            key: "a",
            title: "A",
            unit: Unit::Text,
            help: "Value in A.",
            cell: |row| value(&row.key, &row.a),
        },
        Column {
            key: "b",
            title: "B",
            unit: Unit::Text,
            help: "Value in B.",
            cell: |row| value(&row.key, &row.b),
        },
    ];
}

fn value<'a>(key: &str, text: &'a str) -> Cell<'a> {
    match (key, text.parse::<u64>()) {
        ("device.total_global_mem", Ok(bytes)) => Cell::Bytes(bytes),
        _ if text.is_empty() => Cell::missing("not recorded"),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    fn result(guard: &Guard, key: &str) -> String {
        guard.rows.iter().find(|row| row.key == key).map(|row| row.result.clone()).unwrap()
    }

    #[test]
    fn the_three_verdicts() {
        let same = guard(&run(), &run());
        assert_eq!(same.verdict, Comparability::Comparable);
        assert!(same.warnings.is_empty());
        let missing = guard(&run(), &with("/base_image", Value::Null));
        assert_eq!(missing.verdict, Comparability::Conditional);
        assert!(missing.banner.contains("container image is not recorded"), "{}", missing.banner);
        assert_eq!(result(&missing, "base_image"), "missing");
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
        assert!(!guard(&run(), &run()).rows.iter().any(|row| row.key == RANK), "nobody has one");
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
        assert_eq!(result(&found, "server_flags.tp_size"), "different");
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
        assert_eq!(result(&found, "server_flags.host"), "missing");
        assert_eq!(result(&found, "server_flags"), "same");
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
