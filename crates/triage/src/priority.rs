//! The priority of advice.

use std::cmp::Reverse;

/// Below this time nothing is advised, in ns.
const LEAST_NS: i64 = 10_000;
/// Shares of the GPU span from which advice is of priority 1, 2 and 3, in thousandths.
const PRIORITIES: [(Priority, i64); 3] =
    [(Priority::P1, 50), (Priority::P2, 20), (Priority::P3, 5)];

/// How urgent advice is, by the wall time that it saves at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// From 5% of the GPU span.
    P1,
    /// From 2%.
    P2,
    /// From 0.5%.
    P3,
}

/// The id of a row that advises nothing. (P4 was a kernel to tune; no trace shows whether that is possible.)
const NO_ADVICE: &str = "P5";

impl Priority {
    /// That of advice that saves `saved_ns` of `span_ns` at most; `None` below half a percent of it, and below 10 µs.
    pub(crate) fn of(saved_ns: i64, span_ns: i64) -> Option<Self> {
        let at_least = |permille: i64| {
            i128::from(saved_ns) * 1000 >= i128::from(span_ns) * i128::from(permille)
        };
        let worth = saved_ns >= LEAST_NS && span_ns > 0;
        let mut all = PRIORITIES.iter().filter(|(_, permille)| worth && at_least(*permille));
        all.next().map(|(priority, _)| *priority)
    }

    /// The word for it in tables and artifacts.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::P1 => "P1",
            Self::P2 => "P2",
            Self::P3 => "P3",
        }
    }

    /// The word for the priority of a row, of which most advise nothing.
    #[must_use]
    pub fn id_of(priority: Option<Self>) -> &'static str {
        priority.map_or(NO_ADVICE, Self::id)
    }

    /// Sorts rows by priority: what is most urgent first, what advises nothing last.
    #[must_use]
    pub fn order(priority: Option<Self>) -> impl Ord {
        Reverse(priority.map(Reverse))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_advice_are_last() {
        let mut rows = [None, Some(Priority::P3), Some(Priority::P1), None, Some(Priority::P2)];
        rows.sort_by_key(|priority| Priority::order(*priority));
        assert_eq!(rows.map(Priority::id_of), ["P1", "P2", "P3", "P5", "P5"]);
    }

    #[test]
    fn priorities_are_shares_of_the_span() {
        const US: i64 = 1_000;
        let of = |ns| Priority::of(ns, 18_900 * US);
        assert_eq!(of(31 * US), None, "0.16%");
        assert_eq!(of(95 * US), Some(Priority::P3));
        assert_eq!(of(400 * US), Some(Priority::P2));
        assert_eq!(of(945 * US), Some(Priority::P1));
        assert_eq!(Priority::of(9 * US, 20 * US), None, "too short to measure");
        assert_eq!(Priority::of(9 * US, 0), None);
    }
}
