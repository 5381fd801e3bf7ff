//! Messages about artifacts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::{Beside, JobId};

/// What a person wants in the artifacts of a file. Facts go as they were typed and flags as the text of their file: the
/// page has no JSON library.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArtifactWish {
    /// What the user knows, by key.
    pub facts: BTreeMap<String, String>,
    /// The text of a `server_args.json`.
    pub server_args: Option<String>,
    /// Only this stage.
    pub stage: Option<String>,
    /// Only this device.
    pub device: Option<String>,
    /// Kernels below this share of their stage stand in one row of the summary, in percent.
    pub cutoff_pct: f64,
    /// What was launched before the window counts, too.
    pub count_before_window: bool,
    /// Names of hosts and users stay.
    pub keep_names: bool,
    /// The files that told of it as this was asked for: what was made with others is not what is wanted.
    pub beside: Vec<Beside>,
    /// The files of other ranks that it was compared with, in the same way.
    pub ranks: Vec<JobId>,
}

/// Which artifacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Parts {
    /// The texts.
    Tables,
    /// Also the repaired trace and the archive, which take longer.
    Everything,
    /// The kernel map, which is in no archive.
    KernelMap,
    /// The report on resources, which is in none either.
    Report,
}

/// The artifacts of a file; their blobs come with the message, each under its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Artifacts {
    /// What they were made for.
    pub wish: ArtifactWish,
    /// The files, in the order of the archive; the archive is the last.
    pub files: Vec<ArtifactFile>,
}

impl Artifacts {
    /// The size of a file, if it was made.
    #[must_use]
    pub fn bytes_of(&self, name: &str) -> Option<u64> {
        self.files.iter().find(|file| file.name == name).map(|file| file.bytes)
    }
}

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactFile {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}
