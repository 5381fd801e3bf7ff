//! The table component: sorts, filters, draws only the visible rows, and copies them as shown.

mod body;
mod columns;
mod details;
mod head;
mod keys;
mod menu;
mod toolbar;

use gloo::events::EventListener;
use gloo::timers::callback::Timeout;
use gloo::utils::window;
use kinetoscope::report::Table;
use web_sys::HtmlElement;
use yew::prelude::*;

use crate::features::data_table::queries::columns::{in_order, shown as shown_columns, toggled};
use crate::features::data_table::queries::grid::{
    CopyAs, ShownRows, TableSettings, copied, first_direction, shown_rows,
};
use crate::features::data_table::queries::order::{Direction, Sort};
use crate::features::data_table::queries::panel;
use crate::features::data_table::queries::scroll::{self, Window};
use crate::shared::Shared;
use crate::state::Action;
use crate::tasks::{Tasks, settings as kept};
use body::{Selection, table_body};
use columns::{Layout, Names};
use details::RowDetails;
pub use details::copy_button;
use head::{head_id, table_head};
use keys::{Move, Step};
use toolbar::{Choice, Toolbar, Wanted, toolbar};

/// A table and how it is set.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The rows.
    pub table: Shared<Table>,
    /// Order and filter as a person set them.
    #[prop_or_default]
    pub settings: TableSettings,
    /// The column that orders the table until a header is clicked, largest first; without one the rows
    /// stand as the report lists them.
    #[prop_or_default]
    pub default_sort: Option<&'static str>,
    /// Level of the table's heading.
    #[prop_or(true)]
    pub titled: bool,
    /// Whether it takes the height that is left.
    #[prop_or_default]
    pub tall: bool,
    /// Whether a click on a row opens its details, at the right of the table where there is room.
    #[prop_or_default]
    pub details_beside: bool,
    /// More on the row in the details; shown before its columns.
    #[prop_or_default]
    pub details: Html,
    /// The column that `details` shows already.
    #[prop_or_default]
    pub details_without: Option<&'static str>,
    /// Called with the row whose details are open.
    #[prop_or_default]
    pub on_details: Option<Callback<Option<u32>>>,
    /// Effects.
    pub tasks: Tasks,
}

/// Long enough for the browser to have drawn what is new.
const AFTER_PAINT_MS: u32 = 30;
/// Longer than a key that is held down takes to repeat.
const FOLLOW_AFTER_MS: u32 = 150;

