//! One file on the page and how far it is.

use std::rc::Rc;

use super::Remote;
use super::ledger::Ledger;
use crate::features::ranks::state::OtherRank;
use crate::features::timeline::state::Beneath;
use crate::protocol::{
    Analyses, Artifacts, Aside, Beside, Chapter, Companion, Comparison, Diagnosis, EventRange,
    Failure, JobId, KernelDetails, LanesFacts, Looked, MemoryPictures, Opened, OverlapWindow, Plan,
    Progress, Repaired, SharedAxis, StepWindow, Triage,
};
use crate::shared::Shared;

/// How far a file is.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Its worker works on it.
    Working(Progress),
    /// Everything that was asked for is there.
    Ready,
    /// A person stopped it.
    Cancelled,
    /// It cannot go on.
    Failed(Rc<Failure>),
    /// It is a large memory snapshot: a person says how much of it is read.
    Asking,
}

/// What a file is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It stands for itself.
    #[default]
    Own,
    /// It tells something of another file.
    Companion(Companion, JobId),
    /// It stands for itself, and another is compared with it.
    Baseline(JobId),
}

impl Role {
    /// The other file.
    #[must_use]
    pub fn of(self) -> Option<JobId> {
        match self {
            Self::Own => None,
            Self::Companion(_, of) | Self::Baseline(of) => Some(of),
        }
    }
}

/// How far a companion of a file is.
#[derive(Clone, Debug, PartialEq)]
pub enum CompanionPhase {
    /// Its reading was asked for.
    Waiting,
    /// It tells what it knows.
    Read,
    /// It could not be read.
    Failed(Rc<Failure>),
}

/// A file that tells something of this one.
#[derive(Clone, Debug, PartialEq)]
pub struct CompanionEntry {
    /// The file, and what it tells.
    pub beside: Beside,
    /// Its name.
    pub name: String,
    /// Its size on the disk.
    pub size: u64,
    /// How far it is.
    pub phase: CompanionPhase,
}

/// One file: a card, and the views that are there so far.
#[derive(Clone, Debug, PartialEq)]
pub struct FileEntry {
    /// Its job.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// Its size on the disk.
    pub size: u64,
    /// How far it is.
    pub phase: Phase,
    /// What a person says it is for; by default that is guessed.
    pub role: Option<Role>,
    /// The files that tell something of it.
    pub companions: Vec<CompanionEntry>,
    /// The comparison with another file.
    pub comparison: Option<(JobId, Remote<Comparison>)>,
    /// Whether it is a memory snapshot, or another file of the program that reads them.
    pub is_snapshot: bool,
    /// The events that a person chose of it; `None` before one chose.
    pub events: Option<EventRange>,
    /// What it is, if it is no trace but tells of traces.
    pub aside: Option<Shared<Aside>>,
    /// Its memory over time, for the program that draws it; of the last diagnosis of the whole file.
    pub recorded_memory: Shared<Vec<u8>>,
    /// What the program that draws lanes does not find out by itself, in the same way.
    pub recorded_told: Shared<Vec<u8>>,
    /// The memory of a trace over time, once it is looked at.
    pub memory: Remote<MemoryPictures>,
    /// What a person looks at in its pictures.
    pub looked: Option<Shared<Looked>>,
    /// The lanes of a trace, once they are looked at.
    pub lanes: Remote<LanesFacts>,
    /// What a person looks at in them.
    pub seen: Option<Shared<Looked>>,
    /// Other files below its timeline.
    pub beneath: Vec<Beneath>,
    /// The axis that its lanes share with those of other files, as their program was told last.
    pub axis: Option<SharedAxis>,
    /// What changed since an earlier snapshot, and which.
    pub changes: Option<(JobId, Remote<Vec<Chapter>>)>,
    /// What a trace says of the snapshot, and which.
    pub in_trace: Option<(JobId, Remote<Chapter>)>,
    /// There after decoding.
    pub opened: Option<Shared<Opened>>,
    /// There after the analyses.
    pub report: Option<Shared<Analyses>>,
    /// There after planning.
    pub plan: Option<Shared<Plan>>,
    /// There after triage, which is the last.
    pub triage: Option<Shared<Triage>>,
    /// Why the run is slow; asked for after triage.
    pub diagnosis: Remote<Diagnosis>,
    /// What its rank calls together with others; asked for where there are several ranks.
    pub calls: Remote<Vec<u8>>,
    /// The run as one of several with batches of other sizes; of the last diagnosis of the whole file.
    pub scaling: Shared<Vec<u8>>,
    /// The other ranks that the diagnosis is made with, and the runs with batches of other sizes.
    pub ranks: Vec<OtherRank>,
    /// What is added to the times of each other rank, in ns, so that its collectives end with those of this one.
    pub clocks: Vec<(JobId, i64)>,
    /// The steps that diagnosis and triage can be narrowed to; of the last diagnosis of the whole file.
    pub steps: Shared<Vec<StepWindow>>,
    /// The step that they are narrowed to.
    pub step: Option<StepWindow>,
    /// What an iteration takes without the profiler, in ns, where a person has timed it.
    pub iteration_ns: Option<i64>,
    /// The kernel that was asked for last.
    pub kernel: Remote<KernelDetails>,
    /// What ran around the event that was asked for last.
    pub window: Remote<OverlapWindow>,
    /// The repaired file.
    pub repair: Remote<Repaired>,
    /// The artifacts.
    pub artifacts: Remote<Artifacts>,
    /// How far either of these two is, while it is made.
    pub making: Progress,
    /// What was asked for it, and what came of that.
    pub ledger: Ledger,
}

