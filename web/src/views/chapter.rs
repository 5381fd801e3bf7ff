//! A chapter of a report.

use yew::prelude::*;

use super::Props;
use crate::components::drawing;
use crate::protocol::Chapter;

pub(crate) fn chapter(props: &Props, chapter: &Chapter) -> Html {
    html! {
        <section data-testid={format!("chapter-{}", chapter.id)}>
            if !chapter.title.is_empty() {
                <h2>{ &*chapter.title }</h2>
            }
            { for chapter.intro.iter().map(sentence) }
            { for chapter.drawings.iter().map(drawing) }
            { for chapter.tables.iter().map(|table| props.table(table, None)) }
        </section>
    }
}

pub(crate) fn sentence(text: &String) -> Html {
    html! { <p class="hint">{ text }</p> }
}
