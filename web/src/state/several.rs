//! Changes that concern more than one file.

use std::rc::Rc;

use super::reduce::{stage_of, update};
use super::{CompanionEntry, CompanionPhase, ComparePhase, FileEntry, Phase, Role, State};
use crate::protocol::{Aside, Beside, Companion, Comparison, Failure, JobId, Progress, Stage};
use crate::queries::roles;
use crate::shared::Shared;

/// A person's choice. Only one file at a time is what another is compared with, its mapping trace or its kernel map.
pub(super) fn set_role(state: &mut State, job: JobId, role: Role) {
    if !matches!(role, Role::Own | Role::Companion(Companion::Capture, _)) {
        let others: Vec<JobId> = state.files.iter().map(|file| file.job).collect();
        for other in others.into_iter().filter(|other| *other != job) {
            if roles::role(state, other) == role {
                update(state, other, |file| file.role = Some(Role::Own));
            }
        }
    }
    update(state, job, |file| file.role = Some(role));
}

/// The companions of a file from now on: those that were there stay as they are.
pub(super) fn ask(state: &mut State, job: JobId, wanted: &[Beside]) {
    let known = state.file(job).map_or_else(Vec::new, |file| file.companions.clone());
    let is_of = |of: &Beside, beside: &Beside| (of.job, of.role) == (beside.job, beside.role);
    let entry = |beside: &Beside| {
        let known = known.iter().find(|known| is_of(&known.beside, beside));
        let phase = known.map_or(CompanionPhase::Waiting, |known| known.phase.clone());
        let FileEntry { name, size, .. } = &**state.file(beside.job)?;
        Some(CompanionEntry { beside: beside.clone(), name: name.clone(), size: *size, phase })
    };
    let companions: Vec<CompanionEntry> = wanted.iter().filter_map(entry).collect();
    update(state, job, |file| {
        file.companions = companions;
        wait(file);
    });
}

/// Triage was asked for again.
pub(super) fn wait(file: &mut FileEntry) {
    if file.phase == Phase::Ready {
        let reading = file.companions.iter().find(|known| known.phase == CompanionPhase::Waiting);
        let stage =
            reading.map_or(Stage::Triaging, |known| Stage::ReadingCompanion(known.beside.role));
        file.phase = Phase::Working(Progress { done: 0, ..stage_of(file, stage) });
    }
}

/// What counts has changed: of files in which that makes a difference triage is on its way.
pub(super) fn recount(state: &mut State) {
    for job in roles::counting_otherwise(state) {
        update(state, job, wait);
    }
}

/// A companion that could not be read is tried again.
pub(super) fn retry(state: &mut State, job: JobId, companion: JobId) {
    update(state, job, |file| {
        for known in file.companions.iter_mut().filter(|known| known.beside.job == companion) {
            known.phase = CompanionPhase::Waiting;
        }
        wait(file);
    });
}

/// A companion is read, or cannot be.
pub(super) fn answered(state: &mut State, job: JobId, companion: JobId, failure: Option<Failure>) {
    update(state, job, |file| {
        if let Some(known) = file.companions.iter_mut().find(|known| known.beside.job == companion)
        {
            known.phase = failure
                .map_or(CompanionPhase::Read, |failure| CompanionPhase::Failed(Rc::new(failure)));
        }
        if let Phase::Working(at) = &file.phase
            && matches!(at.stage, Stage::ReadingCompanion(_))
        {
            file.phase = Phase::Working(stage_of(file, Stage::Triaging));
        }
    });
}

/// A file is no trace, but tells of traces.
pub(super) fn stands_aside(state: &mut State, job: JobId, aside: Aside) {
    update(state, job, |file| {
        file.aside = Some(Shared::new(aside));
        file.phase = Phase::Ready;
    });
    recompute_roles(state);
}

/// Guesses the roles again after a file was read. If the selected card is a related file and nobody picked it, the
/// measured trace is selected.
pub(super) fn recompute_roles(state: &mut State) {
    state.guesses = roles::guesses(state);
    let Some(selected) = state.selected.filter(|_| !state.picked) else { return };
    let is_aside = state.file(selected).is_some_and(|file| file.aside.is_some());
    let trace = || state.files.iter().find(|file| file.has_views()).map(|file| file.job);
    match roles::role(state, selected) {
        Role::Companion(_, of) => state.selected = Some(of),
        _ if is_aside => state.selected = trace().or(Some(selected)),
        _ => {}
    }
}

