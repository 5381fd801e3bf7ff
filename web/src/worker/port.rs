//! The browser's side of the worker: a `File` to read, messages to send.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use js_sys::{Array, Uint8Array};
use kinetoscope::artifacts::{ARCHIVE, FIXED_TRACE};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{
    Blob, BlobPropertyBag, DedicatedWorkerGlobalScope, File, FileReaderSync, MessageEvent,
};

use super::artifacts::Made;
use super::canvas::Canvases;
use super::session::{Files, Port, Session, Source};
use crate::protocol::{FILE, Format, JobId, LOG, Repaired, Request, RequestId, Response};
use crate::tasks::browser::{message_of, number_of, set_number};
use crate::wire;

/// Takes the requests of a program from now on and says so. Returns at once.
pub fn start<Of: Session + Default + 'static>() {
    let Some(scope) = prepared() else { return };
    let (port, mut running) = (scope.clone(), Running::<Of>::default());
    listen(&scope, move |message| {
        running.handle(&port, message, |_| {});
    });
}

/// The same for a program that draws on canvases of the page.
pub fn start_drawing<Of: Session + Default + 'static>() {
    let Some(scope) = prepared() else { return };
    let running = Rc::new(RefCell::new((Running::<Of>::default(), Canvases::default(), false)));
    let frame = {
        let (scope, running) = (scope.clone(), Rc::clone(&running));
        Closure::<dyn FnMut()>::new(move || {
            let (running, canvases, is_due) = &mut *running.borrow_mut();
            *is_due = false;
            let id = RequestId::default();
            let mut port = ScopePort { scope: &scope, id, parts: Array::new() };
            for (surface, ink) in running.session.frame(&mut port) {
                canvases.paint(surface, &ink);
            }
        })
    };
    let port = scope.clone();
    listen(&scope, move |message| {
        let (running, canvases, is_due) = &mut *running.borrow_mut();
        let is_look = running.handle(&port, message, |request| canvases.take(request, message));
        // However often a person moves, it is drawn once a frame.
        if is_look && !std::mem::replace(is_due, true) {
            let _asked = port.request_animation_frame(frame.as_ref().unchecked_ref());
        }
    });
}

fn prepared() -> Option<DedicatedWorkerGlobalScope> {
    console_error_panic_hook::set_once();
    js_sys::global().dyn_into().ok()
}

/// Has each message handled, and tells the page that they can come.
fn listen(scope: &DedicatedWorkerGlobalScope, mut handle: impl FnMut(&JsValue) + 'static) {
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        handle(&event.data());
    });
    scope.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    // Lives as long as the worker.
    on_message.forget();
    post(scope, RequestId::default(), &Response::Ready { build: crate::BUILD.to_owned() }, &[]);
}

/// A program and the files that it was given.
#[derive(Default)]
struct Running<Of> {
    session: Of,
    files: FileSources,
}

impl<Of: Session> Running<Of> {
    /// Handles a message, after something was done with its request; whether it is one to look.
    fn handle(
        &mut self,
        scope: &DedicatedWorkerGlobalScope,
        message: &JsValue,
        first: impl FnOnce(&Request),
    ) -> bool {
        let Ok(request) = wire::unpack::<Request>(message) else { return false };
        if let (Some(job), Some(file)) = (request.file(), wire::attached(message, "file"))
            && let Some(source) = FileSource::new(file.unchecked_into())
        {
            self.files.0.insert(job, source);
        }
        first(&request);
        let is_look = matches!(request, Request::Look { .. });
        let id = number_of(message);
        let mut port = ScopePort { scope, id, parts: Array::new() };
        self.session.handle(request, &mut self.files, &mut port);
        is_look
    }
}

/// The files by their jobs: a repair reads the measured one again.
#[derive(Default)]
struct FileSources(BTreeMap<JobId, FileSource>);

impl Files for FileSources {
    fn source(&mut self, job: JobId) -> Option<&mut dyn Source> {
        self.0.get_mut(&job).map(|source| -> &mut dyn Source { source })
    }

