//! A short PyTorch script that calls one op as a trace recorded it: sizes, types, strides and values, and nothing of the model.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use trace::{Details, StringId};

use crate::links::GpuSide;
use crate::ops::device_of_each;
use crate::slices::Slices;

/// What the script does, after the arguments. It needs PyTorch and nothing else.
const HARNESS: &str = include_str!("benchmark.py.txt");

/// Why there is no script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoScript {
    /// The file has no op of this name.
    Op(String),
    /// The name is none that `torch.ops` can have.
    Name(String),
    /// Its calls have no sizes.
    Sizes,
    /// There are fewer kinds of calls.
    Kinds(usize),
    /// An argument is a tensor of a type that the script cannot make.
    Type(usize, String),
}

impl fmt::Display for NoScript {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Op(name) => write!(to, "the trace has no op {name}"),
            Self::Name(name) => write!(to, "{name} is no name of torch.ops"),
            Self::Sizes => {
                write!(to, "the calls have no Input Dims: record with record_shapes=True")
            }
            Self::Kinds(n) => write!(to, "the op has {n} kinds of calls"),
            Self::Type(at, name) => write!(to, "argument {at} is a tensor of type {name}"),
        }
    }
}

#[derive(Default)]
struct Kind<'a> {
    calls: u64,
    device_ns: i64,
    host_ns: i64,
    dims: &'a str,
    types: &'a str,
    strides: &'a str,
    values: &'a str,
}

/// The script for the calls of an op with equal arguments that take most time: on the GPU, or on the CPU where none is in the
/// file; `place` 0 is the first of them. `details` need the strides and concrete inputs of the op.
///
/// # Errors
/// When the file does not have what the script needs.
pub fn benchmark_script(
    slices: &Slices<'_>,
    gpu: &GpuSide,
    details: &Details,
    op: &str,
    place: usize,
) -> Result<String, NoScript> {
    let letters = |letter: char| letter.is_ascii_alphanumeric() || "_.".contains(letter);
    let path = op.split_once("::").filter(|(space, name)| {
        [space, name].iter().all(|part| !part.is_empty() && part.chars().all(letters))
    });
    let (space, name) = path.ok_or_else(|| NoScript::Name(op.to_owned()))?;
    let id = slices.trace.strings.find(op).ok_or_else(|| NoScript::Op(op.to_owned()))?;
    let device_ns = device_of_each(&slices.ops, gpu);
    let mut kinds: BTreeMap<(StringId, StringId, &str, &str), Kind<'_>> = BTreeMap::new();
    let mut n = 0_u64;
    for (at, slice) in slices.ops.slices.iter().enumerate() {
        if slices.trace.name(slice.row) != id {
            continue;
        }
        n += 1;
        let Some(inputs) = details.inputs(slice.row) else { continue };
        let strides = details.strides(slice.row).unwrap_or_default();
        let values = details.concrete_inputs(slice.row).unwrap_or_default();
        let kind = kinds.entry((inputs.dims, inputs.types, strides, values)).or_default();
        kind.calls += 1;
        kind.device_ns = kind.device_ns.saturating_add(device_ns.get(at).copied().unwrap_or(0));
        kind.host_ns = kind.host_ns.saturating_add(slice.dur_ns());
        kind.dims = details.texts.get(inputs.dims);
        kind.types = details.texts.get(inputs.types);
        (kind.strides, kind.values) = (strides, values);
    }
    if n == 0 {
        return Err(NoScript::Op(op.to_owned()));
    }
    let mut kinds: Vec<Kind<'_>> = kinds.into_values().collect();
    trace::sort_by(&mut kinds, |a, b| (b.device_ns, b.host_ns).cmp(&(a.device_ns, a.host_ns)));
    let n_kinds = kinds.len();
    let kind = kinds.get(place).ok_or(match n_kinds {
        0 => NoScript::Sizes,
        n => NoScript::Kinds(n),
    })?;
    script((space, name), kind, (place, n_kinds), slices.steps.len())
}

