//! Memory over events or time, stacked by call site.

use kinetoscope::memory::{By, Chart, Column};
use kinetoscope::report::units;
use kinetoscope::scene::{Anchor, Ink, Tone, Unit, text_width, ticks};

use super::super::hint::hint;
use super::{Look, Place};

/// Room for the labels of the axis.
const AXIS: f32 = 22.0;
/// Room above the highest level.
const HEAD: f32 = 16.0;
/// px between two levels at least.
const LEVEL: f32 = 40.0;
/// px between two ticks at least.
const TICK: f32 = 110.0;

/// From bytes to px.
struct Scale {
    bottom: f32,
    top: f64,
}

impl Scale {
    fn y(&self, bytes: i64) -> f32 {
        self.bottom - (f64::from(self.bottom - HEAD) * bytes.max(0) as f64 / self.top) as f32
    }
}

fn size(bytes: i64) -> String {
    units::bytes(bytes.max(0) as u64)
}

impl Look {
    pub(super) fn chart(&mut self, place: Place) -> Vec<Ink> {
        let mut ink = vec![Ink::Box {
            x: 0.0,
            y: 0.0,
            width: place.width,
            height: place.height,
            tone: Tone::Ground,
        }];
        let Some(explorer) = &self.chosen else { return ink };
        let chart = explorer.chart();
        let wanted = (self.window, self.by, place.width as usize);
        let columns = match self.columns.take() {
            Some((made, columns)) if made == wanted => columns,
            _ => chart.columns(self.window.from(), self.window.to(), wanted.2.max(1), self.by),
        };
        let most = |column: &Column| column.reserved.max(column.layers.iter().sum());
        let top = columns.iter().map(most).max().unwrap_or_default().max(1) as f64;
        let scale = Scale { bottom: place.height - AXIS, top };
        grid(&mut ink, self, &place, &scale);
        for layer in 0..chart.layers().len() {
            add_layer(&mut ink, chart, &columns, layer, &scale);
        }
        let reserved: Vec<(f32, f32)> = columns
            .iter()
            .enumerate()
            .flat_map(|(x, column)| {
                let y = scale.y(column.reserved);
                [(x as f32, y), ((x + 1) as f32, y)]
            })
            .collect();
        if columns.iter().any(|column| column.reserved > 0) {
            ink.push(Ink::Line { points: reserved, tone: Tone::Strong });
        }
        levels(&mut ink, &scale);
        self.overlay(&mut ink, &place, &scale);
        self.hover(&mut ink, &place, &columns);
        self.columns = Some((wanted, columns));
        ink
    }

    fn x(&self, place: &Place, state: usize) -> Option<f32> {
        let unit = self.chosen.as_ref()?.chart().place(state, self.by);
        let share = self.window.share(unit);
        (-0.001..=1.001).contains(&share).then_some(place.width * share as f32)
    }

    /// The range, the marks and the cursor.
    fn overlay(&self, ink: &mut Vec<Ink>, place: &Place, scale: &Scale) {
        let Some(explorer) = &self.chosen else { return };
        let chart = explorer.chart();
        if let Some((from, to)) = self.range {
            let x = |at: usize| {
                let share = self.window.share(chart.place(at, self.by)).clamp(0.0, 1.0);
                place.width * share as f32
            };
            let (x, width) = (x(from), (x(to) - x(from)).max(1.0));
            ink.push(Ink::Box { x, y: 0.0, width, height: scale.bottom, tone: Tone::Selected });
        }
        let line =
            |x: f32, tone: Tone| Ink::Line { points: vec![(x, 0.0), (x, scale.bottom)], tone };
        for mark in chart.marks() {
            let Some(x) = self.x(place, mark.at) else { continue };
            let (word, tone) = if mark.is_oom { ("OOM", Tone::Bad) } else { ("peak", Tone::Text) };
            // Where memory runs out at the peak, that is the word.
            let is_near = |x: f32, other: f32| (x - other).abs() < 40.0;
            let ooms = chart.marks().iter().filter(|other| other.is_oom && !mark.is_oom);
            let is_hidden =
                ooms.filter_map(|other| self.x(place, other.at)).any(|other| is_near(x, other));
            let word = if is_hidden { "" } else { word };
            if mark.is_oom {
                ink.push(line(x, tone));
            } else {
                let y = scale.y(chart.level(mark.at).0);
                ink.push(Ink::Box { x: x - 3.0, y: y - 3.0, width: 6.0, height: 6.0, tone });
            }
            let (anchor, x) = if x > place.width - 40.0 {
                (Anchor::End, x - 4.0)
            } else {
                (Anchor::Start, x + 4.0)
            };
            ink.push(Ink::Text { x, y: 12.0, anchor, text: word.to_owned(), tone });
        }
        if let Some(x) = self.x(place, self.cursor) {
            ink.push(line(x, Tone::Accent));
        }
    }

