//! Crossing slices by the definition of the reference figures, apart from any importer.

use std::collections::BTreeMap;

use trace::{Flags, IdToken, Phase, Row, Trace};

/// How many slices cross on their own (pid, tid), in exact nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossings {
    /// Pairs with `a.ts < b.ts < a.end < b.end`.
    pub pairs: u64,
    /// Slices in at least one pair.
    pub slices: u64,
}

/// Counts crossing slices. A missing or negative duration counts as 0.
#[must_use]
pub fn crossings(trace: &Trace) -> Crossings {
    let mut tracks: BTreeMap<(String, String), Vec<Row>> = BTreeMap::new();
    let mut by_track: Vec<Vec<Row>> = vec![Vec::new(); trace.tracks.len()];
    for row in trace.rows() {
        if trace.phase(row) == Phase::Complete && trace.flags(row).has(Flags::HAS_TS) {
            by_track[trace.track(row).0 as usize].push(row);
        }
    }
    // The reference compares ids as text: 7 and "7" are one track there.
    let text = |token: IdToken| match token {
        IdToken::Missing => "None".to_owned(),
        token => token.display(&trace.strings),
    };
    for (index, rows) in by_track.into_iter().enumerate() {
        let id = trace::TrackId(index as u32);
        let key = (text(trace.process_of(id).pid), text(trace.track_info(id).tid));
        tracks.entry(key).or_default().extend(rows);
    }
    let mut total = Crossings::default();
    for rows in tracks.into_values() {
        let one = count(trace, rows);
        total.pairs += one.pairs;
        total.slices += one.slices;
    }
    total
}

fn count(trace: &Trace, mut rows: Vec<Row>) -> Crossings {
    let end = |row: Row| trace.ts_ns(row).saturating_add(trace.dur_ns(row).max(0));
    let key = |row| (trace.ts_ns(row), std::cmp::Reverse(end(row)), row);
    trace::sort_numbers(&mut rows, &|a, b| key(a).cmp(&key(b)));
    // Open slices by end, the soonest last; a slice crosses those that end inside it.
    let mut open: Vec<(i64, u32)> = Vec::new();
    let mut involved = vec![false; rows.len()];
    let mut pairs = 0;
    for (index, row) in rows.iter().enumerate() {
        let (ts, end) = (trace.ts_ns(*row), end(*row));
        if end <= ts {
            continue;
        }
        while open.last().is_some_and(|(open_end, _)| *open_end <= ts) {
            open.pop();
        }
        let at = open.partition_point(|(open_end, _)| *open_end >= end);
        pairs += (open.len() - at) as u64;
        for (_, other) in &open[at..] {
            involved[*other as usize] = true;
            involved[index] = true;
        }
        open.insert(at, (end, index as u32));
    }
    Crossings { pairs, slices: involved.into_iter().filter(|hit| *hit).count() as u64 }
}
