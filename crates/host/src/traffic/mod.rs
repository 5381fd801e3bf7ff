//! Bytes of ops that compute little: the least that a call moves, and the rate that follows.
//!
//! Each operand counts once and the result once, so a call moves at least these bytes; what a cache keeps may make the rate
//! exceed the bandwidth of memory. An operand counts no more than the memory that its strides span: an expanded one is small.
//! Copies on the GPU (`gpu_memcpy`) have their own bytes and their own table; here only kernels count.

mod sections;
mod table;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use trace::{Details, StringId};

use crate::flops;
use crate::links::GpuSide;
use crate::rates::peaks;
use crate::slices::Slices;
use table::Writes;

/// Ops without a figure that are listed.
const LISTED: usize = 50;

/// Bytes of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Traffic {
    /// By op, most GPU time first.
    pub rows: Vec<TrafficRow>,
    /// Kernels that neither these rows nor the floating point operations cover, without collectives, by op; the first fifty.
    pub uncovered: Vec<UncoveredRow>,
    /// Names among them, with those that are not listed.
    pub n_uncovered: usize,
    /// GPU time of all of them, in ns.
    pub uncovered_ns: i64,
}

/// Calls of one op.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrafficRow {
    /// Name of the op.
    pub name: String,
    /// Calls with known sizes that launched kernels, and nothing but kernels.
    pub calls: u64,
    /// GPU time of these, in ns.
    pub device_ns: i64,
    /// Bytes that they move at least.
    pub bytes_at_least: i128,
    /// These by the GPU time, in GB/s.
    pub gb_per_s: f64,
    /// The same in percent of the device's memory bandwidth; above 100 where a cache has a part of the bytes.
    pub bandwidth_pct: Option<f64>,
}

/// Kernels of one op without a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UncoveredRow {
    /// Name of the op; `None` for kernels that no op launched.
    pub name: Option<String>,
    /// Their GPU time, in ns.
    pub device_ns: i64,
    /// Why there is no figure.
    pub why: Why,
}

/// Why kernels have no figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// No op launched them: graphs, or calls outside any op.
    NoOp,
    /// No formula and no rule for the op.
    NoRule,
    /// There is one, and the sizes of the call are missing or not usable.
    NoSizes,
    /// The op, or one inside it, also copies: its time is not that of its kernels.
    Mixed,
}

impl Why {
    /// What a person reads.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::NoOp => "no op launched it",
            Self::NoRule => "no formula for this op",
            Self::NoSizes => "sizes not recorded, or not usable",
            Self::Mixed => "other ops or copies inside the op",
        }
    }
}

/// The bytes of a run. `device_ns` is the GPU time of each op, with that of the ops inside it.
#[must_use]
pub fn traffic(
    slices: &Slices<'_>,
    gpu: &GpuSide,
    details: &Details,
    device_ns: &[i64],
) -> Traffic {
    let nested = &slices.ops;
    let roof = peaks(slices.trace).ok();
    let mut kernels_ns = vec![0_i64; nested.slices.len()];
    for one in gpu.linked().filter(|one| one.is_kernel) {
        if let Some(own) = one.owner.and_then(|owner| kernels_ns.get_mut(owner)) {
            *own = own.saturating_add(one.slice.dur_ns());
        }
    }
    let mut states: Vec<Option<Why>> = vec![Some(Why::NoRule); nested.slices.len()];
    for (at, operations) in flops::of_each(slices, details) {
        states[at] = operations.err().map(|_| Why::NoSizes);
    }
    let mut sums: BTreeMap<&str, (u64, i64, i128)> = BTreeMap::new();
    let mut known: BTreeMap<(StringId, StringId, StringId, &str), Option<i128>> = BTreeMap::new();
    for (at, op) in nested.slices.iter().enumerate().filter(|(at, _)| kernels_ns[*at] > 0) {
        let name = slices.name(op);
        let Some(rule) = table::rule(name) else { continue };
        if device_ns.get(at) != Some(&kernels_ns[at]) {
            states[at] = Some(Why::Mixed);
            continue;
        }
        let bytes = details.inputs(op.row).and_then(|inputs| {
            let strides = details.strides(op.row).unwrap_or_default();
            let key = (slices.trace.name(op.row), inputs.dims, inputs.types, strides);
            *known.entry(key).or_insert_with(|| {
                let (dims, types) =
                    (details.texts.get(inputs.dims), details.texts.get(inputs.types));
                Tensors::of(dims, types, strides)?.bytes(rule)
            })
        });
        states[at] = match bytes {
            Some(bytes) => {
                let sum = sums.entry(name).or_default();
                *sum =
                    (sum.0 + 1, sum.1.saturating_add(kernels_ns[at]), sum.2.saturating_add(bytes));
                None
            }
            None => Some(Why::NoSizes),
        };
    }
    let row = |(name, (calls, device_ns, bytes)): (&str, (u64, i64, i128))| {
        let gb_per_s = bytes as f64 / device_ns.max(1) as f64;
        TrafficRow {
            name: name.to_owned(),
            calls,
            device_ns,
            bytes_at_least: bytes,
            gb_per_s,
            bandwidth_pct: roof.map(|roof| 100.0 * gb_per_s / roof.gb_per_s),
        }
    };
    let mut rows: Vec<TrafficRow> = sums.into_iter().map(row).collect();
    trace::sort_by(&mut rows, |a, b| b.device_ns.cmp(&a.device_ns));
    let mut uncovered = uncovered(slices, gpu, &states);
    Traffic {
        rows,
        n_uncovered: uncovered.len(),
        uncovered_ns: uncovered.iter().map(|row| row.device_ns).sum(),
        uncovered: {
            uncovered.truncate(LISTED);
            uncovered
        },
    }
}

