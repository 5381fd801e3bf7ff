//! The shown columns of a table, in order.

use kinetoscope::report::Table;

/// Every column, those that are shown by default first.
#[must_use]
pub fn in_order(table: &Table) -> Vec<usize> {
    let mut columns = table.shown_columns();
    let rest = (0..table.columns.len()).filter(|at| !columns.contains(at)).collect::<Vec<_>>();
    columns.extend(rest);
    columns
}

/// The columns to draw: the `chosen` ones, by key, in the table's order; without a choice, or where the table has none
/// of them, the default.
#[must_use]
pub fn shown(table: &Table, chosen: Option<&[String]>) -> Vec<usize> {
    let is_chosen = |at: &usize| {
        let key = table.columns.get(*at).map(|column| &*column.key);
        chosen.is_some_and(|keys| keys.iter().any(|of| Some(of.as_str()) == key))
    };
    let kept: Vec<usize> = in_order(table).into_iter().filter(is_chosen).collect();
    if kept.is_empty() { table.shown_columns() } else { kept }
}

/// The choice after a click on the column called `key`. The last column stays.
#[must_use]
pub fn toggled(table: &Table, chosen: Option<&[String]>, key: &str) -> Vec<String> {
    let before = shown(table, chosen);
    let key_of = |at: &usize| table.columns.get(*at).map(|column| column.key.to_string());
    let mut keys: Vec<String> = before.iter().filter_map(key_of).collect();
    match keys.iter().position(|of| of == key) {
        Some(_) if keys.len() == 1 => {}
        Some(at) => {
            keys.remove(at);
        }
        None => keys.push(key.to_owned()),
    }
    keys
}

/// The first columns that fit `room_px` side by side, at least two: what a narrow screen shows of `columns`, which need
/// `widths_px`. The others are in the row's details.
#[must_use]
pub fn fitting(columns: &[usize], widths_px: &[u32], room_px: u32) -> Vec<usize> {
    let mut used_px = 0;
    let fits = |(place, (_, width_px)): &(usize, (&usize, &u32))| {
        used_px += **width_px;
        *place < 2 || used_px <= room_px
    };
    let pairs = columns.iter().zip(widths_px).enumerate();
    pairs.take_while(fits).map(|(_, (column, _))| *column).collect()
}

#[cfg(test)]
mod tests {
    use kinetoscope::report::Table;
    use kinetoscope::{Category, KernelLine, KernelTableRow, Stage};

    use super::*;

    fn table() -> Table {
        let row = KernelTableRow {
            stage: Some(Stage::Decode),
            kernel_name: "k".into(),
            python_location: "model.py:3 forward".into(),
            cpu_op: "aten::mm".into(),
            category: Category::Gemm,
            ..KernelTableRow::default()
        };
        Table::of("kernel-table", "Kernels", &[KernelLine::from(row)])
    }

    fn keys(table: &Table, columns: &[usize]) -> Vec<String> {
        columns.iter().map(|at| table.columns[*at].key.to_string()).collect()
    }

    #[test]
    fn the_default_is_eight_columns_and_the_chosen_ones_replace_it() {
        let table = table();
        let default = shown(&table, None);
        assert_eq!(default.len(), 8);
        assert_eq!(keys(&table, &default[..2]), ["kernel_name", "stage"]);
        let chosen = ["grid".to_owned(), "kernel_name".to_owned(), "gone".to_owned()];
        assert_eq!(keys(&table, &shown(&table, Some(&chosen))), ["kernel_name", "grid"]);
        assert_eq!(shown(&table, Some(&["gone".to_owned()])), default);
        assert_eq!(in_order(&table).len(), table.columns.len());
    }

    #[test]
    fn a_click_adds_or_removes_a_column_and_the_last_one_stays() {
        let table = table();
        let more = toggled(&table, None, "grid");
        assert_eq!((more.len(), more.last().map(String::as_str)), (9, Some("grid")));
        assert!(!toggled(&table, Some(&more), "stage").contains(&"stage".to_owned()));
        let one = ["grid".to_owned()];
        assert_eq!(toggled(&table, Some(&one), "grid"), one);
    }

    #[test]
    fn a_narrow_screen_shows_what_fits_and_at_least_two_columns() {
        assert_eq!(fitting(&[4, 2, 9], &[150, 90, 120], 360), [4, 2, 9]);
        assert_eq!(fitting(&[4, 2, 9], &[150, 90, 121], 360), [4, 2]);
        assert_eq!(fitting(&[4, 2, 9], &[500, 90, 10], 360), [4, 2]);
        assert_eq!(fitting(&[4], &[500], 360), [4]);
    }
}
