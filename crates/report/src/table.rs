//! A table without its type: what crosses to the page and what Markdown prints.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Align, Cell, MOST_SHOWN, Row, Unit, View, units::Scale};

/// One column of a [`Table`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableColumn {
    /// The key: the name of the field in the JSON.
    pub key: Cow<'static, str>,
    /// The header a person reads, without its unit; see [`Table::header`].
    pub title: Cow<'static, str>,
    /// What the values are.
    pub unit: Unit,
    /// One sentence that says what the value is.
    pub help: Cow<'static, str>,
    /// Whether the values add up to something: the totals row shows their sum.
    pub summed: bool,
}

impl TableColumn {
    /// On which side the cells stand.
    #[must_use]
    pub fn align(&self) -> Align {
        self.unit.align()
    }
}

/// Rows of cells under columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Stable id: `kernels`.
    pub id: Cow<'static, str>,
    /// What the rows are: "Kernels".
    pub title: Cow<'static, str>,
    /// The columns, in order.
    pub columns: Vec<TableColumn>,
    /// The rows, in the order of the report; every row has one cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// How many rows a Markdown document prints; the rest is counted in one line. `None` for all.
    pub preview: Option<u32>,
    /// The rows that a Markdown document prints, where these are not the first ones. The page shows all.
    #[serde(skip)]
    pub printed: Option<Vec<u32>>,
    /// Shown in place of an empty table: why it is empty.
    pub when_empty: Cow<'static, str>,
    /// Keys of the columns that the page shows first: see [`Row::SHOWN`].
    #[serde(default)]
    pub shown: Vec<Cow<'static, str>>,
}

impl Table {
    /// Shows a label for each id of the column `key`.
    #[must_use]
    pub fn labelled(mut self, key: &str, label: fn(&str) -> Cell) -> Self {
        if let Some(at) = self.column(key) {
            for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(at)) {
                *cell = label(&cell.raw());
            }
        }
        self
    }

    /// The table of `rows`.
    #[must_use]
    pub fn of<R: Row>(id: &'static str, title: &'static str, rows: &[R]) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            columns: R::COLUMNS
                .iter()
                .map(|column| TableColumn {
                    key: column.key.into(),
                    title: column.title.into(),
                    unit: column.unit,
                    help: column.help.into(),
                    summed: false,
                })
                .collect(),
            rows: rows
                .iter()
                .map(|row| R::COLUMNS.iter().map(|column| (column.cell)(row)).collect())
                .collect(),
            preview: None,
            printed: None,
            when_empty: "Nothing to show.".into(),
            shown: R::SHOWN.iter().map(|key| (*key).into()).collect(),
        }
    }

    /// Sums the columns called `keys` in the totals row.
    #[must_use]
    pub fn summing(mut self, keys: &[&str]) -> Self {
        for column in &mut self.columns {
            column.summed = keys.contains(&&*column.key);
        }
        self
    }

    /// Leaves out a column, where it says nothing.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        if let Some(at) = self.column(key) {
            self.columns.remove(at);
            for row in &mut self.rows {
                row.remove(at);
            }
        }
        self
    }

    /// Keeps the columns called `keys`, in that order.
    #[must_use]
    pub fn only(mut self, keys: &[&str]) -> Self {
        let kept: Vec<usize> = keys.iter().filter_map(|key| self.column(key)).collect();
        let pick = |row: &Vec<Cell>| kept.iter().filter_map(|at| row.get(*at)).cloned().collect();
        self.rows = self.rows.iter().map(pick).collect();
        self.columns = kept.iter().filter_map(|at| self.columns.get(*at)).cloned().collect();
        self
    }

    /// Prints at most `rows` rows in a Markdown document.
    #[must_use]
    pub fn preview(mut self, rows: u32) -> Self {
        self.preview = Some(rows);
        self
    }

    /// Leaves out those of the columns called `keys` that have no value in any row.
    #[must_use]
    pub fn without_missing(mut self, keys: &[&str]) -> Self {
        let kept: Vec<bool> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| {
                let has_value =
                    |row: &Vec<Cell>| row.get(at).is_some_and(|cell| !cell.is_missing());
                !keys.contains(&&*column.key) || self.rows.iter().any(has_value)
            })
            .collect();
        let mut keep = kept.iter();
        self.columns.retain(|_| keep.next() == Some(&true));
        for row in &mut self.rows {
            let mut keep = kept.iter();
            row.retain(|_| keep.next() == Some(&true));
        }
        self
    }

    /// Sets the rows that a Markdown document prints, by `is_printed` for each row.
    #[must_use]
    pub fn printing(mut self, is_printed: impl IntoIterator<Item = bool>) -> Self {
        let rows = (0..).zip(is_printed);
        self.printed = Some(rows.filter(|(_, printed)| *printed).map(|(row, _)| row).collect());
        self
    }

    /// Sets the text for an empty table.
    #[must_use]
    pub fn when_empty(mut self, text: &'static str) -> Self {
        self.when_empty = text.into();
        self
    }

    /// The cell at a row and a column; `None` outside.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> Option<&Cell> {
        self.rows.get(row)?.get(column)
    }

    /// The number of the column called `key`.
    #[must_use]
    pub fn column(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.key == key)
    }

    /// The columns that are shown until a person chooses others: those of [`Table::shown`] that the table has, else
    /// its first ones; at most [`MOST_SHOWN`]. A column without any value gives its place to the next one.
    #[must_use]
    pub fn shown_columns(&self) -> Vec<usize> {
        let has_value = |at: &usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(*at));
            cells.any(|cell| !cell.is_missing() && cell.text() != Some(""))
        };
        let named = self.shown.iter().filter_map(|key| self.column(key)).collect::<Vec<_>>();
        let all = || (0..self.columns.len()).collect();
        let mut columns: Vec<usize> = if named.is_empty() { all() } else { named };
        if columns.iter().any(has_value) {
            columns.retain(has_value);
        }
        columns.truncate(MOST_SHOWN);
        columns
    }

    /// The one unit of a column, chosen from its largest value over *all* rows, so that a filter does not
    /// change it.
    #[must_use]
    pub fn scale(&self, column: usize) -> Scale {
        let cells = || self.rows.iter().filter_map(|row| row.get(column));
        match self.columns.get(column).map(|column| column.unit) {
            Some(Unit::Time) => Scale::time(
                cells()
                    .filter_map(|cell| match cell {
                        Cell::Ns(ns) => Some(ns.unsigned_abs()),
                        _ => None,
                    })
                    .max()
                    .unwrap_or(0),
            ),
            Some(unit @ (Unit::Bytes | Unit::FileBytes)) => {
                let largest = cells()
                    .filter_map(|cell| match cell {
                        Cell::Bytes(bytes) | Cell::FileBytes(bytes) => Some(*bytes),
                        _ => None,
                    })
                    .max()
                    .unwrap_or(0);
                if unit == Unit::Bytes { Scale::bytes(largest) } else { Scale::file_bytes(largest) }
            }
            _ => Scale::None,
        }
    }

    /// A column's header with its unit: `Total (ms)`.
    #[must_use]
    pub fn header(&self, column: usize) -> String {
        let Some(info) = self.columns.get(column) else { return String::new() };
        let unit = match info.unit {
            Unit::Instant => "µs",
            _ => self.scale(column).suffix(),
        };
        if unit.is_empty() { info.title.to_string() } else { format!("{} ({unit})", info.title) }
    }

    /// All rows and columns, in their order.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View::new(self)
    }
}

