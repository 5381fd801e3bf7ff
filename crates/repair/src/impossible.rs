//! Kernels with impossible durations.
//!
//! Work on one stream is serial. On ROCm a kernel's duration is sometimes written far too long, so that it
//! swallows the kernels after it (AMD-AGI/TraceLens #669: an attention kernel of 1.6 s on MI355X whose true
//! time was milliseconds; AMD-AGI/Hyperloom #1116). The lessons of those two threads: a pair of events is
//! better evidence than a ratio of sums; severity is told against the stream's own summed time, not against
//! the span that the bad event inflates; without an absolute floor, dense streams of short kernels that touch by a few
//! microseconds would be flagged; equal starts contradict nothing.

use trace::{Flags, Row, StreamId, TimeNs, Trace, each_row};

use crate::types::{Impossible, RepairPlan, Rule};

/// Overruns below this are ordinary: programmatic dependent launch overlaps kernels by microseconds, and
/// timestamps of dense streams collide by up to about 4 us (Hyperloom #1116).
pub(crate) const FLOOR_NS: TimeNs = 100_000;

/// Finds impossible durations: a kernel that runs at least `FLOOR_NS` past the next start of its stream
/// and wholly swallows the kernel that starts there.
#[must_use]
#[inline(never)]
pub fn find(trace: &Trace) -> Vec<Impossible> {
    let mut streams: Vec<Vec<Row>> = vec![Vec::new(); trace.streams.len()];
    let timed_kernel = Flags(Flags::KERNEL.0 | Flags::HAS_TS.0 | Flags::HAS_DUR.0);
    each_row(trace, |row| {
        if trace.flags(row).has(timed_kernel)
            && let Some(stream) = trace.stream(row)
            && let Some(rows) = streams.get_mut(usize::from(stream.0))
        {
            rows.push(row);
        }
    });
    let mut found = Vec::new();
    for (index, mut rows) in streams.into_iter().enumerate() {
        trace::sort_numbers(&mut rows, &|a, b| trace.ts_ns(a).cmp(&trace.ts_ns(b)));
        scan_stream(trace, &rows, StreamId(index as u16), &mut found);
    }
    trace::sort_by_key(&mut found, |bad| bad.row);
    found
}

#[inline(never)]
fn scan_stream(trace: &Trace, rows: &[Row], stream: StreamId, found: &mut Vec<Impossible>) {
    let first = found.len();
    // The first of the rows that starts later than the one at hand, from the back: equal starts share theirs.
    let mut next = rows.len();
    let mut later_ends: Option<Ends> = None;
    for (at, row) in rows.iter().enumerate().rev() {
        if rows.get(at + 1).is_some_and(|after| trace.ts_ns(*after) > trace.ts_ns(*row)) {
            next = at + 1;
        }
        let Some(later) = rows.get(next) else { continue };
        let overrun_ns = trace.end_ns(*row).saturating_sub(trace.ts_ns(*later));
        if overrun_ns >= FLOOR_NS {
            let (row, next_row) = (*row, *later);
            let swallowed = 0;
            let stream_sum_ns = 0;
            let bad =
                Impossible { row, next: next_row, overrun_ns, swallowed, stream, stream_sum_ns };
            found.extend(judged(trace, rows, next, &mut later_ends, bad));
        }
    }
    sum_up(trace, rows, &mut found[first..]);
}

/// The kernel, if it swallows the `next` one, and how many it swallows. (Few overrun as far.)
#[inline(never)]
fn judged(
    trace: &Trace,
    rows: &[Row],
    next: usize,
    later_ends: &mut Option<Ends>,
    bad: Impossible,
) -> Option<Impossible> {
    let end = trace.end_ns(bad.row);
    if trace.end_ns(bad.next) > end {
        return None;
    }
    let ends = later_ends.get_or_insert_with(|| Ends::of(trace, rows));
    ends.reach_down_to(next);
    Some(Impossible { swallowed: ends.count_to(end), ..bad })
}

#[inline(never)]
fn sum_up(trace: &Trace, rows: &[Row], bad: &mut [Impossible]) {
    if !bad.is_empty() {
        let add = |sum: TimeNs, ns: TimeNs| sum.saturating_add(ns);
        let overruns = bad.iter().map(|bad| bad.overrun_ns).fold(0, add);
        let sum = rows.iter().map(|row| trace.dur_ns(*row).max(0)).fold(0, add);
        bad.iter_mut().for_each(|bad| bad.stream_sum_ns = sum.saturating_sub(overruns));
    }
}

/// The ends of the last kernels of a stream, counted in a binary indexed tree: of slices that lie in each other each
/// swallows all that follow, and looking at these one by one would cost n^2.
struct Ends {
    /// The end of each kernel, in the order of their starts; one without a length ends 1 ns later, because it is swallowed
    /// only by what ends after its start.
    by_start: Vec<TimeNs>,
    sorted: Vec<TimeNs>,
    tree: Vec<u32>,
    /// Kernels from here on are in the tree.
    from: usize,
}

impl Ends {
    #[inline(never)]
    fn of(trace: &Trace, rows: &[Row]) -> Self {
        let end = |row: &Row| trace.end_ns(*row).max(trace.ts_ns(*row).saturating_add(1));
        let by_start: Vec<TimeNs> = rows.iter().map(end).collect();
        let mut sorted = by_start.clone();
        trace::sort(&mut sorted);
        Self { tree: vec![0; rows.len() + 1], from: rows.len(), by_start, sorted }
    }

    /// How many ends, of all kernels, are at most this.
    fn rank(&self, end: TimeNs) -> usize {
        self.sorted.partition_point(|other| *other <= end)
    }

    /// Adds the kernels from the `first` on that are not in the tree.
    fn reach_down_to(&mut self, first: usize) {
        while self.from > first {
            self.from -= 1;
            let mut at = self.rank(self.by_start[self.from]);
            while let Some(count) = self.tree.get_mut(at) {
                *count += 1;
                at += at & at.wrapping_neg();
            }
        }
    }

    /// How many of the added kernels end at most then.
    fn count_to(&self, end: TimeNs) -> u32 {
        let (mut at, mut count) = (self.rank(end), 0);
        while at > 0 {
            count += self.tree[at];
            at &= at - 1;
        }
        count
    }
}

/// Clips each impossible duration to the next start of its stream.
pub(crate) fn clip(trace: &Trace, plan: &mut RepairPlan) {
    for bad in plan.impossible.clone() {
        let dur_ns = trace.ts_ns(bad.next) - trace.ts_ns(bad.row);
        plan.change(bad.row, Rule::ClipImpossible, Some(bad.next), |edit| {
            edit.dur_ns = Some(dur_ns)
        });
    }
}
