//! What the page does besides showing files, in scripts that are loaded when they are first called (`web/boot.js`): pictures of what is
//! drawn (`web/chart.js`).

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::Element;

#[wasm_bindgen]
extern "C" {
    /// Calls a function of a script.
    fn late(script: &str, name: &str, a: &JsValue, b: &JsValue);
}

/// Saves the canvases of an element, one on the other, as a PNG.
pub fn save_canvases(of: &Element, name: &str) {
    late("chart", "saveCanvases", of, &name.into());
}

/// Saves a picture, an SVG.
pub(super) fn save_text(text: &str, name: &str) {
    late("chart", "saveText", &text.into(), &name.into());
}
