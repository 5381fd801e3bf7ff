//! What a worker would say, for tests of the state.

use std::rc::Rc;

use super::{Action, Effect, FileEntry, Purpose, Role, State};
use crate::protocol::{
    Analyses, Companion, Failure, Format, JobId, Opened, Plan, Repaired, Request, RequestId,
    Response, Triage,
};
use crate::shared::Shared;

/// An answer to whatever is pending when it is reduced by [`reduce`] or [`step`].
pub fn said(response: Response) -> Action {
    Action::Received(RequestId::default(), Box::new(response))
}

/// The state after an action.
pub fn reduce(state: &State, action: Action) -> State {
    step(state, action).0
}

/// The state after an action, and the effects.
pub fn step(state: &State, action: Action) -> (State, Vec<Effect>) {
    let action = match action {
        Action::Received(id, response) if id == RequestId::default() => {
            Action::Received(pending(state, &response).unwrap_or_default(), response)
        }
        other => other,
    };
    let (state, mut effects) = super::reduce(state, action);
    // The page has drawn it.
    let Some(Effect::Watch(job)) = effects.pop_if(|last| matches!(last, Effect::Watch(_))) else {
        return (state, effects);
    };
    let (state, since) = super::reduce(&state, Action::Drawn(job));
    effects.extend(since);
    (state, effects)
}

/// The request that such an answer answers.
fn pending(state: &State, response: &Response) -> Option<RequestId> {
    let file = |job: &JobId| state.file(*job);
    match response {
        Response::RepairPlanned { job, .. } => file(job)?.ledger.asked.plan,
        Response::Triage { job, .. } => file(job)?.ledger.asked.triage,
        Response::Diagnosed { job, .. } => file(job)?.diagnosis.pending(),
        Response::RankCalls { job, .. } => file(job)?.calls.pending(),
        Response::Kernel { job, .. } => file(job)?.kernel.pending(),
        Response::Window { job, .. } => file(job)?.window.pending(),
        Response::Repaired { job, .. } => file(job)?.repair.pending(),
        Response::Artifacts { job, .. } | Response::NoArtifacts { job, .. } => {
            file(job)?.artifacts.pending()
        }
        Response::Described { job, .. } => state
            .files
            .iter()
            .find_map(|file| file.comparison.as_ref().filter(|(with, _)| with == job)?.1.pending()),
        Response::Changes { job, .. } => file(job)?.changes.as_ref()?.1.pending(),
        Response::InTrace { snapshot, .. } => file(snapshot)?.in_trace.as_ref()?.1.pending(),
        Response::Memory { job, .. } => file(job)?.memory.pending(),
        Response::Lanes { job, .. } => file(job)?.lanes.pending(),
        Response::Compared { job, .. } => file(job)?.comparison.as_ref()?.1.pending(),
        Response::Ready { .. }
        | Response::Levels { .. }
        | Response::Shown { .. }
        | Response::Progress { .. }
        | Response::Opened { .. }
        | Response::NoTrace { .. }
        | Response::BenchmarkConfig { .. }
        | Response::Benchmark { .. }
        | Response::Aside { .. }
        | Response::Companion { .. }
        | Response::Looked { .. }
        | Response::Report { .. }
        | Response::Failed { .. } => None,
    }
}

/// The first file of a page.
pub const JOB: JobId = JobId(1);

/// The second.
pub const OTHER: JobId = JobId(2);

/// A page, and the effects of its last action.
pub struct Page {
    pub state: State,
    pub effects: Vec<Effect>,
}

impl Page {
    pub fn empty() -> Self {
        Self { state: State::default(), effects: Vec::new() }
    }

    /// One file that is triaged.
    pub fn ready() -> Self {
        let mut page = Self::empty();
        page.act(Action::Added(JOB, "1.json".into(), 100));
        page.settle(JOB);
        page
    }

    /// Two of them.
    pub fn pair() -> Self {
        let mut page = Self::ready();
        page.act(Action::Added(OTHER, "2.json".into(), 100));
        page.settle(OTHER);
        page
    }

    /// A file whose worker reads another one.
    pub fn reading() -> Self {
        let mut page = Self::pair();
        page.act(Action::RoleSet(OTHER, Role::Companion(Companion::Mapping, JOB)));
        page
    }

    pub fn act(&mut self, action: Action) -> &mut Self {
        (self.state, self.effects) = step(&self.state, action);
        self
    }

    /// The worker answers whatever is pending.
    pub fn hear(&mut self, response: Response) -> &mut Self {
        self.act(said(response))
    }

    /// The workers answer everything up to triage.
    pub fn settle(&mut self, job: JobId) {
        self.settle_with(job, Triage::default());
    }

    pub fn settle_with(&mut self, job: JobId, triage: Triage) {
        self.hear(Response::Opened { job, opened: Opened::default() });
        self.hear(Response::Report { job, report: Analyses::default() });
        self.hear(Response::RepairPlanned { job, plan: Plan::default() });
        self.hear(Response::Triage { job, triage });
    }

    pub fn file(&self, job: JobId) -> &FileEntry {
        self.state.file(job).unwrap()
    }

    /// The requests of the last action, by name.
    pub fn posted(&self) -> Vec<&'static str> {
        let name = |effect: &Effect| match effect {
            Effect::Post(_, request) => Some(match request {
                Request::Open { .. } => "open",
                Request::AddCompanion { .. } => "add",
                Request::RemoveCompanion { .. } => "remove",
                Request::Analyze { .. } => "analyze",
                Request::Triage { .. } => "triage",
                Request::RankCalls { .. } => "rank calls",
                Request::OtherRanks { .. } => "other ranks",
                Request::Describe { .. } => "describe",
                Request::Compare { .. } => "compare",
                Request::PlanRepair { clip_impossible: false, .. } => "plan",
                Request::PlanRepair { clip_impossible: true, .. } => "plan with clips",
                Request::Repair { .. } => "repair",
                Request::Kernel { .. } => "kernel",
                Request::Window { .. } => "window",
                Request::BenchmarkConfig { .. } => "benchmark config",
                Request::Benchmark { .. } => "benchmark",
                Request::Diagnose { .. } => "diagnose",
                Request::Look { .. } => "look",
                Request::Memory { .. } => "memory",
                Request::Told { .. } => "told",
                Request::Changes { .. } => "changes",
                Request::InTrace { .. } => "in trace",
                Request::Levels { .. } => "levels",
                Request::Artifacts { .. } => "artifacts",
            }),
            _ => None,
        };
        self.effects.iter().filter_map(name).collect()
    }

    pub fn write(&mut self) -> RequestId {
        self.act(Action::RepairAsked(JOB, Format::Json, Purpose::Download));
        let id = self.file(JOB).repair.pending().unwrap();
        let clip_impossible = self.file(JOB).ledger.clip_impossible;
        self.hear(Response::Repaired { job: JOB, repaired: repaired_copy(clip_impossible) });
        id
    }

    pub fn lose(&mut self, job: JobId) -> &mut Self {
        self.act(Action::WorkerLost(job, Rc::new(Failure::default())))
    }
}

pub fn repaired_copy(clip_impossible: bool) -> Repaired {
    Repaired {
        format: Format::Json,
        bytes: 1,
        file_name: "1.repaired.json".into(),
        clip_impossible,
        proven: true,
        proof: Shared::default(),
    }
}
