//! Operations of custom ops: those of vLLM, SGLang, AITER and FlashAttention that carry their sizes as arguments.
//!
//! [`crate::flops`] counts PyTorch's ops, and other programs count these, too; the figures here are apart from them. An op counts
//! if neither an op of PyTorch's table nor one of this table lies in it: its operations are then those of the inner op. The table
//! says of each number whether it is exact or a bound; where the arguments give neither, the op is among those without a figure
//! ([`crate::traffic`]), with the reason. Annotations of some serving engines have the sums of a pass's sequence lengths, which make
//! bounds of attention exact, or tighter.

mod formulas;
mod passes;
mod sections;
mod table;

use std::collections::BTreeMap;

use catalog::devices::Format;
use serde::Serialize;
use trace::{Details, StringId};

pub use formulas::Bound;

use crate::flops::{self, Arguments, Uncovered};
use crate::rates::{self, Sum};
use crate::slices::Slices;
use crate::tensors::Tensors;
use table::Row;

/// Why the arguments of an op do not determine what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// How many keys each sequence has is a value in GPU memory.
    KvLengths,
    /// How many tokens each expert has is a value in GPU memory.
    Routing,
    /// Which tokens are padding is a value in GPU memory.
    Slots,
    /// The op finds its weights or its cache by a name.
    ByName,
}

/// Custom ops of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CustomOps {
    /// By op, number format and bound, most GPU time first.
    pub rows: Vec<CustomOpRow>,
    /// Calls with a formula but without usable arguments, by op and reason, most GPU time first.
    pub uncounted: Vec<UncountedRow>,
    /// Calls of ops of the table that an op inside them counts for.
    pub outer_not_counted: u64,
}

/// Calls of one op in one format.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CustomOpRow {
    /// Name of the op.
    pub name: String,
    /// Number format of the operands; `None` where they differ, or the types do not say.
    pub format: Option<&'static str>,
    /// What the number of operations says.
    pub bound: Bound,
    /// Counted calls.
    pub calls: u64,
    /// Their operations: multiplications and additions of the products. Those of biases, scales and activations are not counted.
    pub flops: i128,
    /// Those of the calls that launched GPU work.
    pub flops_with_device: i128,
    /// GPU time of these calls, in ns.
    pub device_ns: i64,
    /// Operations of these calls by their GPU time, in TFLOP/s; `None` without GPU time.
    pub tflops: Option<f64>,
    /// Dense peak of the format, in TFLOP/s.
    pub peak_tflops: Option<f64>,
    /// Achieved in percent of that. `None` also for a bound above the peak, which says nothing.
    pub peak_pct: Option<f64>,
    /// Bytes that the calls move at least; `None` where they may leave a part of an operand out.
    pub bytes_at_least: Option<i128>,
    /// Operations by byte.
    pub intensity: Option<f64>,
    /// Where the argument numbers come from.
    pub source: &'static str,
}

/// Calls of one op without a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UncountedRow {
    /// Name of the op.
    pub name: String,
    /// Why there is no figure.
    pub why: String,
    /// Calls.
    pub calls: u64,
    /// Their GPU time, in ns.
    pub device_ns: i64,
}

/// A call of an op of the table.
pub(crate) struct Call {
    /// Number of the op in [`Slices::ops`].
    pub at: usize,
    /// What is known of it.
    pub figures: Figures,
    row: &'static Row,
}

/// What is known of a call.
#[derive(Clone)]
pub(crate) struct Figures {
    /// Operations, or why there is no number.
    pub operations: Result<(i128, Bound), Uncovered>,
    format: Option<Format>,
    bytes: Option<i128>,
}

/// All of them.
pub(crate) struct Calls {
    /// Those without another counted op inside.
    pub counted: Vec<Call>,
    /// The number of the others.
    outer: u64,
}

/// Whether a formula covers an op: then its strides and concrete inputs are needed.
#[must_use]
pub(crate) fn has_row(op: &str) -> bool {
    table::find(op).is_some()
}

/// Why the arguments of an op do not determine what it does; `None` for ops of which nothing is known, or that are counted.
pub(crate) fn unknown(op: &str) -> Option<Unknown> {
    table::unknown(op)
}

/// Evaluates the formulas.
#[inline(never)]
pub(crate) fn calls(slices: &Slices<'_>, details: &Details) -> Calls {
    let (trace, nested) = (slices.trace, &slices.ops);
    let strings = &trace.strings;
    let rows: Vec<Option<&'static Row>> =
        (0..strings.len() as u32).map(|id| table::find(strings.get(StringId(id)))).collect();
    let mut calls = Calls { counted: Vec::new(), outer: 0 };
    if rows.iter().all(Option::is_none) {
        return calls;
    }
    let around_others = flops::around_counted(slices);
    let around_own = flops::has_inside(slices, |name| rows[name.0 as usize].is_some());
    let passes = passes::passes(slices);
    // By name, shapes, types, values, strides and pass of a call: where its figures are.
    let mut known: BTreeMap<[u32; 6], usize> = BTreeMap::new();
    let mut figures: Vec<Figures> = Vec::new();
    for (at, op) in nested.slices.iter().enumerate() {
        let name = trace.name(op.row);
        let Some(row) = rows[name.0 as usize] else { continue };
        if around_others[at] || around_own[at] {
            calls.outer += 1;
            continue;
        }
        let found = match details.inputs(op.row) {
            None => Figures::NOT_RECORDED,
            Some(inputs) => {
                let ids = [inputs.dims, inputs.types, flops::values(details, op.row)];
                let strides = id_of(&details.strides, op.row);
                let pass = passes::around(&passes, slices.thread(op.row), op);
                let number = pass.map_or(u32::MAX, |pass| pass as u32);
                let [a, b, c] = ids.map(|id| id.0);
                let place =
                    *known.entry([name.0, a, b, c, strides.0, number]).or_insert_with(|| {
                        let texts = ids.map(|id| details.texts.get(id));
                        let pass = pass.and_then(|pass| passes.get(pass));
                        figures.push(Figures::of(row, texts, details.texts.get(strides), pass));
                        figures.len() - 1
                    });
                figures[place].clone()
            }
        };
        // (The reason that the table has says more than that of the formula.)
        if found.operations.is_err() && unknown(strings.get(name)).is_some() {
            continue;
        }
        calls.counted.push(Call { at, row, figures: found });
    }
    calls
}

