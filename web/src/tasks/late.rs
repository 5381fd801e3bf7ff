//! What the page does besides showing files, in scripts that are loaded when they are first called (`web/boot.js`): files kept in the
//! browser, newer builds and files from the system (`web/late.js`), pictures of charts (`web/chart.js`).

use js_sys::Array;
use wasm_bindgen::prelude::{Closure, wasm_bindgen};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Element, File};

use super::Tasks;
use crate::protocol::{Failure, JobId};
use crate::state::{Action, Kept};

#[wasm_bindgen]
extern "C" {
    /// Calls a function of a script.
    fn late(script: &str, name: &str, a: &JsValue, b: &JsValue);
}

/// A file is open: it is kept if a person wants that.
pub(super) fn opened(job: JobId, file: &File) {
    late("late", "opened", &job.0.into(), file);
}

/// A file is closed.
pub(super) fn closed(job: JobId) {
    late("late", "closed", &job.0.into(), &JsValue::UNDEFINED);
}

/// Files are kept from now on, or no longer.
pub(super) fn keep(keeps: bool) {
    late("late", "keep", &keeps.into(), &JsValue::UNDEFINED);
}

/// Saves the canvases of an element, one on the other, as a PNG.
pub fn save_canvases(of: &Element, name: &str) {
    late("chart", "saveCanvases", of, &name.into());
}

/// Saves a picture, an SVG.
pub(super) fn save_text(text: &str, name: &str) {
    late("chart", "saveText", &text.into(), &name.into());
}

impl Tasks {
    /// Begins to hear of kept files, newer builds and files from the system. Called once.
    pub fn hear_late(&self) {
        let keeps = self.state().keeps;
        let tasks = self.clone();
        let hear = Closure::<dyn FnMut(String, JsValue)>::new(move |what: String, value| {
            tasks.hear(&what, &value);
        });
        late("late", "begin", hear.as_ref(), &keeps.into());
        hear.forget();
    }

    fn hear(&self, what: &str, value: &JsValue) {
        let values = Array::from(value);
        match what {
            "files" => self.open(values.iter().map(JsCast::unchecked_into::<File>)),
            "newer" => self.dispatch(Action::NewerFound(true)),
            // (Another tab has switched the setting.)
            "keeps" => self.dispatch(Action::KeepSet(values.get(0).is_truthy())),
            "leaving" => self.dispatch(Action::Leaving),
            "kept" => {
                // Sizes are integers below 2^53.
                let number = |at| values.get(at).as_f64().unwrap_or_default() as u64;
                let kept = Kept {
                    n_waiting: number(0),
                    waiting_bytes: number(1),
                    n_files: number(2),
                    bytes: number(3),
                };
                self.dispatch(Action::KeptFound(kept));
            }
            _ => {
                let text = |at| values.get(at).as_string().unwrap_or_default();
                self.notice(Failure {
                    title: text(0),
                    what: text(1),
                    advice: text(2),
                    excerpt: Some(text(3)),
                    ..Failure::default()
                });
            }
        }
    }
}
