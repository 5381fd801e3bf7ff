//! M21, for elementwise ops: calls that take longer than others with inputs of the same sizes, because their inputs are laid out in another
//! way.

use std::collections::BTreeMap;

use host::rates::sizes;
use report::units::{plural, time};
use serde_json::Value;
use trace::StringId;

use crate::facts::Device;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// What PyTorch's kernel for any layout is called, and that for inputs that are contiguous in the same way
/// (`aten/src/ATen/native/cuda/CUDALoops.cuh`).
const ANY_LAYOUT: &str = "::elementwise_kernel<";
const CONTIGUOUS: &str = "vectorized_elementwise_kernel<";
/// What copies is called: a copy to another layout is what its caller asked for.
const COPIES: &str = "copy";
/// So many times as long is due to the layout, and of so long a kernel at least, in ns: a shorter one has its data in a cache.
const SLOWER: f64 = 1.5;
const LEAST_NS: i64 = 50_000;
/// Of the time that the bar is of.
const LEAST_SHARE: f64 = 0.01;
/// Shapes in the sentence.
const SHAPES: usize = 3;

/// An op, and the sizes and types of its inputs.
type Key = (StringId, StringId, StringId);

/// Calls of one op with inputs of the same sizes.
#[derive(Default)]
struct Alike {
    /// Those in the kernel for any layout: the op, and its GPU time.
    slow: Vec<(usize, i64)>,
    /// The GPU times of those in the other kernel.
    fast: Vec<i64>,
}

/// Calls that take longer than others with inputs of the same sizes.
struct Slower {
    key: Key,
    /// The op of each, and its GPU time.
    calls: Vec<(usize, i64)>,
    /// What the others take: the median.
    fast_ns: i64,
}

impl Slower {
    /// `None` where no call is so much slower.
    fn of(key: Key, Alike { slow, mut fast }: Alike) -> Option<Self> {
        let fast_ns = timeline::median(&mut fast).filter(|ns| *ns >= LEAST_NS)?;
        let is_slow = |ns: i64| ns as f64 >= SLOWER * fast_ns as f64;
        // (One of many is slow for another reason.)
        let mut times: Vec<i64> = slow.iter().map(|(_, ns)| *ns).collect();
        timeline::median(&mut times).filter(|ns| is_slow(*ns))?;
        let calls: Vec<(usize, i64)> = slow.into_iter().filter(|(_, ns)| is_slow(*ns)).collect();
        (!calls.is_empty()).then_some(Self { key, calls, fast_ns })
    }

    /// What they take longer in all.
    fn more_ns(&self) -> i64 {
        self.calls.iter().map(|(_, ns)| ns - self.fast_ns).sum()
    }

    /// `4 calls of aten::add [1024,256] [1024,256] take 12.0 ms each (median)`.
    fn told(&self, facts: &Facts<'_>) -> Option<String> {
        let (op, dims, _) = self.key;
        let mut times: Vec<i64> = self.calls.iter().map(|(_, ns)| *ns).collect();
        let slow = time(timeline::median(&mut times)?);
        let takes = match times.len() {
            1 => format!("takes {slow}"),
            _ => format!("take {slow} each (median)"),
        };
        Some(format!(
            "{} of {} {} {takes}",
            plural(times.len() as u64, "call", "calls"),
            facts.trace.strings.get(op),
            sizes(facts.details.texts.get(dims), SHAPES),
        ))
    }
}

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    facts.devices().filter_map(|device| of_device(facts, &device)).collect()
}

