//! The one place where the state changes.

use std::rc::Rc;

use super::{
    ArtifactForm, ArtifactState, CompanionPhase, ComparePhase, Dialog, FileEntry, PerfettoState,
    Phase, RepairState, Role, State, Theme, View, several,
};
use crate::protocol::{Beside, Failure, Format, JobId, Parts, Progress, Response, Stage};
use crate::queries::address::Address;
use crate::queries::grid::TableSettings;
use crate::queries::{page, roles};
use crate::shared::Shared;

/// Everything that can happen.
#[derive(Clone, Debug)]
pub enum Action {
    /// A file was dropped or picked.
    Added(JobId, String, u64),
    /// Another card was chosen.
    Selected(JobId),
    /// A card was closed.
    Removed(JobId),
    /// A person stopped a job.
    Cancelled(JobId),
    /// A stopped or failed file begins anew.
    Restarted(JobId),
    /// A person says what a file is for.
    RoleSet(JobId, Role),
    /// The worker of a file was asked to take these companions into account, and no others.
    CompanionsAsked(JobId, Vec<Beside>),
    /// A companion that could not be read is tried again.
    CompanionRetried(JobId, JobId),
    /// Two files are being compared: A, B.
    Comparing(JobId, JobId),
    /// The launch flags of a server were dropped.
    ServerArgsDropped(String),
    /// A worker said something.
    Received(Box<Response>),
    /// A worker is gone: it could not be loaded, or ran out of memory.
    WorkerLost(JobId, Rc<Failure>),
    /// Another view.
    Shown(View),
    /// Another stage, or all.
    StageShown(Option<String>),
    /// Another device, or all.
    DeviceShown(Option<String>),
    /// What was launched before the window counts, or not.
    BeforeWindowSet(bool),
    /// The browser went back or forth in its history.
    Addressed(Address),
    /// Another theme.
    Themed(Theme),
    /// A table was sorted or filtered.
    TableSet(String, TableSettings),
    /// A dialog was opened.
    DialogOpened(Dialog),
    /// A dialog was closed. The browser says so some time later: by then another one may be open.
    DialogClosed(Dialog),
    /// A file entered or left the window.
    DragOver(bool),
    /// Single keys on or off.
    KeysSet(bool),
    /// Another Perfetto.
    PerfettoUrlSet(String),
    /// "Open in Perfetto" went on.
    PerfettoMoved(PerfettoState),
    /// Impossible durations: clip or not. The plan is made again.
    Replanning(JobId),
    /// The repaired file is asked for.
    Repairing(JobId, Format),
    /// Some of the artifacts are asked for.
    MakingArtifacts(JobId, Parts),
    /// What a person told or chose for artifacts.
    FormSet(ArtifactForm),
    /// The launch flags of a server were taken away.
    ServerArgsCleared,
    /// Something failed that belongs to no file.
    Noticed(Rc<Failure>),
    /// A notice was closed.
    NoticeClosed(usize),
    /// Something worth saying was done.
    Announced(String),
}

