//! The memory of a device over time, and counters: a level that holds until the next change.

use report::{Cell, Column, Row as TableRow, Section, Table, Unit, units};
use serde::{Deserialize, Serialize};

use crate::series::{Bounds, Series};

/// Rows of the table of a lane.
const MOST_ROWS: usize = 500;

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

/// What levels are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Measure {
    /// The memory of a device, in bytes.
    #[default]
    Memory,
    /// A counter of the file. Its unit is not recorded.
    Counter,
}

/// Levels over time: the memory of a device, or a counter. Times are ns from the first start, as those of the lanes.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    /// What the level is: "Memory of GPU 0", or the name of the counter.
    pub label: String,
    measure: Measure,
    /// Of memory, what is allocated.
    series: Series,
    /// Of memory alone.
    reserved: Option<Series>,
}

impl Levels {
    /// Reads the memory of a device; its times are then counted from `origin_ns`.
    #[must_use]
    pub fn of(recorded: &Recorded, origin_ns: i64) -> Self {
        let (mut times, mut all) = (Vec::new(), (Vec::new(), Vec::new()));
        let mut level = (0_i64.saturating_sub(origin_ns), recorded.first.0, recorded.first.1);
        for (after, allocated, reserved) in &recorded.changes {
            level = (
                level.0.saturating_add(*after),
                level.1.saturating_add(*allocated),
                level.2.saturating_add(*reserved),
            );
            times.push(level.0);
            all.0.push(level.1 as f64);
            all.1.push(level.2 as f64);
        }
        let series = Series::new(Some(recorded.first.0 as f64), times.clone(), all.0);
        let reserved = Some(Series::new(Some(recorded.first.1 as f64), times, all.1));
        Self { label: recorded.label.clone(), measure: Measure::Memory, series, reserved }
    }

    /// A counter.
    pub(crate) fn counter(label: String, series: Series) -> Self {
        Self { label, measure: Measure::Counter, series, reserved: None }
    }

    /// The levels themselves: of memory, the allocated bytes.
    #[must_use]
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// A level as a person reads it.
    #[must_use]
    pub fn text(&self, level: f64) -> String {
        match self.measure {
            // (A level below zero is of a file whose events do not add up; the finding on memory says so.)
            Measure::Memory => units::bytes(level.max(0.0) as u64),
            Measure::Counter if level.fract() == 0.0 => units::signed(level as i64),
            // (Three digits are enough for a text; tables have all of them.)
            Measure::Counter => match level.abs() {
                size if size >= 100.0 => units::signed(level.round() as i64),
                size if size >= 10.0 => units::fixed(level, 1),
                size if size >= 1.0 => units::fixed(level, 2),
                size if size >= 0.01 => units::fixed(level, 4),
                _ => units::shortest(level),
            },
        }
    }

    /// What a picture goes from and to: a bar begins at zero.
    #[must_use]
    pub fn scale(&self) -> Bounds {
        let (low, high) = self.series.all().unwrap_or_default();
        (low.min(0.0), high.max(0.0))
    }

    /// The levels of a part of the time in one line.
    #[must_use]
    pub fn said(&self, from: f64, to: f64) -> String {
        let Some((low, high)) = self.series.bounds(from, to) else {
            return "no value yet in the time shown".to_owned();
        };
        let most = self.text(self.scale().1);
        match self.measure {
            Measure::Memory => format!("at most {} of {most} in the time shown", self.text(high)),
            Measure::Counter => {
                format!("{} to {} in the time shown", self.text(low), self.text(high))
            }
        }
    }

    /// What is there at a moment, line by line.
    #[must_use]
    pub fn lines(&self, ns: f64) -> Vec<String> {
        let level = self.series.at(ns).map(|level| self.text(level));
        let mut lines = vec![match (self.measure, level) {
            (Measure::Memory, level) => format!("{} allocated", level.unwrap_or_default()),
            (Measure::Counter, Some(level)) => level,
            (Measure::Counter, None) => "no value yet".to_owned(),
        }];
        let reserved = self.reserved.as_ref().and_then(|reserved| reserved.at(ns));
        if let Some(reserved) = reserved.filter(|reserved| *reserved > 0.0) {
            lines.push(format!("{} reserved", self.text(reserved)));
        }
        lines.push(self.label.clone());
        lines
    }

