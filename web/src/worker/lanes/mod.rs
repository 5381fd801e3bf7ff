//! A person looks at the lanes of a trace. Pure: what is done comes in as [`Input`], pictures go out as [`Ink`].

mod arrange;
mod bounds;
mod damage;
mod draw;
mod facts;
mod joined;
mod keys;
mod layout;
mod over;
mod pointer;
mod sought;
mod touch;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use kinetoscope::lanes::{Arrows, Band, Found, Lanes, Places, Spot, Told};
use kinetoscope::report::{short_name, units};
use kinetoscope::scene::{Ink, Input, Window};
use kinetoscope::trace::{Flags, Row, StringId, Trace};
use kinetoscope::{Counters, absolute_ns};

use self::arrange::Arranged;
use self::bounds::Bound;
use self::damage::Repair;
use self::joined::Joined;
use self::layout::{BAND, Layout, MOST_BANDS, TOP};
use self::pointer::Drag;
use self::touch::Fingers;
use super::svg::svg;
use super::tones::Tones;
use crate::protocol::{Chapter, Looked, Surface};

/// Letters of a name in the picture.
const MOST_LETTERS: usize = 80;

/// What a person looks at.
pub(super) struct Look {
    trace: Trace,
    lanes: Lanes,
    arrows: Arrows,
    /// Why each device stands still; empty until another program has found out.
    bands: Vec<Band>,
    /// Where replayed kernels come from; empty until then, too.
    places: Places,
    /// A moment that was to be shown before they were there.
    sought_ns: Option<i64>,
    /// What Perfetto drops and the repair changes; nothing until another program has planned it.
    repair: Repair,
    layout: Layout,
    /// The time that is shown, in ns from the first slice.
    window: Window,
    /// px that the lanes are scrolled by.
    top: f32,
    width: f32,
    height: f32,
    pointer: Option<(f32, f32)>,
    drag: Option<Drag>,
    fingers: Fingers,
    selected: Option<Spot>,
    /// In ns from the first slice.
    range: Option<(f64, f64)>,
    /// One end of the next range.
    bound: Option<Bound>,
    /// The moment that was clicked last, if no slice is there.
    clicked: Option<f64>,
    /// The track of memory or of a counter where that was.
    read: Option<usize>,
    /// In ns from the first slice, too.
    marks: Vec<f64>,
    found: Option<Found>,
    /// What names have that are searched for.
    find_text: String,
    /// Names of kernels as they are drawn.
    names: RefCell<BTreeMap<StringId, Rc<str>>>,
    folded: BTreeSet<usize>,
    /// Tracks that are kept at the top, in the order in which they were.
    pinned: Vec<usize>,
    /// What a person did to their order.
    arranged: Arranged,
    /// What names of other tracks have to have, in small letters.
    wanted: String,
    /// Tracks that are shown without that, because a slice of them was sought.
    sought: BTreeSet<usize>,
    /// Whether the lanes changed, and what lies over them.
    is_dirty: bool,
    is_over_dirty: bool,
    /// What the page has not heard of: a new selection; what was done, in words.
    is_news: bool,
    says: Option<String>,
    /// The order of tracks, to be kept; a picture to be saved.
    layout_text: Option<String>,
    file: Option<(String, String)>,
    /// Colours by name, as the page has them.
    tones: Tones,
    /// The axis that it shares with pictures of other files.
    joined: Joined,
}

impl Look {
    /// Looks at all of a trace.
    pub(super) fn new(trace: Trace) -> Self {
        let (lanes, arrows) = kinetoscope::lanes_of(&trace);
        let window = Window::of(0.0, lanes.span_ns as f64);
        let mut look = Self {
            trace,
            lanes,
            arrows,
            bands: Vec::new(),
            places: Places::default(),
            sought_ns: None,
            repair: Repair::default(),
            layout: Layout::default(),
            window,
            top: 0.0,
            width: 0.0,
            height: 0.0,
            pointer: None,
            drag: None,
            fingers: Fingers::default(),
            selected: None,
            range: None,
            bound: None,
            clicked: None,
            read: None,
            marks: Vec::new(),
            found: None,
            find_text: String::new(),
            names: RefCell::default(),
            folded: BTreeSet::new(),
            pinned: Vec::new(),
            arranged: Arranged::default(),
            wanted: String::new(),
            sought: BTreeSet::new(),
            is_dirty: true,
            is_over_dirty: true,
            is_news: false,
            says: None,
            layout_text: None,
            file: None,
            tones: Tones::default(),
            joined: Joined::default(),
        };
        look.lay_out();
        look
    }

