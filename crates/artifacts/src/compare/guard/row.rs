//! The rows of the check: one fact of two runs.

use report::{Cell, Column, Row, Unit};
use serde::Serialize;

use super::facts::{Fact, Subject};

/// The result for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sameness {
    /// Both runs have it, with the same value.
    Same,
    /// Both runs have it, with different values.
    Different,
    /// At least one run lacks it.
    Missing,
}

impl Sameness {
    /// The id in the JSON.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
            Self::Missing => "missing",
        }
    }
}

/// One fact of two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GuardRow {
    /// The key; of launch flags `server_flags.tp_size`.
    pub key: String,
    /// Whether the runs have the same.
    pub result: Sameness,
    /// Whether a difference makes the runs not comparable.
    pub decides: bool,
    /// The first run's value.
    pub a: String,
    /// The second run's value.
    pub b: String,
    /// The words for the key: "GPU architecture", "launch flag tp_size".
    #[serde(skip)]
    pub(super) label: String,
    /// What a difference is one of, if it decides.
    #[serde(skip)]
    pub(super) subject: Option<Subject>,
    /// Whether the values are sizes in bytes.
    #[serde(skip)]
    pub(super) in_bytes: bool,
}

impl GuardRow {
    /// The row of a whole fact.
    pub(super) fn of(fact: &Fact, result: Sameness, a: String, b: String) -> Self {
        Self {
            key: fact.name.to_owned(),
            result,
            decides: fact.subject.is_some(),
            a,
            b,
            label: fact.label.to_owned(),
            subject: fact.subject,
            in_bytes: fact.in_bytes,
        }
    }

    fn value<'a>(&self, text: &'a str) -> Cell<'a> {
        match text.parse::<u64>() {
            Ok(bytes) if self.in_bytes => Cell::Bytes(bytes),
            _ if text.is_empty() => Cell::missing("not recorded"),
            _ => text.into(),
        }
    }
}

impl Row for GuardRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "key",
            title: "Fact",
            unit: Unit::Text,
            help: "The fact that is compared. Launch flags are compared one by one.",
            cell: |row| Cell::Word {
                id: row.key.clone().into(),
                label: row.label.as_str().into(),
                meaning: "".into(),
            },
        },
        Column {
            key: "result",
            title: "Result",
            unit: Unit::Text,
            help: "same, different, or missing in at least one run.",
            cell: |row| row.result.id().into(),
        },
        Column {
            key: "decides",
            title: "Required",
            unit: Unit::Flag,
            help: "Whether a difference in this fact makes the runs incomparable.",
            cell: |row| Cell::Flag(row.decides),
        },
        Column {
            key: "a",
            title: "A",
            unit: Unit::Text,
            help: "Value in A.",
            cell: |row| row.value(&row.a),
        },
        Column {
            key: "b",
            title: "B",
            unit: Unit::Text,
            help: "Value in B.",
            cell: |row| row.value(&row.b),
        },
    ];
}

#[cfg(test)]
mod tests {
    use super::super::facts::FACTS;
    use super::*;

    #[test]
    fn columns_are_the_fields() {
        let row = GuardRow::of(&FACTS[0], Sameness::Same, "a".to_owned(), "a".to_owned());
        testkit::assert_keys(&row, GuardRow::COLUMNS.iter().map(|column| column.key));
    }
}
