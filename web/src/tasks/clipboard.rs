//! Copying text.

use gloo::utils::{body, document, window};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{HtmlDocument, HtmlTextAreaElement};

use super::Tasks;
use crate::protocol::Failure;

impl Tasks {
    /// Copies `text` and says `done` in the status bar.
    pub fn copy(&self, text: String, done: String) {
        let tasks = self.clone();
        spawn_local(async move {
            if write(&text).await {
                tasks.announce(done);
            } else {
                tasks.notice(Failure {
                    title: "The browser did not allow copying".into(),
                    what: "Nothing was copied.".into(),
                    advice:
                        "Allow this page to use the clipboard, or open the page over https or on localhost."
                            .into(),
                    ..Failure::default()
                });
            }
        });
    }
}

async fn write(text: &str) -> bool {
    let clipboard = window().navigator().clipboard();
    // Not there on plain http, except on localhost.
    if !JsValue::from(clipboard.clone()).is_undefined()
        && JsFuture::from(clipboard.write_text(text)).await.is_ok()
    {
        return true;
    }
    by_selection(text).unwrap_or(false)
}

/// The old way, which works on plain http too.
fn by_selection(text: &str) -> Option<bool> {
    let area: HtmlTextAreaElement = document().create_element("textarea").ok()?.dyn_into().ok()?;
    area.set_value(text);
    area.set_class_name("visually-hidden");
    body().append_child(&area).ok()?;
    area.select();
    let copied = document().dyn_into::<HtmlDocument>().ok()?.exec_command("copy").unwrap_or(false);
    area.remove();
    Some(copied)
}
