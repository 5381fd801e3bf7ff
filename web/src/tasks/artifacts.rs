//! Writes and saves the artifacts of a file.

use gloo::storage::{LocalStorage, Storage};
use std::collections::BTreeMap;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{Blob, File};

use kinetoscope::artifacts::{ARCHIVE, FIXED_TRACE, KERNEL_MAP, UserFacts};
use wasm_bindgen::JsValue;

use super::browser::message_of;
use super::{Tasks, download, settings};
use crate::protocol::{ArtifactFile, ArtifactWish, Artifacts, Failure, JobId, Parts, Request};
use crate::state::{Action, ArtifactForm};

/// Where the browser keeps the facts, if the person wants it to.
const FACTS: &str = "kinetoscope.facts";

/// What is done with an artifact once it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The browser saves it.
    Save,
    /// Its text is copied.
    Copy,
}

/// The artifacts of a file, as handles.
#[derive(Default)]
pub struct Outputs {
    wish: ArtifactWish,
    files: BTreeMap<String, Blob>,
    /// What is to be done with which file when it is there.
    waiting: Option<(&'static str, Use)>,
}

impl Tasks {
    /// Saves or copies an artifact, making it first if need be.
    pub fn artifact(&self, job: JobId, name: &'static str, wish: ArtifactWish, what: Use) {
        let there = {
            let of_wish = |outputs: &Outputs| match outputs.wish == wish {
                true => outputs.files.get(name).cloned(),
                false => None,
            };
            self.of(job, |record| of_wish(&record.artifacts)).flatten()
        };
        if let Some(blob) = there {
            self.use_artifact(&blob, name, what);
            return;
        }
        let parts = match name {
            FIXED_TRACE | ARCHIVE => Parts::Everything,
            KERNEL_MAP => Parts::KernelMap,
            _ => Parts::Tables,
        };
        self.of(job, |record| record.artifacts.waiting = Some((name, what)));
        self.dispatch(Action::MakingArtifacts(job, parts));
        self.ask(job, vec![Request::Artifacts { job, wish, parts }]);
    }

    /// Keeps what was made, and does with it what it was made for. What was made before by the same wish stays, and is
    /// added to `made`.
    pub(super) fn artifacts_made(
        &self,
        job: JobId,
        made: &mut Artifacts,
        files: Vec<(String, Blob)>,
    ) {
        let waiting = self.of(job, |record| {
            let outputs = &mut record.artifacts;
            if outputs.wish != made.wish {
                outputs.wish = made.wish.clone();
                outputs.files.clear();
            }
            for (name, blob) in &outputs.files {
                if made.bytes_of(name).is_none() {
                    // A blob's size is an integer below 2^53.
                    let bytes = blob.size() as u64;
                    made.files.push(ArtifactFile { name: name.clone(), bytes });
                }
            }
            outputs.files.extend(files);
            outputs.waiting.take().and_then(|(name, what)| {
                outputs.files.get(name).cloned().map(|blob| (blob, name, what))
            })
        });
        if let Some((blob, name, what)) = waiting.flatten() {
            self.use_artifact(&blob, name, what);
        }
    }

    fn use_artifact(&self, blob: &Blob, name: &'static str, what: Use) {
        match what {
            Use::Save => download::save(blob, name),
            Use::Copy => {
                let (tasks, blob) = (self.clone(), blob.clone());
                spawn_local(async move {
                    let text = JsFuture::from(blob.text()).await;
                    match text.map(|text| text.as_string()) {
                        Ok(Some(text)) => tasks.copy(text, format!("Copied {name}")),
                        _ => tasks.announce(format!("{name} could not be read")),
                    }
                });
            }
        }
    }

    /// Computes the digest of a benchmark configuration; the file itself is not kept.
    pub fn take_benchmark_config(&self, file: &File, form: ArtifactForm) {
        let (tasks, name, bytes) = (self.clone(), file.name(), file.array_buffer());
        spawn_local(async move {
            match JsFuture::from(bytes).await {
                Ok(bytes) => {
                    let mut facts = UserFacts::default();
                    facts.take_benchmark_config(&js_sys::Uint8Array::new(&bytes).to_vec());
                    let mut form = form;
                    let hash = facts.benchmark_config_hash.unwrap_or_default();
                    form.facts.insert("benchmark_config_hash".to_owned(), hash);
                    tasks.dispatch(Action::FormSet(form));
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
    if !settings::allowed() {
        return;
    }
    if form.remember {
        let _kept = LocalStorage::set(FACTS, &form.facts);
    } else {
        LocalStorage::delete(FACTS);
    }
}

/// The form as it was left, if it was to be kept.
#[must_use]
pub fn restored_form() -> ArtifactForm {
    let kept: Option<BTreeMap<String, String>> =
        settings::allowed().then(|| LocalStorage::get(FACTS).ok()).flatten();
    let remember = kept.is_some();
    ArtifactForm { facts: kept.unwrap_or_default(), remember, ..ArtifactForm::default() }
}
