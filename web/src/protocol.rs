//! What page and worker say to each other. Closed: a message that is not listed here does not exist.
//!
//! Every job is one file in one worker. The `File` goes to the worker and the repaired `Blob` comes back
//! by handle, beside these values (see `tasks::workers` and `worker::port`); a decoded trace never crosses.
//! A trace that tells of another is read again in the other's worker; two runs are compared by what each
//! worker writes down of its own.
//!
//! There is no `Cancel`: a worker that reads a file synchronously would not see it before it is done, so
//! the page ends the worker, which also gives all its memory back.

mod artifacts;
mod details;

use std::borrow::Cow;

use kinetoscope::report::{Finding, Section, Table};
use serde::{Deserialize, Serialize};

use crate::shared::Shared;

mod several;

pub use artifacts::{ArtifactFile, ArtifactWish, Artifacts};
pub use details::{
    CallSite, FIRST_LAUNCHES, InstanceRow, KernelDetails, KernelKey, OverlapWindow, WindowLane,
    WindowSlice,
};
pub use kinetoscope::artifacts::Artifact;
pub use kinetoscope::{DrawnLane, DrawnSlice, Fate, Place, Signs};
pub use several::{Companion, Comparison, Verdict};

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
    /// Also read the file that comes with this message: it tells of the job's own.
    AddCompanion {
        /// The job.
        job: JobId,
        /// The file's own job, which names it here, too.
        companion: JobId,
        /// What it tells.
        role: Companion,
        /// The file's name.
        name: String,
    },
    /// Forget such a file.
    RemoveCompanion {
        /// The job.
        job: JobId,
        /// The file's own job.
        companion: JobId,
    },
    /// Run the analyses.
    Analyze {
        /// The job.
        job: JobId,
    },
    /// Trace GPU time back to where it came from, by stage.
    Triage {
        /// The job.
        job: JobId,
    },
    /// Write down the run, so that another worker can compare it with its own.
    Describe {
        /// The job.
        job: JobId,
    },
    /// Compare the job's run with another.
    Compare {
        /// The job: run A.
        job: JobId,
        /// The job of run B.
        with: JobId,
        /// Run B, as its artifacts tell.
        run: Vec<Artifact>,
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
    /// Tell a kernel's launches and places.
    Kernel {
        /// The job.
        job: JobId,
        /// Which.
        key: KernelKey,
    },
    /// Tell what ran around an event.
    Window {
        /// The job.
        job: JobId,
        /// The number of the event in the file.
        event: u32,
    },
    /// Make the artifacts.
    Artifacts {
        /// The job.
        job: JobId,
        /// What is wanted in them.
        wish: ArtifactWish,
        /// With the repaired trace and the archive, which take longer.
        with_trace: bool,
    },
}

impl Request {
    /// The job whose file comes with this message.
    #[must_use]
    pub fn file(&self) -> Option<JobId> {
        match self {
            Self::Open { job, .. } => Some(*job),
            Self::AddCompanion { companion, .. } => Some(*companion),
            _ => None,
        }
    }

