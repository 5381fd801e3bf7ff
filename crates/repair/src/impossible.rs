//! Kernels with impossible durations.
//!
//! Work on one stream is serial. On ROCm a kernel's duration is sometimes written far too long, so that it
//! swallows the kernels after it (AMD-AGI/TraceLens #669: an attention kernel of 1.6 s on MI355X whose true
//! time was milliseconds; AMD-AGI/Hyperloom #1116). The lessons of those two threads: a pair of events is
//! better evidence than a ratio of sums; severity is told against the stream's own summed time, not against
//! the span that the bad event inflates; without an absolute floor, dense streams of short kernels that touch by a few
//! microseconds would be flagged; equal starts contradict nothing.

use trace::{Flags, Row, StreamId, TimeNs, Trace, each_row};

use crate::plan::{RepairPlan, Rule};

/// Overruns below this are ordinary: programmatic dependent launch overlaps kernels by microseconds, and
/// timestamps of dense streams collide by up to about 4 us (Hyperloom #1116).
pub const FLOOR_NS: TimeNs = 100_000;

/// Counting of swallowed kernels stops here: more changes no verdict, and a hostile file must not cost n^2.
const MAX_SWALLOWED: usize = 4096;

/// A kernel that ends long after the next kernels of its stream started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// The kernel.
    pub row: Row,
    /// The first kernel of the stream that starts after it.
    pub next: Row,
    /// How far it runs past that start, in ns.
    pub overrun_ns: TimeNs,
    /// How many later kernels of its stream lie wholly inside it (counted up to 4,096).
    pub swallowed: u32,
    /// Its stream.
    pub stream: StreamId,
    /// The summed duration of the stream's kernels, this and other overruns cut, in ns.
    pub stream_sum_ns: TimeNs,
}

/// Finds impossible durations: a kernel that runs at least [`FLOOR_NS`] past the next start of its stream
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
        let first = found.len();
        rows.sort_by_key(|row| (trace.ts_ns(*row), *row));
        scan_stream(trace, &rows, StreamId(index as u16), &mut found);
        let overruns: TimeNs = found[first..].iter().map(|bad: &Impossible| bad.overrun_ns).sum();
        let sum: TimeNs = rows.iter().map(|row| trace.dur_ns(*row).max(0)).sum();
        for bad in &mut found[first..] {
            bad.stream_sum_ns = sum.saturating_sub(overruns);
        }
    }
    found.sort_by_key(|bad| bad.row);
    found
}

#[inline(never)]
fn scan_stream(trace: &Trace, rows: &[Row], stream: StreamId, found: &mut Vec<Impossible>) {
    // The first row that starts later than row i, from the back: equal starts share theirs.
    let mut next_of = vec![rows.len(); rows.len()];
    for at in (0..rows.len().saturating_sub(1)).rev() {
        let same = trace.ts_ns(rows[at]) == trace.ts_ns(rows[at + 1]);
        next_of[at] = if same { next_of[at + 1] } else { at + 1 };
    }
    for (row, next) in rows.iter().zip(next_of) {
        let end = trace.end_ns(*row);
        if next == rows.len() {
            continue;
        }
        let overrun_ns = end.saturating_sub(trace.ts_ns(rows[next]));
        if overrun_ns < FLOOR_NS || trace.end_ns(rows[next]) > end {
            continue;
        }
        let swallowed = rows[next..]
            .iter()
            .take(MAX_SWALLOWED)
            .take_while(|other| trace.ts_ns(**other) < end)
            .filter(|other| trace.end_ns(**other) <= end)
            .count();
        found.push(Impossible {
            row: *row,
            next: rows[next],
            overrun_ns,
            swallowed: swallowed as u32,
            stream,
            stream_sum_ns: 0,
        });
    }
}

/// Clips each impossible duration to the next start of its stream.
pub(crate) fn clip(trace: &Trace, plan: &mut RepairPlan) {
    for bad in plan.impossible.clone() {
        plan.edit_mut(bad.row).dur_ns = Some(trace.ts_ns(bad.next) - trace.ts_ns(bad.row));
        plan.note(bad.row, Rule::ClipImpossible, Some(bad.next));
    }
}
