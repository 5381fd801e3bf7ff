//! Idle time of a device with work queued: the next slice had been launched already.
//!
//! The CPU does not cause such a pause. The stream ran work that is not in the file (a recording that was cut into steps
//! has the launches of one step and the kernels of no other), or it was blocked on an event. Without this a decode step that
//! waits for the prefill before it looks as if the CPU were too slow.

use timeline::gpu::Gpu;
use timeline::launches::Launches;

use timeline::intervals::{Interval, union};

/// Shorter waits are what a launch takes, in ns.
const LEAST_NS: i64 = 1_000_000;

/// Such pauses, each from when the work after it was launched.
#[inline(never)]
pub(super) fn blocked(gpu: &Gpu<'_>, launches: &Launches) -> Vec<Interval> {
    let mut blocked = Vec::new();
    let mut busy_until: Option<i64> = None;
    // What no table counts keeps the device busy all the same.
    let mut beside = (0..gpu.n_beside()).map(|at| gpu.slice_beside(at)).peekable();
    let mut beside_until: Option<i64> = None;
    for at in 0..gpu.len() {
        let slice = gpu.slice(at);
        while let Some(other) = beside.next_if(|other| other.start_ns < slice.start_ns) {
            beside_until = beside_until.max(Some(other.end_ns()));
        }
        let idle_since = busy_until.max(beside_until);
        let idle_since = idle_since.filter(|ns| *ns < slice.start_ns);
        let launch = launches.of_slice(at).filter(|_| launches.is_sure(at));
        if let (Some(idle_since), Some(launch)) = (idle_since, launch) {
            let since_ns = idle_since.max(gpu.trace.end_ns(launch));
            if slice.start_ns.saturating_sub(since_ns) >= LEAST_NS {
                blocked.push((since_ns, slice.start_ns));
            }
        }
        busy_until = busy_until.max(Some(slice.end_ns()));
    }
    union(blocked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{Fixture, kernel, slice};
    use timeline::Options;
    use timeline::before_window::BeforeWindowSlices;
    use timeline::intervals::length;

    const MS: i64 = 1_000_000;

    /// Two kernels of 1 ms, the second launched and begun at these times.
    fn held(launched_ns: i64, begun_ns: i64) -> i64 {
        held_beside(launched_ns, begun_ns, None)
    }

    /// The same beside a kernel that was launched before the window: its start and duration.
    fn held_beside(launched_ns: i64, begun_ns: i64, other: Option<(i64, i64)>) -> i64 {
        let mut fixture = Fixture::default();
        for (link, launched_ns, begun_ns) in [(1, 0, MS), (2, launched_ns, begun_ns)] {
            let launch = slice("cuda_runtime", "hipLaunchKernel").on(1, 1);
            fixture.push(launch.at(launched_ns, MS / 10).link(link));
            fixture.push(kernel("k").at(begun_ns, MS).link(link));
        }
        if let Some((at, dur)) = other {
            fixture.push(kernel("early").at(at, dur).on(0, 9).link(3));
        }
        let trace = fixture.finish();
        let before = BeforeWindowSlices::of(&trace);
        let options = Options { without_before_window: true, ..Options::default() };
        let gpu = Gpu::new(&trace, catalog::Platform::Rocm, &before, &options);
        length(&blocked(&gpu, &Launches::of(&gpu)))
    }

    #[test]
    fn only_what_was_launched_already_is_blocked() {
        assert_eq!(held(MS, 100 * MS), 98 * MS, "from the end of the first kernel");
        assert_eq!(held(50 * MS, 100 * MS), 50 * MS - MS / 10, "from the launch");
        assert_eq!(held(99 * MS + MS / 2, 100 * MS), 0, "a launch takes its time");
        assert_eq!(held(MS, 2 * MS), 0, "one right after the other");
    }

    #[test]
    fn what_no_table_counts_keeps_the_device_busy() {
        assert_eq!(held_beside(MS, 100 * MS, Some((10 * MS, 50 * MS))), 40 * MS);
        assert_eq!(held_beside(MS, 100 * MS, Some((0, 200 * MS))), 0);
        assert_eq!(held_beside(MS, 100 * MS, Some((100 * MS, MS))), 98 * MS, "it ends no pause");
    }
}
