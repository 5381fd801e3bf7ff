//! The one place where the state changes. What is to be done outside of it comes back as effects.

use std::rc::Rc;

use super::lanes;
use super::next::{Next, stage_of};
use super::{Action, Effect, FileEntry, PerfettoState, Phase, State};
use super::{benchmark, jobs, on_demand, outputs, undo};
use crate::features::ranks::state as ranks;
use crate::features::several::queries as roles;
use crate::features::several::state as several;
use crate::features::timeline::queries as dock;
use crate::features::timeline::state as timeline;
use crate::protocol::{Aside, JobId, Progress, RequestId, Response, Stage};
use crate::queries::page;
use crate::shared::Shared;

/// The state after `action`, and what is to be done.
#[must_use]
pub fn reduce(state: &State, action: Action) -> (State, Vec<Effect>) {
    let mut next = Next { state: state.clone(), effects: Vec::new() };
    // Progress comes often, and nothing follows from it.
    let is_progress = matches!(&action, Action::Received(_, response) if matches!(**response, Response::Progress { .. }));
    undo::remember(&mut next.state, &action);
    act(&mut next, action);
    if !is_progress {
        several::follow(&mut next);
        ranks::follow(&mut next);
        on_demand::draw_memory(&mut next);
        timeline::draw(&mut next);
    }
    (next.state, next.effects)
}

fn act(next: &mut Next, action: Action) {
    let state = &mut next.state;
    match action {
        Action::Added(job, name, size) => add(next, job, name, size),
        Action::Selected(job) if state.file(job).is_some() => {
            (state.selected, state.picked) = (Some(job), true);
        }
        Action::Removed(job) => remove(next, job),
        Action::Cancelled(job) => jobs::cancel(next, job),
        Action::Restarted(job) => jobs::restart(next, job),
        Action::RoleSet(job, role) => several::set_role(state, job, role),
        Action::CompanionRetried(job, companion) => several::retry(next, job, companion),
        Action::Received(id, response) => receive(next, id, *response),
        Action::Drawn(job) => jobs::drawn(next, job),
        Action::WorkerLost(job, failure) => jobs::lost(next, job, &failure),
        Action::Replanning(job, clip) => outputs::replan(next, job, clip),
        Action::RepairAsked(job, format, purpose) => outputs::repair(next, job, format, purpose),
        Action::LogAsked(job) => outputs::save_log(next, job),
        Action::PerfettoOpened { job, blocked } => outputs::open_in_perfetto(next, job, blocked),
        Action::ArtifactAsked(job, name, wish, what) => {
            outputs::artifact(next, job, name, *wish, what);
        }
        Action::KernelAsked(job, key) => on_demand::kernel(next, job, key),
        Action::WindowAsked(job, event) => on_demand::window(next, job, event),
        Action::EventsChosen(job, events) => jobs::read_events(next, job, events),
        Action::EarlierChosen(job, earlier) => on_demand::changes(next, job, earlier),
        Action::TraceChosen(job, trace) => on_demand::in_trace(next, job, trace),
        Action::Shown(view) => state.view = view,
        Action::StageShown(stage) => state.stage = stage,
        Action::StepShown(job, step) => jobs::show_step(next, job, step),
        Action::IterationTimed(job, ns) => jobs::time_iteration(next, job, ns),
        Action::Docked(docked) => timeline::dock(next, docked),
        Action::DockSized(height) => state.dock_height = dock::bounded(height),
        Action::Followed(sought) => timeline::follow(next, sought),
        Action::Beneath(job, other, change) => timeline::change(next, job, other, change),
        Action::InTimeline(sought) => lanes::show(next, sought),
        Action::DeviceShown(device) => state.device = device,
        Action::BeforeWindowSet(count) => state.count_before_window = count,
        Action::Addressed(address) => {
            page::apply(state, &address);
            timeline::to_range(next);
        }
        Action::Undone => undo::undo(next),
        Action::Themed(theme) => {
            state.theme = theme;
            next.effects.push(Effect::Theme(theme));
        }
        Action::TableSet(id, settings) => {
            state.tables.insert(id, settings);
        }
        Action::DialogOpened(dialog) => state.dialog = Some(dialog),
        Action::DialogClosed(dialog) if state.dialog == Some(dialog) => state.dialog = None,
        Action::DragOver(over) => state.drag_over = over,
        Action::KeysSet(on) => state.keys_on = on,
        Action::KeepSet(keeps) => {
            state.keeps = keeps;
            next.effects.push(Effect::Keep(keeps));
        }
        Action::KeptFound(kept) => state.kept = kept,
        Action::NewerFound(newer) => state.is_newer = newer,
        Action::Leaving => state.is_leaving = true,
        Action::PerfettoUrlSet(url) => {
            state.perfetto_url = url;
            state.perfetto_known = true;
        }
        Action::PerfettoKnown => state.perfetto_known = true,
        Action::PerfettoMoved(to) => state.perfetto = to,
        Action::FormSet(form) => state.form = form,
        Action::BenchmarkConfigChosen(bytes) => on_demand::benchmark_config(next, bytes),
        Action::BenchmarkAsked(op) => benchmark::ask(next, op),
        Action::ServerArgsDropped(flags) => state.server_args = Some(flags),
        Action::ServerArgsCleared => state.server_args = None,
        Action::Noticed(failure) => state.notices.push(failure),
        Action::NoticeClosed(place) if place < state.notices.len() => {
            state.notices.remove(place);
        }
        Action::Announced(text) => state.announcement = text,
        Action::Selected(_) | Action::DialogClosed(_) | Action::NoticeClosed(_) => {}
    }
}

