//! A person looks at a snapshot: memory over its events, and the blocks at a moment. Pure: what is done comes in as
//! [`Input`], pictures go out as [`Ink`].

mod blocks;
mod chart;

use kinetoscope::memory::{By, Chart, Column, Explorer, Stacking};
use kinetoscope::scene::{Ink, Input, Key, Pointer, Window};
use kinetoscope::{MemoryTimeline, Snapshot};

use crate::protocol::{Chapter, Looked, Surface};

/// A pointer that moves less was a click.
const SLOP: f32 = 5.0;
/// How much one press or click zooms.
const ZOOM: f64 = 0.5;
/// The share of the width that one press moves.
const PAN: f64 = 0.2;
/// Pixels of a wheel that double what is shown.
const WHEEL: f64 = 300.0;
/// Events that an arrow with Shift passes.
const STRIDE: usize = 10;

/// Where a button went down, and what the drag does.
#[derive(Clone, Copy, Debug)]
struct Drag {
    x: f32,
    y: f32,
    pans: bool,
    /// The window and the first row where it began.
    window: Window,
    top: f32,
    is_far: bool,
}

/// One picture: how large it is, and where the pointer is over it.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    width: f32,
    height: f32,
    pointer: Option<(f32, f32)>,
    is_dirty: bool,
}

/// What a person looks at.
pub(super) struct Look {
    devices: Vec<i64>,
    /// What is looked at, if not devices of a snapshot.
    timelines: Vec<MemoryTimeline>,
    /// The device, by its place in the list.
    device: usize,
    chosen: Option<Explorer>,
    by: By,
    window: Window,
    /// The state that the cursor stands at.
    cursor: usize,
    /// An address in the block that is selected.
    selected: Option<u64>,
    /// Whether it was selected last, so that it is what is said.
    is_picked: bool,
    /// The states that a range is between.
    range: Option<(usize, usize)>,
    drag: Option<Drag>,
    places: [Place; 2],
    /// The columns of the last drawing of the chart, with what they were made for.
    columns: Option<((Window, By, usize), Vec<Column>)>,
    /// px that the rows of blocks are scrolled by, and how much they are enlarged.
    top: f32,
    enlarged: f64,
    rows: blocks::Rows,
    /// Whether the page has not heard of the cursor or the range.
    is_news: bool,
}

impl Look {
    /// Looks at one of some devices, of which the chart is given, at its peak; at the last failed allocation, if there is one.
    pub(super) fn new(
        snapshot: &Snapshot,
        devices: Vec<i64>,
        first: Option<(usize, Chart)>,
    ) -> Self {
        let mut look = Self {
            devices,
            timelines: Vec::new(),
            device: 0,
            chosen: None,
            by: By::Event,
            window: Window::of(0.0, 1.0),
            cursor: 0,
            selected: None,
            is_picked: false,
            range: None,
            drag: None,
            places: [Place::default(); 2],
            columns: None,
            top: 0.0,
            enlarged: 1.0,
            rows: blocks::Rows::default(),
            is_news: false,
        };
        if let Some((device, chart)) = first
            && let Some(number) = look.devices.get(device)
        {
            let explorer = Explorer::of_chart(snapshot, *number, chart);
            look.device = device;
            look.look_at(snapshot, explorer);
        }
        look
    }

    /// Looks at the first of some memory timelines.
    pub(super) fn of_timelines(timelines: Vec<MemoryTimeline>) -> Self {
        let nothing = Snapshot::default();
        let mut look = Self::new(&nothing, Vec::new(), None);
        look.timelines = timelines;
        look.choose(&nothing, 0);
        look
    }

    fn choose(&mut self, snapshot: &Snapshot, device: usize) {
        // (The last one goes first: each takes memory.)
        (self.chosen, self.device) = (None, device);
        let of_timeline = self.timelines.get(device).map(Explorer::of_timeline);
        let of_snapshot = || Explorer::new(snapshot, *self.devices.get(device)?);
        if let Some(explorer) = of_timeline.or_else(of_snapshot) {
            self.look_at(snapshot, explorer);
        }
    }

