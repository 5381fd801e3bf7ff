//! Floating point operations of ops, from the shapes that they were called with.
//!
//! An op counts if no op of the table lies in it: `aten::linear` calls `aten::addmm`, and only the inner one counts.
//! A multiplication and an addition are two operations. Bias additions are counted apart.

mod formulas;
mod table;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::Value;
use trace::{BuildIdHasher, Details, StringId, Trace};

pub use formulas::{Arguments, Operations, Uncovered};
pub(crate) use formulas::{Attention, Corner, Layout, attention, pairs, product};

use crate::by_name::ByName;
use crate::numbers::micro;
use crate::slices::Slices;
use table::Formula;

/// The table of floating point operations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flops {
    /// Operations of all counted ops.
    pub total: i128,
    /// Additions of biases, which `total` does not have.
    pub total_bias: i128,
    /// Counted ops.
    pub counted: u64,
    /// Ops whose shapes are missing or make no sense.
    pub uncovered: u64,
    /// Why, with the number of ops.
    pub uncovered_why: BTreeMap<String, u64>,
    /// Operations of counted ops that launched GPU work.
    pub flops_with_device: i128,
    /// GPU time of these.
    pub device_ns: i64,
    /// Achieved rate of these, in TFLOP/s.
    pub tflops: Option<f64>,
    /// By op, most operations first.
    pub ops: Vec<FlopsRow>,
    /// Ops of extensions, which the sums above do not have.
    pub custom_not_in_total: Vec<CustomRow>,
    /// The fifteen shapes with most operations.
    pub top_shapes: Vec<ShapeRow>,
}

/// All ops of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlopsRow {
    /// Name.
    pub name: String,
    /// Calls.
    pub instances: u64,
    /// Calls with an op of the table inside.
    pub outer_not_counted: u64,
    /// Counted calls.
    pub counted: u64,
    /// Calls whose shapes are missing or make no sense.
    pub uncovered: u64,
    /// Operations.
    pub flops: i128,
    /// Additions of biases.
    pub bias_flops: i128,
    /// GPU time of calls without an op of the table inside.
    pub device_ns: i64,
    /// Operations of counted calls that launched GPU work.
    pub flops_with_device: i128,
    /// GPU time of these.
    pub device_ns_with_flops: i64,
    /// Number of these.
    pub counted_with_device: u64,
    /// Achieved rate of these, in TFLOP/s.
    pub tflops: Option<f64>,
}

/// All calls of one op of an extension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CustomRow {
    /// Name.
    pub name: String,
    /// Calls.
    pub count: u64,
    /// Operations.
    pub flops: i128,
    /// Calls whose shapes are missing or make no sense.
    pub uncovered: u64,
    /// GPU time.
    pub device_ns: i64,
    /// Calls with an op of the table inside.
    pub contains_table_op: u64,
}

/// Calls of one op with one list of shapes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShapeRow {
    /// Name of the op.
    pub name: String,
    /// Shapes of the first four inputs.
    pub dims: Value,
    /// Counted calls.
    pub count: u64,
    /// Operations.
    pub flops: i128,
    /// GPU time.
    pub device_ns: i64,
}

/// Whether a formula covers an op: then its strides and concrete inputs are needed.
#[must_use]
pub(crate) fn has_formula(op: &str) -> bool {
    table::formula(op).is_some() || table::custom(op).is_some()
}

/// Operations per ns in TFLOP/s.
fn rate(flops: i128, ns: i64) -> Option<f64> {
    (ns != 0).then(|| micro(flops as f64 / ns as f64 / 1000.0))
}

/// What distinguishes calls: the op, its shapes and types, and its values.
type Call = (StringId, [StringId; 2], StringId);

/// Evaluates a formula once per distinct call.
struct Evaluator<'a> {
    details: &'a Details,
    known: HashMap<Call, Result<Operations, Uncovered>, BuildIdHasher>,
}

impl Evaluator<'_> {
    fn operations(
        &mut self,
        row: trace::Row,
        name: StringId,
        formula: Formula,
    ) -> Result<Operations, Uncovered> {
        let inputs = self.details.inputs(row).ok_or(Uncovered::NoDims)?;
        let concrete = values(self.details, row);
        let texts = &self.details.texts;
        let key = (name, [inputs.dims, inputs.types], concrete);
        let found = self.known.entry(key).or_insert_with(|| {
            Arguments::of(texts.get(inputs.dims), texts.get(concrete))
                .and_then(|arguments| formula.evaluate(&arguments))
        });
        found.clone()
    }
}