/// The table.
#[component]
pub fn DataTable(props: &Props) -> Html {
    let Props { table, settings, tasks, .. } = props;
    let default = default_sort(props.default_sort);
    let shown = {
        let default = default.clone();
        use_memo((table.clone(), settings.clone()), move |(table, settings)| {
            shown_rows(table, settings, &default)
        })
    };
    let names = use_memo(table.clone(), |table| Names::of(table));
    let room_px = use_state_eq(first_room_px);
    let layout = {
        let of = (table.clone(), settings.columns.clone(), *room_px, names);
        use_memo(of, |(table, chosen, room_px, names)| {
            Layout::of(table, chosen.as_deref(), *room_px, names.clone())
        })
    };
    let scroller = use_node_ref();
    let grid = use_node_ref();
    let seen = use_state_eq(|| scroll::window(shown.rows.len(), 0.0, 600.0));
    let selection = use_state_eq(Selection::default);
    let details_open = use_state_eq(|| false);

    // What is visible follows from the scroller, which only the browser knows.
    let measure = {
        let (scroller, seen, room_px) = (scroller.clone(), seen.clone(), room_px.clone());
        Callback::from(move |n_rows: usize| {
            if let Some(element) = scroller.cast::<HtmlElement>() {
                let top = f64::from(element.scroll_top());
                seen.set(scroll::window(n_rows, top, f64::from(element.client_height())));
                // A table that is not drawn (in a closed part of the page) has no room; it keeps what it had.
                if let Ok(width @ 1..) = u32::try_from(element.client_width()) {
                    room_px.set(width);
                }
            }
        })
    };
    let first_rows = use_mut_ref(|| true);
    {
        let (measure, scroller) = (measure.clone(), scroller.clone());
        let (selection, details_open) = (selection.clone(), details_open.clone());
        use_effect_with((shown.clone(), table.clone()), move |(shown, _)| {
            // Other rows: from the top again. New ones are there already, and asking an element where it is
            // before the browser has laid it out makes it do so at once.
            if !first_rows.replace(false) {
                if let Some(element) = scroller.cast::<HtmlElement>() {
                    element.set_scroll_top(0);
                }
                // Whoever sorts by the keyboard stays on the header.
                let head = selection.head.then(|| (*selection).clone());
                selection.set(head.unwrap_or_default());
                details_open.set(false);
            }
            let n_rows = shown.rows.len();
            let timer = Timeout::new(AFTER_PAINT_MS, move || measure.emit(n_rows));
            move || drop(timer)
        });
    }
    {
        let (measure, n_rows) = (measure.clone(), shown.rows.len());
        use_effect_with(n_rows, move |n_rows| {
            let n_rows = *n_rows;
            let listener = EventListener::new(&window(), "resize", move |_| {
                measure.emit(n_rows);
            });
            move || drop(listener)
        });
    }
    {
        // The least width of the columns; a stylesheet cannot know it, and the page's policy forbids style
        // attributes, so it is set on the element.
        let (grid, layout) = (grid.clone(), layout.clone());
        use_effect_with(layout, move |layout| {
            if let Some(element) = grid.cast::<HtmlElement>() {
                let width = format!("{}px", layout.least_px);
                let _set = element.style().set_property("min-width", &width);
            }
        });
    }

    let onscroll = {
        let (measure, n_rows) = (measure.clone(), shown.rows.len());
        Callback::from(move |_: Event| measure.emit(n_rows))
    };
    let set = {
        let (tasks, id) = (tasks.clone(), table.id.to_string());
        Callback::from(move |settings| tasks.dispatch(Action::TableSet(id.clone(), settings)))
    };
    let sort_by = {
        let (set, settings, default) = (set.clone(), settings.clone(), default.clone());
        Callback::from(move |(column, first, second): (String, Direction, bool)| {
            let sort = settings.sort.as_ref().unwrap_or(&default).clicked(&column, first, second);
            set.emit(TableSettings { sort: Some(sort), ..settings.clone() });
        })
    };
    let on_sort = {
        let (sort_by, grid, selection) = (sort_by.clone(), grid.clone(), selection.clone());
        Callback::from(move |(place, column, first, second)| {
            sort_by.emit((column, first, second));
            // The keyboard goes on from the header that was clicked.
            focus(&grid);
            selection.set(Selection { column: place, head: true, ..(*selection).clone() });
        })
    };
    let on_columns = {
        let (set, settings, table) = (set.clone(), settings.clone(), table.clone());
        Callback::from(move |wanted: Wanted| {
            let keys = || table.columns.iter().map(|column| column.key.to_string()).collect();
            let columns = match wanted {
                Wanted::Toggled(key) => Some(toggled(&table, settings.columns.as_deref(), &key)),
                Wanted::All => Some(keys()),
                Wanted::Default => None,
            };
            kept::keep_columns(&table.id, columns.as_deref());
            set.emit(TableSettings { columns, ..settings.clone() });
        })
    };
    let on_filter = {
        let (set, settings) = (set, settings.clone());
        Callback::from(move |filter| set.emit(TableSettings { filter, ..settings.clone() }))
    };
    let on_copy = {
        let (tasks, table, shown) = (tasks.clone(), table.clone(), shown.clone());
        Callback::from(move |form| copy(&tasks, &table, &shown.rows, form))
    };
    let on_pick = {
        let (selection, details_open) = (selection.clone(), details_open.clone());
        // A narrow screen shows few columns, and a finger has no double click.
        let on_click = props.details_beside || f64::from(*room_px) < columns::NARROW_PX;
        Callback::from(move |(row, column, open): (usize, usize, bool)| {
            selection.set(Selection::at(row, column));
            if open || on_click {
                details_open.set(true);
            }
        })
    };
    let onkeydown = {
        let (tasks, table, shown) = (tasks.clone(), table.clone(), shown.clone());
        let (selection, details_open) = (selection.clone(), details_open.clone());
        let (scroller, layout) = (scroller.clone(), layout.clone());
        Callback::from(move |event: KeyboardEvent| {
            if !keys::on_grid(&event) {
                return;
            }
            let page = scroller.cast::<HtmlElement>().map_or(10, |element| {
                (f64::from(element.client_height()) / scroll::ROW_PX) as usize
            });
            let Some(step) = keys::step(&event, page) else { return };
            event.prevent_default();
            match step {
                Step::Move(step, extend) => {
                    let next =
                        selection.moved(step, extend, shown.rows.len(), layout.columns.len());
                    reveal(&scroller, next.row, shown.rows.len());
                    selection.set(next);
                }
                Step::All => selection.set(Selection::all(shown.rows.len())),
                Step::Open if selection.head => {
                    let at = layout.columns.get(selection.column);
                    if let Some(column) = at.and_then(|at| table.columns.get(*at)) {
                        let first = first_direction(column.unit);
                        sort_by.emit((column.key.to_string(), first, event.shift_key()));
                    }
                }
                Step::Open => details_open.set(!*details_open),
                Step::Clear => {
                    details_open.set(false);
                    selection.set(Selection::at(selection.row, selection.column));
                }
                Step::Copy => copy(&tasks, &table, selection.of(&shown.rows), CopyAs::Tsv),
            }
        })
    };

    let on_close = {
        let (grid, details_open) = (grid.clone(), details_open.clone());
        Callback::from(move |()| {
            details_open.set(false);
            // The row that was shown is still the active one.
            focus(&grid);
        })
    };
    let detail_row = shown.rows.get(selection.row).copied().filter(|_| *details_open);
    {
        let on_details = props.on_details.clone();
        use_effect_with((detail_row, on_details), move |(row, on_details)| {
            if let Some(on_details) = on_details {
                on_details.emit(*row);
            }
        });
    }
    {
        // The details at the right take room from the rows.
        let (measure, n_rows) = (measure.clone(), shown.rows.len());
        use_effect_with(detail_row.is_some(), move |_| {
            let timer = Timeout::new(AFTER_PAINT_MS, move || measure.emit(n_rows));
            move || drop(timer)
        });
    }
    use_follow(
        selection.active().and_then(|place| shown.rows.get(place).copied()),
        table,
        &grid,
        tasks,
    );
    // Fewer columns may be drawn than when the cell was chosen.
    let column = selection.column.min(layout.columns.len().saturating_sub(1));
    let active = match selection.head {
        true => head_id(&table.id, column),
        false => format!("{}-cell-{}-{column}", table.id, selection.row),
    };
    let beside = props.details_beside && shown.rows.len() >= BESIDE_FROM_ROWS;
    // Between a change of rows and the effect above, the window may still be that of the old rows.
    let window = Window {
        end: seen.end.min(shown.rows.len()),
        first: seen.first.min(shown.rows.len()),
        ..*seen
    };
    let bar = Toolbar {
        id: table.id.to_string(),
        title: table.title.to_string(),
        titled: props.titled,
        filter: settings.filter.clone(),
        filtered: table.n_rows() > 8 || !settings.filter.is_empty(),
        n_rows: table.n_rows(),
        summary: shown.summary.clone(),
        columns: choices(table, settings),
        chosen: settings.columns.is_some(),
        on_filter,
        on_columns,
        on_copy,
    };
    let active_head = (selection.touched && selection.head).then_some(column);
    let selection = Selection { column, ..(*selection).clone() };
    html! {
        <section class={classes!("data-table", (props.tall && !table.is_empty()).then_some("tall"),
            (beside && detail_row.is_some()).then_some("beside"))} data-testid={format!("table-{}", table.id)}>
            { toolbar(&bar) }
            if table.is_empty() {
                <p class="table-empty">{ &*table.when_empty }</p>
            } else {
                <div class="table-scroll" ref={scroller} {onscroll}>
                    <table role="grid" ref={grid} tabindex="0" aria-label={table.title.to_string()}
                        aria-rowcount={(shown.rows.len() + 1).to_string()} aria-colcount={layout.columns.len().to_string()}
                        aria-multiselectable="true" aria-activedescendant={active} {onkeydown}>
                        <colgroup>
                            { for layout.widths_px.iter().map(|width| html! { <col width={width.map(|px| px.to_string())} /> }) }
                        </colgroup>
                        { table_head(table, &layout, settings.sort.as_ref().unwrap_or(&default), active_head, &on_sort) }
                        { table_body(table, &shown, &window, &layout, &selection, &on_pick) }
                    </table>
                    if shown.rows.is_empty() {
                        <p class="table-empty">{ "No rows match the filter." }</p>
                    }
                </div>
            }
            if let Some(row) = detail_row {
                <RowDetails table={table.clone()} {row} extra={props.details.clone()} without={props.details_without} {on_close} tasks={tasks.clone()} />
            }
        </section>
    }
}

