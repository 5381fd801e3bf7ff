//! The table of run details. It defines the form of the page and the checks of a facts file.

use serde_json::Value;

use catalog::architectures;
use report::units;
use triage::Stage;

/// Why a text is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFacts(String);

impl NotFacts {
    /// For this reason.
    pub(crate) fn new(reason: String) -> Self {
        Self(reason)
    }
}

impl std::fmt::Display for NotFacts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for NotFacts {}

/// What a fact is, and so how it is written and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactKind {
    /// Any words.
    Text,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// A name of an architecture.
    Architecture,
    /// Numbers of GPUs: `0, 1`.
    Ids,
    /// MHz by GPU: `0: 2100, 1: 2100`.
    Clocks,
    /// `yes` or `no`.
    YesNo,
    /// `sha256:` and 64 hex digits.
    Digest,
}

/// One fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactField {
    /// Its key in `profile_metadata.json` and in a facts file.
    pub key: &'static str,
    /// What a person reads before it.
    pub title: &'static str,
    /// What it is for, in one sentence.
    pub help: &'static str,
    /// How it may look.
    pub example: &'static str,
    /// What it is.
    pub kind: FactKind,
}

const STAGES: &[&str] = &[
    "extend",
    "decode",
    "mixed",
    "capture",
    "forward",
    "backward",
    "weight-grad",
    "optimizer",
    "all",
];
const CLASSES: &[&str] = &["single-gpu", "multi-gpu", "full-node"];

/// Every fact but the launch flags, which are a file of their own.
pub const FACT_FIELDS: &[FactField] = &[
    FactField {
        key: "experiment_id",
        title: "Experiment",
        help: "The ID of the experiment in your database.",
        example: "exp-2041",
        kind: FactKind::Text,
    },
    FactField {
        key: "trial_id",
        title: "Trial",
        help: "The ID of the trial within the experiment.",
        example: "17",
        kind: FactKind::Text,
    },
    FactField {
        key: "model_name",
        title: "Model",
        help: "The model that was served or trained. Default: from the launch flags.",
        example: "Qwen/Qwen3-235B-A22B",
        kind: FactKind::Text,
    },
    FactField {
        key: "base_image",
        title: "Base image",
        help: "The exact tag of the container image. Runs of different images are not comparable.",
        example: "rocm/vllm:rocm7.0_20260801",
        kind: FactKind::Text,
    },
    FactField {
        key: "target_arch",
        title: "Target architecture",
        help: "The GPU architecture that you want to draw conclusions about. The metadata records whether this trace applies to it.",
        example: "gfx950",
        kind: FactKind::Architecture,
    },
    FactField {
        key: "resource_class",
        title: "Resource class",
        help: "Default: derived from the world size, if recorded.",
        example: "single-gpu",
        kind: FactKind::Choice(CLASSES),
    },
    FactField {
        key: "gpu_device_ids",
        title: "GPUs on the node",
        help: "GPU indices on the node. A trace contains only the indices within its process.",
        example: "0, 1, 2, 3",
        kind: FactKind::Ids,
    },
    FactField {
        key: "gpu_clocks_mhz",
        title: "GPU clocks (MHz)",
        help: "Clock of each GPU; torch.profiler does not record it.",
        example: "0: 2100, 1: 2100",
        kind: FactKind::Clocks,
    },
    FactField {
        key: "preflight_passed",
        title: "Preflight passed",
        help: "Whether the checks made before the run passed.",
        example: "yes",
        kind: FactKind::YesNo,
    },
    FactField {
        key: "profile_stage",
        title: "Profiled stage",
        help: "Set this only if the annotations of the trace do not show the stage.",
        example: "decode",
        kind: FactKind::Choice(STAGES),
    },
    FactField {
        key: "framework",
        title: "Framework",
        help: "Set this only if the detected framework is wrong.",
        example: "sglang",
        kind: FactKind::Text,
    },
    FactField {
        key: "benchmark_config_hash",
        title: "Benchmark configuration",
        help: "Hash of the configuration file (as canonical JSON). The file itself is not exported.",
        example: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        kind: FactKind::Digest,
    },
];

