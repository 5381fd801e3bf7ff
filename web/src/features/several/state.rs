//! Changes that concern more than one file: roles, related files, comparisons.

use std::rc::Rc;

use super::queries::{self as roles, Compared, Wanted};
use crate::protocol::{
    Artifact, Aside, Beside, Companion, Comparison, Failure, JobId, Request, RequestId, Stage,
};
use crate::shared::Shared;
use crate::state::next::{Next, stage_of, update};
use crate::state::workers;
use crate::state::{CompanionEntry, CompanionPhase, FileEntry, Phase, Remote, Role, State};

/// A person's choice. Only one file at a time is what another is compared with, its mapping trace or its kernel map.
pub(crate) fn set_role(state: &mut State, job: JobId, role: Role) {
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

/// Asks for what there should be (`queries`) and was not asked for: so it does not matter in which order files come,
/// fail, stop and start again.
pub(crate) fn follow(next: &mut Next) {
    for Wanted { job, companions, live } in roles::wanted(&next.state) {
        let Some(file) = next.state.file(job) else { continue };
        if file.companions.iter().map(|known| &known.beside).eq(&companions) {
            continue;
        }
        set_companions(&mut next.state, job, &companions);
        if live {
            workers::triage(next, job);
        }
    }
    let count = next.state.count_before_window;
    for job in roles::counting_otherwise(&next.state) {
        let asked = next.state.file(job).and_then(|file| file.ledger.asked.triage_counts);
        if asked != Some(count) {
            workers::triage(next, job);
        }
    }
    for compared in roles::comparisons(&next.state) {
        let Compared { job, with, of: _ } = compared;
        let known = next.state.file(job).and_then(|file| file.ledger.compared.as_ref());
        if known == Some(&compared) {
            continue;
        }
        let id = workers::ask(next, Request::Describe { job: with });
        next.update(job, |file| {
            file.ledger.compared = Some(compared);
            file.comparison = Some((with, id.map_or(Remote::Idle, Remote::Pending)));
        });
    }
}

/// The companions of a file from now on: those that were there stay as they are.
fn set_companions(state: &mut State, job: JobId, wanted: &[Beside]) {
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
        let is_wanted = |of: &JobId| wanted.iter().any(|beside| beside.job == *of);
        file.ledger.crashed_on.retain(is_wanted);
    });
}

/// A companion that could not be read is tried again.
pub(crate) fn retry(next: &mut Next, job: JobId, companion: JobId) {
    next.update(job, |file| {
        file.ledger.crashed_on.retain(|of| *of != companion);
        file.ledger.asked.companions.retain(|known| known.job != companion);
        for known in file.companions.iter_mut().filter(|known| known.beside.job == companion) {
            known.phase = CompanionPhase::Waiting;
        }
    });
    workers::triage(next, job);
}