    /// Another program has found out why the devices stand still, where replayed kernels come from, and how much memory is in use.
    pub(super) fn add_told(&mut self, told: Told) {
        let origin_ns = self.lanes.origin_ns;
        self.places = Places::of(told.places);
        self.is_news |= self.range.is_some() || self.selected.is_some();
        self.keep_in_view(|look| {
            look.bands = told.bands.iter().map(|band| Band::of(band, origin_ns)).collect();
            look.lanes.add_memory(&told.memory);
            look.arrange_awaited();
            look.lay_out();
        });
        // (It was asked for before the bands were there.)
        if let Some(ns) = self.sought_ns.take() {
            self.show_moment(ns);
        }
    }

    /// The counters of the file, whose values are read after the slices.
    pub(super) fn add_counters(&mut self, counters: &Counters) {
        self.keep_in_view(|look| {
            look.lanes.add_counters(&look.trace, &counters.texts, &counters.samples);
            look.lay_out();
        });
    }

    /// px above the lanes: the whole trace, the axis, and why the first devices stand still.
    fn ceiling(&self) -> f32 {
        TOP + BAND * self.bands.len().min(MOST_BANDS) as f32
    }

    /// Something is done to a picture.
    pub(super) fn take(&mut self, surface: Surface, input: &Input) {
        self.is_over_dirty = true;
        match input {
            Input::Size { width, height, .. } => {
                self.keep_in_view(|look| {
                    (look.width, look.height) = (*width, *height);
                    look.scroll(0.0);
                });
            }
            Input::Colours(colours) => {
                self.tones = Tones::of(colours);
                self.is_dirty = true;
            }
            Input::Pointer { what, x, y, pans } if surface == Surface::Over => {
                self.point(*what, (*x, *y), *pans);
            }
            Input::Finger { id, what, x, y } => self.touch(*id, *what, (*x, *y)),
            Input::Layout(text) => self.take_layout(text),
            Input::Picture(name) => self.file = Some((name.clone(), self.picture())),
            Input::Wheel { x, dx, dy } => self.wheel(*x, *dx, *dy),
            Input::Scroll(dy) => self.scroll(*dy),
            Input::Key { key, shift } => self.press(*key, *shift),
            Input::Find(text) => self.find(text),
            Input::Name(name) => self.show_name(name),
            Input::Tracks(text) => self.want(text),
            Input::Event(event) => self.show_event(*event),
            Input::Moment(ns) => self.show_moment(*ns),
            Input::Range(range) => self.show_range(*range),
            Input::Axis(axis) => self.take_axis(axis.as_ref()),
            Input::Shown(shown) => self.follow(shown),
            Input::Pointer { .. } | Input::Device(_) => {}
        }
    }

    /// The time at a place of the picture, in ns from the first slice.
    fn ns_at(&self, x: f32) -> f64 {
        self.window.at(f64::from(x / self.width.max(1.0)))
    }

    /// The place of a time in the picture.
    fn x_of(&self, ns: f64) -> f32 {
        (self.window.share(ns) * f64::from(self.width)) as f32
    }

    /// ns that a px shows.
    fn ns_per_px(&self) -> f64 {
        self.window.span() / f64::from(self.width.max(1.0))
    }

    /// What is shown, in ns from the first slice.
    fn shown(&self) -> (f64, f64) {
        (self.window.from(), self.window.to())
    }

    /// The name of a slice for reading: types and namespaces of kernels take more room than a slice has.
    fn name(&self, row: Row) -> Rc<str> {
        let id = self.trace.name(row);
        if !self.trace.flags(row).has(Flags::KERNEL) {
            return self.trace.strings.get(id).into();
        }
        let mut names = self.names.borrow_mut();
        let short = || short_name(self.trace.strings.get(id), MOST_LETTERS).into();
        Rc::clone(names.entry(id).or_insert_with(short))
    }

    fn scroll(&mut self, by: f32) {
        let room = (self.layout.height - (self.height - self.ceiling())).max(0.0);
        self.top = (self.top + by).clamp(0.0, room);
        self.is_dirty = true;
    }

    fn wheel(&mut self, x: f32, dx: f32, dy: f32) {
        const DOUBLES: f64 = 300.0;
        let share = f64::from(x / self.width.max(1.0)).clamp(0.0, 1.0);
        if dy != 0.0 {
            self.window.zoom((f64::from(dy) / DOUBLES).clamp(-2.0, 2.0).exp2(), share);
        }
        if dx != 0.0 {
            self.window.pan(f64::from(dx / self.width.max(1.0)));
        }
        self.is_dirty = true;
    }

    /// Another slice is the selected one.
    fn select(&mut self, spot: Option<Spot>) {
        self.selected = spot;
        self.read = self.read.filter(|_| spot.is_none());
        self.is_news = true;
    }

    fn fold(&mut self, track: usize) {
        if !self.folded.remove(&track) {
            self.folded.insert(track);
        }
        self.lay_out();
    }

