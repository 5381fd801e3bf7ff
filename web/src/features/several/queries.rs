//! Roles of the files: as a person chose them, else as the contents suggest.

pub mod choices;

use kinetoscope::{
    CaptureFacts, MappedByName, RoleGuess, details_of_capture, guess_map, guess_roles,
};

use crate::protocol::{Aside, Beside, Companion, JobId, Signs, Triage};
use crate::shared::Shared;
use crate::state::{CompanionEntry, FileEntry, Phase, Role, State, View};

/// What the contents suggest, for files that seem to belong to another. A mapping is only suggested ([`choices::questions`]): a run
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

#[cfg(test)]
mod tests;
