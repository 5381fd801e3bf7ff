//! Roles of the files: as a person chose them, else as the contents suggest.

use kinetoscope::{
    CaptureFacts, MappedByName, RoleGuess, details_of_capture, guess_map, guess_roles,
};

use crate::protocol::{Aside, Beside, Companion, JobId, Signs, Triage};
use crate::shared::Shared;
use crate::state::{CompanionEntry, FileEntry, Phase, Role, State, View};
use kinetoscope::trace::sort_by_key;

/// What the contents suggest, for files that seem to belong to another. A mapping is only suggested ([`questions`]): a run
/// without graphs may as well be the other side of a comparison.
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
    // A map belongs to a measured trace, which has at most one.
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

/// The role of a file.
#[must_use]
pub fn role(state: &State, job: JobId) -> Role {
    let Some(file) = state.file(job) else { return Role::Own };
    let role = file.role.or_else(|| guess(state, job)).unwrap_or_default();
    // The other file may be closed, or may belong to a third one itself.
    role.of().filter(|of| stands_alone(state, *of)).map_or(Role::Own, |_| role)
}

/// The role that needs no question.
fn guess(state: &State, job: JobId) -> Option<Role> {
    let guess = state.guesses.iter().find(|(of, _)| *of == job).map(|(_, role)| *role);
    guess.filter(|role| !is_mapping(*role))
}

fn is_mapping(role: Role) -> bool {
    matches!(role, Role::Companion(Companion::Mapping, _))
}

/// Whether other files can belong to this one: it belongs to none itself.
fn stands_alone(state: &State, job: JobId) -> bool {
    let Some(file) = state.file(job) else { return false };
    match file.role {
        Some(role) => !matches!(role, Role::Companion(..)),
        None => guess(state, job).is_none(),
    }
}

/// A run that could be compared with another, or be its mapping trace. Only a person knows which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The run that was recorded without graphs.
    pub job: JobId,
    /// The run that replays graphs.
    pub of: JobId,
    /// The name of that run's file.
    pub of_name: String,
}

/// What is to be asked on the card of each file, in the order of the cards. Any choice of a role is an answer.
#[must_use]
pub fn questions(state: &State) -> Vec<Option<Question>> {
    let question = |file: &Shared<FileEntry>| {
        let open = |job: JobId| state.file(job).is_some_and(|file| file.role.is_none());
        let guess = state.guesses.iter().find(|(of, role)| *of == file.job && is_mapping(*role));
        let of = guess?.1.of().filter(|of| open(file.job) && open(*of))?;
        let of_name = state.file(of)?.name.clone();
        Some(Question { job: file.job, of, of_name })
    };
    state.files.iter().map(question).collect()
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
        Aside::Map { .. } | Aside::Snapshot { .. } => None,
    });
    { lists }.find_map(|listed| details_of_capture(listed, name))
}

