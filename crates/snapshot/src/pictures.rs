//! Pictures: memory over the recorded events, stacked by call site, and the segments with their blocks.

use report::drawing::{Anchor, Entry, Shape, Stroke};
use report::units::{bytes, count};
use report::{Drawing, palette};

use crate::chart::{By, Chart, Column};
use crate::model::{Block, BlockState, Segment, Snapshot};
use crate::replay::Replay;

/// Width of a canvas.
const WIDTH: f32 = 1000.0;
/// Height of the chart of memory over events, without its labels.
const HEIGHT: f32 = 260.0;
/// Room for the labels below it.
const LABELS: f32 = 22.0;
/// Columns of that chart: each shows the moment with most memory among its events.
const COLUMNS: usize = 160;
/// Segments that are drawn, the largest first.
const SEGMENTS: usize = 40;
/// Height of a segment, and of its row.
const SEGMENT: f32 = 13.0;
const ROW: f32 = 17.0;
/// Blocks of one state that are narrower than this are drawn as one.
const LEAST: f32 = 0.75;

/// Memory over the events of a device, if it has two levels or more.
#[inline(never)]
pub(crate) fn over_events(device: &str, chart: &Chart, replay: &Replay) -> Option<Drawing> {
    let n = chart.len();
    let top = replay.peak_requested.max(replay.peak_reserved);
    if n < 2 || top <= 0 {
        return None;
    }
    let columns = chart.columns(0.0, n as f64, n.min(COLUMNS), By::Event);
    let y = |bytes: i64| HEIGHT - HEIGHT * bytes.max(0) as f32 / top as f32;
    let x = |column: usize| WIDTH * column as f32 / columns.len() as f32;
    let mut shapes = Vec::new();
    for quarter in 1..=4 {
        let at = HEIGHT * (4 - quarter) as f32 / 4.0;
        let points = vec![(0.0, at), (WIDTH, at)];
        shapes.push(Shape::Line { points, stroke: Stroke::Grid });
    }
    for layer in 0..chart.layers().len() {
        add_layer(&mut shapes, &columns, chart, layer, (&x, &y));
    }
    let reserved = columns
        .iter()
        .enumerate()
        .flat_map(|(at, column)| [(x(at), y(column.reserved)), (x(at + 1), y(column.reserved))]);
    shapes.push(Shape::Line { points: reserved.collect(), stroke: Stroke::Limit });
    for mark in chart.marks() {
        let at = mark.at * columns.len() / n;
        shapes.push(Shape::Mark {
            x: (x(at) + x(at + 1)) / 2.0,
            y: y(chart.level(mark.at).0),
            radius: 4.0,
            category: if mark.is_oom { "communication" } else { "compute" }.into(),
            title: mark.text.clone(),
        });
    }
    let label = |x: f32, anchor: Anchor, text: String| Shape::Text {
        x,
        y: HEIGHT + LABELS - 6.0,
        anchor,
        text,
        on: "".into(),
    };
    shapes.push(label(0.0, Anchor::Start, "event 0".to_owned()));
    shapes.push(label(WIDTH, Anchor::End, format!("event {}", count(n as u64 - 1))));
    let top_label =
        Shape::Text { x: 4.0, y: 14.0, anchor: Anchor::Start, text: size(top), on: "".into() };
    shapes.push(top_label);
    let legend = chart.layers().iter().enumerate().filter(|(layer, _)| {
        columns.iter().any(|column| column.layers.get(*layer).is_some_and(|bytes| *bytes > 0))
    });
    let legend = legend
        .map(|(_, layer)| Entry { category: layer.category.into(), label: layer.label.clone() });
    Some(Drawing {
        id: "memory-over-events".into(),
        title: format!(
            "Device {device}: requested bytes over the recorded events, by call site; the line is reserved memory"
        ),
        says: format!(
            "Memory over {} events: at most {} requested, before event {}, and {} reserved. The tables have the figures.",
            count(n as u64 - 1),
            size(replay.peak_requested),
            count(replay.shown.index as u64),
            size(replay.peak_reserved)
        ),
        width: WIDTH,
        height: HEIGHT + LABELS,
        shapes,
        legend: legend.collect(),
    })
}

