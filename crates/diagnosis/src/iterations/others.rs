//! That the GPU works in an iteration on what the one before launched.

use triage::WallPart;

use super::{Iteration, Iterations};

/// Where the GPU's time in an iteration differs by more from that of its work, as a part, a part of it is other work.
const OTHER_WORK: f64 = 0.1;
/// Of the columns with parts of the wall time.
const OF_TIME: &str = "Compute, communication and copies are those in the time of the iteration on the CPU, and may belong to the one before: \
                       what it launched itself is \"GPU busy with it\".";

impl Iterations {
    /// The sentence on it; `None` where the columns with parts of the wall time are not printed, or are those of the iterations' own work.
    pub(super) fn others_work(&self) -> Option<String> {
        let differs = |one: &Iteration| {
            let works = WallPart::ALL.iter().filter(|part| !part.is_idle());
            let parts = works.filter_map(|part| one.parts.get(part.id()));
            let in_time_ns: i64 = parts.sum();
            in_time_ns.abs_diff(one.gpu_busy_ns) as f64 > OTHER_WORK * one.gpu_busy_ns as f64
        };
        let is_told = !self.is_ahead() && self.warm().any(differs);
        is_told.then(|| OF_TIME.to_owned())
    }
}
