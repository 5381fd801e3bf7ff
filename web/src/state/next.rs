//! A state that is being changed, with the effects of that.

use super::effect::Effect;
use super::{FileEntry, State};
use crate::protocol::{JobId, Progress, RequestId, Stage};
use crate::shared::Shared;

/// A state that is being changed, and the effects of that.
pub(crate) struct Next {
    pub(crate) state: State,
    pub(crate) effects: Vec<Effect>,
}

impl Next {
    /// Changes a file.
    pub(crate) fn update(&mut self, job: JobId, change: impl FnOnce(&mut FileEntry)) {
        update(&mut self.state, job, change);
    }

    /// A number for a request.
    pub(crate) fn number(&mut self) -> RequestId {
        self.state.last_request = RequestId(self.state.last_request.0 + 1);
        self.state.last_request
    }
}

pub(crate) fn update(state: &mut State, job: JobId, change: impl FnOnce(&mut FileEntry)) {
    if let Some(place) = state.files.iter().position(|file| file.job == job) {
        let mut file = FileEntry::clone(&state.files[place]);
        change(&mut file);
        state.files[place] = Shared::new(file);
    }
}

pub(crate) fn stage_of(file: &FileEntry, stage: Stage) -> Progress {
    let n_events = file.opened.as_ref().map_or(0, |opened| opened.n_events);
    Progress { stage, done: file.size, total: file.size, n_events }
}
