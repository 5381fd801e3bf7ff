//! Ops by name: time on the host, and time of the GPU work that they launched.

use serde::Serialize;
use trace::StringId;

use crate::by_name::ByName;
use crate::links::GpuSide;
use crate::slices::{Nested, Slices};

/// The table of ops.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ops {
    /// Number of ops.
    pub n: usize,
    /// Number of names.
    pub n_names: usize,
    /// Ops that end after the op that they lie in.
    pub crossing_parents: u64,
    /// From the start of the first op to the end of the last.
    pub window_ns: Option<i64>,
    /// Start of the first op, on the clock of the file.
    pub window_start_ns: Option<i64>,
    /// End of the last op.
    pub window_end_ns: Option<i64>,
    /// Sum of self time.
    pub sum_self_ns: i64,
    /// Sum of GPU time by innermost op.
    pub sum_self_device_ns: i64,
    /// By self time, the longest first.
    pub ops: Vec<OpRow>,
}

/// All ops of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OpRow {
    /// Name.
    pub name: String,
    /// Calls.
    pub count: u64,
    /// Sum of durations, in ns.
    pub cpu_total_ns: i64,
    /// Sum of the durations of those that lie in no op of the same name.
    pub total_ns: i64,
    /// Sum of the times that no op inside covers.
    pub self_ns: i64,
    /// GPU time of what was launched in an op of this name, each GPU slice once.
    pub device_ns: i64,
    /// GPU time of what an op of this name launched as the innermost one.
    pub self_device_ns: i64,
    /// GPU slices of `device_ns`.
    pub kernels: u64,
    /// GPU slices of `self_device_ns`.
    pub self_kernels: u64,
}

impl OpRow {
    /// Whether it is a step of the profiler, which some versions of PyTorch record as an op.
    #[must_use]
    pub fn is_step(&self) -> bool {
        dialect::kineto::is_step(&self.name)
    }
}

/// Sums of the slices of one name.
#[derive(Clone, Copy, Debug, Default)]
pub struct NameSum {
    /// Slices.
    pub count: u64,
    /// Sum of durations.
    pub sum_ns: i64,
    /// Sum of durations, without those inside a slice of the same name.
    pub total_ns: i64,
    /// Sum of self time.
    pub self_ns: i64,
}

/// Sums by name, in order of first appearance in `nested`.
#[must_use]
pub(crate) fn sums_by_name(slices: &Slices<'_>, nested: &Nested, own: &[i64]) -> ByName<NameSum> {
    let trace = slices.trace;
    let mut sums: ByName<NameSum> = ByName::new(trace);
    // How many open slices have each name: the stack of `Nested` once more.
    let mut open = vec![0_u32; trace.strings.len()];
    let mut stack: Vec<(usize, StringId)> = Vec::new();
    for (at, slice) in nested.slices.iter().enumerate() {
        let parent = nested.parent(at);
        while stack.last().is_some_and(|(top, _)| Some(*top) != parent) {
            if let Some((_, name)) = stack.pop() {
                open[name.0 as usize] -= 1;
            }
        }
        let name = trace.name(slice.row);
        let sum = sums.entry(name);
        sum.count += 1;
        sum.sum_ns += slice.dur_ns();
        sum.self_ns += own[at];
        if open[name.0 as usize] == 0 {
            sum.total_ns += slice.dur_ns();
        }
        open[name.0 as usize] += 1;
        stack.push((at, name));
    }
    sums
}

/// The table of ops.
#[must_use]
pub fn ops(slices: &Slices<'_>, gpu: &GpuSide, own: &[i64]) -> Ops {
    let trace = slices.trace;
    let nested = &slices.ops;
    let mut device: ByName<OpRow> = ByName::new(trace);
    for one in gpu.linked() {
        let Some(owner) = one.owner else { continue };
        let dur_ns = one.slice.dur_ns();
        let row = device.entry(trace.name(nested.slices[owner].row));
        row.self_device_ns += dur_ns;
        row.self_kernels += 1;
        let mut seen: Vec<StringId> = Vec::new();
        for at in nested.chain(owner) {
            let name = trace.name(nested.slices[at].row);
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            let row = device.entry(name);
            row.device_ns += dur_ns;
            row.kernels += 1;
        }
    }
    let sums = sums_by_name(slices, nested, own);
    let mut rows: Vec<OpRow> = sums
        .iter()
        .map(|(name, sum)| OpRow {
            name: trace.strings.get(name).to_owned(),
            count: sum.count,
            cpu_total_ns: sum.sum_ns,
            total_ns: sum.total_ns,
            self_ns: sum.self_ns,
            ..device.get(name).cloned().unwrap_or_default()
        })
        .collect();
    trace::sort_by(&mut rows, |a, b| b.self_ns.cmp(&a.self_ns).then_with(|| a.name.cmp(&b.name)));
    let start = nested.slices.iter().map(|op| op.start_ns).min();
    let end = nested.slices.iter().map(|op| op.end_ns).max();
    Ops {
        n: nested.slices.len(),
        n_names: rows.len(),
        crossing_parents: nested.n_crossings,
        window_ns: start.zip(end).map(|(start, end)| end - start),
        window_start_ns: start.and_then(|ns| timeline::absolute_ns(trace, ns)),
        window_end_ns: end.and_then(|ns| timeline::absolute_ns(trace, ns)),
        sum_self_ns: rows.iter().map(|row| row.self_ns).sum(),
        sum_self_device_ns: rows.iter().map(|row| row.self_device_ns).sum(),
        ops: rows,
    }
}

/// GPU time of each op, with that of the ops inside it, by number in [`Slices::ops`].
#[must_use]
pub fn device_of_each(nested: &Nested, gpu: &GpuSide) -> Vec<i64> {
    let mut found = vec![0; nested.slices.len()];
    for one in gpu.linked() {
        if let Some(owner) = one.owner {
            found[owner] += one.slice.dur_ns();
        }
    }
    // (An op comes after those that it lies in.)
    for at in (0..found.len()).rev() {
        if let Some(parent) = nested.parent(at) {
            found[parent] += found[at];
        }
    }
    found
}