/// Of an op in a list by row; empty where it is not in it.
fn id_of(list: &[(trace::Row, StringId)], row: trace::Row) -> StringId {
    let at = list.binary_search_by_key(&row, |(other, _)| *other);
    at.map_or(StringId::EMPTY, |at| list[at].1)
}

impl Figures {
    const NOT_RECORDED: Self =
        Self { operations: Err(Uncovered::NoDims), format: None, bytes: None };

    /// Of a call with these texts: shapes, types and values.
    #[inline(never)]
    fn of(
        row: &Row,
        [dims, types, values]: [&str; 3],
        strides: &str,
        pass: Option<&passes::Pass>,
    ) -> Self {
        let operations =
            Arguments::of(dims, values).and_then(|args| row.formula.evaluate(&args, pass));
        let bytes = Tensors::of(dims, types, strides)
            .filter(|_| !row.moved.is_empty())
            .and_then(|tensors| tensors.bytes_of(row.moved));
        Self { operations, format: format_of(types, row.operands), bytes }
    }
}

/// The one format of some arguments. Bytes without a sign may be any packed format, and how 32-bit floats ran is not in the types.
fn format_of(types: &str, these: &[usize]) -> Option<Format> {
    let all: Vec<String> = serde_json::from_str(types).ok()?;
    let mut formats = these.iter().map(|at| {
        let name = all.get(*at).filter(|name| *name != "unsignedchar")?;
        Format::of_type(name).filter(|format| *format != Format::F32)
    });
    let first = formats.next()??;
    formats.all(|other| other == Some(first)).then_some(first)
}

/// The custom ops of a run. `device_ns` is the GPU time of each op.
#[inline(never)]
#[must_use]
pub fn custom_ops(slices: &Slices<'_>, details: &Details, device_ns: &[i64]) -> CustomOps {
    let roof = rates::peaks(slices.trace).ok();
    let Calls { counted, outer } = calls(slices, details);
    // Calls and operations of all, and of those that launched GPU work; the source of the formula.
    type Sums = (u64, i128, Sum, &'static str);
    let mut sums: BTreeMap<(&str, Option<Format>, Bound), Sums> = BTreeMap::new();
    let mut without: BTreeMap<(&str, String), (u64, i64)> = BTreeMap::new();
    for call in counted {
        let name = slices.name(&slices.ops.slices[call.at]);
        let on_gpu = device_ns.get(call.at).copied().unwrap_or(0);
        match call.figures.operations {
            Ok((flops, bound)) => {
                let key = (name, call.figures.format, bound);
                let sum = sums.entry(key).or_insert((0, 0, Sum::NONE, call.row.source));
                (sum.0, sum.1) = (sum.0 + 1, sum.1.saturating_add(flops));
                if on_gpu > 0 {
                    sum.2.add(flops, on_gpu, call.figures.bytes);
                }
            }
            Err(why) => {
                let sum = without.entry((name, why.to_string())).or_default();
                *sum = (sum.0 + 1, sum.1.saturating_add(on_gpu));
            }
        }
    }
    let row = |((name, format, bound), (calls, flops, on_gpu, source)): ((&str, _, _), Sums)| {
        let rate = rates::row(name, format, &on_gpu, roof);
        let has_time = on_gpu.device_ns > 0;
        CustomOpRow {
            name: rate.name,
            format: rate.format,
            bound,
            calls,
            flops,
            flops_with_device: rate.flops,
            device_ns: rate.device_ns,
            tflops: has_time.then_some(rate.tflops),
            peak_tflops: rate.peak_tflops,
            peak_pct: rate
                .peak_pct
                .filter(|pct| has_time && (bound == Bound::Exact || *pct <= 100.0)),
            bytes_at_least: rate.bytes_at_least,
            intensity: rate.intensity.filter(|_| bound == Bound::Exact),
            source,
        }
    };
    let mut rows: Vec<CustomOpRow> = sums.into_iter().map(row).collect();
    trace::sort_by(&mut rows, |a, b| b.device_ns.cmp(&a.device_ns));
    let uncounted = |((name, why), (calls, device_ns)): ((&str, String), (u64, i64))| {
        UncountedRow { name: name.to_owned(), why, calls, device_ns }
    };
    let mut uncounted: Vec<UncountedRow> = without.into_iter().map(uncounted).collect();
    trace::sort_by(&mut uncounted, |a, b| b.device_ns.cmp(&a.device_ns));
    CustomOps { rows, uncounted, outer_not_counted: outer }
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_op_has_one_row() {
        for mut names in super::table::names() {
            names.sort_unstable();
            let n = names.len();
            names.dedup();
            assert_eq!((names.len(), n > 20), (n, true));
            // Operations of PyTorch's ops are counted elsewhere.
            assert!(names.iter().all(|name| !name.starts_with("aten::")));
        }
    }
}
