//! What page and worker say to each other. Closed: a message that is not listed here does not exist.
//!
//! Every job is one file in one worker. The `File` goes to the worker and the repaired `Blob` comes back
//! by handle, beside these values (see `tasks::workers` and `worker::port`); a decoded trace never crosses.
//!
//! There is no `Cancel`: a worker that reads a file synchronously would not see it before it is done, so
//! the page ends the worker, which also gives all its memory back.

use report::{Section, Table};
use serde::{Deserialize, Serialize};

/// Names one file on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(pub u32);

/// From the page to the worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Read and decode the file that comes with this message.
    Open {
        /// The job.
        job: JobId,
        /// The file's name, for titles and for the name of the repaired file.
        name: String,
    },
    /// Run the analyses.
    Analyze {
        /// The job.
        job: JobId,
    },
    /// Find out what the file needs.
    PlanRepair {
        /// The job.
        job: JobId,
        /// Whether impossible durations may be clipped; off unless asked for by name.
        clip_impossible: bool,
    },
    /// Write the repaired file.
    Repair {
        /// The job.
        job: JobId,
        /// Compressed or not.
        format: Format,
    },
}

/// How the repaired file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Format {
    /// `.json.gz`
    Gzip,
    /// `.json`
    Json,
}

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
    /// Comparing with Perfetto's rules.
    Planning,
    /// Writing the repaired file.
    Repairing,
}

impl Stage {
    /// What a person reads while it lasts.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Starting => "Starting",
            Self::Reading => "Reading",
            Self::Analyzing => "Analyzing",
            Self::Planning => "Checking against Perfetto's rules",
            Self::Repairing => "Writing the repaired file",
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

/// From the worker to the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Response {
    /// The worker runs and takes requests. Page and worker must come from one build.
    Ready {
        /// Version of the worker.
        version: String,
    },
    /// The job goes on.
    Progress {
        /// The job.
        job: JobId,
        /// How far it is.
        progress: Progress,
    },
    /// The file is decoded.
    Opened {
        /// The job.
        job: JobId,
        /// What it is.
        opened: Opened,
    },
    /// The analyses are done.
    Report {
        /// The job.
        job: JobId,
        /// Their results.
        report: Analyses,
    },
    /// The repair is planned.
    RepairPlanned {
        /// The job.
        job: JobId,
        /// What it will do.
        plan: Plan,
    },
    /// The repaired file is written; its blob comes with this message.
    Repaired {
        /// The job.
        job: JobId,
        /// What was written.
        repaired: Repaired,
    },
    /// The job cannot go on.
    Failed {
        /// The job.
        job: JobId,
        /// Why, and what to do.
        failure: Failure,
    },
}

/// A decoded file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// What the file is, in a few words: "PyTorch trace, CUDA".
    pub kind: String,
    /// The rank that it says it is from.
    pub rank: Option<i64>,
    /// Whether the file is compressed.
    pub gzip: bool,
    /// Size of the file.
    pub file_bytes: u64,
    /// Size of the JSON in it.
    pub json_bytes: u64,
    /// Events in it.
    pub n_events: u64,
    /// What the reader had to put up with.
    pub problems: Vec<ProblemCard>,
    /// The same as a table.
    pub problem_table: Table,
}

/// How much a problem matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Severity {
    /// Nothing is lost.
    #[default]
    Note,
    /// A reader may be misled, or other tools stumble.
    Warning,
    /// Data is missing.
    Error,
}

/// One kind of problem, as a card: what, where, what to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProblemCard {
    /// Id of the kind.
    pub kind: String,
    /// How much it matters.
    pub severity: Severity,
    /// What it is.
    pub title: String,
    /// What it means and what to do.
    pub help: String,
    /// How often.
    pub count: u64,
    /// Where it was first seen, in bytes of the decompressed file.
    pub first_offset: u64,
    /// The text there.
    pub excerpt: String,
}

/// The results of the analyses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Analyses {
    /// The finding in one sentence.
    pub verdict: String,
    /// Figures of the overview, in order.
    pub figures: Vec<Figure>,
    /// Parts of the stacked bar, largest first.
    pub parts: Vec<Part>,
    /// The chapters of the report.
    pub sections: Vec<Section>,
}

/// One figure of the overview, with where its evidence is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is.
    pub label: String,
    /// The value as a cell, so that text and exact value come from one place; `None` means not known.
    pub value: Option<report::Cell>,
    /// A second line.
    pub note: String,
    /// Id of the view with the evidence.
    pub view: String,
}

/// A part of the stacked bar.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Category.
    pub category: String,
    /// Its time.
    pub total_ns: i64,
    /// Its share of the kernels' time, in percent.
    pub share_pct: f64,
}

/// What the repair will do, and what Perfetto makes of the file without it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Whether the repaired file differs from this one at all.
    pub damaged: bool,
    /// The finding in one sentence.
    pub verdict: String,
    /// What each range of Perfetto versions does with the file before and after.
    pub predictions: Table,
    /// Slices that Perfetto v51 to v56 lose today.
    pub drops_before: u64,
    /// The same after the repair.
    pub drops_after: u64,
    /// Why a time base is subtracted, where one is.
    pub time_base: Option<String>,
    /// What is done, by rule.
    pub rules: Table,
    /// What is done, by slice.
    pub log: Table,
    /// The worst places, before and after.
    pub places: Vec<Place>,
    /// Slices with an impossible duration.
    pub n_impossible: u64,
    /// Whether these are clipped.
    pub clip_impossible: bool,
}

/// A stretch of time on some lanes, before and after.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Where it is and what happens there.
    pub title: String,
    /// When it starts, on the file's clock.
    pub start_ns: i64,
    /// How long it is.
    pub dur_ns: i64,
    /// Lanes as Perfetto v51 to v56 show them, with what they drop.
    pub before: Vec<Lane>,
    /// Lanes of the repaired file.
    pub after: Vec<Lane>,
}

/// A row of slices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Name of the thread.
    pub name: String,
    /// Its slices, from left to right.
    pub slices: Vec<LaneSlice>,
}

/// What becomes of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// It stays where it is.
    #[default]
    Kept,
    /// Perfetto drops it.
    Dropped,
    /// The repair gives it another lane.
    Moved,
}

/// A slice in a lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaneSlice {
    /// Its name.
    pub name: String,
    /// Category, for the colour.
    pub category: String,
    /// Start, relative to the place's.
    pub start_ns: i64,
    /// Duration.
    pub dur_ns: i64,
    /// How deep it is nested in its lane.
    pub depth: u32,
    /// What becomes of it.
    pub fate: Fate,
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
    /// Whether every line of the proof holds.
    pub proven: bool,
    /// Counts and sums before and after.
    pub proof: Table,
}

/// Why a job cannot go on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What happened, in a few words.
    pub title: String,
    /// What it means.
    pub what: String,
    /// Where in the file.
    pub place: Option<String>,
    /// What to do.
    pub advice: String,
    /// The text at that place.
    pub excerpt: Option<String>,
}
