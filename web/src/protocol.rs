//! What page and worker say to each other. Closed: a message that is not listed here does not exist.
//!
//! Every job is one file in workers of its own. The `File` goes to the worker and the repaired `Blob` comes back
//! by handle, beside these values (see `tasks::workers` and `worker::port`); a decoded trace never crosses.
//! A trace that tells of another is read again in the other's worker; two runs are compared by what each
//! worker writes down of its own.
//!
//! A job has up to two workers, one of each [`Program`]: the second is loaded when triage is asked for.
//!
//! There is no `Cancel`: a worker that reads a file synchronously would not see it before it is done, so
//! the page ends the worker, which also gives all its memory back.

mod file;
mod look;
mod progress;
mod report;

use serde::{Deserialize, Serialize};

use crate::shared::Shared;

pub use crate::features::downloads::protocol::{ArtifactFile, ArtifactWish, Artifacts, Parts};
pub use crate::features::repair::protocol::{Format, Plan, Repaired};
pub use crate::features::several::protocol::{Aside, Beside, Companion, Comparison, Verdict};
pub use crate::features::triage::protocol::{
    CallSite, FIRST_LAUNCHES, InstanceRow, KernelDetails, KernelKey, OverlapWindow, WindowSlice,
};
pub use file::{EventRange, Failure, Opened, ProblemCard, Severity};
pub use kinetoscope::artifacts::Artifact;
pub use kinetoscope::scene::{Input, SharedAxis, Shown};
pub use kinetoscope::{BeforeWindowSum, CaptureFacts, DrawnLane, DrawnSlice, Fate, Place, Signs};
pub use look::{CANVAS, Charted, LanesFacts, Looked, MemoryPictures, Surface};
pub use progress::{Progress, Stage};
pub use report::{
    Analyses, Bar, Chapter, Choice, Diagnosis, Lacks, Part, Picture, RUN, StepWindow, Triage,
    is_run,
};

/// Names one file on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(pub u32);

/// Numbers the requests of a page. The number is not part of a message: it travels with it, like the handle of a file, and
/// the worker's port puts it on every answer to the request. 0 is none: a worker that starts answers no request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// The name under which the repaired file comes with its message.
pub const FILE: &str = "file";
/// The name under which the log of the repair comes with its message.
pub const LOG: &str = "log";

/// From the page to the worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Read and decode the file that comes with this message.
    Open {
        job: JobId,
        /// The file's name, for titles and for the name of the repaired file.
        name: String,
        /// The events to keep of each device, if it is a memory snapshot; `None` for all.
        events: Option<EventRange>,
    },
    /// Also read the file that comes with this message: it tells of the job's own.
    AddCompanion {
        job: JobId,
        /// The file, by its own job, and what it tells.
        beside: Beside,
        /// The file's name.
        name: String,
    },
    /// Forget such a file.
    RemoveCompanion {
        job: JobId,
        /// The file's own job.
        companion: JobId,
    },
    /// Run the analyses.
    Analyze { job: JobId },
    /// Trace GPU time back to where it came from, by stage.
    Triage {
        job: JobId,
        /// Whether what was launched before the window counts, too.
        count_before_window: bool,
    },
    /// Tell why the run is slow, and what the CPU did.
    Diagnose {
        job: JobId,
        /// Whether what was launched before the window counts, too.
        count_before_window: bool,
        /// Only this step.
        step: Option<StepWindow>,
        /// What an iteration takes without the profiler, in ns, where a person has timed it.
        iteration_ns: Option<i64>,
    },
    /// Write down what the file's rank calls together with others, for the worker of another rank.
    RankCalls { job: JobId },
    /// Diagnose the file as one of several ranks from now on.
    OtherRanks {
        job: JobId,
        /// What the workers of the others have written down; then [`Diagnosis::scaling`] of runs with batches of other sizes.
        others: Vec<Shared<Vec<u8>>>,
    },
    /// Write down the run, so that another worker can compare it with its own.
    Describe { job: JobId },
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
        job: JobId,
        /// Whether impossible durations may be clipped; off unless asked for by name.
        clip_impossible: bool,
    },
    /// Write the repaired file.
    Repair {
        job: JobId,
        /// Compressed or not.
        format: Format,
    },
    /// Tell a kernel's launches and places.
    Kernel {
        job: JobId,
        key: KernelKey,
        /// Whether what was launched before the window counts, too.
        count_before_window: bool,
        /// Only in this step.
        step: Option<StepWindow>,
    },
    /// Tell what ran around an event.
    Window {
        job: JobId,
        /// The number of the event in the file.
        event: u32,
    },
    /// Compute the digest of a benchmark's configuration.
    BenchmarkConfig {
        job: JobId,
        /// The file's content.
        bytes: Vec<u8>,
    },
    /// Write the script that times an op alone.
    Benchmark {
        job: JobId,
        /// The op.
        op: String,
    },
    /// A person did something to a picture. Its canvas comes with the first of these messages.
    Look { job: JobId, surface: Surface, input: Input },
    /// Draw the memory of a trace. The worker has no file.
    Memory {
        job: JobId,
        /// What [`Diagnosis::memory`] holds.
        recorded: Vec<u8>,
    },
    /// Draw what the program that draws lanes does not find out by itself.
    Told {
        job: JobId,
        /// What [`Diagnosis::told`] holds.
        recorded: Vec<u8>,
    },
    /// Write down the memory of a snapshot over time, for the program that draws lanes.
    Levels { job: JobId },
    /// Tell what changed since an earlier snapshot.
    Changes {
        job: JobId,
        /// What the earlier one's [`Aside::Snapshot`] says for comparisons.
        earlier: Vec<u8>,
    },
    /// Tell what the job's trace says of a snapshot.
    InTrace {
        /// The job of the trace.
        job: JobId,
        /// The job of the snapshot.
        snapshot: JobId,
        /// What the snapshot's [`Aside::Snapshot`] says of its run.
        run: Vec<u8>,
    },
    /// Make the artifacts.
    Artifacts {
        job: JobId,
        /// What is wanted in them.
        wish: ArtifactWish,
        parts: Parts,
    },
}