/// The field of a key.
#[must_use]
pub fn fact_field(key: &str) -> Option<&'static FactField> {
    FACT_FIELDS.iter().find(|field| field.key == key)
}

impl FactField {
    /// The value that a person wrote; `None` for blanks.
    ///
    /// # Errors
    /// When it cannot be one; the text says what is wanted.
    pub fn value(&self, text: &str) -> Result<Option<Value>, NotFacts> {
        self.check_text(text)?;
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        Ok(Some(match self.kind {
            FactKind::Text | FactKind::Choice(_) | FactKind::Architecture | FactKind::Digest => {
                Value::from(text)
            }
            FactKind::YesNo => yes_or_no(text).into(),
            FactKind::Ids => parts(text).filter_map(|part| part.parse::<u32>().ok()).collect(),
            FactKind::Clocks => {
                let clocks = parts(text).filter_map(clock);
                Value::Object(clocks.map(|(id, mhz)| (id.to_owned(), Value::from(mhz))).collect())
            }
        }))
    }

    /// Whether a person wrote a value, or blanks. (The page only checks: values would add a JSON library to its download.)
    ///
    /// # Errors
    /// When it cannot be a value; the text says what is wanted.
    pub fn check_text(&self, text: &str) -> Result<(), NotFacts> {
        let text = text.trim();
        let good = text.is_empty()
            || match self.kind {
                FactKind::YesNo => yes_or_no(text).is_some(),
                FactKind::Ids => parts(text).all(|part| part.parse::<u32>().is_ok()),
                FactKind::Clocks => {
                    parts(text).all(|part| clock(part).is_some_and(|(id, mhz)| is_clock(id, mhz)))
                }
                _ => self.is_text(text),
            };
        if good { Ok(()) } else { Err(self.wanted()) }
    }

    /// Whether a value of a facts file can be this fact.
    pub(crate) fn check(&self, value: &Value) -> Result<(), NotFacts> {
        let good = match self.kind {
            FactKind::Ids => {
                value.as_array().is_some_and(|ids| ids.iter().all(|id| id.as_u64().is_some()))
            }
            FactKind::Clocks => value.as_object().is_some_and(|clocks| {
                clocks.iter().all(|(id, mhz)| mhz.as_f64().is_some_and(|mhz| is_clock(id, mhz)))
            }),
            FactKind::YesNo => value.is_boolean(),
            _ => value.as_str().is_some_and(|text| self.is_text(text)),
        };
        if good { Ok(()) } else { Err(self.wanted()) }
    }

    /// Whether a text can be this fact, if that is a text.
    fn is_text(&self, text: &str) -> bool {
        match self.kind {
            FactKind::Text => true,
            FactKind::Choice(words) => words.contains(&text),
            FactKind::Architecture => architectures::spelled(text).is_some(),
            FactKind::Digest => text.strip_prefix("sha256:").is_some_and(|hex| {
                hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
            }),
            FactKind::Ids | FactKind::Clocks | FactKind::YesNo => false,
        }
    }

    /// What is wanted of it.
    fn wanted(&self) -> NotFacts {
        let Self { key, example, .. } = self;
        NotFacts::new(match self.kind {
            FactKind::Text => format!("{key} must be text, such as {example}"),
            FactKind::Choice(words) => format!("{key} must be one of {}", words.join(", ")),
            FactKind::Architecture => {
                format!("{key} must be a compiler's architecture name, such as gfx950 or sm_90")
            }
            FactKind::Ids => format!("{key} must be a list of GPU numbers, such as {example}"),
            FactKind::Clocks => format!("{key} must be MHz per GPU, such as {example}"),
            FactKind::YesNo => format!("{key} must be yes or no"),
            FactKind::Digest => format!("{key} must be sha256: and 64 hex digits"),
        })
    }
}

