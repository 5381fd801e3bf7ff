//! Workers of a file, one a program, started from a `Blob` so that it inherits the page's Content-Security-Policy; one
//! started from a URL would be free to send data anywhere (measured: docs/adr).

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, JSON};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Blob, BlobPropertyBag, ErrorEvent, File, MessageEvent, Url, Worker};
use yew::Callback;

use super::browser::{absolute, message_of, number_of, set_number};
use crate::protocol::{CANVAS, FILE, Failure, LOG, Program, Request, RequestId, Response};
use crate::wire;

/// What a worker reported.
pub enum Event {
    /// A response.
    Said {
        /// The request that it answers.
        id: RequestId,
        /// The answer.
        response: Response,
        /// The files that came with it, by name.
        blobs: Vec<(String, Blob)>,
    },
    /// The worker ended.
    Lost(Failure),
}

/// A worker and what it needs to stay alive. Dropping it ends the worker.
pub struct RunningWorker {
    worker: Worker,
    url: String,
    /// Messages for a worker that has not said `Ready`; `None` once it has.
    waiting: Rc<RefCell<Option<Vec<JsValue>>>>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_error: Closure<dyn FnMut(JsValue)>,
}

impl RunningWorker {
    /// Starts a worker with this program, which reports to `on_event`.
    pub fn start(program: Program, on_event: Callback<Event>) -> Result<Self, String> {
        let url = bootstrap_url(program)?;
        let worker = Worker::new(&url).map_err(|error| message_of(&error))?;
        let waiting = Rc::new(RefCell::new(Some(Vec::new())));
        let on_message = {
            let (worker, waiting, on_event) =
                (worker.clone(), Rc::clone(&waiting), on_event.clone());
            Closure::new(move |event: MessageEvent| {
                let message = event.data();
                let event = match wire::unpack::<Response>(&message) {
                    Ok(Response::Ready { build }) if build == crate::BUILD => {
                        for message in waiting.borrow_mut().take().unwrap_or_default() {
                            // Only a detached buffer could make this fail, and none is sent.
                            let _sent = worker.post_message(&message);
                        }
                        return;
                    }
                    Ok(Response::Ready { build }) => Event::Lost(other_build(&build)),
                    Ok(response) => Event::Said {
                        id: number_of(&message),
                        blobs: blobs_of(&message, &response),
                        response,
                    },
                    Err(error) => Event::Lost(not_understood(&error)),
                };
                on_event.emit(event);
            })
        };
        let on_error = Closure::new(move |event: JsValue| {
            on_event.emit(Event::Lost(lost(&event)));
        });
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        worker.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        Ok(Self { worker, url, waiting, _on_message: on_message, _on_error: on_error })
    }

    /// Sends a request, at once or when the worker is ready.
    pub fn post(&mut self, id: RequestId, request: &Request, file: Option<&File>) {
        let Ok(wire::Packed { envelope, .. }) = wire::pack(request) else { return };
        set_number(&envelope, id);
        if let Some(file) = file {
            let _attached = wire::attach(&envelope, "file", file);
        }
        match self.waiting.borrow_mut().as_mut() {
            Some(waiting) => waiting.push(envelope.into()),
            None => {
                let _sent = self.worker.post_message(&envelope);
            }
        }
    }
}

impl RunningWorker {
    /// Sends a request to a worker that runs, and hands a canvas over with it.
    pub fn post_with(&mut self, id: RequestId, request: &Request, canvas: Option<&JsValue>) {
        let Ok(wire::Packed { envelope, .. }) = wire::pack(request) else { return };
        set_number(&envelope, id);
        let Some(canvas) = canvas else {
            let _sent = self.worker.post_message(&envelope);
            return;
        };
        if wire::attach(&envelope, CANVAS, canvas).is_ok() {
            let _sent = self.worker.post_message_with_transfer(&envelope, &Array::of1(canvas));
        }
    }
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        self.worker.set_onmessage(None);
        self.worker.set_onerror(None);
        self.worker.terminate();
        let _revoked = Url::revoke_object_url(&self.url);
    }
}

fn blob_of(message: &JsValue, name: &str) -> Option<Blob> {
    wire::attached(message, name)?.dyn_into().ok()
}