/// A companion is read, or cannot be.
pub(crate) fn answered(next: &mut Next, job: JobId, companion: JobId, failure: Option<Failure>) {
    next.update(job, |file| {
        file.ledger.asked.unread.retain(|of| *of != companion);
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
pub(crate) fn stands_aside(state: &mut State, job: JobId, aside: Aside) {
    update(state, job, |file| {
        file.aside = Some(Shared::new(aside));
        file.phase = Phase::Ready;
    });
    recompute_roles(state);
}

/// Guesses the roles again after a file was read. If the selected card is a related file and nobody picked it, the
/// measured trace is selected.
pub(crate) fn recompute_roles(state: &mut State) {
    state.guesses = roles::guesses(state);
    let Some(selected) = state.selected.filter(|_| !state.picked) else { return };
    let is_aside = state.file(selected).is_some_and(|file| {
        file.aside.as_deref().is_some_and(|aside| !matches!(aside, Aside::Snapshot { .. }))
    });
    let trace = || state.files.iter().find(|file| file.has_views()).map(|file| file.job);
    match roles::role(state, selected) {
        Role::Companion(_, of) => state.selected = Some(of),
        _ if is_aside => state.selected = trace().or(Some(selected)),
        _ => {}
    }
}

/// A run is written down, or cannot be: it goes to the worker that compares it with its own.
pub(crate) fn described(
    next: &mut Next,
    with: JobId,
    id: RequestId,
    run: Result<Vec<Artifact>, Failure>,
) {
    let waits = |file: &&Shared<FileEntry>| file.comparison == Some((with, Remote::Pending(id)));
    let Some(job) = next.state.files.iter().find(waits).map(|file| file.job) else { return };
    let comparison = match run {
        Ok(run) => {
            let id = workers::ask(next, Request::Compare { job, with, run });
            id.map_or(Remote::Idle, Remote::Pending)
        }
        Err(failure) => Remote::Failed(Rc::new(failure)),
    };
    next.update(job, |file| file.comparison = Some((with, comparison)));
}

/// Two runs are compared, or cannot be.
pub(crate) fn compared(
    next: &mut Next,
    job: JobId,
    id: RequestId,
    answer: Result<Comparison, Failure>,
) {
    next.update(job, |file| {
        if let Some((_, comparison)) = &mut file.comparison {
            comparison.answer(id, answer);
        }
    });
}

/// The workers of a file ended: comparisons that needed them are begun again once both files are ready.
pub(crate) fn give_up_comparisons(next: &mut Next, job: JobId) {
    let all: Vec<JobId> = next.state.files.iter().map(|file| file.job).collect();
    for of in all {
        let pending = next.state.file(of).and_then(|file| file.comparison.as_ref());
        let needs = |(with, comparison): &(JobId, Remote<Comparison>)| {
            comparison.pending().is_some() && (of == job || *with == job)
        };
        if pending.is_some_and(needs) {
            next.update(of, |file| {
                file.ledger.compared = None;
                if let Some((_, comparison)) = &mut file.comparison {
                    comparison.give_up();
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Analyses, BeforeWindowSum, Opened, Plan, Response, Triage};
    use crate::state::Action;
    use crate::state::testing::{reduce, said};

    const JOB: JobId = JobId(1);
    const CAPTURE: JobId = JobId(2);

    fn after(state: State, actions: impl IntoIterator<Item = Action>) -> State {
        actions.into_iter().fold(state, |state, action| reduce(&state, action))
    }

    fn triaged() -> Action {
        said(Response::Triage { job: JOB, triage: Triage::default() })
    }

    /// A file that is ready, and one beside it.
    fn ready() -> State {
        ready_with(Triage::default())
    }

    fn ready_with(triage: Triage) -> State {
        let actions = [
            Action::Added(JOB, "1.json".into(), 10),
            Action::Added(CAPTURE, "2.json".into(), 20),
            said(Response::Opened { job: JOB, opened: Opened::default() }),
            said(Response::Report { job: JOB, report: Analyses::default() }),
            said(Response::RepairPlanned { job: JOB, plan: Plan::default() }),
            said(Response::Triage { job: JOB, triage }),
        ];
        after(State::default(), actions)
    }

    fn phases(state: &State) -> Vec<CompanionPhase> {
        let file = state.file(JOB).unwrap();
        file.companions.iter().map(|companion| companion.phase.clone()).collect()
    }

    /// The answer to the first request of all.
    fn stale(response: Response) -> Action {
        Action::Received(RequestId(1), Box::new(response))
    }

    fn asked() -> Action {
        Action::RoleSet(CAPTURE, Role::Companion(Companion::Capture, JOB))
    }

    #[test]
    fn a_file_is_busy_until_triage_has_its_companions() {
        let state = reduce(&ready(), asked());
        let stage = state.file(JOB).unwrap().progress().unwrap().stage;
        assert_eq!(stage, Stage::ReadingCompanion(Companion::Capture));
        // The triage that was asked for before is no end.
        let state = reduce(&state, stale(Response::Triage { job: JOB, triage: Triage::default() }));
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
        let triage = |n_slices, counted| {
            let before_window = BeforeWindowSum { n_slices, counted, total_ns: 1 };
            Triage { before_window, ..Triage::default() }
        };
        let is_busy = |state: &State| state.file(JOB).unwrap().is_busy();
        let with =
            |n_slices| reduce(&ready_with(triage(n_slices, false)), Action::BeforeWindowSet(true));
        assert!(!is_busy(&with(0)), "nothing would be different");
        let state = with(463);
        assert!(is_busy(&state) && roles::counting_otherwise(&state) == [JOB]);
        // The triage that was asked for before is no end.
        let former = Response::Triage { job: JOB, triage: triage(463, false) };
        let state = reduce(&state, stale(former));
        assert!(is_busy(&state));
        let answer = Response::Triage { job: JOB, triage: triage(463, true) };
        let state = reduce(&state, said(answer));
        assert!(!is_busy(&state) && roles::counting_otherwise(&state).is_empty());
        let address = crate::queries::address::Address::parse("#v=1&view=triage");
        assert!(is_busy(&reduce(&state, Action::Addressed(address))), "back in the history");
    }
}
