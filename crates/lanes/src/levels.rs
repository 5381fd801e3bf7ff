//! The memory of a device over time: a level that holds until the next change.

use std::ops::Range;

use report::{Cell, Column, Row as TableRow, Table, Unit};
use serde::{Deserialize, Serialize};

/// Changes between two maxima.
const BLOCK: usize = 64;

/// The memory of a device as it goes from one program to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The device and what the level is: "Memory of GPU 0".
    pub label: String,
    /// Allocated and reserved bytes before the first change.
    first: (i64, i64),
    /// How long after the one before each change is, in ns, and by how much allocated and reserved bytes change.
    changes: Vec<(i64, i64, i64)>,
}

impl Recorded {
    /// Levels from the first one on: when each begins, on the clock of the trace (sorted), allocated and reserved bytes.
    #[must_use]
    pub fn new(label: String, first: (i64, i64), levels: &[(i64, i64, i64)]) -> Self {
        let mut last = (0_i64, first.0, first.1);
        let change = |level: &(i64, i64, i64)| {
            let change = (
                level.0.saturating_sub(last.0),
                level.1.saturating_sub(last.1),
                level.2.saturating_sub(last.2),
            );
            last = *level;
            change
        };
        let changes = levels.iter().map(change).collect();
        Self { label, first, changes }
    }
}

/// The memory of a device over time. Times are ns from the first start, as those of the lanes.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    /// The device and what the level is.
    pub label: String,
    first: (i64, i64),
    times: Vec<i64>,
    allocated: Vec<i64>,
    reserved: Vec<i64>,
    /// The highest level of each 64.
    highest: Vec<i64>,
    /// The highest of all, allocated.
    pub most: i64,
}

impl Levels {
    /// Reads one; its times are then counted from `origin_ns`.
    #[must_use]
    pub fn of(recorded: &Recorded, origin_ns: i64) -> Self {
        let mut found = Self {
            label: recorded.label.clone(),
            first: recorded.first,
            most: recorded.first.0,
            ..Self::default()
        };
        let mut level = (0_i64.saturating_sub(origin_ns), recorded.first.0, recorded.first.1);
        for (after, allocated, reserved) in &recorded.changes {
            level = (
                level.0.saturating_add(*after),
                level.1.saturating_add(*allocated),
                level.2.saturating_add(*reserved),
            );
            found.times.push(level.0);
            found.allocated.push(level.1);
            found.reserved.push(level.2);
            found.most = found.most.max(level.1);
        }
        let of_block = |block: &[i64]| block.iter().copied().max().unwrap_or_default();
        found.highest = found.allocated.chunks(BLOCK).map(of_block).collect();
        found
    }

    /// Allocated and reserved bytes at a moment.
    #[must_use]
    pub fn at(&self, ns: f64) -> (i64, i64) {
        let after = self.times.partition_point(|at| *at as f64 <= ns);
        match after.checked_sub(1) {
            Some(at) => (self.allocated[at], self.reserved[at]),
            None => self.first,
        }
    }

    /// The changes between two moments; the first moment's own is among them.
    fn changes(&self, from: f64, to: f64) -> Range<usize> {
        let first = self.times.partition_point(|at| (*at as f64) < from);
        first..self.times.partition_point(|at| (*at as f64) < to).max(first)
    }

    /// The highest allocated level between two moments.
    #[must_use]
    pub fn highest(&self, from: f64, to: f64) -> i64 {
        let own = self.changes(from, to);
        let mut highest = self.at(from).0;
        let mut at = own.start;
        while at < own.end {
            if at.is_multiple_of(BLOCK) && at + BLOCK <= own.end {
                highest = highest.max(self.highest[at / BLOCK]);
                at += BLOCK;
            } else {
                highest = highest.max(self.allocated[at]);
                at += 1;
            }
        }
        highest
    }

    /// The highest allocated level in each of `n` columns of equal width.
    #[must_use]
    pub fn columns(&self, from: f64, to: f64, n: usize) -> Vec<i64> {
        let width = (to - from) / n.max(1) as f64;
        let edge = |at: usize| from + width * at as f64;
        (0..n).map(|at| self.highest(edge(at), edge(at + 1))).collect()
    }

