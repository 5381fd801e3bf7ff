//! The life of a file and its workers: it is read, stopped, read again, and its workers answer or are lost.

use std::rc::Rc;

use super::effect::Effect;
use super::lanes;
use super::ledger::Asked;
use super::next::{Next, stage_of};
use super::outputs::outputs;
use super::workers::{diagnose, plan, post, start, triage};
use super::{CompanionPhase, FileEntry, PerfettoState, Phase, Remote};
use crate::features::several::queries as roles;
use crate::features::several::state as several;
use crate::protocol::{
    Analyses, Diagnosis, EventRange, Failure, JobId, Plan, Program, Request, RequestId, Stage,
    StepWindow, Triage,
};
use crate::shared::Shared;

/// Reads a file from its beginning. (The repair is planned once the first tables are drawn, and triage is asked for once it is
/// planned: the first screen tells what it will do.)
pub(super) fn begin(next: &mut Next, job: JobId) {
    start(next, job, Program::First);
    post(next, Request::Analyze { job });
}

/// The first tables of a file are there, to be drawn. Meanwhile the worker rests: what it did would delay them.
pub(super) fn analyzed(next: &mut Next, job: JobId, report: Analyses) {
    next.update(job, |file| {
        file.report = Some(Shared::new(report));
        file.phase = Phase::Working(stage_of(file, Stage::Planning));
    });
    next.effects.push(Effect::Watch(job));
}

/// They are drawn. (The file may have been stopped meanwhile, or be read again.)
pub(super) fn drawn(next: &mut Next, job: JobId) {
    let Some(FileEntry { report, ledger, .. }) = next.state.file(job).map(|file| &**file) else {
        return;
    };
    if report.is_some() && ledger.asked.first_runs && ledger.asked.plan.is_none() {
        plan(next, job);
    }
}

/// A file is no trace: another program, which opens it when it starts, says what it is.
pub(super) fn read_aside(next: &mut Next, job: JobId, reader: Program) {
    // What the first one read is of no use.
    next.effects.push(Effect::End(job));
    next.update(job, |file| {
        file.ledger.asked = Asked::default();
        file.is_snapshot = reader == Program::Snapshot;
    });
    let chosen = next.state.file(job).filter(|file| file.is_snapshot).and_then(|file| file.events);
    let is_large = next.state.file(job).is_some_and(|file| file.is_snapshot && is_large(file));
    match chosen {
        Some(events) => next.effects.push(Effect::StartEvents(job, events)),
        None if is_large => next.update(job, |file| file.phase = Phase::Asking),
        None => start(next, job, reader),
    }
}

/// A snapshot of this size on the disk may not fit in the memory of a tab: a person chooses how much of it is read. (A million events
/// take 182 MB of wasm memory and 2.5 GB of JSON, of which gzip leaves one part in forty and less.)
const LARGE: u64 = 4 << 30;
const LARGE_COMPRESSED: u64 = 100 << 20;

fn is_large(file: &FileEntry) -> bool {
    let is_compressed = file.name.to_ascii_lowercase().ends_with(".gz");
    file.size >= if is_compressed { LARGE_COMPRESSED } else { LARGE }
}

/// Reads these events of a snapshot, from the beginning.
pub(super) fn read_events(next: &mut Next, job: JobId, events: EventRange) {
    if !next.state.file(job).is_some_and(|file| file.is_snapshot) {
        return;
    }
    next.effects.push(Effect::End(job));
    next.update(job, |file| {
        let fresh = FileEntry::new(job, file.name.clone(), file.size);
        *file = FileEntry { role: file.role, is_snapshot: true, events: Some(events), ..fresh };
    });
    next.effects.push(Effect::StartEvents(job, events));
}

/// Ends the workers of a file. What they made stays; what they were still to answer is forgotten.
pub(super) fn halt(next: &mut Next, job: JobId) {
    next.effects.push(Effect::End(job));
    next.update(job, |file| {
        file.ledger.asked = Asked::default();
        file.diagnosis.give_up();
        file.calls.give_up();
        // (What was drawn went with its worker.)
        (file.memory, file.looked) = (Remote::Idle, None);
        (file.lanes, file.seen, file.axis) = (Remote::Idle, None, None);
        file.kernel.give_up();
        file.window.give_up();
        file.repair.give_up();
        file.artifacts.give_up();
    });
    several::give_up_comparisons(next, job);
}

/// A person stopped a file.
pub(super) fn cancel(next: &mut Next, job: JobId) {
    halt(next, job);
    next.update(job, |file| {
        if matches!(file.phase, Phase::Working(_)) {
            file.phase = Phase::Cancelled;
        }
        if file.repair.ready().is_none() {
            file.repair = Remote::Idle;
        }
        if file.artifacts.ready().is_none() {
            file.artifacts = Remote::Idle;
        }
    });
    next.state.perfetto = PerfettoState::Idle;
}

