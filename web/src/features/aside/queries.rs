//! Describes a file that is not a trace but belongs to traces.

use kinetoscope::report::units;

use crate::features::several::queries as roles;
use crate::protocol::{Aside, CaptureFacts, JobId};
use crate::state::{FileEntry, Role, State};

/// Such a file, described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// What it is.
    pub title: &'static str,
    /// What is in it.
    pub finding: String,
    /// What it is used for.
    pub use_: String,
    /// Of a list of captures: these, and whether each is open and used as one.
    pub captures: Vec<(CaptureFacts, bool)>,
}

/// What it is and how much is in it.
#[must_use]
pub fn title(aside: &Aside) -> (&'static str, String) {
    match aside {
        Aside::Map { n_kernels, .. } => {
            ("Kernel map", units::plural(*n_kernels, "kernel", "kernels"))
        }
        Aside::Captures(listed) => {
            ("List of captures", units::plural(listed.len() as u64, "capture", "captures"))
        }
        Aside::Snapshot { is_timeline: true, summary, .. } => ("Memory timeline", summary.clone()),
        Aside::Snapshot { summary, .. } => ("Memory snapshot", summary.clone()),
    }
}

/// The other open snapshots, to compare one with.
#[must_use]
pub fn other_snapshots(state: &State, job: JobId) -> Vec<(JobId, String)> {
    let is_snapshot = |file: &FileEntry| {
        matches!(file.aside.as_deref(), Some(Aside::Snapshot { is_timeline: false, .. }))
    };
    if !state.file(job).is_some_and(|file| is_snapshot(file)) {
        return Vec::new();
    }
    let others = state.files.iter().filter(|file| file.job != job && is_snapshot(file));
    others.map(|file| (file.job, file.name.to_string())).collect()
}

/// The open traces, where a job is a snapshot: they may be of its run.
#[must_use]
pub fn traces_beside(state: &State, job: JobId) -> Vec<(JobId, String)> {
    let is_snapshot = state
        .file(job)
        .and_then(|file| file.aside.as_deref())
        .is_some_and(|aside| matches!(aside, Aside::Snapshot { is_timeline: false, .. }));
    let traces = state.files.iter().filter(|file| is_snapshot && file.opened.is_some());
    traces.map(|file| (file.job, file.name.to_string())).collect()
}

/// The file of a job, if it is such a one. (A memory snapshot has views of its own.)
#[must_use]
pub fn described(state: &State, job: JobId) -> Option<Described> {
    let aside = state.file(job)?.aside.as_deref()?;
    let (title, mut finding) = title(aside);
    let (use_, captures) = match aside {
        Aside::Map { stages, .. } => {
            if !stages.is_empty() {
                finding.push_str(&format!("; stages: {}", stages.join(", ")));
            }
            let of = match roles::role(state, job) {
                Role::Companion(_, of) => state.file(of),
                _ => None,
            };
            let text = match of {
                Some(file) => format!(
                    "Maps the kernels of {} to ops and Python lines by name, like the trace it was exported from.",
                    file.name
                ),
                None => "Maps the kernels of another trace to ops and Python lines by name. Drop that trace on this page, or select it on this file's card."
                    .to_owned(),
            };
            (text, Vec::new())
        }
        Aside::Snapshot { .. } => return None,
        Aside::Captures(listed) => {
            let captures = roles::captures_of_list(state, listed);
            let text = "Lists the batch size of each capture trace, to select among captures that match a graph launch equally well. Drop the listed captures together with the trace that replays them.";
            (text.to_owned(), captures)
        }
    };
    finding.push('.');
    Some(Described { title, finding, use_, captures })
}
