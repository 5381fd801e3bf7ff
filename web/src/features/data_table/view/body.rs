//! The visible rows and the sums below them.

use std::rc::Rc;

use kinetoscope::report::units::{self, Scale};
use kinetoscope::report::{Align, Cell, Table, TableColumn, Unit};
use yew::prelude::*;

use super::Rows;
use super::columns::{Layout, Names};
use crate::components::swatch;
use crate::features::data_table::queries::scroll::Window;
use crate::shared::Shared;

/// The active cell and the selected rows, as numbers of shown rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Whether the active cell is the header of the column.
    pub head: bool,
    pub row: usize,
    pub column: usize,
    /// The other end of the selected rows.
    pub anchor: usize,
    /// Whether anything was picked yet.
    pub touched: bool,
}

impl Selection {
    /// One row.
    pub fn at(row: usize, column: usize) -> Self {
        Self { row, column, anchor: row, touched: true, head: false }
    }

    /// Every row.
    pub fn all(n_rows: usize) -> Self {
        Self { anchor: n_rows.saturating_sub(1), ..Self::at(0, 0) }
    }

    /// The place of the row that was picked.
    pub fn active(&self) -> Option<usize> {
        (self.touched && !self.head).then_some(self.row)
    }

    /// Whether a row is selected.
    fn has(&self, row: usize) -> bool {
        let (first, last) = (self.row.min(self.anchor), self.row.max(self.anchor));
        self.touched && (first..=last).contains(&row)
    }

    /// The selected ones of `rows`.
    pub fn of<'a>(&self, rows: &'a [u32]) -> &'a [u32] {
        let (first, last) = (self.row.min(self.anchor), self.row.max(self.anchor));
        rows.get(first..rows.len().min(last + 1)).unwrap_or_default()
    }
}

/// `on_pick` takes row, column, and whether to open the details.
pub fn table_body(
    table: &Shared<Table>,
    shown: &Rows,
    window: &Window,
    layout: &Rc<Layout>,
    selection: &Selection,
    on_pick: &Callback<(usize, usize, bool)>,
) -> Html {
    let space = |px: f64| {
        if px < 0.5 {
            return html! {};
        }
        html! {
            <tr class="spacer" aria-hidden="true">
                <td colspan={layout.columns.len().to_string()} height={units::fixed(px, 0)}></td>
            </tr>
        }
    };
    let rows = (window.first..window.end).filter_map(|place| {
        let row = *shown.rows.get(place)?;
        let active = (selection.active() == Some(place)).then_some(selection.column);
        Some(html! {
            <TableRow key={row} table={table.clone()} {row} {place} layout={layout.clone()} {active}
                selected={selection.has(place)} on_pick={on_pick.clone()} />
        })
    });
    html! {
        <>
            <tbody>
                { space(window.above_px) }
                { for rows }
                { space(window.below_px) }
            </tbody>
            <Totals table={table.clone()} shown={shown.clone()} layout={layout.clone()} />
        </>
    }
}

#[derive(Clone, PartialEq, Properties)]
struct RowProps {
    table: Shared<Table>,
    row: u32,
    place: usize,
    layout: Rc<Layout>,
    active: Option<usize>,
    selected: bool,
    on_pick: Callback<(usize, usize, bool)>,
}

#[component]
fn TableRow(props: &RowProps) -> Html {
    let RowProps { table, row, place, layout, active, selected, on_pick } = props;
    let place = *place;
    if *row as usize >= table.n_rows() {
        return html! {};
    }
    let pick = |column: usize, open: bool| {
        let on_pick = on_pick.clone();
        Callback::from(move |_: MouseEvent| on_pick.emit((place, column, open)))
    };
    let drawn = layout.columns.iter().zip(&layout.scales);
    let columns = drawn.filter_map(|(at, scale)| {
        Some((table.cell(*row as usize, *at)?, table.columns.get(*at)?, scale))
    });
    html! {
        <tr role="row" aria-rowindex={(place + 2).to_string()} aria-selected={selected.to_string()}
            class={classes!(selected.then_some("selected"), (place % 2 == 1).then_some("odd"))}>
            { for columns.enumerate().map(|(column, (cell, info, scale))| {
                let shown = text(&cell, info.unit, *scale, &layout.names);
                let exact = cell.exact();
                html! {
                    <td role="gridcell" id={format!("{}-cell-{place}-{column}", table.id)}
                        aria-colindex={(column + 1).to_string()} title={(exact != shown).then_some(exact)}
                        class={classes!(
                            (info.align() == Align::Right).then_some("right"),
                            matches!(info.unit, Unit::Name | Unit::Path).then_some("name"),
                            cell.is_missing().then_some("missing"),
                            (*active == Some(column)).then_some("active"),
                        )}
                        onclick={pick(column, false)} ondblclick={pick(column, true)}>
                        { content(&cell, info, shown) }
                    </td>
                }
            }) }
        </tr>
    }
}