/// A file is read again, as if it had just been added: nothing that was written or chosen before stays, but its role.
pub(super) fn restart(next: &mut Next, job: JobId) {
    if next.state.file(job).is_none() {
        return;
    }
    halt(next, job);
    for id in outputs(next, job) {
        next.effects.push(Effect::Drop(job, id));
    }
    next.update(job, |file| {
        let fresh = FileEntry::new(job, file.name.clone(), file.size);
        let mut companions = std::mem::take(&mut file.companions);
        companions.iter_mut().for_each(|known| known.phase = CompanionPhase::Waiting);
        let beneath = std::mem::take(&mut file.beneath);
        *file = FileEntry { role: file.role, companions, beneath, events: file.events, ..fresh };
    });
    next.state.guesses = roles::guesses(&next.state);
    begin(next, job);
}

/// A worker is gone. If it died of a related file, the file goes on without that one.
pub(super) fn lost(next: &mut Next, job: JobId, failure: &Rc<Failure>) {
    let Some(file) = next.state.file(job) else { return };
    let asked = &file.ledger.asked;
    if let Some(companion) = asked.unread.first().copied().filter(|_| asked.planned) {
        halt(next, job);
        next.update(job, |file| file.ledger.crashed_on.push(companion));
        several::answered(next, job, companion, Some(Failure::clone(failure)));
        triage(next, job);
        return;
    }
    fail(next, job, failure);
    next.state.perfetto = PerfettoState::Idle;
}

/// A failed repair leaves the views; a failed decoding leaves none.
pub(super) fn fail(next: &mut Next, job: JobId, failure: &Rc<Failure>) {
    next.update(job, |file| {
        if file.repair.pending().is_some() {
            file.repair = Remote::Failed(Rc::clone(failure));
        } else if file.artifacts.pending().is_some() {
            file.artifacts = Remote::Failed(Rc::clone(failure));
        } else {
            file.phase = Phase::Failed(Rc::clone(failure));
        }
    });
    halt(next, job);
}

/// The repair is planned: the first screen is there, and the larger program may load.
pub(super) fn planned(next: &mut Next, job: JobId, id: RequestId, plan: Plan) {
    let count = next.state.count_before_window;
    let Some(file) = next.state.file(job).filter(|file| file.ledger.asked.plan == Some(id)) else {
        return;
    };
    let needs_triage = file.triage.is_none()
        || file.companions.iter().any(|known| known.phase == CompanionPhase::Waiting)
        || file.counts_otherwise(count);
    let is_asked = file.ledger.asked.triage.is_some();
    next.update(job, |file| {
        file.plan = Some(Shared::new(plan));
        file.ledger.asked.planned = true;
    });
    lanes::tell(next, job);
    if needs_triage && !is_asked {
        triage(next, job);
    }
    next.update(job, |file| {
        file.phase = match file.ledger.asked.triage {
            Some(_) => Phase::Working(stage_of(file, Stage::Triaging)),
            None => Phase::Ready,
        };
    });
}

/// A triage is there. One that was superseded is not shown: the next is on its way. The diagnosis follows from the last one.
pub(super) fn triaged(next: &mut Next, job: JobId, id: RequestId, triage: Triage) {
    let mut is_last = false;
    next.update(job, |file| {
        if file.ledger.asked.triage == Some(id) {
            file.ledger.asked.triage = None;
            file.triage = Some(Shared::new(triage));
            file.phase = Phase::Ready;
            is_last = true;
        }
    });
    if is_last {
        diagnose(next, job);
    }
}

/// A diagnosis is there. What it says of the whole file stays while a step is shown.
pub(super) fn diagnosed(next: &mut Next, job: JobId, id: RequestId, mut diagnosis: Diagnosis) {
    let steps = diagnosis.steps.clone();
    let memory = std::mem::take(&mut diagnosis.memory);
    let told = std::mem::take(&mut diagnosis.told);
    let clocks = std::mem::take(&mut diagnosis.clocks);
    let scaling = std::mem::take(&mut diagnosis.scaling);
    next.update(job, |file| {
        if file.diagnosis.answer(id, Ok(diagnosis)) && file.step.is_none() {
            file.steps = Shared::new(steps);
            file.recorded_memory = Shared::new(memory);
            file.recorded_told = Shared::new(told);
            let others = file.ledger.asked.ranks.iter().map(|(other, _)| *other);
            file.clocks = others.zip(clocks).collect();
            // (A new address would have other files diagnosed again.)
            if *file.scaling != *scaling {
                file.scaling = scaling;
            }
        }
    });
    lanes::tell(next, job);
}

/// Narrows diagnosis and triage to a step, or to none.
pub(super) fn show_step(next: &mut Next, job: JobId, step: Option<StepWindow>) {
    let Some(file) = next.state.file(job) else { return };
    if file.step == step || file.triage.is_none() {
        return;
    }
    next.update(job, |file| (file.step, file.kernel) = (step, Remote::Idle));
    diagnose(next, job);
}

/// Diagnoses with the time of an iteration without the profiler, or without one again.
pub(super) fn time_iteration(next: &mut Next, job: JobId, iteration_ns: Option<i64>) {
    next.update(job, |file| file.iteration_ns = iteration_ns);
    diagnose(next, job);
}

#[cfg(test)]
mod tests;
