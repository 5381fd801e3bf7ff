//! How a row struct declares its columns, once, for the page, the Markdown and the JSON.

use serde::{Deserialize, Serialize};

use crate::{Cell, RowKey};

/// What the values of a column are. It decides the alignment, the unit in the header and how the page
/// draws the cell; it never changes the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Words.
    Text,
    /// A long identifier such as a kernel name: shortened where it is shown, whole in the title and in a
    /// copy.
    Name,
    /// A place in source code, a path or a chain of modules: its end says most, so a renderer cuts it in the middle.
    Path,
    /// A category, which has a colour.
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

/// The alignment of a column.
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
            Self::Text | Self::Name | Self::Path | Self::Category | Self::Flag => Align::Left,
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
    pub cell: fn(&R) -> Cell<'_>,
}

/// Columns that the page shows of a table until a person chooses others. More do not fit a window of 1400 px.
pub(crate) const MOST_SHOWN: usize = 8;

/// A row struct: its JSON is its serde form, its table is its columns, and the keys of both are the same
/// (`testkit::assert_keys` proves it for every row type).
pub trait Row: Sized + 'static {
    /// Every column, in the order of the struct's fields.
    const COLUMNS: &'static [Column<Self>];

    /// Keys of the columns that the page shows until a person chooses others, the most important first. The page
    /// takes the first eight of them that the table has; without any, the first of [`Row::COLUMNS`].
    /// Exports have all columns.
    const SHOWN: &'static [&'static str] = &[];

    /// What the row is about, where more can be asked about it.
    #[must_use]
    fn key(&self) -> Option<RowKey<'_>> {
        None
    }
}
