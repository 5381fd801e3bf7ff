//! What a person is asked about a file, and the roles to choose from, on its card.

use kinetoscope::trace::sort_by_key;

use super::{is_mapping, role, stands_alone};
use crate::protocol::{Aside, Companion, JobId};
use crate::shared::Shared;
use crate::state::{FileEntry, Role, State};

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
pub(super) const MOST_TARGETS: usize = 12;

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
