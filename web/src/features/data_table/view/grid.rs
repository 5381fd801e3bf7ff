//! What a table does when it is used: a method for each kind of event.

use std::rc::Rc;

use kinetoscope::report::Table;
use web_sys::HtmlElement;
use yew::prelude::*;

use super::body::Selection;
use super::columns::{self, Layout};
use super::keys::{self, Move, Step};
use super::toolbar::Wanted;
use super::{Rows, head_id};
use crate::features::data_table::queries::columns::toggled;
use crate::features::data_table::queries::grid::{CopyAs, TableSettings, copied, first_direction};
use crate::features::data_table::queries::order::{Direction, Sort};
use crate::features::data_table::queries::scroll;
use crate::shared::Shared;
use crate::state::Action;
use crate::tasks::{Tasks, settings as kept};

/// A click on a header: its place, the key of the column, the direction at first, and whether it is a second key.
type Sorted = (usize, String, Direction, bool);

/// A table as it is drawn, and what its events change.
#[derive(Clone)]
pub struct Grid {
    pub table: Shared<Table>,
    pub settings: TableSettings,
    /// The order until a person chooses one.
    pub default: Sort,
    pub shown: Rows,
    pub layout: Rc<Layout>,
    pub scroller: NodeRef,
    /// The element with the keyboard's focus.
    pub element: NodeRef,
    pub selection: UseStateHandle<Selection>,
    pub details_open: UseStateHandle<bool>,
    pub tasks: Tasks,
}

impl Grid {
    /// The row that is active, by its number in the table.
    pub fn active_row(&self) -> Option<u32> {
        self.selection.active().and_then(|place| self.shown.rows.get(place).copied())
    }

    /// The row whose details are open.
    pub fn detail_row(&self) -> Option<u32> {
        self.shown.rows.get(self.selection.row).copied().filter(|_| *self.details_open)
    }

    /// The column of the active cell, and the id of its element. (Fewer columns may be drawn than when the cell was chosen.)
    pub fn active_cell(&self) -> (usize, String) {
        let column = self.selection.column.min(self.layout.columns.len().saturating_sub(1));
        let id = match self.selection.head {
            true => head_id(&self.table.id, column),
            false => format!("{}-cell-{}-{column}", self.table.id, self.selection.row),
        };
        (column, id)
    }

    fn set(&self, settings: TableSettings) {
        self.tasks.dispatch(Action::TableSet(self.table.id.to_string(), settings));
    }

    fn sort_by(&self, column: &str, first: Direction, second: bool) {
        let sort = self.settings.sort.as_ref().unwrap_or(&self.default);
        let sort = Some(sort.clicked(column, first, second));
        self.set(TableSettings { sort, ..self.settings.clone() });
    }

    pub fn on_sort(&self) -> Callback<Sorted> {
        let own = self.clone();
        Callback::from(move |(place, column, first, second): Sorted| {
            own.sort_by(&column, first, second);
            // The keyboard goes on from the header that was clicked.
            own.focus();
            own.selection.set(Selection { column: place, head: true, ..(*own.selection).clone() });
        })
    }

    pub fn on_columns(&self) -> Callback<Wanted> {
        let own = self.clone();
        Callback::from(move |wanted: Wanted| {
            let (table, chosen) = (&own.table, own.settings.columns.as_deref());
            let keys = || table.columns.iter().map(|column| column.key.to_string()).collect();
            let columns = match wanted {
                Wanted::Toggled(key) => Some(toggled(table, chosen, &key)),
                Wanted::All => Some(keys()),
                Wanted::Default => None,
            };
            kept::keep_columns(&table.id, columns.as_deref());
            own.set(TableSettings { columns, ..own.settings.clone() });
        })
    }

    pub fn on_filter(&self) -> Callback<String> {
        let own = self.clone();
        Callback::from(move |filter| own.set(TableSettings { filter, ..own.settings.clone() }))
    }

    pub fn on_copy(&self) -> Callback<CopyAs> {
        let own = self.clone();
        Callback::from(move |form| own.copy(&own.shown.rows, form))
    }

    /// `on_click`: whether a click opens the details, as a double click does.
    pub fn on_pick(&self, on_click: bool) -> Callback<(usize, usize, bool)> {
        let own = self.clone();
        Callback::from(move |(row, column, open): (usize, usize, bool)| {
            own.selection.set(Selection::at(row, column));
            if open || on_click {
                own.details_open.set(true);
            }
        })
    }

