//! Effects: workers, files, downloads, the clipboard, the Perfetto window. Components call them through [`Tasks`], which also
//! owns the state: it runs the reducer and carries out the effects that this returns. It decides nothing.

pub mod artifacts;
pub mod browser;
pub mod clipboard;
mod commands;
pub mod download;
pub mod example;
pub mod files;
pub mod keys;
pub mod late;
pub mod perfetto;
mod record;
pub mod settings;
mod storage;
mod workers;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use wasm_bindgen::JsValue;
use web_sys::File;
use yew::Callback;

use crate::features::timeline::queries::clock;
use crate::protocol::{
    ArtifactWish, EventRange, Failure, Format, Input, JobId, KernelKey, Program, Request,
    RequestId, Response, Surface,
};
use crate::state::{Action, Effect, Purpose, State, Use, reduce};
use record::Record;
use workers::RunningWorker;

/// Everything with an effect. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Tasks(Rc<Inner>);

struct Inner {
    state: RefCell<Rc<State>>,
    /// Has the page drawn again.
    redraw: Callback<()>,
    /// Effects that are still to be carried out, in order.
    effects: RefCell<VecDeque<Effect>>,
    /// Whether that is being done: an effect may change the state.
    is_acting: Cell<bool>,
    next_job: Cell<u32>,
    /// (Few: a map would be more code than a list.)
    records: RefCell<Vec<(JobId, Record)>>,
    perfetto: RefCell<Option<perfetto::Handover>>,
    /// The time that its window is to show.
    perfetto_shows: Cell<Option<(i64, i64)>>,
}

impl PartialEq for Tasks {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Tasks {
    /// Tasks on a page that begins with `state` and is drawn by `redraw`.
    #[must_use]
    pub fn new(state: State, redraw: Callback<()>) -> Self {
        Self(Rc::new(Inner {
            state: RefCell::new(Rc::new(state)),
            redraw,
            effects: RefCell::default(),
            is_acting: Cell::default(),
            next_job: Cell::new(1),
            records: RefCell::default(),
            perfetto: RefCell::default(),
            perfetto_shows: Cell::default(),
        }))
    }

    /// The state as it is now.
    #[must_use]
    pub fn state(&self) -> Rc<State> {
        self.0.state.borrow().clone()
    }

    /// Changes the state and does what follows from that.
    pub fn dispatch(&self, action: Action) {
        let (state, effects) = reduce(&self.state(), action);
        self.0.state.replace(Rc::new(state));
        self.0.redraw.emit(());
        self.0.effects.borrow_mut().extend(effects);
        if self.0.is_acting.replace(true) {
            return;
        }
        while let Some(effect) = self.next_effect() {
            self.act(effect);
        }
        self.0.is_acting.set(false);
    }

    fn next_effect(&self) -> Option<Effect> {
        self.0.effects.borrow_mut().pop_front()
    }

    fn act(&self, effect: Effect) {
        match effect {
            Effect::Start(job, program) => self.start(job, program, Some(None)),
            Effect::StartEvents(job, events) => {
                self.start(job, Program::Snapshot, Some(Some(events)));
            }
            Effect::Load(job, program) => self.start(job, program, None),
            Effect::End(job) => {
                self.of(job, Record::end);
            }
            Effect::Post(id, request) => self.post(id, &request),
            Effect::Watch(job) => self.watch(job),
            Effect::Save(key, name) => {
                if let Some(blob) = self.blob(&key) {
                    download::save(&blob, &name);
                }
            }
            Effect::SaveText(name, text) => late::save_text(&text, &name),
            Effect::Copy(key) => {
                if let Some(blob) = self.blob(&key) {
                    self.copy_blob(&blob, key.name);
                }
            }
            Effect::CopyText(text, done) => self.copy(text, done),
            Effect::HandOver(key, name) => {
                if let Some(blob) = self.blob(&key) {
                    self.hand_over(key.job, &blob, name);
                }
            }
            Effect::Theme(theme) => settings::apply_theme(theme),
            Effect::Keep(keeps) => {
                settings::keep_files(keeps);
                late::keep(keeps);
            }
            Effect::Drop(job, id) => {
                self.of(job, |record| record.blobs.retain(|(of, _)| *of != id));
            }
            Effect::Close(job) => {
                late::closed(job);
                self.0.records.borrow_mut().retain(|(of, _)| *of != job);
            }
        }
    }

    /// Says something in the status bar.
    pub fn announce(&self, text: impl Into<String>) {
        self.dispatch(Action::Announced(text.into()));
    }

    /// Shows a card about something that belongs to no file.
    pub fn notice(&self, failure: Failure) {
        self.dispatch(Action::Noticed(Rc::new(failure)));
    }

