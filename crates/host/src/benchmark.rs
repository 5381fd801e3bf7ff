//! A short PyTorch script that calls one op as a trace recorded it: sizes, types, strides and values, and nothing of the model.

mod recorded;

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
    /// PyTorch alone cannot run the op.
    NotAlone(String),
    /// Its calls have no sizes.
    Sizes,
    /// There are fewer kinds of calls.
    Kinds(usize),
    /// An argument is a tensor of a type that the script cannot make.
    Type(usize, String),
    /// The profiler recorded nothing of an argument that the op needs.
    Argument(usize),
    /// The file has no values of arguments, and the op needs that of one.
    Values(usize),
}

impl fmt::Display for NoScript {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Op(name) => write!(to, "the trace has no op {name}"),
            Self::Name(name) => write!(to, "{name} is not a name in torch.ops"),
            Self::NotAlone(name) => write!(
                to,
                "{name} needs more than PyTorch: a library that registers it, a process group or packed weights"
            ),
            Self::Argument(at) => {
                write!(to, "the trace does not record argument {at}, which the op needs")
            }
            Self::Values(at) => write!(
                to,
                "the trace has no Concrete Inputs, and the op needs the value of argument {at}: record with PyTorch 2.1 or later"
            ),
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
    let path = path_of(op)?;
    let id = slices.trace.strings.find(op).ok_or_else(|| NoScript::Op(op.to_owned()))?;
    let kinds = kinds_of(slices, &device_of_each(&slices.ops, gpu), details, id);
    let kinds = kinds.ok_or_else(|| NoScript::Op(op.to_owned()))?;
    let n_kinds = kinds.len();
    let kind = kinds.get(place).ok_or(match n_kinds {
        0 => NoScript::Sizes,
        n => NoScript::Kinds(n),
    })?;
    script(path, kind, (place, n_kinds), slices.steps.len())
}

/// A script of [`all_benchmarks`], or why there is none.
pub struct Benchmark<'a> {
    /// Its name.
    pub op: &'a str,
    /// The place of the kind: 1 is the one with most time. 0 where the op has no kinds.
    pub kind: usize,
    /// How many calls have these arguments.
    pub calls: u64,
    /// The script.
    pub script: Result<String, NoScript>,
}

/// The scripts of all kinds of all ops, by name of the op. `details` need the strides and concrete inputs of all ops.
#[must_use]
pub fn all_benchmarks<'a>(
    slices: &Slices<'a>,
    gpu: &GpuSide,
    details: &Details,
) -> Vec<Benchmark<'a>> {
    let device_ns = device_of_each(&slices.ops, gpu);
    let mut ids: Vec<StringId> =
        slices.ops.slices.iter().map(|slice| slices.trace.name(slice.row)).collect();
    ids.sort_unstable_by_key(|id| slices.trace.strings.get(*id));
    ids.dedup();
    let mut all = Vec::new();
    for id in ids {
        let op = slices.trace.strings.get(id);
        let kinds = kinds_of(slices, &device_ns, details, id).unwrap_or_default();
        if kinds.is_empty() {
            let script = Err(path_of(op).err().unwrap_or(NoScript::Sizes));
            all.push(Benchmark { op, kind: 0, calls: 0, script });
        }
        for (place, kind) in kinds.iter().enumerate() {
            let script = path_of(op)
                .and_then(|path| script(path, kind, (place, kinds.len()), slices.steps.len()));
            all.push(Benchmark { op, kind: place + 1, calls: kind.calls, script });
        }
    }
    all
}

/// Namespace and name of an op as `torch.ops` has them.
fn path_of(op: &str) -> Result<(&str, &str), NoScript> {
    let letters = |letter: char| letter.is_ascii_alphanumeric() || "_.".contains(letter);
    let path = op.split_once("::").filter(|(space, name)| {
        [space, name].iter().all(|part| !part.is_empty() && part.chars().all(letters))
    });
    let path = path.filter(|(space, _)| !space.contains('.'));
    let (space, name) = path.ok_or_else(|| NoScript::Name(op.to_owned()))?;
    match recorded::is_alone(space) {
        true => Ok((space, name)),
        false => Err(NoScript::NotAlone(op.to_owned())),
    }
}

