//! The program of lanes: when it is started, and what it is told.

use super::effect::Effect;
use super::next::Next;
use super::{Phase, Remote, View};
use crate::protocol::{Input, JobId, Program, Request, Surface};

/// Has the lanes of a trace drawn, once it is read, or the memory of a snapshot.
pub(crate) fn draw(next: &mut Next, job: JobId) {
    let Some(file) = next.state.file(job).filter(|file| file.lanes == Remote::Idle) else { return };
    // (The workers of such a file have ended. One of them may have crashed, and would again.)
    if matches!(file.phase, Phase::Failed(_) | Phase::Cancelled) {
        return;
    }
    if file.has_memory_over_time() {
        let id = next.number();
        next.update(job, |file| file.lanes = Remote::Pending(id));
        next.effects.push(Effect::Post(id, Request::Levels { job }));
        return;
    }
    if file.opened.is_none() {
        return;
    }
    let id = next.number();
    next.update(job, |file| file.lanes = Remote::Pending(id));
    next.effects.push(Effect::Start(job, Program::Lanes));
    if !next.state.tracks.is_empty() {
        look(next, job, Input::Layout(next.state.tracks.clone()));
    }
    if next.state.selected == Some(job)
        && let Some(range) = next.state.range.take()
    {
        look(next, job, Input::Range(Some(range)));
    }
    tell(next, job);
}

/// The memory of a snapshot is written down: the program that draws lanes needs no file.
pub(crate) fn draw_levels(next: &mut Next, job: JobId, recorded: Vec<u8>) {
    // (One that was stopped meanwhile is asked again.)
    if next.state.file(job).is_none_or(|file| file.lanes.pending().is_none()) {
        return;
    }
    next.effects.push(Effect::Load(job, Program::Lanes));
    let id = next.number();
    next.effects.push(Effect::Post(id, Request::Told { job, recorded }));
}

/// Does something to the lanes of a trace.
pub(crate) fn look(next: &mut Next, job: JobId, input: Input) {
    let id = next.number();
    next.effects.push(Effect::Post(id, Request::Look { job, surface: Surface::Over, input }));
}

/// Tells the program that draws lanes what it does not find out by itself, once both are there.
pub(crate) fn tell(next: &mut Next, job: JobId) {
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
pub(crate) fn show(next: &mut Next, sought: Sought) {
    let Some(job) = next.state.selected else { return };
    next.state.followed = None;
    if !next.state.docked {
        next.state.view = View::Timeline;
    }
    draw(next, job);
    let input = match sought {
        Sought::Event(event) => Input::Event(event),
        Sought::Moment(ns) => Input::Moment(ns),
        Sought::Name(name) => Input::Name(name),
    };
    look(next, job, input);
}