/// The concrete inputs of an op; empty where they were not recorded.
pub(crate) fn values(details: &Details, row: trace::Row) -> StringId {
    let at = details.concrete_inputs.binary_search_by_key(&row, |(other, _)| *other);
    at.map_or(StringId::EMPTY, |at| details.concrete_inputs[at].1)
}

/// By op: whether an op of the table of PyTorch's ops lies in it.
pub(crate) fn around_counted(slices: &Slices<'_>) -> Vec<bool> {
    let formulas = formulas_by_name(slices, table::formula);
    has_inside(slices, |name| formulas[name.0 as usize].is_some())
}

/// The number of an op in [`Slices::ops`], and its operations, or why they are not known.
pub type Counted = (usize, Result<Operations, Uncovered>);

/// What each op of the table without another one inside counts.
#[must_use]
pub fn of_each(slices: &Slices<'_>, details: &Details) -> Vec<Counted> {
    let nested = &slices.ops;
    let formulas = formulas_by_name(slices, table::formula);
    let outer = has_inside(slices, |name| formulas[name.0 as usize].is_some());
    let mut evaluator = Evaluator { details, known: HashMap::default() };
    (0..nested.slices.len())
        .filter(|at| !outer[*at])
        .filter_map(|at| {
            let row = nested.slices[at].row;
            let name = slices.trace.name(row);
            let formula = formulas[name.0 as usize]?;
            Some((at, evaluator.operations(row, name, formula)))
        })
        .collect()
}

fn formulas_by_name(
    slices: &Slices<'_>,
    of: impl Fn(&str) -> Option<Formula>,
) -> Vec<Option<Formula>> {
    let strings = &slices.trace.strings;
    (0..strings.len() as u32).map(|id| of(strings.get(StringId(id)))).collect()
}

/// By op: whether an op with such a name lies in it.
pub(crate) fn has_inside(slices: &Slices<'_>, is: impl Fn(StringId) -> bool) -> Vec<bool> {
    let nested = &slices.ops;
    let mut found = vec![false; nested.slices.len()];
    for (at, op) in nested.slices.iter().enumerate() {
        if is(slices.trace.name(op.row)) {
            nested.mark_around(at, &mut found);
        }
    }
    found
}

/// The table of floating point operations. `counted` is what [`of_each`] finds, `device_ns` the GPU time of each op.
#[must_use]
pub fn flops(
    slices: &Slices<'_>,
    details: &Details,
    counted: &[Counted],
    device_ns: &[i64],
) -> Flops {
    let trace = slices.trace;
    let nested = &slices.ops;
    let formulas = formulas_by_name(slices, table::formula);
    let mut rows: ByName<FlopsRow> = ByName::new(trace);
    for op in &nested.slices {
        let name = trace.name(op.row);
        if formulas[name.0 as usize].is_some() {
            rows.entry(name).instances += 1;
        }
    }
    let mut why: BTreeMap<(StringId, Uncovered), u64> = BTreeMap::new();
    let mut shapes: BTreeMap<Shape, Sums> = BTreeMap::new();
    for (at, operations) in counted {
        let op = nested.slices[*at];
        let name = trace.name(op.row);
        let row = rows.entry(name);
        let on_gpu = device_ns[*at];
        row.device_ns += on_gpu;
        let operations = match operations {
            Ok(operations) => operations,
            Err(reason) => {
                row.uncovered += 1;
                *why.entry((name, reason.clone())).or_default() += 1;
                continue;
            }
        };
        row.counted += 1;
        row.flops += operations.flops;
        row.bias_flops += operations.bias;
        if on_gpu > 0 {
            row.flops_with_device += operations.flops;
            row.device_ns_with_flops += on_gpu;
            row.counted_with_device += 1;
        }
        let dims = details.inputs(op.row).map(|inputs| inputs.dims);
        let shape = shapes.entry((name, dims)).or_default();
        shape.count += 1;
        shape.flops += operations.flops;
        shape.device_ns += on_gpu;
    }
    let mut rows: Vec<FlopsRow> = rows
        .iter()
        .map(|(name, row)| FlopsRow {
            name: trace.strings.get(name).to_owned(),
            outer_not_counted: row.instances - row.counted - row.uncovered,
            tflops: rate(row.flops_with_device, row.device_ns_with_flops),
            ..row.clone()
        })
        .collect();
    trace::sort_by(&mut rows, |a, b| b.flops.cmp(&a.flops).then_with(|| a.name.cmp(&b.name)));
    let flops_with_device = rows.iter().map(|row| row.flops_with_device).sum();
    let total_ns = rows.iter().map(|row| row.device_ns_with_flops).sum();
    Flops {
        total: rows.iter().map(|row| row.flops).sum(),
        total_bias: rows.iter().map(|row| row.bias_flops).sum(),
        counted: rows.iter().map(|row| row.counted).sum(),
        uncovered: rows.iter().map(|row| row.uncovered).sum(),
        uncovered_why: most(trace, why, 20),
        flops_with_device,
        device_ns: total_ns,
        tflops: rate(flops_with_device, total_ns),
        ops: rows,
        custom_not_in_total: custom(slices, details, device_ns, &formulas),
        top_shapes: top(trace, details, shapes),
    }
}

