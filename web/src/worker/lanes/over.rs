//! What lies over the lanes: the range, the selected slice and its arrows, what is searched for, marks, the slice below the
//! pointer.

use kinetoscope::lanes::{Band, Levels, Place, Spot};
use kinetoscope::report::units;
use kinetoscope::scene::{Anchor, Ink, Tone, text_width};

use super::super::hint::hint;
use super::Look;
use super::draw::text;
use super::layout::{BAND, HEAD, MINIMAP, Row, TOP};

/// Arrows from one slice.
const MOST_ARROWS: usize = 64;
/// px from a slice that still count as on it.
const SLACK: f32 = 2.0;

impl Look {
    pub(super) fn draw_over(&self) -> Vec<Ink> {
        let (width, height) = (self.width, self.height);
        let mut ink = vec![Ink::Clear { width, height }];
        self.searched(&mut ink);
        self.arrows(&mut ink);
        if let Some(spot) = self.selected {
            self.outline(&mut ink, spot);
        }
        // (Arrows and outlines of lanes above the first row shown end at the axis.)
        if let Some((a, b)) = self.range {
            let (a, b) = (self.x_of(a), self.x_of(b));
            let (x, right) = (a.max(0.0), b.min(width));
            if x < right {
                let (y, height) = (MINIMAP, height - MINIMAP);
                ink.push(Ink::Box { x, y, width: right - x, height, tone: Tone::Selected });
                let label = units::time(self.range.map_or(0, |(a, b)| (b - a) as i64));
                // (On the axis, whose numbers say less there: below it are the heads of the tracks.)
                let wide = text_width(&label) + 8.0;
                let x = (f32::midpoint(x, right) - wide / 2.0).clamp(0.0, (width - wide).max(0.0));
                let (y, height) = (MINIMAP + 2.0, TOP - MINIMAP - 3.0);
                ink.push(Ink::Box { x, y, width: wide, height, tone: Tone::Ground });
                ink.push(text(x + 4.0, MINIMAP + 15.0, label, Tone::Text));
            }
        }
        for mark in &self.marks {
            let x = self.x_of(*mark);
            if (0.0..=width).contains(&x) {
                ink.push(Ink::Box {
                    x,
                    y: MINIMAP,
                    width: 2.0,
                    height: height - MINIMAP,
                    tone: Tone::Bad,
                });
            }
        }
        self.draw_bounds(&mut ink);
        self.draw_controls(&mut ink);
        self.draw_pointer_of_others(&mut ink);
        self.pointed(&mut ink);
        ink
    }

    /// Where a slice is in the picture: left, top, width, height; `None` where it is not shown.
    fn place(&self, spot: Spot) -> Option<(f32, f32, f32, f32)> {
        let row = self.layout.lane(spot.track, spot.lane)?;
        let (start, end) = self.lanes.times(spot)?;
        let (x, right) = (self.x_of(start as f64), self.x_of(end as f64));
        let y = row.y - self.top + self.ceiling();
        Some((x, y, (right - x).max(1.0), row.height))
    }

    fn outline(&self, ink: &mut Vec<Ink>, spot: Spot) {
        let Some((x, y, width, height)) = self.place(spot) else { return };
        let top_px = self.ceiling();
        if y < top_px - height || y > self.height || x > self.width || x + width < 0.0 {
            return;
        }
        let (left, right) = (x.max(-3.0) - 1.0, (x + width).min(self.width + 3.0));
        let (top, bottom) = (y.max(top_px), (y + height - 1.0).max(top_px));
        let points = vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        ink.push(Ink::Line { points: points.clone(), tone: Tone::Ground });
        let inset = |(x, y): (f32, f32)| (x, if y == top { y + 1.0 } else { y - 1.0 });
        ink.push(Ink::Line { points: points.into_iter().map(inset).collect(), tone: Tone::Accent });
    }

    /// From launches to what they launched, of the selected slice or of those inside it.
    fn arrows(&self, ink: &mut Vec<Ink>) {
        let Some(selected) = self.selected else { return };
        let mut drawn = 0;
        let mut arrow = |from: Spot, to: Spot| {
            if drawn == MOST_ARROWS {
                return;
            }
            drawn += 1;
            let (Some((x, y, _, height)), Some((to_x, to_y, _, to_height))) =
                (self.place(from), self.place(to))
            else {
                return;
            };
            // (A line that leaves the picture says nothing and crosses names. The text has the times.)
            if !(0.0..=self.width).contains(&x) || !(0.0..=self.width).contains(&to_x) {
                return;
            }
            let (a, b) = (y + height / 2.0, to_y + to_height / 2.0);
            let points = vec![(x, a.max(self.ceiling())), (to_x, b.max(self.ceiling()))];
            ink.push(Ink::Line { points, tone: Tone::Accent });
        };
        let launch = self.lanes.row(selected).and_then(|row| self.arrows.launch_of(row));
        match launch.and_then(|launch| self.lanes.spot(&self.trace, launch)) {
            Some(launch) => arrow(launch, selected),
            None => self.lanes.each_launched(&self.trace, &self.arrows, selected, arrow),
        }
    }

