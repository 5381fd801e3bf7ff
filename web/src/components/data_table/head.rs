//! The header row: a button per column.

use kinetoscope::report::{Align, Table};
use yew::prelude::*;

use crate::queries::grid::first_direction;
use crate::queries::order::{Direction, Sort};
use crate::shared::Shared;

#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    pub table: Shared<Table>,
    pub sort: Sort,
    /// Column key, the direction it starts with, and whether Shift is held.
    pub on_sort: Callback<(String, Direction, bool)>,
}

#[component]
pub fn TableHead(props: &Props) -> Html {
    let Props { table, sort, on_sort } = props;
    let header = |(place, column): (usize, &kinetoscope::report::TableColumn)| {
        let sorted = sort.of(&column.key);
        let onclick = {
            let (on_sort, key) = (on_sort.clone(), column.key.to_string());
            let first = first_direction(column.unit);
            Callback::from(move |event: MouseEvent| {
                on_sort.emit((key.clone(), first, event.shift_key()));
            })
        };
        let mark = sorted.map(|(direction, rank)| {
            let arrow = if direction == Direction::Ascending { "▲" } else { "▼" };
            if rank == 1 { arrow.to_owned() } else { format!("{arrow}₂") }
        });
        html! {
            <th scope="col" role="columnheader" aria-colindex={(place + 1).to_string()}
                class={classes!((column.align() == Align::Right).then_some("right"))}
                aria-sort={sorted.filter(|(_, rank)| *rank == 1).map(|(direction, _)| direction.aria())}>
                <button {onclick} title={column.help.to_string()} data-key={column.key.to_string()}>
                    <span>{ table.header(place) }</span>
                    if let Some(mark) = mark {
                        <span class="sort-mark" aria-hidden="true">{ mark }</span>
                    }
                </button>
            </th>
        }
    };
    html! {
        <thead>
            <tr role="row" aria-rowindex="1">{ for table.columns.iter().enumerate().map(header) }</tr>
        </thead>
    }
}