/// Kernels whose op, and every op around it, has no figure. `states` is why not, by op; `None` where it has one.
fn uncovered(slices: &Slices<'_>, gpu: &GpuSide, states: &[Option<Why>]) -> Vec<UncoveredRow> {
    let nested = &slices.ops;
    let mut sums: BTreeMap<(Option<&str>, Why), i64> = BTreeMap::new();
    for one in gpu.slices.iter().filter(|one| one.is_kernel && !one.is_communication) {
        let key = match one.owner {
            None => (None, Why::NoOp),
            Some(owner) => {
                if nested.chain(owner).any(|at| states[at].is_none()) {
                    continue;
                }
                // (A formula around it that has no sizes says more than the absence of one here.)
                let why =
                    nested.chain(owner).find_map(|at| states[at].filter(|why| *why != Why::NoRule));
                (Some(slices.name(&nested.slices[owner])), why.unwrap_or(Why::NoRule))
            }
        };
        let sum = sums.entry(key).or_default();
        *sum = sum.saturating_add(one.slice.dur_ns());
    }
    let row = |((name, why), device_ns): ((Option<&str>, Why), i64)| UncoveredRow {
        name: name.map(str::to_owned),
        device_ns,
        why,
    };
    let mut rows: Vec<UncoveredRow> = sums.into_iter().map(row).collect();
    trace::sort_by(&mut rows, |a, b| b.device_ns.cmp(&a.device_ns));
    rows
}

/// Whether the bytes of an op are counted: then its strides are needed.
#[must_use]
pub fn has_rule(op: &str) -> bool {
    table::rule(op).is_some()
}

/// A tensor among the inputs of a call.
struct Tensor {
    dims: Vec<i128>,
    /// Bytes of an element; `None` for a type that has no known size.
    size: Option<i128>,
    is_float: bool,
    /// Elements of memory that its strides span.
    span: i128,
}

/// The inputs of a call; `None` for what is no tensor with dimensions.
struct Tensors(Vec<Option<Tensor>>);

impl Tensors {
    fn of(dims: &str, types: &str, strides: &str) -> Option<Self> {
        let dims: Vec<Value> = serde_json::from_str(dims).ok()?;
        let types: Vec<String> = serde_json::from_str(types).ok()?;
        let strides: Vec<Value> = serde_json::from_str(strides).unwrap_or_default();
        let mut all = Vec::with_capacity(dims.len());
        for (at, dims) in dims.iter().enumerate() {
            let dims = integers(dims).filter(|dims| !dims.is_empty());
            let Some(dims) = dims else {
                all.push(None);
                continue;
            };
            let elements = product(&dims)?;
            let spanned =
                strides.get(at).and_then(integers).and_then(|strides| span(&dims, &strides));
            let name = types.get(at).map_or("", String::as_str);
            all.push(Some(Tensor {
                span: spanned.map_or(elements, |span| span.min(elements)),
                size: bytes_of_type(name),
                is_float: !name.contains("int") && !name.contains("char") && name != "bool",
                dims,
            }));
        }
        Some(Self(all))
    }

    fn tensor(&self, at: usize) -> Option<&Tensor> {
        self.0.get(at)?.as_ref()
    }

    /// The least bytes that a call moves; `None` where a size that counts is not known.
    fn bytes(&self, rule: table::Rule) -> Option<i128> {
        let mut bytes = 0_i128;
        for tensor in rule.reads.iter().filter_map(|at| self.tensor(*at)) {
            bytes = bytes.checked_add(tensor.span.checked_mul(tensor.size?)?)?;
        }
        let written = match rule.writes {
            Writes::NotKnown => 0,
            Writes::Like(these) => {
                let mut written = 0_i128;
                for at in these {
                    let tensor = self.tensor(*at)?;
                    written =
                        written.checked_add(product(&tensor.dims)?.checked_mul(tensor.size?)?)?;
                }
                written
            }
            Writes::Broadcast => {
                let inputs = || rule.reads.iter().filter_map(|at| self.tensor(*at));
                let floats = inputs().filter(|one| one.is_float).filter_map(|one| one.size).max();
                let size = floats.or_else(|| inputs().filter_map(|one| one.size).max())?;
                self.broadcast(rule.reads)?.checked_mul(size)?
            }
            Writes::Booleans => self.broadcast(rule.reads)?,
            Writes::Rows => {
                let (table, indices) = (self.tensor(0)?, self.tensor(1)?);
                let row = table.dims.last()?.checked_mul(table.size?)?;
                product(&indices.dims)?.checked_mul(row)?
            }
        };
        bytes.checked_add(written).filter(|bytes| *bytes > 0)
    }

