//! The tree of modules, from frames named `nn.Module: X`.

use std::collections::{BTreeMap, HashMap};

use dialect::kineto;
use serde::Serialize;
use timeline::intervals::{Interval, union};
use trace::{BuildIdHasher, StringId};

use crate::frames::{ById, Ids};
use crate::links::{GpuSide, innermost_at_launch};
use crate::slices::{Nested, Slices};

/// The modules of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Modules {
    /// Frames that run a module.
    pub n_frames: usize,
    /// Paths.
    pub n_paths: usize,
    /// Frames that end after the module that they lie in.
    pub crossing_parents: u64,
    /// How the parent by `Python parent id` compares with the parent by time.
    pub parent_id_vs_time: BTreeMap<&'static str, u64>,
    /// GPU slices whose launch lies in a module.
    pub linked_gpu_in_module: u64,
    /// GPU slices whose launch lies in none.
    pub linked_gpu_outside: u64,
    /// Their time in ns.
    pub linked_gpu_outside_ns: i64,
    /// GPU time of launches in modules.
    pub in_module_ns: i64,
    /// By time, the longest first.
    pub list: Vec<ModuleRow>,
}

/// All calls of one path of modules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ModuleRow {
    /// Names from the root, with `/` between them.
    pub path: String,
    /// Modules above it.
    pub depth: usize,
    /// Calls.
    pub calls: u64,
    /// Sum of durations on the host, in ns.
    pub total_ns: i64,
    /// Sum of the times that no module inside covers.
    pub self_ns: i64,
    /// GPU time of what was launched in it, modules inside included.
    pub device_ns: i64,
    /// GPU time of what was launched in it and in no module inside.
    pub self_device_ns: i64,
    /// GPU slices of `device_ns`.
    pub kernels: u64,
}

/// Module frames with the path of each.
pub struct Tree {
    /// Module frames, nested among themselves.
    pub nested: Nested,
    /// Number of the path of each frame in `paths`.
    path_of: Vec<usize>,
    /// Each distinct path: the path around it, and its own name.
    paths: Vec<(Option<usize>, StringId)>,
    /// The number of each of these frames in [`Slices::frames`].
    frames: Vec<usize>,
}

impl Tree {
    /// The modules of a trace.
    #[must_use]
    pub fn of(slices: &Slices<'_>) -> Self {
        let trace = slices.trace;
        let is_module = trace.strings.marked(&|name| name.starts_with(kineto::MODULE));
        let all = &slices.frames.slices;
        let is_wanted = |at: &usize| is_module[trace.name(all[*at].row).0 as usize];
        // (Both are sorted in one way, so the numbers stand in the order of `nested`.)
        let frames: Vec<usize> = (0..all.len()).filter(is_wanted).collect();
        let nested = slices.nest(frames.iter().map(|at| all[*at]).collect());
        let mut known: HashMap<(Option<usize>, StringId), usize, BuildIdHasher> =
            HashMap::default();
        let (mut path_of, mut paths) = (Vec::with_capacity(nested.slices.len()), Vec::new());
        for (at, frame) in nested.slices.iter().enumerate() {
            let path = (nested.parent(at).map(|parent| path_of[parent]), trace.name(frame.row));
            path_of.push(*known.entry(path).or_insert_with(|| {
                paths.push(path);
                paths.len() - 1
            }));
        }
        Self { nested, path_of, paths, frames }
    }

    /// Number of distinct paths. A path has a greater number than the one around it.
    #[must_use]
    pub fn n_paths(&self) -> usize {
        self.paths.len()
    }

    /// The path around a path.
    #[must_use]
    pub fn around(&self, path: usize) -> Option<usize> {
        self.paths.get(path)?.0
    }

