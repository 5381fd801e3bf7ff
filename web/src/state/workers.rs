//! Requests to the workers of a file: which are started for one, what each must be told before, and the three answers that are asked
//! for again when a choice changes: plan, triage and diagnosis.

use super::effect::Effect;
use super::next::{Next, stage_of};
use super::{CompanionEntry, CompanionPhase, Phase, Remote};
use crate::protocol::{JobId, Program, Progress, Request, RequestId, Stage};

pub(super) fn start(next: &mut Next, job: JobId, program: Program) {
    next.effects.push(Effect::Start(job, program));
    next.update(job, |file| match program {
        Program::First => file.ledger.asked.first_runs = true,
        Program::Triage => file.ledger.asked.triage_runs = true,
        // Nothing is asked of it but to open the file.
        Program::Snapshot | Program::Lanes => {}
    });
}

/// Asks the workers of a file. If they were ended, new ones read the file again first. What it is asked for may follow from the plan.
pub(crate) fn ask(next: &mut Next, request: Request) -> Option<RequestId> {
    let job = request.job();
    if !next.state.file(job)?.ledger.asked.first_runs {
        start(next, job, Program::First);
    }
    if next.state.file(job)?.ledger.asked.plan.is_none() {
        plan(next, job);
    }
    post(next, request)
}

/// Posts a request to the worker that answers it, and before it what its answer follows from.
pub(super) fn post(next: &mut Next, request: Request) -> Option<RequestId> {
    let job = request.job();
    let asked = &next.state.file(job)?.ledger.asked;
    if request.program() == Program::Triage && !asked.triage_runs {
        start(next, job, Program::Triage);
    }
    if request.needs_companions() {
        for news in news(next, job) {
            post(next, news);
        }
    }
    let id = next.number();
    next.effects.push(Effect::Post(id, request));
    Some(id)
}

/// Asks for the plan in force.
pub(super) fn plan(next: &mut Next, job: JobId) {
    let Some(file) = next.state.file(job) else { return };
    let clip_impossible = file.ledger.clip_impossible;
    let id = post(next, Request::PlanRepair { job, clip_impossible });
    next.update(job, |file| file.ledger.asked.plan = id);
}

/// Asks for a triage. It supersedes one that is being made.
pub(crate) fn triage(next: &mut Next, job: JobId) {
    let count_before_window = next.state.count_before_window;
    let id = ask(next, Request::Triage { job, count_before_window });
    next.update(job, |file| {
        file.ledger.asked.triage = id;
        file.ledger.asked.triage_counts = Some(count_before_window);
        // A file that was ready is not until this one is there.
        if file.phase == Phase::Ready {
            let is_waiting = |known: &&CompanionEntry| known.phase == CompanionPhase::Waiting;
            let stage = match file.companions.iter().find(is_waiting) {
                Some(known) => Stage::ReadingCompanion(known.beside.role),
                None => Stage::Triaging,
            };
            file.phase = Phase::Working(Progress { done: 0, ..stage_of(file, stage) });
        }
    });
}

/// What the worker of triage must be told of related files.
fn news(next: &mut Next, job: JobId) -> Vec<Request> {
    let Some(file) = next.state.file(job).cloned() else { return Vec::new() };
    let ledger = &file.ledger;
    let wanted = file.companions.iter().filter(|of| !ledger.crashed_on.contains(&of.beside.job));
    let wanted: Vec<&CompanionEntry> = wanted.collect();
    let known = &ledger.asked.companions;
    let gone = known.iter().filter(|of| wanted.iter().all(|entry| entry.beside.job != of.job));
    let gone = gone.map(|of| Request::RemoveCompanion { job, companion: of.job });
    let fresh = wanted.iter().filter(|entry| !known.contains(&entry.beside));
    let add = |entry: &&&CompanionEntry| Request::AddCompanion {
        job,
        beside: entry.beside.clone(),
        name: entry.name.clone(),
    };
    let mut requests: Vec<Request> = gone.chain(fresh.clone().map(|entry| add(&entry))).collect();
    let unread: Vec<JobId> = fresh.map(|entry| entry.beside.job).collect();
    let told = wanted.iter().map(|entry| entry.beside.clone()).collect();
    next.update(job, |file| {
        file.ledger.asked.companions = told;
        file.ledger.asked.unread.extend(unread);
    });
    requests.extend(told_of_ranks(next, job));
    requests
}

/// What the worker of triage must be told of other ranks.
fn told_of_ranks(next: &mut Next, job: JobId) -> Option<Request> {
    let file = next.state.file(job).filter(|file| file.ranks != file.ledger.asked.ranks)?;
    let ranks = file.ranks.clone();
    let others = ranks.iter().map(|(_, calls)| calls.clone()).collect();
    next.update(job, |file| file.ledger.asked.ranks = ranks);
    Some(Request::OtherRanks { job, others })
}

/// Asks for the diagnosis, of the step that is chosen. The last one stays until the new one is there.
pub(crate) fn diagnose(next: &mut Next, job: JobId) {
    let count_before_window = next.state.count_before_window;
    let file = next.state.file(job);
    let (step, iteration_ns) =
        file.map_or((None, None), |file| (file.step.clone(), file.iteration_ns));
    let id = post(next, Request::Diagnose { job, count_before_window, step, iteration_ns });
    next.update(job, |file| file.diagnosis = id.map_or(Remote::Idle, Remote::Pending));
}
