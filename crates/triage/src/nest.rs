//! Nesting of slices of one kind on their threads: finds the innermost slice at a time, and its parents.

use timeline::recorded::has_lost_its_end;
use trace::{Flags, Row, SmallIndex, Trace, TrackId, each_of, each_row};

/// How deep a chain of callers is followed. Python itself ends at 1,000 calls, if nobody raises that; slices that
/// overlap without nesting can make a chain of all of them.
pub(crate) const DEPTH: usize = 2_000;

/// Frames between the parent that the profiler filed a frame under and the one that called it, at most.
const MISFILED: usize = 256;

/// A call may end this much after the op that it is in, in ns: old profilers cut starts and durations to whole microseconds,
/// each by itself.
const ROUNDING_NS: i64 = 1_000;

/// Whether `op` holds the whole of `call`, which is on the same thread. One that ends when the call begins does not; where both
/// begin in the same moment, only the durations can show which is the outer one.
pub(crate) fn holds(trace: &Trace, op: Row, call: Row) -> bool {
    let (from_ns, until_ns) = (trace.ts_ns(op), trace.end_ns(op));
    let (begin_ns, end_ns) = (trace.ts_ns(call), trace.end_ns(call));
    let rounding_ns = if from_ns < begin_ns { ROUNDING_NS } else { 0 };
    from_ns <= begin_ns && until_ns > begin_ns && until_ns.saturating_add(rounding_ns) >= end_ns
}

/// Slices of one kind: 8 bytes each.
pub(crate) struct Nest<'a> {
    pub(crate) trace: &'a Trace,
    /// By (track, start, longer first).
    pub(crate) rows: Vec<Row>,
    /// The place in `rows` of what lies around each.
    around: Vec<Option<SmallIndex>>,
    /// Places in `rows` of those that lost their end, with the end of what lies around them; sorted.
    closed: Vec<(u32, i64)>,
    /// Where each track begins in `rows`, sorted by track.
    tracks: Vec<(TrackId, u32)>,
}

impl<'a> Nest<'a> {
    /// The slices for which `belongs` is true.
    #[inline(never)]
    pub(crate) fn of(trace: &'a Trace, belongs: impl Fn(Row) -> bool) -> Self {
        let mut rows = Vec::new();
        each_row(trace, |row| {
            if belongs(row) {
                rows.push(row);
            }
        });
        let (rows, tracks) = by_track(trace, &rows);
        let mut closed = Vec::new();
        let around = around(trace, &rows, &mut closed);
        Self { trace, rows, around, closed, tracks }
    }

    /// The innermost slice that was open on `track` at `ts_ns`, as a place in `rows`.
    #[inline(never)]
    pub(crate) fn innermost(&self, track: TrackId, ts_ns: i64) -> Option<usize> {
        let at = self.tracks.binary_search_by_key(&track.0, |(track, _)| track.0).ok()?;
        let start = self.tracks.get(at)?.1 as usize;
        let end = self.tracks.get(at + 1).map_or(self.rows.len(), |(_, end)| *end as usize);
        let rows = self.rows.get(start..end)?;
        let n = rows.partition_point(|row| self.trace.ts_ns(*row) <= ts_ns);
        let mut found = (start + n).checked_sub(1).filter(|found| *found >= start)?;
        // The last that began may be over; what lies around it may not be.
        for _ in 0..DEPTH {
            if self.is_open(found, ts_ns) {
                return Some(found);
            }
            found = self.around(found)?;
        }
        None
    }

    /// The innermost slice that holds the whole of `call`, as a place in `rows`.
    #[inline(never)]
    pub(crate) fn innermost_holding(&self, call: Row) -> Option<usize> {
        let mut found = self.innermost(self.trace.track(call), self.trace.ts_ns(call))?;
        for _ in 0..DEPTH {
            if holds(self.trace, self.rows[found], call) {
                return Some(found);
            }
            found = self.around(found)?;
        }
        None
    }

    /// Whether a slice that has begun by `ts_ns` is not over. One that ends at that very moment is: what begins
    /// there comes after it, and is in it only if it takes no time itself.
    pub(crate) fn is_open(&self, at: usize, ts_ns: i64) -> bool {
        let row = self.rows[at];
        let closed = self.closed.binary_search_by_key(&(at as u32), |(at, _)| *at);
        let end_ns = closed.map_or_else(|_| self.trace.end_ns(row), |closed| self.closed[closed].1);
        end_ns > ts_ns || self.trace.ts_ns(row) == ts_ns
    }

