//! Copies artifacts, reads a benchmark configuration, and keeps the form.

use js_sys::Uint8Array;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{Blob, File};

use super::browser::message_of;
use super::{Tasks, storage};
use crate::protocol::Failure;
use crate::state::{Action, ArtifactForm};

/// Where the browser keeps the facts, if the person wants it to.
const FACTS: &str = "kinetoscope.facts";

impl Tasks {
    /// Copies the text of an artifact.
    pub(super) fn copy_blob(&self, blob: &Blob, name: &'static str) {
        let (tasks, text) = (self.clone(), blob.text());
        spawn_local(async move {
            let text = JsFuture::from(text).await;
            match text.map(|text| text.as_string()) {
                Ok(Some(text)) => tasks.copy(text, format!("Copied {name}")),
                _ => tasks.announce(format!("{name} could not be read")),
            }
        });
    }

    /// Has the digest of a benchmark configuration computed; the file itself is not kept.
    pub fn take_benchmark_config(&self, file: &File) {
        let (tasks, name, bytes) = (self.clone(), file.name(), file.array_buffer());
        spawn_local(async move {
            match JsFuture::from(bytes).await {
                Ok(bytes) => {
                    tasks.dispatch(Action::BenchmarkConfigChosen(Uint8Array::new(&bytes).to_vec()))
                }
                Err(error) => tasks.unread(&name, &error),
            }
        });
    }

    fn unread(&self, name: &str, error: &JsValue) {
        self.notice(Failure {
            title: "The file could not be read".into(),
            what: format!("{name} was moved, changed or deleted."),
            advice: "Choose it again.".into(),
            excerpt: Some(message_of(error)),
            ..Failure::default()
        });
    }
}

/// Remembers the facts, or forgets them.
pub fn keep_form(form: &ArtifactForm) {
    if form.remember {
        let members = form.facts.iter().map(|(key, text)| (key, JsValue::from(text.as_str())));
        storage::set(FACTS, &storage::object(members));
    } else {
        storage::delete(FACTS);
    }
}

/// The form as it was left, if it was to be kept.
#[must_use]
pub fn restored_form() -> ArtifactForm {
    let kept = storage::get(FACTS).map(|kept| storage::members(&kept, JsValue::as_string));
    let remember = kept.is_some();
    let mut form = ArtifactForm { remember, ..ArtifactForm::default() };
    form.facts.extend(kept.unwrap_or_default());
    form
}
