//! Modules with equal ones folded, and with the GPU time of their backward pass.
//!
//! Siblings of one class with the same modules inside are one row ("DecoderLayer x 32"). A module without modules inside is told
//! by its place among its like, so that the query's and the output's projection stay two rows. Work of the backward pass belongs
//! to the module that called its op of the forward pass ([`triage::backward_links`]). What belongs to no module has rows of its
//! own, so that the table adds up to the GPU time of the file.

mod fold;
mod sections;

use std::collections::BTreeMap;

use host::flops;
use host::links::{GpuSide, innermost_at_launch};
use host::modules::Tree;
use host::{HostSlice, Slices};
use serde::Serialize;
use timeline::percent;
use trace::{Details, Row, Trace};

use fold::Folded;

/// The modules of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModuleTree {
    /// Modules: frames of one name are one module, wherever it is called.
    pub n_modules: u64,
    /// GPU time of all GPU slices, in ns.
    pub device_ns: i64,
    /// Part of it that was launched outside modules, and belongs to none by the backward pass.
    pub outside_ns: i64,
    /// Part of it whose launch is not in the file.
    pub unlinked_ns: i64,
    /// Whether the trace is narrowed to a step: then what has no launch is work of another one.
    #[serde(skip)]
    pub of_step: bool,
    /// The modules, each before those inside it, in the order of their first calls.
    pub rows: Vec<TreeRow>,
}

/// Equal modules.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TreeRow {
    /// Classes from the outermost module on, with `/` between them; `#2` is the second of its like.
    pub path: String,
    /// Class of the module, with its place among its like.
    pub name: String,
    /// Modules around it.
    pub depth: usize,
    /// Modules that are one row.
    pub instances: u64,
    /// Calls of all of them.
    pub calls: u64,
    /// Sum of the durations of the calls on the CPU, in ns.
    pub cpu_ns: i64,
    /// The longest of them, in ns.
    pub cpu_most_ns: i64,
    /// GPU time of what was launched in it, in ns.
    pub forward_ns: i64,
    /// GPU time of the backward pass of that.
    pub backward_ns: i64,
    /// Of both, what belongs to no module inside it.
    pub self_ns: i64,
    /// Both, in percent of the GPU time of all slices.
    pub share_pct: f64,
    /// GPU time (both) of the instance with least and with most.
    pub least_ns: i64,
    /// See [`Self::least_ns`].
    pub most_ns: i64,
    /// Operations of its counted ops, backward included.
    pub flops: i128,
    /// GPU slices of its GPU time.
    pub n_slices: u64,
}

/// Where an op belongs: a path of modules, and whether by its op of the forward pass.
type Place = (usize, bool);

/// GPU time and operations of one path, modules inside included.
#[derive(Clone, Copy, Default)]
struct Sum {
    forward_ns: i64,
    backward_ns: i64,
    self_ns: i64,
    flops: i128,
    n_slices: u64,
}

impl ModuleTree {
    /// The modules of a trace; `None` where no frame of a module is recorded.
    #[must_use]
    pub(crate) fn of(
        trace: &Trace,
        slices: &Slices<'_>,
        gpu: &GpuSide,
        details: &Details,
    ) -> Option<Self> {
        let tree = Tree::of(slices);
        if tree.n_paths() == 0 {
            return None;
        }
        let places = places(trace, slices, details, &tree);
        let mut sums = vec![Sum::default(); tree.n_paths()];
        let (mut outside_ns, mut unlinked_ns, mut device_ns) = (0_i64, 0_i64, 0_i64);
        let mut launched: Vec<Option<Place>> = vec![None; gpu.slices.len()];
        for (slice, frame) in innermost_at_launch(&gpu.slices, slices, &tree.nested) {
            launched[slice] = tree.path_of(frame).map(|path| (path, false));
        }
        for (one, launched) in gpu.slices.iter().zip(launched) {
            let ns = one.slice.dur_ns();
            device_ns = device_ns.saturating_add(ns);
            let by_op = || places.get(one.owner?).copied().flatten();
            match (launched.or_else(by_op), one.launch) {
                (Some((path, backward)), Some(_)) => add(&tree, &mut sums, path, backward, ns),
                (_, None) => unlinked_ns = unlinked_ns.saturating_add(ns),
                (None, Some(_)) => outside_ns = outside_ns.saturating_add(ns),
            }
        }
        for (op, operations) in flops::of_each(slices, details) {
            let (Some((path, _)), Ok(operations)) = (places[op], operations) else { continue };
            for path in tree.chain(path) {
                sums[path].flops += operations.flops;
            }
        }
        let rows = rows(slices, &tree, &sums, device_ns);
        let mut names: Vec<trace::StringId> =
            tree.nested.slices.iter().map(|frame| trace.name(frame.row)).collect();
        names.sort_unstable();
        names.dedup();
        let n_modules = names.len() as u64;
        let of_step = trace.part.as_ref().is_some_and(|part| part.step.is_some());
        Some(Self { n_modules, device_ns, outside_ns, unlinked_ns, of_step, rows })
    }
}

