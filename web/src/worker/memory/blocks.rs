//! The reserved memory at the cursor: ranges in rows, the blocks in them, and what is free.

use kinetoscope::memory::{Explorer, Held, Range, Walk};
use kinetoscope::report::units;
use kinetoscope::scene::{Anchor, Ink, Tone, shortened};

use super::super::hint::hint;
use super::{Look, Place};
use crate::protocol::Surface;

/// Height of a row with the gap below it.
pub(super) const ROW: f32 = 18.0;
const BAR: f32 = 14.0;
/// px between two ranges of one row.
const GAP: f32 = 3.0;
/// Narrower blocks that follow each other are drawn as one.
const LEAST: f32 = 0.75;
/// px of the outline of a block that is selected.
const LEAST_OUTLINE: f32 = 3.0;

/// A piece of a reserved range: what of it lies in one row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    /// The range, by its place in the list.
    range: usize,
    low: u64,
    high: u64,
    x: f32,
    y: f32,
}

/// Where everything lies.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    ranges: Vec<Range>,
    pieces: Vec<Piece>,
    /// Labels of groups: where, and what.
    labels: Vec<(f32, String)>,
    /// Bytes of one px; 0 before anything is laid out.
    bytes: f64,
    /// px of all rows.
    pub(super) height: f32,
}

impl Rows {
    /// Lays ranges out by pool, stream and type. Ranges that fit share a row; one that does not goes on in the next.
    fn of(mut ranges: Vec<Range>, place: &Place, enlarged: f64) -> Self {
        let group = |range: &Range| (range.pool, range.stream, range.segment_type.clone());
        ranges.sort_by_key(|range| (group(range), range.low));
        let reserved: f64 = ranges.iter().map(|range| (range.high - range.low) as f64).sum();
        let fit = (place.height / ROW - 3.0).max(2.0);
        let bytes = (reserved / f64::from(fit * place.width) / enlarged).max(1.0);
        let mut rows = Self { bytes, ..Self::default() };
        let (mut x, mut y) = (0.0, -ROW);
        let mut last = None;
        for (at, range) in ranges.iter().enumerate() {
            let of = group(range);
            if last.as_ref() != Some(&of) {
                y += ROW;
                rows.labels.push((y + BAR - 2.0, label(range)));
                (x, y) = (0.0, y + ROW);
                last = Some(of);
            }
            let mut low = range.low;
            while low < range.high {
                let wanted = ((range.high - low) as f64 / bytes) as f32;
                if x > 0.0 && x + wanted > place.width {
                    (x, y) = (0.0, y + ROW);
                }
                let room = (f64::from(place.width - x) * bytes).max(1.0) as u64;
                let high = range.high.min(low.saturating_add(room));
                rows.pieces.push(Piece { range: at, low, high, x, y });
                x += ((high - low) as f64 / bytes) as f32 + GAP;
                low = high;
                if x >= place.width && low < range.high {
                    (x, y) = (0.0, y + ROW);
                }
            }
        }
        Self { height: y + ROW, ranges, ..rows }
    }

    fn px(&self, bytes: u64) -> f32 {
        (bytes as f64 / self.bytes) as f32
    }

    /// The address at a point.
    pub(super) fn address(&self, x: f32, y: f32) -> Option<(&Range, u64)> {
        let is_at = |piece: &&Piece| {
            let width = self.px(piece.high - piece.low);
            (piece.y..piece.y + BAR).contains(&y) && (piece.x..=piece.x + width).contains(&x)
        };
        let piece = self.pieces.iter().find(is_at)?;
        let offset = (f64::from(x - piece.x) * self.bytes) as u64;
        Some((self.ranges.get(piece.range)?, (piece.low + offset).min(piece.high - 1)))
    }
}

fn label(range: &Range) -> String {
    let pool = match range.pool {
        (0, 0) => "Default pool".to_owned(),
        (a, b) => format!("Private pool ({a}, {b})"),
    };
    format!("{pool}, stream {}, {} segments", range.stream, range.segment_type)
}

impl Look {
    pub(super) fn blocks(&mut self, place: Place) -> Vec<Ink> {
        let ground = Ink::Box {
            x: 0.0,
            y: 0.0,
            width: place.width,
            height: place.height,
            tone: Tone::Ground,
        };
        let mut ink = vec![ground];
        let Some(explorer) = &self.chosen else { return ink };
        let Some(walk) = explorer.walk() else { return ink };
        if self.rows.bytes == 0.0 {
            self.rows = Rows::of(walk.ranges().collect(), &place, self.enlarged);
        }
        let selected = self.selected.and_then(|address| walk.held_at(address));
        let room = (self.rows.height - place.height).max(0.0);
        self.top = self.top.min(room);
        let is_shown = |y: f32| (-ROW..place.height).contains(&(y - self.top));
        for (y, text) in self.rows.labels.iter().filter(|(y, _)| is_shown(*y)) {
            let Some(text) = shortened(text, place.width) else { continue };
            let y = y - self.top;
            ink.push(Ink::Text { x: 2.0, y, anchor: Anchor::Start, text, tone: Tone::Muted });
        }
        for piece in self.rows.pieces.iter().filter(|piece| is_shown(piece.y)) {
            self.piece(&mut ink, (explorer, walk), piece);
            if let Some(held) = selected {
                ink.extend(self.outline(held, piece));
            }
        }
        if self.rows.pieces.is_empty() {
            let text = "Nothing is reserved at this moment.".to_owned();
            ink.push(Ink::Text { x: 2.0, y: 16.0, anchor: Anchor::Start, text, tone: Tone::Text });
        }
        if room > 0.0 {
            // Where one is in all rows.
            let (height, all) = (place.height, self.rows.height);
            let (y, height) = (height * self.top / all, height * height / all);
            let x = place.width - 4.0;
            ink.push(Ink::Box { x, y, width: 4.0, height, tone: Tone::Muted });
        }
        if let Some((x, y)) = place.pointer {
            let size = (place.width, place.height);
            hint(&mut ink, size, (x, y), &self.below((explorer, walk), x, y + self.top));
        }
        ink
    }