    /// Keeps a track at the top, or no longer.
    fn pin(&mut self, track: usize) {
        let label = self.lanes.tracks.get(track).map_or("", |track| track.label.as_str());
        self.says = Some(match self.pinned.iter().position(|pinned| *pinned == track) {
            Some(at) => {
                self.pinned.remove(at);
                format!("{label} is in its place again.")
            }
            None => {
                self.pinned.push(track);
                format!("{label} is kept at the top.")
            }
        });
        self.lay_out();
    }

    /// Shows only tracks with this text in their names.
    fn want(&mut self, text: &str) {
        self.wanted = text.trim().to_lowercase();
        self.sought.clear();
        self.lay_out();
        if self.wanted.is_empty() {
            return;
        }
        let n = self.layout.tracks().count();
        self.says = Some(format!(
            "{n} of {} shown.",
            units::plural(self.lanes.tracks.len() as u64, "track", "tracks")
        ));
    }

    /// The tracks that are shown, from the top: the pinned ones, then those that are wanted.
    fn order(&self) -> Vec<usize> {
        let is_wanted = |track: &usize| {
            let label = self.lanes.tracks.get(*track).map(|track| track.label.to_lowercase());
            let is_wanted = label.is_some_and(|label| label.contains(&self.wanted));
            let is_wanted = is_wanted && !self.arranged.hidden.contains(track);
            !self.pinned.contains(track) && (is_wanted || self.sought.contains(track))
        };
        let all = self.all_tracks().into_iter().filter(is_wanted);
        self.pinned.iter().copied().chain(all).collect()
    }

    fn lay_out(&mut self) {
        self.layout = Layout::of(&self.lanes, &self.order(), &self.folded);
        self.scroll(0.0);
    }

    /// The pictures that have changed since they were asked for.
    pub(super) fn paint(&mut self) -> Vec<(Surface, Vec<Ink>)> {
        let mut painted = Vec::new();
        if self.width <= 0.0 || self.height <= 0.0 {
            return painted;
        }
        if std::mem::take(&mut self.is_dirty) {
            self.is_over_dirty = true;
            painted.push((Surface::Lanes, self.draw()));
        }
        if std::mem::take(&mut self.is_over_dirty) {
            painted.push((Surface::Over, self.draw_over()));
        }
        painted
    }

    /// What is seen, without what is at the pointer, as an SVG.
    fn picture(&mut self) -> String {
        let pointer = self.pointer.take();
        let ink: Vec<Ink> = self.draw().into_iter().chain(self.draw_over()).collect();
        self.pointer = pointer;
        let (from, to) = self.shown();
        let (from, span) = (from as i64, (to - from) as i64);
        let title = format!(
            "{} from {} after the first slice",
            units::time(span),
            units::moment(from, span)
        );
        svg((self.width, self.height), &title, &ink, &self.tones)
    }

    /// What the page is to say of the selection, once.
    pub(super) fn news(&mut self) -> Option<Looked> {
        let says = self.says.take();
        let (layout, file) = (self.layout_text.take(), self.file.take());
        let is_news = std::mem::take(&mut self.is_news);
        if !is_news && says.is_none() && layout.is_none() && file.is_none() {
            return None;
        }
        let (from, to) = self.shown();
        let mut sections = Vec::new();
        if let Some((a, b)) = self.range {
            let range = (a as i64, b as i64);
            let looked_at = (self.selected, &*self.find_text);
            let (trace, arrows) = (&self.trace, &self.arrows);
            sections.push(self.lanes.range(trace, arrows, &self.bands, looked_at, range));
        }
        if let Some(spot) = self.selected {
            let mut facts = self.lanes.facts(&self.trace, &self.arrows, &self.places, spot);
            facts.intro.splice(1..1, self.said_of_damage(spot));
            sections.push(facts);
            sections.push(self.lanes.lane_table(&self.trace, spot, from, to));
        }
        let read = self.read.and_then(|track| self.levels_of(track));
        sections.extend(read.zip(self.clicked).map(|(levels, at)| levels.section(at, from, to)));
        let first = sections.first().and_then(|section| section.intro.first());
        let says = says.or_else(|| first.cloned()).map(|says| self.of_file(&says));
        let says = says.unwrap_or_default();
        sections.iter_mut().for_each(|section| self.mark_as_own(section));
        let chapters = sections.into_iter().map(Chapter::drawn).collect();
        let times = self.times_of_file();
        let range = self.range.map(|(from, to)| (from as i64, to as i64));
        Some(Looked { says, chapters, times, range, layout, file, ..Looked::default() })
    }

    /// When the range is, else the selected slice, on the clock of the file.
    fn times_of_file(&self) -> Option<(i64, i64)> {
        let of_range = self.range.map(|(from, to)| (from as i64, to as i64));
        let (from, to) = of_range.or_else(|| self.lanes.times(self.selected?))?;
        let origin_ns = absolute_ns(&self.trace, self.lanes.origin_ns)?;
        Some((origin_ns.saturating_add(from), origin_ns.saturating_add(to)))
    }
}

#[cfg(test)]
mod tests;
