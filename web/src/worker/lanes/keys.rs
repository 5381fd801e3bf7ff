//! Keys and buttons. Perfetto's keys where it has one.

use kinetoscope::lanes::{Band, Spot};
use kinetoscope::scene::Key;

use super::Look;

/// How much one press zooms.
const ZOOM: f64 = 0.5;
/// The share of the width that one press moves.
const PAN: f64 = 0.2;
/// Slices that an arrow with Shift passes.
const STRIDE: usize = 10;
/// px of a gap that is worth a look.
const LEAST_GAP: f64 = 2.0;
/// px that an arrow scrolls where nothing is selected.
const SCROLL: f32 = 60.0;

impl Look {
    pub(super) fn press(&mut self, key: Key, shift: bool) {
        let stride = if shift { STRIDE } else { 1 };
        self.is_dirty = true;
        match key {
            Key::ZoomIn => self.zoom(ZOOM),
            Key::ZoomOut => self.zoom(1.0 / ZOOM),
            Key::PanLeft => self.window.pan(-PAN),
            Key::PanRight => self.window.pan(PAN),
            Key::Whole => self.window.show_all(),
            Key::Back => self.step(|at| at.checked_sub(stride)),
            Key::Forward => self.step(|at| Some(at + stride)),
            Key::First => self.step(|_| Some(0)),
            Key::Last => self.step(|_| Some(usize::MAX)),
            Key::Up => self.change_lane(true),
            Key::Down => self.change_lane(false),
            Key::PreviousSame => {
                self.go(|look, spot| look.lanes.next_same(&look.trace, spot, true))
            }
            Key::NextSame => self.go(|look, spot| look.lanes.next_same(&look.trace, spot, false)),
            Key::Cause => self.go(Self::cause),
            Key::Effect => self.go(Self::effect),
            Key::Fit => self.fit(),
            Key::Range => {
                let times = self.selected.and_then(|spot| self.lanes.times(spot));
                self.range = times.map(|(start, end)| (start as f64, end as f64));
                self.bound = None;
                self.is_news = true;
            }
            Key::RangeStart => self.bound(false),
            Key::RangeEnd => self.bound(true),
            Key::Gap => self.gap(shift),
            Key::Mark => self.mark(),
            Key::Fold => {
                if let Some(spot) = self.selected {
                    self.fold(spot.track);
                }
            }
            Key::Pin => {
                if let Some(spot) = self.selected {
                    self.pin(spot.track);
                    self.keep_tracks();
                }
            }
            Key::Repaired => self.flip(),
            Key::Damage => self.next_damage(shift),
            Key::TrackUp => self.move_track(true),
            Key::TrackDown => self.move_track(false),
            Key::Hide if shift => self.show_hidden(),
            Key::Hide => self.hide(),
            Key::ResetTracks => self.reset_tracks(),
            Key::Found => {
                let next = self
                    .found
                    .as_ref()
                    .and_then(|found| self.lanes.next_found(found, self.selected, shift));
                self.arrive(next);
            }
            Key::Clear => {
                (self.range, self.selected) = (None, None);
                (self.bound, self.clicked, self.read) = (None, None, None);
                self.marks.clear();
                self.is_news = true;
            }
            Key::Peak | Key::Axis | Key::Layers => {}
        }
    }

    /// Zooms at the selected slice, at the pointer, or in the middle.
    fn zoom(&mut self, factor: f64) {
        let of_pointer = self.pointer.map(|(x, _)| f64::from(x / self.width.max(1.0)));
        let of_slice = self
            .selected
            .and_then(|spot| self.lanes.times(spot))
            .map(|(start, end)| self.window.share(f64::midpoint(start as f64, end as f64)));
        let is_shown = |share: &f64| (0.0..=1.0).contains(share);
        let share = of_pointer.or(of_slice).filter(is_shown).unwrap_or(0.5);
        self.window.zoom(factor, share);
    }

    /// To another slice of the lane; the first slice of all where none is selected.
    fn step(&mut self, to: impl Fn(usize) -> Option<usize>) {
        let Some(spot) = self.selected else {
            let first = self.layout.tracks().find_map(|track| {
                let is_shown = self.lanes.lane(track, 0).is_some_and(|lane| !lane.is_empty());
                is_shown.then_some(Spot { track, lane: 0, at: 0 })
            });
            return self.arrive(first);
        };
        let last = self.lanes.lane(spot.track, spot.lane).map_or(0, |lane| lane.len() - 1);
        let at = to(spot.at).unwrap_or(0).min(last);
        self.arrive(Some(Spot { at, ..spot }));
    }

