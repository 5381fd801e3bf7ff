//! Run details that no profiler records: from the user, or written into the trace.
//!
//! A trace can carry any of these facts itself, because `torch.profiler` writes what `add_metadata` is given as
//! top-level keys. What the user says now comes before what the file says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use trace::Metadata;

use super::fields::{NotFacts, fact_field};
use super::source::sha256_hex;

/// Facts that a person supplies; `None` for what is not known. Nothing here is ever guessed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UserFacts {
    /// The experiment in the user's database.
    pub experiment_id: Option<String>,
    /// The trial of the experiment.
    pub trial_id: Option<String>,
    /// The model that was served or trained.
    pub model_name: Option<String>,
    /// The stage that the profile is of, where the trace does not tell.
    pub profile_stage: Option<String>,
    /// The architecture that the conclusions are for: `gfx950`.
    pub target_arch: Option<String>,
    /// The exact tag of the container's image.
    pub base_image: Option<String>,
    /// `single-gpu`, `multi-gpu` or `full-node`.
    pub resource_class: Option<String>,
    /// The GPUs of the run by the node's numbers.
    pub gpu_device_ids: Option<Vec<i64>>,
    /// Clock in MHz by GPU.
    pub gpu_clocks_mhz: Option<BTreeMap<String, f64>>,
    /// Whether the checks before the run passed.
    pub preflight_passed: Option<bool>,
    /// Launch flags, as `server_args.json` has them.
    pub server_flags: Option<Map<String, Value>>,
    /// `sha256:` and the digest of the benchmark's configuration.
    pub benchmark_config_hash: Option<String>,
    /// The framework, where the vote is wrong.
    pub framework: Option<String>,
}

/// The JSON object in `json`.
fn object(json: &str) -> Result<Map<String, Value>, NotFacts> {
    match serde_json::from_str(json) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(NotFacts::new("it is not a JSON object".to_owned())),
        Err(error) => Err(NotFacts::new(format!("it is not JSON: {error}"))),
    }
}

impl UserFacts {
    /// Facts written down as a JSON object. A key that is none of them is an error: it would be lost silently.
    ///
    /// # Errors
    /// When the text is no object of facts, or a fact is not what it can be.
    pub fn from_json(json: &str) -> Result<Self, NotFacts> {
        let members = object(json)?;
        for (key, value) in &members {
            if let Some(field) = fact_field(key)
                && !value.is_null()
            {
                field.check(value)?;
            }
        }
        serde_json::from_value(Value::Object(members))
            .map_err(|error| NotFacts::new(error.to_string()))
    }

    /// Takes the launch flags of a `server_args.json`.
    ///
    /// # Errors
    /// When the text is no JSON object.
    pub fn take_server_args(&mut self, json: &str) -> Result<(), NotFacts> {
        self.server_flags = Some(object(json)?);
        Ok(())
    }

    /// The model and the number of tensor-parallel ranks, as far as the user, the trace or the launch flags of
    /// either tell.
    #[must_use]
    pub fn model_and_tp(&self, metadata: &Metadata) -> (Option<String>, Option<u32>) {
        let carried = Carried::of(metadata);
        let in_trace = || Some(carried.get("server_flags", Value::is_object)?.0);
        let flags = self.server_flags.clone().map(Value::Object).or_else(in_trace);
        let flag = |keys: &[&str]| {
            let flags = flags.as_ref()?;
            keys.iter().find_map(|key| flags.get(*key)).cloned()
        };
        let model =
            flag(&["model_path", "model"]).and_then(|value| value.as_str().map(str::to_owned));
        let tp = flag(&["tp_size", "tensor_parallel_size", "tp"])
            .and_then(|value| u32::try_from(value.as_u64()?).ok());
        let named = self.model_name.clone();
        (named.or_else(|| Some(carried.text("model_name")?.0)).or(model), tp)
    }

    /// Takes the digest of a benchmark's configuration. JSON is hashed in its canonical form (keys sorted, no
    /// blanks), so that the same settings have the same hash; anything else as it is.
    pub fn take_benchmark_config(&mut self, file: &[u8]) {
        let canonical = serde_json::from_slice::<Value>(file).ok().map(|value| canonical(&value));
        let digest = sha256_hex(canonical.as_deref().map_or(file, str::as_bytes));
        self.benchmark_config_hash = Some(format!("sha256:{digest}"));
    }
}

/// JSON with sorted keys and no blanks.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            let members: Vec<String> = sorted
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(values) => {
            format!("[{}]", values.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        scalar => scalar.to_string(),
    }
}

/// The facts that the trace itself carries.
pub(crate) struct Carried<'a> {
    metadata: &'a Metadata,
    /// Objects among the top-level members in which the facts may stand, too.
    nested: Vec<(&'static str, Value)>,
}

impl<'a> Carried<'a> {
    pub(crate) fn of(metadata: &'a Metadata) -> Self {
        let nested = ["metadata", "kinetoscope"].into_iter().filter_map(|key| {
            let value: Value = serde_json::from_str(metadata.get(key)?).ok()?;
            value.is_object().then_some((key, value))
        });
        Self { metadata, nested: nested.collect() }
    }