/// The state after `action`.
#[must_use]
pub fn reduce(state: &State, action: Action) -> State {
    let mut next = state.clone();
    match action {
        Action::Added(job, name, size) => {
            next.files.push(Shared::new(FileEntry::new(job, name, size)));
            // The first of several files stays selected; a file added later is what one wants to see.
            if next.selected_file().is_none_or(|file| !file.is_busy()) {
                (next.selected, next.picked) = (Some(job), false);
            }
        }
        Action::Selected(job) if next.file(job).is_some() => {
            (next.selected, next.picked) = (Some(job), true);
        }
        Action::RoleSet(job, role) => several::set_role(&mut next, job, role),
        Action::CompanionsAsked(job, companions) => several::ask(&mut next, job, &companions),
        Action::CompanionRetried(job, companion) => several::retry(&mut next, job, companion),
        Action::Comparing(job, with) => update(&mut next, job, |file| {
            file.comparison = Some((with, ComparePhase::Working));
        }),
        Action::ServerArgsDropped(text) => next.server_args = Some(text),
        Action::Removed(job) => remove(&mut next, job),
        Action::Cancelled(job) => update(&mut next, job, |file| {
            if matches!(file.phase, Phase::Working(_)) {
                file.phase = Phase::Cancelled;
            }
            // The worker is gone, and with it what it could still have written.
            if !matches!(file.repair, RepairState::Done(_)) {
                file.repair = RepairState::None;
            }
            if !matches!(file.artifacts, ArtifactState::Done(_)) {
                file.artifacts = ArtifactState::None;
            }
        }),
        Action::Restarted(job) => {
            update(&mut next, job, |file| {
                let fresh = FileEntry::new(job, file.name.clone(), file.size);
                let mut companions = std::mem::take(&mut file.companions);
                companions.iter_mut().for_each(|known| known.phase = CompanionPhase::Waiting);
                *file = FileEntry { role: file.role, companions, ..fresh };
            });
            next.guesses = roles::guesses(&next);
        }
        Action::Received(response) => receive(&mut next, *response),
        Action::WorkerLost(job, failure) => {
            update(&mut next, job, |file| fail(file, Rc::clone(&failure)));
        }
        Action::Shown(view) => next.view = view,
        Action::StageShown(stage) => next.stage = stage,
        Action::DeviceShown(device) => next.device = device,
        Action::BeforeWindowSet(count) => {
            next.count_before_window = count;
            several::recount(&mut next);
        }
        Action::Addressed(address) => {
            page::apply(&mut next, &address);
            several::recount(&mut next);
        }
        Action::Themed(theme) => next.theme = theme,
        Action::TableSet(id, settings) => {
            next.tables.insert(id, settings);
        }
        Action::DialogOpened(dialog) => next.dialog = Some(dialog),
        Action::DialogClosed(dialog) if next.dialog == Some(dialog) => next.dialog = None,
        Action::DragOver(over) => next.drag_over = over,
        Action::KeysSet(on) => next.keys_on = on,
        Action::PerfettoUrlSet(url) => next.perfetto_url = url,
        Action::PerfettoMoved(to) => next.perfetto = to,
        Action::Replanning(job) => update(&mut next, job, |file| {
            file.repair = RepairState::None;
            file.phase = Phase::Working(Progress {
                stage: Stage::Planning,
                done: file.size,
                total: file.size,
                n_events: 0,
            });
        }),
        Action::Repairing(job, format) => update(&mut next, job, |file| {
            let progress =
                Progress { stage: Stage::Repairing, total: file.size, ..Progress::default() };
            file.repair = RepairState::Writing(format, progress);
        }),
        Action::MakingArtifacts(job, parts) => update(&mut next, job, |file| {
            let stage = match parts {
                Parts::Everything => Stage::Repairing,
                Parts::Tables => Stage::Digesting,
                Parts::KernelMap => Stage::Packing,
            };
            let progress = Progress { stage, total: file.size, ..Progress::default() };
            file.artifacts = ArtifactState::Making(progress);
        }),
        Action::FormSet(form) => next.form = form,
        Action::ServerArgsCleared => next.server_args = None,
        Action::Noticed(failure) => next.notices.push(failure),
        Action::NoticeClosed(place) if place < next.notices.len() => {
            next.notices.remove(place);
        }
        Action::Announced(text) => next.announcement = text,
        Action::Selected(_) | Action::DialogClosed(_) | Action::NoticeClosed(_) => {}
    }
    next
}

pub(super) fn update(state: &mut State, job: JobId, change: impl FnOnce(&mut FileEntry)) {
    if let Some(place) = state.files.iter().position(|file| file.job == job) {
        let mut file = FileEntry::clone(&state.files[place]);
        change(&mut file);
        state.files[place] = Shared::new(file);
    }
}

fn remove(state: &mut State, job: JobId) {
    let Some(place) = state.files.iter().position(|file| file.job == job) else { return };
    state.files.remove(place);
    if state.selected == Some(job) {
        // The neighbour to the right, else to the left, as tabs do.
        let neighbour = state.files.get(place).or_else(|| state.files.last());
        state.selected = neighbour.map(|file| file.job);
    }
    state.perfetto = PerfettoState::Idle;
    state.guesses = roles::guesses(state);
}

