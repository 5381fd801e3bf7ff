//! The lanes: slices where there is room for them, and how busy each column is where there is not.

use std::rc::Rc;

use kinetoscope::lanes::{Band, Kind, Lane, Levels};
use kinetoscope::report::palette::Hue;
use kinetoscope::report::units;
use kinetoscope::scene::{Anchor, Bar, Ink, Tone, Unit, shortened, text_width, ticks};

use super::Look;
use super::layout::{BAND, HEAD, MINIMAP, MOST_BANDS, Row, TOP};

/// Boxes of a frame: more take longer to fill than columns.
const MOST_BOXES: usize = 2_500;
/// Slices of a lane that are looked through for wide ones, to be labelled.
const MOST_SOUGHT: usize = 20_000;
/// Labels of a frame.
const MOST_LABELS: usize = 400;
/// Parts of idle time that the head of a device names.
const NAMED_PARTS: usize = 3;
/// px from which on a slice has a label.
const LABELLED: f32 = 26.0;
/// px of the ticks of the axis.
const TICK: f32 = 110.0;
/// px that show that there is something, where it is less.
const LEAST: f32 = 2.0;

impl Look {
    /// Everything but what lies over the lanes.
    pub(super) fn draw(&self) -> Vec<Ink> {
        let (width, height) = (self.width, self.height);
        let mut ink = vec![Ink::Box { x: 0.0, y: 0.0, width, height, tone: Tone::Ground }];
        let rows = self.layout.between(self.top, self.top + height - self.ceiling());
        let n_lanes = rows.iter().filter(|row| row.lane.is_some()).count().max(1);
        let most = MOST_BOXES / n_lanes;
        let mut labels = MOST_LABELS;
        for row in rows {
            let y = row.y - self.top + self.ceiling();
            let levels = self.lanes.tracks.get(row.track).and_then(|track| track.levels.as_ref());
            match row.lane.and_then(|lane| self.lanes.lane(row.track, lane)) {
                Some(_) if levels.is_some() => {
                    ink.extend(levels.map(|levels| self.levels(levels, (y, row.height))));
                }
                Some(lane) => {
                    self.lane(&mut ink, lane, (y, row.height), most, &mut labels);
                    self.draw_damage(&mut ink, row, y);
                }
                None => self.head(&mut ink, row, y),
            }
        }
        self.axis(&mut ink);
        self.draw_state(&mut ink);
        self.bands(&mut ink);
        self.minimap(&mut ink);
        ink
    }

    /// Why each device stands still, below the axis: the height is the exact share of a column, the colour the part that is most of
    /// it.
    fn bands(&self, ink: &mut Vec<Ink>) {
        let mut labels = MOST_LABELS;
        for (band, y) in self.bands.iter().zip((0..MOST_BANDS).map(|at| TOP + BAND * at as f32)) {
            let width = self.width;
            ink.push(Ink::Box { x: 0.0, y, width, height: BAND, tone: Tone::Ground });
            ink.push(Ink::Box { x: 0.0, y, width, height: HEAD, tone: Tone::Grid });
            let label = shortened(&self.idle_of(band), width - 16.0).unwrap_or_default();
            ink.push(text(8.0, y + 14.0, label, Tone::Text));
            let place = (y + HEAD, BAND - HEAD - 1.0);
            // (All of the band is idle time.)
            let name = |at: usize| {
                let title = band.title(at);
                Rc::from(title.strip_prefix("Idle: ").unwrap_or(title))
            };
            self.boxes(ink, &band.idle, place, MOST_BOXES / MOST_BANDS, &mut labels, &name);
            let edge = y + BAND - 1.0;
            ink.push(Ink::Box { x: 0.0, y: edge, width, height: 1.0, tone: Tone::Grid });
        }
    }

    /// How long a device stands still in the time shown, and the largest parts of that.
    fn idle_of(&self, band: &Band) -> String {
        let (from, to) = self.shown();
        let idle = band.idle.columns(from, to, 1)[0].map_or(0.0, |column| column.busy_ns);
        let share = |ns: f64| units::percent(100.0 * ns / (to - from));
        let label = self.of_file(&band.label);
        if band.is_outside(from, to) {
            return format!("{label}: the time shown is outside its recorded work");
        }
        let mut said = format!("{label} is idle for {} of the time shown", share(idle));
        let largest = band.largest(from, to);
        for (nth, (title, ns)) in largest.iter().take(NAMED_PARTS).enumerate() {
            let title = title.strip_prefix("Idle: ").unwrap_or(title);
            let mark = if nth == 0 { ':' } else { ',' };
            said += &format!("{mark} {title} {}", share(*ns as f64));
        }
        said
    }

