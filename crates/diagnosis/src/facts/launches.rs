//! The launches of the iterations.

use host::HostSlice;
use host::class::Class;
use host::slices::Begins;
use timeline::intervals::Interval;

use super::Facts;

/// With fewer launches in an iteration they are not what is late, and one of a graph takes as long as some of them.
const FEWEST: usize = 5;

impl Facts<'_> {
    /// When calls launch, sorted.
    pub(crate) fn launch_times(&self) -> Vec<i64> {
        let is_launch = |call: &&HostSlice| self.slices.class(call) == Class::Launch;
        let calls = self.slices.calls.iter().filter(is_launch);
        let mut launches: Vec<i64> = calls.map(|call| call.start_ns).collect();
        trace::sort(&mut launches);
        launches
    }

    /// When the iterations are on the CPU, by start; without any the whole recording.
    pub(crate) fn windows(&self) -> Vec<Interval> {
        let whole = vec![(i64::MIN, i64::MAX)];
        let list = self.iterations.as_ref().map(|found| found.list.iter());
        let mut windows = list.map_or(whole, |list| list.map(crate::Iteration::window).collect());
        trace::sort(&mut windows);
        windows
    }

    /// Whether the iterations have too few launches for these to limit them.
    pub(crate) fn has_few_launches(&self) -> bool {
        *self.few_launches.get_or_init(|| {
            let windows = self.windows();
            let is_within = |at_ns: i64| {
                let after = windows.partition_point(|(from, _)| *from <= at_ns);
                after.checked_sub(1).is_some_and(|at| at_ns < windows[at].1)
            };
            let launches = self.slices.calls.iter().filter(|call| self.starts_kernels(call));
            launches.filter(|call| is_within(call.start_ns)).count() < FEWEST * windows.len()
        })
    }

    /// Whether a call launches kernels, one or those of a graph.
    pub(super) fn starts_kernels(&self, call: &HostSlice) -> bool {
        matches!(self.slices.class(call), Class::Launch | Class::GraphLaunch)
    }

    /// The calls that give the devices work, also where that is not in the file: it may be lost, or of a graph that is captured.
    pub(super) fn gives_work(&self, call: &HostSlice) -> bool {
        self.starts_kernels(call)
            || matches!(self.slices.class(call), Class::Memcpy | Class::Memset)
    }

    /// When these calls begin.
    pub(crate) fn work_begins(&self) -> Begins {
        let calls = self.slices.calls.iter().filter(|call| self.gives_work(call)).copied();
        let linked = self.gpu.linked().filter_map(|one| one.launch);
        Begins::of(self.slices, calls.chain(linked))
    }
}