    pub fn on_key(&self) -> Callback<KeyboardEvent> {
        let own = self.clone();
        Callback::from(move |event: KeyboardEvent| {
            if !keys::on_grid(&event) {
                return;
            }
            let page = own.scroller.cast::<HtmlElement>().map_or(10, |element| {
                (f64::from(element.client_height()) / scroll::ROW_PX) as usize
            });
            let Some(step) = keys::step(&event, page) else { return };
            event.prevent_default();
            own.take(step, event.shift_key());
        })
    }

    fn take(&self, step: Step, shift: bool) {
        let Self { table, shown, layout, selection, details_open, .. } = self;
        match step {
            Step::Move(step, extend) => {
                let next = selection.moved(step, extend, shown.rows.len(), layout.columns.len());
                reveal(&self.scroller, next.row, shown.rows.len());
                selection.set(next);
            }
            Step::All => selection.set(Selection::all(shown.rows.len())),
            Step::Open if selection.head => {
                let at = layout.columns.get(selection.column);
                if let Some(column) = at.and_then(|at| table.columns.get(*at)) {
                    self.sort_by(&column.key, first_direction(column.unit), shift);
                }
            }
            Step::Open => details_open.set(!**details_open),
            Step::Clear => {
                details_open.set(false);
                selection.set(Selection::at(selection.row, selection.column));
            }
            Step::Copy => self.copy(selection.of(&shown.rows), CopyAs::Tsv),
        }
    }

    pub fn on_close(&self) -> Callback<()> {
        let own = self.clone();
        Callback::from(move |()| {
            own.details_open.set(false);
            // The row that was shown is still the active one.
            own.focus();
        })
    }

    fn focus(&self) {
        if let Some(element) = self.element.cast::<HtmlElement>() {
            let _focused = element.focus();
        }
    }

    fn copy(&self, rows: &[u32], form: CopyAs) {
        let name = match form {
            CopyAs::Tsv => "tab-separated values",
            CopyAs::Markdown => "Markdown",
        };
        let rows_text = kinetoscope::report::units::plural(rows.len() as u64, "row", "rows");
        self.tasks.copy(copied(&self.table, rows, form), format!("Copied {rows_text} as {name}"));
    }
}

fn reveal(scroller: &NodeRef, row: usize, n_rows: usize) {
    let Some(element) = scroller.cast::<HtmlElement>() else { return };
    // Header and totals cover a row each.
    let viewport = f64::from(element.client_height()) - columns::HEAD_PX - scroll::ROW_PX;
    if let Some(top) = scroll::reveal(row, n_rows, f64::from(element.scroll_top()), viewport) {
        element.set_scroll_top(top as i32);
    }
}

impl Selection {
    /// The selection after a key.
    fn moved(&self, step: Move, extend: bool, n_rows: usize, n_columns: usize) -> Self {
        let last_row = n_rows.saturating_sub(1);
        let (mut row, mut column, mut head) = (self.row, self.column, self.head);
        match step {
            // From the header down to the first row.
            Move::Rows(by) if head => {
                if by > 0 {
                    (row, head) = (0, false);
                }
            }
            Move::Rows(by) if by < 0 && row == 0 => head = true,
            // The first key picks the row that is active already.
            Move::Rows(_) if !self.touched => {}
            Move::Rows(by) => row = row.saturating_add_signed(by).min(last_row),
            Move::Columns(by) => {
                column = column.saturating_add_signed(by).min(n_columns.saturating_sub(1));
            }
            Move::FirstRow => (row, head) = (0, false),
            Move::LastRow => (row, head) = (last_row, false),
        }
        let anchor = if extend { self.anchor } else { row };
        Self { row, column, anchor, touched: true, head }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_lead_over_the_headers_and_the_rows() {
        let step = |from: &Selection, step| from.moved(step, false, 3, 2);
        let first = step(&Selection::default(), Move::Rows(1));
        assert_eq!(first, Selection::at(0, 0), "the first key picks the active row");
        let head = step(&first, Move::Rows(-1));
        assert!(head.head && head.row == 0);
        let right = step(&head, Move::Columns(1));
        assert_eq!((right.head, right.column), (true, 1));
        assert_eq!(step(&right, Move::Rows(1)), Selection::at(0, 1));
        assert_eq!(step(&right, Move::LastRow), Selection::at(2, 1));
        assert_eq!(step(&Selection::at(2, 1), Move::Rows(5)).row, 2);
    }
}
