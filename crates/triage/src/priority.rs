//! The priority of advice.

use std::cmp::Reverse;

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
}
