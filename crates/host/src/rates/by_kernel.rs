//! Which calls are the work of one kernel.

use std::collections::BTreeMap;

use crate::links::GpuSide;
use crate::slices::Slices;

/// The GPU work of an op.
#[derive(Default)]
pub(super) struct Own<'a> {
    n_kernels: usize,
    /// One of its kernels, as its name and how long it runs in ns.
    kernel: Option<(&'a str, i64)>,
    /// How long its kernels, copies and fills run, in ns.
    total_ns: i64,
}

/// The GPU work of each op that has some.
pub(super) fn of_ops<'a>(slices: &Slices<'a>, gpu: &GpuSide) -> BTreeMap<usize, Own<'a>> {
    let mut found: BTreeMap<usize, Own<'a>> = BTreeMap::new();
    for one in &gpu.slices {
        let Some(owner) = one.owner else { continue };
        let own = found.entry(owner).or_default();
        let ns = one.slice.dur_ns();
        own.total_ns = own.total_ns.saturating_add(ns);
        if one.is_kernel {
            own.n_kernels += 1;
            own.kernel = Some((slices.trace.strings.get(slices.trace.name(one.slice.row)), ns));
        }
    }
    found
}

/// The only kernel of an op, which does all its operations: a fill of the result before it does none. `None` where there are several, or
/// ops inside it launched some.
pub(super) fn only_kernel<'a>(
    all: &BTreeMap<usize, Own<'a>>,
    op: usize,
    on_gpu_ns: i64,
) -> Option<(&'a str, i64)> {
    let own = all.get(&op).filter(|own| own.n_kernels == 1 && own.total_ns == on_gpu_ns)?;
    own.kernel
}