    /// What lies around a slice.
    #[inline(never)]
    pub(crate) fn around(&self, at: usize) -> Option<usize> {
        self.around.get(at).copied().flatten().map(SmallIndex::at)
    }
}

/// The slices by (track, start, longer first), and where each track begins among them. They are dealt out to their
/// tracks before they are sorted: within a track a file has them in few runs, which a stable sort finds.
#[inline(never)]
fn by_track(trace: &Trace, rows: &[Row]) -> (Vec<Row>, Vec<(TrackId, u32)>) {
    let mut next = vec![0_u32; trace.tracks.len()];
    each_of(rows, |row| next[trace.track(row).0 as usize] += 1);
    let mut tracks: Vec<(TrackId, u32)> = Vec::new();
    let mut begin = 0;
    for (track, next) in (0..).map(TrackId).zip(&mut next) {
        let n = std::mem::replace(next, begin);
        if n > 0 {
            tracks.push((track, begin));
            begin += n;
        }
    }
    let mut dealt = vec![0; rows.len()];
    each_of(rows, |row| {
        let at = &mut next[trace.track(row).0 as usize];
        dealt[*at as usize] = row;
        *at += 1;
    });
    let key = |row: Row| (trace.ts_ns(row), std::cmp::Reverse(trace.dur_ns(row)));
    for (track, begin) in &tracks {
        let end = next[track.0 as usize];
        trace::sort_numbers(&mut dealt[*begin as usize..end as usize], &|a, b| key(a).cmp(&key(b)));
    }
    (dealt, tracks)
}

