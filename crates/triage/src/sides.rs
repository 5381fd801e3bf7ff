//! The CPU's side of each device: what its own rank's threads did.

use timeline::intervals::Interval;
use timeline::lost_calls::lost_calls;
use timeline::ranks::{narrow_to, ranks};
use trace::Trace;

use crate::idle::{self, Host};
use crate::unrecorded::LostCalls;

/// What the threads of one rank did.
pub(crate) struct Side {
    /// Its devices; empty where the file is of one rank.
    devices: Vec<String>,
    /// What may explain idle time.
    pub(crate) host: Host,
    /// The profiler's steps on the CPU.
    pub(crate) steps: Vec<Interval>,
    /// When the profiler lost the calls of the runtime.
    pub(crate) lost_calls: Vec<Interval>,
}

impl Side {
    fn of(trace: &Trace, devices: Vec<String>) -> Self {
        let steps = idle::until_last_work(trace, idle::cpu_steps(trace));
        Self { devices, host: Host::of(trace), steps, lost_calls: lost_calls(trace) }
    }
}

/// The sides of a file: one, or one for each rank.
pub(crate) struct Sides {
    /// All threads.
    whole: Side,
    of_ranks: Vec<Side>,
}

impl Sides {
    #[inline(never)]
    pub(crate) fn of(trace: &Trace) -> Self {
        let of_rank = |rank: timeline::ranks::Rank| {
            let part = narrow_to(trace, &rank);
            Side::of(&part, rank.devices)
        };
        Self {
            whole: Side::of(trace, Vec::new()),
            of_ranks: ranks(trace).into_iter().map(of_rank).collect(),
        }
    }

    /// The calls that the profiler lost, of each rank that lost any.
    pub(crate) fn lost_calls(&self) -> Vec<LostCalls> {
        let whole = std::slice::from_ref(&self.whole);
        let sides = if self.of_ranks.is_empty() { whole } else { &self.of_ranks };
        let lost = |side: &Side| LostCalls {
            devices: side.devices.clone(),
            times: side.lost_calls.clone(),
        };
        sides.iter().filter(|side| !side.lost_calls.is_empty()).map(lost).collect()
    }

    /// Whether the file is of several ranks.
    pub(crate) fn are_several(&self) -> bool {
        !self.of_ranks.is_empty()
    }

    /// The side of all threads.
    pub(crate) fn whole(&self) -> &Host {
        &self.whole.host
    }

    /// The side of a device.
    pub(crate) fn of_device(&mut self, device: &str) -> &mut Side {
        let own = self.of_ranks.iter_mut().find(|side| side.devices.iter().any(|id| id == device));
        own.unwrap_or(&mut self.whole)
    }
}
