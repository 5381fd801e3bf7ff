//! The one table of this page: sorted, filtered, drawn by the visible rows only, copied as it is shown.

mod body;
mod columns;
mod details;
mod head;
mod keys;
mod toolbar;

use gloo::events::EventListener;
use gloo::timers::callback::Timeout;
use gloo::utils::window;
use kinetoscope::report::Table;
use web_sys::HtmlElement;
use yew::prelude::*;

use crate::queries::grid::{CopyAs, ShownRows, TableSettings, copied, shown_rows};
use crate::queries::order::{Direction, Sort};
use crate::queries::scroll::{self, Window};
use crate::shared::Shared;
use crate::state::Action;
use crate::tasks::Tasks;
use body::{Selection, TableBody};
use columns::Layout;
use details::RowDetails;
use head::TableHead;
use keys::{Move, Step};
use toolbar::Toolbar;

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
    /// Whether a click on a row shows it in full, beside the table where there is room.
    #[prop_or_default]
    pub details_beside: bool,
    /// What else there is to say of the row that is shown in full; it stands before its columns.
    #[prop_or_default]
    pub details: Html,
    /// Hears which row of the table is shown in full.
    #[prop_or_default]
    pub on_details: Option<Callback<Option<u32>>>,
    /// Effects.
    pub tasks: Tasks,
}

/// Long enough for the browser to have drawn what is new.
const AFTER_PAINT_MS: u32 = 30;

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
    let layout = use_memo(table.clone(), |table| Layout::of(table));
    let scroller = use_node_ref();
    let grid = use_node_ref();
    let seen = use_state_eq(|| scroll::window(shown.rows.len(), 0.0, 600.0));
    let selection = use_state_eq(Selection::default);
    let details_open = use_state_eq(|| false);

    // What is visible follows from the scroller, which only the browser knows.
    let measure = {
        let (scroller, seen) = (scroller.clone(), seen.clone());
        Callback::from(move |n_rows: usize| {
            if let Some(element) = scroller.cast::<HtmlElement>() {
                let top = f64::from(element.scroll_top());
                seen.set(scroll::window(n_rows, top, f64::from(element.client_height())));
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
                selection.set(Selection::default());
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
                let screen = window().inner_width().ok().and_then(|width| width.as_f64());
                let narrow = screen.is_some_and(|width| width < columns::NARROW_PX);
                let least = if narrow { layout.least_narrow_px } else { layout.least_px };
                let width = format!("{least}px");
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
    let on_sort = {
        let (set, settings, default) = (set.clone(), settings.clone(), default.clone());
        Callback::from(move |(column, first, second): (String, Direction, bool)| {
            let sort = settings.sort.as_ref().unwrap_or(&default).clicked(&column, first, second);
            set.emit(TableSettings { sort: Some(sort), ..settings.clone() });
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
        let on_click = props.details_beside;
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
        let scroller = scroller.clone();
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
                    let next = selection.moved(step, extend, shown.rows.len(), table.columns.len());
                    reveal(&scroller, next.row, shown.rows.len());
                    selection.set(next);
                }
                Step::All => selection.set(Selection::all(shown.rows.len())),
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
            if let Some(grid) = grid.cast::<HtmlElement>() {
                let _focused = grid.focus();
            }
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
    let active = format!("{}-cell-{}-{}", table.id, selection.row, selection.column);
    // Between a change of rows and the effect above, the window may still be that of the old rows.
    let window = Window {
        end: seen.end.min(shown.rows.len()),
        first: seen.first.min(shown.rows.len()),
        ..*seen
    };
    html! {
        <section class={classes!("data-table", (props.tall && !table.rows.is_empty()).then_some("tall"),
            (props.details_beside && detail_row.is_some()).then_some("beside"))} data-testid={format!("table-{}", table.id)}>
            <Toolbar title={table.title.to_string()} titled={props.titled} filter={settings.filter.clone()}
                empty={table.rows.is_empty()} filtered={table.rows.len() > 8 || !settings.filter.is_empty()} summary={shown.summary.clone()}
                {on_filter} on_copy={on_copy} id={table.id.to_string()} />
            if table.rows.is_empty() {
                <p class="table-empty">{ &*table.when_empty }</p>
            } else {
                <div class="table-scroll" ref={scroller} {onscroll}>
                    <table role="grid" ref={grid} tabindex="0" aria-label={table.title.to_string()}
                        aria-rowcount={(shown.rows.len() + 1).to_string()} aria-colcount={table.columns.len().to_string()}
                        aria-multiselectable="true" aria-activedescendant={active} {onkeydown}>
                        <colgroup>
                            { for layout.widths_px.iter().map(|width| html! { <col width={width.map(|px| px.to_string())} /> }) }
                        </colgroup>
                        <TableHead table={table.clone()} sort={settings.sort.clone().unwrap_or(default)} {on_sort} />
                        <TableBody table={table.clone()} shown={shown.clone()} {window} layout={layout.clone()}
                            selection={(*selection).clone()} {on_pick} />
                    </table>
                    if shown.rows.is_empty() {
                        <p class="table-empty">{ "No row passes the filter." }</p>
                    }
                </div>
            }
            if let Some(row) = detail_row {
                <RowDetails table={table.clone()} {row} extra={props.details.clone()} {on_close} />
            }
        </section>
    }
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
        let (mut row, mut column) = (self.row, self.column);
        match step {
            // The first key picks the row that is active already.
            Move::Rows(_) if !self.touched => {}
            Move::Rows(by) => row = row.saturating_add_signed(by).min(last_row),
            Move::Columns(by) => {
                column = column.saturating_add_signed(by).min(n_columns.saturating_sub(1));
            }
            Move::FirstRow => row = 0,
            Move::LastRow => row = last_row,
        }
        let anchor = if extend { self.anchor } else { row };
        Self { row, column, anchor, touched: true }
    }
}

/// Rows of a [`ShownRows`] as a prop.
type Rows = std::rc::Rc<ShownRows>;
