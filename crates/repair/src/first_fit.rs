//! First fit: the first of many lanes that a slice fits onto, in time that grows with their logarithm.
//!
//! Slices arrive in the importer's order, so the open slices of a lane nest and the last one ends first. A tree over the
//! lanes holds how late a slice may end on each; a heap tells which open slices have ended.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::perfetto::MAX_DEPTH;

/// Lanes being filled.
#[derive(Default)]
pub(crate) struct FirstFit {
    /// The ends of the open slices of each lane.
    open: Vec<Vec<i64>>,
    /// How late a slice may end on a lane: the leaves from `tree.len() / 2` on, above them the maximum of two.
    tree: Vec<i64>,
    /// Ends of open slices: (end, whether without a length, lane).
    ends: BinaryHeap<Reverse<(i64, bool, usize)>>,
    /// Nodes looked at, for the tests of growth.
    #[cfg(test)]
    pub n_steps: u64,
}

impl FirstFit {
    /// Puts a slice onto the first lane that takes it, a new one if none does; which one.
    pub(crate) fn place(&mut self, ts: i64, end: i64) -> usize {
        self.close(ts, end == ts);
        let lane = match self.first(end) {
            Some(lane) => lane,
            None => self.add(),
        };
        self.open[lane].push(end);
        self.ends.push(Reverse((end, end == ts, lane)));
        self.update(lane);
        lane
    }

    /// Takes away what ended. What has no length stays for others of its ns without one.
    fn close(&mut self, ts: i64, is_instant: bool) {
        while let Some(Reverse((end, was_instant, lane))) = self.ends.peek().copied() {
            if end > ts || (end == ts && was_instant && is_instant) {
                break;
            }
            self.ends.pop();
            self.open[lane].pop();
            self.update(lane);
        }
    }

    fn first(&mut self, end: i64) -> Option<usize> {
        let n_leaves = self.tree.len() / 2;
        if self.tree.get(1).is_none_or(|room| *room < end) {
            return None;
        }
        let mut node = 1;
        while node < n_leaves {
            #[cfg(test)]
            (self.n_steps += 1);
            node = if self.tree[2 * node] >= end { 2 * node } else { 2 * node + 1 };
        }
        Some(node - n_leaves)
    }

    #[inline(never)]
    fn add(&mut self) -> usize {
        let lane = self.open.len();
        self.open.push(Vec::new());
        if lane >= self.tree.len() / 2 {
            let n_leaves = (lane + 1).next_power_of_two();
            // A lane that is not there yet takes nothing.
            self.tree = vec![i64::MIN; 2 * n_leaves];
            for other in 0..lane {
                self.update(other);
            }
        }
        lane
    }

    fn update(&mut self, lane: usize) {
        let room = match self.open[lane].last() {
            None => i64::MAX,
            Some(_) if self.open[lane].len() >= MAX_DEPTH => i64::MIN,
            Some(end) => *end,
        };
        let mut node = self.tree.len() / 2 + lane;
        self.tree[node] = room;
        while node > 1 {
            #[cfg(test)]
            (self.n_steps += 1);
            node /= 2;
            self.tree[node] = self.tree[2 * node].max(self.tree[2 * node + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// First fit as it is said, lane by lane.
    fn plainly(slices: &[(i64, i64)]) -> Vec<usize> {
        let mut lanes: Vec<Vec<(i64, i64)>> = Vec::new();
        let mut placed = Vec::new();
        for (ts, end) in slices.iter().copied() {
            let takes = |lane: &mut Vec<(i64, i64)>| {
                while lane.last().is_some_and(|(open_ts, open_end)| {
                    *open_end < ts || (*open_end == ts && !(open_ts == open_end && ts == end))
                }) {
                    lane.pop();
                }
                let crosses =
                    lane.last().is_some_and(|(_, open_end)| ts < *open_end && end > *open_end);
                !crosses && lane.len() < MAX_DEPTH
            };
            let lane = lanes.iter_mut().position(takes).unwrap_or_else(|| {
                lanes.push(Vec::new());
                lanes.len() - 1
            });
            lanes[lane].push((ts, end));
            placed.push(lane);
        }
        placed
    }

    proptest! {
        #[test]
        fn places_as_a_search_lane_by_lane(mut slices in prop::collection::vec((0_i64..40, 0_i64..20), 0..120)) {
            slices.sort_by_key(|(ts, dur)| (*ts, Reverse(*dur)));
            let slices: Vec<_> = slices.into_iter().map(|(ts, dur)| (ts, ts + dur)).collect();
            let mut lanes = FirstFit::default();
            let placed: Vec<_> = slices.iter().map(|(ts, end)| lanes.place(*ts, *end)).collect();
            prop_assert_eq!(placed, plainly(&slices));
        }
    }

    /// A million slices that never end, or that all cross, or without a length at one ns: each takes a few steps.
    #[test]
    fn hostile_slices_take_few_steps_each() {
        let steps = |n: i64, slice: fn(i64, i64) -> (i64, i64)| {
            let mut lanes = FirstFit::default();
            for at in 0..n {
                let (ts, end) = slice(at, n);
                lanes.place(ts, end);
            }
            lanes.n_steps as f64 / n as f64
        };
        type Times = fn(i64, i64) -> (i64, i64);
        let kinds: [Times; 3] = [|at, _| (at, i64::MAX), |at, n| (at, n + at), |_, _| (7, 7)];
        for slice in kinds {
            let (few, many) = (steps(2_000, slice), steps(32_000, slice));
            assert!(many < 2.0 * few + 20.0, "{few} steps a slice, then {many}");
        }
    }
}
