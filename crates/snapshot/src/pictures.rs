//! Pictures: memory over the recorded events, stacked by call site, and the segments with their blocks.

use std::collections::HashMap;

use report::drawing::{Anchor, Entry, Shape, Stroke};
use report::units::{bytes, count};
use report::{Drawing, palette};

use crate::model::{Action, Block, BlockState, Event, Segment, Snapshot};
use crate::replay::{Levels, Replay};
use crate::site::Sites;

/// Width of a canvas.
const WIDTH: f32 = 1000.0;
/// Height of the chart of memory over events, without its labels.
const HEIGHT: f32 = 260.0;
/// Room for the labels below it.
const LABELS: f32 = 22.0;
/// Columns of that chart: each shows the moment with most memory among its events.
const COLUMNS: usize = 160;
/// Call sites with a colour of their own: those with most bytes at the peak.
const SITES: usize = palette::SERIES;
/// The layers below those of call sites.
const BEFORE: usize = 0;
const OTHER: usize = 1;
const FIRST_SITE: usize = 2;
/// Segments that are drawn, the largest first.
const SEGMENTS: usize = 40;
/// Height of a segment, and of its row.
const SEGMENT: f32 = 13.0;
const ROW: f32 = 17.0;
/// Blocks of one state that are narrower than this are drawn as one.
const LEAST: f32 = 0.75;

/// What the layers of the chart are, from the bottom: what was there before the first event, the sites without a colour, and those
/// with one, the largest first.
struct Layers<'a> {
    sites: &'a Sites,
    /// By site: its layer.
    of_site: HashMap<usize, usize>,
    /// The names of the layers with a site.
    names: Vec<String>,
}

impl<'a> Layers<'a> {
    fn of(sites: &'a Sites, replay: &Replay) -> Self {
        let top: Vec<String> =
            replay.peak_by_site.iter().take(SITES).map(|row| row.site.clone()).collect();
        let mut of_site = HashMap::new();
        for site in 0..sites.len() {
            if let Some(at) = top.iter().position(|name| name == sites.name(site)) {
                of_site.insert(site, FIRST_SITE + at);
            }
        }
        Self { sites, of_site, names: top }
    }

    fn len(&self) -> usize {
        self.names.len() + FIRST_SITE
    }

    fn of_event(&self, event: &Event) -> usize {
        let site = self.sites.site(event.stack);
        self.of_site.get(&site).copied().unwrap_or(OTHER)
    }

    fn label(&self, layer: usize) -> &str {
        match layer {
            BEFORE => "allocated before the first event",
            OTHER => "other call sites",
            layer => self.names.get(layer - FIRST_SITE).map_or("", String::as_str),
        }
    }

    fn category(layer: usize) -> &'static str {
        match layer {
            BEFORE => "",
            OTHER => "other",
            layer => palette::series(layer - FIRST_SITE),
        }
    }
}

/// One column: the event before which memory is highest, and its layers.
struct ColumnOf {
    at: usize,
    reserved: i64,
    layers: Vec<i64>,
}

