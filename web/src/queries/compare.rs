//! What the view of two runs shows of them.

use kinetoscope::report::{Cell, Table};

use super::roles;
use crate::protocol::JobId;
use crate::state::{ComparePhase, Phase, Role, State};

/// A file that another can be compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its job.
    pub job: JobId,
    /// Its name.
    pub name: String,
}

/// Why there is a comparison, or why not yet.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// No other trace is open.
    Alone,
    /// None is chosen.
    Unchosen,
    /// A or B is still being read.
    Waiting(String),
    /// B cannot be read, or was stopped.
    Gone(String),
    /// Asked for, or there.
    Asked(ComparePhase),
}

/// The comparison of a file, as far as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// What it can be compared with.
    pub others: Vec<Other>,
    /// What it is compared with.
    pub with: Option<JobId>,
    /// How far that is.
    pub standing: Standing,
}

/// The comparison of the file that is shown.
#[must_use]
pub fn compare(state: &State, job: JobId) -> Compare {
    let own = |other: &JobId| !matches!(roles::role(state, *other), Role::Companion(..));
    let others: Vec<Other> = state
        .files
        .iter()
        .filter(|file| file.job != job && file.has_views() && own(&file.job))
        .map(|file| Other { job: file.job, name: file.name.clone() })
        .collect();
    let with = roles::baseline(state, job);
    let standing = match with.and_then(|with| state.file(with)) {
        None if others.is_empty() => Standing::Alone,
        None => Standing::Unchosen,
        Some(other) if matches!(other.phase, Phase::Failed(_) | Phase::Cancelled) => {
            Standing::Gone(other.name.clone())
        }
        Some(other) => match state.file(job).and_then(|file| file.comparison.clone()) {
            Some((of, phase)) if of == other.job => Standing::Asked(phase),
            _ => Standing::Waiting(other.name.clone()),
        },
    };
    Compare { others, with, standing }
}

/// A key that is not the same, or not known, in both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// The key.
    pub key: String,
    /// Whether the verdict hangs on it.
    pub decides: bool,
    /// A's value.
    pub a: Cell,
    /// B's value.
    pub b: Cell,
}

/// The keys that differ and those that the verdict misses, in the order of the table.
#[must_use]
pub fn reasons(table: &Table) -> Vec<Reason> {
    let at = |key: &str| table.column(key);
    let (Some(key), Some(result), Some(decides), Some(a), Some(b)) =
        (at("key"), at("result"), at("decides"), at("a"), at("b"))
    else {
        return Vec::new();
    };
    let reason = |row: &Vec<Cell>| {
        let decides = row.get(decides)? == &Cell::Flag(true);
        let result = row.get(result)?.raw();
        let tells = result == "different" || (result == "missing" && decides);
        tells.then_some(Reason {
            key: row.get(key)?.raw(),
            decides,
            a: row.get(a)?.clone(),
            b: row.get(b)?.clone(),
        })
    };
    table.rows.iter().filter_map(reason).collect()
}
