//! What the tables of the host share.

use report::Cell;

/// Rows that a Markdown document prints of a table.
pub(crate) const PREVIEW: u32 = 25;

macro_rules! columns {
    ($($key:ident $title:literal $unit:ident $help:literal $cell:expr;)*) => {
        &[$(Column {
            key: stringify!($key),
            title: $title,
            unit: Unit::$unit,
            help: $help,
            cell: $cell,
        },)*]
    };
}
pub(crate) use columns;

/// The cell of a value that may be missing.
pub(crate) fn or_missing<'a, T>(value: Option<T>, cell: impl Fn(T) -> Cell<'a>) -> Cell<'a> {
    value.map_or_else(|| Cell::Missing { reason: "not recorded".into() }, cell)
}
