//! Memory timelines of `torch.profiler` (`export_memory_timeline`): bytes by category over time.
//!
//! Two forms: rows `[t_ns, action, bytes, category]` (`.raw.json.gz`), whose bytes are signed, so that a plain sum is the level; and
//! `[times_us, sizes]` (`.json`), whose rows of sizes are levels, a 0 first. Source: `torch/profiler/_memory_profiler.py`.

use std::fmt;

use ingest::Unpacker;
use report::units::{bytes, count, time};
use report::{Cell, Column, Row, Section, Table, Unit, palette};
use scan::{Cursor, Stop, Value};
use serde::Serialize;

use crate::chart::{Change, Chart, Layer};
use crate::spelling::integer;

/// The categories, in the order of their numbers.
const CATEGORIES: [&str; 8] = [
    "parameters",
    "optimizer state",
    "inputs",
    "temporaries",
    "activations",
    "gradients",
    "autograd detail",
    "unknown",
];
/// Larger files are refused: they are read as a whole. A run of an hour has some megabytes.
const MOST_BYTES: usize = 512 << 20;

/// The file is no memory timeline, or one that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotATimeline {
    /// Neither of the two forms.
    Form,
    /// Above 512 MiB.
    TooLarge,
}

impl fmt::Display for NotATimeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => {
                "no memory timeline: neither rows of time, action, bytes and category, nor times and sizes"
            }
            Self::TooLarge => "a memory timeline above 512 MiB. Export fewer steps",
        })
    }
}

impl std::error::Error for NotATimeline {}

/// A decoded memory timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryTimeline {
    /// What changes, in file order.
    changes: Vec<Change>,
    /// Rows of the file.
    rows: u64,
    /// Rows that could not be read.
    damaged: u64,
    /// Whether the file ends before its array does.
    is_cut: bool,
}

/// Reads a memory timeline that is pushed in pieces.
#[derive(Debug, Default)]
pub struct TimelineReader {
    unpacker: Unpacker,
    text: Vec<u8>,
    is_too_large: bool,
}

impl TimelineReader {
    /// At the start of a file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next bytes of the file, compressed or not.
    pub fn push(&mut self, bytes: &[u8]) {
        let Self { unpacker, text, is_too_large } = self;
        unpacker.push(bytes, &mut |bytes| keep(text, is_too_large, bytes));
    }

    /// The file ends here.
    ///
    /// # Errors
    /// When it is no memory timeline, or too large.
    pub fn finish(self) -> Result<MemoryTimeline, NotATimeline> {
        let Self { unpacker, mut text, mut is_too_large } = self;
        let end = unpacker.finish(&mut |bytes| keep(&mut text, &mut is_too_large, bytes));
        if is_too_large {
            return Err(NotATimeline::TooLarge);
        }
        let mut timeline = MemoryTimeline::default();
        let read = timeline.read(&mut Cursor::whole(&text));
        timeline.is_cut = read.is_err();
        timeline.damaged += end.faults.len() as u64;
        if timeline.changes.is_empty() { Err(NotATimeline::Form) } else { Ok(timeline) }
    }
}

fn keep(text: &mut Vec<u8>, is_too_large: &mut bool, bytes: &[u8]) {
    *is_too_large |= text.len() + bytes.len() > MOST_BYTES;
    if !*is_too_large {
        text.extend_from_slice(bytes);
    }
}

/// The whole numbers of an array; `None` where one is something else.
fn numbers(array: &[u8]) -> Option<Vec<i64>> {
    let mut cursor = Cursor::whole(array);
    let mut found = Vec::new();
    if cursor.peek().ok()? != b'[' {
        return None;
    }
    cursor.enter();
    while cursor.next(found.is_empty(), false).ok()? {
        match cursor.value().ok()? {
            Value::Number(digits) => found.push(integer(digits)?),
            _ => return None,
        }
    }
    Some(found)
}

/// The layer of a category: `unknown` for a number that has no name.
fn layer(category: i64) -> u8 {
    u8::try_from(category).ok().filter(|at| usize::from(*at) < CATEGORIES.len()).unwrap_or(7)
}

