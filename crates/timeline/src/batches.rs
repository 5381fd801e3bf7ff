//! Taking over batches that workers of a data loader have made.

use std::cmp::Reverse;

use trace::{Flags, Trace, TrackId, each_row};

use crate::intervals::Interval;

/// The op that gives a tensor of a batch its memory (`_rebuild_tensor` in `torch/_utils.py`).
const SET: &str = "aten::set_";

/// How long each of these calls for a batch takes over, on its track, what workers have made, in ns: an estimate. Each tensor is taken to need
/// as long as from one to the next of a batch; of a call that takes several batches those are the closest.
#[must_use]
pub fn taken_over_ns(trace: &Trace, calls: &[(TrackId, Interval)]) -> Vec<i64> {
    if calls.is_empty() {
        return Vec::new();
    }
    let sets = sets(trace);
    let of_calls: Vec<(i64, i64, Option<i64>)> = calls
        .iter()
        .map(|(track, (from, to))| {
            let at =
                |ns: i64| sets.partition_point(|(of, (start, _))| (*of, *start) < (*track, ns));
            let own = sets.get(at(*from)..at(*to)).unwrap_or_default();
            let apart = |pair: &[(TrackId, Interval)]| pair[1].1.0.saturating_sub(pair[0].1.0);
            let closest = own.windows(2).map(apart).min();
            (to.saturating_sub(*from), own.len() as i64, closest)
        })
        .collect();
    let mut closest: Vec<i64> = of_calls.iter().filter_map(|(.., closest)| *closest).collect();
    let each_ns = crate::median(&mut closest).unwrap_or_default();
    of_calls.iter().map(|(dur_ns, n, _)| n.saturating_mul(each_ns).min(*dur_ns)).collect()
}

/// Every tensor that is given its memory, by track and time.
fn sets(trace: &Trace) -> Vec<(TrackId, Interval)> {
    let is_set = trace.strings.marked(&|name| name == SET);
    let mut sets = Vec::new();
    if !is_set.contains(&true) {
        return sets;
    }
    each_row(trace, |row| {
        if is_set[trace.name(row).0 as usize]
            && trace.is_complete(row, Flags::HAS_TS, Flags::PYTHON_IDS)
        {
            sets.push((trace.track(row), (trace.ts_ns(row), trace.end_ns(row))));
        }
    });
    // (One may call another of its name, which then comes behind it.)
    trace::sort_by_key(&mut sets, |(track, (start, end))| (*track, *start, Reverse(*end)));
    sets.dedup_by(|later, earlier| later.0 == earlier.0 && later.1.1 <= earlier.1.1);
    sets
}
