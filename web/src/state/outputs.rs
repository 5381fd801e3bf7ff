//! What is written for a file: the repaired copy, its log and artifacts. It is saved, copied or handed over, and dropped when its plan
//! or wish no longer holds.

use kinetoscope::artifacts::{
    ARCHIVE, FIXED_TRACE, KERNEL_MAP, REPORT_HTML, REPORT_JSON, REPORT_MD,
};

use super::effect::{BlobKey, Effect, PlanNumber, Purpose, Use, Written};
use super::ledger::Made;
use super::next::Next;
use super::workers::{ask, plan, start};
use super::{FileEntry, PerfettoState, Phase, Remote};
use crate::protocol::{
    ArtifactFile, ArtifactWish, Artifacts, FILE, Format, JobId, LOG, Parts, Program, Progress,
    Repaired, Request, RequestId, Stage,
};

/// The requests whose blobs are kept for a file.
pub(super) fn outputs(next: &Next, job: JobId) -> Vec<RequestId> {
    let Some(file) = next.state.file(job) else { return Vec::new() };
    let Made { files, .. } = &file.ledger.made;
    let mut ids: Vec<RequestId> = files.iter().map(|(_, id)| *id).collect();
    ids.extend(file.ledger.written.as_ref().map(|written| written.id));
    kinetoscope::trace::sort(&mut ids);
    ids.dedup();
    ids
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

#[cfg(test)]
mod tests;
