//! When functions run that cost time for a known reason.

use catalog::known_code::KnownCode;
use timeline::intervals::{Interval, holds};

use super::Device;

impl Device<'_> {
    /// When a function runs on the threads that launch its work, in the iterations that its bar is of.
    pub(crate) fn calls_of(&self, known: &KnownCode) -> Vec<Interval> {
        let (slices, strings) = (self.facts.slices, &self.facts.trace.strings);
        let is_it = strings.marked(&|name| known.is(name));
        if !is_it.contains(&true) {
            return Vec::new();
        }
        let windows = self.facts.told_on_cpu();
        let threads = self.launching_threads();
        let is_caller = strings.marked(&|name| known.is_caller(name));
        let name = |at: usize| self.facts.trace.name(slices.frames.slices[at].row).0 as usize;
        let is_called = |at: &usize| {
            known.caller.is_none() || slices.frames.chain(*at).any(|outer| is_caller[name(outer)])
        };
        let own = threads.iter().flat_map(|thread| slices.frames.on(*thread));
        let own = own.filter(|at| is_it[name(*at)]).filter(is_called);
        let own = own.map(|at| &slices.frames.slices[at]);
        let told = own
            .filter(|frame| windows.as_ref().is_none_or(|windows| holds(windows, frame.start_ns)));
        told.map(host::HostSlice::interval).collect()
    }

    /// When its work runs that is launched in some times (disjoint, by start).
    pub(crate) fn launched_in(&self, times: &[Interval]) -> Vec<Interval> {
        let own = self
            .slices()
            .filter(|one| one.launch.is_some_and(|launch| holds(times, launch.start_ns)));
        own.map(|one| one.slice.interval()).collect()
    }
}
