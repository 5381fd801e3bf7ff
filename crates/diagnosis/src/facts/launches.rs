//! The launches of the iterations.

use host::HostSlice;
use host::class::Class;
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
        self.launch_times().len() < FEWEST * self.windows().len()
    }
}
