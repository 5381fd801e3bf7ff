//! The table component: sorts, filters, draws only the visible rows, and copies them as shown.

mod body;
mod columns;
mod details;
mod grid;
mod head;
mod keys;
mod menu;
mod room;
mod toolbar;

use kinetoscope::report::Table;
use yew::prelude::*;

use crate::features::data_table::queries::columns::{in_order, shown as shown_columns};
use crate::features::data_table::queries::grid::{ShownRows, TableSettings, shown_rows};
use crate::features::data_table::queries::order::{Direction, Sort};
use crate::shared::Shared;
use crate::tasks::Tasks;
use body::{Selection, table_body};
use columns::{Layout, Names};
use details::RowDetails;
pub use details::copy_button;
use grid::Grid;
use head::{head_id, table_head};
use room::{Room, use_details, use_follow, use_least_width, use_new_rows, use_room};
use toolbar::{Choice, Toolbar, toolbar};

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
    let room = use_room(shown.rows.len());
    let layout = {
        let of = (table.clone(), settings.columns.clone(), *room.width_px, names);
        use_memo(of, |(table, chosen, room_px, names)| {
            Layout::of(table, chosen.as_deref(), *room_px, names.clone())
        })
    };
    let grid = Grid {
        table: table.clone(),
        settings: settings.clone(),
        default,
        shown,
        layout,
        scroller: room.scroller.clone(),
        element: use_node_ref(),
        selection: use_state_eq(Selection::default),
        details_open: use_state_eq(|| false),
        tasks: tasks.clone(),
    };
    use_new_rows(&grid, &room);
    use_least_width(&grid);
    let detail_row = grid.detail_row();
    use_details(detail_row, props.on_details.as_ref(), &grid, &room);
    use_follow(grid.active_row(), table, &grid.element, tasks);

    let beside = props.details_beside && grid.shown.rows.len() >= BESIDE_FROM_ROWS;
    html! {
        <section class={classes!("data-table", (props.tall && !table.is_empty()).then_some("tall"),
            (beside && detail_row.is_some()).then_some("beside"))} data-testid={format!("table-{}", table.id)}>
            { toolbar(&bar(&grid, props.titled)) }
            if table.is_empty() {
                <p class="table-empty">{ &*table.when_empty }</p>
            } else {
                { rows(&grid, &room, props.details_beside) }
            }
            if let Some(row) = detail_row {
                <RowDetails table={table.clone()} {row} extra={props.details.clone()} without={props.details_without} on_close={grid.on_close()} tasks={tasks.clone()} />
            }
        </section>
    }
}

/// The header and the visible rows. `opens`: whether a click opens the details.
fn rows(grid: &Grid, room: &Room, opens: bool) -> Html {
    let Grid { table, shown, layout, settings, default, .. } = grid;
    let (column, active) = grid.active_cell();
    let window = room.window(shown.rows.len());
    // (A row outside of the window is no element that could be named.)
    let is_drawn = grid.selection.head || (window.first..window.end).contains(&grid.selection.row);
    let onscroll = {
        let (measure, n_rows) = (room.measure(), shown.rows.len());
        Callback::from(move |_: Event| measure.emit(n_rows))
    };
    let active_head = (grid.selection.touched && grid.selection.head).then_some(column);
    let selection = Selection { column, ..(*grid.selection).clone() };
    // A narrow screen shows few columns, and a finger has no double click.
    let on_pick = grid.on_pick(opens || f64::from(*room.width_px) < columns::NARROW_PX);
    html! {
        <div class="table-scroll" ref={room.scroller.clone()} {onscroll}>
            <table role="grid" ref={grid.element.clone()} tabindex="0" aria-label={table.title.to_string()}
                aria-rowcount={(shown.rows.len() + 1).to_string()} aria-colcount={layout.columns.len().to_string()}
                aria-multiselectable="true" aria-activedescendant={is_drawn.then_some(active)} onkeydown={grid.on_key()}>
                <colgroup>
                    { for layout.widths_px.iter().map(|width| html! { <col width={width.map(|px| px.to_string())} /> }) }
                </colgroup>
                { table_head(table, layout, settings.sort.as_ref().unwrap_or(default), active_head, &grid.on_sort()) }
                { table_body(table, shown, &window, layout, &selection, &on_pick) }
            </table>
            if shown.rows.is_empty() {
                <p class="table-empty">{ "No rows match the filter." }</p>
            }
        </div>
    }
}

/// What stands above the rows.
fn bar(grid: &Grid, titled: bool) -> Toolbar {
    let Grid { table, settings, .. } = grid;
    Toolbar {
        id: table.id.to_string(),
        title: table.title.to_string(),
        titled,
        filter: settings.filter.clone(),
        filtered: table.n_rows() > 8 || !settings.filter.is_empty(),
        n_rows: table.n_rows(),
        summary: grid.shown.summary.clone(),
        columns: choices(table, settings),
        chosen: settings.columns.is_some(),
        on_filter: grid.on_filter(),
        on_columns: grid.on_columns(),
        on_copy: grid.on_copy(),
    }
}

/// At the right of fewer rows the details would be taller than the rows, so they open below.
const BESIDE_FROM_ROWS: usize = 16;

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

/// Rows of a [`ShownRows`] as a prop.
type Rows = std::rc::Rc<ShownRows>;
