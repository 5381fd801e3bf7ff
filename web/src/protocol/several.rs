//! What crosses when several files are one job's matter.

use serde::{Deserialize, Serialize};

use super::Chapter;

/// What a trace tells of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Companion {
    /// It holds the capture of the graphs that the other replays.
    Capture,
    /// It ran without graphs what the other replays with them.
    Mapping,
}

/// Two runs side by side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Whether they may be compared.
    pub verdict: Verdict,
    /// The chapters of the report, the banner's first.
    pub chapters: Vec<Chapter>,
}

/// Whether two runs may be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Everything that must be the same is the same.
    Comparable,
    /// Nothing differs, but not everything is known.
    #[default]
    Conditional,
    /// Something that must be the same differs.
    NotComparable,
}

impl Comparison {
    /// The chapter of that id.
    #[must_use]
    pub fn chapter(&self, id: &str) -> Option<&Chapter> {
        self.chapters.iter().find(|chapter| chapter.id == id)
    }
}
