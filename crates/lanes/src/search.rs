//! Slices by their names.

use std::collections::BTreeMap;

use trace::{Row, Trace};

use crate::build::{Lanes, Spot};

/// The slices whose names have a text.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// By track and lane: the slices, in time order.
    of: BTreeMap<(usize, usize), Vec<u32>>,
    /// How many.
    pub n: usize,
}

impl Found {
    /// How many of a track.
    #[must_use]
    pub fn n_in_track(&self, track: usize) -> usize {
        let own = self.of.iter().filter(|((of, _), _)| *of == track);
        own.map(|(_, own)| own.len()).sum()
    }

    /// All of them, lane by lane.
    pub fn spots(&self) -> impl Iterator<Item = Spot> + '_ {
        self.of.iter().flat_map(|((track, lane), own)| {
            own.iter().map(|at| Spot { track: *track, lane: *lane, at: *at as usize })
        })
    }

    /// The slices of a lane that are found, in time order.
    #[must_use]
    pub fn in_lane(&self, track: usize, lane: usize) -> &[u32] {
        self.of.get(&(track, lane)).map_or(&[], Vec::as_slice)
    }
}

impl Lanes {
    /// Finds all slices whose names have `text`, in any letter case. (Steps are found on their threads only.)
    #[inline(never)]
    #[must_use]
    pub fn search(&self, trace: &Trace, text: &str) -> Found {
        let text = text.to_lowercase();
        self.of_names(trace, &|name| !text.is_empty() && name.to_lowercase().contains(&text))
    }

    /// Finds all slices of exactly this name.
    #[must_use]
    pub fn named(&self, trace: &Trace, name: &str) -> Found {
        self.of_names(trace, &|own| own == name)
    }

    fn of_names(&self, trace: &Trace, is_one: &dyn Fn(&str) -> bool) -> Found {
        let mut found = Found::default();
        let names = trace.strings.marked(is_one);
        if !names.contains(&true) {
            return found;
        }
        for (track, of) in self.tracks.iter().enumerate().skip(self.n_step_tracks()) {
            for (lane, slices) in of.lanes.iter().enumerate() {
                let is_found = |at: &u32| {
                    let name = trace.name(slices.row(*at as usize));
                    names.get(name.0 as usize) == Some(&true)
                };
                let own: Vec<u32> = (0..slices.len() as u32).filter(is_found).collect();
                if !own.is_empty() {
                    found.n += own.len();
                    found.of.insert((track, lane), own);
                }
            }
        }
        found
    }

    /// The slices of some events, which are sorted.
    #[inline(never)]
    #[must_use]
    pub fn of_events(&self, trace: &Trace, events: &[Row]) -> Found {
        let mut found = Found::default();
        let mut has_any = vec![false; self.tracks.len()];
        for row in events {
            if let Some(track) = self.places.get(&self.key(trace, *row)) {
                has_any[*track] = true;
            }
        }
        let tracks = self.tracks.iter().zip(has_any).enumerate();
        for (track, (of, _)) in tracks.filter(|(_, (_, has_any))| *has_any) {
            for (lane, slices) in of.lanes.iter().enumerate() {
                let is_found = |at: &u32| events.binary_search(&slices.row(*at as usize)).is_ok();
                let own: Vec<u32> = (0..slices.len() as u32).filter(is_found).collect();
                if !own.is_empty() {
                    found.n += own.len();
                    found.of.insert((track, lane), own);
                }
            }
        }
        found
    }

    /// The next slice that was found after a place in time, and the first of all behind the last one; the other way round if
    /// `back`.
    #[must_use]
    pub fn next_found(&self, found: &Found, after: Option<Spot>, back: bool) -> Option<Spot> {
        let key = |spot: Spot| Some((self.times(spot)?.0, spot.track, spot.lane, spot.at));
        let from = after.and_then(key);
        let is_nearer =
            |of: Option<Spot>, than: Spot| of.is_none_or(|of| (key(than) < key(of)) != back);
        let (mut next, mut end) = (None, None);
        for ((track, lane), slices) in &found.of {
            let spot = |at: &u32| Spot { track: *track, lane: *lane, at: *at as usize };
            let is_before = |at: &u32| {
                let own = key(spot(at));
                if back { own < from } else { own <= from }
            };
            let place = if from.is_some() { slices.partition_point(is_before) } else { 0 };
            let place = if back { place.checked_sub(1) } else { Some(place) };
            if let Some(spot) = place.and_then(|place| slices.get(place)).map(spot)
                && is_nearer(next, spot)
            {
                next = Some(spot);
            }
            let last = if back { slices.last() } else { slices.first() };
            if let Some(spot) = last.map(spot)
                && is_nearer(end, spot)
            {
                end = Some(spot);
            }
        }
        next.or(end)
    }

    /// The next slice of the lane with the same name.
    #[must_use]
    pub fn next_same(&self, trace: &Trace, spot: Spot, back: bool) -> Option<Spot> {
        let lane = self.lane(spot.track, spot.lane)?;
        let name = trace.name(self.row(spot)?);
        let is_same = |at: &usize| trace.name(lane.row(*at)) == name;
        let at = if back {
            (0..spot.at).rev().find(is_same)
        } else {
            (spot.at + 1..lane.len()).find(is_same)
        };
        at.map(|at| Spot { at, ..spot })
    }
}
