//! The order of tracks as a person wants it. What is kept of it names kinds and numbers, nothing of a trace: `s1 s0 -t2 ^t0` is the
//! second stream above the first, the third thread hidden, the busiest one pinned.

use std::collections::BTreeSet;

use kinetoscope::lanes::Kind;
use kinetoscope::report::units;
use kinetoscope::scene::{Anchor, Ink, Tone};
use kinetoscope::trace::sort_numbers;

use super::Look;
use super::layout::HEAD;

/// Tracks that are kept: the order of more is nobody's wish.
const MOST_KEPT: usize = 500;

/// What a person did to the order of tracks.
#[derive(Debug, Default)]
pub(super) struct Arranged {
    /// Tracks from the top, as they are kept; none in their first order.
    order: Vec<Name>,
    /// Tracks that are hidden.
    pub(super) hidden: BTreeSet<usize>,
    /// What was kept before and is of tracks that are not there yet (memory comes late).
    awaited: Option<String>,
}

/// How a track is kept: a letter for its kind, and its number among those of the kind in their first order.
type Name = (char, u32);

/// What the head of a track offers to a pointer, from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    Up,
    Down,
    Pin,
    Hide,
}

const CONTROLS: [(Control, &str); 4] =
    [(Control::Up, "↑"), (Control::Down, "↓"), (Control::Pin, "Pin"), (Control::Hide, "Hide")];
/// px of a control.
const CONTROL: f32 = 36.0;

impl Look {
    /// All tracks in the order of the program: memory stands between the devices and the threads, and is known last.
    fn first_order(&self) -> Vec<usize> {
        let of = |is_thread: bool| {
            let tracks = self.lanes.tracks.iter().enumerate();
            tracks.filter(move |(_, track)| (track.kind == Kind::Thread) == is_thread)
        };
        of(false).chain(of(true)).map(|(at, _)| at).collect()
    }

    /// The name of each track. Lanes of the repair have none: they follow their track.
    #[inline(never)]
    fn names(&self) -> Vec<Option<Name>> {
        let mut names = vec![None; self.lanes.tracks.len()];
        let mut counts: [(char, u32); 6] =
            [('p', 0), ('s', 0), ('a', 0), ('m', 0), ('t', 0), ('c', 0)];
        for track in self.first_order() {
            let of = &self.lanes.tracks[track];
            if of.is_of_repair() {
                continue;
            }
            let (letter, n) = match of.kind {
                Kind::Steps => &mut counts[0],
                Kind::Stream => &mut counts[1],
                Kind::StreamAnnotations => &mut counts[2],
                Kind::Memory => &mut counts[3],
                Kind::Thread => &mut counts[4],
                Kind::Counter => &mut counts[5],
            };
            names[track] = Some((*letter, *n));
            *n += 1;
        }
        names
    }

    /// All tracks, hidden ones too, in the order that a person gave them. One that is not kept stands below the one before it.
    #[inline(never)]
    pub(super) fn all_tracks(&self) -> Vec<usize> {
        let first = self.first_order();
        if self.arranged.order.is_empty() {
            return first;
        }
        let names = self.names();
        let mut last = 0;
        let mut places = Vec::new();
        for track in &first {
            let known = |name: Name| self.arranged.order.iter().position(|of| *of == name);
            last = names[*track].and_then(known).map_or(last, |at| at + 1);
            places.push(last);
        }
        let mut order: Vec<u32> = (0..first.len() as u32).collect();
        let key = |at: u32| (places[at as usize], at);
        sort_numbers(&mut order, &|a, b| key(a).cmp(&key(b)));
        order.into_iter().map(|at| first[at as usize]).collect()
    }

    /// The track of the selected slice, else the one below the pointer.
    fn meant(&mut self) -> Option<usize> {
        let pointed = self.pointer.and_then(|(_, y)| self.row_at(y)).map(|row| row.track);
        let meant = self.selected.map(|spot| spot.track).or(pointed);
        if meant.is_none() {
            self.says = Some("Select a slice of the track first.".to_owned());
        }
        meant
    }

    fn label(&self, track: usize) -> String {
        self.lanes.tracks.get(track).map(|track| track.label.clone()).unwrap_or_default()
    }

    /// Moves the track up or down by one.
    pub(super) fn move_track(&mut self, up: bool) {
        if let Some(track) = self.meant() {
            self.move_by_one(track, up);
        }
    }