    fn look_at(&mut self, snapshot: &Snapshot, explorer: Explorer) {
        let marks = explorer.chart().marks();
        let at = marks.iter().rev().find(|mark| mark.is_oom).or_else(|| marks.first());
        self.cursor = at.map_or(0, |mark| mark.at);
        // Rows of a memory timeline have no meaning of their own; events of a snapshot are what a person steps through.
        let by_time = !self.timelines.is_empty() && explorer.chart().has_times();
        self.selected = None;
        (self.range, self.by) = (None, if by_time { By::Time } else { By::Event });
        self.chosen = Some(explorer);
        self.refresh();
        self.moved(snapshot);
    }

    /// Another axis, or another device: all of it.
    fn refresh(&mut self) {
        let end = self.chosen.as_ref().map_or(1.0, |explorer| explorer.chart().end(self.by));
        self.window = Window::of(0.0, end);
        self.columns = None;
        self.dirty();
    }

    /// The cursor is elsewhere.
    fn moved(&mut self, snapshot: &Snapshot) {
        if let Some(explorer) = &mut self.chosen {
            explorer.go(snapshot, self.cursor);
        }
        self.is_news = true;
        self.rows = blocks::Rows::default();
        self.dirty();
    }

    fn dirty(&mut self) {
        self.places.iter_mut().for_each(|place| place.is_dirty = true);
    }

    fn place(&self, surface: Surface) -> &Place {
        let [memory, blocks] = &self.places;
        match surface {
            Surface::Blocks => blocks,
            _ => memory,
        }
    }

    fn place_mut(&mut self, surface: Surface) -> &mut Place {
        let [memory, blocks] = &mut self.places;
        match surface {
            Surface::Blocks => blocks,
            _ => memory,
        }
    }

    /// Something is done to a picture.
    pub(super) fn take(&mut self, snapshot: &Snapshot, surface: Surface, input: &Input) {
        self.place_mut(surface).is_dirty = true;
        match *input {
            Input::Size { width, height, .. } => {
                let place = self.place_mut(surface);
                (place.width, place.height) = (width, height);
                self.columns = None;
                self.rows = blocks::Rows::default();
            }
            Input::Colours(_) => {}
            Input::Device(device) => self.choose(snapshot, device as usize),
            Input::Key { key, shift } => self.press(snapshot, surface, key, shift),
            Input::Wheel { x, dx, dy } => self.wheel(surface, x, dx, dy),
            // Of slices.
            Input::Scroll(_)
            | Input::Find(_)
            | Input::Name(_)
            | Input::Tracks(_)
            | Input::Event(_)
            | Input::Finger { .. }
            | Input::Layout(_)
            | Input::Picture(_)
            | Input::Moment(_)
            | Input::Range(_)
            | Input::Axis(_)
            | Input::Shown(_) => {}
            Input::Pointer { what, x, y, pans } => {
                self.point(snapshot, surface, what, (x, y), pans)
            }
        }
    }

    fn share(&self, surface: Surface, x: f32) -> f64 {
        let width = self.place(surface).width.max(1.0);
        f64::from(x / width).clamp(0.0, 1.0)
    }

    /// The state that is drawn at a place of the chart.
    fn state_at(&self, x: f32) -> usize {
        let Some(explorer) = &self.chosen else { return 0 };
        let width = self.place(Surface::Memory).width.max(1.0);
        let at = |x: f32| self.window.at(f64::from(x / width));
        let chart = explorer.chart();
        chart.highest(chart.states(at(x.floor()), at(x.floor() + 1.0), self.by))
    }

    fn last(&self) -> usize {
        self.chosen.as_ref().map_or(0, |explorer| explorer.chart().len().saturating_sub(1))
    }