fn text(cell: &Cell, unit: Unit, scale: Scale, names: &Names) -> String {
    match cell {
        Cell::Text(text) if unit == Unit::Name => names.short(text),
        // A time or size in a column of mixed kinds brings its own unit.
        _ if scale == Scale::None && !matches!(cell, Cell::Instant(_)) => cell.show(),
        _ => cell.show_in(scale),
    }
}

/// Whether a difference of time goes up, which is worse; `None` where there is none.
fn goes_up(cell: &Cell) -> Option<bool> {
    let order = match cell {
        Cell::Ns(ns) => ns.cmp(&0),
        Cell::Percent(percent) => percent.partial_cmp(&0.0)?,
        _ => return None,
    };
    order.is_ne().then_some(order.is_gt())
}

fn content(cell: &Cell, info: &TableColumn, text: String) -> Html {
    if info.key.starts_with("delta_") {
        // A difference has a sign and a direction, not a share of a whole.
        return match goes_up(cell) {
            Some(true) => {
                html! { <><span class="change worse" aria-hidden="true">{ "▲" }</span>{ "+" }{ text }</> }
            }
            Some(false) => {
                html! { <><span class="change better" aria-hidden="true">{ "▼" }</span>{ text }</> }
            }
            None => html! { <>{ text }</> },
        };
    }
    match (cell, info.unit) {
        (cell, Unit::Category) => {
            html! { <>{ swatch(cell.text().unwrap_or_default()) }{ text }</> }
        }
        (Cell::Text(_), Unit::Name) => cut(&text, TAIL_CHARS),
        // Of a path the file stays, with its line and function.
        (Cell::Text(_), Unit::Path) => {
            let file = text.rsplit(['/', '\\']).next().map_or(0, |file| file.chars().count());
            cut(&text, file.clamp(TAIL_CHARS, FILE_CHARS))
        }
        (Cell::Percent(percent), Unit::Percent) => html! {
            <>
                <svg class="share" width="40" height="10" aria-hidden="true">
                    <rect class="share-track" width="40" height="10" rx="2" />
                    <rect class="share-fill" width={units::fixed(units::between(*percent, 0.0, 100.0) * 0.4, 1)} height="10" rx="2" />
                </svg>
                { text }
            </>
        },
        _ => html! { <>{ text }</> },
    }
}

/// Characters at the end of a name that stay when there is no room for all of it: what tells it from its neighbours is
/// at the end as often as at the beginning.
const TAIL_CHARS: usize = 16;
/// As many stay of a path at most.
const FILE_CHARS: usize = 40;

/// A name that loses its middle, not its end, where it does not fit: the stylesheet shortens the first part alone.
fn cut(text: &str, tail: usize) -> Html {
    let n_chars = text.chars().count();
    if n_chars < tail + TAIL_CHARS {
        return html! { <>{ text }</> };
    }
    let at = text.char_indices().nth(n_chars - tail).map_or(text.len(), |(at, _)| at);
    let (head, tail) = text.split_at(at);
    html! { <span class="cut"><span>{ head }</span><span>{ tail }</span></span> }
}

#[derive(Clone, PartialEq, Properties)]
struct TotalsProps {
    table: Shared<Table>,
    shown: Rows,
    layout: Rc<Layout>,
}

#[component]
fn Totals(props: &TotalsProps) -> Html {
    let mut view = props.table.view();
    view.rows.clone_from(&props.shown.rows);
    view.columns = props.layout.columns.iter().map(|at| *at as u32).collect();
    let Some(totals) = view.totals() else { return html! {} };
    let label = view.columns().position(|(_, column)| column.align() == Align::Left);
    html! {
        <tfoot>
            <tr>
                { for totals.into_iter().zip(&props.layout.scales).enumerate().map(|(column, (cell, scale))| match cell {
                    Some(cell) => html! { <td class="right" title={cell.exact()}>{ text(&cell, Unit::Count, *scale, &props.layout.names) }</td> },
                    None => html! { <td>{ if label == Some(column) { "Total" } else { "" } }</td> },
                }) }
            </tr>
        </tfoot>
    }
}
