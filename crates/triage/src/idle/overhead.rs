//! Overhead of the profiler that holds up no launch.

use timeline::intervals::{Interval, union, without};
use trace::TrackId;

use super::LONG_NS;

/// Overhead of the profiler without the time in which calls follow each other closely on a thread: where some begin during a slice of
/// overhead, that is of another thread, and holds up none of them.
pub(super) fn without_launching(
    overhead: &[Interval],
    launches: &[(TrackId, i64)],
) -> Vec<Interval> {
    let pairs = launches.windows(2).filter_map(|pair| {
        let [(track, from_ns), (on, to_ns)] = pair else { return None };
        (track == on && to_ns.saturating_sub(*from_ns) < LONG_NS).then_some((*from_ns, *to_ns))
    });
    let close = union(pairs.collect());
    let mut starts: Vec<i64> = launches.iter().map(|(_, ns)| *ns).collect();
    trace::sort(&mut starts);
    let holds_one = |(from, to): &Interval| {
        let next = starts.get(starts.partition_point(|ns| ns < from));
        next.is_some_and(|ns| ns < to)
    };
    let (beside, alone): (Vec<Interval>, Vec<Interval>) =
        overhead.iter().partition(|one| holds_one(one));
    union([without(&beside, &close), alone].concat())
}
