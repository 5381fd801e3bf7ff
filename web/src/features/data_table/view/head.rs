//! The header row: a button per column. The grid is one tab stop, so arrows lead here, not Tab.

use kinetoscope::report::{Align, Table};
use yew::prelude::*;

use super::columns::Layout;
use crate::features::data_table::queries::grid::first_direction;
use crate::features::data_table::queries::order::{Direction, Sort};

/// The id of a header, for the grid's `aria-activedescendant`.
pub fn head_id(table: &str, place: usize) -> String {
    format!("{table}-head-{place}")
}

/// `active`: the header that the keyboard is on. `on_sort` takes the place of the header, the key of its column, the
/// direction it starts with, and whether Shift is held.
pub fn table_head(
    table: &Table,
    layout: &Layout,
    sort: &Sort,
    active: Option<usize>,
    on_sort: &Callback<(usize, String, Direction, bool)>,
) -> Html {
    let header = |(place, at): (usize, &usize)| {
        let Some(column) = table.columns.get(*at) else { return html! {} };
        let sorted = sort.of(&column.key);
        let onclick = {
            let (on_sort, key) = (on_sort.clone(), column.key.to_string());
            let first = first_direction(column.unit);
            Callback::from(move |event: MouseEvent| {
                on_sort.emit((place, key.clone(), first, event.shift_key()));
            })
        };
        let mark = sorted.map(|(direction, rank)| {
            let arrow = if direction == Direction::Ascending { "▲" } else { "▼" };
            if rank == 1 { arrow.to_owned() } else { format!("{arrow}₂") }
        });
        html! {
            <th scope="col" role="columnheader" id={head_id(&table.id, place)} aria-colindex={(place + 1).to_string()}
                class={classes!((column.align() == Align::Right).then_some("right"), (active == Some(place)).then_some("active"))}
                aria-sort={sorted.filter(|(_, rank)| *rank == 1).map(|(direction, _)| direction.aria())}>
                <button tabindex="-1" {onclick} title={column.help.to_string()} data-key={column.key.to_string()}>
                    <span>{ table.header(*at) }</span>
                    if let Some(mark) = mark {
                        <span class="sort-mark" aria-hidden="true">{ mark }</span>
                    }
                </button>
            </th>
        }
    };
    html! {
        <thead>
            <tr role="row" aria-rowindex="1">{ for layout.columns.iter().enumerate().map(header) }</tr>
        </thead>
    }
}
