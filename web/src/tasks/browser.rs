//! The few things of the window that several tasks need.

use gloo::events::{EventListener, EventListenerOptions};
use gloo::timers::callback::Timeout;
use js_sys::{Error, Object};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Event, EventTarget, ScrollIntoViewOptions, ScrollLogicalPosition};

use crate::protocol::RequestId;
use crate::wire;

/// The field of an envelope that has the number of the request.
const NUMBER: &str = "id";

/// Long enough for the browser to have drawn what is new.
pub const AFTER_PAINT_MS: u32 = 30;

/// Hears of events as long as what this gives lives, and may prevent what the browser would do. (Boxed, as below: each kind of closure
/// would bring the code of a listener.)
pub fn listen(
    target: &EventTarget,
    name: &'static str,
    hear: Box<dyn FnMut(&Event)>,
) -> EventListener {
    let stoppable = EventListenerOptions::enable_prevent_default();
    EventListener::new_with_options(target, name, stoppable, hear)
}

/// Does something some time later, unless what this gives is dropped before.
pub fn after(ms: u32, act: Box<dyn FnOnce()>) -> Timeout {
    Timeout::new(ms, act)
}

/// Numbers a message to a worker, or its answer.
pub fn set_number(envelope: &Object, id: RequestId) {
    let _attached = wire::attach(envelope, NUMBER, &id.0.into());
}

/// The number of a message; 0 where it has none.
#[must_use]
pub fn number_of(message: &JsValue) -> RequestId {
    let number = wire::attached(message, NUMBER).and_then(|number| number.as_f64());
    // Requests are counted from 1.
    RequestId(number.unwrap_or_default() as u32)
}

/// `name` against the address of the page, so that the page works below any path.
#[must_use]
pub fn absolute(name: &str) -> Option<String> {
    let base = gloo::utils::document().base_uri().ok()??;
    web_sys::Url::new_with_base(name, &base).ok().map(|url| url.href())
}

/// The view has another height: tables measure themselves, and what is used in it stays in sight.
pub fn fit_view() {
    let _measured = Event::new("resize").map(|event| gloo::utils::window().dispatch_event(&event));
    let used =
        gloo::utils::document().query_selector("main :focus td.active, main :focus:not(table)");
    if let Ok(Some(used)) = used {
        let nearest = ScrollIntoViewOptions::new();
        nearest.set_block(ScrollLogicalPosition::Nearest);
        used.scroll_into_view_with_scroll_into_view_options(&nearest);
    }
}

/// The text of a thrown value.
#[must_use]
pub fn message_of(error: &JsValue) -> String {
    match error.dyn_ref::<Error>() {
        Some(error) => String::from(error.message()),
        None => error.as_string().unwrap_or_else(|| "not said".to_owned()),
    }
}
