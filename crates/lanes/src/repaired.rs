//! The lanes of the repaired file: slices that the repair moves lie on lanes of their own, next to the track that they leave.

use std::collections::{BTreeMap, BTreeSet};

use report::palette::Hue;
use trace::{Row, Trace};

use crate::build::{Key, Lanes, Track, pack};
use crate::damage::{Becomes, Damage};

impl Lanes {
    /// Puts the slices where the repaired file has them, or back where the file has them. Returns where each track is now, by its
    /// old place.
    pub fn repaired(&mut self, trace: &Trace, damage: &Damage, is_after: bool) -> Vec<usize> {
        let changed = damage.slices.iter().filter(|slice| is_after && slice.is_changed());
        let before = std::mem::replace(&mut self.changed, changed.copied().collect());
        let all = before.iter().chain(&self.changed);
        let touched: BTreeSet<Key> = all.map(|slice| Key::own(trace, slice.row)).collect();
        let changes_times = before.iter().chain(&self.changed).any(|slice| slice.dur_ns.is_some());

        // (Lanes of the repair lie behind their own track.)
        let mut parts: BTreeMap<Key, Vec<(Row, Hue)>> = BTreeMap::new();
        let (mut own, mut keys) = (Vec::new(), Vec::new());
        for track in std::mem::take(&mut self.tracks) {
            keys.push(track.key);
            let key = Key { lane: 0, ..track.key };
            if !touched.contains(&key) {
                own.push(track);
                continue;
            }
            let slices = parts.entry(key).or_default();
            for lane in &track.lanes {
                slices.extend((0..lane.len()).map(|at| (lane.row(at), lane.hue(at))));
            }
            slices.extend(&track.rest);
            if track.key == key {
                own.push(Track::new(key, track.label));
            }
        }
        for track in own {
            let Some(slices) = parts.remove(&track.key) else {
                self.tracks.push(track);
                continue;
            };
            self.divide(trace, track, slices, damage);
        }
        self.places = self.tracks.iter().enumerate().map(|(at, track)| (track.key, at)).collect();
        if changes_times {
            self.overview = self.busy_times();
        }
        let place = |key: &Key| {
            let own = Key { lane: 0, ..*key };
            self.places.get(key).or_else(|| self.places.get(&own)).copied().unwrap_or_default()
        };
        keys.iter().map(place).collect()
    }

    /// Adds a track with those of its slices that stay, and the lanes of the others.
    fn divide(&mut self, trace: &Trace, track: Track, slices: Vec<(Row, Hue)>, damage: &Damage) {
        let mut of: BTreeMap<Key, Vec<(Row, Hue)>> = BTreeMap::new();
        let mut gone = Vec::new();
        of.insert(track.key, Vec::new());
        for (row, hue) in slices {
            let becomes = crate::damage::find(&self.changed, row).map(|slice| slice.becomes);
            match becomes {
                Some(Becomes::Instant | Becomes::SetAside) => gone.push((row, hue)),
                _ => of.entry(self.key(trace, row)).or_default().push((row, hue)),
            }
        }
        for (key, mut slices) in of {
            let name = key.lane.checked_sub(1).and_then(|lane| damage.lanes.get(lane as usize));
            let label = match name {
                Some(name) => format!("{}, lane of the repair: {name}", track.label),
                None => track.label.clone(),
            };
            let mut part = Track::new(key, label);
            pack(trace, &mut slices, &mut part, self.origin_ns, &self.changed);
            part.rest.append(&mut gone);
            self.tracks.push(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, slice};

    use super::*;
    use crate::damage::Damaged;
    use crate::lanes_of;

    /// Two slices that cross, one below them, and one of another thread.
    fn trace() -> Trace {
        let mut fixture = Fixture::default();
        fixture.push(slice("cpu_op", "first").on(1, 1).at(0, 100));
        fixture.push(slice("cpu_op", "crosses").on(1, 1).at(50, 100));
        fixture.push(slice("cpu_op", "within").on(1, 1).at(10, 20));
        fixture.push(slice("cpu_op", "other").on(1, 2).at(0, 10));
        fixture.finish()
    }

    fn damage(becomes: Becomes) -> Damage {
        let crosses = Damaged { row: 1, is_dropped: true, becomes, ..Damaged::default() };
        Damage { slices: vec![crosses], lanes: vec!["new".to_owned()], stops: None }
    }

    fn drawn(lanes: &Lanes, trace: &Trace) -> Vec<(String, Vec<Vec<String>>)> {
        let name = |row| trace.name_text(row).to_owned();
        let of = |track: &Track| {
            let lanes = track
                .lanes
                .iter()
                .map(|lane| (0..lane.len()).map(|at| name(lane.row(at))).collect::<Vec<_>>());
            (track.label.clone(), lanes.collect())
        };
        lanes.tracks.iter().map(of).collect()
    }

    #[test]
    fn a_moved_slice_lies_on_its_lane_and_goes_back() {
        let trace = trace();
        let (mut lanes, _) = lanes_of(&trace);
        let before = drawn(&lanes, &trace);
        let damage = damage(Becomes::OnLane(0));
        assert_eq!(lanes.repaired(&trace, &damage, true), [0, 2]);
        let after = drawn(&lanes, &trace);
        assert_eq!(after[0].1, [vec!["first".to_owned()], vec!["within".to_owned()]]);
        assert_eq!(after[1].0, format!("{}, lane of the repair: new", before[0].0));
        assert_eq!(after[1].1, [vec!["crosses".to_owned()]]);
        assert_eq!(after[2], before[1]);
        let spot = lanes.spot(&trace, 1).expect("it is drawn");
        assert_eq!((spot.track, spot.lane), (1, 0));
        assert_eq!(lanes.repaired(&trace, &damage, false), [0, 0, 1]);
        assert_eq!(drawn(&lanes, &trace), before);
        assert_eq!(lanes.of_events(&trace, &[1]).spots().count(), 1);
    }

    #[test]
    fn an_instant_is_no_slice_after_the_repair_but_comes_back() {
        let trace = trace();
        let (mut lanes, _) = lanes_of(&trace);
        let damage = damage(Becomes::Instant);
        lanes.repaired(&trace, &damage, true);
        assert_eq!((lanes.n_slices(), lanes.spot(&trace, 1)), (3, None));
        lanes.repaired(&trace, &damage, false);
        assert_eq!(lanes.n_slices(), 4);
    }

    #[test]
    fn a_shortened_slice_is_as_long_as_in_the_repaired_file() {
        let trace = trace();
        let (mut lanes, _) = lanes_of(&trace);
        let mut damage = damage(Becomes::Kept);
        damage.slices[0].dur_ns = Some(7);
        lanes.repaired(&trace, &damage, true);
        let spot = lanes.spot(&trace, 1).expect("it is drawn");
        assert_eq!(lanes.times(spot), Some((50, 57)));
        lanes.repaired(&trace, &damage, false);
        let spot = lanes.spot(&trace, 1).expect("it is drawn");
        assert_eq!(lanes.times(spot), Some((50, 150)));
    }
}
