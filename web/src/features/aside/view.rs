//! A file that is not a trace but belongs to traces.

use yew::prelude::*;

use super::queries::Described;
use crate::views::heading;

pub fn view(described: &Described) -> Html {
    let Described { title, finding, use_, captures } = described;
    html! {
        <article class="view view-aside" data-testid="view-aside">
            { heading(title, finding) }
            <section class="panel aside">
                <p data-testid="aside-use">{ use_ }</p>
                if !captures.is_empty() {
                    <ul class="aside-captures">
                        { for captures.iter().map(|(capture, used)| html! {
                            <li data-testid="aside-capture">
                                <bdi>{ &capture.name }</bdi>
                                <span>{ capture.in_words() }</span>
                                <span class="aside-state">{ if *used { "loaded as capture" } else { "not loaded as capture" } }</span>
                            </li>
                        }) }
                    </ul>
                }
            </section>
        </article>
    }
}