/// Why a related file maps no kernel although it was read; `None` where it maps some, or nothing is known yet.
#[must_use]
pub fn maps_nothing(file: &FileEntry, companion: &CompanionEntry) -> Option<String> {
    let triage = file.triage.as_ref().filter(|_| file.phase == Phase::Ready)?;
    let whole = "every kernel of this trace already has its op and its Python line";
    let why = match companion.beside.role {
        Companion::Capture => {
            let used = triage.captures.iter().find(|used| used.name == companion.name)?;
            (used.replays == 0).then_some("no graph launch of this trace replays it")
        }
        Companion::Mapping => match triage.by_mapping? {
            MappedByName { mapped: 1.., .. } => None,
            MappedByName { asked: 0, .. } => Some(whole),
            _ => Some("it has no op or Python line for any kernel name of this trace"),
        },
        Companion::Map => match triage.by_map? {
            MappedByName { mapped: 1.., .. } => None,
            MappedByName { asked: 0, .. } => Some(whole),
            _ => Some("it contains none of the kernels that still need an op or a Python line"),
        },
    };
    why.map(str::to_owned)
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

/// The file that this one is compared with: the one that was chosen, or, in the view of comparisons, the only other run.
#[must_use]
pub fn baseline(state: &State, job: JobId) -> Option<JobId> {
    let mut files = state.files.iter().map(|file| file.job);
    let chosen = files.find(|other| role(state, *other) == Role::Baseline(job));
    chosen.or_else(|| implied_baseline(state, job))
}

/// With two runs open there is one comparison. A person who undid it has said what the other run is for.
fn implied_baseline(state: &State, job: JobId) -> Option<JobId> {
    if state.view != View::Compare || state.selected != Some(job) {
        return None;
    }
    let is_run = |file: &&Shared<FileEntry>| {
        file.has_views() && !matches!(role(state, file.job), Role::Companion(..))
    };
    let mut runs = state.files.iter().filter(is_run).filter(|file| file.job != job);
    match (runs.next(), runs.next()) {
        (Some(only), None) => only.role.is_none().then_some(only.job),
        _ => None,
    }
}

/// A role that a person can choose for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The role.
    pub role: Role,
    /// What a person reads.
    pub text: String,
    /// The name of the other file; empty without one.
    pub about: String,
    /// Whether it is the one in force.
    pub chosen: bool,
}

/// A part that a file can play for another, in words.
type Part = (&'static str, fn(JobId) -> Role);

const OF_A_TRACE: &[Part] = &[
    ("Capture for", |of| Role::Companion(Companion::Capture, of)),
    ("Mapping trace for", |of| Role::Companion(Companion::Mapping, of)),
    ("Baseline for", Role::Baseline),
];

const OF_A_MAP: &[Part] = &[("Kernel map for", |of| Role::Companion(Companion::Map, of))];

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
    let others = plausible(state, file, now, others);
    let (own, parts): (&str, &[Part]) = match file.aside.as_deref() {
        Some(Aside::Map { .. }) => ("Not used", OF_A_MAP),
        // It tells of every capture that it names.
        Some(Aside::Captures(_) | Aside::Snapshot { .. }) => return Vec::new(),
        None if file.opened.is_none() => return Vec::new(),
        None => ("Measured trace", OF_A_TRACE),
    };
    let choice = |role: Role, text: String, about: &str| Choice {
        role,
        text,
        about: about.to_owned(),
        chosen: role == now,
    };
    let mut choices = vec![choice(Role::Own, own.to_owned(), "")];
    for of in others {
        let of_other =
            |(words, make): &Part| choice(make(of.job), format!("{words} {}", of.name), &of.name);
        choices.extend(parts.iter().map(of_other));
    }
    choices
}

/// Files that roles are offered for: with dozens open, a list of all of them on each card is of no use to anybody.
const MOST_TARGETS: usize = 12;

