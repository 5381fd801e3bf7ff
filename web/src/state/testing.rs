//! What a worker would say, for tests of the state.

use super::{Action, Effect, State};
use crate::protocol::{JobId, RequestId, Response};

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
    super::reduce(state, action)
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
