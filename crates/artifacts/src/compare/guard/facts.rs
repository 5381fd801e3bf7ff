//! The facts that two runs are compared by: a table, with how each is compared.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::row::{GuardRow, Sameness};
use crate::STRIPPED;
use crate::rank_of_name;

/// What two runs differ in when a deciding key differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
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
    pub(super) const ALL: [Self; 5] =
        [Self::Work, Self::Hardware, Self::Flags, Self::Software, Self::Rank];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Hardware => "hardware",
            Self::Flags => "launch flags",
            Self::Software => "software",
            Self::Rank => "ranks",
        }
    }
}

/// Compares a fact of two documents. Flags have a row each.
type Compare = fn(&'static Fact, &Value, &Value) -> Vec<GuardRow>;

/// A fact, where it is in the document and how it is compared.
pub(super) struct Fact {
    pub(super) name: &'static str,
    /// The words for it in sentences and tables.
    pub(super) label: &'static str,
    pointer: &'static str,
    /// `None` where a difference does not decide.
    pub(super) subject: Option<Subject>,
    compare: Compare,
    /// Whether nothing is missing where neither run has it.
    is_optional: bool,
    /// Whether it is a size in bytes.
    pub(super) in_bytes: bool,
}

const fn decides(
    name: &'static str,
    label: &'static str,
    pointer: &'static str,
    subject: Subject,
) -> Fact {
    Fact { subject: Some(subject), ..other(name, label, pointer) }
}

const fn other(name: &'static str, label: &'static str, pointer: &'static str) -> Fact {
    let (compare, is_optional, in_bytes): (Compare, _, _) = (values, false, false);
    Fact { name, label, pointer, subject: None, compare, is_optional, in_bytes }
}

impl Fact {
    const fn by(self, compare: Compare) -> Self {
        Self { compare, ..self }
    }

    const fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }

    const fn in_bytes(self) -> Self {
        Self { in_bytes: true, ..self }
    }

    /// The rows of two documents.
    pub(super) fn rows(&'static self, a: &Value, b: &Value) -> Vec<GuardRow> {
        (self.compare)(self, a, b)
    }

    /// The row of two values; none where both may be missing and are.
    fn row(&'static self, a: Option<&Value>, b: Option<&Value>) -> Vec<GuardRow> {
        if self.is_optional && a.is_none() && b.is_none() {
            return Vec::new();
        }
        let result = match (a, b) {
            (Some(a), Some(b)) if a == b => Sameness::Same,
            (Some(_), Some(_)) => Sameness::Different,
            (None, _) | (_, None) => Sameness::Missing,
        };
        let text = |value: Option<&Value>| match value {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        vec![GuardRow::of(self, result, text(a), text(b))]
    }
}

pub(super) const FACTS: &[Fact] = &[
    decides("base_image", "container image", "/base_image", Subject::Software),
    decides("resource_class", "resource class", "/resource_class", Subject::Hardware),
    decides("gpu_device_ids", "GPUs", "/gpu_device_ids", Subject::Hardware).by(devices),
    decides("server_flags", "launch flags", "/server_flags", Subject::Flags).by(flags),
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
    )
    // (Older documents do not say what they count.)
    .optional(),
    // (A job of one process has no rank.)
    decides("rank", "rank", "/distributed/rank", Subject::Rank).by(ranks).optional(),
    other("device.name", "GPU model", "/device/name"),
    other("device.cu_or_sm", "compute units or SMs", "/device/cu_or_sm"),
    other("device.total_global_mem", "GPU memory", "/device/total_global_mem").in_bytes(),
    // (Neither platform has the other's version.)
    other("rocm_version", "ROCm version", "/rocm_version").optional(),
    other("cuda_version", "CUDA version", "/cuda_version").optional(),
    other("framework", "framework", "/framework"),
    other("model_name", "model", "/model_name"),
    other("profile_stage", "profiled stage", "/profile_stage"),
    other("world_size", "world size", "/distributed/world_size"),
    other("with_stack", "Python stacks recorded", "/trace/with_stack"),
    other("record_shapes", "input shapes recorded", "/trace/record_shapes"),
    other("batch_shape", "batch", "/batch_shape"),
    other("rules_version", "rules of Kinetoscope", "/tool/rules_version"),
];

