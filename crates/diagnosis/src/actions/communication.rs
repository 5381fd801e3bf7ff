//! What the communication of a device is, for its remedies.

use host::HostSlice;
use host::links::GpuSlice;
use timeline::intervals::{Interval, holds, union};

use crate::facts::Device;
use crate::rules::communication::{is_by_own_kernels, time_of_collectives};
use crate::{Facts, Finding};

/// Whether most of the communication of the device is launched in ops that exchange between all ranks.
pub(super) fn exchanges(facts: &Facts<'_>, finding: &Finding) -> bool {
    let Some(device) = facts.device_of(finding) else { return false };
    let names = facts.trace.strings.marked(&dialect::processes::is_all_to_all);
    let is_named = |one: &&HostSlice| names[facts.trace.name(one.row).0 as usize];
    let all = facts.slices.ops.slices.iter().chain(&facts.slices.annotations);
    let times = all.filter(is_named).map(HostSlice::interval);
    let times = union(times.collect());
    let (own_ns, all_ns) = time_of_collectives(&device, &|one| is_launched_in(&times, one));
    own_ns.saturating_mul(2) > all_ns
}

/// Whether nearly all communication of the device is all-reduces of gradients that begin as soon as they can: those of the reducer of
/// DistributedDataParallel, which no forward pass launches, or in a file that does not name it (PyTorch before 1.9), those that the threads of the
/// backward pass launch between its nodes.
pub(super) fn is_of_gradients(facts: &Facts<'_>, finding: &Finding) -> bool {
    let Some(device) = facts.device_of(finding) else { return false };
    let named = |part: &str| facts.slices.names_with(part);
    let forward = named("DistributedDataParallel.forward");
    match forward.contains(&true) || named("torch.distributed.ddp.reducer").contains(&true) {
        true => by_reducer(facts, &device, &forward),
        false => between_nodes(facts, &device),
    }
}

/// `forward`: by name, whether it is that of a forward pass.
fn by_reducer(facts: &Facts<'_>, device: &Device<'_>, forward: &[bool]) -> bool {
    let slices = facts.slices;
    let ranges = slices.annotations.iter().chain(&slices.ops.slices);
    let ranges = ranges.filter(|one| forward[facts.trace.name(one.row).0 as usize]);
    let passes = union(ranges.map(HostSlice::interval).collect());
    is_nearly_all(facts, device, &|one| !is_launched_in(&passes, one))
}

/// A node that begins so soon after a call of its thread, in ns, is of the same pass.
const NEXT_NODE_NS: i64 = 1_000_000;

/// Whether the communication is launched on threads that evaluate nodes, and most of the calls are soon followed by another node: not those at
/// the end of a pass.
fn between_nodes(facts: &Facts<'_>, device: &Device<'_>) -> bool {
    let is_node = facts.slices.names_with("Backward");
    let ops = facts.slices.ops.slices.iter();
    let nodes = ops.filter(|one| is_node[facts.trace.name(one.row).0 as usize]);
    let mut nodes: Vec<(u32, i64)> =
        nodes.map(|one| (facts.slices.thread(one.row), one.start_ns)).collect();
    trace::sort(&mut nodes);
    // Whether the thread of a launch evaluates nodes, and whether one follows soon.
    let place = |one: &GpuSlice| {
        let launch = one.launch?;
        let thread = facts.slices.thread(launch.row);
        let next = nodes.partition_point(|node| *node < (thread, launch.end_ns));
        let own = |at: usize| nodes.get(at).filter(|(of, _)| *of == thread);
        let follows =
            own(next).is_some_and(|(_, at)| at.saturating_sub(launch.end_ns) < NEXT_NODE_NS);
        let evaluates = follows || next.checked_sub(1).and_then(own).is_some();
        evaluates.then_some(follows)
    };
    let own = device.slices().filter(|one| one.is_communication);
    let follows: Vec<bool> = own.filter_map(place).collect();
    let n_between = follows.iter().filter(|follows| **follows).count();
    2 * n_between > follows.len() && is_nearly_all(facts, device, &|one| place(one).is_some())
}

/// Whether all-reduces of this kind are nine tenths of the communication.
fn is_nearly_all(
    facts: &Facts<'_>,
    device: &Device<'_>,
    is_own: &dyn Fn(&GpuSlice) -> bool,
) -> bool {
    let reduces =
        facts.trace.strings.marked(&|name| name.to_ascii_lowercase().contains("allreduce"));
    let is_reduce = |one: &GpuSlice| reduces[facts.trace.name(one.slice.row).0 as usize];
    let (own_ns, all_ns) = time_of_collectives(device, &|one| is_reduce(one) && is_own(one));
    all_ns.saturating_sub(own_ns).saturating_mul(10) <= all_ns
}

fn is_launched_in(times: &[Interval], one: &GpuSlice) -> bool {
    one.launch.is_some_and(|launch| holds(times, launch.start_ns))
}

/// Whether an engine's own kernels do most of the communication of the device.
pub(super) fn has_own_kernels(facts: &Facts<'_>, finding: &Finding) -> bool {
    finding.device.as_ref().is_some_and(|device| is_by_own_kernels(facts, device))
}

/// Whether the file tells what collectives of the device wait for others.
pub(super) fn is_matched(facts: &Facts<'_>, finding: &Finding) -> bool {
    finding.device.as_ref().is_some_and(|device| facts.matched.device(device).is_some())
}
