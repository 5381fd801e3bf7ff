//! The order in which the importer handles the events of one thread.

use trace::{Phase, Row};

use crate::view::{View, each_of};

/// What events are sorted by: time, kind, negative length, row.
pub(crate) type Key = (i64, u8, i64, Row);

/// One stacked event with its times in the importer's ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The event.
    pub row: Row,
    /// What it is.
    pub phase: Phase,
    /// Start.
    pub ts: i64,
    /// End; equal to `ts` for everything but complete slices.
    pub end: i64,
}

impl Item {
    /// `trace_sorter.h`, slow mode: by time; at one time `E` first, then complete slices with a length,
    /// the longer first, then everything else as in the file.
    pub(crate) fn key(&self) -> Key {
        let dur = self.end - self.ts;
        match self.phase {
            Phase::End => (self.ts, 0, 0, self.row),
            Phase::Complete if dur > 0 => (self.ts, 1, -dur, self.row),
            _ => (self.ts, 2, 0, self.row),
        }
    }
}

/// The thread's events in the importer's order.
///
/// Only row numbers are held: a thread of millions of frames costs 4 bytes a frame, and for a moment 16
/// more while it is sorted.
pub(crate) fn rows(view: &View<'_>, rows: &mut Vec<Row>) {
    // Sorting by the time alone is cheap and settles nearly everything; equal times are few.
    let mut by_time = Vec::with_capacity(rows.len());
    each_of(rows, |row| {
        let (ts, _) = view.importer_times(row);
        if ts >= 0 {
            by_time.push((ts, row));
        }
    });
    if !by_time.is_sorted() {
        by_time.sort_unstable();
    }
    rows.clear();
    rows.extend(by_time.iter().map(|(_, row)| *row));
    // Keys end with the row, so no two are equal and every way to sort gives the same.
    let key = |row: &Row| item(view, *row).key();
    let mut start = 0;
    for run in by_time.chunk_by(|a, b| a.0 == b.0) {
        let run = &mut rows[start..start + run.len()];
        match run.len() {
            1 => {}
            // Without the memory that keeping the keys takes, run by run.
            2..=16 => run.sort_unstable_by_key(key),
            _ => run.sort_by_cached_key(key),
        }
        start += run.len();
    }
}

/// One event as the importer sees it.
#[inline]
pub(crate) fn item(view: &View<'_>, row: Row) -> Item {
    let phase = view.phase(row);
    let (ts, dur) = view.importer_times(row);
    let end = if phase == Phase::Complete { ts.saturating_add(dur) } else { ts };
    Item { row, phase, ts, end }
}
