//! Decisions about workers and what they make: what is started, asked for, stored, saved and dropped. Each changes the ledger
//! of a file and says its effects.

pub(crate) mod lanes;

use std::rc::Rc;

use kinetoscope::artifacts::{
    ARCHIVE, FIXED_TRACE, KERNEL_MAP, REPORT_HTML, REPORT_JSON, REPORT_MD,
};

use super::effect::{BlobKey, Effect, PlanNumber, Purpose, Use, Written};
use super::ledger::{Asked, Made};
use super::reduce::{Next, stage_of};
use super::{CompanionEntry, CompanionPhase, FileEntry, PerfettoState, Phase, Remote, View};
use crate::features::several::queries as roles;
use crate::features::several::state as several;
use crate::protocol::{
    ArtifactFile, ArtifactWish, Artifacts, Aside, EventRange, FILE, Failure, Format, JobId,
    KernelKey, LOG, Parts, Plan, Program, Progress, Repaired, Request, RequestId, Stage,
    StepWindow, Triage,
};
use crate::shared::Shared;

/// Reads a file from its beginning. (Triage is asked for once the repair is planned: the first screen tells what it will
/// do.)
pub(super) fn begin(next: &mut Next, job: JobId) {
    start(next, job, Program::First);
    post(next, Request::Analyze { job });
    plan(next, job);
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

fn start(next: &mut Next, job: JobId, program: Program) {
    next.effects.push(Effect::Start(job, program));
    next.update(job, |file| match program {
        Program::First => file.ledger.asked.first_runs = true,
        Program::Triage => file.ledger.asked.triage_runs = true,
        // Nothing is asked of it but to open the file.
        Program::Snapshot | Program::Lanes => {}
    });
}

/// Asks the workers of a file. If they were ended, new ones read the file again first.
pub(crate) fn ask(next: &mut Next, request: Request) -> Option<RequestId> {
    let job = request.job();
    if !next.state.file(job)?.ledger.asked.first_runs {
        start(next, job, Program::First);
        plan(next, job);
    }
    post(next, request)
}

/// Posts a request to the worker that answers it, and before it what its answer follows from.
fn post(next: &mut Next, request: Request) -> Option<RequestId> {
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
fn plan(next: &mut Next, job: JobId) {
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

/// The requests whose blobs are kept for a file.
fn outputs(next: &Next, job: JobId) -> Vec<RequestId> {
    let Some(file) = next.state.file(job) else { return Vec::new() };
    let Made { files, .. } = &file.ledger.made;
    let mut ids: Vec<RequestId> = files.iter().map(|(_, id)| *id).collect();
    ids.extend(file.ledger.written.as_ref().map(|written| written.id));
    kinetoscope::trace::sort(&mut ids);
    ids.dedup();
    ids
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

/// Asks for the diagnosis, of the step that is chosen. The last one stays until the new one is there.
pub(crate) fn diagnose(next: &mut Next, job: JobId) {
    let count_before_window = next.state.count_before_window;
    let step = next.state.file(job).and_then(|file| file.step.clone());
    let id = post(next, Request::Diagnose { job, count_before_window, step });
    next.update(job, |file| file.diagnosis = id.map_or(Remote::Idle, Remote::Pending));
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

/// Plans again, with or without clipping impossible durations. What was written by the former plan is let go.
pub(super) fn replan(next: &mut Next, job: JobId, clip_impossible: bool) {
    let Some(file) = next.state.file(job) else { return };
    let (runs, written) = (file.ledger.asked.first_runs, file.ledger.written.clone());
    if let Some(written) = written {
        next.effects.push(Effect::Drop(job, written.id));
    }
    next.update(job, |file| {
        let ledger = &mut file.ledger;
        (ledger.plan, ledger.clip_impossible) = (PlanNumber(ledger.plan.0 + 1), clip_impossible);
        ledger.written = None;
        file.repair = Remote::Idle;
        let progress = Progress { stage: Stage::Planning, n_events: 0, ..whole(file) };
        file.phase = Phase::Working(progress);
    });
    if !runs {
        start(next, job, Program::First);
    }
    plan(next, job);
}

fn whole(file: &FileEntry) -> Progress {
    Progress { done: file.size, total: file.size, ..Progress::default() }
}

/// Saves the repaired file or hands it over, writing it first if need be.
pub(super) fn repair(next: &mut Next, job: JobId, format: Format, purpose: Purpose) {
    let Some(file) = next.state.file(job) else { return };
    let written = file.ledger.in_force().filter(|written| written.format == format).cloned();
    if let Some(written) = written {
        use_written(next, job, &written, purpose);
        return;
    }
    let plan = file.ledger.plan;
    let id = ask(next, Request::Repair { job, format });
    next.update(job, |file| {
        file.ledger.asked.writing = Some((purpose, plan));
        file.repair = id.map_or(Remote::Idle, Remote::Pending);
        file.making = Progress { stage: Stage::Repairing, done: 0, ..whole(file) };
    });
}

/// The Perfetto window is open, or the browser refused it.
pub(super) fn open_in_perfetto(next: &mut Next, job: JobId, blocked: bool) {
    let Some(file) = next.state.file(job) else { return };
    let written = file.ledger.in_force().filter(|written| written.format == Format::Gzip).cloned();
    match written {
        Some(_) if blocked => next.state.perfetto = PerfettoState::Blocked(job),
        Some(written) => use_written(next, job, &written, Purpose::Perfetto),
        None => {
            next.state.perfetto = PerfettoState::Writing(job);
            repair(next, job, Format::Gzip, Purpose::Perfetto);
        }
    }
}

/// Saves the log of the repair.
pub(super) fn save_log(next: &mut Next, job: JobId) {
    let Some(written) = next.state.file(job).and_then(|file| file.ledger.in_force()) else {
        return;
    };
    let stem = written.file_name.trim_end_matches(".gz").trim_end_matches(".json");
    let effect =
        Effect::Save(BlobKey { job, id: written.id, name: LOG }, format!("{stem}.log.json"));
    next.effects.push(effect);
}

/// The repaired file is written.
pub(super) fn repaired(next: &mut Next, job: JobId, id: RequestId, repaired: Repaired) {
    let (format, file_name) = (repaired.format, repaired.file_name.clone());
    let mut written = None;
    next.update(job, |file| {
        if file.repair.answer(id, Ok(repaired))
            && let Some((purpose, plan)) = file.ledger.asked.writing.take()
        {
            let output = Written { id, plan, format, file_name };
            written = Some((file.ledger.written.replace(output.clone()), output, purpose));
        }
    });
    let Some((former, output, purpose)) = written else {
        next.effects.push(Effect::Drop(job, id));
        return;
    };
    if let Some(former) = former {
        next.effects.push(Effect::Drop(job, former.id));
    }
    use_written(next, job, &output, purpose);
}

fn use_written(next: &mut Next, job: JobId, written: &Written, purpose: Purpose) {
    let key = BlobKey { job, id: written.id, name: FILE };
    let name = written.file_name.clone();
    next.effects.push(match purpose {
        Purpose::Download => Effect::Save(key, name),
        Purpose::Perfetto => Effect::HandOver(key, name),
    });
}

/// Saves or copies an artifact, making it first if need be.
pub(super) fn artifact(
    next: &mut Next,
    job: JobId,
    name: &'static str,
    wish: ArtifactWish,
    what: Use,
) {
    let Some(file) = next.state.file(job) else { return };
    if let Some(id) = file.ledger.made.of(name, &wish) {
        use_artifact(next, BlobKey { job, id, name }, what);
        return;
    }
    let (parts, stage) = match name {
        FIXED_TRACE | ARCHIVE => (Parts::Everything, Stage::Repairing),
        KERNEL_MAP => (Parts::KernelMap, Stage::Packing),
        REPORT_MD | REPORT_JSON | REPORT_HTML => (Parts::Report, Stage::Triaging),
        _ => (Parts::Tables, Stage::Digesting),
    };
    let id = ask(next, Request::Artifacts { job, wish, parts });
    next.update(job, |file| {
        file.ledger.asked.artifact = Some((name, what));
        file.artifacts = id.map_or(Remote::Idle, Remote::Pending);
        file.making = Progress { stage, done: 0, ..whole(file) };
    });
}

/// Keeps the artifacts, and does with them what they were made for. What was made before for the same wish stays.
pub(super) fn artifacts_made(next: &mut Next, job: JobId, id: RequestId, made: Artifacts) {
    let before = outputs(next, job);
    let mut wanted = None;
    next.update(job, |file| {
        if file.artifacts.pending() != Some(id) {
            return;
        }
        let Made { wish, files: former } = std::mem::take(&mut file.ledger.made);
        let mut files: Vec<(ArtifactFile, RequestId)> =
            made.files.iter().map(|file| (file.clone(), id)).collect();
        if wish == made.wish {
            files
                .extend(former.into_iter().filter(|(file, _)| made.bytes_of(&file.name).is_none()));
        }
        let all = files.iter().map(|(file, _)| file.clone()).collect();
        let artifacts = Artifacts { wish: made.wish.clone(), files: all };
        file.artifacts.answer(id, Ok(artifacts));
        file.ledger.made = Made { wish: made.wish, files };
        wanted = file.ledger.asked.artifact.take();
    });
    let kept = outputs(next, job);
    for gone in before.into_iter().chain([id]).filter(|id| !kept.contains(id)) {
        next.effects.push(Effect::Drop(job, gone));
    }
    let made = next.state.file(job).map(|file| &file.ledger.made);
    if let (Some((name, what)), Some(made)) = (wanted, made)
        && let Some((_, id)) = made.files.iter().find(|(file, _)| file.name == name)
    {
        let key = BlobKey { job, id: *id, name };
        use_artifact(next, key, what);
    }
}

fn use_artifact(next: &mut Next, key: BlobKey, what: Use) {
    let name = key.name.to_owned();
    next.effects.push(match what {
        Use::Save => Effect::Save(key, name),
        Use::Copy => Effect::Copy(key),
    });
}

/// Has the digest of a benchmark's configuration computed, by the worker of the file that is shown.
pub(super) fn benchmark_config(next: &mut Next, bytes: Vec<u8>) {
    if let Some(job) = next.state.selected {
        ask(next, Request::BenchmarkConfig { job, bytes });
    }
}

/// Asks for a kernel's launches and places.
pub(super) fn kernel(next: &mut Next, job: JobId, key: KernelKey) {
    let count_before_window = next.state.count_before_window;
    let step = next.state.file(job).and_then(|file| file.step.clone());
    let id = ask(next, Request::Kernel { job, key, count_before_window, step });
    next.update(job, |file| file.kernel = id.map_or(Remote::Idle, Remote::Pending));
}

/// Asks for what ran around an event.
pub(super) fn window(next: &mut Next, job: JobId, event: u32) {
    let id = ask(next, Request::Window { job, event });
    next.update(job, |file| file.window = id.map_or(Remote::Idle, Remote::Pending));
}

/// Has the memory of the trace that is shown drawn, once it is there and the view of it is shown.
pub(super) fn draw_memory(next: &mut Next) {
    let shown = next.state.selected_file().filter(|_| next.state.view == View::Memory);
    let Some(file) = shown.filter(|file| file.memory == Remote::Idle) else { return };
    if file.recorded_memory.is_empty() || !file.ledger.asked.first_runs {
        return;
    }
    let (job, recorded) = (file.job, file.recorded_memory.to_vec());
    next.effects.push(Effect::Load(job, Program::Snapshot));
    let id = next.number();
    next.effects.push(Effect::Post(id, Request::Memory { job, recorded }));
    next.update(job, |file| file.memory = Remote::Pending(id));
}

/// Asks what changed since an earlier snapshot.
pub(super) fn changes(next: &mut Next, job: JobId, earlier: Option<JobId>) {
    let changes = earlier.and_then(|earlier| {
        let Aside::Snapshot { summed, .. } = next.state.file(earlier)?.aside.as_deref()? else {
            return None;
        };
        let request = Request::Changes { job, earlier: summed.clone() };
        // (The worker of a snapshot runs as long as its file is open.)
        let id = next.number();
        next.effects.push(Effect::Post(id, request));
        Some((earlier, Remote::Pending(id)))
    });
    next.update(job, |file| file.changes = changes);
}

/// Asks what a trace says of a snapshot.
pub(super) fn in_trace(next: &mut Next, job: JobId, trace: Option<JobId>) {
    let said = trace.and_then(|trace| {
        let Aside::Snapshot { run, .. } = next.state.file(job)?.aside.as_deref()? else {
            return None;
        };
        let request = Request::InTrace { job: trace, snapshot: job, run: run.clone() };
        let id = ask(next, request)?;
        Some((trace, Remote::Pending(id)))
    });
    next.update(job, |file| file.in_trace = said);
}

#[cfg(test)]
mod tests;