    /// The lane as a table: the levels that begin in a part of the time, and what is there at a moment that was clicked.
    #[inline(never)]
    #[must_use]
    pub fn section(&self, at: f64, from: f64, to: f64) -> Section {
        let mut section = Section::new("levels", "Lane as a table");
        section.title = self.label.clone().into();
        let (now, lines) = (units::time(at as i64), self.lines(at));
        let there = lines.split_last().map_or(String::new(), |(_, lines)| lines.join(", "));
        section.intro.push(format!("At {now} after the first slice: {there}."));
        section.intro.push(format!("{}: {}.", self.label, self.said(from, to)));
        let shown = self.series.between(from, to);
        let n = units::plural(shown.len() as u64, "change", "changes");
        section.intro.push(match shown.len() > MOST_ROWS {
            true => format!(
                "{n} in the time shown. The table has the first {MOST_ROWS}; zoom in for the others."
            ),
            false => format!("{n} in the time shown."),
        });
        let row = |at: usize| {
            let (at_ns, level) = self.series.value(at)?;
            let before = self.series.before(at);
            let is_memory = self.measure == Measure::Memory;
            Some(Sample { at_ns, level, before, is_memory })
        };
        let rows: Vec<Sample> = shown.take(MOST_ROWS).filter_map(row).collect();
        section.tables.push(Table::of("lane-levels", "Changes", &rows));
        section
    }

    fn within(&self, from: i64, to: i64) -> LevelRow {
        let own = self.series.between(from as f64, to as f64);
        let begins = self.series.before(own.start);
        let mut last = begins;
        let (mut allocated, mut freed) = (0.0, 0.0);
        for level in own.filter_map(|at| Some(self.series.value(at)?.1)) {
            let by = level - last.unwrap_or(level);
            allocated += by.max(0.0);
            freed -= by.min(0.0);
            last = Some(level);
        }
        let bounds = self.series.bounds(from as f64, to as f64);
        let bounds = bounds
            .map(|(low, high)| (low.min(begins.unwrap_or(low)), high.max(begins.unwrap_or(high))));
        LevelRow { label: self.label.clone(), begins, bounds, ends: last, allocated, freed }
    }
}

/// A level of a lane and when it begins.
struct Sample {
    at_ns: i64,
    level: f64,
    before: Option<f64>,
    is_memory: bool,
}

impl Sample {
    /// Whole numbers sort as numbers.
    fn cell(&self, value: f64) -> Cell<'static> {
        if self.is_memory { bytes(value) } else { number(value) }
    }
}

impl TableRow for Sample {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "start_ns",
            title: "From",
            unit: Unit::Time,
            help: "When the level begins, from the first slice on.",
            cell: |row| Cell::Ns(row.at_ns),
        },
        Column {
            key: "level",
            title: "Level",
            unit: Unit::Text,
            help: "The value of the counter, or the allocated memory, from then on.",
            cell: |row| row.cell(row.level),
        },
        Column {
            key: "before",
            title: "Before",
            unit: Unit::Text,
            help: "The level until then.",
            cell: |row| match row.before {
                Some(before) => row.cell(before),
                None => Cell::missing("it is the first value"),
            },
        },
    ];
}

fn number(value: f64) -> Cell<'static> {
    match value {
        value if value >= 0.0 && value < 2_f64.powi(53) && value.fract() == 0.0 => {
            Cell::Count(value as u64)
        }
        value => Cell::Text(units::shortest(value).into()),
    }
}

/// The counters in a range; `None` where there are none.
#[must_use]
pub(crate) fn counters<'a>(
    levels: impl Iterator<Item = &'a Levels>,
    from: i64,
    to: i64,
) -> Option<Table> {
    let counters = levels.filter(|levels| levels.measure == Measure::Counter);
    let rows: Vec<CounterRow> =
        counters.map(|levels| CounterRow(levels.within(from, to))).collect();
    (!rows.is_empty()).then(|| Table::of("range-counters", "Counters in the range", &rows))
}

/// A counter in a range.
struct CounterRow(LevelRow);

impl CounterRow {
    fn cell(value: Option<f64>) -> Cell<'static> {
        value.map_or_else(|| Cell::missing("it has no value there yet"), number)
    }
}

