//! Effects: workers, files, downloads, the clipboard, the Perfetto window. Components call them through [`Tasks`].

pub mod artifacts;
pub mod browser;
pub mod clipboard;
mod commands;
mod companions;
mod details;
pub mod download;
pub mod example;
pub mod files;
pub mod keys;
pub mod perfetto;
mod record;
pub mod settings;
mod workers;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use web_sys::File;
use yew::Callback;

use crate::protocol::{Failure, Format, JobId, Program, Request, Response};
use crate::state::{Action, PerfettoState};
use record::{Output, Purpose, Record};
use workers::RunningWorker;

/// Everything with an effect. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Tasks(Rc<Inner>);

struct Inner {
    dispatch: Callback<Action>,
    next_job: Cell<u32>,
    records: RefCell<BTreeMap<JobId, Record>>,
    count_before_window: Cell<bool>,
    perfetto: RefCell<Option<perfetto::Handover>>,
    asked: companions::RequestLedger,
}

impl PartialEq for Tasks {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Tasks {
    /// Tasks that report to `dispatch`.
    #[must_use]
    pub fn new(dispatch: Callback<Action>) -> Self {
        Self(Rc::new(Inner {
            dispatch,
            next_job: Cell::new(1),
            records: RefCell::default(),
            count_before_window: Cell::default(),
            perfetto: RefCell::default(),
            asked: companions::RequestLedger::default(),
        }))
    }

    /// Changes the state.
    pub fn dispatch(&self, action: Action) {
        self.0.dispatch.emit(action);
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
            self.dispatch(Action::Added(job, file.name(), file.size() as u64));
            self.0.records.borrow_mut().insert(job, Record::new(file));
            self.start(job, Self::analysis_of(job));
        }
    }

    /// Reads a stopped or failed file again, with the options of a new file.
    pub fn retry(&self, job: JobId) {
        self.renew(job);
        self.dispatch(Action::Restarted(job));
        self.start(job, Self::analysis_of(job));
    }

    /// Ends the worker of a file; its memory is free at once.
    pub fn cancel(&self, job: JobId) {
        self.stop(job);
        self.dispatch(Action::Cancelled(job));
        self.dispatch(Action::PerfettoMoved(PerfettoState::Idle));
    }

    /// Closes a file.
    pub fn remove(&self, job: JobId) {
        self.stop(job);
        self.0.records.borrow_mut().remove(&job);
        self.forget_companions(job);
        self.dispatch(Action::Removed(job));
    }

    /// Closes all files.
    pub fn remove_all(&self) {
        let jobs: Vec<JobId> = self.0.records.borrow().keys().copied().collect();
        jobs.into_iter().for_each(|job| self.remove(job));
    }

    /// Plans again, with or without clipping impossible durations.
    pub fn replan(&self, job: JobId, clip_impossible: bool) {
        self.of(job, |record| {
            record.output = None;
            record.clip_impossible = clip_impossible;
        });
        self.dispatch(Action::Replanning(job));
        self.ask(job, vec![Request::PlanRepair { job, clip_impossible }]);
    }

    /// Saves the repaired file, writing it first if need be.
    pub fn download(&self, job: JobId, format: Format) {
        if let Some(output) = self.output(job, format) {
            download::save(&output.file, &output.file_name);
            return;
        }
        self.write(job, format, Purpose::Download);
    }

    /// Saves the log of the written repair.
    pub fn download_log(&self, job: JobId) {
        if let Some(Output { log: Some(log), file_name, .. }) = self.written_output(job) {
            let stem = file_name.trim_end_matches(".gz").trim_end_matches(".json").to_owned();
            download::save(&log, &format!("{stem}.log.json"));
        }
    }

    fn write(&self, job: JobId, format: Format, purpose: Purpose) {
        self.of(job, |record| record.purpose = Some(purpose));
        self.dispatch(Action::Repairing(job, format));
        self.ask(job, vec![Request::Repair { job, format }]);
    }

    /// Sends requests to the worker of `job`; if it was ended, a new one reads the file again first.
    fn ask(&self, job: JobId, requests: Vec<Request>) {
        if self.of(job, |record| record.worker.is_some()).unwrap_or(false) {
            requests.into_iter().for_each(|request| self.post(job, request));
            return;
        }
        let clip_impossible = self.of(job, |record| record.clip_impossible).unwrap_or(false);
        let mut all = requests;
        if !matches!(all.first(), Some(Request::PlanRepair { .. })) {
            all.insert(0, Request::PlanRepair { job, clip_impossible });
        }
        self.start(job, all);
    }

