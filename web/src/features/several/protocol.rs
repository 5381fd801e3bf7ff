//! Messages about related files and comparisons.

use serde::{Deserialize, Serialize};

use crate::protocol::{CaptureFacts, Chapter, Charted, JobId};

/// What a file tells of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Companion {
    /// It holds the capture of the graphs that the other replays.
    Capture,
    /// It ran without graphs what the other replays with them.
    Mapping,
    /// It is the kernel map of such a run.
    Map,
}

/// A file beside a trace that tells of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// Its own job, which names it.
    pub job: JobId,
    /// What it tells.
    pub role: Companion,
    /// What a list of captures says of it.
    pub listed: Option<CaptureFacts>,
}

/// A file that is no trace, but tells of traces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Aside {
    /// A kernel map.
    Map {
        /// Digests of the kernels' names, by which its trace is found.
        names: Vec<u32>,
        /// Kernels in it.
        n_kernels: u64,
        /// The stages that it tells apart, as a person reads them.
        stages: Vec<String>,
    },
    /// A list of captures: `execution_details.json`.
    Captures(Vec<CaptureFacts>),
    /// A memory snapshot or a memory timeline: the chapters of its report.
    Snapshot {
        /// Bytes by category over time: without blocks and segments.
        is_timeline: bool,
        /// Reserved and allocated bytes of all devices, in words.
        summary: String,
        /// The chapters, the findings' first.
        chapters: Vec<Chapter>,
        /// The devices whose memory can be looked at.
        charts: Vec<Charted>,
        /// What a comparison with a later snapshot needs, for that one's worker; empty for a memory timeline.
        summed: Vec<u8>,
        /// What a trace of the same run is recognised by, for that one's worker; empty for a memory timeline.
        run: Vec<u8>,
    },
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
