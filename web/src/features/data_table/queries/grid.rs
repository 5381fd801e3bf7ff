//! The content of a table: rows after filter and sort, their summary, and their text for copying.

use kinetoscope::report::{Align, Cell, SortBy, Table, Unit, View, units};
use kinetoscope::trace::sort_numbers;

use super::filter::Filter;
use super::order::{Direction, Sort};

/// How a person has set a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSettings {
    /// Keys of the columns to show; `None` for the default ones.
    pub columns: Option<Vec<String>>,
    /// Whether kernels have a row per stage where all stages are shown; otherwise they are merged by name.
    pub by_stage: bool,
    /// The order; `None` until a header is clicked, which means the table's default.
    pub sort: Option<Sort>,
    /// The filter as typed.
    pub filter: String,
}

/// Rows of a table in the order they are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownRows {
    /// Row numbers of the table.
    pub rows: Vec<u32>,
    /// "37 of 1 204 rows, 91.2% of time"; all rows: "1 204 rows".
    pub summary: String,
}

/// The column that bare comparisons and the summary are about: the first one with a sum, else the first
/// length of time.
#[must_use]
pub fn weight_column(table: &Table) -> Option<usize> {
    let is_time = |unit| unit == Unit::Time;
    table
        .columns
        .iter()
        .position(|column| column.summed && is_time(column.unit))
        .or_else(|| table.columns.iter().position(|column| is_time(column.unit)))
        .or_else(|| table.columns.iter().position(|column| column.unit == Unit::Count))
}

/// Numbers start with the largest, words with the first letter.
#[must_use]
pub fn first_direction(unit: Unit) -> Direction {
    match unit.align() {
        Align::Right => Direction::Descending,
        Align::Left => Direction::Ascending,
    }
}

/// The shown rows of `table`.
#[must_use]
pub fn shown_rows(table: &Table, settings: &TableSettings, default: &Sort) -> ShownRows {
    let weight = weight_column(table);
    let filter = Filter::parse(&settings.filter, table, weight);
    let mut view = table.view();
    if !filter.is_empty() {
        view.filter(|row| filter.keeps(table, row));
    }
    let sort = settings.sort.as_ref().unwrap_or(default);
    let keys = sort.keys.iter().filter_map(|key| {
        let column = u32::try_from(table.column(&key.column)?).ok()?;
        Some(SortBy { column, descending: key.direction == Direction::Descending })
    });
    let keys: Vec<SortBy> = keys.collect();
    if !keys.is_empty() {
        // (`View::sort` would compile the library's sort once more.)
        sort_numbers(&mut view.rows, &|a, b| table.order(&keys, a, b));
    }
    let summary = summary(&view, weight);
    ShownRows { rows: view.rows, summary }
}

fn summary(view: &View<'_>, weight: Option<usize>) -> String {
    let table = view.table();
    let all = table.n_rows();
    let shown = view.rows.len();
    if shown == all {
        return units::plural(all as u64, "row", "rows");
    }
    let mut text =
        format!("{} of {}", units::count(shown as u64), units::plural(all as u64, "row", "rows"));
    let summed = weight.filter(|at| {
        table.columns.get(*at).is_some_and(|column| column.summed && column.unit == Unit::Time)
    });
    if let Some(column) = summed {
        let ns = |row: usize| match table.cell(row, column) {
            Some(Cell::Ns(ns)) => i128::from(ns),
            _ => 0,
        };
        let whole: i128 = (0..all).map(ns).sum();
        let part: i128 = view.rows.iter().map(|row| ns(*row as usize)).sum();
        if whole > 0 {
            text.push_str(&format!(
                ", {} of time",
                units::percent(part as f64 / whole as f64 * 100.0)
            ));
        }
    }
    text
}

/// In which form rows are copied, always with all columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyAs {
    /// Raw numbers under column keys, for a spreadsheet.
    Tsv,
    /// Formatted, for an issue or a note.
    Markdown,
}

/// The text of a copy of `rows`, in this order.
#[must_use]
pub fn copied(table: &Table, rows: &[u32], form: CopyAs) -> String {
    let mut view = table.view();
    view.rows = rows.to_vec();
    match form {
        CopyAs::Tsv => view.tsv(),
        CopyAs::Markdown => view.markdown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinetoscope::report::{Column, Row};

    struct Step(&'static str, i64);

    impl Row for Step {
        const COLUMNS: &'static [Column<Self>] = &[
            Column {
                key: "name",
                title: "Step",
                unit: Unit::Text,
                help: "",
                cell: |row| row.0.into(),
            },
            Column {
                key: "dur_ns",
                title: "Took",
                unit: Unit::Time,
                help: "",
                cell: |row| Cell::Ns(row.1),
            },
        ];
    }

    fn steps() -> Table {
        let rows = [Step("b", 30), Step("a", 60), Step("c", 10), Step("a", 0)];
        Table::of("steps", "Steps", &rows).summing(&["dur_ns"])
    }

    #[test]
    fn filter_and_order_work_together() {
        let settings = TableSettings {
            sort: Some(Sort::by("dur_ns", Direction::Ascending)),
            filter: ">5".into(),
            ..TableSettings::default()
        };
        let shown = shown_rows(&steps(), &settings, &Sort::default());
        assert_eq!(shown.rows, [2, 0, 1]);
        assert_eq!(shown.summary, "3 of 4 rows, 100.0% of time");
        assert_eq!(
            copied(&steps(), &shown.rows, CopyAs::Tsv),
            "name\tdur_ns\nc\t10\nb\t30\na\t60\n"
        );
    }

    #[test]
    fn the_default_order_holds_until_a_header_is_clicked() {
        let default = Sort::by("name", Direction::Descending);
        let untouched = shown_rows(&steps(), &TableSettings::default(), &default);
        assert_eq!(untouched.rows, [2, 0, 1, 3]);
        assert_eq!(untouched.summary, "4 rows");
        let none = TableSettings { sort: Some(Sort::default()), ..TableSettings::default() };
        assert_eq!(shown_rows(&steps(), &none, &default).rows, [0, 1, 2, 3]);
    }

    #[test]
    fn unknown_columns_of_an_address_change_nothing() {
        let settings = TableSettings { sort: Sort::parse("moon.desc"), ..TableSettings::default() };
        assert_eq!(shown_rows(&steps(), &settings, &Sort::default()).rows, [0, 1, 2, 3]);
    }
}