    fn move_by_one(&mut self, track: usize, up: bool) {
        let shown: Vec<usize> = self.layout.tracks().collect();
        let at = shown.iter().position(|of| *of == track);
        let other = at.and_then(|at| if up { at.checked_sub(1) } else { Some(at + 1) });
        let other = other.and_then(|at| shown.get(at)).copied();
        let is_pinned = |track: &usize| self.pinned.contains(track);
        match other.filter(|other| is_pinned(other) == is_pinned(&track)) {
            Some(other) => self.put(track, other, !up),
            None => {
                let label = self.label(track);
                let end = if up { "first" } else { "last" };
                self.says = Some(format!("{label} is the {end} of its group."));
            }
        }
    }

    /// Puts a track above or below another one.
    fn put(&mut self, track: usize, other: usize, below: bool) {
        let move_in = |tracks: &mut Vec<usize>| {
            tracks.retain(|of| *of != track);
            let at = tracks.iter().position(|of| *of == other).unwrap_or(tracks.len());
            tracks.insert((at + usize::from(below)).min(tracks.len()), track);
        };
        if self.pinned.contains(&track) {
            move_in(&mut self.pinned);
        } else {
            let mut all = self.all_tracks();
            move_in(&mut all);
            let names = self.names();
            let names = all.into_iter().filter_map(|track| names[track]);
            self.arranged.order = names.take(MOST_KEPT).collect();
        }
        self.lay_out();
        self.keep_tracks();
        self.show_head(track);
        let place = if below { "below" } else { "above" };
        self.says = Some(format!("{} is {place} {}.", self.label(track), self.label(other)));
    }

    /// A track was dragged by its head to a height of the picture.
    pub(super) fn drop_track(&mut self, track: usize, y: f32) {
        let Some(other) = self.row_at(y).map(|row| row.track).filter(|other| *other != track)
        else {
            return;
        };
        if self.pinned.contains(&track) == self.pinned.contains(&other) {
            let shown: Vec<usize> = self.layout.tracks().collect();
            let place = |track: usize| shown.iter().position(|of| *of == track);
            self.put(track, other, place(track) < place(other));
        }
    }

    /// Hides the track.
    pub(super) fn hide(&mut self) {
        if let Some(track) = self.meant() {
            self.hide_track(track);
        }
    }

    fn hide_track(&mut self, track: usize) {
        self.arranged.hidden.insert(track);
        self.pinned.retain(|of| *of != track);
        self.sought.remove(&track);
        if self.selected.is_some_and(|spot| spot.track == track) {
            self.select(None);
        }
        self.lay_out();
        self.keep_tracks();
        let n = units::plural(self.arranged.hidden.len() as u64, "track is", "tracks are");
        self.says =
            Some(format!("{} is hidden. {n} hidden: Shift+H shows them.", self.label(track)));
    }

    /// Shows all tracks that are hidden.
    pub(super) fn show_hidden(&mut self) {
        let n = std::mem::take(&mut self.arranged.hidden).len() as u64;
        self.lay_out();
        self.keep_tracks();
        self.says = Some(format!("{} shown again.", units::plural(n, "track is", "tracks are")));
    }

    /// All tracks in their first order, none hidden or pinned.
    pub(super) fn reset_tracks(&mut self) {
        self.arranged = Arranged::default();
        self.pinned.clear();
        self.sought.clear();
        self.lay_out();
        self.layout_text = Some(String::new());
        self.says = Some("All tracks are shown, in their first order.".to_owned());
    }

    /// Writes down the order, to be kept.
    pub(super) fn keep_tracks(&mut self) {
        let names = self.names();
        let is_first = self.arranged.order.is_empty();
        // (Without an order of their own, only the marks are kept.)
        let mut text = String::new();
        for track in self.all_tracks() {
            let Some((letter, number)) = names[track] else { continue };
            let mark = match () {
                () if self.arranged.hidden.contains(&track) => "-",
                () if self.pinned.contains(&track) => "^",
                () => "",
            };
            if !is_first || !mark.is_empty() {
                let start = if is_first && text.is_empty() { "= " } else { "" };
                text += &format!("{start}{mark}{letter}{number} ");
            }
        }
        text.pop();
        self.arranged.awaited = None;
        self.layout_text = Some(text);
    }