    /// What is searched for: a line below each slice, at most one a pixel.
    fn searched(&self, ink: &mut Vec<Ink>) {
        let Some(found) = &self.found else { return };
        let (from, to) = self.shown();
        for row in self.layout.between(self.top, self.top + self.height - self.ceiling()) {
            let Some((at, lane)) =
                row.lane.and_then(|at| Some((at, self.lanes.lane(row.track, at)?)))
            else {
                continue;
            };
            let own = found.in_lane(row.track, at);
            let shown = lane.slices(from, to);
            let first = own.partition_point(|slice| (*slice as usize) < shown.start);
            let y = row.y - self.top + self.ceiling() + row.height - 4.0;
            let mut last = -1.0;
            for slice in own[first..].iter().take_while(|slice| (**slice as usize) < shown.end) {
                let (start, end) = lane.times(*slice as usize);
                let x = self.x_of(start as f64).max(0.0).floor();
                let right = self.x_of(end as f64).min(self.width).ceil();
                if right <= last {
                    continue;
                }
                last = right.max(x + 1.0);
                ink.push(Ink::Box {
                    x,
                    y,
                    width: (last - x).max(2.0),
                    height: 4.0,
                    tone: Tone::Bad,
                });
            }
        }
    }

    /// The piece of idle time at a place of the picture, and its device.
    pub(super) fn band_at(&self, (x, y): (f32, f32)) -> Option<(&Band, usize)> {
        let nth = ((y - TOP) / BAND).floor();
        let is_head = y - TOP - nth * BAND < HEAD;
        let band = self.bands.get(nth as usize);
        let band = band.filter(|_| nth >= 0.0 && y < self.ceiling() && !is_head)?;
        let slack = f64::from(SLACK) * self.ns_per_px();
        Some((band, band.idle.at(self.ns_at(x), slack)?))
    }

    /// The head or lane at a height of the picture.
    pub(super) fn row_at(&self, y: f32) -> Option<&Row> {
        let top_px = self.ceiling();
        self.layout.at(y - top_px + self.top).filter(|_| y >= top_px)
    }

    /// The slice at a place of the picture.
    pub(super) fn spot_at(&self, (x, y): (f32, f32)) -> Option<Spot> {
        let row = self.row_at(y)?;
        let lane = row.lane?;
        let slack = f64::from(SLACK) * self.ns_per_px();
        let at = self.lanes.lane(row.track, lane)?.at(self.ns_at(x), slack)?;
        Some(Spot { track: row.track, lane, at })
    }

    /// The track of memory or of a counter at a height of the picture.
    pub(super) fn levels_at(&self, y: f32) -> Option<usize> {
        let row = self.row_at(y).filter(|row| row.lane.is_some())?;
        self.levels_of(row.track).map(|_| row.track)
    }

    pub(super) fn levels_of(&self, track: usize) -> Option<&Levels> {
        self.lanes.tracks.get(track)?.levels.as_ref()
    }

    fn pointed(&self, ink: &mut Vec<Ink>) {
        let Some((x, y)) = self.pointer.filter(|_| self.drag.is_none()) else { return };
        if y < MINIMAP {
            return;
        }
        ink.push(Ink::Box { x, y: TOP, width: 1.0, height: self.height - TOP, tone: Tone::Strong });
        let offset_ns = self.offset_ns();
        let now = units::time((self.ns_at(x) as i64).saturating_add(offset_ns));
        let anchor = if x < self.width / 2.0 { Anchor::Start } else { Anchor::End };
        let at = if x < self.width / 2.0 { x + 4.0 } else { x - 4.0 };
        let y_of_time = self.ceiling() + 12.0;
        ink.push(Ink::Text { x: at, y: y_of_time, anchor, text: now, tone: Tone::Text });
        if let Some((band, at)) = self.band_at((x, y)) {
            let (start, end) = band.idle.times(at);
            let lines =
                [band.title(at).to_owned(), from_moment(start, end, offset_ns), band.label.clone()];
            return hint(ink, (self.width, self.height), (x, y), &lines);
        }
        if let Some(levels) = self.levels_at(y).and_then(|track| self.levels_of(track)) {
            let lines = levels.lines(self.ns_at(x));
            return hint(ink, (self.width, self.height), (x, y), &lines);
        }
        let Some(spot) = self.spot_at((x, y)) else { return };
        let (Some(row), Some((start, end))) = (self.lanes.row(spot), self.lanes.times(spot)) else {
            return;
        };
        let mut lines = vec![
            self.name(row).to_string(),
            from_moment(start, end, offset_ns),
            self.trace.raw_category_text(row).to_owned(),
        ];
        lines.extend(self.repair.damage.of(row).map(|damaged| damaged.short().to_owned()));
        let place = self.places.place(row).and_then(Place::short);
        lines.extend(place.map(ToOwned::to_owned));
        hint(ink, (self.width, self.height), (x, y), &lines);
    }
}

/// How long something takes, and when it begins on the axis.
fn from_moment(start: i64, end: i64, offset_ns: i64) -> String {
    let moment = units::moment(start.saturating_add(offset_ns), end - start);
    format!("{} from {moment}", units::time(end - start))
}
