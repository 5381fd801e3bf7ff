//! A memory snapshot: what is wrong, the pictures, and the tables.

use yew::prelude::*;

use super::{Props, heading};
use crate::components::{Later, drawing, finding_card};
use crate::protocol::Chapter;

pub fn view(props: &Props, chapters: &[Chapter]) -> Html {
    let first = chapters.first().map_or(&[][..], |chapter| &chapter.intro);
    let finding = first.first().map_or("", String::as_str);
    let cards = chapters.iter().flat_map(|chapter| &chapter.findings);
    let sentence = |text: &String| html! { <p class="hint">{ text }</p> };
    let chapter = |chapter: &Chapter| {
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
    };
    html! {
        <article class="view view-snapshot" data-testid="view-snapshot">
            { heading("Memory", finding) }
            { for first.iter().skip(1).map(sentence) }
            { for cards.map(|card| finding_card(card, None)) }
            <Later>{ for chapters.iter().skip(1).map(chapter) }</Later>
        </article>
    }
}
