//! Sets of times: sorted, disjoint, half open.

/// From the first to before the second, in ns.
pub type Interval = (i64, i64);

/// Sorts intervals and joins those that touch; empty ones are left out.
#[inline(never)]
pub fn union(mut all: Vec<Interval>) -> Vec<Interval> {
    all.retain(|(start, end)| start < end);
    trace::sort(&mut all);
    all.dedup_by(|next, last| {
        let touches = next.0 <= last.1;
        if touches {
            last.1 = last.1.max(next.1);
        }
        touches
    });
    all
}

/// Sum of lengths.
pub fn length(all: &[Interval]) -> i64 {
    all.iter().fold(0_i64, |sum, (start, end)| sum.saturating_add(end.saturating_sub(*start)))
}

/// Whether a point lies in one of them.
#[must_use]
pub fn holds(all: &[Interval], at_ns: i64) -> bool {
    let begun = all.partition_point(|(start, _)| *start <= at_ns);
    begun.checked_sub(1).is_some_and(|last| at_ns < all[last].1)
}

/// Those of them that share a point with a window, whole.
#[must_use]
pub fn touching(all: &[Interval], (start, end): Interval) -> &[Interval] {
    let from = all.partition_point(|(_, over)| *over <= start);
    let to = all.partition_point(|(begun, _)| *begun < end).max(from);
    &all[from..to]
}

/// How long they are within a window.
#[must_use]
pub fn length_within(all: &[Interval], window: Interval) -> i64 {
    length(&both(touching(all, window), &[window]))
}

/// The times that both have.
#[inline(never)]
pub fn both(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let (mut i, mut j) = (0, 0);
    let mut found = Vec::new();
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (start, end) = (x.0.max(y.0), x.1.min(y.1));
        if start < end {
            found.push((start, end));
        }
        if x.1 < y.1 { i += 1 } else { j += 1 }
    }
    found
}

/// The times of `a` that `b` does not have.
#[inline(never)]
pub fn without(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let mut found = Vec::new();
    let mut next = 0;
    for (start, end) in a {
        let mut from = *start;
        while b.get(next).is_some_and(|(_, over)| *over <= from) {
            next += 1;
        }
        let mut at = next;
        while let Some((begun, over)) = b.get(at).filter(|(begun, _)| begun < end) {
            if from < *begun {
                found.push((from, *begun));
            }
            from = from.max(*over);
            at += 1;
        }
        if from < *end {
            found.push((from, *end));
        }
    }
    found
}

/// Collects intervals that mostly come by start, and leaves out what the last one holds.
#[derive(Clone, Debug, Default)]
pub struct Collector(Vec<Interval>);

impl Collector {
    /// Adds one.
    pub fn add(&mut self, start: i64, end: i64) {
        match self.0.last() {
            Some((begun, over)) if *begun <= start && end <= *over => {}
            _ => self.0.push((start, end)),
        }
    }

    /// Their union.
    pub fn union(self) -> Vec<Interval> {
        union(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_times() {
        let a = union(vec![(10, 20), (0, 5), (5, 7), (30, 30), (15, 25)]);
        assert_eq!(a, [(0, 7), (10, 25)]);
        assert_eq!(length(&a), 22);
        assert_eq!(
            [-1, 0, 6, 7, 10, 24, 25].map(|at| holds(&a, at)),
            [false, true, true, false, true, true, false]
        );
        assert_eq!(touching(&a, (6, 10)), [(0, 7)]);
        assert_eq!(touching(&a, (7, 11)), [(10, 25)]);
        assert!(touching(&a, (7, 10)).is_empty() && touching(&a, (40, 30)).is_empty());
        let b = [(3, 12), (20, 40)];
        assert_eq!(both(&a, &b), [(3, 7), (10, 12), (20, 25)]);
        assert_eq!(without(&a, &b), [(0, 3), (12, 20)]);
        assert_eq!(without(&b, &a), [(7, 10), (25, 40)]);
        assert_eq!(without(&[(0, 100)], &[(0, 10), (10, 20), (90, 100)]), [(20, 90)]);
        assert_eq!(without(&a, &[]), a);
        assert!(both(&a, &[]).is_empty());
    }

    #[test]
    fn what_the_last_one_holds_is_left_out() {
        let mut collector = Collector::default();
        for (start, end) in [(0, 10), (2, 3), (5, 12), (4, 5)] {
            collector.add(start, end);
        }
        assert_eq!(collector.0.len(), 3);
        assert_eq!(collector.union(), [(0, 12)]);
    }
}