fn receive(state: &mut State, response: Response) {
    match response {
        // The first is for `tasks::workers`; rows are gathered there until their table comes.
        Response::Ready { .. } => {}
        Response::Progress { job, progress } => update(state, job, |file| {
            // A worker that was ended reads the file again first: that, too, is progress of what was asked for.
            if let RepairState::Writing(_, at) = &mut file.repair {
                *at = progress;
            } else if let ArtifactState::Making(at) = &mut file.artifacts {
                *at = progress;
            } else if let Phase::Working(at) = &mut file.phase {
                *at = progress;
            }
        }),
        Response::Opened { job, opened } => {
            update(state, job, |file| {
                file.opened = Some(Shared::new(opened));
                file.phase = Phase::Working(stage_of(file, Stage::Analyzing));
            });
            several::recompute_roles(state);
        }
        Response::Aside { job, aside } => several::stands_aside(state, job, aside),
        Response::Report { job, report } => update(state, job, |file| {
            file.report = Some(Shared::new(report));
            file.phase = Phase::Working(stage_of(file, Stage::Planning));
        }),
        Response::RepairPlanned { job, plan } => update(state, job, |file| {
            file.plan = Some(Shared::new(plan));
            // A plan that is made again comes after triage.
            file.phase = match file.triage {
                Some(_) => Phase::Ready,
                None => Phase::Working(stage_of(file, Stage::Triaging)),
            };
        }),
        Response::Triage { job, triage } => {
            let count = state.count_before_window;
            update(state, job, |file| {
                file.triage = Some(Shared::new(triage));
                // What was asked for since is still to come.
                file.phase = Phase::Ready;
                if file.companions.iter().any(|known| known.phase == CompanionPhase::Waiting)
                    || file.counts_otherwise(count)
                {
                    several::wait(file);
                }
            });
        }
        Response::Companion { job, companion, failure } => {
            several::answered(state, job, companion, failure);
        }
        // For `tasks`, which hands it to the worker that compares.
        Response::Described { .. } => {}
        Response::Compared { job, with, comparison } => {
            several::compared(state, job, with, comparison);
        }
        Response::Repaired { job, repaired } => update(state, job, |file| {
            file.repair = RepairState::Done(Shared::new(repaired));
        }),
        Response::Kernel { job, kernel } => update(state, job, |file| {
            file.kernel = Some(Shared::new(kernel));
        }),
        Response::Window { job, window } => update(state, job, |file| {
            file.window = Some(Shared::new(window));
        }),
        Response::Artifacts { job, artifacts } => update(state, job, |file| {
            file.artifacts = ArtifactState::Done(Shared::new(artifacts));
        }),
        Response::NoArtifacts { job, failure } => update(state, job, |file| {
            file.artifacts = ArtifactState::Failed(Rc::new(failure));
        }),
        Response::Failed { job, failure } => {
            update(state, job, |file| fail(file, Rc::new(failure)));
        }
    }
}

pub(super) fn stage_of(file: &FileEntry, stage: Stage) -> Progress {
    let n_events = file.opened.as_ref().map_or(0, |opened| opened.n_events);
    Progress { stage, done: file.size, total: file.size, n_events }
}