fn most(
    trace: &Trace,
    counts: BTreeMap<(StringId, Uncovered), u64>,
    n: usize,
) -> BTreeMap<String, u64> {
    let text =
        |(name, reason): (StringId, Uncovered)| format!("{}: {reason}", trace.strings.get(name));
    let mut sorted: Vec<(String, u64)> =
        counts.into_iter().map(|(key, count)| (text(key), count)).collect();
    trace::sort_by(&mut sorted, |a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sorted.into_iter().take(n).collect()
}

/// An op and the shapes of its inputs, as they were recorded.
type Shape = (StringId, Option<StringId>);

/// The sums of a row of shapes.
#[derive(Clone, Copy, Default)]
struct Sums {
    count: u64,
    flops: i128,
    device_ns: i64,
}

fn top(trace: &Trace, details: &Details, shapes: BTreeMap<Shape, Sums>) -> Vec<ShapeRow> {
    let mut by_four: BTreeMap<(&str, String), Sums> = BTreeMap::new();
    for ((name, dims), sums) in shapes {
        let dims = dims.map(|dims| first_four(details.texts.get(dims))).unwrap_or_default();
        let row = by_four.entry((trace.strings.get(name), dims)).or_default();
        row.count += sums.count;
        row.flops += sums.flops;
        row.device_ns += sums.device_ns;
    }
    let mut sorted: Vec<_> = by_four.into_iter().collect();
    trace::sort_by(&mut sorted, |(a, first), (b, second)| {
        second.flops.cmp(&first.flops).then_with(|| a.cmp(b))
    });
    sorted
        .into_iter()
        .take(15)
        .map(|((name, dims), Sums { count, flops, device_ns })| ShapeRow {
            name: name.to_owned(),
            dims: serde_json::from_str(&dims).unwrap_or_default(),
            count,
            flops,
            device_ns,
        })
        .collect()
}

/// The first four of a list, as JSON with a blank after each comma: so the reference orders them.
fn first_four(dims: &str) -> String {
    let Ok(mut list) = serde_json::from_str::<Vec<Value>>(dims) else { return String::new() };
    list.truncate(4);
    Value::Array(list).to_string().replace(',', ", ")
}

fn custom(
    slices: &Slices<'_>,
    details: &Details,
    device_ns: &[i64],
    formulas: &[Option<Formula>],
) -> Vec<CustomRow> {
    let trace = slices.trace;
    let custom = formulas_by_name(slices, table::custom);
    let contains = has_inside(slices, |name| formulas[name.0 as usize].is_some());
    let mut rows: ByName<CustomRow> = ByName::new(trace);
    let mut evaluator = Evaluator { details, known: HashMap::default() };
    for (at, op) in slices.ops.slices.iter().enumerate() {
        let name = trace.name(op.row);
        let Some(formula) = custom[name.0 as usize] else { continue };
        let row = rows.entry(name);
        row.count += 1;
        row.device_ns += device_ns[at];
        row.contains_table_op += u64::from(contains[at]);
        match evaluator.operations(op.row, name, formula) {
            Ok(operations) => row.flops += operations.flops,
            Err(_) => row.uncovered += 1,
        }
    }
    let named = |(name, row): (StringId, &CustomRow)| CustomRow {
        name: trace.strings.get(name).to_owned(),
        ..row.clone()
    };
    let mut rows: Vec<CustomRow> = rows.iter().map(named).collect();
    trace::sort_by(&mut rows, |a, b| a.name.cmp(&b.name));
    rows
}