/// What lies around each: by `Python parent id` where the file has it (ids count within a process, and a frame is
/// called on its own thread); else the slice that was open. Frames of one thread overlap without nesting in real
/// traces, so the ids are worth more than the times. But the profiler finds some frames open when it starts, and files what is called
/// next under one of the outer ones: where the open slice holds all of a frame and is itself within the frame's parent, the parent
/// cannot have called it. A slice that lost its end, and so lasts to the end of the recording, ends with the one around it (`closed`).
#[inline(never)]
fn around(trace: &Trace, rows: &[Row], closed: &mut Vec<(u32, i64)>) -> Vec<Option<SmallIndex>> {
    let ids = |row: Row| trace.flags(row).has(Flags::PYTHON_IDS);
    let mut by_id: Vec<(i64, u32)> = Vec::new();
    let mut open: Vec<(u32, i64)> = Vec::new();
    let mut found: Vec<Option<SmallIndex>> = Vec::with_capacity(rows.len());
    for of_track in rows.chunk_by(|a, b| trace.track(*a) == trace.track(*b)) {
        let from = found.len() as u32;
        by_id.clear();
        open.clear();
        by_id.extend(
            (from..)
                .zip(of_track)
                .filter(|(_, row)| ids(**row))
                .filter_map(|(at, row)| Some((trace.link(*row)?, at))),
        );
        by_id.sort_unstable();
        let mut last_ns = i64::MIN;
        each_of(of_track, |row| last_ns = last_ns.max(trace.end_ns(row)));
        each_of(of_track, |row| {
            let at = found.len() as u32;
            let is_over = |(_, end_ns): &(u32, i64)| *end_ns <= trace.ts_ns(row);
            while open.last().is_some_and(is_over) {
                open.pop();
            }
            let parent = ids(row).then(|| trace.external(row)).flatten();
            let parent = parent
                .and_then(|id| by_id.binary_search_by_key(&id, |(id, _)| *id).ok())
                .map(|found| by_id[found].1)
                // (Whatever a file says, what lies around comes earlier: so every chain ends.)
                .filter(|parent| *parent < at);
            let around = |at: u32| found.get(at as usize).copied().flatten().map(SmallIndex::at);
            let by_time = open.last().map(|(at, _)| *at);
            let mut end_ns = trace.end_ns(row);
            if let Some((_, outer_ns)) = open.last()
                && has_lost_its_end(end_ns, *outer_ns, last_ns)
            {
                end_ns = *outer_ns;
                closed.push((at, end_ns));
            }
            let inner = by_time.filter(|time| {
                let holds = trace.end_ns(rows[*time as usize]) >= trace.end_ns(row);
                let mut chain =
                    std::iter::successors(Some(*time as usize), |at| around(*at as u32));
                parent.is_some_and(|parent| {
                    holds
                        && parent < *time
                        && chain.by_ref().take(MISFILED).any(|at| at == parent as usize)
                })
            });
            found.push(inner.or(parent).or(by_time).and_then(SmallIndex::new));
            open.push((at, end_ns));
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{Fixture, slice};

    #[test]
    fn the_innermost_open_slice() {
        let mut fixture = Fixture::default();
        for (name, at, dur) in [("a", 0, 100), ("b", 10, 20), ("c", 12, 5), ("d", 40, 10)] {
            fixture.push(slice("cpu_op", name).at(at, dur).on(1, 1));
        }
        fixture.push(slice("cpu_op", "other").at(0, 50).on(1, 2));
        let trace = fixture.finish();
        let nest = Nest::of(&trace, |_| true);
        let name = |ns| {
            let found = nest.innermost(trace.track(0), ns);
            found.map(|at| trace.name_text(nest.rows[at]).to_owned())
        };
        let named = [0, 11, 13, 18, 35, 45, 99, 101].map(name);
        let expected = ["a", "b", "c", "b", "a", "d", "a"].map(|name| Some(name.to_owned()));
        assert_eq!(named[..7], expected);
        assert_eq!(named[7], None);
    }

    #[test]
    fn what_lost_its_end_is_around_nothing_that_comes_later() {
        let mut fixture = Fixture::default();
        let mut frame = |name: &str, at: i64, dur: i64, id: i64, parent: Option<i64>| {
            let slice = slice("python_function", name).at(at, dur).on(1, 1);
            fixture.push(slice.python(id, parent));
        };
        frame("main", 0, 100_000, 1, None);
        frame("embed", 1_000, 9_000, 2, Some(1));
        // (It is closed where the recording stops.)
        frame("exit", 2_000, 98_000, 3, Some(2));
        frame("decode", 50_000, 5_000, 4, Some(1));
        let trace = fixture.finish();
        let nest = Nest::of(&trace, |_| true);
        let chain = |ns| {
            let first = nest.innermost(trace.track(0), ns);
            let chain = std::iter::successors(first, |at| nest.around(*at));
            chain.map(|at| trace.name_text(nest.rows[at]).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(chain(3_000), ["exit", "embed", "main"]);
        assert_eq!(chain(51_000), ["decode", "main"]);
        assert_eq!(chain(60_000), ["main"]);
    }

    #[test]
    fn a_frame_filed_under_an_outer_one_is_in_the_inner_one_that_holds_it() {
        let mut fixture = Fixture::default();
        let mut frame = |name: &str, at: i64, dur: i64, id: i64, parent: Option<i64>| {
            let slice = slice("python_function", name).at(at, dur).on(1, 1);
            fixture.push(slice.python(id, parent));
        };
        frame("main", 0, 100, 1, None);
        frame("forward", 1, 98, 2, Some(1));
        frame("linear", 10, 5, 3, Some(1));
        // (Not in `forward` as a whole.)
        frame("crossing", 95, 10, 4, Some(1));
        let trace = fixture.finish();
        let nest = Nest::of(&trace, |_| true);
        let caller = |ns| {
            let found = nest.innermost(trace.track(0), ns)?;
            Some(trace.name_text(nest.rows[nest.around(found)?]).to_owned())
        };
        assert_eq!(caller(12).as_deref(), Some("forward"));
        assert_eq!(caller(99).as_deref(), Some("main"));
    }

    #[test]
    fn what_begins_where_a_slice_ends_is_not_in_it() {
        let mut fixture = Fixture::default();
        for (name, at, dur) in [("a", 0, 100), ("b", 10, 20), ("now", 50, 0)] {
            fixture.push(slice("cpu_op", name).at(at, dur).on(1, 1));
        }
        let trace = fixture.finish();
        let nest = Nest::of(&trace, |_| true);
        let name = |ns| nest.innermost(trace.track(0), ns).map(|at| trace.name_text(nest.rows[at]));
        let found = [29, 30, 49, 50, 51, 99, 100].map(name);
        let (a, b, now) = (Some("a"), Some("b"), Some("now"));
        assert_eq!(found, [b, a, a, now, a, a, None]);
    }

    #[test]
    fn a_long_chain_of_what_is_over_is_not_followed_to_its_end() {
        let mut fixture = Fixture::default();
        let n = 2 * DEPTH as i64;
        fixture.push(slice("cpu_op", "all").at(0, 100 * n).on(1, 1));
        for at in 0..n {
            fixture.push(slice("cpu_op", "step").at(10 * at, 15).on(1, 1));
        }
        let trace = fixture.finish();
        let nest = Nest::of(&trace, |_| true);
        let found = |ns| nest.innermost(trace.track(0), ns);
        assert_eq!(found(10 * n + 4), Some(n as usize));
        assert_eq!(found(10 * n + 6), None, "all is around it, but {DEPTH} steps are over first");
    }
}