/// Adds the time of a GPU slice to a path and those around it.
fn add(tree: &Tree, sums: &mut [Sum], path: usize, backward: bool, ns: i64) {
    sums[path].self_ns = sums[path].self_ns.saturating_add(ns);
    for path in tree.chain(path) {
        let sum = &mut sums[path];
        let of = if backward { &mut sum.backward_ns } else { &mut sum.forward_ns };
        *of = of.saturating_add(ns);
        sum.n_slices += 1;
    }
}

/// By op: the module that called it, or that called its op of the forward pass.
fn places(
    trace: &Trace,
    slices: &Slices<'_>,
    details: &Details,
    tree: &Tree,
) -> Vec<Option<Place>> {
    let ops = &slices.ops;
    let mut found: Vec<Option<Place>> = vec![None; ops.slices.len()];
    for (thread, range) in ops.threads() {
        let starts = ops.slices[range.clone()].iter().map(|op| op.start_ns);
        let frames = tree.nested.innermost(*thread, starts);
        for (at, frame) in range.clone().zip(frames) {
            found[at] = frame.and_then(|frame| tree.path_of(frame)).map(|path| (path, false));
        }
    }
    let links = triage::backward_links(trace, Some(details));
    let mut by_row: Vec<(Row, usize)> =
        ops.slices.iter().enumerate().map(|(at, op)| (op.row, at)).collect();
    by_row.sort_unstable();
    let forward_of = |at: usize| {
        let row = ops.slices.get(at)?.row;
        let link = links.binary_search_by_key(&row, |(backward, _)| *backward).ok()?;
        links.get(link).map(|(_, forward)| *forward)
    };
    let place_of = |forward: Row| {
        let place = by_row.binary_search_by_key(&forward, |(row, _)| *row).ok()?;
        by_row.get(place).map(|(_, at)| *at)
    };
    let direct: Vec<Option<Place>> = found.clone();
    for (at, place) in found.iter_mut().enumerate().filter(|(_, place)| place.is_none()) {
        let linked = ops.chain(at).find_map(forward_of).flatten().and_then(place_of);
        *place = linked.and_then(|forward| direct[forward]).map(|(path, _)| (path, true));
    }
    found
}

/// The calls of one path on the CPU.
#[derive(Clone, Copy, Default)]
struct Calls {
    n: u64,
    ns: i64,
    most_ns: i64,
}

impl Calls {
    fn add(&mut self, ns: i64) {
        self.n += 1;
        self.ns = self.ns.saturating_add(ns);
        self.most_ns = self.most_ns.max(ns);
    }
}

/// The folded rows.
fn rows(slices: &Slices<'_>, tree: &Tree, sums: &[Sum], device_ns: i64) -> Vec<TreeRow> {
    let folded = Folded::of(slices, tree);
    let mut calls: Vec<Calls> = vec![Calls::default(); tree.n_paths()];
    for (at, frame) in tree.nested.slices.iter().enumerate() {
        if let Some(path) = tree.path_of(at) {
            calls[path].add(HostSlice::dur_ns(frame));
        }
    }
    let mut rows: BTreeMap<usize, TreeRow> = BTreeMap::new();
    for path in 0..tree.n_paths() {
        let sum = &sums[path];
        let of_both = sum.forward_ns.saturating_add(sum.backward_ns);
        let id = folded.row_of(path);
        let row = rows.entry(id).or_insert_with(|| TreeRow {
            path: folded.path(id),
            name: folded.name(id).to_owned(),
            depth: folded.depth(id),
            least_ns: i64::MAX,
            ..TreeRow::default()
        });
        row.instances += 1;
        let own = calls[path];
        row.calls += own.n;
        row.cpu_ns = row.cpu_ns.saturating_add(own.ns);
        row.cpu_most_ns = row.cpu_most_ns.max(own.most_ns);
        row.forward_ns = row.forward_ns.saturating_add(sum.forward_ns);
        row.backward_ns = row.backward_ns.saturating_add(sum.backward_ns);
        row.self_ns = row.self_ns.saturating_add(sum.self_ns);
        row.flops += sum.flops;
        row.n_slices += sum.n_slices;
        row.least_ns = row.least_ns.min(of_both);
        row.most_ns = row.most_ns.max(of_both);
    }
    let in_order = folded.in_order();
    let mut sorted: Vec<TreeRow> = in_order.iter().filter_map(|id| rows.remove(id)).collect();
    for row in &mut sorted {
        row.share_pct = percent(row.forward_ns.saturating_add(row.backward_ns), device_ns);
    }
    sorted
}
