//! What a person sees on canvases, as a file.

use gloo::utils::document;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use web_sys::{Blob, CanvasRenderingContext2d, Element, HtmlCanvasElement};

use super::download;

/// Has the browser save the canvases of an element, one on the other, as a PNG called `name`. `false` if there are none, or none
/// that is drawn.
pub fn save(of: &Element, name: String) -> bool {
    painted(of).is_some_and(|canvas| {
        let save = Closure::once_into_js(move |blob: Option<Blob>| {
            if let Some(blob) = blob {
                download::save(&blob, &name);
            }
        });
        canvas.to_blob(save.unchecked_ref()).is_ok()
    })
}

fn painted(of: &Element) -> Option<HtmlCanvasElement> {
    let found = of.query_selector_all("canvas").ok()?;
    let canvases = (0..found.length()).filter_map(|at| found.get(at)?.dyn_into().ok());
    let canvases: Vec<HtmlCanvasElement> = canvases.collect();
    let first = canvases.first()?;
    let picture: HtmlCanvasElement = document().create_element("canvas").ok()?.dyn_into().ok()?;
    picture.set_width(first.width());
    picture.set_height(first.height());
    let context: CanvasRenderingContext2d =
        picture.get_context("2d").ok().flatten()?.dyn_into().ok()?;
    for canvas in &canvases {
        context.draw_image_with_html_canvas_element(canvas, 0.0, 0.0).ok()?;
    }
    Some(picture)
}