/// Of many files, the one in force, the one that is shown, and those whose names begin like this one's.
fn plausible<'a>(
    state: &State,
    file: &FileEntry,
    now: Role,
    mut others: Vec<&'a FileEntry>,
) -> Vec<&'a FileEntry> {
    if others.len() <= MOST_TARGETS {
        return others;
    }
    let order: Vec<JobId> = others.iter().map(|of| of.job).collect();
    let alike =
        |of: &FileEntry| of.name.chars().zip(file.name.chars()).take_while(|(a, b)| a == b).count();
    sort_by_key(&mut others, |of| {
        let first = now.of() == Some(of.job) || state.selected == Some(of.job);
        (!first, std::cmp::Reverse(alike(of)))
    });
    others.truncate(MOST_TARGETS);
    sort_by_key(&mut others, |of| order.iter().position(|job| *job == of.job));
    others
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Opened, Response};
    use crate::state::Action;
    use crate::state::testing::{reduce, said};

    fn opened(job: u32, signs: Signs) -> [Action; 2] {
        let opened = Opened { signs: Shared::new(signs), ..Opened::default() };
        let response = Response::Opened { job: JobId(job), opened };
        [Action::Added(JobId(job), format!("{job}.json"), 10), said(response)]
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
        assert_eq!(chosen, ["Mapping trace for 2.json"]);
        assert!(choices(&state, RUN).is_empty(), "a companion has none of its own");
    }

    fn without_graphs(names: &[u32]) -> Signs {
        Signs { n_ran: 3, has_ops: true, ran_names: names.to_vec(), ..Signs::default() }
    }

    #[test]
    fn of_two_runs_none_becomes_the_mapping_of_the_other_unasked() {
        let state = after([opened(1, without_graphs(&[1, 2])), opened(2, replay())].concat());
        assert_eq!((role(&state, CAPTURE), role(&state, RUN)), (Role::Own, Role::Own));
        let question = Question { job: CAPTURE, of: RUN, of_name: "2.json".into() };
        assert_eq!(questions(&state), [Some(question.clone()), None]);
        assert!(wanted(&state).iter().all(|of| of.companions.is_empty()));
        let mapping = Role::Companion(Companion::Mapping, RUN);
        for answer in [mapping, Role::Baseline(RUN), Role::Own] {
            let state = reduce(&state, Action::RoleSet(CAPTURE, answer));
            assert_eq!((role(&state, CAPTURE), questions(&state)), (answer, vec![None, None]));
        }
        // The view of comparisons compares them meanwhile, and asks on.
        let shown = reduce(&reduce(&state, Action::Selected(RUN)), Action::Shown(View::Compare));
        assert_eq!(baseline(&shown, RUN), Some(CAPTURE));
        assert_eq!(questions(&shown), [Some(question), None]);
    }

    #[test]
    fn with_two_runs_open_the_view_of_comparisons_takes_the_other_one() {
        let two = after([opened(1, replay()), opened(2, replay())].concat());
        let shown = reduce(&reduce(&two, Action::Selected(CAPTURE)), Action::Shown(View::Compare));
        assert_eq!((baseline(&two, CAPTURE), baseline(&shown, CAPTURE)), (None, Some(RUN)));
        assert_eq!(baseline(&shown, RUN), None, "of the run that is shown");
        let undone = reduce(&shown, Action::RoleSet(RUN, Role::Own));
        assert_eq!(baseline(&undone, CAPTURE), None);
        let three = opened(3, replay()).into_iter().fold(shown, |state, act| reduce(&state, act));
        let three = reduce(&three, Action::Selected(CAPTURE));
        assert_eq!(baseline(&three, CAPTURE), None, "of several a person chooses");
    }

    #[test]
    fn a_companion_of_a_closed_file_stands_for_itself() {
        let mapping = Action::RoleSet(CAPTURE, Role::Companion(Companion::Mapping, RUN));
        let state = reduce(&reduce(&pair(), mapping), Action::Removed(RUN));
        assert_eq!(role(&state, CAPTURE), Role::Own);
    }

    fn stands_aside(job: u32, aside: Aside) -> [Action; 2] {
        let response = Response::Aside { job: JobId(job), aside };
        [Action::Added(JobId(job), format!("{job}.json"), 10), said(response)]
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
        assert_eq!(texts, ["Not used", "Kernel map for 1.json", "Kernel map for 2.json"]);
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
    fn with_dozens_of_files_a_card_offers_a_few_plausible_targets() {
        let all: Vec<Action> = (1..=77).flat_map(|job| opened(job, replay())).collect();
        let state = after(all);
        let role = Role::Baseline(JobId(70));
        let state = reduce(&state, Action::RoleSet(JobId(77), role));
        let state = reduce(&state, Action::Selected(JobId(60)));
        let of_last = choices(&state, JobId(77));
        assert_eq!(of_last.len(), 1 + 3 * MOST_TARGETS);
        let targets: Vec<JobId> = of_last.iter().filter_map(|choice| choice.role.of()).collect();
        assert!(targets.contains(&JobId(70)) && targets.contains(&JobId(60)));
        assert!(targets.is_sorted(), "in the order of the cards, the roles of each together");
        assert_eq!(of_last.iter().filter(|choice| choice.chosen).count(), 1);
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