fn add(next: &mut Next, job: JobId, name: String, size: u64) {
    let state = &mut next.state;
    state.files.push(Shared::new(FileEntry::new(job, name, size)));
    // The first of several files stays selected; a file added later is what one wants to see.
    if state.selected_file().is_none_or(|file| !file.is_busy()) {
        (state.selected, state.picked) = (Some(job), false);
    }
    jobs::begin(next, job);
}

fn remove(next: &mut Next, job: JobId) {
    let state = &mut next.state;
    let Some(place) = state.files.iter().position(|file| file.job == job) else { return };
    state.files.remove(place);
    if state.selected == Some(job) {
        // The neighbour to the right, else to the left, as tabs do.
        let neighbour = state.files.get(place).or_else(|| state.files.last());
        state.selected = neighbour.map(|file| file.job);
    }
    state.perfetto = PerfettoState::Idle;
    state.guesses = roles::guesses(state);
    undo::forget(state, job);
    next.effects.push(Effect::Close(job));
    timeline::closed(next, job);
    several::give_up_comparisons(next, job);
}

fn receive(next: &mut Next, id: RequestId, response: Response) {
    match response {
        // For `tasks`.
        Response::Ready { .. } | Response::Shown { .. } => {}
        Response::Progress { job, progress } => next.update(job, |file| go_on(file, progress)),
        Response::Opened { job, opened } => {
            next.update(job, |file| {
                file.opened = Some(Shared::new(opened));
                file.phase = Phase::Working(stage_of(file, Stage::Analyzing));
            });
            several::recompute_roles(&mut next.state);
        }
        Response::NoTrace { job, reader } => jobs::read_aside(next, job, reader),
        Response::Aside { job, aside } => {
            // (The worker of a snapshot goes on: it draws.)
            if !matches!(aside, Aside::Snapshot { .. }) {
                jobs::halt(next, job);
            }
            several::stands_aside(&mut next.state, job, aside);
        }
        Response::Looked { job, program, looked } => on_demand::looked(next, job, program, looked),
        // (The worker opens one file, once.)
        Response::Lanes { job, lanes } => next.update(job, |file| {
            let id = file.lanes.pending().unwrap_or_default();
            file.lanes.answer(id, lanes);
        }),
        Response::Levels { job, recorded } => lanes::draw_levels(next, job, recorded),
        Response::Report { job, report } => jobs::analyzed(next, job, report),
        Response::RepairPlanned { job, plan } => jobs::planned(next, job, id, plan),
        Response::Triage { job, triage } => jobs::triaged(next, job, id, triage),
        Response::Diagnosed { job, diagnosis } => jobs::diagnosed(next, job, id, diagnosis),
        Response::Companion { job, companion, failure } => {
            several::answered(next, job, companion, failure);
        }
        Response::RankCalls { job, calls } => next.update(job, |file| {
            file.calls.answer(id, Ok(calls));
        }),
        Response::Described { job, run } => several::described(next, job, id, run),
        Response::Compared { job, with: _, comparison } => {
            several::compared(next, job, id, comparison);
        }
        Response::Repaired { job, repaired } => outputs::repaired(next, job, id, repaired),
        Response::Kernel { job, kernel } => next.update(job, |file| {
            file.kernel.answer(id, Ok(kernel));
        }),
        Response::Changes { job, chapters } => next.update(job, |file| {
            if let Some((_, changes)) = &mut file.changes {
                changes.answer(id, Ok(chapters));
            }
        }),
        Response::InTrace { job, snapshot, chapter } => next.update(snapshot, |file| {
            if let Some((_, said)) = file.in_trace.as_mut().filter(|(trace, _)| *trace == job) {
                said.answer(id, Ok(chapter));
            }
        }),
        Response::Memory { job, pictures } => next.update(job, |file| {
            file.memory.answer(id, Ok(pictures));
        }),
        Response::Window { job, window } => next.update(job, |file| {
            file.window.answer(id, Ok(window));
        }),
        Response::Benchmark { job: _, op, script } => benchmark::written(next, &op, script),
        Response::BenchmarkConfig { job: _, digest } => {
            next.state.form.facts.insert("benchmark_config_hash".to_owned(), digest);
        }
        Response::Artifacts { job, artifacts } => outputs::artifacts_made(next, job, id, artifacts),
        Response::NoArtifacts { job, failure } => next.update(job, |file| {
            file.artifacts.answer(id, Err(failure));
        }),
        Response::Failed { job, failure } => jobs::fail(next, job, &Rc::new(failure)),
    }
}

