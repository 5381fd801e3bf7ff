//! May two runs be compared? Key by key over their `profile_metadata.json` (spec: artifacts.md 5).

use std::collections::BTreeSet;

use report::{Cell, Column, Row, Unit};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::artifacts::STRIPPED;

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparability {
    /// Every key of the contract is the same.
    Comparable,
    /// No key of the contract differs, but some are not known.
    Conditional,
    /// A key of the contract, or the architecture, differs.
    NotComparable,
}

/// What was found for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sameness {
    /// Both have it, and it is the same.
    Same,
    /// Both have it, and it differs.
    Different,
    /// At least one does not say.
    Missing,
}

impl Sameness {
    /// The word for it.
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
    /// Whether the verdict hangs on it.
    pub decides: bool,
    /// The first run's value.
    pub a: String,
    /// The second run's value.
    pub b: String,
}

/// The verdict and its reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guard {
    /// The answer.
    pub verdict: Comparability,
    /// The answer in a sentence, to stand above everything else.
    pub banner: String,
    /// What differs without deciding.
    pub warnings: Vec<String>,
    /// Every key, those that decide first.
    pub rows: Vec<GuardRow>,
}

/// A key: where it stands in the document.
struct Key {
    name: &'static str,
    pointer: &'static str,
    decides: bool,
}

const fn key(name: &'static str, pointer: &'static str, decides: bool) -> Key {
    Key { name, pointer, decides }
}

const KEYS: &[Key] = &[
    key("base_image", "/base_image", true),
    key("resource_class", "/resource_class", true),
    key("gpu_device_ids", "/gpu_device_ids", true),
    key("server_flags", "/server_flags", true),
    key("benchmark_config_hash", "/benchmark_config_hash", true),
    key("observed_arch", "/observed_arch", true),
    key("before_window_counted", "/before_window_counted", true),
    key("device.name", "/device/name", false),
    key("device.cu_or_sm", "/device/cu_or_sm", false),
    key("device.total_global_mem", "/device/total_global_mem", false),
    key("rocm_version", "/rocm_version", false),
    key("cuda_version", "/cuda_version", false),
    key("framework", "/framework", false),
    key("model_name", "/model_name", false),
    key("profile_stage", "/profile_stage", false),
    key("world_size", "/distributed/world_size", false),
    key("with_stack", "/trace/with_stack", false),
    key("record_shapes", "/trace/record_shapes", false),
    key("batch_shape", "/batch_shape", false),
    key("rules_version", "/tool/rules_version", false),
];

/// Compares two documents.
#[must_use]
pub fn guard(a: &Value, b: &Value) -> Guard {
    let mut rows = Vec::new();
    for key in KEYS {
        let (left, right) = (known(a, key), known(b, key));
        // Neither platform has the other's version, and older documents do not say what they count: nothing is missing.
        let absent = ["rocm_version", "cuda_version", "before_window_counted"];
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
            (_, left, right) => rows.push(row(key.name, key.decides, left, right)),
        }
    }
    let of = |result: Sameness, decides: bool| -> Vec<&str> {
        let rows = rows.iter().filter(|row| row.result == result.id() && row.decides == decides);
        rows.map(|row| row.key.as_str()).collect()
    };
    let (different, missing) = (of(Sameness::Different, true), of(Sameness::Missing, true));
    let (verdict, banner) = if !different.is_empty() {
        let banner = format!("Not comparable: {} differ.", different.join(", "));
        (Comparability::NotComparable, banner)
    } else if !missing.is_empty() {
        let banner = format!(
            "Conditionally comparable: nothing that must be the same differs, but {} not known for both runs.",
            match &missing[..] {
                [one] => format!("{one} is"),
                many => format!("{} are", many.join(", ")),
            }
        );
        (Comparability::Conditional, banner)
    } else {
        let banner = "Comparable: everything that must be the same is the same.".to_owned();
        (Comparability::Comparable, banner)
    };
    let mut warnings = Vec::new();
    let other = of(Sameness::Different, false);
    if !other.is_empty() {
        warnings
            .push(format!("Also different, which may explain what follows: {}.", other.join(", ")));
    }
    let same_arch =
        rows.iter().any(|row| row.key == "observed_arch" && row.result == Sameness::Same.id());
    if same_arch
        && (other.contains(&"device.cu_or_sm") || other.contains(&"device.total_global_mem"))
    {
        warnings
            .push("The architecture is the same, but the device is of another size.".to_owned());
    }
    trace::sort_by_key(&mut rows, |row| !row.decides);
    Guard { verdict, banner, warnings, rows }
}

/// The value, unless the document does not say: null, an empty text or list, or `unknown`.
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

/// Flags one by one: only those that differ get a row of their own, for there are hundreds.
fn flags(a: &serde_json::Map<String, Value>, b: &serde_json::Map<String, Value>) -> Vec<GuardRow> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let mut different: Vec<GuardRow> = names
        .iter()
        .filter(|name| a.get(name.as_str()) != b.get(name.as_str()))
        .map(|name| {
            let side = |flags: &serde_json::Map<String, Value>| {
                flags.get(name.as_str()).map_or_else(|| "not set".to_owned(), Value::to_string)
            };
            // Addresses and secrets, taken out of one run and not out of the other: nothing is known of them.
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

/// Ids that the user gave are compared; those of the file number the process's own devices, so of them only the
/// count means something.
fn devices(key: &Key, (a, left): (&Value, &Value), (b, right): (&Value, &Value)) -> GuardRow {
    let is_derived = |document: &Value| {
        let from = document.pointer("/provenance/gpu_device_ids").and_then(Value::as_str);
        from.is_some_and(|from| from.starts_with("derived"))
    };
    if !is_derived(a) && !is_derived(b) {
        return row(key.name, key.decides, Some(left), Some(right));
    }
    let count = |ids: &Value| Value::from(ids.as_array().map_or(0, Vec::len));
    let mut row = row(key.name, key.decides, Some(&count(left)), Some(&count(right)));
    for side in [&mut row.a, &mut row.b] {
        side.push_str(" (count)");
    }
    row
}

impl Row for GuardRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "key",
            title: "Key",
            unit: Unit::Text,
            help: "A key of profile_metadata.json; launch flags one by one.",
            cell: |row| row.key.as_str().into(),
        },
        Column {
            key: "result",
            title: "Result",
            unit: Unit::Text,
            help: "same, different, or missing in at least one of the runs.",
            cell: |row| row.result.as_str().into(),
        },
        Column {
            key: "decides",
            title: "Decides",
            unit: Unit::Flag,
            help: "Whether a difference here makes the runs not comparable.",
            cell: |row| Cell::Flag(row.decides),
        },
        Column {
            key: "a",
            title: "A",
            unit: Unit::Text,
            help: "The first run's value.",
            cell: |row| value(&row.a),
        },
        Column {
            key: "b",
            title: "B",
            unit: Unit::Text,
            help: "The second run's value.",
            cell: |row| value(&row.b),
        },
    ];
}

fn value(text: &str) -> Cell {
    if text.is_empty() { Cell::missing("not supplied") } else { text.into() }
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
        assert!(missing.banner.contains("base_image is not known"), "{}", missing.banner);
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
        assert!(other.warnings[0].contains("rocm_version"));
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