    /// Arranges the tracks as they were kept. (Those that come later are arranged then.)
    pub(super) fn take_layout(&mut self, text: &str) {
        self.arranged.awaited = Some(text.to_owned());
        self.arrange_awaited();
        self.lay_out();
    }

    /// Arranges the tracks that are there now.
    pub(super) fn arrange_awaited(&mut self) {
        let Some(text) = self.arranged.awaited.clone() else { return };
        let names = self.names();
        let (mut order, mut has_order) = (Vec::new(), true);
        for word in text.split(' ').take(MOST_KEPT) {
            has_order &= word != "=";
            let mut letters = word.chars();
            let mark = letters.next().filter(|mark| matches!(mark, '-' | '^'));
            let name = if mark.is_some() { letters.as_str() } else { word };
            let mut letters = name.chars();
            let Some(letter) = letters.next() else { continue };
            let Ok(number) = letters.as_str().parse() else { continue };
            let name: Name = (letter, number);
            order.push(name);
            let Some(track) = names.iter().position(|of| *of == Some(name)) else { continue };
            match mark {
                Some('-') => {
                    self.arranged.hidden.insert(track);
                }
                Some(_) if !self.pinned.contains(&track) => self.pinned.push(track),
                _ => {}
            }
        }
        if has_order && self.arranged.order.is_empty() {
            self.arranged.order = order;
        }
    }

    fn show_head(&mut self, track: usize) {
        let Some(row) = self.layout.head(track).copied() else { return };
        let room = self.height - self.ceiling();
        if row.y < self.top || row.y + row.height > self.top + room {
            self.top = row.y;
        }
        self.scroll(0.0);
    }

    /// The control of a head at a place of the picture.
    pub(super) fn control_at(&self, x: f32) -> Option<Control> {
        let from_right = ((self.width - x) / CONTROL).floor();
        let nth = CONTROLS.len().checked_sub(1 + from_right.max(0.0) as usize)?;
        CONTROLS.get(nth).map(|(control, _)| *control)
    }

    /// Uses a control of a head.
    pub(super) fn control(&mut self, control: Control, track: usize) {
        match control {
            Control::Up => self.move_by_one(track, true),
            Control::Down => self.move_by_one(track, false),
            Control::Pin => {
                self.pin(track);
                self.keep_tracks();
            }
            Control::Hide => self.hide_track(track),
        }
        self.is_dirty = true;
    }

    /// The controls of the head below the pointer; where a dragged track will be.
    pub(super) fn draw_controls(&self, ink: &mut Vec<Ink>) {
        let Some(row) = self.pointer.and_then(|(_, y)| self.row_at(y)) else { return };
        let top = self.ceiling() - self.top;
        if self.dragged_track().is_some_and(|track| track != row.track) {
            let Some(head) = self.layout.head(row.track) else { return };
            let y = (head.y + top).max(self.ceiling());
            ink.push(Ink::Box { x: 0.0, y, width: self.width, height: 3.0, tone: Tone::Accent });
            return;
        }
        if row.lane.is_some() || self.drag.is_some() {
            return;
        }
        let y = row.y + top;
        let width = CONTROL * CONTROLS.len() as f32;
        let x = self.width - width;
        ink.push(Ink::Box { x, y, width, height: HEAD, tone: Tone::Ground });
        for (nth, (_, label)) in CONTROLS.iter().enumerate() {
            let (left, y) = (x + CONTROL * nth as f32, y + 14.0);
            let (x, text) = (left + CONTROL / 2.0, (*label).to_owned());
            ink.push(Ink::Box {
                x: left,
                y: y - 14.0,
                width: 1.0,
                height: HEAD,
                tone: Tone::Strong,
            });
            ink.push(Ink::Text { x, y, anchor: Anchor::Middle, text, tone: Tone::Text });
        }
    }
}

#[cfg(test)]
mod tests {
    use kinetoscope::scene::{Input, Key, Pointer};

    use super::super::tests::{look, look_at, point, press};
    use super::*;
    use crate::protocol::Surface;

    fn labels(look: &Look) -> Vec<&str> {
        look.layout.tracks().map(|track| look.lanes.tracks[track].label.as_str()).collect()
    }

    /// Presses a key; what is to be kept then.
    fn kept(look: &mut Look, key: Key, shift: bool) -> Option<String> {
        look.take(Surface::Over, &Input::Key { key, shift });
        look.news().and_then(|looked| looked.layout)
    }

