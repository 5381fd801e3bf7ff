//! The browser handles of one open file: the file, its workers, and what these wrote. What they mean is in the state.

use web_sys::{Blob, File};

use super::Tasks;
use super::workers::RunningWorker;
use crate::protocol::{JobId, Program, RequestId};
use crate::state::BlobKey;

/// The handles of one file.
pub(super) struct Record {
    pub(super) file: File,
    /// The worker of the first screen.
    worker: Option<RunningWorker>,
    /// The worker of triage, which is started when it is asked for something.
    triage: Option<RunningWorker>,
    /// The worker of memory snapshots, if the file is one.
    snapshot: Option<RunningWorker>,
    /// The worker of the timeline, which is started when that is shown.
    lanes: Option<RunningWorker>,
    /// The blobs that came with the answer to a request, by name.
    pub(super) blobs: Vec<(RequestId, Vec<(String, Blob)>)>,
}

impl Record {
    pub(super) fn new(file: File) -> Self {
        Self { file, worker: None, triage: None, snapshot: None, lanes: None, blobs: Vec::new() }
    }

    /// The worker that runs a program.
    pub(super) fn worker_of(&mut self, program: Program) -> &mut Option<RunningWorker> {
        match program {
            Program::First => &mut self.worker,
            Program::Triage => &mut self.triage,
            Program::Snapshot => &mut self.snapshot,
            Program::Lanes => &mut self.lanes,
        }
    }

    /// Ends the workers. What they wrote stays.
    pub(super) fn end(&mut self) {
        self.worker = None;
        self.triage = None;
        self.snapshot = None;
        self.lanes = None;
    }
}

impl Tasks {
    /// Something of a file's record; `None` once the file is closed.
    pub(super) fn of<T>(&self, job: JobId, get: impl FnOnce(&mut Record) -> T) -> Option<T> {
        let mut records = self.0.records.borrow_mut();
        records.iter_mut().find(|(of, _)| *of == job).map(|(_, record)| get(record))
    }

    /// The blob of a key.
    pub(super) fn blob(&self, key: &BlobKey) -> Option<Blob> {
        let found = self.of(key.job, |record| {
            let (_, blobs) = record.blobs.iter().find(|(id, _)| *id == key.id)?;
            blobs.iter().find(|(name, _)| name == key.name).map(|(_, blob)| blob.clone())
        });
        found.flatten()
    }
}