impl TableRow for CounterRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "counter",
            title: "Counter",
            unit: Unit::Text,
            help: "Its name, and the key of its value.",
            cell: |row| row.0.label.as_str().into(),
        },
        Column {
            key: "begins",
            title: "At its start",
            unit: Unit::Text,
            help: "The value when the range begins.",
            cell: |row| Self::cell(row.0.begins),
        },
        Column {
            key: "lowest",
            title: "Lowest",
            unit: Unit::Text,
            help: "The lowest value in the range.",
            cell: |row| Self::cell(row.0.bounds.map(|(low, _)| low)),
        },
        Column {
            key: "highest",
            title: "Highest",
            unit: Unit::Text,
            help: "The highest value in the range.",
            cell: |row| Self::cell(row.0.bounds.map(|(_, high)| high)),
        },
        Column {
            key: "ends",
            title: "At its end",
            unit: Unit::Text,
            help: "The value when the range ends.",
            cell: |row| Self::cell(row.0.ends),
        },
    ];
}

/// The memory of devices in a range; `None` where nothing is recorded.
#[must_use]
pub(crate) fn table<'a>(
    levels: impl Iterator<Item = &'a Levels>,
    from: i64,
    to: i64,
) -> Option<Table> {
    let memory = levels.filter(|levels| levels.measure == Measure::Memory);
    let rows: Vec<LevelRow> = memory.map(|levels| levels.within(from, to)).collect();
    (!rows.is_empty()).then(|| Table::of("range-memory", "Memory in the range", &rows))
}

/// (A level below zero is of a file whose events do not add up; the finding on memory says so.)
fn bytes(level: f64) -> Cell<'static> {
    Cell::Bytes(level.max(0.0) as u64)
}

/// Levels in a range.
struct LevelRow {
    label: String,
    begins: Option<f64>,
    /// The lowest and the highest.
    bounds: Option<Bounds>,
    ends: Option<f64>,
    allocated: f64,
    freed: f64,
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
            cell: |row| bytes(row.begins.unwrap_or_default()),
        },
        Column {
            key: "highest_bytes",
            title: "Highest",
            unit: Unit::Bytes,
            help: "The most allocated bytes in the range.",
            cell: |row| bytes(row.bounds.unwrap_or_default().1),
        },
        Column {
            key: "ends_bytes",
            title: "At its end",
            unit: Unit::Bytes,
            help: "Allocated bytes when the range ends.",
            cell: |row| bytes(row.ends.unwrap_or_default()),
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
    use super::*;

    fn levels(all: &[(i64, i64)]) -> Levels {
        let levels: Vec<_> = all.iter().map(|(at, bytes)| (*at, *bytes, *bytes * 2)).collect();
        Levels::of(&Recorded::new("GPU 0".into(), (5, 10), &levels), 1_000)
    }

    #[test]
    fn memory_is_counted_from_what_there_is_before_the_first_change() {
        let levels = levels(&[(1_010, 20), (1_020, 8)]);
        let columns = levels.series().columns(0.0, 30.0, 3);
        assert_eq!(columns, [(5.0, 5.0), (20.0, 20.0), (8.0, 8.0)].map(Some));
        assert_eq!(levels.lines(15.0), ["20 B allocated", "40 B reserved", "GPU 0"]);
        let row = levels.within(5, 25);
        assert_eq!((row.begins, row.bounds, row.ends), (Some(5.0), Some((5.0, 20.0)), Some(8.0)));
        assert_eq!((row.allocated, row.freed), (15.0, 12.0));
        assert!(counters([levels].iter(), 5, 25).is_none());
    }

    #[test]
    fn a_counter_has_no_unit_and_no_value_before_its_first() {
        let series = Series::new(None, vec![10, 20], vec![-1.5, 3.0]);
        let levels = Levels::counter("load: x".into(), series);
        assert_eq!(levels.lines(5.0), ["no value yet", "load: x"]);
        assert_eq!(levels.said(0.0, 30.0), "-1.50 to 3 in the time shown");
        assert_eq!(levels.scale(), (-1.5, 3.0));
        let section = levels.section(12.0, 0.0, 30.0);
        assert_eq!(section.intro[0], "At 12 ns after the first slice: -1.50.");
        assert_eq!(section.tables[0].n_rows(), 2);
        let row = CounterRow(levels.within(0, 15));
        assert_eq!(
            (row.0.begins, row.0.bounds, row.0.ends),
            (None, Some((-1.5, -1.5)), Some(-1.5))
        );
        assert!(table([levels].iter(), 0, 15).is_none());
    }
}