    /// Whether the answer follows from companions, too.
    #[must_use]
    pub fn needs_companions(&self) -> bool {
        matches!(
            self,
            Self::Triage { .. }
                | Self::Describe { .. }
                | Self::Compare { .. }
                | Self::Kernel { .. }
                | Self::Artifacts { .. }
        )
    }
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
    /// Tracing GPU time back to where it came from.
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
            Self::Analyzing => "Analyzing",
            Self::Planning => "Checking against Perfetto's rules",
            Self::Triaging => "Tracing kernels back to where they came from",
            Self::Repairing => "Writing the repaired file",
            Self::ReadingCompanion(Companion::Capture) => "Reading the capture",
            Self::ReadingCompanion(Companion::Mapping) => "Reading the mapping trace",
            Self::Digesting => "Taking the file's digest",
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
    /// A companion is read, or why it could not be. The job goes on either way.
    Companion {
        /// The job.
        job: JobId,
        /// The companion's own job.
        companion: JobId,
        /// Why it could not be read.
        failure: Option<Failure>,
    },
    /// The run is written down.
    Described {
        /// The job.
        job: JobId,
        /// The run, as its artifacts tell.
        run: Result<Vec<Artifact>, Failure>,
    },
    /// Two runs are compared.
    Compared {
        /// The job: run A.
        job: JobId,
        /// The job of run B.
        with: JobId,
        /// What differs.
        comparison: Result<Comparison, Failure>,
    },
    /// The analyses are done.
    Report {
        /// The job.
        job: JobId,
        /// Their results.
        report: Analyses,
    },
    /// The next rows of a table, before the message that the table itself comes with. A long table in one
    /// message would keep the page from answering for longer than a person notices.
    Rows {
        /// The job.
        job: JobId,
        /// Id of the table.
        table: String,
        /// The rows.
        rows: Vec<Vec<kinetoscope::report::Cell>>,
    },
    /// The repair is planned.
    RepairPlanned {
        /// The job.
        job: JobId,
        /// What it will do.
        plan: Plan,
    },
    /// Triage is done.
    Triage {
        /// The job.
        job: JobId,
        /// What it found.
        triage: Triage,
    },
    /// The repaired file is written; its blob comes with this message.
    Repaired {
        /// The job.
        job: JobId,
        /// What was written.
        repaired: Repaired,
    },
    /// A kernel's launches and places.
    Kernel {
        /// The job.
        job: JobId,
        /// What there is.
        kernel: KernelDetails,
    },
    /// What ran around an event.
    Window {
        /// The job.
        job: JobId,
        /// What there is.
        window: OverlapWindow,
    },
    /// The artifacts are made; their blobs come with this message.
    Artifacts {
        /// The job.
        job: JobId,
        /// What was made.
        artifacts: Artifacts,
    },
    /// The artifacts cannot be made; everything else can.
    NoArtifacts {
        /// The job.
        job: JobId,
        /// Why, and what to do.
        failure: Failure,
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
    pub problem_table: Shared<Table>,
    /// What part it can play beside other traces.
    pub signs: Shared<Signs>,
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
    /// What recorded it: "CUDA 12.4".
    pub platform: String,
    /// The rank that the file says it is from.
    pub rank: Option<i64>,
    /// The finding in one sentence.
    pub verdict: String,
    /// Time in which the GPU did something, in percent of its span; `None` without GPU slices.
    pub busy_pct: Option<f64>,
    /// From the first start to the last end of a GPU slice.
    pub span_ns: i64,
    /// Time in which the GPU did something.
    pub busy_ns: i64,
    /// Kernels.
    pub n_kernels: u64,
    /// Distinct names of kernels.
    pub n_kernel_names: u64,
    /// Sum of their durations.
    pub kernel_sum_ns: i64,
    /// Parts of the stacked bar, largest first.
    pub parts: Shared<Vec<Part>>,
    /// The chapters of the report.
    pub chapters: Vec<Chapter>,
}

impl Analyses {
    /// The chapter of that id.
    #[must_use]
    pub fn chapter(&self, id: &str) -> Option<&Chapter> {
        self.chapters.iter().find(|chapter| chapter.id == id)
    }
}

/// The results of triage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Triage {
    /// The stages that have GPU work, in order.
    pub stages: Shared<Vec<Choice>>,
    /// The devices that have GPU work, in order.
    pub devices: Shared<Vec<Choice>>,
    /// The chapters of the report.
    pub chapters: Vec<Chapter>,
}

impl Triage {
    /// The chapter of that id.
    #[must_use]
    pub fn chapter(&self, id: &str) -> Option<&Chapter> {
        self.chapters.iter().find(|chapter| chapter.id == id)
    }
}

/// A stage or a device that tables can be narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Its id, as it stands in the tables.
    pub id: String,
    /// What a person reads.
    pub title: String,
    /// Its share of GPU time, in percent.
    pub share_pct: f64,
}

/// A [`Section`] whose tables the components can hold on to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chapter {
    /// Stable id: `kernels`.
    pub id: Cow<'static, str>,
    /// The heading.
    pub title: Cow<'static, str>,
    /// Sentences under it.
    pub intro: Vec<String>,
    /// The evidence.
    pub tables: Vec<Shared<Table>>,
    /// What follows from it.
    pub findings: Vec<Finding>,
}

impl Chapter {
    /// The table of that id.
    #[must_use]
    pub fn table(&self, id: &str) -> Option<&Shared<Table>> {
        self.tables.iter().find(|table| table.id == id)
    }
}

impl From<Section> for Chapter {
    fn from(section: Section) -> Self {
        let Section { id, title, intro, tables, findings } = section;
        Self { id, title, intro, tables: tables.into_iter().map(Shared::new).collect(), findings }
    }
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
    pub proof: Shared<Table>,
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