fn script(
    (space, name): (&str, &str),
    kind: &Kind<'_>,
    (place, n_kinds): (usize, usize),
    steps: usize,
) -> Result<String, NoScript> {
    let list = |text: &str| serde_json::from_str::<Vec<Value>>(text).ok();
    let dims = list(kind.dims).filter(|dims| !dims.is_empty()).ok_or(NoScript::Sizes)?;
    let types = list(kind.types).unwrap_or_default();
    let (strides, values) = (list(kind.strides), list(kind.values));
    let mut notes: Vec<String> = Vec::new();
    if strides.is_none() {
        notes.push("Strides are not recorded: tensors are contiguous.".to_owned());
    }
    if values.is_none() {
        notes.push("Values that are no tensors are not recorded: defaults are used.".to_owned());
    }
    let mut arguments = String::new();
    for (at, dims) in dims.iter().enumerate() {
        let own = Argument {
            at,
            dims,
            kind: types.get(at).and_then(Value::as_str).unwrap_or_default(),
            strides: strides.as_ref().and_then(|all| all.get(at)),
            value: values.as_ref().and_then(|all| all.get(at)).and_then(Value::as_str),
            high: high(name, dims_of(list(kind.dims).unwrap_or_default().first())),
        };
        arguments.push_str("    ");
        arguments.push_str(&own.text(&mut notes)?);
        arguments.push_str(",\n");
    }
    let mean = |ns: i64| ns as f64 / kind.calls.max(1) as f64 / 1e3;
    let time = match kind.device_ns {
        0 => format!("{:.3} us on the CPU each, on average", mean(kind.host_ns)),
        ns => format!("{:.3} us on the GPU each, on average", mean(ns)),
    };
    let per_step = match steps {
        0 => String::new(),
        n => format!(" in {n} steps"),
    };
    let mut text = format!(
        "# {space}::{name} alone, with recorded arguments (kind {} of {n_kinds} by time).\n# In the trace: {} calls{per_step}, {time}.\n",
        place + 1,
        kind.calls
    );
    for note in notes {
        text.push_str(&format!("# {note}\n"));
    }
    text.push_str(
        &HARNESS
            .replace("NAMESPACE", space)
            .replace("NAME", name)
            .replace("    ARGUMENTS\n", &arguments),
    );
    Ok(text)
}

fn dims_of(dims: Option<&Value>) -> Vec<i64> {
    dims.and_then(Value::as_array)
        .map(|all| all.iter().filter_map(Value::as_i64).collect())
        .unwrap_or_default()
}

/// Integers of a tensor are below this: indices must lie in the table. 1 where that is not known: all zeros.
fn high(op: &str, first: Vec<i64>) -> i64 {
    match op {
        "embedding" => first.first().copied().unwrap_or(1).max(1),
        _ => 1,
    }
}

struct Argument<'a> {
    at: usize,
    dims: &'a Value,
    kind: &'a str,
    strides: Option<&'a Value>,
    value: Option<&'a str>,
    high: i64,
}

impl Argument<'_> {
    fn text(&self, notes: &mut Vec<String>) -> Result<String, NoScript> {
        let tensor = |dims: &Value, strides: Option<&Value>, dtype: &str| {
            let is_list =
                |value: &&Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_i64));
            let strides =
                strides.filter(is_list).map_or_else(|| "None".to_owned(), Value::to_string);
            format!("tensor({dims}, {strides}, torch.{dtype}, {})", self.high)
        };
        let nested = self.dims.as_array().filter(|all| all.iter().any(Value::is_array));
        if let Some(all) = nested {
            notes.push(format!(
                "Argument {}: types of the tensors in a list are not recorded: float32.",
                self.at
            ));
            let strides = |at: usize| self.strides.and_then(|strides| strides.get(at));
            let tensors: Vec<String> = all
                .iter()
                .enumerate()
                .map(|(at, dims)| tensor(dims, strides(at), "float32"))
                .collect();
            return Ok(format!("[{}]", tensors.join(", ")));
        }
        if let Some(dtype) = dtype(self.kind) {
            return Ok(tensor(self.dims, self.strides, dtype));
        }
        if self.dims.as_array().is_some_and(|dims| !dims.is_empty()) {
            return Err(NoScript::Type(self.at, self.kind.to_owned()));
        }
        let value = self.value.unwrap_or_default();
        Ok(literal(value).unwrap_or_else(|| {
            if !value.is_empty() {
                notes.push(format!("Argument {}: its value is left out.", self.at));
            }
            "None".to_owned()
        }))
    }
}