    fn forget(&mut self, job: JobId) {
        self.0.remove(&job);
    }
}

struct FileSource {
    file: File,
    reader: FileReaderSync,
}

impl FileSource {
    fn new(file: File) -> Option<Self> {
        Some(Self { file, reader: FileReaderSync::new().ok()? })
    }
}

impl Source for FileSource {
    fn size(&self) -> u64 {
        self.file.size() as u64
    }

    fn read(&mut self, offset: u64, len: u64, into: &mut Vec<u8>) -> Result<(), String> {
        // Offsets are below 2^53: they are of a file.
        let slice = self.file.slice_with_f64_and_f64(offset as f64, (offset + len) as f64);
        let buffer = slice
            .and_then(|slice| self.reader.read_as_array_buffer(&slice))
            .map_err(|error| message_of(&error))?;
        let bytes = Uint8Array::new(&buffer);
        into.resize(bytes.length() as usize, 0);
        bytes.copy_to(into);
        Ok(())
    }
}

struct ScopePort<'a> {
    scope: &'a DedicatedWorkerGlobalScope,
    /// The request that is handled: its answers have its number.
    id: RequestId,
    /// Blobs, not arrays: the browser may keep them on the disk.
    parts: Array,
}

impl Port for ScopePort<'_> {
    fn send(&mut self, response: Response) {
        post(self.scope, self.id, &response, &[]);
    }

    fn block(&mut self, bytes: &[u8]) {
        let bytes = Array::of1(&Uint8Array::from(bytes));
        if let Ok(part) = Blob::new_with_u8_array_sequence(&bytes) {
            self.parts.push(&part);
        }
    }

    fn deliver(&mut self, job: JobId, repaired: Repaired, log: &str) {
        let kind = match repaired.format {
            Format::Gzip => "application/gzip",
            Format::Json => "application/json",
        };
        let file = blob(&self.parts, kind);
        let log = blob(&Array::of1(&log.into()), "application/json");
        let handles = [(FILE, file), (LOG, log)];
        post(self.scope, self.id, &Response::Repaired { job, repaired }, &handles);
    }

    fn deliver_artifacts(&mut self, job: JobId, made: Made) {
        let Made { artifacts, texts, archive } = made;
        let kind = |name: &str| match name.rsplit('.').next() {
            Some("md") => "text/markdown",
            Some("html") => "text/html",
            _ => "application/json",
        };
        let mut handles: Vec<(&str, JsValue)> = texts
            .iter()
            .map(|file| (&*file.name, blob(&Array::of1(&(&*file.text).into()), kind(&file.name))))
            .collect();
        if let Some(archive) = archive {
            let trace = blob(&self.parts, "application/gzip");
            let piece = |bytes: &[u8]| JsValue::from(Uint8Array::from(bytes));
            let parts = Array::of3(&piece(&archive.before), &trace, &piece(&archive.after));
            handles.push((FIXED_TRACE, trace));
            handles.push((ARCHIVE, blob(&parts, "application/zip")));
        }
        post(self.scope, self.id, &Response::Artifacts { job, artifacts }, &handles);
    }
}

fn blob(parts: &Array, kind: &str) -> JsValue {
    let options = BlobPropertyBag::new();
    options.set_type(kind);
    Blob::new_with_blob_sequence_and_options(parts, &options).map_or(JsValue::NULL, JsValue::from)
}

fn post(
    scope: &DedicatedWorkerGlobalScope,
    id: RequestId,
    response: &Response,
    handles: &[(&str, JsValue)],
) {
    let Ok(wire::Packed { envelope, buffer }) = wire::pack(response) else { return };
    set_number(&envelope, id);
    for (name, handle) in handles {
        let _attached = wire::attach(&envelope, name, handle);
    }
    let _sent = scope.post_message_with_transfer(&envelope, &Array::of1(&buffer));
}
