//! Laws of the lanes of every sample, and of real traces where they are there: nothing is lost, nothing overlaps, sums are exact.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use std::collections::BTreeMap;

use lanes::{Kind, Lane, lanes_of};
use trace::{Flags, Phase, Row, Trace};

fn read(file: &[u8]) -> Option<Trace> {
    let mut decoder = decode::Decoder::new();
    for chunk in file.chunks(1 << 16) {
        decoder.push(chunk).ok()?;
    }
    decoder.finish().ok().map(|decoded| decoded.trace)
}

fn lies_side_by_side(lane: &Lane, name: &str) {
    for at in 1..lane.len() {
        let ((start, end), (next, _)) = (lane.times(at - 1), lane.times(at));
        assert!(start <= next && end <= next, "{name}: slices of a lane overlap");
    }
}

fn check(trace: &Trace, name: &str) {
    let (lanes, arrows) = lanes_of(trace);
    let mut drawn: BTreeMap<Row, u32> = BTreeMap::new();
    for track in &lanes.tracks {
        for lane in &track.lanes {
            lies_side_by_side(lane, name);
            if track.kind != Kind::Steps {
                (0..lane.len()).for_each(|at| *drawn.entry(lane.row(at)).or_default() += 1);
            }
        }
    }
    let mut n = 0;
    for row in trace.rows() {
        if trace.phase(row) == Phase::Complete && trace.flags(row).has(Flags::HAS_TS) {
            n += 1;
            assert_eq!(drawn.get(&row), Some(&1), "{name}: event {row} is in one lane");
            let spot = lanes.spot(trace, row).unwrap();
            assert_eq!(lanes.row(spot), Some(row), "{name}: event {row} is found");
        }
    }
    assert_eq!(drawn.len(), n, "{name}");
    // What is launched leads back to its launch.
    for row in trace.rows() {
        for slice in arrows.launched_by(row) {
            assert_eq!(arrows.launch_of(slice), Some(row), "{name}: event {slice}");
        }
    }
    // Streams: busy time of all columns is that of the lanes, whatever the width.
    let (from, to) = (0.0, lanes.span_ns as f64);
    for track in lanes.tracks.iter().filter(|track| track.kind == Kind::Stream) {
        for lane in &track.lanes {
            let sum: f64 =
                (0..lane.len()).map(|at| (lane.times(at).1 - lane.times(at).0) as f64).sum();
            let columns: f64 =
                lane.columns(from, to, 777).iter().flatten().map(|column| column.busy_ns).sum();
            assert!((sum - columns).abs() <= 1e-6 * sum.max(1.0), "{name}: {sum} in {columns}");
        }
    }
}

#[test]
fn every_slice_of_a_sample_is_in_one_lane() {
    for sample in testkit::trace_samples().into_iter().chain(testkit::nasty_samples()) {
        if let Some(trace) = read(&sample.bytes()) {
            check(&trace, sample.stem());
        }
    }
}

#[test]
fn every_slice_of_a_real_trace_is_in_one_lane() {
    for path in testkit::real_traces() {
        let name = path.display().to_string();
        check(&read(&std::fs::read(&path).unwrap()).unwrap(), &name);
    }
}
