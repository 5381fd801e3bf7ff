//! What a memory timeline shows: figures, and sentences about them.

use report::units::{bytes, count, plural, time};
use report::{Cell, Column, Row, Section, Table, Unit};
use serde::Serialize;

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
    /// Reserved bytes then, where they are recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_reserved_bytes: Option<i64>,
    /// Most reserved bytes, where they are recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_reserved_bytes: Option<i64>,
    /// Bytes that were there before the recording.
    pub preexisting_bytes: i64,
    /// Whether these are not recorded: then all levels count from the first event on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_since_first: bool,
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
            title: "Category or call site",
            unit: Unit::Path,
            help: "The profiler's category of the memory; of [memory] events the Python line that allocated it, else the op.",
            cell: |row| row.category.as_str().into(),
        },
        Column {
            key: "bytes",
            title: "Bytes",
            unit: Unit::Bytes,
            help: "Bytes of the category at that moment.",
            cell: |row| match u64::try_from(row.bytes) {
                Ok(bytes) => Cell::Bytes(bytes),
                Err(_) => Cell::missing("frees of what was allocated before the recording"),
            },
        },
    ];
}

impl TimelineReport {
    /// The report in chapters.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        let mut section = Section::new("memory", "Memory");
        section.intro =
            if self.most_reserved_bytes.is_some() { self.of_events() } else { self.of_rows() };
        if self.damaged_rows > 0 {
            section.intro.push(format!("{} rows could not be read.", count(self.damaged_rows)));
        }
        if self.is_cut {
            section.intro.push("The file is cut: what follows its last row is missing.".to_owned());
        }
        let is_of_events = self.most_reserved_bytes.is_some();
        let last = if is_of_events { "After the last event" } else { "After the last row" };
        section.tables = vec![
            Table::of("peak-by-category", "At the peak", &self.peak_by_category),
            Table::of("end-by-category", last, &self.end_by_category),
        ];
        vec![section]
    }

    /// The largest parts of the peak in words.
    fn largest(&self) -> String {
        let mut largest = self.peak_by_category.clone();
        largest.retain(|row| row.bytes > 0);
        largest.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        let largest = largest.iter().take(3);
        let said: Vec<String> =
            largest.map(|row| format!("{} {}", row.category, size(row.bytes))).collect();
        said.join(", ")
    }

    fn of_rows(&self) -> Vec<String> {
        let when = self.peak_time_ns.map_or_else(
            || "before the first row with a time".to_owned(),
            |ns| format!("{} after the first row", time(ns)),
        );
        vec![
            format!("The most memory is {}, {when}: {}.", size(self.peak_bytes), self.largest()),
            format!(
                "{} rows; {} were there before the recording, {} are left after it.",
                count(self.rows),
                size(self.preexisting_bytes),
                size(self.end_bytes)
            ),
        ]
    }

    fn of_events(&self) -> Vec<String> {
        let when = self.peak_time_ns.map_or_else(
            || "before the first event".to_owned(),
            |ns| format!("{} after the first event", time(ns)),
        );
        let what = if self.is_since_first { "added since the first event" } else { "memory" };
        let mut said = vec![format!(
            "The most {what} is {}, {when}: {}.",
            size(self.peak_bytes),
            self.largest()
        )];
        let reserved = self.peak_reserved_bytes.zip(self.most_reserved_bytes);
        // (The CPU's memory has no reserve.)
        let reserved = reserved.filter(|(_, most)| *most > 0);
        if let Some((peak, most)) = reserved {
            let at = if peak == most { String::new() } else { format!(", {} at most", size(most)) };
            said.push(format!("Then {} is reserved{at}.", size(peak)));
        }
        let events = plural(self.rows, "[memory] event", "[memory] events");
        said.push(if self.is_since_first {
            format!(
                "{events} without totals: what was allocated before the first one is not recorded. Every figure leaves it out, but \
                 counts its frees."
            )
        } else {
            format!(
                "{events}; {} was allocated before the first one, {} after the last one.",
                size(self.preexisting_bytes),
                size(self.end_bytes)
            )
        });
        if reserved.is_some() {
            said.push(
                "Sizes are those of blocks, rounded up by the allocator. A block counts as free when its tensor is."
                    .to_owned(),
            );
        }
        said
    }
}

fn size(of: i64) -> String {
    bytes(of.max(0) as u64)
}
