//! The parts of a training step.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

/// The part of a training step, as far as the stack shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    Optimizer,
    Backward,
    Forward,
    /// A function `forward` of the program, outside the call of a module: modules may be called without their hooks.
    Called,
    /// Modules are moved, cast or loaded, also where a hook of a module does it during its forward pass.
    Moved,
    /// Another method of a module allocates: `state_dict`, `zero_grad`, `register_buffer`.
    Method,
    #[default]
    Unknown,
    Other,
}

impl Phase {
    /// The part of a step, however modules are called.
    pub(crate) fn of_step(self) -> Self {
        match self {
            Self::Called => Self::Forward,
            phase => phase,
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Optimizer => "optimizer",
            Self::Backward => "backward",
            Self::Forward => "forward",
            Self::Called => "forward, without hooks",
            Self::Moved => "moving or loading modules",
            Self::Method => "other methods of modules",
            Self::Unknown => "unknown",
            Self::Other => "other",
        }
    }
}

/// Bytes per phase.
pub(crate) type ByPhase = BTreeMap<Phase, i64>;

/// Writes the phases of the reference program, which counts as forward whatever a method of a module allocates, and nothing else.
pub(crate) fn as_reference<S: Serializer>(phases: &ByPhase, to: S) -> Result<S::Ok, S::Error> {
    let mut phases = phases.clone();
    for (own, known) in [
        (Phase::Moved, Phase::Forward),
        (Phase::Method, Phase::Forward),
        (Phase::Called, Phase::Other),
    ] {
        if let Some(bytes) = phases.remove(&own) {
            let sum = phases.entry(known).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    phases.serialize(to)
}