/// The type of PyTorch that the profiler calls so, without blanks.
fn dtype(name: &str) -> Option<&'static str> {
    Some(match name {
        "double" => "float64",
        "float" => "float32",
        "c10::Half" => "float16",
        "c10::BFloat16" => "bfloat16",
        "long" | "longint" => "int64",
        "int" => "int32",
        "short" | "shortint" => "int16",
        "signedchar" => "int8",
        "unsignedchar" => "uint8",
        "bool" => "bool",
        "c10::complex<float>" => "complex64",
        "c10::complex<double>" => "complex128",
        "c10::Float8_e4m3fn" => "float8_e4m3fn",
        "c10::Float8_e5m2" => "float8_e5m2",
        "c10::Float8_e4m3fnuz" => "float8_e4m3fnuz",
        "c10::Float8_e5m2fnuz" => "float8_e5m2fnuz",
        _ => return None,
    })
}

/// A value as Python writes it: numbers, truth values, and lists of these; `None` for anything else.
fn literal(value: &str) -> Option<String> {
    let one = |text: &str| -> Option<String> {
        let text = text.trim();
        match text {
            "True" | "False" => Some(text.to_owned()),
            "inf" | "-inf" | "nan" => Some(format!("float(\"{text}\")")),
            _ => {
                let plain =
                    text.chars().all(|letter| letter.is_ascii_digit() || "+-.eE".contains(letter));
                (plain && text.parse::<f64>().is_ok()).then(|| text.to_owned())
            }
        }
    };
    match value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some("") => Some("[]".to_owned()),
        Some(inner) => {
            let all: Option<Vec<String>> = inner.split(',').map(one).collect();
            Some(format!("[{}]", all?.join(", ")))
        }
        None => one(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_literals_or_nothing() {
        assert_eq!(literal("[1,1]").as_deref(), Some("[1, 1]"));
        assert_eq!(literal("[True,False]").as_deref(), Some("[True, False]"));
        assert_eq!(literal("-1e-05").as_deref(), Some("-1e-05"));
        assert_eq!(literal("-inf").as_deref(), Some("float(\"-inf\")"));
        for text in ["", "cuda:0", "__import__('os')", "[[1],[2]]", "1.2.3"] {
            assert_eq!(literal(text), None, "{text}");
        }
    }

    #[test]
    fn a_script_has_the_arguments_of_the_call() {
        let kind = Kind {
            calls: 4,
            device_ns: 10_000,
            host_ns: 0,
            dims: "[[8,4],[4,8],[]]",
            types: r#"["c10::BFloat16","c10::BFloat16","Scalar"]"#,
            strides: "[[4,1],[1,4],[]]",
            values: r#"["","","1"]"#,
        };
        let text = script(("aten", "mul"), &kind, (0, 2), 2).unwrap();
        assert!(text.starts_with("# aten::mul alone, with recorded arguments (kind 1 of 2 by time).\n# In the trace: 4 calls in 2 steps, 2.500 us on the GPU each, on average.\n"), "{text}");
        assert!(text.contains("    tensor([8,4], [4,1], torch.bfloat16, 1),\n    tensor([4,8], [1,4], torch.bfloat16, 1),\n    1,\n"), "{text}");
        assert!(text.contains("torch.ops.aten.mul"), "{text}");
        let none = Kind { dims: "[[8]]", types: r#"["c10::Unknown"]"#, ..Kind::default() };
        let failed = script(("aten", "mul"), &none, (0, 1), 0);
        assert_eq!(failed, Err(NoScript::Type(0, "c10::Unknown".into())));
    }
}