    /// To the slice above or below, of the next lane that has one near.
    fn change_lane(&mut self, up: bool) {
        let Some(spot) = self.selected else {
            return self.scroll(if up { -SCROLL } else { SCROLL });
        };
        let Some((start, end)) = self.lanes.times(spot) else { return };
        let middle = f64::midpoint(start as f64, end as f64);
        let place = |track: usize, lane: usize| {
            self.layout.rows.iter().position(|row| row.track == track && row.lane == Some(lane))
        };
        let Some(from) = place(spot.track, spot.lane) else { return };
        let rows = &self.layout.rows;
        let others: Vec<_> = if up {
            rows[..from].iter().rev().copied().collect()
        } else {
            rows[from + 1..].to_vec()
        };
        // As far away as the picture is wide.
        let slack = self.window.span();
        let next = others.into_iter().find_map(|row| {
            let lane = row.lane?;
            let at = self.lanes.lane(row.track, lane)?.at(middle, slack)?;
            Some(Spot { track: row.track, lane, at })
        });
        self.arrive(next);
    }

    fn go(&mut self, to: impl Fn(&Self, Spot) -> Option<Spot>) {
        let next = self.selected.and_then(|spot| to(self, spot));
        self.arrive(next);
    }

    /// Selects a slice and shows it; says so where there is none.
    pub(super) fn arrive(&mut self, spot: Option<Spot>) {
        match spot {
            Some(spot) => {
                self.select(Some(spot));
                self.reveal(spot);
            }
            None => self.says = Some("No such slice.".to_owned()),
        }
    }

    /// What launched a slice, else what encloses it.
    fn cause(&self, spot: Spot) -> Option<Spot> {
        let launch = self.arrows.launch_of(self.lanes.row(spot)?);
        launch
            .and_then(|launch| self.lanes.spot(&self.trace, launch))
            .or_else(|| self.lanes.around(spot).first().copied())
    }

    /// The first GPU slice that calls in a slice launched.
    fn effect(&self, spot: Spot) -> Option<Spot> {
        let mut first = None;
        self.lanes.each_launched(&self.trace, &self.arrows, spot, |_, slice| {
            let start = |spot: Spot| self.lanes.times(spot).map(|(start, _)| start);
            if first.is_none_or(|first| start(slice) < start(first)) {
                first = Some(slice);
            }
        });
        first
    }

    /// Shows the range, else the selected slice.
    fn fit(&mut self) {
        let of_slice = || {
            let (start, end) = self.lanes.times(self.selected?)?;
            let margin = (end - start) as f64 * 0.05;
            Some((start as f64 - margin, end as f64 + margin))
        };
        if let Some((from, to)) = self.range.or_else(of_slice) {
            self.window.show(from, to);
        }
    }

    /// Selects the next time in which a device stands still, of those that can be seen at this zoom.
    fn gap(&mut self, back: bool) {
        let of_slice =
            || self.lanes.times(self.selected?).map(|(from, to)| (from as f64, to as f64));
        let (from, to) = self.range.or_else(of_slice).unwrap_or_else(|| match back {
            true => (self.window.to(), self.window.to()),
            false => (self.window.from(), self.window.from()),
        });
        // (The range may be a piece of a gap: the next one is another gap.)
        let whole = |ns: f64| {
            let own = |band: &Band| Some(band.whole(band.idle.slices(ns, ns + 1.0).next()?));
            self.bands.iter().find_map(own)
        };
        let is_range = self.range.is_some();
        let around = whole(from)
            .filter(|around| is_range && around.0 as f64 <= from && to <= around.1 as f64);
        let (from, to) = around.map_or((from, to), |(from, to)| (from as f64, to as f64));
        let least_ns = LEAST_GAP * self.ns_per_px();
        let of_band = |band: &Band| match back {
            true => band.before(from, least_ns),
            false => band.after(to, least_ns),
        };
        let gaps = self.bands.iter().filter_map(of_band);
        let next = if back { gaps.max_by_key(|gap| gap.1) } else { gaps.min_by_key(|gap| gap.0) };
        let Some((from, to)) = next else {
            self.says = Some(match self.bands.is_empty() {
                true => "Why the GPU is idle is not known yet.".to_owned(),
                false => "No such gap of two px or more: zoom in for shorter ones.".to_owned(),
            });
            return;
        };
        let (from, to) = (from as f64, to as f64);
        if from < self.window.from() || to > self.window.to() {
            let (middle, span) = (f64::midpoint(from, to), self.window.span());
            self.window.show(middle - span / 2.0, middle + span / 2.0);
        }
        self.range = Some((from, to));
        self.bound = None;
        self.is_news = true;
    }

    fn mark(&mut self) {
        let Some((start, _)) = self.selected.and_then(|spot| self.lanes.times(spot)) else {
            return;
        };
        let at = start as f64;
        match self.marks.iter().position(|mark| *mark == at) {
            Some(place) => {
                self.marks.remove(place);
            }
            None => self.marks.push(at),
        }
    }
}
