//! Messages about the repair plan and the repaired file.

use kinetoscope::report::Table;
use serde::{Deserialize, Serialize};

use crate::protocol::Place;
use crate::shared::Shared;

/// How the repaired file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Format {
    /// `.json.gz`
    Gzip,
    /// `.json`
    Json,
}

/// What the repair will do, and what Perfetto makes of the file without it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Whether the repaired file differs from this one at all.
    pub damaged: bool,
    /// The finding in one sentence.
    pub verdict: String,
    /// What each range of Perfetto versions does with the file before and after.
    pub predictions: Shared<Table>,
    /// Slices that Perfetto v51 to v56 lose today.
    pub drops_before: u64,
    /// The same after the repair.
    pub drops_after: u64,
    /// Whether Perfetto reads the repaired file without any error.
    pub clean_after: bool,
    /// Why a time base is subtracted, where one is.
    pub time_base: Option<String>,
    /// What is done, by rule.
    pub rules: Shared<Table>,
    /// The new lanes.
    pub lanes: Shared<Table>,
    /// What is done, by event.
    pub log: Shared<Table>,
    /// Lines of the whole log, of which `log` may hold the first ones only.
    pub n_changes: u64,
    /// Kernels with impossible durations.
    pub impossible: Shared<Table>,
    /// What these mean.
    pub impossible_note: Option<String>,
    /// The worst places, before and after.
    pub places: Vec<Shared<Place>>,
    /// Whether impossible durations are clipped.
    pub clip_impossible: bool,
    /// The slices that all this is about, for the program that draws lanes.
    pub damage: Shared<Vec<u8>>,
}

/// A repaired file, written and read back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repaired {
    /// How it is written.
    pub format: Format,
    /// Size of the file.
    pub bytes: u64,
    /// Name of the file.
    pub file_name: String,
    /// Whether impossible durations were clipped.
    pub clip_impossible: bool,
    /// Whether every line of the proof holds.
    pub proven: bool,
    /// Counts and sums before and after.
    pub proof: Shared<Table>,
}
