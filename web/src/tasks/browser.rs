//! The few things of the window that several tasks need.

use js_sys::{Error, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::Event;

/// `name` against the address of the page, so that the page works below any path.
#[must_use]
pub fn absolute(name: &str) -> Option<String> {
    let base = gloo::utils::document().base_uri().ok()??;
    web_sys::Url::new_with_base(name, &base).ok().map(|url| url.href())
}

/// Which option of a select field was chosen, from 0.
#[must_use]
pub fn chosen_place(event: &Event) -> Option<usize> {
    let field = JsValue::from(event.target()?);
    let place = Reflect::get(&field, &"selectedIndex".into()).ok()?.as_f64()?;
    // -1 is none.
    (place >= 0.0).then_some(place as usize)
}

/// The text of a thrown value.
#[must_use]
pub fn message_of(error: &JsValue) -> String {
    match error.dyn_ref::<Error>() {
        Some(error) => String::from(error.message()),
        None => error.as_string().unwrap_or_else(|| format!("{error:?}")),
    }
}