    /// The value of `key`, and where it stands. `add_metadata` only takes strings, so a string that holds JSON
    /// is read as such where `is_wanted` wants no string.
    pub(crate) fn get(&self, key: &str, is_wanted: fn(&Value) -> bool) -> Option<(Value, String)> {
        let accept = |value: Value| {
            if is_wanted(&value) {
                return Some(value);
            }
            let inner: Value = serde_json::from_str(value.as_str()?).ok()?;
            is_wanted(&inner).then_some(inner)
        };
        let top = self.metadata.get(key).and_then(|json| serde_json::from_str(json).ok());
        if let Some(value) = top.and_then(accept) {
            return Some((value, key.to_owned()));
        }
        self.nested.iter().find_map(|(member, object)| {
            Some((accept(object.get(key)?.clone())?, format!("{member}.{key}")))
        })
    }

    /// A text; a number counts as its digits.
    pub(crate) fn text(&self, key: &str) -> Option<(String, String)> {
        let is_text = |value: &Value| match value {
            Value::String(text) => !text.trim().is_empty(),
            Value::Number(_) => true,
            _ => false,
        };
        let (value, place) = self.get(key, is_text)?;
        Some((value.as_str().map_or_else(|| value.to_string(), str::to_owned), place))
    }

    /// The value at a path below the member `metadata`, as the Hugging Face benchmarks write it.
    pub(crate) fn nested(&self, pointer: &str) -> Option<(Value, String)> {
        let (member, object) = self.nested.iter().find(|(member, _)| *member == "metadata")?;
        let value = object.pointer(pointer)?.clone();
        (!value.is_null()).then(|| (value, format!("{member}{}", pointer.replace('/', "."))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_has_one_hash_however_it_is_laid_out() {
        let hash = |file: &[u8]| {
            let mut facts = UserFacts::default();
            facts.take_benchmark_config(file);
            facts.benchmark_config_hash.unwrap()
        };
        let one = hash(br#"{"b": [1, 2.5], "a": {"y": null, "x": "\u00e9"}}"#);
        assert_eq!(one, hash("{\"a\":{\"x\":\"\u{e9}\",\"y\":null},\n\"b\":[1,2.5]}".as_bytes()));
        assert_ne!(one, hash(br#"{"b": [2.5, 1], "a": {"y": null, "x": "\u00e9"}}"#));
        let text = "{\"a\":{\"x\":\"\u{e9}\",\"y\":null},\"b\":[1,2.5]}";
        assert_eq!(one, format!("sha256:{}", sha256_hex(text.as_bytes())));
        assert_eq!(hash(b"batch: 1\n"), format!("sha256:{}", sha256_hex(b"batch: 1\n")));
    }

    #[test]
    fn what_is_no_fact_is_said() {
        for (json, why) in
            [("[]", "not a JSON object"), ("{", "not JSON"), ("{\"trail_id\": \"1\"}", "trail_id")]
        {
            let error = UserFacts::from_json(json).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let mut facts = UserFacts::from_json("{\"trial_id\": \"1\"}").unwrap();
        let mut trace = Metadata::default();
        assert_eq!(facts.model_and_tp(&trace), (None, None));
        let carried = [("model_name", "\"t\""), ("server_flags", "{\"tp_size\": 2}")];
        trace.members = carried.map(|(key, json)| (key.to_owned(), json.to_owned())).to_vec();
        assert_eq!(facts.model_and_tp(&trace), (Some("t".to_owned()), Some(2)));
        trace.members.remove(0);
        facts.take_server_args("{\"model_path\": \"m\", \"tp_size\": 4}").unwrap();
        assert_eq!(facts.model_and_tp(&trace), (Some("m".to_owned()), Some(4)));
    }

    #[test]
    fn facts_stand_at_the_top_or_in_two_objects() {
        let metadata = Metadata {
            members: [
                ("trial_id", "17"),
                ("server_flags", r#""{\"tp_size\": 8}""#),
                ("experiment_id", r#""  ""#),
                ("metadata", r#"{"base_image": "rocm/vllm:1", "experiment": {"repo_id": "Q/w"}}"#),
                ("kinetoscope", r#"{"experiment_id": "e-4", "base_image": "other"}"#),
            ]
            .map(|(key, json)| (key.to_owned(), json.to_owned()))
            .to_vec(),
        };
        let carried = Carried::of(&metadata);
        let text = |key: &str| carried.text(key);
        let found = |value: &str, place: &str| Some((value.to_owned(), place.to_owned()));
        assert_eq!(text("trial_id"), found("17", "trial_id"));
        assert_eq!(text("base_image"), found("rocm/vllm:1", "metadata.base_image"));
        assert_eq!(text("experiment_id"), found("e-4", "kinetoscope.experiment_id"));
        assert_eq!(text("model_name"), None);
        let (flags, _) = carried.get("server_flags", Value::is_object).unwrap();
        assert_eq!(flags["tp_size"], 8);
        let (model, place) = carried.nested("/experiment/repo_id").unwrap();
        assert_eq!((model.as_str(), place.as_str()), (Some("Q/w"), "metadata.experiment.repo_id"));
    }
}
