//! Sends related files to the worker of the file that uses them, and starts comparisons.
//!
//! What should be so follows from the state (`queries::roles`); here is what was asked for so far, and the
//! difference is sent. So it does not matter in which order files come, fail, stop and start again.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::Tasks;
use crate::protocol::{Artifact, Beside, Failure, JobId, Request, Response};
use crate::queries::roles::{Compared, Wanted};
use crate::state::Action;

type Companions = Vec<Beside>;

/// Requests that were sent, by file.
#[derive(Default)]
pub(super) struct RequestLedger {
    /// The companions that each file should have.
    wanted: RefCell<BTreeMap<JobId, Companions>>,
    /// Those that its worker knows of.
    sent: RefCell<BTreeMap<JobId, Companions>>,
    /// Those of them that it has not answered for, in order.
    unread: RefCell<BTreeMap<JobId, Vec<JobId>>>,
    /// Workers that are past their own file.
    planned: RefCell<BTreeSet<JobId>>,
    /// (file, companion) of which the worker died: not sent again unless asked for.
    crashed_on: RefCell<BTreeSet<(JobId, JobId)>>,
    /// The last comparison that was begun of each file.
    compared: RefCell<BTreeMap<JobId, Compared>>,
    /// Who waits for a run to be written down.
    waiting: RefCell<Vec<(JobId, JobId)>>,
}

impl Tasks {
    /// Has the workers take the wanted companions into account.
    pub fn set_companions(&self, wanted: &[Wanted]) {
        for Wanted { job, companions, live } in wanted {
            let mut all = self.0.asked.wanted.borrow_mut();
            let known = all.get(job).map_or(&[][..], Vec::as_slice);
            if known == companions.as_slice() {
                continue;
            }
            all.insert(*job, companions.clone());
            drop(all);
            self.0.asked.crashed_on.borrow_mut().retain(|(of, companion)| {
                of != job || companions.iter().any(|wanted| wanted.job == *companion)
            });
            self.dispatch(Action::CompanionsAsked(*job, companions.clone()));
            if *live {
                self.ask(*job, vec![self.triage_of(*job)]);
            }
        }
    }

    /// Begins the comparisons that can be made and were not.
    pub fn set_comparisons(&self, comparisons: &[Compared]) {
        for compared in comparisons {
            let Compared { job, with, of: _ } = *compared;
            let known = self.0.asked.compared.borrow_mut().insert(job, compared.clone());
            if known.as_ref() == Some(compared) {
                continue;
            }
            self.dispatch(Action::Comparing(job, with));
            self.0.asked.waiting.borrow_mut().push((job, with));
            self.ask(with, vec![Request::Describe { job: with }]);
        }
    }

    /// Tries a companion again that could not be read.
    pub fn retry_companion(&self, job: JobId, companion: JobId) {
        self.0.asked.crashed_on.borrow_mut().remove(&(job, companion));
        if let Some(sent) = self.0.asked.sent.borrow_mut().get_mut(&job) {
            sent.retain(|known| known.job != companion);
        }
        self.dispatch(Action::CompanionRetried(job, companion));
        self.ask(job, vec![self.triage_of(job)]);
    }

    fn wanted(&self, job: JobId) -> Companions {
        self.0.asked.wanted.borrow().get(&job).cloned().unwrap_or_default()
    }

    /// What a worker must be told before it can answer a request that follows from companions, too.
    pub(super) fn news(&self, job: JobId) -> Vec<Request> {
        let asked = &self.0.asked;
        let mut wanted = self.wanted(job);
        wanted.retain(|beside| !asked.crashed_on.borrow().contains(&(job, beside.job)));
        let known = asked.sent.borrow_mut().insert(job, wanted.clone()).unwrap_or_default();
        let gone = known.iter().filter(|of| wanted.iter().all(|beside| beside.job != of.job));
        let gone = gone.map(|of| Request::RemoveCompanion { job, companion: of.job });
        let fresh = wanted.iter().filter(|beside| !known.contains(beside));
        let fresh = fresh.filter_map(|beside| {
            let name = self.of(beside.job, |record| record.file.name())?;
            Some(Request::AddCompanion { job, beside: beside.clone(), name })
        });
        let requests: Vec<Request> = gone.chain(fresh).collect();
        let unread = requests.iter().filter_map(|request| match request {
            Request::AddCompanion { beside, .. } => Some(beside.job),
            _ => None,
        });
        asked.unread.borrow_mut().entry(job).or_default().extend(unread);
        requests
    }

    /// The worker of a file is gone, and what it knew with it.
    pub(super) fn forget_sent(&self, job: JobId) {
        self.0.asked.sent.borrow_mut().remove(&job);
        self.0.asked.unread.borrow_mut().remove(&job);
        self.0.asked.planned.borrow_mut().remove(&job);
    }

    /// A file is read again: what another reading of it did to its worker, and who waits for that, is over.
    pub(super) fn forget_answers(&self, job: JobId) {
        self.0.asked.crashed_on.borrow_mut().retain(|(of, _)| *of != job);
        self.0.asked.waiting.borrow_mut().retain(|(a, b)| *a != job && *b != job);
    }

    /// A file is closed.
    pub(super) fn forget_companions(&self, job: JobId) {
        self.0.asked.wanted.borrow_mut().remove(&job);
        self.0
            .asked
            .crashed_on
            .borrow_mut()
            .retain(|(of, companion)| *of != job && *companion != job);
        self.0.asked.waiting.borrow_mut().retain(|(a, b)| *a != job && *b != job);
    }

    /// Takes note of an answer.
    pub(super) fn note(&self, response: &Response) {
        match response {
            Response::RepairPlanned { job, .. } => {
                self.0.asked.planned.borrow_mut().insert(*job);
            }
            Response::Companion { job, companion, .. } => {
                if let Some(unread) = self.0.asked.unread.borrow_mut().get_mut(job) {
                    unread.retain(|of| of != companion);
                }
            }
            Response::Described { job, run } => self.described(*job, run),
            _ => {}
        }
    }

    fn described(&self, with: JobId, run: &Result<Vec<Artifact>, Failure>) {
        let (due, rest) =
            self.0.asked.waiting.take().into_iter().partition(|(_, waits_for)| *waits_for == with);
        self.0.asked.waiting.replace(rest);
        let due: Vec<(JobId, JobId)> = due;
        for (job, _) in due {
            match run {
                Ok(run) => self.ask(job, vec![Request::Compare { job, with, run: run.clone() }]),
                Err(failure) => {
                    let comparison = Err(failure.clone());
                    let response = Response::Compared { job, with, comparison };
                    self.dispatch(Action::Received(Box::new(response)));
                }
            }
        }
    }

    /// Whether a worker was lost over a companion; if so, the file goes on without that one.
    pub(super) fn survives(&self, job: JobId, failure: &Failure) -> bool {
        let asked = &self.0.asked;
        let first = |unread: &Vec<JobId>| unread.first().copied();
        let reading = asked.unread.borrow().get(&job).and_then(first);
        let Some(companion) = reading.filter(|_| asked.planned.borrow().contains(&job)) else {
            return false;
        };
        self.stop(job);
        asked.crashed_on.borrow_mut().insert((job, companion));
        let response = Response::Companion { job, companion, failure: Some(failure.clone()) };
        self.dispatch(Action::Received(Box::new(response)));
        self.ask(job, vec![self.triage_of(job)]);
        true
    }
}
