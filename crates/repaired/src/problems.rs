//! The decoder's problems as a table.

use decode::{Problem, Severity};
use report::{Cell, Column, Table, Unit};
use serde::{Deserialize, Serialize};

/// One kind of problem in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemRow {
    /// `info`, `warning` or `error`.
    pub severity: String,
    /// Id of the kind.
    pub kind: String,
    /// What it is.
    pub title: String,
    /// How often.
    pub count: u64,
    /// Offset of the first, in the decompressed file.
    pub first_offset: u64,
    /// Number of the first event concerned, from 0, where it is one event.
    pub first_event: Option<u64>,
    /// The text there.
    pub excerpt: String,
    /// What it means and what is done about it.
    pub help: String,
}

impl ProblemRow {
    /// The row of a problem.
    #[must_use]
    pub fn new(problem: &Problem) -> Self {
        Self {
            severity: match problem.kind.severity() {
                Severity::Info => "info",
                Severity::Warning => "warning",
                Severity::Error => "error",
            }
            .to_owned(),
            kind: problem.kind.id().to_owned(),
            title: problem.kind.title().to_owned(),
            count: problem.count,
            first_offset: problem.first_offset,
            first_event: problem.first_row.map(u64::from),
            excerpt: problem.excerpt.clone(),
            help: problem.kind.help().to_owned(),
        }
    }
}

impl report::Row for ProblemRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "severity",
            title: "Severity",
            unit: Unit::Text,
            help: "error: data is missing or misread; warning: other tools may fail; info: harmless.",
            cell: |row| Cell::from(&row.severity),
        },
        Column {
            key: "kind",
            title: "Kind",
            unit: Unit::Name,
            help: "Name of the problem in the JSON.",
            cell: |row| Cell::from(&row.kind),
        },
        Column {
            key: "title",
            title: "Problem",
            unit: Unit::Text,
            help: "Title of the problem.",
            cell: |row| Cell::from(&row.title),
        },
        Column {
            key: "count",
            title: "Count",
            unit: Unit::Count,
            help: "Number of occurrences.",
            cell: |row| Cell::Count(row.count),
        },
        Column {
            key: "first_offset",
            title: "First byte",
            unit: Unit::Count,
            help: "Offset of the first occurrence in the decompressed file.",
            cell: |row| Cell::Count(row.first_offset),
        },
        Column {
            key: "first_event",
            title: "First event",
            unit: Unit::Count,
            help: "Index of the first affected event, from 0.",
            cell: |row| Cell::or_missing(row.first_event, Cell::Count, "not in an event"),
        },
        Column {
            key: "excerpt",
            title: "Excerpt",
            unit: Unit::Text,
            help: "The first characters of the affected text.",
            cell: |row| Cell::from(&row.excerpt),
        },
        Column {
            key: "help",
            title: "Meaning",
            unit: Unit::Text,
            help: "The effect of the defect and how Kinetoscope handles it.",
            cell: |row| Cell::from(&row.help),
        },
    ];
}

/// The problems of a file as a table.
#[must_use]
pub fn problem_table(problems: &[Problem]) -> Table {
    let rows: Vec<ProblemRow> = problems.iter().map(ProblemRow::new).collect();
    Table::of("problems", "Problems", &rows)
        .when_empty("The JSON is complete, and every event in it could be read.")
        .only_on_page(rows.is_empty())
}

#[cfg(test)]
mod tests {
    use report::Row as _;

    use super::*;

    #[test]
    fn the_keys_of_the_json_are_the_keys_of_the_columns() {
        let row = ProblemRow {
            severity: String::new(),
            kind: String::new(),
            title: String::new(),
            count: 0,
            first_offset: 0,
            first_event: None,
            excerpt: String::new(),
            help: String::new(),
        };
        testkit::assert_keys(&row, ProblemRow::COLUMNS.iter().map(|column| column.key));
    }
}
