//! Metadata from the file itself: device, ranks and recording.

use analysis::TraceReport;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trace::Trace;

use crate::privacy::Names;
use crate::source::base_name;

/// The devices of the file's `deviceProperties`; figures are of the first that ran something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// As the driver calls it; `null` where it had no name.
    pub name: Option<String>,
    /// How many the file lists, used or not.
    pub count: u64,
    /// Memory in bytes.
    pub total_global_mem: Option<u64>,
    /// Compute units or streaming multiprocessors.
    pub cu_or_sm: Option<u64>,
    /// Threads in a warp or wavefront.
    pub warp_size: Option<u64>,
    /// First number of the compute capability.
    pub compute_major: Option<u64>,
    /// Second number of the compute capability.
    pub compute_minor: Option<u64>,
}

/// The file's `distributedInfo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named as in the file")]
pub struct Distributed {
    pub backend: Option<String>,
    pub rank: Option<i64>,
    pub world_size: Option<i64>,
    pub pg_count: Option<i64>,
    pub nccl_version: Option<String>,
}

/// How the trace was recorded: the file's own keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "named as in the file")]
pub struct TraceFacts {
    pub schema_version: Option<i64>,
    #[serde(rename = "trace_id")]
    pub trace_id: Option<String>,
    pub trace_name: Option<String>,
    pub display_time_unit: Option<String>,
    pub base_time_nanoseconds: Option<i64>,
    #[serde(rename = "record_shapes")]
    pub record_shapes: Option<bool>,
    #[serde(rename = "with_stack")]
    pub with_stack: Option<bool>,
    #[serde(rename = "with_modules")]
    pub with_modules: Option<bool>,
    #[serde(rename = "with_flops")]
    pub with_flops: Option<bool>,
    #[serde(rename = "profile_memory")]
    pub profile_memory: Option<bool>,
}

/// Typed reading of the file's top-level members.
pub(super) struct Keys<'a>(pub &'a Trace);

impl Keys<'_> {
    pub(super) fn value(&self, key: &str) -> Option<Value> {
        serde_json::from_str(self.0.metadata.get(key)?).ok()
    }

    /// A text, or a number as its digits.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        text_of(&self.value(key)?)
    }

    /// Kineto writes flags as 1.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        match self.value(key)? {
            Value::Bool(flag) => Some(flag),
            Value::Number(number) => Some(number.as_f64() != Some(0.0)),
            _ => None,
        }
    }
}

pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

impl Distributed {
    #[inline(never)]
    pub(super) fn of(keys: &Keys<'_>) -> Option<Self> {
        let info = keys.value("distributedInfo").filter(Value::is_object)?;
        let int = |key: &str| info.get(key).and_then(Value::as_i64);
        let text = |key: &str| info.get(key).and_then(text_of);
        Some(Self {
            backend: text("backend"),
            rank: int("rank"),
            world_size: int("world_size"),
            pg_count: int("pg_count"),
            nccl_version: text("nccl_version"),
        })
    }
}

impl DeviceFacts {
    #[inline(never)]
    pub(super) fn of(report: &TraceReport) -> Option<Self> {
        let listed = &report.overview.devices;
        let used =
            |id: &str| report.devices.iter().any(|row| row.device == id && row.n_kernels > 0);
        let device = listed.iter().find(|device| used(&device.id)).or(listed.first())?;
        let compute = device.compute.as_deref().and_then(|text| text.split_once('.'));
        Some(Self {
            name: (!device.name.is_empty()).then(|| device.name.clone()),
            count: listed.len() as u64,
            total_global_mem: device.memory_bytes,
            cu_or_sm: device.n_units,
            warp_size: device.warp_size,
            compute_major: compute.and_then(|(major, _)| major.parse().ok()),
            compute_minor: compute.and_then(|(_, minor)| minor.parse().ok()),
        })
    }
}

impl TraceFacts {
    #[inline(never)]
    pub(super) fn of(keys: &Keys<'_>, names: &Names) -> Self {
        Self {
            schema_version: keys.0.metadata.int("schemaVersion"),
            trace_id: keys.text("trace_id"),
            // A path on the machine that was profiled: its folders often hold a user's name.
            trace_name: keys.text("traceName").map(|name| names.strip(base_name(&name))),
            display_time_unit: keys.text("displayTimeUnit"),
            base_time_nanoseconds: keys.0.metadata.int("baseTimeNanoseconds"),
            record_shapes: keys.flag("record_shapes"),
            with_stack: keys.flag("with_stack"),
            with_modules: keys.flag("with_modules"),
            with_flops: keys.flag("with_flops"),
            profile_memory: keys.flag("profile_memory"),
        }
    }
}
