//! One row in full: every column with its exact value, and what its words mean.

use gloo::utils::window;
use kinetoscope::report::{Table, Unit};
use web_sys::HtmlElement;
use yew::prelude::*;

use crate::components::Icon;
use crate::queries::stages::meaning;
use crate::shared::Shared;

#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    pub table: Shared<Table>,
    pub row: u32,
    /// What stands before the columns.
    pub extra: Html,
    pub on_close: Callback<()>,
}

#[component]
pub fn RowDetails(props: &Props) -> Html {
    let panel = use_node_ref();
    {
        let panel = panel.clone();
        use_effect_with((), move |()| reveal(&panel));
    }
    let Some(cells) = props.table.rows.get(props.row as usize) else { return html! {} };
    let onkeydown = {
        let on_close = props.on_close.clone();
        Callback::from(move |event: KeyboardEvent| {
            if event.key() == "Escape" {
                event.prevent_default();
                on_close.emit(());
            }
        })
    };
    let entries = cells.iter().zip(&props.table.columns).map(|(cell, column)| {
        // Digits of a share beyond its first tell nothing.
        let value = if column.unit == Unit::Percent { cell.show() } else { cell.exact() };
        let meaning = meaning(&column.help, &value).map(str::to_owned);
        html! {
            <div>
                <dt title={column.help.to_string()}>{ &*column.title }</dt>
                <dd class={classes!((column.unit == Unit::Name).then_some("name"))}>
                    { if value.is_empty() { "–" } else { &value } }
                    if let Some(meaning) = meaning {
                        <span class="row-details-meaning">{ format!(": {meaning}") }</span>
                    }
                </dd>
            </div>
        }
    });
    // A region that scrolls is reached by Tab, right after its table.
    html! {
        <section class="row-details" role="region" aria-label={format!("{}: row in full", props.table.title)} tabindex="0" ref={panel} {onkeydown}
            data-testid={format!("details-{}", props.table.id)}>
            <button class="icon-button" aria-label="Close the details" onclick={props.on_close.reform(|_: MouseEvent| ())}>
                <Icon name="close" />
            </button>
            { props.extra.clone() }
            <dl>{ for entries }</dl>
        </section>
    }
}

/// Below its table, the panel may open out of sight.
fn reveal(panel: &NodeRef) {
    let Some(panel) = panel.cast::<HtmlElement>() else { return };
    let height = window().inner_height().ok().and_then(|height| height.as_f64());
    if height.is_some_and(|height| panel.get_bounding_client_rect().bottom() > height) {
        panel.scroll_into_view_with_bool(false);
    }
}