    /// Selects the block after the one that is selected, or the one before, in the order in which they are drawn; without one, the
    /// first.
    pub(super) fn step(&mut self, is_next: bool) {
        let place = *self.place(Surface::Blocks);
        let Some(walk) = self.chosen.as_ref().and_then(Explorer::walk) else { return };
        if self.rows.bytes == 0.0 {
            self.rows = Rows::of(walk.ranges().collect(), &place, self.enlarged);
        }
        let (mut first, mut before, mut is_found, mut found) = (None, None, false, None);
        for range in &self.rows.ranges {
            for held in walk.held_in(range.low, range.high) {
                first = first.or(Some(held.address));
                if is_found && is_next {
                    found = Some(held.address);
                    is_found = false;
                } else if Some(held.address) == self.selected {
                    (is_found, found) = (true, if is_next { self.selected } else { before });
                }
                before = Some(held.address);
            }
        }
        let to = found.or(self.selected.filter(|at| walk.held_at(*at).is_some())).or(first);
        self.pick(to);
        self.reveal(place.height);
    }

    /// Scrolls to the block that is selected.
    fn reveal(&mut self, height: f32) {
        let is_own =
            |piece: &&Piece| self.selected.is_some_and(|at| (piece.low..piece.high).contains(&at));
        if let Some(y) = self.rows.pieces.iter().find(is_own).map(|piece| piece.y)
            && (y < self.top || y + ROW > self.top + height)
        {
            self.top = (y - height / 2.0).clamp(0.0, (self.rows.height - height).max(0.0));
        }
    }

    /// The part of a block that lies in a piece, outlined.
    fn outline(&self, held: &Held, piece: &Piece) -> Option<Ink> {
        let end = held.address.saturating_add(held.size.unsigned_abs()).min(piece.high);
        let start = held.address.max(piece.low);
        if start >= end {
            return None;
        }
        let x = |address: u64| piece.x + self.rows.px(address - piece.low);
        let (top, low) = (piece.y - self.top, piece.y - self.top + BAR);
        // (A block of less than a pixel is seen, too.)
        let (left, right) = (x(start), x(end).max(x(start) + LEAST_OUTLINE));
        let points = vec![(left, top), (right, top), (right, low), (left, low), (left, top)];
        // (Blocks have the hue of the accent, too.)
        Some(Ink::Line { points, tone: Tone::Text })
    }

    fn piece(&self, ink: &mut Vec<Ink>, (explorer, walk): (&Explorer, &Walk), piece: &Piece) {
        let rows = &self.rows;
        let y = piece.y - self.top;
        let width = rows.px(piece.high - piece.low);
        ink.push(Ink::Box { x: piece.x, y, width, height: BAR, tone: Tone::Grid });
        let first = walk.held_at(piece.low).filter(|held| held.address < piece.low);
        // What is drawn as one: from, to, colour.
        let mut open: Option<(f32, f32, Tone)> = None;
        for held in first.into_iter().chain(walk.held_in(piece.low, piece.high)) {
            let end = held.address.saturating_add(held.size.unsigned_abs()).min(piece.high);
            let x = |address: u64| piece.x + rows.px(address.max(piece.low) - piece.low);
            let (from, to) = (x(held.address), x(end));
            let tone = Tone::Category(explorer.category(held));
            open = match open {
                Some((start, last, of)) if from - last < LEAST && to - from < LEAST => {
                    Some((start, to, of))
                }
                before => {
                    push(ink, before, y);
                    Some((from, to, tone))
                }
            };
        }
        push(ink, open, y);
        let edge = [(0.0, BAR), (width, BAR)];
        let edge = edge.iter().map(|(dx, dy)| (piece.x + dx, y + dy)).collect();
        ink.push(Ink::Line { points: edge, tone: Tone::Strong });
    }

    /// What lies below the pointer.
    fn below(&self, (explorer, walk): (&Explorer, &Walk), x: f32, y: f32) -> Vec<String> {
        let Some((range, address)) = self.rows.address(x, y) else { return Vec::new() };
        let mut lines = match walk.held_at(address) {
            Some(held) => vec![explorer.describe(held)],
            None => vec![free(walk.held_in(range.low, range.high), range, address)],
        };
        let kind = if range.is_expandable { "mapped run" } else { "segment" };
        let bytes = units::bytes(range.high - range.low);
        lines.push(format!("In a {kind} of {bytes} at {:#x}: {}", range.low, label(range)));
        lines
    }
}

fn push(ink: &mut Vec<Ink>, open: Option<(f32, f32, Tone)>, y: f32) {
    if let Some((from, to, tone)) = open {
        // A gap of half a pixel separates blocks that are wide enough.
        let width = if to - from > 3.0 { to - from - 0.5 } else { (to - from).max(LEAST / 2.0) };
        ink.push(Ink::Box { x: from, y, width, height: BAR, tone });
    }
}

/// The free bytes around an address.
fn free<'a>(held: impl Iterator<Item = &'a Held>, range: &Range, address: u64) -> String {
    let (mut low, mut high) = (range.low, range.high);
    for block in held {
        if block.address > address {
            high = high.min(block.address);
            break;
        }
        low = low.max(block.address.saturating_add(block.size.unsigned_abs()));
    }
    format!("Free: {}", units::bytes(high.saturating_sub(low)))
}
