//! The lanes of the repaired file: slices that the repair moves lie on lanes of their own, next to the track that they leave.

use report::palette::Hue;
use trace::{Row, Trace};

use crate::build::{Key, Lanes, Track, pack};
use crate::damage::{Becomes, Damage};

/// Slices that belong together, by the track that has them. (There are few of these lists: a map would be larger than what it saves.)
type Parts = Vec<(Key, Vec<(Row, Hue)>)>;

impl Lanes {
    /// Puts the slices where the repaired file has them, or back where the file has them. Returns where each track is now, by its
    /// old place.
    #[inline(never)]
    pub fn repaired(&mut self, trace: &Trace, damage: &Damage, is_after: bool) -> Vec<usize> {
        let mut changed = Vec::new();
        for slice in damage.slices.iter().filter(|slice| is_after && slice.is_changed()) {
            changed.push(*slice);
        }
        let before = std::mem::replace(&mut self.changed, changed);
        let mut touched: Vec<Key> = Vec::new();
        let mut changes_times = false;
        for slice in before.iter().chain(&self.changed) {
            changes_times |= slice.dur_ns.is_some();
            touched.push(Key::own(trace, slice.row));
        }
        trace::sort(&mut touched);
        touched.dedup();

        // (Lanes of the repair lie behind their own track.)
        let mut parts: Parts = Vec::new();
        let (mut own, mut keys) = (Vec::new(), Vec::new());
        for track in std::mem::take(&mut self.tracks) {
            keys.push(track.key);
            let key = Key { lane: 0, ..track.key };
            if touched.binary_search(&key).is_err() {
                own.push(track);
                continue;
            }
            let slices = part(&mut parts, key);
            for lane in &track.lanes {
                for at in 0..lane.len() {
                    slices.push((lane.row(at), lane.hue(at)));
                }
            }
            slices.extend_from_slice(&track.rest);
            if track.key == key {
                own.push(Track::new(key, track.label));
            }
        }
        for track in own {
            match parts.iter().position(|(key, _)| *key == track.key) {
                Some(at) => {
                    let (_, slices) = parts.swap_remove(at);
                    self.divide(trace, track, &slices, damage);
                }
                None => self.tracks.push(track),
            }
        }
        self.places.clear();
        for (at, track) in self.tracks.iter().enumerate() {
            self.places.insert(track.key, at);
        }
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
    #[inline(never)]
    fn divide(&mut self, trace: &Trace, track: Track, slices: &[(Row, Hue)], damage: &Damage) {
        let mut of: Parts = vec![(track.key, Vec::new())];
        let mut gone = Vec::new();
        for slice in slices {
            match crate::damage::find(&self.changed, slice.0).map(|slice| slice.becomes) {
                Some(Becomes::Instant | Becomes::SetAside) => gone.push(*slice),
                Some(Becomes::OnLane(_)) => {
                    part(&mut of, self.key(trace, slice.0)).push(*slice);
                }
                _ => of[0].1.push(*slice),
            }
        }
        let mut order: Vec<u32> = (0..of.len() as u32).collect();
        let lane = |at: u32| of[at as usize].0.lane;
        trace::sort_numbers(&mut order, &|a, b| lane(a).cmp(&lane(b)));
        for at in order {
            let (key, slices) = &mut of[at as usize];
            let name = key.lane.checked_sub(1).and_then(|lane| damage.lanes.get(lane as usize));
            let label = match name {
                Some(name) => format!("{}, lane of the repair: {name}", track.label),
                None => track.label.clone(),
            };
            let mut part = Track::new(*key, label);
            pack(trace, slices, &mut part, self.origin_ns, &self.changed);
            part.rest.append(&mut gone);
            self.tracks.push(part);
        }
    }
}

/// The slices of a track among others.
fn part(parts: &mut Parts, key: Key) -> &mut Vec<(Row, Hue)> {
    let at = parts.iter().position(|(of, _)| *of == key).unwrap_or(parts.len());
    if at == parts.len() {
        parts.push((key, Vec::new()));
    }
    &mut parts[at].1
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
