//! Idle time in one call.

use host::class::Class;
use timeline::intervals::{length_within, union};
use triage::WallPart;

use super::Device;

/// A call that takes this many times the median of its name is unlike the others.
const UNLIKE: i64 = 3;

impl Device<'_> {
    /// The call of the runtime with most of the idle time that the CPU's work has, on a thread that launches: its name, that time, and whether it is the
    /// first of its name. `None` where others of its name take as long: then no single call is the cause.
    #[must_use]
    pub(crate) fn longest_call(&self) -> Option<(&str, i64, bool)> {
        let late = [WallPart::HostCompute, WallPart::Launch];
        let late = union(late.into_iter().flat_map(|part| self.times(part)).collect());
        let slices = self.facts.slices;
        // (A thread that waits for the GPU, or launches nothing, holds nothing up.)
        let launching = self.launching_threads();
        let is_own = |call: &&host::HostSlice| {
            launching.contains(&slices.thread(call.row)) && slices.class(call) != Class::Sync
        };
        let (mut most_ns, mut most) = (0, None);
        // (What is shorter than the longest so far needs no look.)
        for call in slices.calls.iter().filter(is_own) {
            let within_ns = || length_within(&late, call.interval());
            if call.dur_ns() > most_ns && within_ns() > most_ns {
                (most_ns, most) = (within_ns(), Some(call));
            }
        }
        let call = most?;
        let name = slices.trace.name(call.row);
        let same = || slices.calls.iter().filter(|one| slices.trace.name(one.row) == name);
        let others = same().filter(|one| one.row != call.row).map(host::HostSlice::dur_ns);
        let median_ns = timeline::median(&mut others.collect::<Vec<_>>());
        if median_ns.is_some_and(|ns| call.dur_ns() < ns.saturating_mul(UNLIKE)) {
            return None;
        }
        let is_first = same().all(|one| one.start_ns >= call.start_ns);
        Some((slices.name(call), most_ns, is_first))
    }
}
