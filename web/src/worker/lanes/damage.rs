//! Before and after the repair: the slices that Perfetto drops, and where the repaired file has them.

use kinetoscope::lanes::{Becomes, Damage, Found, Spot};
use kinetoscope::report::units;
use kinetoscope::scene::{Ink, Tone, shortened, text_width};
use kinetoscope::trace::{Row as Event, sort_numbers};

use super::Look;
use super::draw::text;
use super::layout::{MINIMAP, Row, TOP};

/// Dropped slices of a lane that are drawn hollow.
const MOST_HOLLOW: usize = 400;
/// px from which on a slice is drawn hollow.
const HOLLOW: f32 = 6.0;
/// px of the line above damaged slices.
const LINE: f32 = 2.0;

/// What Perfetto drops and the repair changes.
#[derive(Default)]
pub(super) struct Repair {
    /// By slice.
    pub(super) damage: Damage,
    /// Whether another program has planned the repair.
    is_known: bool,
    /// Whether the lanes are those of the repaired file.
    is_after: bool,
    /// Before: the slices that Perfetto v51 to v56 do not show. After: those that the repair has changed.
    marked: Found,
    /// The first of these of each place, in time order: its start, where it is, and the number of the place.
    places: Vec<(i64, Spot, u32)>,
}

impl Look {
    /// Another program has planned the repair.
    pub(in super::super) fn add_damage(&mut self, damage: Damage) {
        if self.repair.is_known && self.repair.damage == damage {
            return;
        }
        let was_after = self.repair.is_after;
        if was_after {
            self.rearrange(false);
        }
        self.repair = Repair { damage, is_known: true, ..Repair::default() };
        if was_after {
            self.rearrange(true);
        }
        self.mark_damage();
        self.is_news |= self.selected.is_some();
        (self.is_dirty, self.is_over_dirty) = (true, true);
    }

    /// Shows the slices as the repaired file has them, or as the file has them.
    pub(super) fn flip(&mut self) {
        if let Some(none) = self.without_damage() {
            self.says = Some(none);
            return;
        }
        let is_after = !self.repair.is_after;
        self.rearrange(is_after);
        self.mark_damage();
        self.is_news = true;
        let of = |is_one: &dyn Fn(&Becomes) -> bool| {
            let slices = self.repair.damage.slices.iter();
            slices.filter(|slice| is_one(&slice.becomes)).count() as u64
        };
        let slices = |n| units::plural(n, "slice", "slices");
        let lanes = self.repair.damage.lanes.len() as u64;
        let (moved, instants, aside) = (
            of(&|becomes| matches!(becomes, Becomes::OnLane(_))),
            of(&|becomes| *becomes == Becomes::Instant),
            of(&|becomes| *becomes == Becomes::SetAside),
        );
        self.says = Some(match is_after {
            true => {
                let mut said = format!(
                    "After the repair: {} on {}.",
                    slices(moved),
                    units::plural(lanes, "new lane", "new lanes")
                );
                if instants + aside > 0 {
                    said += &format!(
                        " {} without a usable time are no longer slices.",
                        slices(instants + aside)
                    );
                }
                said
            }
            false => self.says_before(),
        });
    }

    fn says_before(&self) -> String {
        let lost = self.repair.damage.slices.iter().filter(|slice| slice.is_lost()).count() as u64;
        let lost = units::plural(lost, "slice", "slices");
        let stops = self.repair.damage.stops.as_ref().map(|stops| format!(" {stops}"));
        format!(
            "Before the repair: Perfetto v51 to v56 do not show {lost}.{}",
            stops.unwrap_or_default()
        )
    }

    /// Why there is nothing to compare.
    fn without_damage(&self) -> Option<String> {
        match &self.repair {
            Repair { is_known: false, .. } => Some("The repair is not planned yet.".to_owned()),
            Repair { damage, .. } if damage.is_none() => {
                Some("Perfetto shows every slice of this file in its place.".to_owned())
            }
            _ => None,
        }
    }

