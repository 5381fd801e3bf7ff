//! Idle time in one call.

use timeline::intervals::{both, length, touching, union};
use triage::WallPart;

use super::Device;

impl Device<'_> {
    /// The call of the runtime with most of the idle time that the CPU's work has, on any thread: its name, that time, and whether it is the
    /// first of its name.
    #[must_use]
    pub fn longest_call(&self) -> Option<(&str, i64, bool)> {
        let late = [WallPart::HostCompute, WallPart::Launch];
        let late = union(late.into_iter().flat_map(|part| self.times(part)).collect());
        let slices = self.facts.slices;
        let within = |call: &host::HostSlice| {
            length(&both(touching(&late, call.interval()), &[call.interval()]))
        };
        let (mut most_ns, mut most) = (0, None);
        // (What is shorter than the longest so far needs no look.)
        for call in &slices.calls {
            if call.dur_ns() > most_ns && within(call) > most_ns {
                (most_ns, most) = (within(call), Some(call));
            }
        }
        let call = most?;
        let name = slices.trace.name(call.row);
        let mut same = slices.calls.iter().filter(|one| slices.trace.name(one.row) == name);
        let is_first = same.all(|one| one.start_ns >= call.start_ns);
        Some((slices.name(call), most_ns, is_first))
    }
}
