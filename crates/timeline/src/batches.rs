//! Taking over batches that workers of a data loader have made.

use trace::{Flags, StringId, Trace, TrackId, each_row};

use crate::intervals::Interval;

/// The op that gives a tensor of a batch its memory (`_rebuild_tensor` in `torch/_utils.py`).
const SET: &str = "aten::set_";

/// How long each of these calls for a batch takes over, on its track, what workers have made, in ns: an estimate. Each tensor is taken to need
/// as long as from one to the next of a batch; of a call that takes several batches those are the closest.
#[must_use]
pub fn taken_over_ns(trace: &Trace, calls: &[(TrackId, Interval)]) -> Vec<i64> {
    let sets = sets(trace);
    let of_calls: Vec<(i64, i64, Option<i64>)> = calls
        .iter()
        .map(|(track, (from, to))| {
            let at =
                |ns: i64| sets.partition_point(|(of, (start, _))| (*of, *start) < (*track, ns));
            let own = sets.get(at(*from)..at(*to)).unwrap_or_default();
            let closest = own.windows(2).map(|pair| pair[1].1.0 - pair[0].1.0).min();
            (to - from, own.len() as i64, closest)
        })
        .collect();
    let mut closest: Vec<i64> = of_calls.iter().filter_map(|(.., closest)| *closest).collect();
    trace::sort(&mut closest);
    let each_ns = closest.get(closest.len().saturating_sub(1) / 2).copied().unwrap_or_default();
    of_calls.iter().map(|(dur_ns, n, _)| n.saturating_mul(each_ns).min(*dur_ns)).collect()
}

/// Every tensor that is given its memory, by track and time.
fn sets(trace: &Trace) -> Vec<(TrackId, Interval)> {
    let is_set = |name: StringId| trace.strings.get(name) == SET;
    let mut sets = Vec::new();
    if !trace.strings.marked(&|name| name == SET).contains(&true) {
        return sets;
    }
    each_row(trace, |row| {
        if is_set(trace.name(row)) && trace.is_complete(row, Flags::HAS_TS, Flags::PYTHON_IDS) {
            sets.push((trace.track(row), (trace.ts_ns(row), trace.end_ns(row))));
        }
    });
    trace::sort(&mut sets);
    // (One may call another of its name.)
    sets.dedup_by(|later, earlier| later.0 == earlier.0 && later.1.1 <= earlier.1.1);
    sets
}
