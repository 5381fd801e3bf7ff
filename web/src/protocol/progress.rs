//! How far a worker is.

use serde::{Deserialize, Serialize};

use super::Companion;

/// What a worker is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Waiting for its worker.
    #[default]
    Starting,
    /// Reading and decoding.
    Reading,
    /// Computing the tables.
    Analyzing,
    /// Predicting what Perfetto drops.
    Planning,
    /// Mapping GPU time to ops and lines.
    Triaging,
    /// Writing the repaired file.
    Repairing,
    /// Reading a companion.
    ReadingCompanion(Companion),
    /// Reading the file again for its digest.
    Digesting,
    /// Writing the artifacts.
    Packing,
}

impl Stage {
    /// What a person reads while it lasts.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Starting => "Starting",
            Self::Reading => "Reading",
            Self::Analyzing => "Analysing",
            Self::Planning => "Checking what Perfetto drops",
            Self::Triaging => "Mapping kernels to ops and lines",
            Self::Repairing => "Writing the repaired file",
            Self::ReadingCompanion(Companion::Capture) => "Reading the capture",
            Self::ReadingCompanion(Companion::Mapping) => "Reading the mapping trace",
            Self::ReadingCompanion(Companion::Map) => "Reading the kernel map",
            Self::Digesting => "Computing the digest of the file",
            Self::Packing => "Writing the tables",
        }
    }
}

/// How far a stage is. The bytes are those of the file as it lies on the disk (compressed ones, if it is).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// Bytes read.
    pub done: u64,
    /// Bytes of the file.
    pub total: u64,
    /// Events decoded so far.
    pub n_events: u64,
}
