//! A file that is read, and why one cannot be.

use kinetoscope::report::Table;
use serde::{Deserialize, Serialize};

use super::Signs;
use crate::shared::Shared;

/// A decoded file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// Whether the file is compressed.
    pub gzip: bool,
    /// Size of the file.
    pub file_bytes: u64,
    /// Size of the JSON in it.
    pub json_bytes: u64,
    /// Events in it.
    pub n_events: u64,
    /// What the reader had to put up with.
    pub problems: Vec<ProblemCard>,
    /// The same as a table.
    pub problem_table: Shared<Table>,
    /// What part it can play beside other traces.
    pub signs: Shared<Signs>,
}

/// How much a problem matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Severity {
    /// Nothing is lost.
    #[default]
    Note,
    /// A reader may be misled, or other tools stumble.
    Warning,
    /// Data is missing.
    Error,
}

/// One kind of problem, as a card: what, where, what to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProblemCard {
    /// Id of the kind.
    pub kind: String,
    /// How much it matters.
    pub severity: Severity,
    pub title: String,
    /// What it means and what to do.
    pub help: String,
    /// How often.
    pub count: u64,
    /// Where it was first seen, in bytes of the decompressed file.
    pub first_offset: u64,
    /// The text there.
    pub excerpt: String,
}

/// Why a job cannot go on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What happened, in a few words.
    pub title: String,
    /// What it means.
    pub what: String,
    /// Where in the file.
    pub place: Option<String>,
    /// What to do.
    pub advice: String,
    /// The text at that place.
    pub excerpt: Option<String>,
}

/// Events of a memory snapshot: of each device those from a number on, up to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRange {
    /// The first that is kept; 0 is the first of the file.
    pub from: u64,
    /// The first that is not kept any more; `None` for all that follow.
    pub to: Option<u64>,
}

impl EventRange {
    /// Whether it is all events.
    #[must_use]
    pub fn is_all(self) -> bool {
        self == Self::default()
    }
}