/// The programs of a file's workers. Each has a memory of its own, so each reads the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// What every file needs: the first screen and the repair.
    First,
    /// Triage, and what follows from it: comparisons, artifacts, details of a kernel. Loaded after the first screen.
    Triage,
    /// Memory snapshots. Loaded when one is dropped.
    Snapshot,
    /// The lanes of a trace. Loaded when the timeline is shown.
    Lanes,
}

impl Request {
    /// The job whose workers it is for.
    #[must_use]
    pub fn job(&self) -> JobId {
        match self {
            Self::Open { job, .. }
            | Self::AddCompanion { job, .. }
            | Self::RemoveCompanion { job, .. }
            | Self::Analyze { job }
            | Self::Triage { job, .. }
            | Self::Diagnose { job, .. }
            | Self::RankCalls { job }
            | Self::OtherRanks { job, .. }
            | Self::Describe { job }
            | Self::Compare { job, .. }
            | Self::PlanRepair { job, .. }
            | Self::Repair { job, .. }
            | Self::Kernel { job, .. }
            | Self::Window { job, .. }
            | Self::BenchmarkConfig { job, .. }
            | Self::Benchmark { job, .. }
            | Self::Look { job, .. }
            | Self::Told { job, .. }
            | Self::Memory { job, .. }
            | Self::Levels { job }
            | Self::Changes { job, .. }
            | Self::InTrace { job, .. }
            | Self::Artifacts { job, .. } => *job,
        }
    }

    /// The program that answers. (Both open files.)
    #[must_use]
    pub fn program(&self) -> Program {
        match self {
            Self::Open { .. }
            | Self::Analyze { .. }
            | Self::PlanRepair { .. }
            | Self::Repair { .. } => Program::First,
            Self::AddCompanion { .. }
            | Self::RemoveCompanion { .. }
            | Self::Triage { .. }
            | Self::Diagnose { .. }
            | Self::RankCalls { .. }
            | Self::OtherRanks { .. }
            | Self::Describe { .. }
            | Self::Compare { .. }
            | Self::Kernel { .. }
            | Self::Window { .. }
            | Self::BenchmarkConfig { .. }
            | Self::Benchmark { .. }
            | Self::InTrace { .. }
            | Self::Artifacts { .. } => Program::Triage,
            Self::Look { surface, .. } => surface.program(),
            Self::Memory { .. } | Self::Levels { .. } | Self::Changes { .. } => Program::Snapshot,
            Self::Told { .. } => Program::Lanes,
        }
    }

    /// The job whose file comes with this message.
    #[must_use]
    pub fn file(&self) -> Option<JobId> {
        match self {
            Self::Open { job, .. } => Some(*job),
            Self::AddCompanion { beside, .. } => Some(beside.job),
            Self::RemoveCompanion { .. }
            | Self::Analyze { .. }
            | Self::Triage { .. }
            | Self::Diagnose { .. }
            | Self::RankCalls { .. }
            | Self::OtherRanks { .. }
            | Self::Describe { .. }
            | Self::Compare { .. }
            | Self::PlanRepair { .. }
            | Self::Repair { .. }
            | Self::Kernel { .. }
            | Self::Window { .. }
            | Self::BenchmarkConfig { .. }
            | Self::Benchmark { .. }
            | Self::Look { .. }
            | Self::Told { .. }
            | Self::Memory { .. }
            | Self::Levels { .. }
            | Self::Changes { .. }
            | Self::InTrace { .. }
            | Self::Artifacts { .. } => None,
        }
    }