/// Memory over the events of a device, if it has two levels or more.
pub(crate) fn over_events(
    device: &str,
    trace: &[Event],
    levels: &Levels,
    replay: &Replay,
    sites: &Sites,
) -> Option<Drawing> {
    let n = levels.requested.len();
    let top =
        levels.requested.iter().chain(&levels.reserved).copied().max().filter(|top| *top > 0)?;
    if n < 2 {
        return None;
    }
    let layers = Layers::of(sites, replay);
    let columns = columns(trace, levels, replay, &layers);
    let y = |bytes: i64| HEIGHT - HEIGHT * bytes.max(0) as f32 / top as f32;
    let x = |column: usize| WIDTH * column as f32 / columns.len() as f32;
    let mut shapes = Vec::new();
    for quarter in 1..=4 {
        let at = HEIGHT * (4 - quarter) as f32 / 4.0;
        let points = vec![(0.0, at), (WIDTH, at)];
        shapes.push(Shape::Line { points, stroke: Stroke::Grid });
    }
    for layer in 0..layers.len() {
        add_layer(&mut shapes, &columns, &layers, layer, (&x, &y));
    }
    let reserved = columns
        .iter()
        .enumerate()
        .flat_map(|(at, column)| [(x(at), y(column.reserved)), (x(at + 1), y(column.reserved))]);
    shapes.push(Shape::Line { points: reserved.collect(), stroke: Stroke::Limit });
    let column_of = |event: usize| event * columns.len() / n;
    let mut mark = |event: usize, level: i64, category: &'static str, title: String| {
        let at = column_of(event);
        let x = (x(at) + x(at + 1)) / 2.0;
        shapes.push(Shape::Mark { x, y: y(level), radius: 4.0, category: category.into(), title });
    };
    mark(
        replay.peak_index,
        replay.peak_requested,
        "compute",
        format!("Peak: {} before event {}", size(replay.peak_requested), replay.peak_index),
    );
    for (at, event) in trace.iter().enumerate().filter(|(_, event)| event.action == Action::Oom) {
        let level = levels.requested.get(at).copied().unwrap_or_default();
        let title = format!("Event {at}: no memory for {}", size(event.size));
        mark(at, level, "communication", title);
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
    let legend = (0..layers.len()).filter(|layer| {
        columns.iter().any(|column| column.layers.get(*layer).is_some_and(|bytes| *bytes > 0))
    });
    let entry = |layer: usize| Entry {
        category: Layers::category(layer).into(),
        label: layers.label(layer).to_owned(),
    };
    Some(Drawing {
        id: "memory-over-events".into(),
        title: format!(
            "Device {device}: requested bytes over the recorded events, by call site; the line is reserved memory"
        ),
        says: format!(
            "Memory over {} events: at most {} requested, before event {}, and {} reserved. The tables have the figures.",
            count(n as u64 - 1),
            size(replay.peak_requested),
            replay.peak_index,
            size(replay.peak_reserved)
        ),
        width: WIDTH,
        height: HEIGHT + LABELS,
        shapes,
        legend: legend.map(entry).collect(),
    })
}

/// The boxes of one layer; neighbours of one height are one box.
fn add_layer(
    shapes: &mut Vec<Shape>,
    columns: &[ColumnOf],
    layers: &Layers<'_>,
    layer: usize,
    (x, y): (&dyn Fn(usize) -> f32, &dyn Fn(i64) -> f32),
) {
    let span = |column: &ColumnOf| {
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
                layers.label(layer),
                size(above - below),
                count(first.at as u64)
            );
            shapes.push(Shape::Bar {
                x: x(at),
                y: y(above),
                width: x(at + run) - x(at),
                height: y(below) - y(above),
                category: Layers::category(layer).into(),
                title,
            });
        }
        at += run;
    }
}

/// The moments that are drawn, with the bytes of each layer.
fn columns(
    trace: &[Event],
    levels: &Levels,
    replay: &Replay,
    layers: &Layers<'_>,
) -> Vec<ColumnOf> {
    let n = levels.requested.len();
    let n_columns = n.min(COLUMNS);
    let bounds = |column: usize| (column * n / n_columns, (column + 1) * n / n_columns);
    let mut wanted = Vec::with_capacity(n_columns);
    for column in 0..n_columns {
        let (from, to) = bounds(column);
        let own = levels.requested.get(from..to).unwrap_or_default();
        let most =
            own.iter().enumerate().max_by_key(|(at, level)| (**level, std::cmp::Reverse(*at)));
        let reserved = levels.reserved.get(from..to).unwrap_or_default().iter().max();
        wanted.push((from + most.map_or(0, |(at, _)| at), reserved.copied().unwrap_or_default()));
    }
    let mut sums = vec![0_i64; layers.len()];
    if let Some(before) = sums.get_mut(BEFORE) {
        *before = replay.start_requested;
    }
    let mut live: HashMap<u64, (usize, i64)> = HashMap::new();
    let mut found = Vec::with_capacity(n_columns);
    let mut next = wanted.into_iter().peekable();
    for at in 0..n {
        if let Some((_, reserved)) = next.next_if(|(wanted, _)| *wanted == at) {
            found.push(ColumnOf { at, reserved, layers: sums.clone() });
        }
        let Some(event) = trace.get(at) else { continue };
        let (layer, bytes) = match event.action {
            Action::Alloc => {
                let layer = layers.of_event(event);
                live.insert(event.address, (layer, event.size));
                (layer, event.size)
            }
            Action::FreeCompleted => match live.remove(&event.address) {
                Some((layer, bytes)) => (layer, -bytes),
                None => (BEFORE, -event.size),
            },
            _ => continue,
        };
        if let Some(sum) = sums.get_mut(layer) {
            *sum += bytes;
        }
    }
    found
}

/// The segments of a device with their blocks, the largest first.
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