/// The timeline below the view shows what the active row is about, once a person stays on it.
#[hook]
fn use_follow(row: Option<u32>, table: &Shared<Table>, grid: &NodeRef, tasks: &Tasks) {
    let (grid, tasks) = (grid.clone(), tasks.clone());
    use_effect_with((row, table.clone()), move |(row, table)| {
        // (Tables of the timeline are outside of the view.)
        let in_view =
            grid.cast::<HtmlElement>().and_then(|grid| grid.closest("main").ok().flatten());
        let sought = row.and_then(|row| panel::sought(table, row as usize));
        let timer = sought.filter(|_| in_view.is_some()).map(|sought| {
            Timeout::new(FOLLOW_AFTER_MS, move || tasks.dispatch(Action::Followed(sought)))
        });
        move || drop(timer)
    });
}

/// At the right of fewer rows the details would be taller than the rows, so they open below.
const BESIDE_FROM_ROWS: usize = 16;

/// The room for columns before the table is laid out: what the navigation and the padding of a view leave.
fn first_room_px() -> u32 {
    let screen = window().inner_width().ok().and_then(|width| width.as_f64()).unwrap_or(1280.0);
    let taken = if screen < 900.0 { 26.0 } else { 270.0 };
    (screen - taken).max(200.0) as u32
}

