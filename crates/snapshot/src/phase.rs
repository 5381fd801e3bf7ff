//! The parts of a training step.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

/// The part of a training step, as far as the stack shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    Optimizer,
    Backward,
    Forward,
    /// Modules are moved, cast or loaded, also where a hook of a module does it during its forward pass.
    Moved,
    /// Another method of a module allocates: `state_dict`, `zero_grad`, `register_buffer`.
    Method,
    Unknown,
    Other,
}

impl Phase {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Optimizer => "optimizer",
            Self::Backward => "backward",
            Self::Forward => "forward",
            Self::Moved => "moving or loading modules",
            Self::Method => "other methods of modules",
            Self::Unknown => "unknown",
            Self::Other => "other",
        }
    }
}

/// Bytes per phase.
pub(crate) type ByPhase = BTreeMap<Phase, i64>;

/// Writes the phases of the reference program, which counts as forward whatever a method of a module allocates.
pub(crate) fn as_reference<S: Serializer>(phases: &ByPhase, to: S) -> Result<S::Ok, S::Error> {
    let mut phases = phases.clone();
    for own in [Phase::Moved, Phase::Method] {
        if let Some(bytes) = phases.remove(&own) {
            let sum = phases.entry(Phase::Forward).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    phases.serialize(to)
}