fn of_device(facts: &Facts<'_>, device: &Device<'_>) -> Option<Finding> {
    let all = alike(facts, device).into_iter();
    let slower = all.filter_map(|(key, own)| Slower::of(key, own));
    let mut slower: Vec<Slower> = slower.filter(|one| has_equal_inputs(facts, one.key)).collect();
    trace::sort_by_key(&mut slower, |one| std::cmp::Reverse(one.more_ns()));
    let most = slower.first()?;
    let gone = slower.iter().flat_map(|one| {
        let part = |ns: i64| 1.0 - one.fast_ns as f64 / ns as f64;
        one.calls.iter().map(move |(at, ns)| (*at, part(*ns)))
    });
    let bound_ns = device.saved_by_faster_ns(&gone.collect::<Vec<_>>());
    let (_, window_ns) = device.busy_told()?;
    let share = bound_ns as f64 / window_ns.max(1) as f64;
    if share < LEAST_SHARE {
        return None;
    }
    let others = match slower.len() {
        1 => String::new(),
        n => {
            let others = plural(n as u64 - 1, "other op or size", "other ops or sizes");
            format!(" The same holds for {others}.")
        }
    };
    let text = format!(
        "{} in elementwise_kernel; with inputs of the same sizes, vectorized_elementwise_kernel takes {}.{others}",
        most.told(facts)?,
        time(most.fast_ns),
    );
    let more_ns = slower.iter().map(Slower::more_ns).sum();
    Some(
        Finding::fact(Rule::Bandwidth, "layouts", text)
            .level(Level::of_share(share))
            .confidence(Confidence::Medium)
            .on(device.name)
            .bound(bound_ns)
            .means(
                "PyTorch takes the first where the inputs are not contiguous in the same way: permuted, sliced, or of another memory format.",
            )
            .with("triage", "GPU time above that of contiguous inputs", time(more_ns)),
    )
}

/// Whether the tensors of a call all have the same sizes: else one is broadcast, and the kernel for any layout is the only one, unless that is a
/// number of the CPU's.
fn has_equal_inputs(facts: &Facts<'_>, (_, dims, types): Key) -> bool {
    let read = |id| serde_json::from_str::<Vec<Value>>(facts.details.texts.get(id)).ok();
    let Some((dims, types)) = read(dims).zip(read(types)) else { return false };
    let is_number = |kind: Option<&Value>| kind.is_none_or(|kind| kind == "Scalar" || kind == "");
    let is_empty = |one: &Value| one.as_array().is_some_and(Vec::is_empty);
    let mut tensors = dims.iter().filter(|one| !is_empty(one));
    let first = tensors.next();
    let numbers = dims.iter().enumerate().filter(|(_, one)| is_empty(one));
    first.is_some()
        && tensors.all(|one| Some(one) == first)
        && numbers.map(|(at, _)| types.get(at)).all(is_number)
}

/// The calls of elementwise ops that launched one kernel on a device, by what is equal in them.
fn alike(facts: &Facts<'_>, device: &Device<'_>) -> BTreeMap<Key, Alike> {
    let names = &facts.trace.strings;
    let is_any = names.marked(&|name| name.contains(ANY_LAYOUT) && !name.contains(COPIES));
    let is_contiguous = names.marked(&|name| name.contains(CONTIGUOUS) && !name.contains(COPIES));
    let mut of_op: BTreeMap<usize, Option<(StringId, i64)>> = BTreeMap::new();
    for one in device.slices().filter(|one| one.is_kernel) {
        let Some(owner) = one.owner else { continue };
        let own = Some((facts.trace.name(one.slice.row), one.slice.dur_ns()));
        of_op.entry(owner).and_modify(|known| *known = None).or_insert(own);
    }
    let mut found: BTreeMap<Key, Alike> = BTreeMap::new();
    for (at, own) in of_op {
        let Some((kernel, ns)) = own else { continue };
        let kernel = kernel.0 as usize;
        if !is_any[kernel] && !is_contiguous[kernel] {
            continue;
        }
        let row = facts.slices.ops.slices[at].row;
        let Some(inputs) = facts.details.inputs(row) else { continue };
        let key = (facts.trace.name(row), inputs.dims, inputs.types);
        let alike = found.entry(key).or_default();
        match is_contiguous[kernel] {
            true => alike.fast.push(ns),
            false => alike.slow.push((at, ns)),
        }
    }
    found
}
