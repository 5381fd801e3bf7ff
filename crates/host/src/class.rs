//! What calls of runtimes and drivers do, by their names.

use dialect::calls::{Does, blocks, does};
use serde::Serialize;

/// What a call does, as the tables of calls have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Launches a graph.
    GraphLaunch,
    /// Waits for the GPU.
    Sync,
    /// Launches a kernel.
    Launch,
    /// Copies.
    Memcpy,
    /// Fills.
    Memset,
    /// Allocates, registers or maps memory.
    Malloc,
    /// Gives it back.
    Free,
    /// Records or asks for an event, or makes a stream wait for one.
    Event,
    /// Loads code.
    ModuleLoad,
    /// Everything else.
    Other,
}

impl Class {
    /// The class of a call by its name.
    #[must_use]
    pub fn of(call: &str) -> Self {
        match does(call) {
            Some(Does::LaunchGraph) => Self::GraphLaunch,
            Some(Does::Synchronize) => Self::Sync,
            Some(Does::Launch) => Self::Launch,
            Some(Does::Copy) => Self::Memcpy,
            Some(Does::Fill) => Self::Memset,
            Some(Does::Allocate) => Self::Malloc,
            Some(Does::Free) => Self::Free,
            Some(Does::Event) => Self::Event,
            Some(Does::LoadModule) => Self::ModuleLoad,
            Some(Does::LaunchHostFunction) | None => Self::Other,
        }
    }

    /// What a person reads.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::GraphLaunch => "launches a graph",
            Self::Sync => "waits for the GPU",
            Self::Launch => "launches a kernel",
            Self::Memcpy => "copies",
            Self::Memset => "fills",
            Self::Malloc => "allocates",
            Self::Free => "frees",
            Self::Event => "events",
            Self::ModuleLoad => "loads code",
            Self::Other => "other",
        }
    }

    /// Whether such a call puts work on the GPU.
    #[must_use]
    pub(crate) fn makes_work(self) -> bool {
        matches!(self, Self::Launch | Self::GraphLaunch | Self::Memcpy | Self::Memset)
    }
}

/// Whether a call copies and, by its name, waits for the copy: `cudaMemcpy`, `hipMemcpyWithStream`.
#[must_use]
pub(crate) fn is_blocking_copy(call: &str) -> bool {
    Class::of(call) == Class::Memcpy && blocks(call)
}