fn blobs_of(message: &JsValue, response: &Response) -> Vec<(String, Blob)> {
    let names = match response {
        Response::Repaired { .. } => vec![FILE, LOG],
        Response::Artifacts { artifacts, .. } => {
            artifacts.files.iter().map(|file| file.name.as_str()).collect()
        }
        _ => Vec::new(),
    };
    names.into_iter().filter_map(|name| Some((name.to_owned(), blob_of(message, name)?))).collect()
}

/// The start script of the page names the files of the workers; the names change with their contents.
fn bootstrap_url(program: Program) -> Result<String, String> {
    let script = gloo::utils::document()
        .query_selector("script[data-worker]")
        .ok()
        .flatten()
        .ok_or("the page has no address for its worker")?;
    let address = |attribute: &str| -> Result<String, String> {
        let name = script.get_attribute(attribute).ok_or("the page has no name for its worker")?;
        let url = absolute(&name).ok_or("the page's address cannot be read")?;
        JSON::stringify(&url.into()).map(String::from).map_err(|error| message_of(&error))
    };
    let (script_attribute, wasm_attribute) = match program {
        Program::First => ("data-worker", "data-worker-wasm"),
        Program::Triage => ("data-triage", "data-triage-wasm"),
        Program::Snapshot => ("data-snapshot", "data-snapshot-wasm"),
        Program::Lanes => ("data-lanes", "data-lanes-wasm"),
    };
    // The worker inherits the page's policy of Trusted Types, and may load one script.
    let source = format!(
        "const script={};self.trustedTypes?.createPolicy('default',{{createScriptURL:(url)=>url===script?url:null}});\
         importScripts(script);wasm_bindgen({{module_or_path:{}}});",
        address(script_attribute)?,
        address(wasm_attribute)?
    );
    let kind = BlobPropertyBag::new();
    kind.set_type("text/javascript");
    let parts = Array::of1(&source.into());
    let blob = Blob::new_with_str_sequence_and_options(&parts, &kind);
    blob.and_then(|blob| Url::create_object_url_with_blob(&blob))
        .map_err(|error| message_of(&error))
}

/// A worker that could not even be made.
pub fn not_started(detail: String) -> Failure {
    Failure {
        title: "The worker could not start".into(),
        what: "The worker that reads files did not load.".into(),
        place: None,
        advice:
            "The page may have been updated, or you are offline. Reload the page, then open the file again."
                .into(),
        excerpt: Some(detail),
    }
}

fn other_build(build: &str) -> Failure {
    Failure {
        title: "The page was updated while it was open".into(),
        what: format!("The page is build {}, its worker is build {build}.", crate::BUILD),
        place: None,
        advice: "Reload the page, then open the file again.".into(),
        excerpt: None,
    }
}

fn not_understood(error: &JsValue) -> Failure {
    Failure {
        title: "Unreadable message from the worker".into(),
        what: "The page and its worker come from different builds.".into(),
        place: None,
        advice: "Reload the page. If it happens again, report it with the details below.".into(),
        excerpt: Some(message_of(error)),
    }
}

fn lost(event: &JsValue) -> Failure {
    let message = event.dyn_ref::<ErrorEvent>().map(ErrorEvent::message).unwrap_or_default();
    if message.is_empty() {
        return not_started("the worker's program did not load".to_owned());
    }
    let memory = ["memory", "allocat", "capacity"].iter().any(|word| message.contains(word));
    if memory {
        return Failure {
            title: "Out of memory".into(),
            what: "Reading this file needs more than the 4 GiB that WebAssembly can use in a browser tab.".into(),
            place: None,
            advice:
                "Record fewer steps, record without stacks and shapes, or use the command line, which does not have this limit."
                    .into(),
            excerpt: Some(message),
        };
    }
    Failure {
        title: "The worker stopped unexpectedly".into(),
        what: "This is a bug in Kinetoscope, not in your file. The other files stay open."
            .into(),
        place: None,
        advice:
            "Try the file again. If it happens again, report it with the details below. They contain no data from your trace."
                .into(),
        excerpt: Some(message),
    }
}
