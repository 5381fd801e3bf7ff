//! A number over time: a value that holds until the next one.

use std::ops::Range;

/// Values between two sums.
const BLOCK: usize = 64;

/// The lowest and the highest of some values.
pub type Bounds = (f64, f64);

/// A number over time. Times are ns from the first start, as those of the lanes.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The value before the first time; `None` where it is not recorded.
    first: Option<f64>,
    /// Sorted.
    times: Vec<i64>,
    values: Vec<f64>,
    /// The lowest and the highest of each 64.
    blocks: Vec<Bounds>,
}

impl Series {
    /// From values and their times, which are sorted.
    #[must_use]
    pub fn new(first: Option<f64>, times: Vec<i64>, values: Vec<f64>) -> Self {
        let blocks = values.chunks(BLOCK).filter_map(|block| bounds(block.iter().copied()));
        Self { first, blocks: blocks.collect(), times, values }
    }

    /// Number of values, without the one before the first time.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// A value and its time.
    #[must_use]
    pub fn value(&self, at: usize) -> Option<(i64, f64)> {
        Some((*self.times.get(at)?, *self.values.get(at)?))
    }

    /// The value at a moment.
    #[must_use]
    pub fn at(&self, ns: f64) -> Option<f64> {
        self.before(self.times.partition_point(|at| *at as f64 <= ns))
    }

    /// The value that holds when one begins.
    pub(crate) fn before(&self, at: usize) -> Option<f64> {
        at.checked_sub(1).map_or(self.first, |at| self.values.get(at).copied())
    }

    /// The values that begin between two moments; those of the first moment are among them.
    #[must_use]
    pub fn between(&self, from: f64, to: f64) -> Range<usize> {
        let first = self.times.partition_point(|at| (*at as f64) < from);
        first..self.times.partition_point(|at| (*at as f64) < to).max(first)
    }

    /// The lowest and the highest between two moments, the value that holds at the first one included.
    #[must_use]
    pub fn bounds(&self, from: f64, to: f64) -> Option<Bounds> {
        let Range { start, end } = self.between(from, to);
        let mut found = self.at(from).map(|value| (value, value));
        let mut at = start;
        while at < end {
            let (own, n) = match self.blocks.get(at / BLOCK) {
                Some(block) if at.is_multiple_of(BLOCK) && at + BLOCK <= end => (*block, BLOCK),
                _ => ((self.values[at], self.values[at]), 1),
            };
            found = Some(joined(found, own));
            at += n;
        }
        found
    }

    /// The lowest and the highest of all.
    #[must_use]
    pub fn all(&self) -> Option<Bounds> {
        let first = self.first.map(|value| (value, value));
        self.blocks.iter().fold(first, |found, block| Some(joined(found, *block)))
    }

    /// The lowest and the highest in each of `n` columns of equal width; `None` before the first value.
    #[must_use]
    pub fn columns(&self, from: f64, to: f64, n: usize) -> Vec<Option<Bounds>> {
        let width = (to - from) / n.max(1) as f64;
        let edge = |at: usize| from + width * at as f64;
        (0..n).map(|at| self.bounds(edge(at), edge(at + 1))).collect()
    }
}

fn joined(found: Option<Bounds>, (low, high): Bounds) -> Bounds {
    found.map_or((low, high), |(lowest, highest)| (lowest.min(low), highest.max(high)))
}

fn bounds(values: impl Iterator<Item = f64>) -> Option<Bounds> {
    values.fold(None, |found, value| Some(joined(found, (value, value))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_value_holds_until_the_next_one() {
        let series = Series::new(None, vec![10, 20, 20], vec![2.0, -1.0, 8.0]);
        assert_eq!(
            [0.0, 10.0, 19.9, 20.0, 900.0].map(|ns| series.at(ns)),
            [None, Some(2.0), Some(2.0), Some(8.0), Some(8.0)]
        );
        assert_eq!(series.columns(0.0, 30.0, 3), [None, Some((2.0, 2.0)), Some((-1.0, 8.0))]);
        assert_eq!(series.all(), Some((-1.0, 8.0)));
    }

    proptest! {
        #[test]
        fn columns_have_the_lowest_and_the_highest_of_their_moments(
            steps in prop::collection::vec((0_i64..5, -500_i32..500), 0..400),
            first in prop::option::of(-500_i32..500),
            from in -100_i64..500,
            long in 1_i64..900,
            n in 1_usize..50,
        ) {
            let mut now = 0;
            let times: Vec<i64> = steps.iter().map(|(after, _)| { now += after; now }).collect();
            let values: Vec<f64> = steps.iter().map(|(_, value)| f64::from(*value)).collect();
            let series = Series::new(first.map(f64::from), times.clone(), values.clone());
            let (from, to) = (from as f64, (from + long) as f64);
            for (nth, column) in series.columns(from, to, n).into_iter().enumerate() {
                let width = (to - from) / n as f64;
                let (left, right) = (from + width * nth as f64, from + width * (nth + 1) as f64);
                // A plain search through all values, in the order of the file.
                let mut all = Vec::new();
                let mut held = first.map(f64::from);
                for (time, value) in times.iter().zip(&values) {
                    let time = *time as f64;
                    if time <= left {
                        held = Some(*value);
                    }
                    if left <= time && time < right {
                        all.push(*value);
                    }
                }
                all.extend(held);
                let low = all.iter().copied().reduce(f64::min);
                let high = all.iter().copied().reduce(f64::max);
                prop_assert_eq!(column, low.zip(high));
            }
        }
    }
}