fn focus(element: &NodeRef) {
    if let Some(element) = element.cast::<HtmlElement>() {
        let _focused = element.focus();
    }
}

/// The columns of a table for its chooser.
fn choices(table: &Table, settings: &TableSettings) -> Vec<Choice> {
    let shown = shown_columns(table, settings.columns.as_deref());
    let choice = |at: usize| {
        let column = table.columns.get(at)?;
        Some(Choice {
            key: column.key.to_string(),
            title: column.title.to_string(),
            help: column.help.to_string(),
            shown: shown.contains(&at),
        })
    };
    in_order(table).into_iter().filter_map(choice).collect()
}

fn default_sort(column: Option<&str>) -> Sort {
    column.map_or_else(Sort::default, |column| Sort::by(column, Direction::Descending))
}

fn copy(tasks: &Tasks, table: &Table, rows: &[u32], form: CopyAs) {
    let name = match form {
        CopyAs::Tsv => "tab-separated values",
        CopyAs::Markdown => "Markdown",
    };
    let rows_text = kinetoscope::report::units::plural(rows.len() as u64, "row", "rows");
    tasks.copy(copied(table, rows, form), format!("Copied {rows_text} as {name}"));
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

/// Rows of a [`ShownRows`] as a prop.
type Rows = std::rc::Rc<ShownRows>;

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