/// The two values as they are.
fn values(fact: &'static Fact, a: &Value, b: &Value) -> Vec<GuardRow> {
    fact.row(known(a, fact), known(b, fact))
}

/// The value, unless the document does not record it: null, an empty text or list, or `unknown`.
fn known<'a>(document: &'a Value, fact: &Fact) -> Option<&'a Value> {
    let value = document.pointer(fact.pointer)?;
    let empty = match value {
        Value::Null => true,
        Value::String(text) => text.is_empty() || text == "unknown",
        Value::Array(values) => values.is_empty(),
        _ => false,
    };
    (!empty).then_some(value)
}

/// The process of a distributed job.
fn ranks(fact: &'static Fact, a: &Value, b: &Value) -> Vec<GuardRow> {
    fact.row(rank(a, fact).as_ref(), rank(b, fact).as_ref())
}

/// The rank as the trace records it, else as its file name says.
fn rank(document: &Value, fact: &Fact) -> Option<Value> {
    let recorded = document.pointer(fact.pointer).filter(|rank| rank.is_i64()).cloned();
    recorded.or_else(|| {
        let name = document.pointer("/source_trace_path")?.as_str()?;
        rank_of_name(name).map(Value::from)
    })
}

/// Compares flags one by one. Only those that differ get a row, because there are hundreds.
fn flags(fact: &'static Fact, a: &Value, b: &Value) -> Vec<GuardRow> {
    let (Some(Value::Object(a)), Some(Value::Object(b))) = (known(a, fact), known(b, fact)) else {
        return values(fact, a, b);
    };
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let mut different: Vec<GuardRow> = names
        .iter()
        .filter(|name| a.get(name.as_str()) != b.get(name.as_str()))
        .map(|name| flag(fact, name, a, b))
        .collect();
    if !different.iter().any(|row| row.decides) {
        let all = format!("{} flags", names.len());
        different.push(GuardRow::of(fact, Sameness::Same, all.clone(), all));
    }
    different
}

/// A flag that differs.
fn flag(
    fact: &'static Fact,
    name: &str,
    a: &Map<String, Value>,
    b: &Map<String, Value>,
) -> GuardRow {
    let side = |flags: &Map<String, Value>| {
        flags.get(name).map_or_else(|| "not set".to_owned(), Value::to_string)
    };
    // Addresses and secrets that were removed from one run cannot be compared.
    let taken_out =
        [a, b].iter().any(|flags| flags.get(name).is_some_and(|value| value == STRIPPED));
    let result = if taken_out { Sameness::Missing } else { Sameness::Different };
    GuardRow {
        key: format!("{}.{name}", fact.name),
        label: format!("launch flag {name}"),
        decides: !taken_out,
        ..GuardRow::of(fact, result, side(a), side(b))
    }
}

/// Ids from the user are compared. Ids from the file number the process's own devices, so only their
/// count is compared.
fn devices(fact: &'static Fact, a: &Value, b: &Value) -> Vec<GuardRow> {
    let is_derived = |document: &Value| {
        let from = document.pointer("/provenance/gpu_device_ids").and_then(Value::as_str);
        from.is_some_and(|from| from.starts_with("derived"))
    };
    let (Some(left), Some(right)) = (known(a, fact), known(b, fact)) else {
        return values(fact, a, b);
    };
    if !is_derived(a) && !is_derived(b) {
        return values(fact, a, b);
    }
    let count = |ids: &Value| Value::from(ids.as_array().map_or(0, Vec::len));
    let mut rows = fact.row(Some(&count(left)), Some(&count(right)));
    for side in rows.iter_mut().flat_map(|row| [&mut row.a, &mut row.b]) {
        side.push_str(" (count)");
    }
    rows
}
