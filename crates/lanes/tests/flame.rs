//! The calls of a range, against sums that are computed from the events of the file, of every sample and of real traces.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test: helpers fail as the tests do")]

use std::collections::BTreeMap;

use lanes::{Arrows, Kind, Lanes, lanes_of};
use report::{Cell, Section};
use timeline::intervals::{length, union};
use trace::Trace;

fn read(file: &[u8]) -> Option<Trace> {
    let mut decoder = decode::Decoder::new();
    for chunk in file.chunks(1 << 16) {
        decoder.push(chunk).ok()?;
    }
    decoder.finish().ok().map(|decoded| decoded.trace)
}

/// A column of a table of times, by name.
fn times(section: &Section, table: &str, key: &str) -> Vec<(String, i64)> {
    let Some(table) = section.tables.iter().find(|of| of.id == table) else { return Vec::new() };
    let (name, column) = (table.column("name").unwrap(), table.column(key).unwrap());
    let ns = |row| match table.cell(row, column) {
        Some(Cell::Ns(ns)) => ns,
        other => panic!("{other:?}"),
    };
    (0..table.n_rows())
        .map(|row| (table.cell(row, name).unwrap().show().to_string(), ns(row)))
        .collect()
}

/// The thread that [`Lanes::range`] shows: the one with most slices in the range.
fn thread(lanes: &Lanes, (from, to): (i64, i64)) -> Option<usize> {
    let n_slices = |at: usize| -> usize {
        let of = &lanes.tracks[at].lanes;
        of.iter().map(|lane| lane.slices(from as f64, to as f64).len()).sum()
    };
    let threads = (0..lanes.tracks.len()).filter(|at| lanes.tracks[*at].kind == Kind::Thread);
    threads.max_by_key(|at| (n_slices(*at), std::cmp::Reverse(*at)))
}

/// Compares the figures of one half of a trace, and gives the number of names that were compared.
fn check(trace: &Trace, name: &str) -> usize {
    let (lanes, arrows) = lanes_of(trace);
    let range = (lanes.span_ns / 4, lanes.span_ns / 4 * 3);
    let Some(track) = thread(&lanes, range) else { return 0 };
    let section = lanes.range(trace, &arrows, &[], (None, ""), range);
    let (of_names, crosses) = slices(trace, &lanes, &arrows, track, range);
    let totals = times(&section, "range-calls", "total_ns");
    let gpu = times(&section, "range-calls", "gpu_ns");
    let mut n = 0;
    for ((shown, total), (_, launched)) in totals.iter().zip(&gpu) {
        // (Frames of Python are shown by their lines.)
        let Some((parts, gpu_ns)) = of_names.get(shown) else { continue };
        assert_eq!(launched, gpu_ns, "{name}: GPU time launched by {shown}");
        // (A slice that crosses another is called by none, and may lie beside one of its own name.)
        let runs = length(&union(parts.clone()));
        assert!(
            *total == runs || crosses && *total > runs,
            "{name}: {total} of {shown}, not {runs}"
        );
        n += 1;
    }
    n
}

fn crosses(intervals: &[(i64, i64)]) -> bool {
    let mut sorted = intervals.to_vec();
    sorted.sort_by_key(|(start, end)| (*start, std::cmp::Reverse(*end)));
    let mut open: Vec<i64> = Vec::new();
    for (start, end) in sorted {
        open.retain(|over| *over > start);
        if open.last().is_some_and(|over| *over < end) {
            return true;
        }
        open.push(end);
    }
    false
}

/// The parts of slices in the range, and the GPU time of what was launched by those that begin in it.
type Name = (Vec<(i64, i64)>, i64);

/// What the slices of a thread are by name, and whether any of them cross.
fn slices(
    trace: &Trace,
    lanes: &Lanes,
    arrows: &Arrows,
    track: usize,
    (from, to): (i64, i64),
) -> (BTreeMap<String, Name>, bool) {
    let mut found: BTreeMap<String, Name> = BTreeMap::new();
    let mut whole = Vec::new();
    for row in trace.rows() {
        let Some(spot) = lanes.spot(trace, row).filter(|spot| spot.track == track) else {
            continue;
        };
        let (start, end) = lanes.times(spot).unwrap();
        whole.push((start, end));
        if end <= from && start < from || start >= to {
            continue;
        }
        let of = found.entry(trace.name_text(row).to_owned()).or_default();
        of.0.push((start.max(from), end.min(to)));
        if start >= from {
            let slices = arrows.launched_by(row).filter_map(|slice| lanes.spot(trace, slice));
            of.1 += slices
                .map(|slice| lanes.times(slice).unwrap())
                .map(|(start, end)| end - start)
                .sum::<i64>();
        }
    }
    (found, crosses(&whole))
}

#[test]
fn the_calls_of_every_sample_add_up() {
    let mut n = 0;
    for sample in testkit::trace_samples() {
        if let Some(trace) = read(&sample.bytes()) {
            n += check(&trace, sample.stem());
        }
    }
    assert!(n > 100, "{n} names were compared");
}

#[test]
fn the_calls_of_a_real_trace_add_up() {
    let mut n = 0;
    let paths = testkit::real_traces();
    for path in &paths {
        let name = path.display().to_string();
        n += check(&read(&std::fs::read(path).unwrap()).unwrap(), &name);
    }
    assert!(paths.is_empty() || n > 100, "{n} names were compared");
}