    #[test]
    fn a_track_goes_up_and_the_next_file_has_the_same_order() {
        let mut look = look();
        assert_eq!(labels(&look), ["GPU 0, stream 7", "Thread 1"]);
        assert_eq!(press(&mut look, Key::TrackUp), "Select a slice of the track first.");
        press(&mut look, Key::Forward);
        assert_eq!(press(&mut look, Key::TrackUp), "GPU 0, stream 7 is the first of its group.");
        let text = kept(&mut look, Key::TrackDown, false).expect("it is to be kept");
        assert_eq!(text, "t0 s0", "nothing of the trace");
        assert_eq!(labels(&look), ["Thread 1", "GPU 0, stream 7"]);

        let mut next = super::super::tests::look();
        next.take(Surface::Over, &Input::Layout(text));
        assert_eq!(labels(&next), ["Thread 1", "GPU 0, stream 7"]);
        assert_eq!(kept(&mut next, Key::ResetTracks, false).as_deref(), Some(""));
        assert_eq!(labels(&next), ["GPU 0, stream 7", "Thread 1"]);
    }

    #[test]
    fn a_hidden_track_stays_hidden_until_it_is_shown_or_sought() {
        let mut look = look();
        press(&mut look, Key::Forward);
        assert_eq!(kept(&mut look, Key::Hide, false).as_deref(), Some("= -s0"));
        assert_eq!(labels(&look), ["Thread 1"]);
        let mut next = super::super::tests::look();
        next.take(Surface::Over, &Input::Layout("= -s0 -m7 nonsense ^t0".to_owned()));
        assert_eq!(labels(&next), ["Thread 1"]);
        assert_eq!(next.pinned.len(), 1);
        next.take(Surface::Over, &Input::Event(3));
        assert!(labels(&next).contains(&"GPU 0, stream 7"), "a slice of it is sought");
        assert_eq!(kept(&mut look, Key::Hide, true).as_deref(), Some(""));
        assert_eq!(labels(&look).len(), 2);
    }

    /// Three streams of a device.
    fn streams() -> Look {
        let event = |stream: usize| {
            format!(
                r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":{stream},"ts":0,"dur":9,"args":{{"device":0,"stream":{stream}}}}}"#
            )
        };
        look_at(&format!(r#"{{"traceEvents":[{},{},{}]}}"#, event(1), event(2), event(3)))
    }

    #[test]
    fn a_head_is_dragged_and_has_buttons_below_the_pointer() {
        let mut look = streams();
        let y_of = |look: &Look, track: usize| {
            look.layout.head(track).expect("it is shown").y - look.top + look.ceiling() + 10.0
        };
        let (from, to) = (y_of(&look, 0), y_of(&look, 2));
        point(&mut look, Pointer::Down, 100.0, from);
        point(&mut look, Pointer::Drag, 100.0, to);
        point(&mut look, Pointer::Up, 100.0, to);
        let numbers = |look: &Look| look.layout.tracks().collect::<Vec<_>>();
        assert_eq!(numbers(&look), [1, 2, 0]);
        assert!(look.range.is_none(), "a head selects no range");

        let y = y_of(&look, 0);
        for (x, wanted) in
            [(1000.0 - 3.5 * CONTROL, vec![1, 0, 2]), (1000.0 - 1.5 * CONTROL, vec![0, 1, 2])]
        {
            let y = if wanted[0] == 1 { y } else { y_of(&look, 0) };
            point(&mut look, Pointer::Down, x, y);
            point(&mut look, Pointer::Up, x, y);
            assert_eq!(numbers(&look), wanted);
        }
        assert_eq!(look.pinned, [0]);
        let y = y_of(&look, 1);
        point(&mut look, Pointer::Down, 999.0, y);
        point(&mut look, Pointer::Up, 999.0, y);
        assert_eq!(numbers(&look), [0, 2], "hidden");
    }

    #[test]
    fn an_svg_has_the_names_of_what_is_seen() {
        let mut look = look();
        look.take(Surface::Over, &Input::Picture("run.svg".to_owned()));
        let (name, text) = look.news().and_then(|looked| looked.file).expect("a picture");
        assert_eq!(name, "run.svg");
        assert!(text.starts_with("<svg xmlns=") && text.ends_with("</svg>\n"));
        for wanted in [
            ">softmax</text>",
            "▾ GPU 0, stream 7",
            "<title>100 µs from 0 ns after the first slice",
        ] {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
    }
}