    /// Puts the slices into the other lanes. What is selected, found, folded and pinned stays so.
    fn rearrange(&mut self, is_after: bool) {
        let event = |spot: Spot| self.lanes.row(spot);
        let selected = self.selected.and_then(event);
        let found: Option<Vec<Event>> = self.found.as_ref().map(|found| {
            let mut events: Vec<Event> = found.spots().filter_map(event).collect();
            sort_numbers(&mut events, &|a, b| a.cmp(&b));
            events
        });
        let top = self.layout.at(self.top).map(|row| (row.track, self.top - row.y));
        let moved = self.lanes.repaired(&self.trace, &self.repair.damage, is_after);
        let now = |track: &usize| moved.get(*track).copied();
        for tracks in [&mut self.folded, &mut self.sought, &mut self.arranged.hidden] {
            for track in std::mem::take(tracks) {
                if let Some(track) = now(&track) {
                    tracks.insert(track);
                }
            }
        }
        for track in std::mem::take(&mut self.pinned) {
            match moved.get(track) {
                Some(track) if !self.pinned.contains(track) => self.pinned.push(*track),
                _ => {}
            }
        }
        self.selected = selected.and_then(|event| self.lanes.spot(&self.trace, event));
        self.read = self.read.as_ref().and_then(now);
        self.found = found.map(|events| self.lanes.of_events(&self.trace, &events));
        self.repair.is_after = is_after;
        self.lay_out();
        // (The first track that is seen stays there.)
        if let Some((track, _)) = top
            && let Some(row) = now(&track).and_then(|track| self.layout.head(track))
        {
            self.top = row.y;
            self.scroll(0.0);
        }
    }

    fn mark_damage(&mut self) {
        let is_after = self.repair.is_after;
        let slices = &self.repair.damage.slices;
        let marked =
            slices.iter().filter(|of| if is_after { of.is_changed() } else { of.is_lost() });
        let events: Vec<Event> = marked.map(|slice| slice.row).collect();
        let found = self.lanes.of_events(&self.trace, &events);
        // The first slice of each place.
        let mut places: Vec<(i64, Spot, u32)> = Vec::new();
        let n_places = slices.iter().map(|of| of.place).max().map_or(0, |most| most as usize + 1);
        let mut firsts: Vec<Option<usize>> = vec![None; n_places];
        for spot in found.spots() {
            let of = self.lanes.row(spot).and_then(|event| self.repair.damage.of(event));
            let (Some(of), Some((start, _))) = (of, self.lanes.times(spot)) else { continue };
            match firsts[of.place as usize] {
                Some(at) if places[at].0 <= start => {}
                Some(at) => places[at] = (start, spot, of.place),
                None => {
                    firsts[of.place as usize] = Some(places.len());
                    places.push((start, spot, of.place));
                }
            }
        }
        let mut order: Vec<u32> = (0..places.len() as u32).collect();
        let key = |at: u32| (places[at as usize].0, places[at as usize].2);
        sort_numbers(&mut order, &|a, b| key(a).cmp(&key(b)));
        let places = order.into_iter().map(|at| places[at as usize]).collect();
        (self.repair.marked, self.repair.places) = (found, places);
    }

    /// To the first slice of the next damaged place; behind the last one to the first.
    pub(super) fn next_damage(&mut self, back: bool) {
        if let Some(none) = self.without_damage() {
            self.says = Some(none);
            return;
        }
        let places = &self.repair.places;
        let selected = self.selected.and_then(|spot| self.lanes.row(spot));
        let own = selected.and_then(|event| self.repair.damage.of(event)).map(|of| of.place);
        let own = own.and_then(|own| places.iter().position(|(.., place)| *place == own));
        let of_slice = self.selected.and_then(|spot| self.lanes.times(spot)).map(|times| times.0);
        let from = of_slice.unwrap_or(self.window.from() as i64);
        // How many places lie before, and how many before the next one.
        let (before, until) = match own {
            Some(own) => (own, own + 1),
            None => {
                let before = places.partition_point(|(start, ..)| *start < from);
                (before, before)
            }
        };
        let next = if back {
            before.checked_sub(1).or(places.len().checked_sub(1))
        } else {
            Some(until % places.len().max(1))
        };
        let next = next.and_then(|at| Some((at, *places.get(at)?)));
        let Some((at, (_, spot, _))) = next else {
            self.says = Some(match self.repair.is_after {
                true => "The repair changes no slice that is drawn.".to_owned(),
                false => "Perfetto shows every slice that is drawn.".to_owned(),
            });
            return;
        };
        let n = places.len();
        self.range = None;
        self.arrive(Some(spot));
        self.says =
            Some(format!("Place {} of {n}: {}", at + 1, self.lanes.sentence(&self.trace, spot)));
    }

