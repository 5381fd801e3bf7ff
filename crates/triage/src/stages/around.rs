//! The annotations around launches whose stage is not known: they name no stage, but a reader knows them.

use dialect::kineto;
use trace::{Phase, StringId};

use crate::nest::Nest;
use timeline::gpu::Gpu;
use timeline::launches::Launches;
use timeline::recorded::{Recorded, recorded};

/// Annotations that PyTorch writes around everything, or around single calls.
const SAY_NOTHING: [&str; 2] = [kineto::STEP, "nccl:"];

/// The innermost annotation around the launch of each of these slices, with the number of slices, most first.
#[inline(never)]
pub(super) fn annotations(
    gpu: &Gpu<'_>,
    launches: &Launches,
    slices: &[usize],
) -> Vec<(StringId, u64)> {
    if slices.is_empty() {
        return Vec::new();
    }
    let trace = gpu.trace;
    let recorded = recorded(trace);
    let nest = Nest::of(trace, |row| {
        let name = trace.name_text(row);
        trace.phase(row) == Phase::Complete
            && *recorded.of(trace, row) == Recorded::Annotation
            && !SAY_NOTHING.iter().any(|start| name.starts_with(start))
    });
    let mut found: Vec<(StringId, u64)> = Vec::new();
    for launch in slices.iter().filter_map(|at| launches.of_slice(*at)) {
        let Some(at) = nest.innermost(trace.track(launch), trace.ts_ns(launch)) else { continue };
        let name = trace.name(nest.rows[at]);
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, n)) => *n += 1,
            None => found.push((name, 1)),
        }
    }
    trace::sort_by_key(&mut found, |(name, n)| (std::cmp::Reverse(*n), *name));
    found
}
