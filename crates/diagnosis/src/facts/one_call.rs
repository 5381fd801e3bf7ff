//! Idle time in one call.

use dialect::calls::launches_graph;
use host::class::Class;
use report::units::{count, time};
use timeline::intervals::{length_within, union};
use triage::WallPart;

use super::Device;

/// A call that takes this many times the median of its name is unlike the others.
const UNLIKE: i64 = 3;

/// Idle time within one launch of a graph.
pub(crate) struct InGraphLaunch<'f> {
    name: &'f str,
    /// The idle time.
    pub(crate) ns: i64,
    /// The GPU slices that it launches.
    nodes: usize,
}

impl InGraphLaunch<'_> {
    /// `3.54 ms of it within one cudaGraphLaunch of 2 537 nodes`.
    pub(crate) fn part(&self) -> String {
        format!(
            "{} of it within one {} of {} nodes",
            time(self.ns),
            self.name,
            count(self.nodes as u64)
        )
    }

    pub(crate) fn sentence(&self) -> String {
        format!(
            " {}: the profiler records each node, which makes the call longer. The bound leaves that out.",
            self.part()
        )
    }
}

impl Device<'_> {
    /// The call of the runtime with most of the idle time that the CPU's work has, on a thread that launches: its name, that time, and whether it is the
    /// first of its name. `None` where others of its name take as long: then no single call is the cause.
    #[must_use]
    pub(crate) fn longest_call(&self) -> Option<(&str, i64, bool)> {
        let (call, ns, is_first) = self.longest()?;
        Some((self.facts.slices.name(call), ns, is_first))
    }

    /// The launch of a graph that has most of the idle time before late launches. The GPU cannot start before it, and a profiler records
    /// each kernel of the graph in that call: it is neither a gap between launches nor work outside graphs.
    #[must_use]
    pub(crate) fn in_graph_launch(&self) -> Option<InGraphLaunch<'_>> {
        let (call, ns, _) = self.longest()?;
        let name = self.facts.slices.name(call);
        let is_most = ns.saturating_mul(2) >= self.late().0;
        let nodes = self.slices().filter(|one| one.launch.is_some_and(|own| own.row == call.row));
        let found = InGraphLaunch { name, ns, nodes: nodes.count() };
        (launches_graph(name) && is_most).then_some(found)
    }

    fn longest(&self) -> Option<(&host::HostSlice, i64, bool)> {
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
        Some((call, most_ns, is_first))
    }
}
