//! The defects of the file that the reader found: a part of the view of the file's health.

use yew::prelude::*;

use crate::components::problem_cards;
use crate::protocol::Opened;
use crate::views::Props;

pub fn section(props: &Props, opened: &Opened) -> Html {
    if opened.problems.is_empty() {
        return html! {
            <section class="panel" data-testid="problems">
                <h2>{ "Problems in the file" }</h2>
                <p class="hint">{ "No problems found: the JSON is complete and every event in it could be read." }</p>
            </section>
        };
    }
    html! {
        <section class="problems" data-testid="problems">
            <h2>{ "Problems in the file" }</h2>
            <p class="hint">{ "All readable events were read. Unreadable events are counted here." }</p>
            { problem_cards(&opened.problems) }
            { props.table(&opened.problem_table, None) }
        </section>
    }
}
