//! What a person seeks is shown: a name, an event, a moment.

use kinetoscope::absolute_ns;
use kinetoscope::lanes::{Band, Spot};
use kinetoscope::report::units;

use super::Look;

/// The share of the width that a slice takes when it is shown from elsewhere.
const SHOWN_SHARE: f64 = 0.1;
/// Below this share of the width, it is enlarged.
const LEAST_SHARE: f64 = 0.005;

impl Look {
    pub(super) fn find(&mut self, text: &str) {
        let found = self.lanes.search(&self.trace, text);
        self.says = (!text.is_empty()).then(|| match found.n {
            0 => format!("No slice has \u{201c}{text}\u{201d} in its name."),
            1 => format!("1 slice has \u{201c}{text}\u{201d} in its name."),
            n => format!("{n} slices have \u{201c}{text}\u{201d} in their names."),
        });
        self.found = (!text.is_empty()).then_some(found);
        // (The calls of a range are those of names with this text.)
        self.is_news |= self.range.is_some() && self.find_text != text;
        text.clone_into(&mut self.find_text);
    }

    /// Shows the first slice of this name after the selected one, which stays if it has the name. (What a person sought stays found.)
    pub(super) fn show_name(&mut self, name: &str) {
        let found = self.lanes.named(&self.trace, name);
        if found.n == 0 {
            self.says = Some(format!("No slice is called \u{201c}{name}\u{201d}."));
            return;
        }
        let has_name = |spot: &Spot| {
            let own = found.in_lane(spot.track, spot.lane);
            u32::try_from(spot.at).is_ok_and(|at| own.binary_search(&at).is_ok())
        };
        let selected = self.selected.filter(has_name);
        let next = selected.or_else(|| self.lanes.next_found(&found, self.selected, false));
        self.range = None;
        self.arrive(next);
    }

    pub(super) fn show_event(&mut self, event: u32) {
        if (event as usize) < self.trace.len()
            && let Some(spot) = self.lanes.spot(&self.trace, event)
        {
            // (A range that was selected before is of something else.)
            self.range = None;
            self.select(Some(spot));
            self.reveal(spot);
        } else {
            self.says = Some("This event is not a slice of the timeline.".to_owned());
        }
    }

    /// Selects a range that an address has, and shows it with as much again around it.
    pub(super) fn show_range(&mut self, range: Option<(i64, i64)>) {
        let (first, last) = self.window.whole();
        let part = range.map(|(from, to)| ((from as f64).max(first), (to as f64).min(last)));
        let part = part.filter(|(from, to)| from < to);
        if range.is_some() && part.is_none() {
            self.says = Some("The range of the address is not in this file.".to_owned());
        }
        if let Some((from, to)) = part {
            self.window.show(from - (to - from) / 2.0, to + (to - from) / 2.0);
        }
        (self.range, self.bound) = (part, None);
        (self.is_dirty, self.is_news) = (true, true);
    }

    /// Shows a moment of the file's clock. Where a device begins to stand still there, that time is the range.
    pub(super) fn show_moment(&mut self, ns: i64) {
        let Some(origin_ns) = absolute_ns(&self.trace, self.lanes.origin_ns) else { return };
        let at = ns.saturating_sub(origin_ns);
        self.sought_ns = self.bands.is_empty().then_some(ns);
        let begins = |band: &Band| {
            let first = band.idle.slices(at as f64, at as f64 + 1.0).next()?;
            let (start, end) = band.idle.times(first);
            // (What one cause begins, another may go on with: up to the next work of the device.)
            (start == at).then(|| (start, band.until(first, end)))
        };
        let (from, to) = self.bands.iter().find_map(begins).unwrap_or((at, at));
        let span = if from < to { (to - from) as f64 * 2.0 } else { self.window.span() };
        let middle = f64::midpoint(from as f64, to as f64);
        self.window.show(middle - span / 2.0, middle + span / 2.0);
        if from < to {
            self.range = Some((from as f64, to as f64));
            self.bound = None;
        } else {
            self.range = None;
            if !self.marks.contains(&(at as f64)) {
                self.marks.push(at as f64);
            }
        }
        (self.is_dirty, self.is_news) = (true, true);
        self.says = Some(format!("Shown: {} after the first slice.", units::time(at)));
    }

    /// Moves and zooms as little as shows a slice.
    pub(super) fn reveal(&mut self, spot: Spot) {
        let Some((start, end)) = self.lanes.times(spot) else { return };
        let (start, end) = (start as f64, end as f64);
        let share = (end - start) / self.window.span();
        let is_off = start < self.window.from() || end > self.window.to();
        let span = match share {
            // (Too short or too long to be seen.)
            share if !(LEAST_SHARE..=1.0).contains(&share) => Some((end - start) / SHOWN_SHARE),
            _ => is_off.then_some(self.window.span()),
        };
        if let Some(span) = span {
            let middle = f64::midpoint(start, end);
            self.window.show(middle - span / 2.0, middle + span / 2.0);
        }
        let was_hidden = !self.layout.tracks().any(|track| track == spot.track);
        if was_hidden {
            self.sought.insert(spot.track);
        }
        if self.folded.remove(&spot.track) || was_hidden {
            self.lay_out();
        }
        self.show_lane(spot);
        self.is_dirty = true;
    }

    /// Scrolls as little as shows the lane of a slice, and the head of its track where there is room for both.
    fn show_lane(&mut self, spot: Spot) {
        let Some(row) = self.layout.lane(spot.track, spot.lane).copied() else { return };
        let room = self.height - self.ceiling();
        let bottom = row.y + row.height;
        if row.y < self.top {
            let head = self.layout.head(spot.track).map(|head| head.y);
            self.top = head.filter(|y| bottom - y <= room).unwrap_or(row.y);
        } else if bottom > self.top + room {
            self.top = bottom - room;
        }
        self.scroll(0.0);
    }

    /// Changes what is around the lanes: the lane of the selected slice stays in view if it was, or if there was no room for it
    /// yet. (A slice may be sought before the picture has its height, and before the device's idle time is above the lanes.)
    pub(super) fn keep_in_view(&mut self, change: impl FnOnce(&mut Self)) {
        let room = self.height - self.ceiling();
        let is_in_view = |spot: &Spot| {
            self.layout.lane(spot.track, spot.lane).is_none_or(|row| {
                let is_within = self.top <= row.y && row.y + row.height <= self.top + room;
                is_within || room < row.height
            })
        };
        let held = self.selected.filter(is_in_view);
        change(self);
        if let Some(spot) = held {
            self.show_lane(spot);
        }
    }
}