/// Two runs are compared, or cannot be.
pub(super) fn compared(
    state: &mut State,
    job: JobId,
    with: JobId,
    comparison: Result<Comparison, Failure>,
) {
    update(state, job, |file| {
        let phase = match comparison {
            Ok(comparison) => ComparePhase::Done(Shared::new(comparison)),
            Err(failure) => ComparePhase::Failed(Rc::new(failure)),
        };
        file.comparison = Some((with, phase));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Analyses, BeforeWindowSum, Opened, Plan, Response, Triage};
    use crate::state::{Action, reduce};

    const JOB: JobId = JobId(1);
    const CAPTURE: JobId = JobId(2);

    fn after(state: State, actions: impl IntoIterator<Item = Action>) -> State {
        actions.into_iter().fold(state, |state, action| reduce(&state, action))
    }

    fn said(response: Response) -> Action {
        Action::Received(Box::new(response))
    }

    fn triaged() -> Action {
        said(Response::Triage { job: JOB, triage: Triage::default() })
    }

    /// A file that is ready, and one beside it.
    fn ready() -> State {
        let actions = [
            Action::Added(JOB, "1.json".into(), 10),
            Action::Added(CAPTURE, "2.json".into(), 20),
            said(Response::Opened { job: JOB, opened: Opened::default() }),
            said(Response::Report { job: JOB, report: Analyses::default() }),
            said(Response::RepairPlanned { job: JOB, plan: Plan::default() }),
            triaged(),
        ];
        after(State::default(), actions)
    }

    fn phases(state: &State) -> Vec<CompanionPhase> {
        let file = state.file(JOB).unwrap();
        file.companions.iter().map(|companion| companion.phase.clone()).collect()
    }

    fn asked() -> Action {
        let beside = Beside { job: CAPTURE, role: Companion::Capture, listed: None };
        Action::CompanionsAsked(JOB, vec![beside])
    }

    #[test]
    fn a_file_is_busy_until_triage_has_its_companions() {
        let state = reduce(&ready(), asked());
        let stage = state.file(JOB).unwrap().progress().unwrap().stage;
        assert_eq!(stage, Stage::ReadingCompanion(Companion::Capture));
        // The triage that was asked for before is no end.
        let state = reduce(&state, triaged());
        assert!(state.file(JOB).unwrap().is_busy());
        let read = Response::Companion { job: JOB, companion: CAPTURE, failure: None };
        let state = reduce(&state, said(read));
        assert_eq!(state.file(JOB).unwrap().progress().unwrap().stage, Stage::Triaging);
        let state = reduce(&state, triaged());
        assert_eq!(state.file(JOB).unwrap().phase, Phase::Ready);
        assert_eq!(phases(&state), [CompanionPhase::Read]);
    }

    #[test]
    fn a_companion_that_fails_leaves_the_file_and_can_be_tried_again() {
        let failure = Some(Failure { title: "A web page".into(), ..Failure::default() });
        let failed = said(Response::Companion { job: JOB, companion: CAPTURE, failure });
        let state = after(ready(), [asked(), failed, triaged()]);
        assert_eq!(state.file(JOB).unwrap().phase, Phase::Ready);
        assert!(matches!(phases(&state)[..], [CompanionPhase::Failed(_)]));
        let state = reduce(&state, Action::CompanionRetried(JOB, CAPTURE));
        assert_eq!(phases(&state), [CompanionPhase::Waiting]);
        assert!(state.file(JOB).unwrap().is_busy());
    }

    #[test]
    fn a_file_that_is_read_again_reads_its_companions_again() {
        let read = Response::Companion { job: JOB, companion: CAPTURE, failure: None };
        let state = after(ready(), [asked(), said(read), triaged(), Action::Restarted(JOB)]);
        assert_eq!(phases(&state), [CompanionPhase::Waiting]);
    }

    #[test]
    fn a_file_with_work_from_before_the_window_is_triaged_again_when_that_counts() {
        let before = |n_slices, counted| BeforeWindowSum { n_slices, counted, total_ns: 1 };
        let triaged = |n_slices, counted| {
            let before_window = before(n_slices, counted);
            said(Response::Triage {
                job: JOB,
                triage: Triage { before_window, ..Triage::default() },
            })
        };
        let is_busy = |state: &State| state.file(JOB).unwrap().is_busy();
        let with =
            |n_slices| after(ready(), [triaged(n_slices, false), Action::BeforeWindowSet(true)]);
        assert!(!is_busy(&with(0)), "nothing would be different");
        let state = with(463);
        assert!(is_busy(&state) && roles::counting_otherwise(&state) == [JOB]);
        // The triage that was asked for before is no end.
        let state = reduce(&state, triaged(463, false));
        assert!(is_busy(&state));
        let state = reduce(&state, triaged(463, true));
        assert!(!is_busy(&state) && roles::counting_otherwise(&state).is_empty());
        let address = crate::queries::address::Address::parse("#v=1&view=triage");
        assert!(is_busy(&reduce(&state, Action::Addressed(address))), "back in the history");
    }

    #[test]
    fn a_comparison_is_of_the_two_that_were_asked_for() {
        let state = reduce(&ready(), Action::Comparing(JOB, CAPTURE));
        let working = Some((CAPTURE, ComparePhase::Working));
        assert_eq!(state.file(JOB).unwrap().comparison, working);
        let comparison = Ok(Comparison::default());
        let state =
            reduce(&state, said(Response::Compared { job: JOB, with: CAPTURE, comparison }));
        let (with, phase) = state.file(JOB).unwrap().comparison.clone().unwrap();
        assert!(with == CAPTURE && matches!(phase, ComparePhase::Done(_)));
    }
}
