//! The broadcast of buffers with which a forward pass of DistributedDataParallel begins.

use timeline::intervals::{Interval, holds, union};

use super::Device;

/// The annotation around a forward pass, and the op that sends a buffer.
const FORWARD: &str = "DistributedDataParallel.forward";
const BROADCAST: &str = "c10d::broadcast_";

/// The ops of the broadcast (`broadcast_coalesced` of PyTorch's `torch/csrc/distributed/c10d/comm.cpp`): it flattens buffers into a few
/// tensors, sends these, and copies each buffer back. What comes next is the model, or its input.
const OPS: [&str; 5] = [
    "aten::flatten_dense_tensors",
    BROADCAST,
    "record_param_comms",
    "aten::unflatten_dense_tensors",
    "aten::copy_",
];

impl Device<'_> {
    /// When the CPU broadcasts the buffers of a model, in the iterations that its bar is of.
    #[must_use]
    pub(crate) fn broadcasts_buffers(&self) -> Vec<Interval> {
        let slices = self.facts.slices;
        let forward = slices.names_with(FORWARD);
        let launching = self.launching_threads();
        let ops = slices.closed_ops();
        let windows = self.facts.told_on_cpu();
        let is_told = |pass: &&host::HostSlice| {
            windows.as_ref().is_none_or(|windows| holds(windows, pass.start_ns))
        };
        let found = slices.annotations.iter().filter(is_told).filter_map(|pass| {
            let thread = slices.thread(pass.row);
            if !forward[slices.trace.name(pass.row).0 as usize] || !launching.contains(&thread) {
                return None;
            }
            let own = ops.slices.get(ops.on(thread))?;
            let first = own.partition_point(|op| op.start_ns < pass.start_ns);
            let own = own.get(first..)?;
            let from_ns = own.first()?.start_ns;
            let (mut until_ns, mut sends) = (from_ns, false);
            for op in own.iter().take_while(|op| op.start_ns < pass.end_ns) {
                let name = slices.name(op);
                match op.start_ns < until_ns {
                    // (What another op calls.)
                    true => {}
                    false if OPS.contains(&name) => until_ns = op.end_ns,
                    false => break,
                }
                sends |= name == BROADCAST;
            }
            sends.then_some((from_ns, until_ns))
        });
        union(found.collect())
    }
}
