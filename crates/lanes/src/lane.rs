//! One lane: slices in time order that do not overlap, and sums that make a picture of any part of it cheap.

use std::ops::Range;

use report::palette::Hue;
use trace::Row;

/// Slices between two sums.
const BLOCK: usize = 64;
/// Number of hues.
const HUES: usize = Hue::ALL.len();

/// Slices that do not overlap, by start.
///
/// A sum of durations by hue is kept before every 64th slice. So the time that any run of slices covers takes two sums and at
/// most 126 slices, however many lie between.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    starts: Vec<i64>,
    ends: Vec<i64>,
    rows: Vec<Row>,
    hues: Vec<u8>,
    /// Before block `n`: the ns of each hue in all blocks before it.
    sums: Vec<[i64; HUES]>,
}

/// What a lane holds in one column of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// ns that slices cover, at most the width of the column.
    pub busy_ns: f64,
    /// The hue that covers most of it. (Of equal ones the first of [`Hue::ALL`].)
    pub hue: Hue,
    /// Slices that begin, end or go on in it.
    pub n_slices: usize,
}

impl Lane {
    /// Adds a slice that begins when the last one is over.
    pub(crate) fn push(&mut self, row: Row, start_ns: i64, end_ns: i64, hue: Hue) {
        if self.rows.len().is_multiple_of(BLOCK) {
            let mut sum = self.sums.last().copied().unwrap_or_default();
            let from = self.rows.len().saturating_sub(BLOCK);
            self.add_to(&mut sum, from..self.rows.len());
            self.sums.push(sum);
        }
        self.starts.push(start_ns);
        self.ends.push(end_ns);
        self.rows.push(row);
        self.hues.push(hue as u8);
    }

    /// Number of slices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// When a slice begins and ends.
    #[must_use]
    pub fn times(&self, at: usize) -> (i64, i64) {
        (self.starts[at], self.ends[at])
    }

    /// The event of a slice.
    #[must_use]
    pub fn row(&self, at: usize) -> Row {
        self.rows[at]
    }

    /// The hue of a slice.
    #[must_use]
    pub fn hue(&self, at: usize) -> Hue {
        Hue::ALL[usize::from(self.hues[at])]
    }

    /// The slices that lie in a part of the time, or reach into it. One without a duration lies where it begins.
    #[must_use]
    pub fn slices(&self, from: f64, to: f64) -> Range<usize> {
        let first = gallop(0, self.len(), |slice| self.is_before(slice, from));
        let last = self.starts.partition_point(|start| (*start as f64) < to);
        first..last.max(first)
    }

    /// Whether a slice is over at a time. (One without a duration is over after the time at which it lies.)
    fn is_before(&self, slice: usize, ns: f64) -> bool {
        self.ends[slice] as f64 <= ns && (self.starts[slice] as f64) < ns
    }

    /// The slice at a point, else the nearest within `slack` ns; of equally near ones the longest.
    #[must_use]
    pub fn at(&self, at_ns: f64, slack: f64) -> Option<usize> {
        let near = self.slices(at_ns - slack, at_ns + slack + f64::MIN_POSITIVE);
        let distance = |slice: &usize| {
            let (start, end) = self.times(*slice);
            (start as f64 - at_ns).max(at_ns - end as f64).max(0.0)
        };
        let length = |slice: &usize| self.ends[*slice] - self.starts[*slice];
        near.min_by(|a, b| distance(a).total_cmp(&distance(b)).then(length(b).cmp(&length(a))))
    }

    /// The slice of an event that begins at `start_ns`.
    #[must_use]
    pub fn find(&self, row: Row, start_ns: i64) -> Option<usize> {
        let first = self.starts.partition_point(|start| *start < start_ns);
        let last = self.starts.partition_point(|start| *start <= start_ns);
        (first..last).find(|slice| self.rows[*slice] == row)
    }

    /// ns that slices cover from `from` to `to`, by hue.
    fn covered(&self, slices: Range<usize>, from: f64, to: f64) -> [f64; HUES] {
        let mut found = [0.0; HUES];
        let mut add = |slice: usize| {
            let (start, end) = self.times(slice);
            let part = (end as f64).min(to) - (start as f64).max(from);
            found[usize::from(self.hues[slice])] += part.max(0.0);
        };
        let Range { start: first, end: last } = slices;
        if last - first <= 2 * BLOCK {
            (first..last).for_each(add);
            return found;
        }
        // The first and the last may reach out; those between are whole.
        add(first);
        add(last - 1);
        let mut sum = [0; HUES];
        self.add_before(&mut sum, last - 1);
        let mut before = [0; HUES];
        self.add_before(&mut before, first + 1);
        for (all, (sum, before)) in found.iter_mut().zip(sum.into_iter().zip(before)) {
            *all += (sum - before) as f64;
        }
        found
    }

    /// Adds the ns of all slices before one, by hue.
    fn add_before(&self, sum: &mut [i64; HUES], slice: usize) {
        let block = slice / BLOCK;
        for (sum, known) in sum.iter_mut().zip(self.sums[block]) {
            *sum = sum.saturating_add(known);
        }
        self.add_to(sum, block * BLOCK..slice);
    }