    /// What Perfetto and the repair do with a slice.
    pub(super) fn said_of_damage(&self, spot: Spot) -> Vec<String> {
        let name = |event: Event| self.trace.name_text(event).to_owned();
        let event = self.lanes.row(spot);
        event.map(|event| self.repair.damage.sentences(event, &name)).unwrap_or_default()
    }

    /// How many slices of a track are damaged, as the end of a sentence.
    pub(super) fn damage_of(&self, track: usize) -> String {
        let n = self.repair.marked.n_in_track(track);
        match n {
            0 => String::new(),
            _ if self.repair.is_after => format!(", {n} changed by the repair"),
            _ => format!(", {n} not shown by Perfetto v51 to v56"),
        }
    }

    /// A line above damaged slices, at most one a px. Those that Perfetto does not show are hollow.
    pub(super) fn draw_damage(&self, ink: &mut Vec<Ink>, row: &Row, y: f32) {
        let Some((at, lane)) = row.lane.and_then(|at| Some((at, self.lanes.lane(row.track, at)?)))
        else {
            return;
        };
        let own = self.repair.marked.in_lane(row.track, at);
        let (from, to) = self.shown();
        let shown = lane.slices(from, to);
        let first = own.partition_point(|slice| (*slice as usize) < shown.start);
        let last = own.partition_point(|slice| (*slice as usize) < shown.end);
        let own = own.get(first..last).unwrap_or_default();
        let tone = if self.repair.is_after { Tone::Accent } else { Tone::Bad };
        let is_hollow = !self.repair.is_after && own.len() <= MOST_HOLLOW;
        let mut drawn = -1.0;
        for slice in own {
            let (start, end) = lane.times(*slice as usize);
            let x = self.x_of(start as f64).max(0.0).floor();
            let right = self.x_of(end as f64).min(self.width).ceil();
            if is_hollow && right - x >= HOLLOW {
                self.hollow(ink, lane.row(*slice as usize), (x, right), (y, row.height));
            }
            if right <= drawn {
                continue;
            }
            drawn = right.max(x + 2.0);
            ink.push(Ink::Box { x, y: y + 1.0, width: drawn - x, height: LINE, tone });
        }
    }

    /// A slice that is missing: its edge and its name.
    fn hollow(
        &self,
        ink: &mut Vec<Ink>,
        event: Event,
        (x, right): (f32, f32),
        (y, height): (f32, f32),
    ) {
        let (width, y, height) = (right - x - 1.0, y + 1.0, height - 2.0);
        ink.push(Ink::Box { x, y, width, height, tone: Tone::Bad });
        let (inner, edge) = (width - 3.0, 1.5);
        ink.push(Ink::Box {
            x: x + edge,
            y: y + LINE,
            width: inner,
            height: height - LINE - edge,
            tone: Tone::Ground,
        });
        if let Some(name) = shortened(&self.name(event), inner * 0.94 - 6.0) {
            ink.push(text(x + 4.0, y + height / 2.0 + 5.0, name, Tone::Text));
        }
    }

    fn state(&self) -> Option<(&'static str, Tone)> {
        match self.repair.is_after {
            true => Some(("After the repair", Tone::Accent)),
            false if self.repair.places.is_empty() => None,
            false => Some(("Before the repair", Tone::Bad)),
        }
    }

    /// px at the right end of the axis that say so.
    pub(super) fn state_width(&self) -> f32 {
        self.state().map_or(0.0, |(label, _)| text_width(label) + 12.0)
    }

    /// Whether the lanes are those of the file or of its repair, at the right end of the axis.
    pub(super) fn draw_state(&self, ink: &mut Vec<Ink>) {
        let Some((label, tone)) = self.state() else { return };
        let width = self.state_width();
        let (x, y, height) = (self.width - width, MINIMAP, TOP - MINIMAP - 1.0);
        ink.push(Ink::Box { x, y, width, height, tone: Tone::Ground });
        ink.push(Ink::Box { x, y, width: 3.0, height, tone });
        ink.push(text(x + 8.0, y + 15.0, label.to_owned(), Tone::Text));
    }
}