/// The boxes of one layer; neighbours of one height are one box.
#[inline(never)]
fn add_layer(
    shapes: &mut Vec<Shape>,
    columns: &[Column],
    chart: &Chart,
    layer: usize,
    (x, y): (&dyn Fn(usize) -> f32, &dyn Fn(i64) -> f32),
) {
    let Some(of) = chart.layers().get(layer) else { return };
    let span = |column: &Column| {
        let below: i64 = column.layers.iter().take(layer).sum();
        (below, below + column.layers.get(layer).copied().unwrap_or_default())
    };
    let mut at = 0;
    while let Some(first) = columns.get(at) {
        let (below, above) = span(first);
        let run = columns.iter().skip(at).take_while(|next| span(next) == (below, above)).count();
        if above > below {
            let title = format!(
                "{}: {} before event {}",
                of.label,
                size(above - below),
                count(first.at as u64)
            );
            shapes.push(Shape::Bar {
                x: x(at),
                y: y(above),
                width: x(at + run) - x(at),
                height: y(below) - y(above),
                category: of.category.into(),
                title,
            });
        }
        at += run;
    }
}

/// The segments of a device with their blocks, the largest first.
#[inline(never)]
pub(crate) fn segments(
    device: &str,
    snapshot: &Snapshot,
    of_device: &[&Segment],
) -> Option<Drawing> {
    let mut all: Vec<&Segment> = of_device.to_vec();
    all.sort_by_key(|segment| (std::cmp::Reverse(segment.total_size), segment.address));
    let largest = all.first().map(|segment| segment.total_size).filter(|size| *size > 0)?;
    let drawn = all.len().min(SEGMENTS);
    let mut shapes = Vec::new();
    for (row, segment) in all.iter().take(drawn).enumerate() {
        add_segment(&mut shapes, snapshot, segment, row as f32 * ROW, largest);
    }
    let entry = |category: &'static str, label: &str| Entry {
        category: category.into(),
        label: label.to_owned(),
    };
    let of = match all.len() - drawn {
        0 => String::new(),
        more => format!("; {more} smaller ones are not drawn"),
    };
    Some(Drawing {
        id: "segments".into(),
        title: format!(
            "Device {device}: segments with their blocks at the time of the snapshot{of}"
        ),
        says: format!(
            "{drawn} segments, the largest of {}, with their blocks. The tables have the figures.",
            size(largest)
        ),
        width: WIDTH,
        height: drawn as f32 * ROW,
        shapes,
        legend: vec![
            entry(palette::series(0), "in use"),
            entry(palette::series(1), "freed, still in use by a stream"),
            entry("", "free"),
        ],
    })
}

fn add_segment(
    shapes: &mut Vec<Shape>,
    snapshot: &Snapshot,
    segment: &Segment,
    y: f32,
    largest: i64,
) {
    let x = |address: u64| {
        let offset = address.saturating_sub(segment.address).min(segment.total_size.max(0) as u64);
        WIDTH * offset as f32 / largest as f32
    };
    let kind = if segment.is_expandable { ", expandable" } else { "" };
    let place = format!(
        "{} segment of {} on stream {}{kind}",
        segment.segment_type,
        size(segment.total_size),
        segment.stream
    );
    let mut bar = |from: f32, to: f32, category: &'static str, title: String| {
        shapes.push(Shape::Bar {
            x: from,
            y,
            width: (to - from).max(LEAST / 2.0),
            height: SEGMENT,
            category: category.into(),
            title,
        });
    };
    let end = segment.address.saturating_add(segment.total_size.max(0) as u64);
    bar(0.0, x(end), "", format!("Free, in a {place}"));
    let blocks: Vec<&Block> =
        snapshot.blocks_of(segment).iter().filter(|block| block.is_active()).collect();
    let state = |block: &Block| block.state == BlockState::PendingFree;
    let end_of = |block: &Block| block.address.saturating_add(block.size.max(0) as u64);
    let mut at = 0;
    while let Some(first) = blocks.get(at) {
        // Blocks that would not be seen by themselves, and follow each other, are one.
        let mut last = at;
        while let Some(next) = blocks.get(last + 1) {
            let is_narrow = x(end_of(next)) - x(next.address) < LEAST;
            let is_near = x(next.address) - x(end_of(blocks[last])) < LEAST;
            if !(is_narrow && is_near && state(next) == state(first)) {
                break;
            }
            last += 1;
        }
        let sum: i64 = blocks[at..=last].iter().map(|block| block.size).sum();
        let what = match last - at {
            0 => format!("Block of {}", size(sum)),
            more => format!("{} blocks of {} in all", more + 1, size(sum)),
        };
        let category = palette::series(usize::from(state(first)));
        bar(x(first.address), x(end_of(blocks[last])), category, format!("{what}, in a {place}"));
        at = last + 1;
    }
}