    fn start(&self, job: JobId, then: Vec<Request>) {
        if self.start_program(job, Program::First) {
            then.into_iter().for_each(|request| self.post(job, request));
        }
    }

    /// Starts the worker of a program, which opens the file first; `false` if it could not start.
    fn start_program(&self, job: JobId, program: Program) -> bool {
        let Some(file) = self.of(job, |record| record.file.clone()) else { return false };
        let tasks = self.clone();
        let on_event = Callback::from(move |event| tasks.heard(job, event));
        match RunningWorker::start(program, on_event) {
            Ok(mut worker) => {
                worker.post(&Request::Open { job, name: file.name() }, Some(&file));
                self.of(job, |record| *record.worker_of(program) = Some(worker));
                true
            }
            Err(detail) => {
                self.dispatch(Action::WorkerLost(job, Rc::new(workers::not_started(detail))));
                false
            }
        }
    }

    /// Sends a request to the worker that answers it, with the file that it names, and before it what its answer follows
    /// from.
    fn post(&self, job: JobId, request: Request) {
        let program = request.program();
        let runs = self.of(job, |record| record.worker_of(program).is_some());
        if program == Program::Triage && runs == Some(false) && !self.start_program(job, program) {
            return;
        }
        if request.needs_companions() {
            self.news(job).into_iter().for_each(|news| self.post(job, news));
        }
        if let Request::Triage { count_before_window, .. } = &request {
            self.of(job, |record| record.triage_counts = Some(*count_before_window));
        }
        let file = request.file().and_then(|of| self.of(of, |record| record.file.clone()));
        self.of(job, |record| {
            if let Some(worker) = record.worker_of(program) {
                worker.post(&request, file.as_ref());
            }
        });
    }

    fn heard(&self, job: JobId, event: workers::Event) {
        match event {
            workers::Event::Lost(failure) => {
                if self.survives(job, &failure) {
                    return;
                }
                self.stop(job);
                self.dispatch(Action::WorkerLost(job, Rc::new(failure)));
                self.dispatch(Action::PerfettoMoved(PerfettoState::Idle));
            }
            workers::Event::Said { mut response, file, log, artifacts } => {
                self.note(&response);
                // The first screen is there: now the larger program may load.
                if let Response::RepairPlanned { job, .. } = &response
                    && self.of(*job, |record| record.triage_counts.is_none()) == Some(true)
                {
                    self.post(*job, self.triage_of(*job));
                }
                if let Response::Artifacts { job, artifacts: made } = &mut response {
                    self.artifacts_made(*job, made, artifacts);
                }
                if let (Response::Repaired { repaired, .. }, Some(file)) = (&response, file) {
                    let output = Output {
                        format: repaired.format,
                        clip_impossible: repaired.clip_impossible,
                        file_name: repaired.file_name.clone(),
                        file,
                        log,
                    };
                    let purpose = self.of(job, |record| {
                        record.output = Some(output.clone());
                        record.purpose.take()
                    });
                    self.dispatch(Action::Received(Box::new(response)));
                    match purpose.flatten() {
                        Some(Purpose::Download) => {
                            download::save(&output.file, &output.file_name);
                        }
                        Some(Purpose::Perfetto) => self.hand_over(job, &output),
                        None => {}
                    }
                    return;
                }
                // Nothing more can be asked of either.
                if matches!(response, Response::Failed { .. } | Response::Aside { .. }) {
                    self.stop(job);
                }
                self.dispatch(Action::Received(Box::new(response)));
            }
        }
    }

    /// From now on what was launched before the window counts in triage, or does not; the triage of `stale` counts
    /// otherwise.
    pub fn set_before_window(&self, count: bool, stale: &[JobId]) {
        self.0.count_before_window.set(count);
        for job in stale {
            let asked = self.of(*job, |record| record.triage_counts);
            if asked.flatten() != Some(count) {
                self.ask(*job, vec![self.triage_of(*job)]);
            }
        }
    }

    fn triage_of(&self, job: JobId) -> Request {
        Request::Triage { job, count_before_window: self.0.count_before_window.get() }
    }

    fn analysis_of(job: JobId) -> Vec<Request> {
        // (Triage is asked for once the repair is planned: the first screen tells what it will do.)
        vec![Request::Analyze { job }, Request::PlanRepair { job, clip_impossible: false }]
    }
}