    /// Whether the answer follows from companions, too.
    #[must_use]
    pub fn needs_companions(&self) -> bool {
        match self {
            Self::Triage { .. }
            | Self::Diagnose { .. }
            | Self::Describe { .. }
            | Self::Compare { .. }
            | Self::Kernel { .. }
            | Self::Artifacts { .. } => true,
            Self::Open { .. }
            | Self::AddCompanion { .. }
            | Self::RemoveCompanion { .. }
            | Self::Analyze { .. }
            | Self::RankCalls { .. }
            | Self::OtherRanks { .. }
            | Self::PlanRepair { .. }
            | Self::Repair { .. }
            | Self::BenchmarkConfig { .. }
            | Self::Benchmark { .. }
            | Self::Look { .. }
            | Self::Memory { .. }
            | Self::Levels { .. }
            | Self::Told { .. }
            | Self::Changes { .. }
            | Self::InTrace { .. }
            | Self::Window { .. } => false,
        }
    }
}

/// From the worker to the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Response {
    /// The worker runs and handles requests. Page and worker must come from one build.
    Ready {
        /// Build of the worker ([`crate::BUILD`]).
        build: String,
    },
    /// The job goes on.
    Progress {
        job: JobId,
        /// How far it is.
        progress: Progress,
    },
    /// The file is decoded.
    Opened { job: JobId, opened: Opened },
    /// The file is no trace, but another program reads it.
    NoTrace {
        job: JobId,
        /// Which one.
        reader: Program,
    },
    /// The file is no trace, but tells of traces; nothing else can be asked of it.
    Aside { job: JobId, aside: Aside },
    /// A companion is read, or why it could not be. The job goes on either way.
    Companion {
        job: JobId,
        /// The companion's own job.
        companion: JobId,
        /// Why it could not be read.
        failure: Option<Failure>,
    },
    /// What the file's rank calls together with others is written down.
    RankCalls {
        job: JobId,
        /// For [`Request::OtherRanks`].
        calls: Vec<u8>,
    },
    /// The run is written down.
    Described {
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
    Report { job: JobId, report: Analyses },
    /// The repair is planned.
    RepairPlanned {
        job: JobId,
        /// What it will do.
        plan: Plan,
    },
    /// Triage is done.
    Triage {
        job: JobId,
        /// What it found.
        triage: Triage,
    },
    /// The diagnosis is done.
    Diagnosed {
        job: JobId,
        /// What it found.
        diagnosis: Diagnosis,
    },
    /// The repaired file is written; its blob comes with this message.
    Repaired {
        job: JobId,
        /// What was written.
        repaired: Repaired,
    },
    /// A kernel's launches and places.
    Kernel {
        job: JobId,
        /// What there is.
        kernel: KernelDetails,
    },
    /// What ran around an event.
    Window {
        job: JobId,
        /// What there is.
        window: OverlapWindow,
    },
    /// The digest of a benchmark's configuration.
    BenchmarkConfig {
        job: JobId,
        /// `sha256:` and the digest.
        digest: String,
    },
    /// The script that times an op alone.
    Benchmark {
        job: JobId,
        /// The op.
        op: String,
        /// The script, or why there is none.
        script: Result<String, String>,
    },
    /// The artifacts are made; their blobs come with this message.
    Artifacts {
        job: JobId,
        /// What was made.
        artifacts: Artifacts,
    },
    /// The artifacts cannot be made; everything else can.
    NoArtifacts {
        job: JobId,
        /// Why, and what to do.
        failure: Failure,
    },
    /// The memory of a trace can be looked at.
    Memory {
        job: JobId,
        /// What there is to see.
        pictures: MemoryPictures,
    },
    /// The lanes of a trace can be looked at.
    Lanes {
        job: JobId,
        /// What they show; why there are none.
        lanes: Result<LanesFacts, Failure>,
    },
    /// What a person looks at.
    Looked {
        job: JobId,
        /// The program that draws it.
        program: Program,
        /// Its figures.
        looked: Looked,
    },
    /// The memory of a snapshot over time is written down.
    Levels {
        job: JobId,
        /// For [`Request::Told`].
        recorded: Vec<u8>,
    },
    /// What a picture shows, for those of other files on the same axis.
    Shown { job: JobId, shown: Shown },
    /// What changed since an earlier snapshot.
    Changes {
        job: JobId,
        /// The chapters of the comparison.
        chapters: Vec<Chapter>,
    },
    /// What a trace says of a snapshot.
    InTrace {
        /// The job of the trace.
        job: JobId,
        /// The job of the snapshot.
        snapshot: JobId,
        /// What it says.
        chapter: Chapter,
    },
    /// The job cannot go on.
    Failed {
        job: JobId,
        /// Why, and what to do.
        failure: Failure,
    },
}