/// The parts of a list.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" => Some(true),
        "no" | "false" => Some(false),
        _ => None,
    }
}

/// A GPU and its MHz, as in `0: 2100`.
fn clock(part: &str) -> Option<(&str, f64)> {
    let (id, mhz) = part.split_once(':')?;
    Some((id.trim(), units::decimal(mhz.trim())?))
}

fn is_clock(id: &str, mhz: f64) -> bool {
    !id.is_empty() && mhz.is_finite() && mhz > 0.0
}

/// The stage of a word.
///
/// # Errors
/// When it is none; the text names those that there are.
pub fn stage_of_word(text: &str) -> Result<Stage, NotFacts> {
    let text = text.trim().to_ascii_lowercase();
    let id = if text == "prefill" { "extend" } else { &text };
    Stage::EVERY
        .into_iter()
        .find(|stage| stage.id() == id)
        .ok_or_else(|| NotFacts::new(format!("one of {}", STAGES.join(", "))))
}

/// A share in percent, as a cut-off.
///
/// # Errors
/// When it is no number from 0 to 100.
pub fn cutoff_of_text(text: &str) -> Result<f64, NotFacts> {
    let value = units::decimal(text.trim()).filter(|value| (0.0..=100.0).contains(value));
    value.ok_or_else(|| NotFacts::new("a number from 0 to 100".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UserFacts;
    use serde_json::{Map, json};

    fn value(key: &str, text: &str) -> Result<Option<Value>, NotFacts> {
        fact_field(key).unwrap().value(text)
    }

    #[test]
    fn every_fact_but_the_flags_has_a_field_whose_example_is_one() {
        let mut facts = Map::new();
        for field in FACT_FIELDS {
            facts.insert(field.key.to_owned(), field.value(field.example).unwrap().unwrap());
        }
        let facts = UserFacts::from_json(&Value::Object(facts).to_string()).unwrap();
        let Value::Object(all) = serde_json::to_value(&facts).unwrap() else { unreachable!() };
        let unset: Vec<&String> =
            all.iter().filter(|(_, value)| value.is_null()).map(|(key, _)| key).collect();
        assert_eq!(unset, ["server_flags"]);
    }

    #[test]
    fn what_a_person_writes_is_read_or_said_to_be_wrong() {
        assert_eq!(value("trial_id", "  ").unwrap(), None);
        assert_eq!(value("gpu_device_ids", "0,3 , 5,").unwrap(), Some(json!([0, 3, 5])));
        assert_eq!(value("gpu_clocks_mhz", "0: 2100, 1:1950.5").unwrap().unwrap()["1"], 1950.5);
        assert_eq!(value("preflight_passed", "No").unwrap(), Some(json!(false)));
        for (key, text) in [
            ("gpu_device_ids", "one"),
            ("gpu_device_ids", "-1"),
            ("gpu_clocks_mhz", "2100"),
            ("gpu_clocks_mhz", "0: NaN"),
            ("gpu_clocks_mhz", "0: -5"),
            ("preflight_passed", "maybe"),
            ("resource_class", "two nodes"),
            ("profile_stage", "serving"),
            ("target_arch", "MI355X"),
            ("benchmark_config_hash", "sha256:12"),
        ] {
            let error = value(key, text).unwrap_err().to_string();
            assert!(error.starts_with(key), "{error}");
            let json = json!({ key: text }).to_string();
            assert!(
                UserFacts::from_json(&json).is_err(),
                "the same checks hold for a facts file: {json}"
            );
        }
    }

    #[test]
    fn the_stages_of_the_table_are_all() {
        assert_eq!(Stage::EVERY.map(Stage::id), STAGES);
        assert_eq!(stage_of_word("Prefill").unwrap(), Stage::Extend);
        assert!(stage_of_word("moon").unwrap_err().to_string().contains("decode"));
        assert!(cutoff_of_text("0.5").is_ok() && cutoff_of_text("101").is_err());
        assert!(cutoff_of_text("NaN").is_err());
    }
}
