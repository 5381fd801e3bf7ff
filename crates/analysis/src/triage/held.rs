//! Time in which a device did nothing that the file shows, while work that had been launched waited for its turn.
//!
//! Such a pause is not the CPU's: the stream ran work that is not in the file (a recording that was cut into steps holds
//! the launches of one step and the kernels of no other), or an event held it. Without this a decode step that waits
//! for the prefill before it looks as if the CPU were too slow.

use crate::gpu::Gpu;
use crate::launches::Launches;

/// Shorter waits are what a launch takes, in ns.
const LEAST_NS: i64 = 1_000_000;

/// The sum of such pauses, each from when the work after it was launched.
pub(super) fn held_ns(gpu: &Gpu<'_>, launches: &Launches) -> i64 {
    let mut held_ns = 0_i64;
    let mut busy_until: Option<i64> = None;
    for at in 0..gpu.len() {
        let slice = gpu.slice(at);
        let idle_since = busy_until.filter(|ns| *ns < slice.start_ns);
        let launch = launches.of_slice(at).filter(|_| launches.is_sure(at));
        if let (Some(idle_since), Some(launch)) = (idle_since, launch) {
            let wait_ns = slice.start_ns.saturating_sub(idle_since.max(gpu.trace.end_ns(launch)));
            if wait_ns >= LEAST_NS {
                held_ns = held_ns.saturating_add(wait_ns);
            }
        }
        busy_until = busy_until.max(Some(slice.end_ns()));
    }
    held_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::before_window::BeforeWindowSlices;
    use crate::fixture::{Fixture, kernel, slice};

    const MS: i64 = 1_000_000;

    /// Two kernels of 1 ms, the second launched and begun at these times.
    fn held(launched_ns: i64, begun_ns: i64) -> i64 {
        let mut fixture = Fixture::default();
        for (link, launched_ns, begun_ns) in [(1, 0, MS), (2, launched_ns, begun_ns)] {
            let launch = slice("cuda_runtime", "hipLaunchKernel").on(1, 1);
            fixture.push(launch.at(launched_ns, MS / 10).link(link));
            fixture.push(kernel("k").at(begun_ns, MS).link(link));
        }
        let trace = fixture.finish();
        let before = BeforeWindowSlices::of(&trace);
        let gpu = Gpu::new(&trace, catalog::Platform::Rocm, &before, &Options::default());
        held_ns(&gpu, &Launches::of(&gpu))
    }

    #[test]
    fn only_what_was_launched_already_is_held() {
        assert_eq!(held(MS, 100 * MS), 98 * MS, "from the end of the first kernel");
        assert_eq!(held(50 * MS, 100 * MS), 50 * MS - MS / 10, "from the launch");
        assert_eq!(held(99 * MS + MS / 2, 100 * MS), 0, "a launch takes its time");
        assert_eq!(held(MS, 2 * MS), 0, "one right after the other");
    }
}