    fn hover(&self, ink: &mut Vec<Ink>, place: &Place, columns: &[Column]) {
        let (Some((x, y)), Some(explorer)) = (place.pointer, &self.chosen) else { return };
        let Some(column) = columns.get(x.max(0.0) as usize) else { return };
        let chart = explorer.chart();
        let requested: i64 = column.layers.iter().sum();
        let when = match self.by {
            By::Event => String::new(),
            By::Time => {
                let us = chart.place(column.at, By::Time) as i64;
                format!(", +{}", units::time(us.saturating_mul(1000)))
            }
        };
        let mut lines = vec![
            format!("Before event {}{when}", units::count(column.at as u64)),
            match column.reserved {
                0 => size(requested),
                reserved => {
                    let counts = explorer.counts();
                    format!("{} {counts}, {} reserved", size(requested), size(reserved))
                }
            },
        ];
        let mut largest: Vec<(i64, &str)> = column
            .layers
            .iter()
            .zip(chart.layers())
            .filter(|(bytes, _)| **bytes > 0)
            .map(|(bytes, layer)| (*bytes, layer.label.as_str()))
            .collect();
        largest.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        lines.extend(
            largest.iter().take(3).map(|(bytes, site)| format!("{}  {site}", size(*bytes))),
        );
        ink.push(Ink::Line { points: vec![(x, 0.0), (x, place.height - AXIS)], tone: Tone::Muted });
        hint(ink, (place.width, place.height), (x, y), &lines);
    }
}

/// Lines and labels of both axes.
fn grid(ink: &mut Vec<Ink>, look: &Look, place: &Place, scale: &Scale) {
    let most = (scale.bottom / LEVEL) as usize;
    for tick in ticks(0.0, scale.top, most, Unit::Bytes) {
        let y = scale.y(tick.at as i64);
        ink.push(Ink::Line { points: vec![(0.0, y), (place.width, y)], tone: Tone::Grid });
    }
    let (unit, factor) = match look.by {
        By::Event => (Unit::Count, 1.0),
        // The chart counts µs.
        By::Time => (Unit::Time, 1000.0),
    };
    let (from, to) = (look.window.from() * factor, look.window.to() * factor);
    for tick in ticks(from, to, (place.width / TICK) as usize, unit) {
        let share = look.window.share(tick.at / factor) as f32;
        let x = place.width * share;
        let anchor = match share {
            share if share < 0.04 => Anchor::Start,
            share if share > 0.96 => Anchor::End,
            _ => Anchor::Middle,
        };
        ink.push(Ink::Line {
            points: vec![(x, scale.bottom), (x, scale.bottom + 4.0)],
            tone: Tone::Muted,
        });
        ink.push(Ink::Text {
            x,
            y: place.height - 5.0,
            anchor,
            text: tick.label,
            tone: Tone::Muted,
        });
    }
}

/// The labels of the levels, on a ground of their own: the layers may begin at the left edge.
fn levels(ink: &mut Vec<Ink>, scale: &Scale) {
    let most = (scale.bottom / LEVEL) as usize;
    for tick in ticks(0.0, scale.top, most, Unit::Bytes).into_iter().filter(|tick| tick.at > 0.0) {
        let y = scale.y(tick.at as i64) - 3.0;
        let width = text_width(&tick.label) + 6.0;
        ink.push(Ink::Box { x: 1.0, y: y - 12.0, width, height: 15.0, tone: Tone::Ground });
        let (anchor, text) = (Anchor::Start, tick.label);
        ink.push(Ink::Text { x: 4.0, y, anchor, text, tone: Tone::Muted });
    }
}

/// The boxes of one layer; neighbours of one height are one box.
fn add_layer(ink: &mut Vec<Ink>, chart: &Chart, columns: &[Column], layer: usize, scale: &Scale) {
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
            let (y, bottom) = (scale.y(above), scale.y(below));
            ink.push(Ink::Box {
                x: at as f32,
                y,
                width: run as f32,
                height: bottom - y,
                tone: Tone::Category(of.category),
            });
        }
        at += run;
    }
}