#[cfg(test)]
mod tests {
    use kinetoscope::lanes::Damaged;
    use kinetoscope::scene::{Input, Key};

    use super::super::tests::{look, look_at, press, texts};
    use super::*;
    use crate::protocol::Surface;

    /// Two kernels of a stream that cross, and one that does not; the repair moves the second.
    const CROSSING: &str = r#"{"traceEvents":[
{"ph":"X","cat":"kernel","name":"long","pid":0,"tid":7,"ts":0,"dur":60,"args":{"device":0,"stream":7}},
{"ph":"X","cat":"kernel","name":"crosses","pid":0,"tid":7,"ts":40,"dur":40,"args":{"device":0,"stream":7}},
{"ph":"X","cat":"kernel","name":"apart","pid":0,"tid":7,"ts":90,"dur":10,"args":{"device":0,"stream":7}}
]}"#;

    fn damaged() -> Look {
        let mut look = look_at(CROSSING);
        let crosses = Damaged {
            row: 1,
            is_dropped: true,
            becomes: Becomes::OnLane(0),
            because_of: Some(0),
            ..Damaged::default()
        };
        let lanes = vec!["stream 7 (overlap)".to_owned()];
        look.add_damage(Damage { slices: vec![crosses], lanes, stops: None });
        look
    }

    #[test]
    fn a_key_leads_to_a_dropped_slice_and_another_shows_its_lane() {
        let mut look = look();
        assert_eq!(press(&mut look, Key::Repaired), "The repair is not planned yet.");
        look.add_damage(Damage::default());
        let none = "Perfetto shows every slice of this file in its place.";
        assert_eq!(press(&mut look, Key::Damage), none);

        let mut look = damaged();
        let ink = look.paint().remove(0).1;
        assert!(texts(&ink).contains(&"Before the repair"), "{:?}", texts(&ink));
        let head = "3 slices, busy 90.0% of the time shown, 1 not shown by Perfetto v51 to v56";
        assert!(texts(&ink).contains(&head), "{:?}", texts(&ink));
        let is_bad = |ink: &&Ink| matches!(ink, Ink::Box { tone: Tone::Bad, .. });
        assert!(ink.iter().filter(is_bad).count() >= 2, "its edge and its line");

        let said = press(&mut look, Key::Damage);
        assert_eq!(said, "Place 1 of 1: crosses: 40.0 µs at 40.0 µs on GPU 0, stream 7.");
        look.is_news = true;
        let facts = look.news().expect("it is selected").chapters.remove(0).intro;
        assert!(facts[1].starts_with("Perfetto v51 to v56 drop this slice"), "{facts:?}");
        let moves = "The repair moves it to the lane “stream 7 (overlap)”: it crosses long.";
        assert_eq!(facts[2], moves);

        assert_eq!(press(&mut look, Key::Repaired), "After the repair: 1 slice on 1 new lane.");
        let (spot, ink) = (look.selected.expect("still"), look.paint().remove(0).1);
        let label = "GPU 0, stream 7, lane of the repair: stream 7 (overlap)";
        assert_eq!(look.lanes.tracks[spot.track].label, label);
        assert!(texts(&ink).contains(&"After the repair"));
        assert_eq!(look.lanes.tracks[0].lanes.len(), 1, "nothing crosses any more");
        assert!(!ink.iter().any(|ink| is_bad(&ink)), "nothing is missing");
        let before = "Before the repair: Perfetto v51 to v56 do not show 1 slice.";
        assert_eq!(press(&mut look, Key::Repaired), before);
        assert_eq!(look.lanes.tracks.len(), 1);
    }

    #[test]
    fn what_is_pinned_and_found_stays_so_after_the_repair() {
        let mut look = damaged();
        look.take(Surface::Over, &Input::Find("crosses".to_owned()));
        look.pin(0);
        press(&mut look, Key::Repaired);
        let found = look.found.as_ref().expect("still");
        let spots: Vec<Spot> = found.spots().collect();
        assert_eq!(spots, [Spot { track: 1, lane: 0, at: 0 }]);
        assert_eq!(look.pinned, [0]);
        press(&mut look, Key::Repaired);
        let spots: Vec<Spot> = look.found.as_ref().expect("still").spots().collect();
        assert_eq!(spots, [Spot { track: 0, lane: 1, at: 0 }]);
    }
}
