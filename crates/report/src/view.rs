//! The shown rows and columns of a table, in order, for sorting and copying.

use std::cmp::Ordering;

use crate::{Cell, Table, TableColumn, units};

/// Rows and columns of a table, in the order they are shown.
#[derive(Clone, Debug)]
pub struct View<'a> {
    table: &'a Table,
    /// Row numbers of the table.
    pub rows: Vec<u32>,
    /// Column numbers of the table.
    pub columns: Vec<u32>,
}

/// One key of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortBy {
    /// Column number of the table.
    pub column: u32,
    /// Largest first.
    pub descending: bool,
}

impl Table {
    /// All rows and columns, in their order.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View::new(self)
    }

    /// How two rows compare by the first key, ties by the next. A missing value comes last in either direction.
    #[must_use]
    pub fn order(&self, keys: &[SortBy], a: u32, b: u32) -> Ordering {
        let orders = keys.iter().map(|key| {
            let cell = |row: u32| self.cell(row as usize, key.column as usize);
            let (Some(a), Some(b)) = (cell(a), cell(b)) else { return Ordering::Equal };
            let by_missing = a.is_missing().cmp(&b.is_missing());
            let by_value = a.order(&b);
            by_missing.then(if key.descending { by_value.reverse() } else { by_value })
        });
        orders.fold(Ordering::Equal, Ordering::then)
    }

    /// The rows and columns that a document prints, and how many rows it leaves out. A column in which no row says
    /// anything is left out.
    #[must_use]
    pub(crate) fn printed_view(&self) -> (View<'_>, usize) {
        let mut view = self.view();
        if let Some(printed) = &self.printed {
            view.rows =
                printed.iter().filter_map(|row| view.rows.get(*row as usize).copied()).collect();
        }
        let all = view.rows.len();
        let shown = self.preview.map_or(all, |rows| all.min(rows as usize));
        // (Rows that are cut off are in the totals.)
        let says = |column: &u32| {
            let mut cells =
                view.rows.iter().filter_map(|row| self.cell(*row as usize, *column as usize));
            cells.any(|cell| !cell.is_missing() && cell.text() != Some(""))
        };
        view.columns = view.columns.iter().copied().filter(says).collect();
        view.rows.truncate(shown);
        (view, all - shown)
    }
}

impl<'a> View<'a> {
    /// All of `table`.
    #[must_use]
    pub fn new(table: &'a Table) -> Self {
        Self {
            table,
            rows: (0..table.n_rows() as u32).collect(),
            columns: (0..table.columns.len() as u32).collect(),
        }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &'a Table {
        self.table
    }

    /// Keeps rows for which `keep` is true.
    pub fn filter(&mut self, mut keep: impl FnMut(usize) -> bool) {
        self.rows.retain(|row| keep(*row as usize));
    }

    /// Sorts by the first key, ties by the next; equal rows keep their order. A missing value comes last
    /// in either direction.
    pub fn sort(&mut self, keys: &[SortBy]) {
        let table = self.table;
        self.rows.sort_by(|a, b| table.order(keys, *a, *b));
    }

    /// The shown columns.
    pub fn columns(&self) -> impl Iterator<Item = (usize, &'a TableColumn)> {
        self.columns.iter().filter_map(|column| {
            Some((*column as usize, self.table.columns.get(*column as usize)?))
        })
    }

    /// The shown cells, row by row.
    pub fn cells(&self) -> impl Iterator<Item = Vec<Cell<'a>>> {
        self.rows.iter().map(|row| {
            self.columns
                .iter()
                .filter_map(|column| self.table.cell(*row as usize, *column as usize))
                .collect()
        })
    }

    /// The line under a table of which `n` rows are not printed. (`self` is of all rows.)
    pub(crate) fn left_out(&self, n: usize) -> String {
        let rows = units::plural(n as u64, "more row", "more rows");
        match self.totals() {
            Some(_) => format!("{rows}, included in the totals."),
            None => format!("{rows} in the JSON document."),
        }
    }

    /// The sums of the shown rows: one entry per shown column, `None` where a sum means nothing. `None`
    /// altogether when no column has a sum or there are fewer than two rows.
    #[must_use]
    pub fn totals(&self) -> Option<Vec<Option<Cell<'a>>>> {
        if self.rows.len() < 2 || !self.columns().any(|(_, column)| column.summed) {
            return None;
        }
        let sum = |index: usize| {
            let mut cells =
                self.rows.iter().filter_map(|row| self.table.cell(*row as usize, index));
            let first = cells.next()?;
            cells.try_fold(first, |sum, cell| sum.plus(&cell))
        };
        Some(
            self.columns()
                .map(|(index, column)| if column.summed { sum(index) } else { None })
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::fruits;

    #[test]
    fn sorts_by_raw_values_and_keeps_ties() {
        let table = fruits();
        let mut view = table.view();
        view.sort(&[SortBy { column: 1, descending: false }]);
        assert_eq!(view.rows, [2, 1, 0]);
        view.sort(&[SortBy { column: 3, descending: true }]);
        assert_eq!(view.rows, [0, 2, 1], "missing last");
        view.sort(&[SortBy { column: 3, descending: false }]);
        assert_eq!(view.rows, [2, 0, 1], "missing last");
        view.sort(&[SortBy { column: 9, descending: false }]);
        assert_eq!(view.rows, [2, 0, 1]);
    }

    #[test]
    fn totals_follow_the_filter() {
        let table = fruits();
        let mut view = table.view();
        assert_eq!(
            view.totals().unwrap(),
            [None, Some(Cell::Ns(5_000_000)), Some(Cell::Percent(99.05)), None]
        );
        view.filter(|row| table.cell(row, 1).unwrap().number() > Some(100_000.0));
        assert_eq!(view.rows, [0, 1]);
        view.columns = vec![1];
        assert_eq!(view.totals().unwrap(), [Some(Cell::Ns(4_950_000))]);
        view.rows = vec![0];
        assert_eq!(view.totals(), None);
    }
}
