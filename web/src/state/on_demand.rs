//! What views ask of workers while a person looks at them: details of kernels and events, pictures, and what other files add to one.

use super::effect::Effect;
use super::next::Next;
use super::workers::ask;
use super::{Remote, View};
use crate::protocol::{Aside, JobId, KernelKey, Looked, Program, Request};
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
