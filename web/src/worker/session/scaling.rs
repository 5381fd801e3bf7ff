//! The file as one of several runs of a model with inputs of different sizes, whose others are in workers of their own.

use std::hash::{DefaultHasher, Hash, Hasher};

use kinetoscope::{ScalingRow, scaling, scaling_section};

use crate::protocol::{Chapter, RUN};
use crate::shared::Shared;

/// The kind of a run's inputs, and the size of its batch: they come first, for the page ([`crate::protocol::Diagnosis::scaling`]).
const HEAD: usize = 12;

/// A run, for the workers of others; empty where the size of its batch is not recorded.
pub(super) fn to_bytes(row: &ScalingRow) -> Vec<u8> {
    let batch = row.batch.and_then(|batch| u32::try_from(batch).ok()).filter(|batch| *batch > 0);
    let (Some(kind), Some(batch), Ok(run)) = (row.kind(), batch, postcard::to_allocvec(row)) else {
        return Vec::new();
    };
    // (All workers are of one build. Two kinds with one number only cost another diagnosis: `chapter` compares what they are of.)
    let mut hasher = DefaultHasher::new();
    kind.hash(&mut hasher);
    let number = hasher.finish() as u32;
    [&[RUN, 0, 0, 0][..], &number.to_le_bytes(), &batch.to_le_bytes(), &run].concat()
}

/// How time follows the size of the batch: what the command line prints of these files. `None` without runs of the same inputs.
pub(super) fn chapter(own: ScalingRow, others: &[Shared<Vec<u8>>]) -> Option<Chapter> {
    let read = |bytes: &Shared<Vec<u8>>| -> Option<ScalingRow> {
        postcard::from_bytes(bytes.get(HEAD..)?).ok()
    };
    let mut runs: Vec<ScalingRow> = others.iter().filter_map(read).collect();
    runs.retain(|run| run.kind() == own.kind());
    if runs.is_empty() {
        return None;
    }
    runs.push(own);
    Some(Chapter::drawn(scaling_section(&scaling(runs))))
}
