//! A picture of the report, from the elements that its worker made.

use kinetoscope::report::drawing::{ATTRIBUTES, Element};
use yew::prelude::*;
use yew::virtual_dom::VTag;

use super::bar::swatch;
use super::chart::chart_tools;
use crate::protocol::Picture;

/// The picture, its title and its legend.
pub fn drawing(picture: &Picture) -> Html {
    let Picture { id, title, says, view_box, elements, legend } = picture;
    html! {
        <figure class="drawing" data-chart={id.clone()} data-testid={format!("drawing-{id}")}>
            <figcaption>{ title }</figcaption>
            // A part that scrolls can be reached by keyboard.
            <div class="drawing-scroll" role="group" tabindex="0" aria-label={title.clone()}>
                <svg viewBox={view_box.clone()} role="img" aria-label={says.clone()}>
                    { for elements.iter().map(element) }
                </svg>
            </div>
            if !legend.is_empty() {
                <ul class="legend">
                    { for legend.iter().map(|(category, label)| html! { <li>{ swatch(category) }<span>{ label }</span></li> }) }
                </ul>
            }
            { chart_tools() }
        </figure>
    }
}

fn element(element: &Element) -> Html {
    let mut tag = VTag::new(element.tag.clone());
    for (key, value) in &element.attributes {
        if let Some(key) = ATTRIBUTES.iter().find(|known| *known == key) {
            tag.add_attribute(key, value.clone());
        }
    }
    if !element.title.is_empty() {
        tag.add_child(html! { <title>{ &element.title }</title> });
    }
    tag.add_child(html! { &element.text });
    tag.into()
}