    fn within(&self, from: i64, to: i64) -> LevelRow {
        let own = self.changes(from as f64, to as f64);
        let begins = own.start.checked_sub(1).map_or(self.first.0, |at| self.allocated[at]);
        let mut last = begins;
        let (mut allocated, mut freed) = (0_i64, 0_i64);
        for level in &self.allocated[own] {
            let by = level.saturating_sub(last);
            if by > 0 {
                allocated = allocated.saturating_add(by);
            } else {
                freed = freed.saturating_sub(by);
            }
            last = *level;
        }
        let highest = self.highest(from as f64, to as f64).max(begins);
        LevelRow { label: self.label.clone(), begins, highest, ends: last, allocated, freed }
    }
}

/// The memory of devices in a range; `None` where nothing is recorded.
#[must_use]
pub(crate) fn table<'a>(
    levels: impl Iterator<Item = &'a Levels>,
    from: i64,
    to: i64,
) -> Option<Table> {
    let rows: Vec<LevelRow> = levels.map(|levels| levels.within(from, to)).collect();
    (!rows.is_empty()).then(|| Table::of("range-memory", "Memory in the range", &rows))
}

/// (A level below zero is of a file whose events do not add up; the finding on memory says so.)
fn bytes(level: i64) -> Cell<'static> {
    Cell::Bytes(u64::try_from(level).unwrap_or_default())
}

/// The memory of a device in a range.
struct LevelRow {
    label: String,
    begins: i64,
    highest: i64,
    ends: i64,
    allocated: i64,
    freed: i64,
}

impl TableRow for LevelRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "device",
            title: "Device",
            unit: Unit::Text,
            help: "The device.",
            cell: |row| row.label.as_str().into(),
        },
        Column {
            key: "begins_bytes",
            title: "At its start",
            unit: Unit::Bytes,
            help: "Allocated bytes when the range begins.",
            cell: |row| bytes(row.begins),
        },
        Column {
            key: "highest_bytes",
            title: "Highest",
            unit: Unit::Bytes,
            help: "The most allocated bytes in the range.",
            cell: |row| bytes(row.highest),
        },
        Column {
            key: "ends_bytes",
            title: "At its end",
            unit: Unit::Bytes,
            help: "Allocated bytes when the range ends.",
            cell: |row| bytes(row.ends),
        },
        Column {
            key: "allocated_bytes",
            title: "Allocated",
            unit: Unit::Bytes,
            help: "Sum of the changes upwards in the range.",
            cell: |row| bytes(row.allocated),
        },
        Column {
            key: "freed_bytes",
            title: "Freed",
            unit: Unit::Bytes,
            help: "Sum of the changes downwards in the range.",
            cell: |row| bytes(row.freed),
        },
    ];
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn levels(all: &[(i64, i64)]) -> Levels {
        let levels: Vec<_> = all.iter().map(|(at, bytes)| (*at, *bytes, *bytes * 2)).collect();
        Levels::of(&Recorded::new("GPU 0".into(), (5, 10), &levels), 1_000)
    }

    #[test]
    fn a_level_holds_until_the_next_change() {
        let levels = levels(&[(1_010, 20), (1_020, 8)]);
        assert_eq!([0.0, 10.0, 19.9, 20.0, 900.0].map(|ns| levels.at(ns).0), [5, 20, 20, 8, 8]);
        assert_eq!(levels.columns(0.0, 30.0, 3), [5, 20, 8]);
        let row = levels.within(5, 25);
        assert_eq!((row.begins, row.highest, row.ends), (5, 20, 8));
        assert_eq!((row.allocated, row.freed), (15, 12));
    }

    proptest! {
        #[test]
        fn the_highest_of_a_range_is_the_highest_of_its_moments(
            steps in prop::collection::vec((0_i64..5, 0_i64..1_000), 1..400),
            from in 0_i64..500,
            long in 1_i64..700,
        ) {
            let mut now = 1_000;
            let all: Vec<(i64, i64)> = steps
                .into_iter()
                .map(|(after, bytes)| { now += after; (now, bytes) })
                .collect();
            let levels = levels(&all);
            // Of several changes at one moment all count.
            let own = all.iter().filter(|(at, _)| (from..from + long).contains(&(at - 1_000)));
            let before = levels.at(from as f64).0;
            let highest = own.map(|(_, bytes)| *bytes).chain([before]).max().unwrap_or_default();
            prop_assert_eq!(levels.highest(from as f64, (from + long) as f64), highest);
        }
    }
}
