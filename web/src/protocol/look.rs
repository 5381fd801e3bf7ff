//! Messages about pictures that a worker draws: what a person does to them goes in, ink comes out on a canvas that the page has
//! handed over.

use serde::{Deserialize, Serialize};

use super::{Chapter, Program};

/// The name under which a canvas comes with its first message.
pub const CANVAS: &str = "canvas";

/// A picture that a worker draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Surface {
    /// Memory over the events of a snapshot.
    Memory,
    /// The blocks of a snapshot at a moment.
    Blocks,
    /// The lanes of a trace.
    Lanes,
    /// What lies over the lanes and changes with the pointer: the selection, arrows, the slice below the pointer. It takes what a
    /// person does to both.
    Over,
}

impl Surface {
    /// The program that draws it.
    #[must_use]
    pub fn program(self) -> Program {
        match self {
            Self::Memory | Self::Blocks => Program::Snapshot,
            Self::Lanes | Self::Over => Program::Lanes,
        }
    }

    /// Stable id.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Blocks => "blocks",
            Self::Lanes => "lanes",
            Self::Over => "over",
        }
    }
}

/// What a person looks at in such pictures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Looked {
    /// The device, by its place in the list.
    pub device: u32,
    /// What the layers stand for, in words after "by"; empty for a memory timeline.
    pub stacked_by: String,
    /// Categories and labels of the layers.
    pub legend: Vec<(String, String)>,
    /// For the status bar and for people who do not see it.
    pub says: String,
    /// The range, else the slice that is selected, in ns on the clock of the file.
    pub times: Option<(i64, i64)>,
    /// The range, in ns from the first slice.
    pub range: Option<(i64, i64)>,
    /// Its figures.
    pub chapters: Vec<Chapter>,
    /// The order of tracks, if a person changed it: to be kept.
    pub layout: Option<String>,
    /// A file that a person asked for: its name and its text.
    pub file: Option<(String, String)>,
}

/// What the lanes of a trace show.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LanesFacts {
    /// How many slices and tracks, and what is not drawn.
    pub says: String,
    /// When the first slice begins, in ns since 1970; `None` where the file does not tell.
    pub starts_ns: Option<i64>,
    /// From there to the end of the last slice.
    pub span_ns: i64,
    /// The first steps by name, with their starts in ns from the first slice.
    pub steps: Vec<(String, i64)>,
}

/// The memory of a trace, from its `[memory]` events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryPictures {
    /// The devices.
    pub charts: Vec<Charted>,
    /// Their figures.
    pub chapters: Vec<Chapter>,
}

/// A device whose memory can be looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Charted {
    /// Its name.
    pub device: String,
    /// Categories and labels of the layers that a person sees.
    pub legend: Vec<(String, String)>,
    /// Whether its events have times.
    pub has_times: bool,
}