/// A worker that was ended reads the file again first: that, too, is progress of what was asked for.
fn go_on(file: &mut FileEntry, progress: Progress) {
    if file.is_making() {
        file.making = progress;
    } else if let Phase::Working(at) = &mut file.phase {
        *at = progress;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{reduce, said};
    use super::*;
    use crate::protocol::{
        Analyses, ArtifactWish, Failure, Format, Opened, Plan, Repaired, Triage,
    };
    use crate::state::effect::Purpose;
    use crate::state::{Dialog, Remote, Use, View};

    fn after(actions: impl IntoIterator<Item = Action>) -> State {
        actions.into_iter().fold(State::default(), |state, action| reduce(&state, action))
    }

    fn added(job: u32) -> Action {
        Action::Added(JobId(job), format!("{job}.json"), 100)
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
        actions.push(Action::Replanning(JOB, true));
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
        actions.push(Action::RepairAsked(JOB, Format::Gzip, Purpose::Download));
        let failure = Failure { title: "Out of memory".into(), ..Failure::default() };
        actions.push(Action::WorkerLost(JOB, Rc::new(failure)));
        let state = after(actions);
        let file = state.file(JOB).unwrap();
        assert_eq!(file.phase, Phase::Ready);
        assert!(matches!(file.repair, Remote::Failed(_)) && file.plan.is_some());
    }

    #[test]
    fn another_plan_makes_the_written_file_stale() {
        let mut actions = planned();
        actions.push(Action::RepairAsked(JOB, Format::Gzip, Purpose::Download));
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
        assert!(state.file(JOB).unwrap().is_written());
        let state = reduce(&state, Action::Replanning(JOB, true));
        assert!(!state.file(JOB).unwrap().is_written());
    }

    #[test]
    fn artifacts_that_fail_leave_the_views_and_progress_is_theirs() {
        let mut actions = planned();
        let wish = Box::new(ArtifactWish::default());
        actions.push(Action::ArtifactAsked(JOB, "all.zip", wish, Use::Save));
        let progress = Progress { done: 7, ..Progress::default() };
        actions.push(said(Response::Progress { job: JOB, progress }));
        let state = after(actions.clone());
        let file = state.file(JOB).unwrap();
        assert_eq!((file.progress(), file.is_busy()), (Some(progress), true));
        actions.push(said(Response::NoArtifacts { job: JOB, failure: Failure::default() }));
        let state = after(actions);
        let file = state.file(JOB).unwrap();
        assert!(matches!(file.artifacts, Remote::Failed(_)) && file.phase == Phase::Ready);
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