impl MemoryTimeline {
    fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        // The first array is a row, or the times (µs) of a list of levels: the second one tells.
        let mut first = None;
        let read = self.arrays(cursor, &mut first);
        first.iter().for_each(|only: &Vec<i64>| self.row(only));
        read
    }

    fn arrays(
        &mut self,
        cursor: &mut Cursor<'_>,
        first: &mut Option<Vec<i64>>,
    ) -> Result<(), Stop> {
        if cursor.peek()? != b'[' {
            return Ok(());
        }
        cursor.enter();
        let mut is_first = true;
        while cursor.next(is_first, false)? {
            let Value::Array(array) = cursor.value()? else {
                self.damaged += 1;
                continue;
            };
            match (numbers(array), first.take()) {
                (Some(list), None) if is_first => *first = Some(list),
                (Some(list), before) => {
                    before.iter().for_each(|before| self.row(before));
                    self.row(&list);
                }
                (None, Some(times)) => self.levels(&times, array)?,
                (None, None) => self.damaged += 1,
            }
            is_first = false;
        }
        Ok(())
    }

    /// A row of time in ns, action, bytes and category.
    fn row(&mut self, row: &[i64]) {
        let [at, _, bytes, category] = *row else {
            self.damaged += 1;
            return;
        };
        self.rows += 1;
        // -1: it was there before the recording.
        let time_ns = (at >= 0).then_some(at);
        self.changes.push(Change { time_ns, layer: layer(category), bytes });
    }

    /// Levels by category as changes: what becomes less first, so that no level in between is above both.
    fn levels(&mut self, times: &[i64], array: &[u8]) -> Result<(), Stop> {
        let mut cursor = Cursor::whole(array);
        cursor.enter();
        let mut last = [0_i64; CATEGORIES.len()];
        let mut is_first = true;
        let mut times = times.iter();
        while cursor.next(is_first, false)? {
            is_first = false;
            let Value::Array(row) = cursor.value()? else {
                self.damaged += 1;
                continue;
            };
            let (Some(time), Some(row)) = (times.next(), numbers(row)) else {
                self.damaged += 1;
                continue;
            };
            self.rows += 1;
            let change = |(at, before): (usize, &i64)| {
                row.get(at + 1).copied().unwrap_or_default().saturating_sub(*before)
            };
            let mut changes: Vec<(i64, usize)> =
                last.iter().enumerate().map(|of| (change(of), of.0)).collect();
            changes.sort_unstable();
            for (bytes, at) in changes.into_iter().filter(|(bytes, _)| *bytes != 0) {
                let time_ns = Some(time.saturating_mul(1000));
                self.changes.push(Change { time_ns, layer: at as u8, bytes });
            }
            for (level, bytes) in last.iter_mut().zip(row.iter().skip(1)) {
                *level = *bytes;
            }
        }
        Ok(())
    }

    /// Bytes by category over the rows.
    #[must_use]
    pub fn chart(&self) -> Chart {
        let layer = |(at, name): (usize, &&str)| Layer {
            label: (*name).to_owned(),
            category: palette::series(at),
        };
        Chart::of_changes(CATEGORIES.iter().enumerate().map(layer).collect(), &self.changes)
    }

    /// The figures.
    #[must_use]
    pub fn report(&self) -> TimelineReport {
        let chart = self.chart();
        let peak = chart.highest(0..chart.len());
        let end = chart.len().saturating_sub(1);
        let before = self.changes.iter().take_while(|change| change.time_ns.is_none()).count();
        let by_category = |at: usize| {
            let stack = chart.stack(at);
            let rows = CATEGORIES.iter().zip(stack).filter(|(_, bytes)| *bytes != 0);
            rows.map(|(category, bytes)| CategoryRow { category: (*category).to_owned(), bytes })
                .collect()
        };
        let times = self.changes.iter().filter_map(|change| change.time_ns);
        let first = times.clone().next();
        let of_peak = peak.checked_sub(1).and_then(|at| self.changes.get(at)?.time_ns);
        TimelineReport {
            rows: self.rows,
            damaged_rows: self.damaged,
            is_cut: self.is_cut,
            span_ns: times.max().zip(first).map(|(last, first)| last.saturating_sub(first)),
            peak_bytes: chart.level(peak).0,
            peak_time_ns: of_peak.zip(first).map(|(at, first)| at.saturating_sub(first)),
            peak_by_category: by_category(peak),
            preexisting_bytes: chart.level(before).0,
            end_bytes: chart.level(end).0,
            end_by_category: by_category(end),
        }
    }
}

/// The figures of a memory timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TimelineReport {
    /// Rows of the file.
    pub rows: u64,
    /// Those that could not be read.
    pub damaged_rows: u64,
    /// Whether the file ends before its array does.
    pub is_cut: bool,
    /// From the first row with a time to the last.
    pub span_ns: Option<i64>,
    /// Most bytes at once.
    pub peak_bytes: i64,
    /// When, after the first row with a time; `None` if before it.
    pub peak_time_ns: Option<i64>,
    /// What they were.
    pub peak_by_category: Vec<CategoryRow>,
    /// Bytes that were there before the recording.
    pub preexisting_bytes: i64,
    /// Bytes after the last row.
    pub end_bytes: i64,
    /// What they were.
    pub end_by_category: Vec<CategoryRow>,
}