    fn press(&mut self, snapshot: &Snapshot, surface: Surface, key: Key, shift: bool) {
        let stride = if shift { STRIDE } else { 1 };
        let share = self.cursor_share().clamp(0.0, 1.0);
        let in_blocks = surface == Surface::Blocks;
        match key {
            Key::ZoomIn if in_blocks => self.enlarge(2.0),
            Key::ZoomOut if in_blocks => self.enlarge(0.5),
            Key::Whole if in_blocks => self.enlarge(0.0),
            Key::ZoomIn => self.window.zoom(ZOOM, share),
            Key::ZoomOut => self.window.zoom(1.0 / ZOOM, share),
            Key::PanLeft => self.window.pan(-PAN),
            Key::PanRight => self.window.pan(PAN),
            Key::Whole => self.window.show_all(),
            Key::Up => self.scroll(-blocks::ROW * stride as f32),
            Key::Down => self.scroll(blocks::ROW * stride as f32),
            Key::Back => self.go(snapshot, self.cursor.saturating_sub(stride)),
            Key::Forward => self.go(snapshot, self.cursor.saturating_add(stride)),
            Key::First => self.go(snapshot, 0),
            Key::Last => self.go(snapshot, self.last()),
            Key::Peak => {
                let highest = self.chosen.as_ref().map(|explorer| {
                    let chart = explorer.chart();
                    chart.highest(match self.range {
                        Some((from, to)) => from..to + 1,
                        None => 0..chart.len(),
                    })
                });
                self.go(snapshot, highest.unwrap_or_default());
            }
            Key::Fit => self.fit(),
            Key::Axis => {
                let has_times = self.chosen.as_ref().is_some_and(|of| of.chart().has_times());
                self.by = if has_times && self.by == By::Event { By::Time } else { By::Event };
                self.refresh();
            }
            Key::Layers => {
                if let Some(explorer) = &mut self.chosen
                    && let Some(stacking) = explorer.stacking()
                {
                    explorer.stack_by(snapshot, stacking.next());
                    (self.columns, self.is_news) = (None, true);
                }
            }
            Key::NextSame if in_blocks => self.step(true),
            Key::PreviousSame if in_blocks => self.step(false),
            Key::Clear if in_blocks => self.pick(None),
            Key::Clear => {
                self.range = None;
                self.is_news = true;
            }
            // Keys of slices.
            _ => {}
        }
        self.dirty();
    }

    fn enlarge(&mut self, factor: f64) {
        self.enlarged = (self.enlarged * factor).clamp(1.0, 4096.0);
        self.top = 0.0;
        self.rows = blocks::Rows::default();
    }

    fn scroll(&mut self, by: f32) {
        let room = (self.rows.height - self.place(Surface::Blocks).height).max(0.0);
        self.top = (self.top + by).clamp(0.0, room);
    }

    fn cursor_share(&self) -> f64 {
        self.chosen
            .as_ref()
            .map_or(0.5, |explorer| self.window.share(explorer.chart().place(self.cursor, self.by)))
    }

    /// Selects the block at an address; of a free range, nothing.
    fn pick(&mut self, address: Option<u64>) {
        let walk = self.chosen.as_ref().and_then(Explorer::walk);
        let held = address.and_then(|at| walk?.held_at(at));
        self.selected = held.map(|held| held.address);
        (self.is_picked, self.is_news) = (true, true);
        self.dirty();
    }

    /// Moves the cursor, and the window with it.
    fn go(&mut self, snapshot: &Snapshot, to: usize) {
        self.cursor = to.min(self.last());
        if let Some(explorer) = &self.chosen {
            let place = explorer.chart().place(self.cursor, self.by);
            self.window.reveal(place);
        }
        self.moved(snapshot);
    }

    fn fit(&mut self) {
        if let (Some((from, to)), Some(explorer)) = (self.range, &self.chosen) {
            let place = |at| explorer.chart().place(at, self.by);
            self.window.show(place(from), place(to));
        }
    }

    fn wheel(&mut self, surface: Surface, x: f32, dx: f32, dy: f32) {
        if surface == Surface::Blocks {
            if dy != 0.0 {
                self.enlarge(if dy < 0.0 { 2.0 } else { 0.5 });
            }
            return;
        }
        let share = self.share(surface, x);
        if dy != 0.0 {
            self.window.zoom((f64::from(dy) / WHEEL).clamp(-2.0, 2.0).exp2(), share);
        }
        if dx != 0.0 {
            let width = f64::from(self.place(surface).width.max(1.0));
            self.window.pan(f64::from(dx) / width);
        }
    }

