//! How a row struct declares its columns, once, for the page, the Markdown and the JSON.

use serde::{Deserialize, Serialize};

use crate::Cell;

/// What the values of a column are. It decides the alignment, the unit in the header and how the page
/// draws the cell; it never changes the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Words.
    Text,
    /// A long identifier such as a kernel name: shortened where it is shown, whole in the title and in a
    /// copy.
    Name,
    /// The id of a category, which has a colour.
    Category,
    /// A length of time.
    Time,
    /// A point on the file's clock.
    Instant,
    /// How many.
    Count,
    /// A share of a whole; the page draws a bar behind it.
    Percent,
    /// Memory.
    Bytes,
    /// The size of a file.
    FileBytes,
    /// Yes or no.
    Flag,
}

/// On which side of its column a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

impl Unit {
    /// Numbers stand right, so that their digits line up.
    #[must_use]
    pub fn align(self) -> Align {
        match self {
            Self::Text | Self::Name | Self::Category | Self::Flag => Align::Left,
            Self::Time
            | Self::Instant
            | Self::Count
            | Self::Percent
            | Self::Bytes
            | Self::FileBytes => Align::Right,
        }
    }
}

/// One column of the table of `R`.
pub struct Column<R> {
    /// The key: the name of the field in the JSON, unit included (`total_ns`).
    pub key: &'static str,
    /// The header a person reads.
    pub title: &'static str,
    /// What the values are.
    pub unit: Unit,
    /// One sentence that says what the value is and how it was counted.
    pub help: &'static str,
    /// The cell of a row.
    pub cell: fn(&R) -> Cell,
}

/// A row struct: its JSON is its serde form, its table is its columns, and the keys of both are the same
/// (`testkit::assert_keys` proves it for every row type).
pub trait Row: Sized + 'static {
    /// Every column, in the order of the struct's fields.
    const COLUMNS: &'static [Column<Self>];
}