    /// The name of a path's innermost module: `Linear_3`.
    #[must_use]
    pub fn name<'a>(&self, slices: &Slices<'a>, path: usize) -> &'a str {
        let name = self.paths.get(path).map_or("", |(_, name)| slices.trace.strings.get(*name));
        name.strip_prefix(kineto::MODULE).unwrap_or(name)
    }

    /// Number of the path of a frame.
    #[must_use]
    pub fn path_of(&self, frame: usize) -> Option<usize> {
        self.path_of.get(frame).copied()
    }

    /// A path and those around it, from the inside out.
    pub fn chain(&self, path: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(path), |path| self.paths.get(*path)?.0)
    }

    /// A path as text.
    #[must_use]
    pub fn text(&self, slices: &Slices<'_>, path: usize) -> String {
        let mut names: Vec<&str> = self
            .chain(path)
            .filter_map(|path| {
                let (_, name) = self.paths.get(path)?;
                slices.trace.strings.get(*name).strip_prefix(kineto::MODULE)
            })
            .collect();
        names.reverse();
        names.join("/")
    }
}

/// When outermost modules are called, by start.
#[must_use]
pub fn outermost_calls(slices: &Slices<'_>) -> Vec<Interval> {
    let tree = Tree::of(slices).nested;
    let outermost = (0..tree.slices.len()).filter(|at| tree.parent(*at).is_none());
    union(outermost.map(|at| tree.slices[at].interval()).collect())
}

/// The table of modules.
#[must_use]
pub fn modules(slices: &Slices<'_>, gpu: &GpuSide, ids: &Ids) -> Modules {
    let tree = Tree::of(slices);
    let nested = &tree.nested;
    let mut rows: Vec<ModuleRow> = (0..tree.paths.len())
        .map(|path| ModuleRow {
            path: tree.text(slices, path),
            depth: tree.chain(path).count() - 1,
            ..ModuleRow::default()
        })
        .collect();
    let own = nested.self_ns();
    for (at, frame) in nested.slices.iter().enumerate() {
        let row = &mut rows[tree.path_of[at]];
        row.calls += 1;
        row.total_ns += frame.dur_ns();
        row.self_ns += own[at];
    }
    let linked = gpu.linked().count() as u64;
    let linked_ns: i64 = gpu.linked().map(|one| one.slice.dur_ns()).sum();
    let inside = innermost_at_launch(&gpu.slices, slices, nested);
    for (slice, frame) in &inside {
        let dur_ns = gpu.slices[*slice].slice.dur_ns();
        let path = tree.path_of[*frame];
        rows[path].self_device_ns += dur_ns;
        for path in tree.chain(path) {
            rows[path].device_ns += dur_ns;
            rows[path].kernels += 1;
        }
    }
    let in_module_ns: i64 = rows.iter().map(|row| row.self_device_ns).sum();
    trace::sort_by(&mut rows, |a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.path.cmp(&b.path)));
    Modules {
        n_frames: nested.slices.len(),
        n_paths: rows.len(),
        crossing_parents: nested.n_crossings,
        parent_id_vs_time: parents(slices, &tree, ids),
        linked_gpu_in_module: inside.len() as u64,
        linked_gpu_outside: linked - inside.len() as u64,
        linked_gpu_outside_ns: linked_ns - in_module_ns,
        in_module_ns,
        list: rows,
    }
}

/// Whether the parents by id are those by time. The parent by id is the next module frame outwards.
fn parents(slices: &Slices<'_>, tree: &Tree, ids: &Ids) -> BTreeMap<&'static str, u64> {
    let is_module = |at: usize| slices.name(&slices.frames.slices[at]).starts_with(kineto::MODULE);
    let mut found = BTreeMap::new();
    for (at, frame) in tree.frames.iter().enumerate() {
        let mut inner = *frame;
        let mut steps = 0;
        let by_id = loop {
            match ids.parent_of(slices, inner) {
                ById::Frame(outer) if is_module(outer) => break Some(outer),
                // (A damaged file may name its frames in a circle.)
                ById::Frame(outer) if steps < slices.frames.slices.len() => inner = outer,
                _ => break None,
            }
            steps += 1;
        };
        let by_id = by_id.map(|at| slices.frames.slices[at].row);
        let by_time = tree.nested.parent(at).map(|parent| tree.nested.slices[parent].row);
        *found.entry(if by_id == by_time { "agree" } else { "differ" }).or_default() += 1;
    }
    found
}
