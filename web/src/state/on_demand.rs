//! What views ask of workers while a person looks at them: details of kernels and events, pictures, and what other files add to one.

use super::effect::Effect;
use super::next::Next;
use super::workers::{ask, start};
use super::{Remote, View};
use crate::protocol::{Aside, Input, JobId, KernelKey, Looked, Program, Request, Surface};
use crate::shared::Shared;

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

/// Has the lanes of the trace that is shown drawn, once it is read and the timeline is shown.
pub(super) fn draw_lanes(next: &mut Next) {
    let shown = next.state.selected_file().filter(|_| next.state.shows_timeline());
    let Some(file) = shown.filter(|file| file.lanes == Remote::Idle) else { return };
    if file.opened.is_none() || !file.ledger.asked.first_runs {
        return;
    }
    let job = file.job;
    let id = next.number();
    next.update(job, |file| file.lanes = Remote::Pending(id));
    start(next, job, Program::Lanes);
    if !next.state.tracks.is_empty() {
        let input = Input::Layout(next.state.tracks.clone());
        let id = next.number();
        next.effects.push(Effect::Post(id, Request::Look { job, surface: Surface::Over, input }));
    }
    tell_lanes(next, job);
}

/// A picture answered what a person did with it.
pub(super) fn looked(next: &mut Next, job: JobId, program: Program, mut looked: Looked) {
    next.state.announcement.clone_from(&looked.says);
    if let Some(layout) = looked.layout.take() {
        next.state.tracks = layout;
    }
    if let Some((name, text)) = looked.file.take() {
        next.effects.push(Effect::SaveText(name, text));
    }
    let looked = Some(Shared::new(looked));
    next.update(job, |file| match program {
        Program::Lanes => file.seen = looked,
        _ => file.looked = looked,
    });
}

/// Tells the program that draws lanes what it does not find out by itself, once both are there.
pub(super) fn tell_lanes(next: &mut Next, job: JobId) {
    let Some(file) = next.state.file(job).filter(|file| file.lanes != Remote::Idle) else { return };
    let damage = file.plan.as_ref().map(|plan| plan.damage.to_vec());
    for recorded in [file.recorded_told.to_vec(), damage.unwrap_or_default()] {
        if !recorded.is_empty() {
            let id = next.number();
            next.effects.push(Effect::Post(id, Request::Told { job, recorded }));
        }
    }
}

/// What is to be shown in the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sought {
    /// The slice of an event, by its number in the file.
    Event(u32),
    /// A moment, in ns on the clock of the file.
    Moment(i64),
    /// A slice with this name, and where the others are.
    Name(String),
}

/// Shows something in the timeline, which is read first where it is not. One that stands below the view is enough.
pub(crate) fn show_in_timeline(next: &mut Next, sought: Sought) {
    let Some(job) = next.state.selected else { return };
    next.state.followed = None;
    if !next.state.docked {
        next.state.view = View::Timeline;
    }
    draw_lanes(next);
    let input = match sought {
        Sought::Event(event) => Input::Event(event),
        Sought::Moment(ns) => Input::Moment(ns),
        Sought::Name(name) => Input::Name(name),
    };
    let look = Request::Look { job, surface: Surface::Over, input };
    let id = next.number();
    next.effects.push(Effect::Post(id, look));
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
