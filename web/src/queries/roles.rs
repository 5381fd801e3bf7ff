//! What the files are for: as a person says, else as their contents suggest.

use kinetoscope::{RoleGuess, guess_roles};

use crate::protocol::{Companion, JobId, Signs, Triage};
use crate::shared::Shared;
use crate::state::{FileEntry, Phase, Role, State};

/// What the contents suggest, for those that seem to be companions.
#[must_use]
pub fn guesses(state: &State) -> Vec<(JobId, Role)> {
    let opened =
        state.files.iter().filter_map(|file| Some((file.job, &*file.opened.as_ref()?.signs)));
    let (jobs, signs): (Vec<JobId>, Vec<&Signs>) = opened.unzip();
    let role = |(at, guess): (usize, RoleGuess)| {
        let (kind, of) = match guess {
            RoleGuess::Own => return None,
            RoleGuess::Capture(of) => (Companion::Capture, of),
            RoleGuess::Mapping(of) => (Companion::Mapping, of),
        };
        Some((*jobs.get(at)?, Role::Companion(kind, *jobs.get(of)?)))
    };
    guess_roles(&signs).into_iter().enumerate().filter_map(role).collect()
}

/// What a file is for.
#[must_use]
pub fn role(state: &State, job: JobId) -> Role {
    let Some(file) = state.file(job) else { return Role::Own };
    let guess = || state.guesses.iter().find(|(of, _)| *of == job).map(|(_, role)| *role);
    let role = file.role.or_else(guess).unwrap_or_default();
    // Of a file that was closed, or that a person made a companion itself, there is nothing to tell.
    role.of().filter(|of| stands_alone(state, *of)).map_or(Role::Own, |_| role)
}

/// Whether a file can have companions: it is no companion itself.
fn stands_alone(state: &State, job: JobId) -> bool {
    let Some(file) = state.file(job) else { return false };
    match file.role {
        Some(role) => !matches!(role, Role::Companion(..)),
        None => state.guesses.iter().all(|(of, _)| *of != job),
    }
}

/// The companions that a file should have.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The file.
    pub job: JobId,
    /// The companions, in the order of their cards.
    pub companions: Vec<(JobId, Companion)>,
    /// Whether its views are there or will be, so that they must follow.
    pub live: bool,
}

/// The companions of every file that can have any.
#[must_use]
pub fn wanted(state: &State) -> Vec<Wanted> {
    let roles: Vec<(JobId, Role)> =
        state.files.iter().map(|file| (file.job, role(state, file.job))).collect();
    let of = |file: &FileEntry| Wanted {
        job: file.job,
        companions: roles
            .iter()
            .filter_map(|(job, role)| match role {
                Role::Companion(kind, of) if *of == file.job => Some((*job, *kind)),
                _ => None,
            })
            .collect(),
        live: matches!(file.phase, Phase::Working(_) | Phase::Ready),
    };
    state.files.iter().map(|file| of(file)).collect()
}

/// A comparison that should be there: run A, run B, and the results that it follows from.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Run A.
    pub job: JobId,
    /// Run B.
    pub with: JobId,
    /// Triage of both.
    pub of: (Shared<Triage>, Shared<Triage>),
}

/// The comparisons that can be made. One whose triage is made again is made again, too.
#[must_use]
pub fn comparisons(state: &State) -> Vec<Compared> {
    let ready = |file: &FileEntry| file.triage.clone().filter(|_| file.phase == Phase::Ready);
    let compared = |file: &Shared<FileEntry>| {
        let with = baseline(state, file.job)?;
        let of = (ready(file)?, ready(state.file(with)?)?);
        Some(Compared { job: file.job, with, of })
    };
    state.files.iter().filter_map(compared).collect()
}

/// The file that this one is compared with.
#[must_use]
pub fn baseline(state: &State, job: JobId) -> Option<JobId> {
    let files = state.files.iter().map(|file| file.job);
    files.into_iter().find(|other| role(state, *other) == Role::Baseline(job))
}

/// A role that a person can choose for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The role.
    pub role: Role,
    /// What a person reads.
    pub text: String,
    /// Whether it is the one in force.
    pub chosen: bool,
}

/// The choices of every file, in the order of their cards.
#[must_use]
pub fn all_choices(state: &State) -> Vec<Vec<Choice>> {
    state.files.iter().map(|file| choices(state, file.job)).collect()
}