fn size(of: i64) -> String {
    bytes(of.max(0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reader, analyze};

    /// Two blocks that stay, of two sites, one that comes and goes, and one from before the first event.
    const SNAPSHOT: &str = r#"{"segments": [{"device": 0, "address": 4096, "total_size": 8192, "allocated_size": 4096,
        "active_size": 4096, "stream": 0, "segment_type": "small", "blocks": [
        {"address": 4096, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": []},
        {"address": 5120, "size": 1024, "requested_size": 1000, "state": "active_allocated",
         "frames": [{"filename": "a.py", "line": 1, "name": "f"}]},
        {"address": 6144, "size": 2048, "requested_size": 2000, "state": "active_allocated",
         "frames": [{"filename": "b.py", "line": 2, "name": "g"}]},
        {"address": 8192, "size": 4096, "requested_size": 0, "state": "inactive", "frames": []}]}],
        "device_traces": [[
        {"action": "alloc", "addr": 5120, "size": 1000, "stream": 0, "frames": [{"filename": "a.py", "line": 1, "name": "f"}]},
        {"action": "alloc", "addr": 8192, "size": 3000, "stream": 0, "frames": [{"filename": "b.py", "line": 2, "name": "g"}]},
        {"action": "alloc", "addr": 6144, "size": 2000, "stream": 0, "frames": [{"filename": "b.py", "line": 2, "name": "g"}]},
        {"action": "free_requested", "addr": 8192, "size": 3000, "stream": 0, "frames": []},
        {"action": "free_completed", "addr": 8192, "size": 3000, "stream": 0, "frames": []}]]}"#;

    fn drawings() -> Vec<Drawing> {
        let mut reader = Reader::new();
        reader.push(SNAPSHOT.as_bytes()).expect("a snapshot");
        let report = analyze(&reader.finish().expect("a snapshot"));
        report.sections().into_iter().flat_map(|section| section.drawings).collect()
    }

    fn bars(drawing: &Drawing) -> Vec<(f32, &str)> {
        let mut found = Vec::new();
        for shape in &drawing.shapes {
            if let Shape::Bar { height, title, .. } = shape {
                found.push((*height, title.as_str()));
            }
        }
        found
    }

    #[test]
    fn the_layers_of_a_column_add_up_to_the_level() {
        let all = drawings();
        let chart = all.iter().find(|drawing| drawing.id == "memory-over-events").expect("a chart");
        // The peak is 7000 bytes before event 3; reserved memory, 8192, is the top.
        let at_peak: Vec<f32> = bars(chart)
            .into_iter()
            .filter(|(_, title)| title.ends_with("before event 3"))
            .map(|(height, _)| height * 8192.0 / HEIGHT)
            .collect();
        // (The 1000 bytes below them are one box from the first column on.)
        assert_eq!(at_peak.iter().sum::<f32>().round(), 6000.0, "{at_peak:?}");
        let said: Vec<&str> = bars(chart).into_iter().map(|(_, title)| title).collect();
        assert!(said.iter().any(|title| title.starts_with("b.py:2:g: 4.88 KiB")), "{said:?}");
        assert!(
            said.iter().any(|title| title.starts_with("allocated before the first event")),
            "{said:?}"
        );
        assert!(
            chart.says.contains("at most 6.84 KiB requested, before event 3"),
            "{}",
            chart.says
        );
    }

    #[test]
    fn a_segment_has_its_blocks_and_what_is_free() {
        let all = drawings();
        let segments = all.iter().find(|drawing| drawing.id == "segments").expect("a picture");
        let said: Vec<&str> = bars(segments).into_iter().map(|(_, title)| title).collect();
        assert_eq!(said.len(), 4, "{said:?}");
        assert_eq!(said[0], "Free, in a small segment of 8.00 KiB on stream 0");
        assert_eq!(said[3], "Block of 2.00 KiB, in a small segment of 8.00 KiB on stream 0");
    }
}