    fn add_to(&self, sum: &mut [i64; HUES], slices: Range<usize>) {
        for slice in slices {
            let of_hue = &mut sum[usize::from(self.hues[slice])];
            *of_hue = of_hue.saturating_add(self.ends[slice].saturating_sub(self.starts[slice]));
        }
    }

    /// What the lane holds in each of `n` columns of equal width; `None` where there is nothing.
    #[must_use]
    pub fn columns(&self, from: f64, to: f64, n: usize) -> Vec<Option<Column>> {
        let width = (to - from) / n as f64;
        let shown = self.slices(from, to);
        let mut first = shown.start;
        let column = |place: usize| {
            let (left, right) = (from + place as f64 * width, from + (place + 1) as f64 * width);
            // Both ends only move to the right, so the next one is near.
            first = gallop(first, shown.end, |slice| self.is_before(slice, left));
            let last = gallop(first, shown.end, |slice| (self.starts[slice] as f64) < right);
            if first == last {
                return None;
            }
            let covered = self.covered(first..last, left, right);
            let mut most = (0, 0.0);
            for (hue, ns) in covered.into_iter().enumerate() {
                if ns > most.1 {
                    most = (hue, ns);
                }
            }
            // Slices without a duration cover nothing, but they are there.
            let hue = if most.1 > 0.0 { Hue::ALL[most.0] } else { self.hue(first) };
            Some(Column { busy_ns: covered.iter().sum(), hue, n_slices: last - first })
        };
        (0..n).map(column).collect()
    }
}

/// The first slice from `from` on, and before `to`, of which `is_before` does not hold; it holds of those before that one only.
fn gallop(from: usize, to: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut step) = (from, 1);
    while low < to && is_before((low + step - 1).min(to - 1)) {
        low = (low + step).min(to);
        step *= 2;
    }
    let mut high = (low + step - 1).min(to);
    while low < high {
        let middle = low.midpoint(high);
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Slices one after the other: gap and duration, and a hue.
    fn lane(slices: &[(i64, i64, usize)]) -> Lane {
        let mut lane = Lane::default();
        let mut at = 0;
        for (row, (gap, dur, hue)) in slices.iter().enumerate() {
            let start = at + gap;
            at = start + dur;
            lane.push(row as Row, start, at, Hue::ALL[*hue]);
        }
        lane
    }

    /// The same by looking at every slice.
    fn plain(lane: &Lane, from: f64, to: f64) -> ([f64; HUES], usize) {
        let (mut sums, mut n) = ([0.0; HUES], 0);
        for at in 0..lane.len() {
            let (start, end) = lane.times(at);
            let (start, end) = (start as f64, end as f64);
            let part = end.min(to) - start.max(from);
            sums[lane.hue(at) as usize] += part.max(0.0);
            n += usize::from(start < to && (end > from || start >= from));
        }
        (sums, n)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_column_shows_exactly_what_is_in_it(
            slices in prop::collection::vec((0_i64..40, 0_i64..60, 0_usize..HUES), 0..900),
            from in -50.0..40_000.0_f64,
            span in 1.0..40_000.0_f64,
            n in 1_usize..60,
        ) {
            let lane = lane(&slices);
            let columns = lane.columns(from, from + span, n);
            prop_assert_eq!(columns.len(), n);
            for (place, column) in columns.iter().enumerate() {
                let width = span / n as f64;
                let (left, right) = (from + place as f64 * width, from + (place + 1) as f64 * width);
                let (sums, n_slices) = plain(&lane, left, right);
                let busy: f64 = sums.iter().sum();
                let found = column.map_or((0.0, 0), |column| (column.busy_ns, column.n_slices));
                prop_assert!((found.0 - busy).abs() < 1e-3, "column {}: {:?}, not {}", place, column, busy);
                prop_assert_eq!(found.1, n_slices, "column {}", place);
                if let Some(column) = column.filter(|_| busy > 1e-3) {
                    let most = sums.iter().copied().fold(0.0, f64::max);
                    prop_assert!(sums[column.hue as usize] > most - 1e-3, "{:?} of {:?}", column.hue, sums);
                }
            }
        }

        #[test]
        fn the_slice_at_a_point_is_the_one_that_holds_it(
            slices in prop::collection::vec((0_i64..40, 0_i64..60, 0_usize..HUES), 1..200),
            at in 0.0..10_000.0_f64,
            slack in 0.0..30.0_f64,
        ) {
            let lane = lane(&slices);
            let distance = |slice: usize| {
                let (start, end) = lane.times(slice);
                (start as f64 - at).max(at - end as f64).max(0.0)
            };
            let nearest = (0..lane.len()).map(distance).fold(f64::INFINITY, f64::min);
            match lane.at(at, slack) {
                Some(slice) => prop_assert_eq!(distance(slice), nearest),
                None => prop_assert!(nearest >= slack, "{} is near", nearest),
            }
        }
    }

    #[test]
    fn an_event_is_found_by_its_start() {
        let lane = lane(&[(0, 0, 0), (0, 0, 0), (0, 5, 0), (3, 2, 1)]);
        assert_eq!(lane.find(1, 0), Some(1));
        assert_eq!(lane.find(3, 8), Some(3));
        assert_eq!(lane.find(3, 7), None);
        assert_eq!(lane.times(3), (8, 10));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(Lane::default().columns(0.0, 10.0, 3), [None, None, None]);
        assert!(Lane::default().at(3.0, 1.0).is_none());
    }
}