/// A type with rows for the tests of this crate.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Column;

    #[derive(Serialize)]
    pub(crate) struct Fruit {
        pub(crate) name: &'static str,
        pub(crate) eaten_ns: i64,
        pub(crate) share_pct: f64,
        pub(crate) seeds: Option<u64>,
    }

    impl Row for Fruit {
        const COLUMNS: &'static [Column<Self>] = &[
            Column {
                key: "name",
                title: "Fruit",
                unit: Unit::Name,
                help: "What it is.",
                cell: |row| row.name.into(),
            },
            Column {
                key: "eaten_ns",
                title: "Eaten in",
                unit: Unit::Time,
                help: "How long it took.",
                cell: |row| Cell::Ns(row.eaten_ns),
            },
            Column {
                key: "share_pct",
                title: "Share",
                unit: Unit::Percent,
                help: "Part of the meal.",
                cell: |row| Cell::Percent(row.share_pct),
            },
            Column {
                key: "seeds",
                title: "Seeds",
                unit: Unit::Count,
                help: "How many.",
                cell: |row| Cell::or_missing(row.seeds, Cell::Count, "not counted"),
            },
        ];
    }

    pub(crate) fn fruits() -> Table {
        let rows = [
            Fruit { name: "pear|x", eaten_ns: 4_500_000, share_pct: 90.0, seeds: Some(1_204) },
            Fruit { name: "fig<int, a::b<c>>(d)", eaten_ns: 450_000, share_pct: 9.0, seeds: None },
            Fruit { name: "=kiwi\tz", eaten_ns: 50_000, share_pct: 0.05, seeds: Some(7) },
        ];
        Table::of("fruits", "Fruits", &rows).summing(&["eaten_ns", "share_pct"])
    }

    #[test]
    fn json_keys_are_column_keys() {
        testkit::assert_keys(
            &Fruit { name: "", eaten_ns: 0, share_pct: 0.0, seeds: None },
            Fruit::COLUMNS.iter().map(|column| column.key),
        );
    }

    #[test]
    fn the_unit_stands_in_the_header() {
        let table = fruits();
        let headers: Vec<_> = (0..5).map(|column| table.header(column)).collect();
        assert_eq!(headers, ["Fruit", "Eaten in (ms)", "Share", "Seeds", ""]);
        assert_eq!(table.columns[1].align(), Align::Right);
    }

    #[test]
    fn a_table_crosses_as_json() {
        let table = fruits();
        let text = serde_json::to_string(&table).unwrap();
        assert_eq!(serde_json::from_str::<Table>(&text).unwrap(), table);
    }

    #[test]
    fn the_page_shows_at_most_eight_columns_the_named_ones_first() {
        let mut table = fruits();
        assert_eq!(table.shown_columns(), [0, 1, 2, 3], "without names the first ones");
        table.shown = vec!["seeds".into(), "gone".into(), "name".into()];
        assert_eq!(table.shown_columns(), [3, 0]);
        for row in &mut table.rows {
            row[3] = Cell::missing("not counted");
        }
        assert_eq!(table.shown_columns(), [0], "a column without a value gives way");
        let column = table.columns[1].clone();
        table.columns = vec![column; 12];
        table.rows = vec![vec![Cell::Ns(1); 12]];
        table.shown.clear();
        assert_eq!(table.shown_columns().len(), MOST_SHOWN);
    }

    #[test]
    fn some_columns_are_kept_in_the_order_asked() {
        let table = fruits().only(&["seeds", "nothing", "name"]);
        let keys: Vec<&str> = table.columns.iter().map(|column| &*column.key).collect();
        assert_eq!(keys, ["seeds", "name"]);
        assert_eq!(table.rows[0], [Cell::Count(1204), "pear|x".into()]);
    }
}
