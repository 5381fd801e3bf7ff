//! A picture of the report, from its shapes.

use kinetoscope::report::drawing::{Drawing, Shape, number, points, text_class};
use yew::prelude::*;

use super::bar::swatch;
use crate::queries::palette::paint;

/// The picture, its title and its legend.
pub fn drawing(drawing: &Drawing) -> Html {
    let Drawing { id, title, says, width, height, shapes, legend } = drawing;
    html! {
        <figure class="drawing" data-testid={format!("drawing-{id}")}>
            <figcaption>{ title }</figcaption>
            <svg viewBox={format!("0 0 {} {}", number(*width), number(*height))} role="img" aria-label={says.clone()}>
                { for shapes.iter().map(shape) }
            </svg>
            if !legend.is_empty() {
                <ul class="legend">
                    { for legend.iter().map(|entry| html! { <li>{ swatch(&entry.category) }<span>{ &entry.label }</span></li> }) }
                </ul>
            }
        </figure>
    }
}

fn shape(shape: &Shape) -> Html {
    match shape {
        Shape::Bar { x, y, width, height, category, title } => {
            let of = |fill: Option<&'static str>, class: Classes, title: Html| {
                html! { <rect x={number(*x)} y={number(*y)} width={number(*width)} height={number(*height)} {class} {fill}>{ title }</rect> }
            };
            filled(category, title, of)
        }
        Shape::Mark { x, y, radius, category, title } => {
            let of = |fill: Option<&'static str>, class: Classes, title: Html| {
                html! { <circle cx={number(*x)} cy={number(*y)} r={number(*radius)} {class} {fill}>{ title }</circle> }
            };
            filled(category, title, of)
        }
        Shape::Line { points: at, stroke } => {
            html! { <polyline points={points(at)} class={stroke.class()} /> }
        }
        Shape::Text { x, y, anchor, text, on } => html! {
            <text x={number(*x)} y={number(*y)} text-anchor={anchor.id()} class={text_class(on)}>{ text }</text>
        },
    }
}

/// A shape in its hue, and its hatch over it.
fn filled(
    category: &str,
    title: &str,
    shape: impl Fn(Option<&'static str>, Classes, Html) -> Html,
) -> Html {
    let paint = paint(category);
    html! {
        <>
            { shape(None, classes!("segment", paint.class()), html! { <title>{ title.to_owned() }</title> }) }
            if let Some(fill) = paint.hatch_fill() {
                { shape(Some(fill), classes!("hatched"), html! {}) }
            }
        </>
    }
}
