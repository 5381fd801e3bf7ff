//! Values that have more than one possible source, and a note of the source of each.
//!
//! The user comes before the file, and the file before what a rule derives from it.

use std::collections::BTreeMap;

use analysis::TraceReport;
use serde_json::{Map, Value};

use super::of_file::Distributed;
use super::{MetadataInput, RunFacts};
use crate::facts::{Carried, UserFacts};

/// Looks values up; remembers the source of each value that it found.
pub(super) struct Sourced<'a> {
    facts: &'a UserFacts,
    carried: Carried<'a>,
    provenance: BTreeMap<String, String>,
}

impl<'a> Sourced<'a> {
    pub(super) fn new(input: &MetadataInput<'a>) -> Self {
        let carried = Carried::of(&input.decoded.trace.metadata);
        Self { facts: input.facts, carried, provenance: BTreeMap::new() }
    }

    /// The source of each value: `user`, `trace: <member>` or `derived: <rule>`.
    pub(super) fn into_provenance(self) -> BTreeMap<String, String> {
        self.provenance
    }

    fn first<T>(&mut self, key: &str, user: Option<T>, file: Option<(T, String)>) -> Option<T> {
        let (value, place) = match (user, file) {
            (Some(value), _) => (value, "user".to_owned()),
            (None, Some((value, place))) => (value, format!("trace: {place}")),
            (None, None) => return None,
        };
        self.provenance.insert(key.to_owned(), place);
        Some(value)
    }

    fn derived<T>(&mut self, key: &str, from: &str, value: T) -> T {
        self.provenance.insert(key.to_owned(), format!("derived: {from}"));
        value
    }

    /// A text of the user or of the file; `of` picks the user's.
    pub(super) fn text(
        &mut self,
        key: &str,
        of: fn(&UserFacts) -> &Option<String>,
    ) -> Option<String> {
        let carried = self.carried.text(key);
        self.first(key, of(self.facts).clone(), carried)
    }

    pub(super) fn server_flags(&mut self) -> Option<Map<String, Value>> {
        let carried = self.carried.get("server_flags", Value::is_object);
        let flags = carried.and_then(|(value, place)| match value {
            Value::Object(flags) => Some((flags, place)),
            _ => None,
        });
        self.first("server_flags", self.facts.server_flags.clone(), flags)
    }

    /// The model: named as such, by a launch flag, or by the benchmark that recorded the trace.
    pub(super) fn model_name(&mut self, flags: Option<&Map<String, Value>>) -> Option<String> {
        let named = self.text("model_name", |facts| &facts.model_name);
        let by_flag = || {
            let text = |key: &str| flags?.get(key)?.as_str().map(str::to_owned);
            ["model_path", "model"].into_iter().find_map(|key| Some((key, text(key)?)))
        };
        if named.is_some() {
            return named;
        }
        if let Some((key, name)) = by_flag() {
            return Some(self.derived("model_name", &format!("server_flags.{key}"), name));
        }
        let (value, place) = self.carried.nested("/experiment/repo_id")?;
        self.first("model_name", None, Some((value.as_str()?.to_owned(), place)))
    }

    pub(super) fn resource_class(&mut self, distributed: Option<&Distributed>) -> Option<String> {
        let named = self.text("resource_class", |facts| &facts.resource_class);
        if named.is_some() {
            return named;
        }
        let class = match distributed?.world_size? {
            1 => "single-gpu",
            2..=7 => "multi-gpu",
            8 => "full-node",
            // More ranks than a common node has GPUs: no class of the contract says "several nodes".
            _ => return None,
        };
        Some(self.derived("resource_class", "distributedInfo.world_size", class.to_owned()))
    }

    pub(super) fn gpu_device_ids(&mut self, report: &TraceReport) -> Vec<i64> {
        let carried = self.carried.get("gpu_device_ids", Value::is_array);
        let ids = carried.and_then(|(value, place)| {
            Some((value.as_array()?.iter().filter_map(Value::as_i64).collect(), place))
        });
        if let Some(ids) = self.first("gpu_device_ids", self.facts.gpu_device_ids.clone(), ids) {
            return ids;
        }
        // Numbers of the process, not of the node: an index of the agent on ROCm.
        let used = report.devices.iter().filter(|device| device.n_kernels > 0);
        let ids = used.filter_map(|device| device.device.parse().ok()).collect();
        self.derived("gpu_device_ids", "devices of kernels, as numbered by the profiler", ids)
    }

    pub(super) fn gpu_clocks_mhz(&mut self) -> Option<BTreeMap<String, f64>> {
        let carried = self.carried.get("gpu_clocks_mhz", Value::is_object);
        let clocks = carried.and_then(|(value, place)| {
            let numbers = value.as_object()?.iter();
            let numbers = numbers.filter_map(|(id, mhz)| Some((id.clone(), mhz.as_f64()?)));
            Some((numbers.collect(), place))
        });
        self.first("gpu_clocks_mhz", self.facts.gpu_clocks_mhz.clone(), clocks)
    }

    pub(super) fn preflight_passed(&mut self) -> Option<bool> {
        let carried = self.carried.get("preflight_passed", Value::is_boolean);
        let passed = carried.and_then(|(value, place)| Some((value.as_bool()?, place)));
        self.first("preflight_passed", self.facts.preflight_passed, passed)
    }

    pub(super) fn profile_stage(&mut self, run: &RunFacts) -> String {
        let named = self.text("profile_stage", |facts| &facts.profile_stage);
        named.unwrap_or_else(|| {
            let stage = run.profile_stage.clone();
            self.derived("profile_stage", "stage with the most GPU time", stage)
        })
    }

    /// The user's framework, else the one that won the vote; `framework_evidence` is the source of that one.
    pub(super) fn framework(&mut self, run: &RunFacts) -> String {
        let user = self.facts.framework.clone();
        let named = self.first("framework", user, None);
        named.unwrap_or_else(|| run.framework.framework.id().to_owned())
    }

    pub(super) fn batch_shape(&mut self, run: &RunFacts) -> Option<Value> {
        match &run.batch_shape {
            Some(shape) => Some(self.derived("batch_shape", "annotations", shape.clone())),
            None => {
                let shape = self.carried.nested("/current_task/shape");
                self.first("batch_shape", None, shape)
            }
        }
    }
}
