//! The browser's side of the worker: a `File` to read, messages to send.

use std::cell::RefCell;
use std::collections::BTreeMap;

use js_sys::{Array, Uint8Array};
use kinetoscope::artifacts::{ARCHIVE, FIXED_TRACE};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{
    Blob, BlobPropertyBag, DedicatedWorkerGlobalScope, File, FileReaderSync, MessageEvent,
};

use super::artifacts::Made;
use super::session::{Files, Port, Session, Source};
use crate::protocol::{FILE, Format, JobId, LOG, Repaired, Request, RequestId, Response};
use crate::tasks::browser::{message_of, number_of, set_number};
use crate::wire;

/// Takes the requests of a program from now on and says so. Returns at once.
pub fn start<Of: Session + Default + 'static>() {
    console_error_panic_hook::set_once();
    let Ok(scope) = js_sys::global().dyn_into::<DedicatedWorkerGlobalScope>() else { return };
    let port = scope.clone();
    let session = RefCell::new((Of::default(), FileSources::default()));
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        let message = event.data();
        let Ok(request) = wire::unpack::<Request>(&message) else { return };
        let mut state = session.borrow_mut();
        let (session, files) = &mut *state;
        if let (Some(job), Some(file)) = (request.file(), wire::attached(&message, "file"))
            && let Some(source) = FileSource::new(file.unchecked_into())
        {
            files.0.insert(job, source);
        }
        session.handle(
            request,
            files,
            &mut ScopePort { scope: &port, id: number_of(&message), parts: Array::new() },
        );
    });
    scope.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    // Lives as long as the worker.
    on_message.forget();
    post(&scope, RequestId::default(), &Response::Ready { build: crate::BUILD.to_owned() }, &[]);
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
