//! What was asked for one file, and what came of it. There is no other record: a file that is read again or closed drops it
//! whole.

use super::effect::{PlanNumber, Purpose, Use, Written};
use crate::features::ranks::state::OtherRank;
use crate::features::several::queries::Compared;
use crate::protocol::{ArtifactFile, ArtifactWish, Beside, JobId, RequestId};

/// The record of one reading of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// What the workers that run were asked for.
    pub asked: Asked,
    /// Related files that a worker crashed on: not sent again unless a person asks for it.
    pub crashed_on: Vec<JobId>,
    /// The last comparison that was begun.
    pub compared: Option<Compared>,
    /// The number of the plan in force.
    pub plan: PlanNumber,
    /// Whether that plan clips impossible durations.
    pub clip_impossible: bool,
    /// The repaired file that was written last.
    pub written: Option<Written>,
    /// The artifacts that were made for the last wish.
    pub made: Made,
}

impl Ledger {
    /// The repaired file, if it was written by the plan in force.
    #[must_use]
    pub fn in_force(&self) -> Option<&Written> {
        self.written.as_ref().filter(|written| written.plan == self.plan)
    }
}

/// What the workers that run were asked for. It ends with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Whether the worker of the first screen runs.
    pub first_runs: bool,
    /// Whether the worker of triage runs.
    pub triage_runs: bool,
    /// The last request for a plan.
    pub plan: Option<RequestId>,
    /// Whether the worker is past its own file: it has planned.
    pub planned: bool,
    /// The request for a triage that is to be answered: the last one.
    pub triage: Option<RequestId>,
    /// Whether the last triage that was asked for counts what was launched before the window.
    pub triage_counts: Option<bool>,
    /// The related files that the worker was told of.
    pub companions: Vec<Beside>,
    /// The other ranks that it was told of.
    pub ranks: Vec<OtherRank>,
    /// Those of the related files that it has not answered for, in order.
    pub unread: Vec<JobId>,
    /// What the repaired file is written for, and the plan that it is written by.
    pub writing: Option<(Purpose, PlanNumber)>,
    /// What is to be done with which artifact.
    pub artifact: Option<(&'static str, Use)>,
}

/// Artifacts that were made for one wish.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Made {
    /// The wish.
    pub wish: ArtifactWish,
    /// The files, and the request that the blob of each came with.
    pub files: Vec<(ArtifactFile, RequestId)>,
}

impl Made {
    /// The request that the blob of a file came with, if it was made for this wish.
    #[must_use]
    pub fn of(&self, name: &str, wish: &ArtifactWish) -> Option<RequestId> {
        if self.wish != *wish {
            return None;
        }
        self.files.iter().find(|(file, _)| file.name == name).map(|(_, id)| *id)
    }
}