    /// Gives each file a card and a worker of its own; launch flags beside traces belong to none.
    pub fn open(&self, files: impl IntoIterator<Item = File>) {
        for file in files {
            if file.name().eq_ignore_ascii_case(files::SERVER_ARGS) {
                self.take_server_args(file);
                continue;
            }
            let job = JobId(self.0.next_job.replace(self.0.next_job.get() + 1));
            // A file's size is an integer below 2^53.
            let (name, size) = (file.name(), file.size() as u64);
            late::opened(job, &file);
            self.0.records.borrow_mut().push((job, Record::new(file)));
            self.dispatch(Action::Added(job, name, size));
        }
    }

    /// Reads a stopped or failed file again, with the options of a new file.
    pub fn retry(&self, job: JobId) {
        self.dispatch(Action::Restarted(job));
    }

    /// Ends the workers of a file; their memory is free at once.
    pub fn cancel(&self, job: JobId) {
        self.dispatch(Action::Cancelled(job));
    }

    /// Closes a file.
    pub fn remove(&self, job: JobId) {
        self.dispatch(Action::Removed(job));
    }

    /// Closes all files.
    pub fn remove_all(&self) {
        self.state().files.iter().for_each(|file| self.remove(file.job));
    }

    /// Tries a companion again that could not be read.
    pub fn retry_companion(&self, job: JobId, companion: JobId) {
        self.dispatch(Action::CompanionRetried(job, companion));
    }

    /// Plans again, with or without clipping impossible durations.
    pub fn replan(&self, job: JobId, clip_impossible: bool) {
        self.dispatch(Action::Replanning(job, clip_impossible));
    }

    /// Saves the repaired file, writing it first if need be.
    pub fn download(&self, job: JobId, format: Format) {
        self.dispatch(Action::RepairAsked(job, format, Purpose::Download));
    }

    /// Saves the log of the written repair.
    pub fn download_log(&self, job: JobId) {
        self.dispatch(Action::LogAsked(job));
    }

    /// Saves or copies an artifact, making it first if need be.
    pub fn artifact(&self, job: JobId, name: &'static str, wish: ArtifactWish, what: Use) {
        self.dispatch(Action::ArtifactAsked(job, name, Box::new(wish), what));
    }

    /// Asks for a kernel's launches and places.
    pub fn ask_kernel(&self, job: JobId, key: KernelKey) {
        self.dispatch(Action::KernelAsked(job, key));
    }

    /// Asks for what ran around an event.
    pub fn ask_window(&self, job: JobId, event: u32) {
        self.dispatch(Action::WindowAsked(job, event));
    }

    /// Forwards what a person does to a picture to the worker that draws it, with the canvas the first time. The page knows
    /// nothing of it before the worker says what there is to see.
    pub fn look(&self, job: JobId, surface: Surface, input: Input, canvas: Option<JsValue>) {
        let request = Request::Look { job, surface, input };
        self.of(job, |record| {
            if let Some(worker) = record.worker_of(request.program()) {
                worker.post_with(RequestId::default(), &request, canvas.as_ref());
            }
        });
    }

    /// Starts the worker of a program, which may open the file first, or some events of it.
    fn start(&self, job: JobId, program: Program, opens: Option<Option<EventRange>>) {
        let Some(file) = self.of(job, |record| record.file.clone()) else { return };
        let tasks = self.clone();
        let on_event = Callback::from(move |event| tasks.heard(job, event));
        match RunningWorker::start(program, on_event) {
            Ok(mut worker) => {
                if let Some(events) = opens {
                    let open = Request::Open { job, name: file.name(), events };
                    worker.post(RequestId::default(), &open, Some(&file));
                }
                self.of(job, |record| *record.worker_of(program) = Some(worker));
            }
            Err(detail) => {
                self.dispatch(Action::WorkerLost(job, Rc::new(workers::not_started(detail))));
            }
        }
    }

    /// Sends a request to the worker that answers it, with the file that it names.
    fn post(&self, id: RequestId, request: &Request) {
        let file = request.file().and_then(|of| self.of(of, |record| record.file.clone()));
        self.of(request.job(), |record| {
            if let Some(worker) = record.worker_of(request.program()) {
                worker.post(id, request, file.as_ref());
            }
        });
    }

    /// (A page that is not in view draws nothing, so no frame is waited for.)
    fn watch(&self, job: JobId) {
        let tasks = self.clone();
        let told = move || tasks.dispatch(Action::Drawn(job));
        browser::after(browser::AFTER_PAINT_MS, Box::new(told)).forget();
    }

    fn heard(&self, job: JobId, event: workers::Event) {
        match event {
            workers::Event::Lost(failure) => {
                self.dispatch(Action::WorkerLost(job, Rc::new(failure)));
            }
            // (Often as a picture moves: nothing of the page follows from it.)
            workers::Event::Said { response: Response::Shown { job, shown }, .. } => {
                for (other, by_ns) in clock::followers(&self.state(), job) {
                    self.look(other, Surface::Over, Input::Shown(shown.moved(by_ns)), None);
                }
            }
            workers::Event::Said { id, response, blobs } => {
                if !blobs.is_empty() {
                    self.of(job, |record| record.blobs.push((id, blobs)));
                }
                self.dispatch(Action::Received(id, Box::new(response)));
            }
        }
    }
}