/// What a file could be for; nothing when it is the only one.
#[must_use]
pub fn choices(state: &State, job: JobId) -> Vec<Choice> {
    let now = role(state, job);
    let others: Vec<&FileEntry> = state
        .files
        .iter()
        .map(|file| -> &FileEntry { file })
        .filter(|file| file.job != job && file.opened.is_some() && stands_alone(state, file.job))
        .collect();
    let known = state.file(job).is_some_and(|file| file.opened.is_some());
    if others.is_empty() || !known {
        return Vec::new();
    }
    let choice = |role: Role, text: String| Choice { role, text, chosen: role == now };
    let mut choices = vec![choice(Role::Own, "Trace of its own".to_owned())];
    for (words, make) in [
        ("Capture of", (|of| Role::Companion(Companion::Capture, of)) as fn(JobId) -> Role),
        ("Mapping of", |of| Role::Companion(Companion::Mapping, of)),
        ("Baseline of", Role::Baseline),
    ] {
        choices
            .extend(others.iter().map(|of| choice(make(of.job), format!("{words} {}", of.name))));
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Opened, Response};
    use crate::state::{Action, reduce};

    fn opened(job: u32, signs: Signs) -> [Action; 2] {
        let opened = Opened { signs: Shared::new(signs), ..Opened::default() };
        let said = Response::Opened { job: JobId(job), opened };
        [Action::Added(JobId(job), format!("{job}.json"), 10), Action::Received(Box::new(said))]
    }

    fn replay() -> Signs {
        Signs { n_ran: 3, replays: vec![3], replayed_names: vec![1, 2], ..Signs::default() }
    }

    fn capture() -> Signs {
        Signs { n_captured: 3, captures: vec![3], captured_names: vec![1, 2], ..Signs::default() }
    }

    fn after(actions: impl IntoIterator<Item = Action>) -> State {
        actions.into_iter().fold(State::default(), |state, action| reduce(&state, action))
    }

    const CAPTURE: JobId = JobId(1);
    const RUN: JobId = JobId(2);

    fn pair() -> State {
        after([opened(1, capture()), opened(2, replay())].concat())
    }

    #[test]
    fn a_pair_finds_itself_and_the_measured_trace_is_shown() {
        let state = pair();
        assert_eq!(role(&state, CAPTURE), Role::Companion(Companion::Capture, RUN));
        assert_eq!(role(&state, RUN), Role::Own);
        assert_eq!(state.selected, Some(RUN));
        let companions: Vec<_> = wanted(&state).into_iter().map(|of| of.companions).collect();
        assert_eq!(companions, [vec![], vec![(CAPTURE, Companion::Capture)]]);
    }

    #[test]
    fn a_card_that_a_person_picked_stays() {
        let first = after(opened(1, capture()));
        let picked = reduce(&first, Action::Selected(CAPTURE));
        let state = opened(2, replay()).into_iter().fold(picked, |state, act| {
            let state = reduce(&state, act);
            reduce(&state, Action::Selected(CAPTURE))
        });
        assert_eq!(state.selected, Some(CAPTURE));
    }

    #[test]
    fn a_person_knows_better_and_may_take_it_back() {
        let state = reduce(&pair(), Action::RoleSet(CAPTURE, Role::Own));
        assert!(wanted(&state).iter().all(|of| of.companions.is_empty()));
        let mapping = Role::Companion(Companion::Mapping, RUN);
        let state = reduce(&state, Action::RoleSet(CAPTURE, mapping));
        assert_eq!(wanted(&state)[1].companions, [(CAPTURE, Companion::Mapping)]);
        let chosen: Vec<String> = choices(&state, CAPTURE)
            .into_iter()
            .filter(|choice| choice.chosen)
            .map(|choice| choice.text)
            .collect();
        assert_eq!(chosen, ["Mapping of 2.json"]);
        assert!(choices(&state, RUN).is_empty(), "a companion has none of its own");
    }

    #[test]
    fn a_companion_of_a_closed_file_stands_for_itself() {
        let mapping = Action::RoleSet(CAPTURE, Role::Companion(Companion::Mapping, RUN));
        let state = reduce(&reduce(&pair(), mapping), Action::Removed(RUN));
        assert_eq!(role(&state, CAPTURE), Role::Own);
    }

    #[test]
    fn one_baseline_at_a_time() {
        let state = after([opened(1, replay()), opened(2, replay()), opened(3, replay())].concat());
        let state = reduce(&state, Action::RoleSet(JobId(2), Role::Baseline(JobId(1))));
        let state = reduce(&state, Action::RoleSet(JobId(3), Role::Baseline(JobId(1))));
        assert_eq!(baseline(&state, JobId(1)), Some(JobId(3)));
        assert_eq!((role(&state, JobId(2)), baseline(&state, JobId(3))), (Role::Own, None));
        assert!(comparisons(&state).is_empty(), "not before both are triaged");
    }
}
