//! Saving a blob under a name.

use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::Blob;

#[wasm_bindgen]
extern "C" {
    /// Has the browser save `blob` as `name` (`web/boot.js`).
    pub fn save(blob: &Blob, name: &str);
}
