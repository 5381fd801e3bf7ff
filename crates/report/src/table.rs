//! A table without its type: what crosses to the page and what Markdown prints.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::values::{Texts, TextsBuilder, Values};
use crate::{Align, Cell, MOST_SHOWN, Row, RowKey, Unit, units::Scale};

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

/// Rows of cells under columns. The cells are stored by column (ADR 16); tables share them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Stable id: `kernels`.
    pub id: Cow<'static, str>,
    /// What the rows are: "Kernels".
    pub title: Cow<'static, str>,
    /// The columns, in order.
    pub columns: Vec<TableColumn>,
    /// Which of the stored rows it has.
    rows: Rows,
    stored: Stored,
    /// How many rows a Markdown document prints; the rest is counted in one line. `None` for all.
    pub preview: Option<u32>,
    /// The rows that a Markdown document prints, where these are not the first ones. The page shows all.
    #[serde(skip)]
    pub printed: Option<Vec<u32>>,
    /// Whether documents leave it out, because it says there what stands elsewhere. The page shows it.
    #[serde(skip)]
    pub page_only: bool,
    /// Shown in place of an empty table: why it is empty.
    pub when_empty: Cow<'static, str>,
    /// Keys of the columns that the page shows first: see [`Row::SHOWN`].
    #[serde(default)]
    pub shown: Vec<Cow<'static, str>>,
}

/// What tables of the same rows share.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Stored {
    /// The cells of each column.
    values: Vec<Arc<Values>>,
    /// What each row is about; empty if no row has a key.
    keys: Arc<Values>,
    /// The texts of cells and keys.
    texts: Arc<Texts>,
}

impl Stored {
    fn of<'a>(
        n_rows: usize,
        n_columns: usize,
        cell: impl Fn(usize, usize) -> Cell<'a>,
        key: impl Fn(usize) -> Option<RowKey<'a>>,
    ) -> Self {
        let mut texts = TextsBuilder::default();
        let mut column = |column: usize| {
            let mut values = Values::with_capacity(n_rows);
            (0..n_rows).for_each(|row| values.push_cell(&cell(row, column), &mut texts));
            Arc::new(values)
        };
        let values = (0..n_columns).map(&mut column).collect();
        let mut keys = Values::default();
        if (0..n_rows).any(|row| key(row).is_some()) {
            (0..n_rows).for_each(|row| keys.push_key(key(row), &mut texts));
        }
        Self { values, keys: Arc::new(keys), texts: Arc::new(texts.finish()) }
    }
}

/// Which of the stored rows a table has.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Rows {
    /// All of them: so many.
    All(u32),
    /// These, in this order.
    These(Arc<Vec<u32>>),
}

impl Default for Rows {
    fn default() -> Self {
        Self::All(0)
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        let mut rows = 0..self.n_rows();
        (&self.id, &self.title, &self.columns, self.preview, &self.printed)
            == (&other.id, &other.title, &other.columns, other.preview, &other.printed)
            && (&self.when_empty, &self.shown) == (&other.when_empty, &other.shown)
            && self.n_rows() == other.n_rows()
            && rows.all(|row| self.row(row).eq(other.row(row)) && self.key(row) == other.key(row))
    }
}

