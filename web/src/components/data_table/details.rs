//! One row in full: every column with its exact value.

use kinetoscope::report::Table;
use yew::prelude::*;

use crate::components::Icon;
use crate::shared::Shared;

#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    pub table: Shared<Table>,
    pub row: u32,
    pub on_close: Callback<()>,
}

#[component]
pub fn RowDetails(props: &Props) -> Html {
    let Some(cells) = props.table.rows.get(props.row as usize) else { return html! {} };
    html! {
        <aside class="row-details" aria-label="Row in full" data-testid={format!("details-{}", props.table.id)}>
            <button class="icon-button" aria-label="Close the details" onclick={props.on_close.reform(|_: MouseEvent| ())}>
                <Icon name="close" />
            </button>
            <dl>
                { for cells.iter().zip(&props.table.columns).map(|(cell, column)| html! {
                    <div><dt title={column.help.to_string()}>{ &*column.title }</dt><dd>{ cell.exact() }</dd></div>
                }) }
            </dl>
        </aside>
    }
}