/// A failed repair leaves the views; a failed decoding leaves none.
fn fail(file: &mut FileEntry, failure: Rc<Failure>) {
    if matches!(file.repair, RepairState::Writing(..)) {
        file.repair = RepairState::Failed(failure);
    } else if matches!(file.artifacts, ArtifactState::Making(_)) {
        file.artifacts = ArtifactState::Failed(failure);
    } else {
        file.phase = Phase::Failed(failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Analyses, Opened, Plan, Repaired, Triage};

    fn after(actions: impl IntoIterator<Item = Action>) -> State {
        actions.into_iter().fold(State::default(), |state, action| reduce(&state, action))
    }

    fn added(job: u32) -> Action {
        Action::Added(JobId(job), format!("{job}.json"), 100)
    }

    fn said(response: Response) -> Action {
        Action::Received(Box::new(response))
    }

    const JOB: JobId = JobId(1);

    fn planned() -> Vec<Action> {
        vec![
            added(1),
            said(Response::Opened { job: JOB, opened: Opened::default() }),
            said(Response::Report { job: JOB, report: Analyses::default() }),
            said(Response::RepairPlanned { job: JOB, plan: Plan::default() }),
            said(Response::Triage { job: JOB, triage: Triage::default() }),
        ]
    }

    #[test]
    fn views_come_as_each_stage_ends() {
        let actions = planned();
        let there = |n: usize| {
            let state = after(actions[..n].iter().cloned());
            let file = state.file(JOB).unwrap();
            let there = [file.report.is_some(), file.plan.is_some(), file.triage.is_some()];
            (file.opened.is_some(), there, file.is_busy())
        };
        assert_eq!(there(1), (false, [false, false, false], true));
        assert_eq!(there(2), (true, [false, false, false], true));
        assert_eq!(there(3), (true, [true, false, false], true));
        assert_eq!(there(4), (true, [true, true, false], true));
        assert_eq!(there(5), (true, [true, true, true], false));
    }

    #[test]
    fn a_plan_made_again_does_not_wait_for_triage() {
        let mut actions = planned();
        actions.push(Action::Replanning(JOB));
        let state = after(actions.clone());
        assert!(state.file(JOB).unwrap().is_busy());
        actions.push(said(Response::RepairPlanned { job: JOB, plan: Plan::default() }));
        let state = after(actions);
        let file = state.file(JOB).unwrap();
        assert!(file.phase == Phase::Ready && file.triage.is_some());
    }

    #[test]
    fn a_stage_holds_for_all_views_and_files() {
        let mut actions = planned();
        actions.push(Action::StageShown(Some("decode".into())));
        actions.push(Action::Shown(View::Triage));
        actions.push(added(2));
        let state = after(actions);
        assert_eq!(state.stage.as_deref(), Some("decode"));
        assert_eq!(reduce(&state, Action::StageShown(None)).stage, None);
    }

    #[test]
    fn several_files_keep_the_first_selected_and_closing_picks_the_neighbour() {
        let state = after([added(1), added(2), added(3)]);
        assert_eq!(state.selected, Some(JobId(1)));
        let state = reduce(&state, Action::Selected(JobId(2)));
        let state = reduce(&state, Action::Removed(JobId(2)));
        assert_eq!(state.selected, Some(JobId(3)));
        let state = reduce(&state, Action::Removed(JobId(3)));
        assert_eq!(state.selected, Some(JobId(1)));
        let state = reduce(&state, Action::Removed(JobId(1)));
        assert_eq!((state.selected, state.files.len()), (None, 0));
        assert_eq!(reduce(&state, Action::Selected(JobId(1))).selected, None);
    }

    #[test]
    fn a_file_added_when_all_is_done_is_shown() {
        let mut actions = planned();
        actions.push(added(2));
        assert_eq!(after(actions).selected, Some(JobId(2)));
    }

    #[test]
    fn late_messages_of_a_closed_file_change_nothing() {
        let state = after([added(1), Action::Removed(JOB)]);
        let late = said(Response::Opened { job: JOB, opened: Opened::default() });
        assert_eq!(reduce(&state, late), state);
    }

    #[test]
    fn cancel_stops_the_card_and_later_progress_does_not_revive_it() {
        let state = after([added(1), Action::Cancelled(JOB)]);
        let late = said(Response::Progress { job: JOB, progress: Progress::default() });
        assert_eq!(reduce(&state, late).file(JOB).unwrap().phase, Phase::Cancelled);
    }

    #[test]
    fn a_failed_repair_keeps_the_views() {
        let mut actions = planned();
        actions.push(Action::Repairing(JOB, Format::Gzip));
        let failure = Failure { title: "Out of memory".into(), ..Failure::default() };
        actions.push(Action::WorkerLost(JOB, Rc::new(failure)));
        let state = after(actions);
        let file = state.file(JOB).unwrap();
        assert_eq!(file.phase, Phase::Ready);
        assert!(matches!(file.repair, RepairState::Failed(_)) && file.plan.is_some());
    }

    #[test]
    fn another_plan_makes_the_written_file_stale() {
        let mut actions = planned();
        actions.push(said(Response::Repaired {
            job: JOB,
            repaired: Repaired {
                format: Format::Gzip,
                bytes: 1,
                file_name: String::new(),
                clip_impossible: false,
                proven: true,
                proof: Shared::default(),
            },
        }));
        let state = after(actions);
        assert!(matches!(state.file(JOB).unwrap().repair, RepairState::Done(_)));
        let state = reduce(&state, Action::Replanning(JOB));
        assert_eq!(state.file(JOB).unwrap().repair, RepairState::None);
    }

    #[test]
    fn artifacts_that_fail_leave_the_views_and_progress_is_theirs() {
        let mut actions = planned();
        actions.push(Action::MakingArtifacts(JOB, Parts::Everything));
        let progress = Progress { done: 7, ..Progress::default() };
        actions.push(said(Response::Progress { job: JOB, progress }));
        let state = after(actions.clone());
        let file = state.file(JOB).unwrap();
        assert_eq!(
            (file.artifacts.clone(), file.is_busy()),
            (ArtifactState::Making(progress), true)
        );
        actions.push(said(Response::NoArtifacts { job: JOB, failure: Failure::default() }));
        let state = after(actions);
        let file = state.file(JOB).unwrap();
        assert!(matches!(file.artifacts, ArtifactState::Failed(_)) && file.phase == Phase::Ready);
    }

    #[test]
    fn a_dialog_that_is_closed_leaves_one_that_was_opened_since() {
        let state = after([
            Action::DialogOpened(Dialog::Commands),
            Action::DialogOpened(Dialog::Help),
            Action::DialogClosed(Dialog::Commands),
        ]);
        assert_eq!(state.dialog, Some(Dialog::Help));
        assert_eq!(reduce(&state, Action::DialogClosed(Dialog::Help)).dialog, None);
    }

    #[test]
    fn notices_close_one_by_one() {
        let notice = |title: &str| Rc::new(Failure { title: title.into(), ..Failure::default() });
        let state = after([Action::Noticed(notice("a")), Action::Noticed(notice("b"))]);
        let state = reduce(&state, Action::NoticeClosed(0));
        assert_eq!(state.notices, [notice("b")]);
        assert_eq!(reduce(&state, Action::NoticeClosed(7)).notices.len(), 1);
    }
}
