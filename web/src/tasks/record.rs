//! The record of one open file: browser handles and the requests to its worker.

use web_sys::{Blob, File};

use super::Tasks;
use super::artifacts::Outputs;
use super::workers::RunningWorker;
use crate::protocol::{Format, JobId, Program};

/// What to do with a repaired file once it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Download,
    Perfetto,
}

/// A repaired file and its log, as handles, with the options that it was written by.
#[derive(Clone)]
pub(super) struct Output {
    pub(super) format: Format,
    pub(super) clip_impossible: bool,
    pub(super) file_name: String,
    pub(super) file: Blob,
    pub(super) log: Option<Blob>,
}

/// The record of one file. A file that is read again gets a new one: nothing that was written or chosen before stays.
pub(super) struct Record {
    pub(super) file: File,
    /// The worker of the first screen.
    pub(super) worker: Option<RunningWorker>,
    /// The worker of triage, which is started when it is asked for something.
    pub(super) triage: Option<RunningWorker>,
    /// Whether the plan clips impossible durations.
    pub(super) clip_impossible: bool,
    pub(super) purpose: Option<Purpose>,
    pub(super) output: Option<Output>,
    pub(super) artifacts: Outputs,
    /// Whether the triage that was asked for last counts what was launched before the window.
    pub(super) triage_counts: Option<bool>,
}

impl Record {
    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            worker: None,
            triage: None,
            clip_impossible: false,
            purpose: None,
            output: None,
            artifacts: Outputs::default(),
            triage_counts: None,
        }
    }

    /// The worker that runs a program.
    pub(super) fn worker_of(&mut self, program: Program) -> &mut Option<RunningWorker> {
        match program {
            Program::First => &mut self.worker,
            Program::Triage => &mut self.triage,
        }
    }

    /// Ends the workers. What they wrote stays; what they were still to answer is forgotten.
    fn stop(&mut self) {
        self.worker = None;
        self.triage = None;
        self.purpose = None;
        self.triage_counts = None;
    }
}

impl Tasks {
    /// Something of a file's record; `None` once the file is closed.
    pub(super) fn of<T>(&self, job: JobId, get: impl FnOnce(&mut Record) -> T) -> Option<T> {
        self.0.records.borrow_mut().get_mut(&job).map(get)
    }

    /// Ends the workers of a file.
    pub(super) fn stop(&self, job: JobId) {
        self.of(job, Record::stop);
        self.forget_sent(job);
    }

    /// Begins a new record of a file, without a worker.
    pub(super) fn renew(&self, job: JobId) {
        self.stop(job);
        self.forget_answers(job);
        self.of(job, |record| *record = Record::new(record.file.clone()));
    }

    /// The repaired file, where it was written by the options that are in force.
    pub(super) fn output(&self, job: JobId, format: Format) -> Option<Output> {
        self.written_output(job).filter(|output| output.format == format)
    }

    /// The same in any format.
    pub(super) fn written_output(&self, job: JobId) -> Option<Output> {
        let of = |record: &mut Record| {
            let output = record.output.as_ref();
            output.filter(|output| output.clip_impossible == record.clip_impossible).cloned()
        };
        self.of(job, of).flatten()
    }
}