    /// The name of a track, and how busy it is in the time shown.
    fn head(&self, ink: &mut Vec<Ink>, row: &Row, y: f32) {
        let Some(track) = self.lanes.tracks.get(row.track) else { return };
        let (from, to) = self.shown();
        ink.push(Ink::Box { x: 0.0, y, width: self.width, height: row.height, tone: Tone::Grid });
        let fold = if self.folded.contains(&row.track) { "▸" } else { "▾" };
        let pinned = if self.pinned.contains(&row.track) { " (pinned)" } else { "" };
        let label = format!("{fold} {}{pinned}", self.of_file(&track.label));
        let label = shortened(&label, self.width - 8.0).unwrap_or_default();
        let used = text_width(&label) + 24.0;
        ink.push(text(8.0, y + 14.0, label, Tone::Text));
        let mut facts = units::plural(track.n_slices() as u64, "slice", "slices");
        if let Some(levels) = &track.levels {
            facts = levels.said(from, to);
        } else if track.kind == Kind::Stream
            && let Some(busy) = self.lanes.busy_ns(row.track, from, to)
        {
            let share = units::percent(100.0 * busy / (to - from));
            facts = format!("{facts}, busy {share} of the time shown");
        }
        facts += &self.damage_of(row.track);
        if used + text_width(&facts) < self.width {
            ink.push(text(used, y + 14.0, facts, Tone::Muted));
        }
    }

    fn lane(
        &self,
        ink: &mut Vec<Ink>,
        lane: &Lane,
        place: (f32, f32),
        most: usize,
        labels: &mut usize,
    ) {
        self.boxes(ink, lane, place, most, labels, &|at| self.name(lane.row(at)));
    }

    fn boxes(
        &self,
        ink: &mut Vec<Ink>,
        lane: &Lane,
        (y, height): (f32, f32),
        most: usize,
        labels: &mut usize,
        name: &dyn Fn(usize) -> Rc<str>,
    ) {
        let (from, to) = self.shown();
        let slices = lane.slices(from, to);
        if slices.is_empty() {
            return;
        }
        let (y, height) = (y + 1.0, height - 2.0);
        let has_boxes = slices.len() <= most;
        if !has_boxes {
            ink.push(Ink::Bars { x: 0.0, y, height, bars: self.bars(lane, height) });
        }
        if !has_boxes && slices.len() > MOST_SOUGHT {
            return;
        }
        let least_ns = f64::from(LABELLED) * self.ns_per_px();
        for at in slices {
            let (start, end) = lane.times(at);
            let is_wide = (end - start) as f64 >= least_ns;
            if !has_boxes && !is_wide {
                continue;
            }
            let left = self.x_of(start as f64).max(0.0);
            let right = self.x_of(end as f64).min(self.width);
            let hue = lane.hue(at);
            // A pixel is left free on the right, so that slices side by side are told apart.
            let room =
                if right - left > 3.0 { right - left - 1.0 } else { (right - left).max(1.0) };
            ink.push(Ink::Box { x: left, y, width: room, height, tone: Tone::Hue(hue) });
            if !has_boxes {
                let x = left + room;
                ink.push(Ink::Box { x, y, width: 1.0, height, tone: Tone::Ground });
            }
            if is_wide && *labels > 0 {
                let name = name(at);
                // (Letters of some names are wider than the mean.)
                if let Some(name) = shortened(&name, room * 0.94 - 6.0) {
                    *labels -= 1;
                    ink.push(text(left + 4.0, y + height / 2.0 + 4.0, name, Tone::OnHue(hue)));
                }
            }
        }
    }

