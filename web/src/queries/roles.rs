//! What the files are for: as a person says, else as their contents suggest.

use kinetoscope::{CaptureFacts, RoleGuess, details_of_capture, guess_map, guess_roles};

use crate::protocol::{Aside, Beside, Companion, JobId, Signs, Triage};
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
    let guessed = guess_roles(&signs);
    let mut roles: Vec<(JobId, Role)> =
        guessed.iter().copied().enumerate().filter_map(role).collect();
    // A map tells of a trace that stands for itself, of each at most one.
    let mut told: Vec<JobId> = Vec::new();
    let own = jobs.iter().zip(&signs).zip(&guessed).filter(|(_, guess)| **guess == RoleGuess::Own);
    let own: Vec<(JobId, &Signs)> = own.map(|((job, signs), _)| (*job, *signs)).collect();
    for file in &state.files {
        let Some(Aside::Map { names, .. }) = file.aside.as_deref() else { continue };
        let open: Vec<&(JobId, &Signs)> =
            own.iter().filter(|(job, _)| !told.contains(job)).collect();
        let traces: Vec<&Signs> = open.iter().map(|(_, signs)| *signs).collect();
        if let Some((of, _)) = guess_map(names, &traces).and_then(|at| open.get(at)) {
            told.push(*of);
            roles.push((file.job, Role::Companion(Companion::Map, *of)));
        }
    }
    roles
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
    pub companions: Vec<Beside>,
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
                Role::Companion(role, of) if *of == file.job => {
                    let listed =
                        (*role == Companion::Capture).then(|| listed(state, *job)).flatten();
                    Some(Beside { job: *job, role: *role, listed })
                }
                _ => None,
            })
            .collect(),
        live: is_live(file),
    };
    state.files.iter().map(|file| of(file)).collect()
}

/// Whether a file's views are there or will be.
fn is_live(file: &FileEntry) -> bool {
    file.aside.is_none() && matches!(file.phase, Phase::Working(_) | Phase::Ready)
}

/// The files whose triage counts what it should not, or the other way round.
#[must_use]
pub fn counting_otherwise(state: &State) -> Vec<JobId> {
    let otherwise = |file: &&Shared<FileEntry>| {
        is_live(file) && file.counts_otherwise(state.count_before_window)
    };
    state.files.iter().filter(otherwise).map(|file| file.job).collect()
}

/// What the lists that were dropped say of a capture; the first that names it counts.
fn listed(state: &State, job: JobId) -> Option<CaptureFacts> {
    let name = &state.file(job)?.name;
    let lists = state.files.iter().filter_map(|file| match file.aside.as_deref()? {
        Aside::Captures(listed) => Some(listed),
        Aside::Map { .. } => None,
    });
    { lists }.find_map(|listed| details_of_capture(listed, name))
}

/// The captures of a list, and of each whether it is open and used as a capture.
#[must_use]
pub fn captures_of_list(state: &State, listed: &[CaptureFacts]) -> Vec<(CaptureFacts, bool)> {
    let used = |of: &CaptureFacts| {
        state.files.iter().any(|file| {
            details_of_capture(std::slice::from_ref(of), &file.name).is_some()
                && matches!(role(state, file.job), Role::Companion(Companion::Capture, _))
        })
    };
    listed.iter().map(|of| (of.clone(), used(of))).collect()
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

/// A part that a file can play for another, in words.
type Part = (&'static str, fn(JobId) -> Role);

const OF_A_TRACE: &[Part] = &[
    ("Capture of", |of| Role::Companion(Companion::Capture, of)),
    ("Mapping of", |of| Role::Companion(Companion::Mapping, of)),
    ("Baseline of", Role::Baseline),
];

const OF_A_MAP: &[Part] = &[("Kernel map of", |of| Role::Companion(Companion::Map, of))];

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
    let Some(file) = state.file(job).filter(|_| !others.is_empty()) else { return Vec::new() };
    let (own, parts): (&str, &[Part]) = match file.aside.as_deref() {
        Some(Aside::Map { .. }) => ("Not used", OF_A_MAP),
        // It tells of every capture that it names.
        Some(Aside::Captures(_)) => return Vec::new(),
        None if file.opened.is_none() => return Vec::new(),
        None => ("Trace of its own", OF_A_TRACE),
    };
    let choice = |role: Role, text: String| Choice { role, text, chosen: role == now };
    let mut choices = vec![choice(Role::Own, own.to_owned())];
    for (words, make) in parts {
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

    fn beside(role: Companion) -> Beside {
        Beside { job: CAPTURE, role, listed: None }
    }

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
        assert_eq!(companions, [vec![], vec![beside(Companion::Capture)]]);
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
        assert_eq!(wanted(&state)[1].companions, [beside(Companion::Mapping)]);
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

    fn stands_aside(job: u32, aside: Aside) -> [Action; 2] {
        let said = Response::Aside { job: JobId(job), aside };
        [Action::Added(JobId(job), format!("{job}.json"), 10), Action::Received(Box::new(said))]
    }

    fn map(job: u32, names: &[u32]) -> [Action; 2] {
        let names = names.to_vec();
        stands_aside(job, Aside::Map { names, n_kernels: 1, stages: Vec::new() })
    }

    #[test]
    fn a_kernel_map_finds_its_trace_and_is_never_shown_before_it() {
        let other = Signs { ran_names: vec![7, 8], ..Signs::default() };
        let all = [map(3, &[1, 7, 8]), opened(1, replay()), opened(2, other)].concat();
        let state = after(all);
        let of_other = Role::Companion(Companion::Map, JobId(2));
        assert_eq!(role(&state, JobId(3)), of_other);
        assert_eq!(state.selected, Some(JobId(1)));
        let texts: Vec<String> =
            choices(&state, JobId(3)).into_iter().map(|choice| choice.text).collect();
        assert_eq!(texts, ["Not used", "Kernel map of 1.json", "Kernel map of 2.json"]);
        // A second one of the same trace takes its place, and gives it back to nobody.
        let state = map(4, &[9]).into_iter().fold(state, |state, act| reduce(&state, act));
        assert_eq!(role(&state, JobId(4)), Role::Own);
        let state = reduce(&state, Action::RoleSet(JobId(4), of_other));
        assert_eq!((role(&state, JobId(3)), role(&state, JobId(4))), (Role::Own, of_other));
        assert!(choices(&after(map(3, &[1])), JobId(3)).is_empty(), "alone there is no choice");
    }

    #[test]
    fn a_list_tells_of_the_captures_that_it_names() {
        let facts = |name: &str, size| CaptureFacts {
            name: name.into(),
            batch_size: Some(size),
            mode: None,
        };
        let list = vec![facts("9.json", 1), facts("1.json.gz", 32)];
        let list = stands_aside(3, Aside::Captures(list));
        let state = list.into_iter().fold(pair(), |state, act| reduce(&state, act));
        let listed = Some(facts("1.json", 32));
        let expected = Beside { listed, ..beside(Companion::Capture) };
        assert_eq!(wanted(&state)[1].companions, [expected]);
        assert_eq!(state.selected, Some(RUN));
        let Some(Aside::Captures(list)) = state.file(JobId(3)).unwrap().aside.as_deref() else {
            panic!("no list")
        };
        let used: Vec<bool> =
            captures_of_list(&state, list).into_iter().map(|(_, used)| used).collect();
        assert_eq!(used, [false, true]);
        assert!(choices(&state, JobId(3)).is_empty());
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
