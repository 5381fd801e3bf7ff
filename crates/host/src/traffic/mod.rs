//! Bytes of ops that compute little: the least that a call moves, and the rate that follows.
//!
//! Each operand counts once and the result once, so a call moves at least these bytes; what a cache keeps may make the rate
//! exceed the bandwidth of memory. An operand counts no more than the memory that its strides span: an expanded one is small.
//! Copies on the GPU (`gpu_memcpy`) have their own bytes and their own table; here only kernels count.

mod sections;
mod table;

use std::collections::BTreeMap;

use serde::Serialize;
use trace::{Details, StringId};

use crate::custom_ops::{self, Unknown};
use crate::flops::{self, Counted};
use crate::links::GpuSide;
use crate::rates::peaks;
use crate::slices::{HostSlice, Slices};
use crate::tensors::{Tensor, Tensors, product};
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
    /// GPU time of the calls that the memory limits: they move at least 70% of what its bandwidth allows, and no more than all.
    #[serde(skip)]
    pub limited_ns: i64,
    /// What these reach, in percent of the bandwidth.
    #[serde(skip)]
    pub limited_pct: f64,
}

/// Of the bandwidth, in percent: 80 to 97% is what large tensors reach (measured on H100, A100, V100 and MI300X), and bytes are
/// a lower bound.
const LIMITED_PCT: f64 = 70.0;

/// The calls of one op, while they are added up.
#[derive(Default)]
struct Sum {
    calls: u64,
    ns: i64,
    bytes: i128,
    limited_ns: i64,
    limited_bytes: i128,
}

impl Sum {
    /// Adds a call that moves `bytes` in `ns`, on a device of this bandwidth in GB/s, if that is known.
    fn add(&mut self, ns: i64, bytes: i128, most: Option<f64>) {
        self.calls += 1;
        self.ns = self.ns.saturating_add(ns);
        self.bytes = self.bytes.saturating_add(bytes);
        let pct = most.map_or(0.0, |most| 100.0 * bytes as f64 / ns.max(1) as f64 / most);
        // (Of more than its bandwidth a cache has a part: the memory is not what limits.)
        if (LIMITED_PCT..=100.0).contains(&pct) {
            self.limited_ns = self.limited_ns.saturating_add(ns);
            self.limited_bytes = self.limited_bytes.saturating_add(bytes);
        }
    }
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
    /// How many keys each sequence has is a value in GPU memory.
    KvLengths,
    /// How many tokens each expert has is a value in GPU memory.
    Routing,
    /// Which tokens are padding is a value in GPU memory.
    Slots,
    /// The op finds its weights or its cache by a name: their sizes are no arguments.
    ByName,
}

impl From<Unknown> for Why {
    fn from(why: Unknown) -> Self {
        match why {
            Unknown::KvLengths => Self::KvLengths,
            Unknown::Routing => Self::Routing,
            Unknown::Slots => Self::Slots,
            Unknown::ByName => Self::ByName,
        }
    }
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
            Self::KvLengths => "lengths of the sequences are in GPU memory",
            Self::Routing => "tokens of each expert are in GPU memory",
            Self::Slots => "the number of padding tokens is in GPU memory",
            Self::ByName => "sizes of weights or cache are not among the arguments",
        }
    }
}

