//! Filters as they were, so that a change of one can be taken back.

use super::next::Next;
use super::{Action, State, jobs};
use crate::protocol::{JobId, StepWindow};

/// Changes that are remembered.
const MOST: usize = 50;

/// What a filter was before it was changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Filtered {
    /// The text of a table's filter.
    Table(String, String),
    /// The stage.
    Stage(Option<String>),
    /// The device.
    Device(Option<String>),
    /// Whether what was launched before the window counts.
    BeforeWindow(bool),
    /// The step of a file.
    Step(JobId, Option<StepWindow>),
}

/// Remembers what a filter is, if the action changes it.
pub(super) fn remember(state: &mut State, action: &Action) {
    let was = match action {
        Action::TableSet(id, settings) => {
            let filter = state.tables.get(id).map_or("", |table| &table.filter);
            // (Each letter is a change. Those from one text to another are one change with the last.)
            let goes_on = !filter.is_empty() && !settings.filter.is_empty();
            let of_this = |last: &Filtered| matches!(last, Filtered::Table(of, _) if of == id);
            if filter == settings.filter || (goes_on && state.undo.last().is_some_and(of_this)) {
                return;
            }
            Filtered::Table(id.clone(), filter.to_owned())
        }
        Action::StageShown(stage) if *stage != state.stage => Filtered::Stage(state.stage.clone()),
        Action::DeviceShown(device) if *device != state.device => {
            Filtered::Device(state.device.clone())
        }
        Action::BeforeWindowSet(counts) if *counts != state.count_before_window => {
            Filtered::BeforeWindow(state.count_before_window)
        }
        Action::StepShown(job, step) => match state.file(*job) {
            // (Without a triage there is nothing to narrow, and the step is not shown.)
            Some(file) if file.step != *step && file.triage.is_some() => {
                Filtered::Step(*job, file.step.clone())
            }
            _ => return,
        },
        _ => return,
    };
    if state.undo.len() == MOST {
        state.undo.remove(0);
    }
    state.undo.push(was);
}

/// Forgets what was filtered of a file that is gone.
pub(super) fn forget(state: &mut State, job: JobId) {
    state.undo.retain(|was| !matches!(was, Filtered::Step(of, _) if *of == job));
}

/// Takes the last change of a filter back.
pub(super) fn undo(next: &mut Next) {
    let state = &mut next.state;
    let Some(was) = state.undo.pop() else { return };
    "Filter undone.".clone_into(&mut state.announcement);
    match was {
        Filtered::Table(id, filter) => state.tables.entry(id).or_default().filter = filter,
        Filtered::Stage(stage) => state.stage = stage,
        Filtered::Device(device) => state.device = device,
        Filtered::BeforeWindow(counts) => state.count_before_window = counts,
        Filtered::Step(job, step) => jobs::show_step(next, job, step),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{JOB, OTHER, Page, reduce};
    use super::*;
    use crate::features::data_table::queries::grid::TableSettings;

    fn typed(filter: &str) -> Action {
        let settings = TableSettings { filter: filter.into(), ..TableSettings::default() };
        Action::TableSet("t".into(), settings)
    }

    fn after(actions: impl IntoIterator<Item = Action>) -> State {
        actions.into_iter().fold(State::default(), |state, action| reduce(&state, action))
    }

    #[test]
    fn a_filter_that_is_typed_is_one_change_and_clearing_it_another() {
        let state = after([typed("g"), typed("ge"), typed("gemm"), typed("")]);
        assert_eq!(state.undo.len(), 2);
        let state = reduce(&state, Action::Undone);
        assert_eq!(state.tables["t"].filter, "gemm");
        let state = reduce(&state, Action::Undone);
        assert_eq!((&*state.tables["t"].filter, state.undo.len()), ("", 0));
        assert_eq!(reduce(&state, Action::Undone), state, "there is nothing else");
    }

    #[test]
    fn every_filter_comes_back_in_turn() {
        let stage = |stage: &str| Action::StageShown(Some(stage.into()));
        let state = after([
            stage("decode"),
            Action::DeviceShown(Some("1".into())),
            Action::BeforeWindowSet(true),
            stage("prefill"),
            stage("prefill"),
        ]);
        assert_eq!(state.undo.len(), 4);
        let state = reduce(&state, Action::Undone);
        assert_eq!(state.stage.as_deref(), Some("decode"));
        let state = reduce(&state, Action::Undone);
        assert!(!state.count_before_window);
        let state = reduce(&reduce(&state, Action::Undone), Action::Undone);
        assert_eq!((state.stage, state.device), (None, None));
    }

    #[test]
    fn an_order_is_no_filter_and_old_changes_are_forgotten() {
        let state = after([Action::TableSet("t".into(), TableSettings::default())]);
        assert!(state.undo.is_empty());
        let switches = (0..120).map(|n| Action::BeforeWindowSet(n % 2 == 0));
        assert_eq!(after(switches).undo.len(), MOST);
    }

    #[test]
    fn a_step_comes_back_and_that_of_a_file_that_is_gone_is_forgotten() {
        let step = Some(StepWindow { name: "1".into(), ..StepWindow::default() });
        let mut page = Page::ready();
        page.act(Action::StepShown(JOB, step.clone()));
        assert_eq!(page.file(JOB).step, step);
        page.act(Action::Undone);
        assert_eq!(page.file(JOB).step, None);
        page.act(Action::StepShown(JOB, step.clone())).act(Action::Removed(JOB));
        assert!(page.state.undo.is_empty());
        // (Nothing is narrowed before the triage is there.)
        page.act(Action::Added(OTHER, "2.json".into(), 100));
        page.act(Action::StepShown(OTHER, step));
        assert!(page.state.undo.is_empty());
    }
}
