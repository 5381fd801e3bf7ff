//! What changes when files have to do with each other.

use std::rc::Rc;

use super::reduce::{stage_of, update};
use super::{CompanionEntry, CompanionPhase, ComparePhase, FileEntry, Phase, Role, State};
use crate::protocol::{Companion, Comparison, Failure, JobId, Progress, Stage};
use crate::shared::Shared;

/// A person's choice. Only one file at a time is what another is compared with.
pub(super) fn set_role(state: &mut State, job: JobId, role: Role) {
    if let Role::Baseline(_) = role {
        let others: Vec<JobId> = state.files.iter().map(|file| file.job).collect();
        for other in others.into_iter().filter(|other| *other != job) {
            update(state, other, |file| {
                if file.role == Some(role) {
                    file.role = Some(Role::Own);
                }
            });
        }
    }
    update(state, job, |file| file.role = Some(role));
}

/// The companions of a file from now on: those that were there stay as they are.
pub(super) fn ask(state: &mut State, job: JobId, wanted: &[(JobId, Companion)]) {
    let known = state.file(job).map_or_else(Vec::new, |file| file.companions.clone());
    let entry = |(job, role): &(JobId, Companion)| {
        if let Some(known) = known.iter().find(|known| (known.job, known.role) == (*job, *role)) {
            return Some(known.clone());
        }
        let FileEntry { name, size, .. } = &**state.file(*job)?;
        let (name, size) = (name.clone(), *size);
        let phase = CompanionPhase::Waiting;
        Some(CompanionEntry { job: *job, name, size, role: *role, phase })
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
        let stage = reading.map_or(Stage::Triaging, |known| Stage::ReadingCompanion(known.role));
        file.phase = Phase::Working(Progress { done: 0, ..stage_of(file, stage) });
    }
}

/// A companion that could not be read is tried again.
pub(super) fn retry(state: &mut State, job: JobId, companion: JobId) {
    update(state, job, |file| {
        for known in file.companions.iter_mut().filter(|known| known.job == companion) {
            known.phase = CompanionPhase::Waiting;
        }
        wait(file);
    });
}

/// A companion is read, or cannot be.
pub(super) fn answered(state: &mut State, job: JobId, companion: JobId, failure: Option<Failure>) {
    update(state, job, |file| {
        if let Some(known) = file.companions.iter_mut().find(|known| known.job == companion) {
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
    use crate::protocol::{Analyses, Opened, Plan, Response, Triage};
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
        Action::CompanionsAsked(JOB, vec![(CAPTURE, Companion::Capture)])
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
