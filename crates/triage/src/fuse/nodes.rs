//! What goes away in the backward pass with kernels of the forward pass: the work of the autograd nodes that they make.

use timeline::gpu::Gpu;
use timeline::launches::Launches;
use trace::{Row, TrackId};

use crate::autograd::{links, nest_of_ops};

/// A launch by (thread, start), the GPU slice, and whether that goes away.
type Call = (TrackId, i64, u32, bool);

/// The GPU slices of the nodes whose ops launched mostly slices of `gone`, sorted, where the trace has arrows from op to node. `gone` is
/// sorted.
#[inline(never)]
pub(super) fn slices_of_nodes(gpu: &Gpu<'_>, launches: &Launches, gone: &[u32]) -> Vec<u32> {
    let trace = gpu.trace;
    let links = links(trace, &nest_of_ops(trace), None);
    if links.is_empty() {
        return Vec::new();
    }
    let call = |at: u32| -> Option<Call> {
        let row = launches.of_slice(at as usize)?;
        Some((trace.track(row), trace.ts_ns(row), at, gone.binary_search(&at).is_ok()))
    };
    let mut calls: Vec<Call> = (0..gpu.len() as u32).filter_map(call).collect();
    trace::sort(&mut calls);
    let within = |op: Row| {
        let (track, from_ns, to_ns) = (trace.track(op), trace.ts_ns(op), trace.end_ns(op));
        let at = |ns: i64| calls.partition_point(|(on, start, ..)| (*on, *start) < (track, ns));
        &calls[at(from_ns)..at(to_ns)]
    };
    let is_gone = |forward: Row| {
        let own = within(forward);
        let n_gone = own.iter().filter(|(.., gone)| *gone).count();
        n_gone > 0 && 2 * n_gone >= own.len()
    };
    let nodes = links.into_iter().filter(|(_, forward)| is_gone(*forward));
    let own = nodes.flat_map(|(backward, _)| within(backward)).filter(|(.., gone)| !gone);
    let mut found: Vec<u32> = own.map(|(_, _, at, _)| *at).collect();
    trace::sort(&mut found);
    found.dedup();
    found
}