impl Table {
    /// The table of `rows`.
    #[must_use]
    pub fn of<R: Row>(id: &'static str, title: &'static str, rows: &[R]) -> Self {
        let cell = |row: usize, column: usize| (R::COLUMNS[column].cell)(&rows[row]);
        let stored = Stored::of(rows.len(), R::COLUMNS.len(), cell, |row| rows[row].key());
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
            rows: Rows::All(rows.len() as u32),
            stored,
            preview: None,
            printed: None,
            page_only: false,
            when_empty: "Nothing to show.".into(),
            shown: R::SHOWN.iter().map(|key| (*key).into()).collect(),
        }
    }

    /// How many rows it has.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        match &self.rows {
            Rows::All(n) => *n as usize,
            Rows::These(rows) => rows.len(),
        }
    }

    /// Whether it has no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n_rows() == 0
    }

    /// Where a row is stored.
    fn place(&self, row: usize) -> Option<usize> {
        match &self.rows {
            Rows::All(_) => Some(row),
            Rows::These(rows) => rows.get(row).map(|row| *row as usize),
        }
    }

    /// The cell at a row and a column; `None` outside.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> Option<Cell<'_>> {
        self.stored.values.get(column)?.cell(self.place(row)?, &self.stored.texts)
    }

    /// The cells of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = Cell<'_>> {
        (0..self.columns.len()).filter_map(move |column| self.cell(row, column))
    }

    /// The cells of a column.
    pub fn cells(&self, column: usize) -> impl Iterator<Item = Cell<'_>> {
        (0..self.n_rows()).filter_map(move |row| self.cell(row, column))
    }

    /// What a row is about.
    #[must_use]
    pub fn key(&self, row: usize) -> Option<RowKey<'_>> {
        self.stored.keys.key(self.place(row)?, &self.stored.texts)
    }

    /// These rows of the table, in this order. The cells are shared.
    #[must_use]
    pub fn keep(&self, rows: &[u32]) -> Self {
        let places = rows.iter().filter_map(|row| self.place(*row as usize));
        let rows = Rows::These(Arc::new(places.map(|row| row as u32).collect()));
        Self { rows, printed: None, ..self.clone() }
    }

    /// Puts a column of shares in at a place: `shares` has one for each row, in percent.
    #[must_use]
    pub fn with_shares(mut self, at: usize, column: TableColumn, shares: &[f64]) -> Self {
        let n_stored = self.stored.values.first().map_or(self.n_rows(), |values| values.len());
        // What is stored and not a row of this table is never read.
        let mut all = vec![f64::NAN; n_stored];
        for (row, share) in shares.iter().enumerate() {
            if let Some(place) = self.place(row).and_then(|place| all.get_mut(place)) {
                *place = *share;
            }
        }
        let at = at.min(self.columns.len());
        self.columns.insert(at, column);
        self.stored.values.insert(at, Arc::new(Values::of_shares(&all)));
        self
    }

    /// The table with other cells. Nothing of the former ones stays in it.
    #[must_use]
    pub fn mapped(&self, change: impl for<'a> Fn(&TableColumn, Cell<'a>) -> Cell<'a>) -> Self {
        let cell = |row: usize, column: usize| {
            let cell = self.cell(row, column).unwrap_or(Cell::missing(""));
            self.columns.get(column).map_or(Cell::missing(""), |column| change(column, cell))
        };
        let n_rows = self.n_rows();
        let stored = Stored::of(n_rows, self.columns.len(), cell, |row| self.key(row));
        Self { rows: Rows::All(n_rows as u32), stored, ..self.clone() }
    }

    /// Shows a label for each id of the column `key`.
    #[must_use]
    pub fn labelled(self, key: &str, label: fn(&str) -> Cell<'_>) -> Self {
        self.mapped(
            |column, cell| {
                if column.key == key { label(&cell.raw()).into_owned() } else { cell }
            },
        )
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
            self.stored.values.remove(at);
        }
        self
    }

    /// Keeps the columns called `keys`, in that order.
    #[must_use]
    pub fn only(mut self, keys: &[&str]) -> Self {
        let kept: Vec<usize> = keys.iter().filter_map(|key| self.column(key)).collect();
        let values = kept.iter().filter_map(|at| self.stored.values.get(*at));
        self.stored.values = values.cloned().collect();
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
    pub fn without_missing(self, keys: &[&str]) -> Self {
        self.without_where(keys, |cell| cell.is_missing())
    }

    /// Leaves out those of the columns called `keys` that are 0 in every row.
    #[must_use]
    pub fn without_zero(self, keys: &[&str]) -> Self {
        self.without_where(keys, |cell| cell.number() == Some(0.0))
    }

    fn without_where(mut self, keys: &[&str], says_nothing: fn(&Cell<'_>) -> bool) -> Self {
        for key in keys {
            if self.column(key).is_some_and(|at| self.cells(at).all(|cell| says_nothing(&cell))) {
                self = self.without(key);
            }
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

    /// Leaves the table out of documents if `is_so`.
    #[must_use]
    pub fn only_on_page(mut self, is_so: bool) -> Self {
        self.page_only = is_so;
        self
    }

    /// Sets the text for an empty table.
    #[must_use]
    pub fn when_empty(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.when_empty = text.into();
        self
    }

    /// The number of the column called `key`.
    #[must_use]
    pub fn column(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.key == key)
    }

    /// The columns that are shown until a person chooses others: those of [`Table::shown`] that the table has, else
    /// its first ones; at most `MOST_SHOWN`. A column without any value gives its place to the next one.
    #[must_use]
    pub fn shown_columns(&self) -> Vec<usize> {
        let has_value =
            |at: &usize| self.cells(*at).any(|cell| !cell.is_missing() && cell.text() != Some(""));
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
        let cells = || self.cells(column);
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
                        Cell::Bytes(bytes) | Cell::FileBytes(bytes) => Some(bytes),
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
}

#[cfg(test)]
pub(crate) mod tests;
