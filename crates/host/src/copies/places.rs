//! Where copies are made: the line of Python, or what is around them where no frame says one.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{COPY_OPS, Made, Purpose, READING_OPS};
use crate::lines::Lines;
use crate::slices::{Nested, Slices, is_step};

/// Copies of one purpose that one place makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CopyPlace {
    /// The line of Python around the op, `path:line function`; where no frame says one, the op around it, or the annotation.
    pub place: String,
    /// Ops.
    pub count: u64,
    /// Those in an op that autocast runs in 16 bits, which autocast makes.
    pub n_autocast: u64,
    /// Those that are the gradients of casts.
    pub n_gradients: u64,
    /// Those of a product that adds to a tensor (`aten::addmm` and the like), which copies that one first.
    pub n_sums: u64,
    /// GPU time of those whose source is a view that repeats values, as `expand` makes it.
    pub repeats_ns: i64,
    /// GPU time, in ns.
    pub device_ns: i64,
    /// The part of it in which nothing else runs on the device, in ns.
    pub exposed_ns: i64,
}

/// Products that add to a tensor.
const ADDS_TO: [&str; 5] =
    ["aten::addmm", "aten::baddbmm", "aten::addbmm", "aten::addmv", "aten::addr"];

/// The places of copies, by what the copies are for, most GPU time first.
pub(super) fn places(slices: &Slices<'_>, made: Vec<Made>) -> BTreeMap<Purpose, Vec<CopyPlace>> {
    let mut sums: BTreeMap<(Purpose, String), CopyPlace> = BTreeMap::new();
    let by_op: BTreeMap<usize, Made> = made.into_iter().map(|one| (one.at, one)).collect();
    for (at, place) in place_of_each(slices, by_op.keys().copied().collect()) {
        let Some(one) = by_op.get(&at) else { continue };
        let sum = sums.entry((one.purpose, place)).or_insert_with_key(|(_, place)| CopyPlace {
            place: place.clone(),
            count: 0,
            n_autocast: 0,
            n_gradients: 0,
            n_sums: 0,
            repeats_ns: 0,
            device_ns: 0,
            exposed_ns: 0,
        });
        sum.count += 1;
        let around = caller(slices, at);
        sum.n_autocast += u64::from(around.is_some_and(is_autocast));
        sum.n_gradients += u64::from(around == Some(CAST_BACKWARD));
        sum.n_sums += u64::from(around.is_some_and(|op| ADDS_TO.contains(&op)));
        let repeats_ns = if one.repeats { one.device_ns } else { 0 };
        sum.repeats_ns = sum.repeats_ns.saturating_add(repeats_ns);
        sum.device_ns = sum.device_ns.saturating_add(one.device_ns);
        sum.exposed_ns = sum.exposed_ns.saturating_add(one.exposed_ns);
    }
    let mut found: BTreeMap<Purpose, Vec<CopyPlace>> = BTreeMap::new();
    for ((purpose, _), place) in sums {
        found.entry(purpose).or_default().push(place);
    }
    for places in found.values_mut() {
        trace::sort_by(places, |a, b| b.device_ns.cmp(&a.device_ns));
    }
    found
}

/// The line of Python around each of these ops. Where no frame says one, the op around it that is no copy, and where there is none either,
/// the innermost annotation that is no step.
pub(super) fn place_of_each(slices: &Slices<'_>, mut ops: Vec<usize>) -> Vec<(usize, String)> {
    let all = &slices.ops.slices;
    let mut lines = Lines::of(slices.trace);
    let annotations = slices.annotations.iter().filter(|one| !is_step(slices.name(one)));
    let annotations = slices.nest(annotations.copied().collect());
    let thread = |at: usize| slices.thread(all[at].row);
    trace::sort_by_key(&mut ops, |at| (thread(*at), all[*at].start_ns));
    let mut found = Vec::with_capacity(ops.len());
    for of_thread in ops.chunk_by(|a, b| thread(*a) == thread(*b)) {
        let Some(first) = of_thread.first() else { continue };
        let innermost = |nested: &Nested| {
            nested.innermost(thread(*first), of_thread.iter().map(|at| all[*at].start_ns))
        };
        let around = innermost(slices.closed_frames()).into_iter().zip(innermost(&annotations));
        for (at, (frame, annotation)) in of_thread.iter().zip(around) {
            let line = frame.and_then(|frame| lines.best(slices.closed_frames(), frame));
            let annotation = annotation.map(|at| slices.name(&annotations.slices[at]));
            let place = line.map_or_else(
                || {
                    caller(slices, *at)
                        .or(annotation)
                        .unwrap_or_else(|| outermost(slices, *at))
                        .to_owned()
                },
                |line| lines.shown(line),
            );
            found.push((*at, place));
        }
    }
    found
}

/// The op around a copy that is no copy itself.
fn caller<'a>(slices: &Slices<'a>, at: usize) -> Option<&'a str> {
    let mut around = slices.ops.chain(at).map(|at| slices.name(&slices.ops.slices[at]));
    // (Profilers before 1.10 record steps as ops.)
    let says =
        |name: &&str| !COPY_OPS.contains(name) && !READING_OPS.contains(name) && !is_step(name);
    around.find(says)
}

/// Where all ops around a copy are copies, the outermost.
fn outermost<'a>(slices: &Slices<'a>, at: usize) -> &'a str {
    let name = |at: usize| slices.name(&slices.ops.slices[at]);
    let copies = slices.ops.chain(at).map(name).take_while(|name| COPY_OPS.contains(name));
    copies.last().unwrap_or_default()
}

/// The backward pass of a cast.
const CAST_BACKWARD: &str = "ToCopyBackward0";

/// Ops that autocast runs in 16 bits, without `aten::` ("CUDA Ops that can autocast to float16", PyTorch's documentation): only autocast
/// casts an input inside one.
const AUTOCAST: [&str; 14] = [
    "addbmm",
    "addmm",
    "baddbmm",
    "bmm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "linear",
    "matmul",
    "mm",
    "scaled_dot_product_attention",
];

fn is_autocast(op: &str) -> bool {
    op.strip_prefix("aten::").is_some_and(|op| AUTOCAST.contains(&op))
}