    /// Elements of the broadcast of some arguments.
    fn broadcast(&self, these: &[usize]) -> Option<i128> {
        let shapes: Vec<&[i128]> =
            these.iter().filter_map(|at| Some(&*self.tensor(*at)?.dims)).collect();
        let n = shapes.iter().map(|dims| dims.len()).max()?;
        let mut elements = 1_i128;
        for from_end in 1..=n {
            let sizes =
                shapes.iter().filter_map(|dims| dims.get(dims.len().checked_sub(from_end)?));
            let sizes: Vec<i128> = sizes.copied().filter(|size| *size != 1).collect();
            let size = sizes.first().copied().unwrap_or(1);
            if sizes.iter().any(|other| *other != size) {
                return None;
            }
            elements = elements.checked_mul(size)?;
        }
        Some(elements)
    }
}

fn integers(list: &Value) -> Option<Vec<i128>> {
    list.as_array()?.iter().map(|n| n.as_i64().map(i128::from)).collect()
}

fn product(dims: &[i128]) -> Option<i128> {
    dims.iter().try_fold(1_i128, |all, n| all.checked_mul((*n).max(0)))
}

/// Elements of memory from the first to the last one that strides reach.
fn span(dims: &[i128], strides: &[i128]) -> Option<i128> {
    if dims.len() != strides.len() || dims.contains(&0) {
        return None;
    }
    let reach = dims.iter().zip(strides).try_fold(0_i128, |all, (dim, stride)| {
        all.checked_add(dim.checked_sub(1)?.checked_mul(stride.checked_abs()?)?)
    })?;
    reach.checked_add(1)
}

/// Bytes of an element, by the name in `Input type`, as it is kept: without blanks.
fn bytes_of_type(name: &str) -> Option<i128> {
    Some(match name {
        "double" | "long" | "longint" | "c10::complex<float>" => 8,
        "float" | "int" => 4,
        "c10::Half" | "c10::BFloat16" | "short" | "shortint" => 2,
        "signedchar" | "unsignedchar" | "bool" => 1,
        name if name.starts_with("c10::Float8_") => 1,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(op: &str, dims: &str, types: &str, strides: &str) -> Option<i128> {
        Tensors::of(dims, types, strides)?.bytes(table::rule(op)?)
    }

    #[test]
    fn operands_and_result_count_once() {
        let half = r#"["c10::Half","c10::Half","Scalar"]"#;
        assert_eq!(bytes("aten::add", "[[8,4],[8,4],[]]", half, "[]"), Some(3 * 32 * 2));
        // A broadcast operand counts with its own size, and the result with the broadcast one.
        assert_eq!(bytes("aten::mul", "[[8,1],[4],[]]", half, "[]"), Some((8 + 4 + 32) * 2));
        let mixed = r#"["c10::BFloat16","float"]"#;
        assert_eq!(bytes("aten::mul", "[[8],[8]]", mixed, "[]"), Some(8 * 2 + 8 * 4 + 8 * 4));
        let copy = r#"["float","c10::Half",""]"#;
        assert_eq!(bytes("aten::copy_", "[[8],[8],[]]", copy, "[]"), Some(8 * 4 + 8 * 2));
        assert_eq!(bytes("aten::eq", "[[8],[]]", r#"["longint","Scalar"]"#, "[]"), Some(8 * 8 + 8));
        assert_eq!(bytes("aten::mul", "[[8],[3]]", half, "[]"), None);
        assert_eq!(bytes("aten::mul", "[[8],[8]]", r#"["c10::Half","unknown"]"#, "[]"), None);
    }

    #[test]
    fn an_expanded_operand_is_as_large_as_its_memory() {
        let (dims, types) = ("[[64,8],[64,8]]", r#"["float","float"]"#);
        assert_eq!(bytes("aten::div", dims, types, "[[8,1],[0,1]]"), Some((512 + 8 + 512) * 4));
        assert_eq!(bytes("aten::div", dims, types, "[[8,1],[8,1]]"), Some(3 * 512 * 4));
    }

    #[test]
    fn a_table_counts_by_the_rows_that_are_wanted() {
        let (dims, types) = ("[[50000,16],[4,2],[],[],[]]", r#"["float","longint","","",""]"#);
        assert_eq!(bytes("aten::embedding", dims, types, "[]"), Some(8 * 8 + 8 * 16 * 4));
    }
}