/// The calls of an op by their arguments, most time first. `None` without any call.
fn kinds_of<'a>(
    slices: &Slices<'_>,
    device_ns: &[i64],
    details: &'a Details,
    id: StringId,
) -> Option<Vec<Kind<'a>>> {
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
    let mut kinds: Vec<Kind<'_>> = kinds.into_values().collect();
    trace::sort_by(&mut kinds, |a, b| (b.device_ns, b.host_ns).cmp(&(a.device_ns, a.host_ns)));
    (n > 0).then_some(kinds)
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
        notes.push("Values of non-tensors are not recorded: defaults are used.".to_owned());
    }
    let autocast = recorded::autocast(name, &types);
    if autocast.is_some() {
        notes.push("32-bit and shorter floats: the op ran under torch.autocast.".to_owned());
    }
    if COPIES.contains(&name) {
        notes
            .push("All tensors are on one device: a copy between devices is not timed.".to_owned());
    }
    let mut arguments = String::new();
    for (at, own_dims) in dims.iter().enumerate() {
        let own = Argument {
            at,
            op: name,
            no_values: values.is_none(),
            dims: own_dims,
            kind: types.get(at).and_then(Value::as_str).unwrap_or_default(),
            strides: strides.as_ref().and_then(|all| all.get(at)),
            value: values.as_ref().and_then(|all| all.get(at)).and_then(Value::as_str),
            high: recorded::high(name, at, &dims, values.as_deref()),
            least: recorded::least_span(name, at, values.as_deref()),
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
    let harness = match autocast {
        None => HARNESS.to_owned(),
        Some(dtype) => HARNESS.replace(
            "with torch.no_grad():",
            &format!("with torch.no_grad(), torch.autocast(DEVICE, torch.{dtype}):"),
        ),
    };
    text.push_str(
        &harness
            .replace("NAMESPACE", space)
            .replace("NAME", name)
            .replace("    ARGUMENTS\n", &arguments),
    );
    Ok(text)
}

/// Ops that may copy from one device to another.
const COPIES: [&str; 3] = ["copy_", "to", "_to_copy"];

struct Argument<'a> {
    at: usize,
    op: &'a str,
    /// The file has no values of any argument.
    no_values: bool,
    dims: &'a Value,
    kind: &'a str,
    strides: Option<&'a Value>,
    value: Option<&'a str>,
    high: i64,
    least: Option<i64>,
}

impl Argument<'_> {
    fn text(&self, notes: &mut Vec<String>) -> Result<String, NoScript> {
        let tensor = |dims: &Value, strides: Option<&Value>, dtype: &str| {
            let is_list =
                |value: &&Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_i64));
            let strides =
                strides.filter(is_list).map_or_else(|| "None".to_owned(), Value::to_string);
            let least = self.least.map_or_else(String::new, |n| format!(", {n}"));
            format!("tensor({dims}, {strides}, torch.{dtype}, {}{least})", self.high)
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
        if self.kind == "TensorList" {
            return Err(NoScript::Argument(self.at));
        }
        if value.is_empty() && recorded::is_missing(self.op, self.at, self.no_values) {
            return Err(match self.no_values {
                true => NoScript::Values(self.at),
                false => NoScript::Argument(self.at),
            });
        }
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
        "unsignedshort" | "unsignedshortint" => "uint16",
        "unsignedint" => "uint32",
        "unsignedlong" | "unsignedlongint" => "uint64",
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
        assert_eq!(path_of("vllm::rms_norm"), Err(NoScript::NotAlone("vllm::rms_norm".into())));
        assert_eq!(path_of("torch.x::f"), Err(NoScript::Name("torch.x::f".into())));
        let none = Kind { dims: "[[8]]", types: r#"["c10::Unknown"]"#, ..Kind::default() };
        let failed = script(("aten", "mul"), &none, (0, 1), 0);
        assert_eq!(failed, Err(NoScript::Type(0, "c10::Unknown".into())));
        let mixed = Kind { types: r#"["c10::BFloat16","float","Scalar"]"#, ..kind };
        let text = script(("aten", "addmm"), &mixed, (0, 1), 0).unwrap();
        assert!(text.contains("torch.autocast(DEVICE, torch.bfloat16):\n"), "{text}");
        // A list of indices, and a file that has no values.
        let index = Kind {
            dims: "[[8],[]]",
            types: r#"["float",""]"#,
            values: r#"["",""]"#,
            ..Kind::default()
        };
        assert_eq!(script(("aten", "index"), &index, (0, 1), 0), Err(NoScript::Argument(1)));
        let view = Kind { types: r#"["float","GenericList"]"#, values: "", ..index };
        assert_eq!(script(("aten", "view"), &view, (0, 1), 0), Err(NoScript::Values(1)));
        let list =
            Kind { dims: "[[]]", types: r#"["TensorList"]"#, values: r#"[""]"#, ..Kind::default() };
        assert_eq!(script(("aten", "stack"), &list, (0, 1), 0), Err(NoScript::Argument(0)));
    }
}
