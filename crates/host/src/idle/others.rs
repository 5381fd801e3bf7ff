//! How long launching threads wait for another process or thread while a device waits for them.

use dialect::processes::{loads_data, waits_for_others};
use timeline::intervals::Interval;
use trace::{StringId, Trace};

use super::{IdlePlace, parts};
use crate::by_name::ByName;
use crate::lines::Lines;
use crate::links::{DeviceId, GpuSide};
use crate::slices::{Nested, Slices};

/// By name: whether a frame or an annotation waits for another process or thread, and whether it is of a data loader, which waits for its
/// own workers.
pub(super) struct Others {
    waits: Vec<bool>,
    loads: Vec<bool>,
}

impl Others {
    pub(super) fn of(trace: &Trace) -> Self {
        let marks = |is: fn(&str) -> bool| trace.strings.marked(&is);
        Self { waits: marks(waits_for_others), loads: marks(loads_data) }
    }

    fn is_known(&self, name: StringId) -> bool {
        self.waits[name.0 as usize] || self.loads[name.0 as usize]
    }

    /// Whether the outermost of these that slice `at` lies in waits for another process or thread.
    pub(super) fn are_waited_for(&self, trace: &Trace, nested: &Nested, at: usize) -> bool {
        let names = nested.chain(at).map(|at| trace.name(nested.slices[at].row));
        let outermost = names.filter(|name| self.is_known(*name)).last();
        outermost.is_some_and(|name| self.waits[name.0 as usize])
    }
}

/// How long the launching threads of a device wait for another process or thread, such as one that gives them work, while it waits for them
/// within these windows (disjoint, by start); with the function that has most of it. Not for the workers of a data loader.
#[must_use]
pub fn waits_for_others_within(
    slices: &Slices<'_>,
    gpu: &GpuSide,
    device: DeviceId,
    within: &[Interval],
) -> Option<IdlePlace> {
    let trace = slices.trace;
    let lines = Lines::of(trace);
    let parts = &parts(slices, gpu, device, Some(within));
    let others = Others::of(trace);
    let mut found: ByName<(i64, u64)> = ByName::new(trace);
    let mut total_ns = 0_i64;
    for (thread, parts) in parts {
        let before_ns = total_ns;
        // (An annotation of gloo lies inside a frame that counts, where frames are recorded.)
        for nested in [slices.closed_frames(), slices.closed_ops()] {
            for at in nested.on(*thread) {
                let name = |at: usize| trace.name(nested.slices[at].row);
                let mut around = nested.chain(at).skip(1);
                if !others.waits[name(at).0 as usize]
                    || around.any(|outer| others.is_known(name(outer)))
                {
                    continue;
                }
                let ns = parts.within(nested.slices[at].start_ns, nested.slices[at].end_ns);
                let sum = found.entry(name(at));
                *sum = (sum.0 + ns, sum.1 + 1);
                total_ns += ns;
            }
            if total_ns > before_ns {
                break;
            }
        }
    }
    let (name, (_, n)) = found.iter().max_by_key(|(_, (ns, _))| *ns)?;
    let name = lines.shown(name);
    (total_ns > 0).then(|| IdlePlace::new(name, total_ns, *n))
}
