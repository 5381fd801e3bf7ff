//! Rates of products by the sizes of their operands.

use std::collections::BTreeMap;

use catalog::devices::Format;
use serde_json::Value;
use trace::{Details, StringId};

use super::Sum;

/// Calls of one op in one format, with operands of equal sizes, that ran as one kernel each.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeRate {
    /// Name of the op.
    pub name: String,
    /// Number format of the operands.
    pub format: &'static str,
    /// Sizes of the tensors: `[64,1001] [1001,512]`.
    pub dims: String,
    /// Operations of one call.
    pub flops: i128,
    /// GPU time of all calls, in ns.
    pub device_ns: i64,
    /// Achieved TFLOP/s.
    pub tflops: f64,
    /// Operations by byte that a call moves at least.
    pub intensity: f64,
    /// The calls: numbers of the ops in [`Slices::ops`](crate::Slices).
    pub ops: Vec<usize>,
}

/// The calls while they are collected.
#[derive(Default)]
pub(super) struct Shapes<'a>(BTreeMap<(&'a str, Format, StringId), (Sum, Vec<usize>)>);

impl<'a> Shapes<'a> {
    /// Adds a call of an op, number `op`: its format, its sizes, and its operations, GPU time in ns and bytes.
    pub(super) fn add(
        &mut self,
        op: usize,
        (name, format, dims): (&'a str, Format, StringId),
        (flops, device_ns, bytes): (i128, i64, i128),
    ) {
        let known = self.0.entry((name, format, dims)).or_insert((Sum::NONE, Vec::new()));
        known.0.add(flops, device_ns, Some(bytes));
        known.1.push(op);
    }

    /// A row for each, most GPU time first.
    pub(super) fn rows(self, details: &Details) -> Vec<ShapeRate> {
        let row =
            |((name, format, dims), (sum, ops)): ((&str, Format, StringId), (Sum, Vec<usize>))| {
                let bytes = sum.bytes.filter(|bytes| *bytes > 0)?;
                Some(ShapeRate {
                    name: name.to_owned(),
                    format: format.id(),
                    dims: sizes(details.texts.get(dims), usize::MAX),
                    flops: sum.flops / i128::from(sum.calls.max(1)),
                    device_ns: sum.device_ns,
                    tflops: sum.flops as f64 / sum.device_ns.max(1) as f64 / 1e3,
                    intensity: sum.flops as f64 / bytes as f64,
                    ops,
                })
            };
        let mut rows: Vec<ShapeRate> = self.0.into_iter().filter_map(row).collect();
        trace::sort_by(&mut rows, |a, b| b.device_ns.cmp(&a.device_ns));
        rows
    }
}

/// The first sizes, `most` of them, of a list of inputs that have dimensions: `[64,1001] [1001,512]`.
#[must_use]
pub fn sizes(dims: &str, most: usize) -> String {
    let all: Vec<Value> = serde_json::from_str(dims).unwrap_or_default();
    let tensors = all.iter().filter(|one| one.as_array().is_some_and(|dims| !dims.is_empty()));
    tensors.take(most).map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