/// Bytes of a category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CategoryRow {
    /// The profiler's name for it.
    pub category: String,
    /// Bytes.
    pub bytes: i64,
}

impl Row for CategoryRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "category",
            title: "Category",
            unit: Unit::Text,
            help: "What the profiler takes the memory for.",
            cell: |row| row.category.as_str().into(),
        },
        Column {
            key: "bytes",
            title: "Bytes",
            unit: Unit::Bytes,
            help: "Bytes of the category at that moment.",
            cell: |row| Cell::Bytes(row.bytes.max(0) as u64),
        },
    ];
}

impl TimelineReport {
    /// The report in chapters.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        let size = |of: i64| bytes(of.max(0) as u64);
        let mut section = Section::new("memory", "Memory");
        let when = self.peak_time_ns.map_or_else(
            || "before the first row with a time".to_owned(),
            |ns| format!("{} after the first row", time(ns)),
        );
        let mut largest = self.peak_by_category.clone();
        largest.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        let largest: Vec<String> = largest
            .iter()
            .take(3)
            .map(|row| format!("{} {}", row.category, size(row.bytes)))
            .collect();
        section.intro.push(format!(
            "The most memory is {}, {when}: {}.",
            size(self.peak_bytes),
            largest.join(", ")
        ));
        section.intro.push(format!(
            "{} rows; {} were there before the recording, {} are left after it.",
            count(self.rows),
            size(self.preexisting_bytes),
            size(self.end_bytes)
        ));
        if self.damaged_rows > 0 {
            section.intro.push(format!("{} rows could not be read.", count(self.damaged_rows)));
        }
        if self.is_cut {
            section.intro.push("The file is cut: what follows its last row is missing.".to_owned());
        }
        section.tables = vec![
            Table::of("peak-by-category", "At the peak", &self.peak_by_category),
            Table::of("end-by-category", "After the last row", &self.end_by_category),
        ];
        vec![section]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, size: usize) -> Result<MemoryTimeline, NotATimeline> {
        let mut reader = TimelineReader::new();
        text.as_bytes().chunks(size).for_each(|piece| reader.push(piece));
        reader.finish()
    }

    #[test]
    fn rows_add_up_and_versions_move_bytes() {
        // A parameter from before, an activation that is freed, and a gradient that was a temporary.
        let text = "[[-1, 1, 100, 0], [5000, 2, 40, 4], [6000, 2, 8, 3], [7000, 3, -8, 3], [7000, 3, 8, 5], [9000, 4, -40, 4]]";
        for size in [1, 7, 1000] {
            let report = read(text, size).expect("a timeline").report();
            assert_eq!((report.rows, report.peak_bytes, report.end_bytes), (6, 148, 108));
            assert_eq!((report.preexisting_bytes, report.peak_time_ns), (100, Some(1000)));
            assert_eq!(report.span_ns, Some(4000));
            let end: Vec<_> = report
                .end_by_category
                .iter()
                .map(|row| (row.category.as_str(), row.bytes))
                .collect();
            assert_eq!(end, [("parameters", 100), ("gradients", 8)]);
        }
    }

    #[test]
    fn levels_are_read_as_they_are() {
        // Bytes that move from one category to another are no peak.
        let text = "[[10, 20, 30], [[0, 5, 0, 0, 7, 0, 0, 0, 0], [0, 5, 0, 0, 0, 7, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0]]]";
        let report = read(text, 9).expect("a timeline").report();
        assert_eq!((report.rows, report.peak_bytes, report.end_bytes), (3, 12, 1));
        assert_eq!(report.span_ns, Some(20_000));
    }

    #[test]
    fn anything_else_is_none_and_a_cut_one_says_so() {
        for text in ["", "{}", "[]", "[1, 2]", "[[]]", "[[\"a\", 1, 2, 3]]"] {
            assert_eq!(read(text, 100), Err(NotATimeline::Form), "{text}");
        }
        let cut = read("[[-1, 1, 100, 0], [5000, 2, 4", 100).expect("a part").report();
        assert!(cut.is_cut && cut.peak_bytes == 100);
        let text = cut.sections()[0].intro.join(" ");
        assert!(text.contains("The file is cut"), "{text}");
    }
}
