//! What the communication of a device is, for its remedies.

use host::HostSlice;
use host::links::GpuSlice;
use timeline::intervals::{Interval, holds, union};

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

/// Whether DistributedDataParallel runs, and nearly all communication of the device is all-reduces that no forward pass launches: those of
/// its reducer.
pub(super) fn by_ddp(facts: &Facts<'_>, finding: &Finding) -> bool {
    let named = |part: &str| facts.slices.names_with(part);
    let forward = named("DistributedDataParallel.forward");
    if !forward.contains(&true) && !named("torch.distributed.ddp.reducer").contains(&true) {
        return false;
    }
    let Some(device) = facts.device_of(finding) else { return false };
    let slices = facts.slices;
    let ranges = slices.annotations.iter().chain(&slices.ops.slices);
    let ranges = ranges.filter(|one| forward[facts.trace.name(one.row).0 as usize]);
    let passes = union(ranges.map(HostSlice::interval).collect());
    let reduces =
        facts.trace.strings.marked(&|name| name.to_ascii_lowercase().contains("allreduce"));
    let is_own = |one: &GpuSlice| {
        reduces[facts.trace.name(one.slice.row).0 as usize] && !is_launched_in(&passes, one)
    };
    let (own_ns, all_ns) = time_of_collectives(&device, &is_own);
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