    fn point(
        &mut self,
        snapshot: &Snapshot,
        surface: Surface,
        what: Pointer,
        at: (f32, f32),
        pans: bool,
    ) {
        self.place_mut(surface).pointer = (what != Pointer::Leave).then_some(at);
        match what {
            Pointer::Hover | Pointer::Leave => {}
            Pointer::Down => {
                let (x, y) = at;
                let pans = pans || surface == Surface::Blocks;
                self.drag =
                    Some(Drag { x, y, pans, window: self.window, top: self.top, is_far: false });
            }
            Pointer::Drag => self.dragged(surface, at),
            Pointer::Up => {
                let drag = self.drag.take();
                match drag.filter(|drag| !drag.is_far) {
                    Some(_) if surface == Surface::Memory => {
                        self.range = None;
                        let to = self.state_at(at.0);
                        self.go(snapshot, to);
                    }
                    Some(_) => {
                        let (x, y) = at;
                        let address =
                            self.rows.address(x, y + self.top).map(|(_, address)| address);
                        self.pick(address);
                    }
                    _ => self.is_news |= drag.is_some_and(|drag| !drag.pans),
                }
            }
            Pointer::Double if surface == Surface::Memory => {
                if self.range.is_some() {
                    self.fit();
                } else {
                    self.window.zoom(ZOOM * ZOOM, self.share(surface, at.0));
                }
            }
            Pointer::Double => self.enlarge(2.0),
        }
    }

    fn dragged(&mut self, surface: Surface, (x, y): (f32, f32)) {
        let Some(mut drag) = self.drag else { return };
        drag.is_far |= (x - drag.x).abs().max((y - drag.y).abs()) > SLOP;
        self.drag = Some(drag);
        if !drag.is_far {
            return;
        }
        match (surface, drag.pans) {
            (Surface::Blocks, _) => {
                self.top = drag.top;
                self.scroll(drag.y - y);
            }
            (_, true) => {
                self.window = drag.window;
                self.window.pan(f64::from((drag.x - x) / self.place(surface).width.max(1.0)));
            }
            (_, false) => {
                let (a, b) = (self.state_at(drag.x), self.state_at(x));
                self.range = Some((a.min(b), a.max(b)));
            }
        }
    }

    /// The pictures that have changed since they were asked for.
    pub(super) fn paint(&mut self) -> Vec<(Surface, Vec<Ink>)> {
        let mut painted = Vec::new();
        for surface in [Surface::Memory, Surface::Blocks] {
            let place = *self.place(surface);
            if place.is_dirty && place.width > 0.0 && place.height > 0.0 {
                self.place_mut(surface).is_dirty = false;
                painted.push((
                    surface,
                    match surface {
                        Surface::Blocks => self.blocks(place),
                        _ => self.chart(place),
                    },
                ));
            }
        }
        painted
    }

    /// What the page is to say of the cursor and the range, once.
    pub(super) fn news(&mut self, snapshot: &Snapshot) -> Option<Looked> {
        let explorer = self.chosen.as_ref().filter(|_| std::mem::take(&mut self.is_news))?;
        let moment = explorer.moment(snapshot);
        let block = self.selected.and_then(|address| explorer.block(snapshot, address));
        let range = self.range.map(|(from, to)| explorer.change(snapshot, from, to));
        let says = range.as_ref().unwrap_or(&moment).intro.first().cloned().unwrap_or_default();
        let is_picked = std::mem::take(&mut self.is_picked);
        let picked = block.as_ref().filter(|_| is_picked);
        let says = match (picked.and_then(|block| block.intro.first()), &range) {
            (Some(block), _) => block.clone(),
            (None, Some(_)) => says,
            (None, None) => format!("{says} {}", explorer.event(snapshot, self.cursor)),
        };
        let chapters = range.into_iter().chain(block).chain([moment]).map(Chapter::drawn).collect();
        Some(Looked {
            device: self.device as u32,
            stacked_by: explorer.stacking().map_or("", Stacking::label).to_owned(),
            legend: legend(explorer.chart()),
            says,
            chapters,
            ..Looked::default()
        })
    }
}

/// Categories and labels of the layers that a person sees anywhere.
pub(super) fn legend(chart: &Chart) -> Vec<(String, String)> {
    let shown = chart.layers().iter().zip(chart.used_layers()).filter(|(_, used)| *used);
    shown.map(|(of, _)| (of.category.to_owned(), of.label.clone())).collect()
}

#[cfg(test)]
mod tests;
