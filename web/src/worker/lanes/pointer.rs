//! Mouse and touch.

use kinetoscope::scene::{Pointer, Window};

use super::Look;
use super::layout::MINIMAP;

/// A pointer that moves less was a click.
const SLOP: f32 = 5.0;

/// Where a button went down, and what the drag does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drag {
    x: f32,
    y: f32,
    does: Does,
    /// What was shown where it began.
    window: Window,
    top: f32,
    is_far: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Select a range.
    Select,
    /// Move the picture.
    Pan,
    /// Show the part of the trace that the pointer is at.
    Overview,
    /// Move a track, by its head.
    Track(usize),
}

impl Drag {
    /// Whether it selects a range.
    pub(super) fn selects(self) -> bool {
        self.does == Does::Select
    }
}

impl Look {
    pub(super) fn point(&mut self, what: Pointer, at: (f32, f32), pans: bool) {
        self.pointer = (what != Pointer::Leave).then_some(at);
        match what {
            Pointer::Hover | Pointer::Leave => {}
            Pointer::Down => {
                let does = match at.1 {
                    y if y < MINIMAP => Does::Overview,
                    _ if pans => Does::Pan,
                    y => match self.row_at(y) {
                        Some(row) if row.lane.is_none() => Does::Track(row.track),
                        _ => Does::Select,
                    },
                };
                let (window, top) = (self.window, self.top);
                self.drag = Some(Drag { x: at.0, y: at.1, does, window, top, is_far: false });
                if does == Does::Overview {
                    self.show_part(at.0);
                }
            }
            Pointer::Drag => self.dragged(at),
            Pointer::Up => match self.drag.take() {
                Some(drag) if !drag.is_far && drag.does != Does::Overview => self.click(at),
                Some(Drag { does: Does::Track(track), .. }) => self.drop_track(track, at.1),
                Some(drag) => self.is_news |= drag.does == Does::Select,
                None => {}
            },
            Pointer::Double => {
                if let Some(spot) = self.spot_at(at)
                    && let Some((start, end)) = self.lanes.times(spot)
                {
                    let margin = (end - start) as f64 * 0.1;
                    self.window.show(start as f64 - margin, end as f64 + margin);
                    self.is_dirty = true;
                }
            }
        }
    }

    /// The track that is dragged by its head.
    pub(super) fn dragged_track(&self) -> Option<usize> {
        match self.drag {
            Some(Drag { does: Does::Track(track), is_far: true, .. }) => Some(track),
            _ => None,
        }
    }

    /// A finger that is left of two goes on moving the picture; it was no click.
    pub(super) fn go_on(&mut self, at: (f32, f32)) {
        self.point(Pointer::Down, at, true);
        if let Some(drag) = &mut self.drag {
            drag.is_far = true;
        }
    }

    fn click(&mut self, at: (f32, f32)) {
        if let Some((band, piece)) = self.band_at(at) {
            let (start, end) = band.idle.times(piece);
            self.range = Some((start as f64, end as f64));
            self.bound = None;
            self.is_news = true;
            return;
        }
        self.range = None;
        match self.row_at(at.1).copied() {
            Some(row) if row.lane.is_none() => match self.control_at(at.0) {
                Some(control) => self.control(control, row.track),
                None => self.fold(row.track),
            },
            _ => {
                let spot = self.spot_at(at);
                self.clicked = spot.is_none().then_some(self.ns_at(at.0));
                self.read = self.levels_at(at.1);
                self.select(spot);
            }
        }
    }

    fn dragged(&mut self, (x, y): (f32, f32)) {
        let Some(mut drag) = self.drag else { return };
        drag.is_far |= (x - drag.x).abs().max((y - drag.y).abs()) > SLOP;
        self.drag = Some(drag);
        match drag.does {
            Does::Overview => self.show_part(x),
            Does::Track(_) => {}
            _ if !drag.is_far => {}
            Does::Pan => {
                self.window = drag.window;
                self.window.pan(f64::from((drag.x - x) / self.width.max(1.0)));
                self.top = drag.top;
                self.scroll(drag.y - y);
            }
            Does::Select => {
                let time = |x: f32| self.ns_at(x.clamp(0.0, self.width));
                let (a, b) = (time(drag.x), time(x));
                // Whole nanoseconds: figures and picture are of the same range.
                self.range = Some((a.min(b).round(), a.max(b).round()));
                self.bound = None;
            }
        }
    }

    /// Shows as much time as now, around a place of the whole trace.
    fn show_part(&mut self, x: f32) {
        let (start, end) = self.window.whole();
        let middle = start + f64::from(x / self.width.max(1.0)) * (end - start);
        let span = self.window.span();
        self.window.show(middle - span / 2.0, middle + span / 2.0);
        self.is_dirty = true;
    }
}