/// The bytes of a run. `counted` is what [`crate::flops::of_each`] finds, `device_ns` is the GPU time of each op, with that of the ops inside it.
#[must_use]
pub fn traffic(
    slices: &Slices<'_>,
    gpu: &GpuSide,
    details: &Details,
    counted: &[Counted],
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
    let mut states = without_operations(slices, details, counted);
    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
    let most = roof.map(|roof| roof.gb_per_s);
    let mut known: BTreeMap<([StringId; 4], &str), Option<i128>> = BTreeMap::new();
    for (at, op) in nested.slices.iter().enumerate().filter(|(at, _)| kernels_ns[*at] > 0) {
        let name = slices.name(op);
        let Some(rule) = table::rule(name) else { continue };
        if device_ns.get(at) != Some(&kernels_ns[at]) {
            states[at] = Some(Why::Mixed);
            continue;
        }
        let bytes = details.inputs(op.row).and_then(|inputs| {
            let strides = details.strides(op.row).unwrap_or_default();
            let values = flops::values(details, op.row);
            let name = slices.trace.name(op.row);
            *known.entry(([name, inputs.dims, inputs.types, values], strides)).or_insert_with(
                || {
                    let text = |id| details.texts.get(id);
                    let tensors = Tensors::of(text(inputs.dims), text(inputs.types), strides)?;
                    bytes(&tensors, rule, text(values))
                },
            )
        });
        states[at] = match bytes {
            Some(bytes) => {
                sums.entry(name).or_default().add(kernels_ns[at], bytes, most);
                None
            }
            None => Some(Why::NoSizes),
        };
    }
    let row = |(name, sum): (&str, Sum)| {
        let of_most = |gb_per_s: f64| most.map(|most| 100.0 * gb_per_s / most);
        let gb_per_s = sum.bytes as f64 / sum.ns.max(1) as f64;
        TrafficRow {
            name: name.to_owned(),
            calls: sum.calls,
            device_ns: sum.ns,
            bytes_at_least: sum.bytes,
            gb_per_s,
            bandwidth_pct: of_most(gb_per_s),
            limited_ns: sum.limited_ns,
            limited_pct: of_most(sum.limited_bytes as f64 / sum.limited_ns.max(1) as f64)
                .unwrap_or_default(),
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

/// Why each op has no operations; `None` where it has. By number in [`Slices::ops`].
fn without_operations(
    slices: &Slices<'_>,
    details: &Details,
    counted: &[Counted],
) -> Vec<Option<Why>> {
    let mut reasons: BTreeMap<StringId, Why> = BTreeMap::new();
    let reason = |op: &HostSlice| {
        let why = || custom_ops::unknown(slices.name(op)).map_or(Why::NoRule, Why::from);
        Some(*reasons.entry(slices.trace.name(op.row)).or_insert_with(why))
    };
    let mut states: Vec<Option<Why>> = slices.ops.slices.iter().map(reason).collect();
    for (at, operations) in counted {
        states[*at] = operations.is_err().then_some(Why::NoSizes);
    }
    for call in custom_ops::calls(slices, details).counted {
        states[call.at] = call.figures.operations.err().map(|_| Why::NoSizes);
    }
    states
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
pub(crate) fn has_rule(op: &str) -> bool {
    table::rule(op).is_some()
}

/// The least bytes that a call moves; `None` where a size that counts is not known. `values` are the concrete inputs.
fn bytes(tensors: &Tensors, rule: table::Rule, values: &str) -> Option<i128> {
    if rule.unless.is_some_and(|at| tensors.tensor(at).is_some()) {
        return None;
    }
    if let Writes::Rotated(at) = rule.writes {
        return rotated(tensors, at, values);
    }
    let mut bytes = 0_i128;
    for tensor in rule.reads.iter().filter_map(|at| tensors.tensor(*at)) {
        bytes = bytes.checked_add(tensor.span.checked_mul(tensor.size?)?)?;
    }
    let written = match rule.writes {
        Writes::NotKnown | Writes::Rotated(_) => 0,
        Writes::Like(these) => {
            let all: Option<Vec<&Tensor>> = these.iter().map(|at| tensors.tensor(*at)).collect();
            elements_bytes(all?.into_iter())?
        }
        Writes::LikeRecorded(these) => {
            elements_bytes(these.iter().filter_map(|at| tensors.tensor(*at)))?
        }
        Writes::Broadcast => {
            let inputs = || rule.reads.iter().filter_map(|at| tensors.tensor(*at));
            let floats = inputs().filter(|one| one.is_float).filter_map(|one| one.size).max();
            let size = floats.or_else(|| inputs().filter_map(|one| one.size).max())?;
            broadcast(tensors, rule.reads)?.checked_mul(size)?
        }
        Writes::Booleans => broadcast(tensors, rule.reads)?,
        Writes::Rows => {
            let (table, indices) = (tensors.tensor(0)?, tensors.tensor(1)?);
            let row = table.dims.last()?.checked_mul(table.size?)?;
            product(&indices.dims)?.checked_mul(row)?
        }
    };
    bytes.checked_add(written).filter(|bytes| *bytes > 0)
}

/// Bytes of all elements of tensors.
fn elements_bytes<'a>(mut tensors: impl Iterator<Item = &'a Tensor>) -> Option<i128> {
    tensors.try_fold(0_i128, |all, tensor| {
        all.checked_add(product(&tensor.dims)?.checked_mul(tensor.size?)?)
    })
}

/// Bytes of a rotary embedding: of each head it reads and writes the part that it rotates, and a position per token. What it
/// reads of the table of angles depends on the positions, and is not counted.
fn rotated(tensors: &Tensors, at: table::Rotated, values: &str) -> Option<i128> {
    let query = tensors.tensor(at.query)?;
    let values: Vec<String> = serde_json::from_str(values).ok()?;
    let head: i128 = values.get(at.head)?.trim().parse().ok()?;
    let part = *tensors.tensor(at.angles)?.dims.last()?;
    if head <= 0 || !(0..=head).contains(&part) {
        return None;
    }
    let key = tensors.tensor(at.query + 1);
    let mut bytes = tensors.bytes_of(&[at.positions])?;
    for tensor in [Some(query), key].into_iter().flatten() {
        let elements = product(&tensor.dims)?;
        // (Rows of whole heads, or the shape is another one than the formula takes.)
        if elements % head != 0 {
            return None;
        }
        let moved = (elements / head).checked_mul(part)?.checked_mul(tensor.size?)?;
        bytes = bytes.checked_add(moved.checked_mul(2)?)?;
    }
    Some(bytes)
}

/// Elements of the broadcast of some arguments.
fn broadcast(tensors: &Tensors, these: &[usize]) -> Option<i128> {
    let shapes: Vec<&[i128]> =
        these.iter().filter_map(|at| Some(&*tensors.tensor(*at)?.dims)).collect();
    let n = shapes.iter().map(|dims| dims.len()).max()?;
    let mut elements = 1_i128;
    for from_end in 1..=n {
        let sizes = shapes.iter().filter_map(|dims| dims.get(dims.len().checked_sub(from_end)?));
        let sizes: Vec<i128> = sizes.copied().filter(|size| *size != 1).collect();
        let size = sizes.first().copied().unwrap_or(1);
        if sizes.iter().any(|other| *other != size) {
            return None;
        }
        elements = elements.checked_mul(size)?;
    }
    Some(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(op: &str, dims: &str, types: &str, strides: &str) -> Option<i128> {
        super::bytes(&Tensors::of(dims, types, strides)?, table::rule(op)?, "[]")
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

    #[test]
    fn a_rotary_embedding_moves_the_rotated_part_of_each_head_twice() {
        let bytes = |rotated: usize| {
            let dims = format!("[[32],[32,4096],[32,512],[],[131072,{rotated}],[]]");
            let types =
                r#"["longint","c10::BFloat16","c10::BFloat16","Scalar","c10::BFloat16","Scalar"]"#;
            let tensors = Tensors::of(&dims, types, "[]").expect("tensors");
            let rule = table::rule("_C::rotary_embedding").expect("a rule");
            super::bytes(&tensors, rule, r#"["","","","64","","True"]"#)
        };
        assert_eq!(bytes(64), Some(32 * 8 + 2 * (32 * 4096 + 32 * 512) * 2));
        assert_eq!(bytes(32), Some(32 * 8 + 32 * 4096 * 2 + 32 * 512 * 2));
        assert_eq!(bytes(128), None);
    }

    #[test]
    fn an_op_that_may_skip_rows_has_no_figure() {
        let types = r#"["c10::Float8_e4m3fnuz","c10::BFloat16","float","","Scalar","int"]"#;
        let bytes = |dims: &str| bytes("aiter::dynamic_per_token_scaled_quant", dims, types, "[]");
        assert_eq!(bytes("[[8,64],[8,64],[8,1],[],[],[]]"), Some(512 * 2 + 512 + 8 * 4));
        assert_eq!(bytes("[[8,64],[8,64],[8,1],[],[],[1]]"), None);
    }
}
