//! The order in which the importer handles the events of one thread.

use trace::{Phase, Row, each_of};

use crate::view::View;

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

/// Events whose times are copied to be sorted at once.
const AT_ONCE: usize = 1 << 18;

/// Puts a thread's events into the importer's order, in place; how many are left, since what lies before 0
/// goes.
///
/// Only row numbers are held: a thread of millions of frames costs 4 bytes a frame, and for a moment as much
/// again and 4 MB while it is sorted.
#[inline(never)]
pub(crate) fn sort(view: &View<'_>, rows: &mut [Row]) -> usize {
    let time = |row: Row| view.importer_times(row).0;
    // Sorting by the time alone is cheap and settles nearly everything; equal times are few.
    let mut by_time = Vec::with_capacity(rows.len().min(AT_ONCE));
    for part in rows.chunks_mut(AT_ONCE) {
        by_time.clear();
        each_of(part, |row| by_time.push((time(row), row)));
        if !by_time.is_sorted() {
            by_time.sort_unstable();
            for (slot, (_, row)) in part.iter_mut().zip(&by_time) {
                *slot = *row;
            }
        }
    }
    if rows.len() <= AT_ONCE {
        let mut at = 0;
        for run in by_time.chunk_by(|a, b| a.0 == b.0) {
            settle(view, &mut rows[at..at + run.len()]);
            at += run.len();
        }
        let early = by_time.partition_point(|(ts, _)| *ts < 0);
        rows.rotate_left(early);
        return rows.len() - early;
    }
    drop(by_time);
    // Stable, because that finds the sorted parts and merges them.
    rows.sort_by_key(|row| (time(*row), *row));
    for run in rows.chunk_by_mut(|a, b| time(*a) == time(*b)) {
        settle(view, run);
    }
    let early = rows.partition_point(|row| time(*row) < 0);
    rows.rotate_left(early);
    rows.len() - early
}

/// Orders events of one time.
#[inline]
fn settle(view: &View<'_>, run: &mut [Row]) {
    // Keys end with the row, so no two are equal and every way to sort gives the same.
    let key = |row: &Row| item(view, *row).key();
    match run.len() {
        0 | 1 => {}
        // Without the memory that keeping the keys takes, run by run.
        2..=16 => run.sort_unstable_by_key(key),
        _ => run.sort_by_cached_key(key),
    }
}

/// Puts more events among those of a thread, which are in the importer's order.
#[inline(never)]
pub(crate) fn insert(view: &View<'_>, rows: &mut Vec<Row>, mut more: Vec<Row>) {
    more.retain(|row| view.importer_times(*row).0 >= 0);
    if more.len() > rows.len() / 16 {
        rows.append(&mut more);
        let n = sort(view, rows);
        rows.truncate(n);
        return;
    }
    let key = |row: &Row| item(view, *row).key();
    more.sort_by_cached_key(key);
    // From the back, so that each row moves once.
    let mut end = rows.len();
    rows.resize(end + more.len(), 0);
    for (ahead, row) in more.iter().enumerate().rev() {
        let own = key(row);
        let at = rows[..end].partition_point(|other| key(other) < own);
        rows.copy_within(at..end, at + ahead + 1);
        rows[at + ahead] = *row;
        end = at;
    }
}

/// One event as the importer sees it.
#[inline]
pub(crate) fn item(view: &View<'_>, row: Row) -> Item {
    let (phase, ts, dur) = view.phase_and_times(row);
    let end = if phase == Phase::Complete { ts.saturating_add(dur) } else { ts };
    Item { row, phase, ts, end }
}

#[cfg(test)]
mod tests {
    use super::{AT_ONCE, item, sort};
    use crate::view::View;
    use trace::{ByteSpan, Event, Flags, IdToken, Phase, Row, TraceBuilder};

    #[test]
    fn threads_too_long_to_sort_at_once_are_in_the_same_order() {
        let mut builder = TraceBuilder::default();
        let (name, raw_category) = (builder.strings().intern("k"), builder.strings().intern(""));
        let track = builder.track(IdToken::Int(1), IdToken::Int(2));
        for n in 0..(2 * AT_ONCE + 1000) as u64 {
            // Every part spans all times, some before 0; equal times are in one part and in several.
            let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
            let event = Event {
                phase: [Phase::Complete, Phase::Instant, Phase::End][(mixed % 3) as usize],
                flags: Flags(Flags::HAS_TS.0 | Flags::HAS_DUR.0),
                ts_ns: mixed as i64 / 8 - 1000,
                dur_ns: mixed as i64 % 5,
                name,
                raw_category,
                track,
                link: None,
                external: None,
                stream: None,
                span: ByteSpan { start: n * 10, len: 10 },
            };
            assert!(builder.push(&event, None));
        }
        let trace = builder.finish();
        let view = View::of(&trace);
        let mut expected: Vec<Row> = trace.rows().filter(|row| trace.ts_ns(*row) >= 0).collect();
        expected.sort_by_key(|row| item(&view, *row).key());
        let mut rows: Vec<Row> = trace.rows().collect();
        let n = sort(&view, &mut rows);
        assert!(n < rows.len());
        assert_eq!(rows[..n], expected);
    }
}