impl FileEntry {
    /// A file that has just been added.
    #[must_use]
    pub fn new(job: JobId, name: String, size: u64) -> Self {
        let progress = Progress { total: size, ..Progress::default() };
        Self {
            job,
            name,
            size,
            phase: Phase::Working(progress),
            role: None,
            companions: Vec::new(),
            comparison: None,
            is_snapshot: false,
            events: None,
            aside: None,
            recorded_memory: Shared::default(),
            recorded_told: Shared::default(),
            memory: Remote::Idle,
            looked: None,
            lanes: Remote::Idle,
            seen: None,
            beneath: Vec::new(),
            axis: None,
            changes: None,
            in_trace: None,
            opened: None,
            report: None,
            plan: None,
            triage: None,
            diagnosis: Remote::Idle,
            calls: Remote::Idle,
            scaling: Shared::default(),
            ranks: Vec::new(),
            clocks: Vec::new(),
            steps: Shared::default(),
            step: None,
            iteration_ns: None,
            kernel: Remote::Idle,
            window: Remote::Idle,
            repair: Remote::Idle,
            artifacts: Remote::Idle,
            making: progress,
            ledger: Ledger::default(),
        }
    }

    /// Whether its worker has something to do.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self.phase, Phase::Working(_)) || self.is_making()
    }

    /// Whether its repaired file or its artifacts are being made.
    #[must_use]
    pub fn is_making(&self) -> bool {
        self.repair.pending().is_some() || self.artifacts.pending().is_some()
    }

    /// Whether its repaired file is written, by the plan that is in force.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.repair.ready().is_some()
    }

    /// Whether it has views, or will have: a file that could not be read has none.
    #[must_use]
    pub fn has_views(&self) -> bool {
        self.opened.is_some() || matches!(self.phase, Phase::Working(_))
    }

    /// Whether it is a snapshot whose memory can be drawn on a clock.
    #[must_use]
    pub fn has_memory_over_time(&self) -> bool {
        match self.aside.as_deref() {
            Some(Aside::Snapshot { is_timeline: false, charts, .. }) => {
                charts.iter().any(|chart| chart.has_times)
            }
            _ => false,
        }
    }

    /// Whether its triage counts what was launched before the window although it should not, or the other way round.
    /// Without such work there is no difference.
    #[must_use]
    pub fn counts_otherwise(&self, count_before_window: bool) -> bool {
        self.triage.as_ref().is_some_and(|triage| {
            let before = &triage.before_window;
            before.n_slices > 0 && before.counted != count_before_window
        })
    }

    /// The triage that is shown: of the step that is chosen, or of the whole file.
    #[must_use]
    pub fn shown_triage(&self) -> Option<&Triage> {
        match self.step {
            Some(_) => self.diagnosis.ready()?.triage.as_deref(),
            None => self.triage.as_deref(),
        }
    }

    /// The files that tell of it.
    #[must_use]
    pub fn told_by(&self) -> Vec<Beside> {
        let read = self.companions.iter().filter(|known| known.phase == CompanionPhase::Read);
        read.map(|known| known.beside.clone()).collect()
    }

    /// What its worker is doing.
    #[must_use]
    pub fn progress(&self) -> Option<Progress> {
        match &self.phase {
            Phase::Working(progress) => Some(*progress),
            Phase::Ready | Phase::Cancelled | Phase::Failed(_) | Phase::Asking => {
                self.is_making().then_some(self.making)
            }
        }
    }
}