    /// Allocated memory, or a counter: a bar is as high as the highest level of its column, and pale from the lowest on.
    fn levels(&self, levels: &Levels, (y, height): (f32, f32)) -> Ink {
        let (from, to) = self.shown();
        let (y, height) = (y + 1.0, height - 2.0);
        let (least, most) = levels.scale();
        let share = |level: f64| ((level - least) / (most - least)) as f32;
        let bar = |(low, high)| {
            let (low, share) = (share(low), share(high));
            (share > 0.0).then_some(Bar { hue: Hue::Memory, share, low })
        };
        let columns = levels.series().columns(from, to, self.width.max(1.0) as usize);
        // (An axis that other files share goes on where this one records nothing.)
        let recorded = self.x_of(0.0)..=self.x_of(self.lanes.span_ns as f64);
        let is_recorded = |at: usize| recorded.contains(&(at as f32 + 0.5));
        let columns = columns.into_iter().enumerate();
        let bars = columns.map(|(at, column)| column.filter(|_| is_recorded(at)).and_then(bar));
        Ink::Bars { x: 0.0, y, height, bars: bars.collect() }
    }

    /// How busy each column is: the height of a bar is the exact share of its time that slices cover.
    fn bars(&self, lane: &Lane, height: f32) -> Vec<Option<Bar>> {
        let (from, to) = self.shown();
        let columns = lane.columns(from, to, self.width.max(1.0) as usize);
        let ns = self.ns_per_px();
        let least = LEAST / height;
        let bar = |column: kinetoscope::lanes::Column| {
            let share = ((column.busy_ns / ns) as f32).clamp(least, 1.0);
            Bar { hue: column.hue, share, low: share }
        };
        columns.into_iter().map(|column| column.map(bar)).collect()
    }

    fn axis(&self, ink: &mut Vec<Ink>) {
        let y = MINIMAP;
        let height = TOP - MINIMAP;
        ink.push(Ink::Box { x: 0.0, y, width: self.width, height, tone: Tone::Ground });
        let most = (self.width / TICK) as usize;
        let offset = self.offset_ns() as f64;
        let (from, to) = self.shown();
        let room = self.width - self.state_width();
        for tick in ticks(from + offset, to + offset, most.max(2), Unit::Time) {
            let x = self.x_of(tick.at - offset);
            ink.push(Ink::Box { x, y: y + 16.0, width: 1.0, height: 6.0, tone: Tone::Strong });
            let fits = x + text_width(&tick.label) + 4.0 <= room;
            let (x, anchor) = if fits { (x + 4.0, Anchor::Start) } else { (x - 4.0, Anchor::End) };
            if x > room {
                continue;
            }
            ink.push(Ink::Text { x, y: y + 15.0, anchor, text: tick.label, tone: Tone::Muted });
        }
        ink.push(Ink::Box {
            x: 0.0,
            y: TOP - 1.0,
            width: self.width,
            height: 1.0,
            tone: Tone::Strong,
        });
    }

    /// All of the trace, or of the axis that it shares with others, and which part of it is shown.
    fn minimap(&self, ink: &mut Vec<Ink>) {
        let (from, to) = self.window.whole();
        let columns = self.lanes.overview.columns(from, to, self.width.max(1.0) as usize);
        let ns = ((to - from) / f64::from(self.width.max(1.0))).max(f64::MIN_POSITIVE);
        let bars = columns.into_iter().map(|column| {
            column.map(|column| {
                let share = ((column.busy_ns / ns) as f32).clamp(LEAST / MINIMAP, 1.0);
                Bar { hue: Hue::Host, share, low: share }
            })
        });
        ink.push(Ink::Bars { x: 0.0, y: 0.0, height: MINIMAP, bars: bars.collect() });
        let whole = (to - from).max(1.0);
        let x = ((self.window.from() - from) / whole) as f32 * self.width;
        let width = ((self.window.span() / whole) as f32 * self.width).max(2.0);
        if !self.window.is_whole() {
            ink.push(Ink::Box { x, y: 0.0, width, height: MINIMAP, tone: Tone::Selected });
            for edge in [x, x + width - 1.0] {
                ink.push(Ink::Box {
                    x: edge,
                    y: 0.0,
                    width: 1.0,
                    height: MINIMAP,
                    tone: Tone::Accent,
                });
            }
        }
        let edge = MINIMAP - 1.0;
        ink.push(Ink::Box { x: 0.0, y: edge, width: self.width, height: 1.0, tone: Tone::Grid });
    }
}

/// A text that begins at a place.
pub(super) fn text(x: f32, y: f32, text: String, tone: Tone) -> Ink {
    Ink::Text { x, y, anchor: Anchor::Start, text, tone }
}
