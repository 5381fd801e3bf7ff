//! What an action has `tasks` do. Plain data: the reducer decides, `tasks` only carries it out.

use super::Theme;
use crate::protocol::{EventRange, Format, JobId, Program, Request, RequestId};

/// Something to do outside of the state.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Start the worker of a program and have it open the file.
    Start(JobId, Program),
    /// Start the worker of memory snapshots and have it open these events of the file.
    StartEvents(JobId, EventRange),
    /// Start the worker of a program without a file: all that it needs comes with its requests.
    Load(JobId, Program),
    /// End the workers of a file.
    End(JobId),
    /// Post a request to the worker that answers it, under its number.
    Post(RequestId, Request),
    /// Say [`Drawn`](super::Action::Drawn) once the browser has drawn what changed.
    Watch(JobId),
    /// Have the browser save a blob under a name.
    Save(BlobKey, String),
    /// Have the browser save a picture, an SVG, under a name.
    SaveText(String, String),
    /// Copy the text of a blob.
    Copy(BlobKey),
    /// Copy a text, and say so in the second.
    CopyText(String, String),
    /// Give a blob of this name to the Perfetto window.
    HandOver(BlobKey, String),
    /// Apply and keep a theme.
    Theme(Theme),
    /// Keep opened files in the browser from now on, or remove all that are kept.
    Keep(bool),
    /// Let go of the blobs that came with the answer to a request.
    Drop(JobId, RequestId),
    /// Let go of everything that belongs to a file.
    Close(JobId),
}

/// Names a blob: of which file, which answer brought it, and its name in that answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobKey {
    /// The file.
    pub job: JobId,
    /// The request.
    pub id: RequestId,
    /// The name in the answer.
    pub name: &'static str,
}

/// What becomes of a repaired file once it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The browser saves it.
    Download,
    /// The Perfetto window gets it.
    Perfetto,
}

/// What is done with an artifact once it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The browser saves it.
    Save,
    /// Its text is copied.
    Copy,
}

/// A repaired file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The request that its blobs came with.
    pub id: RequestId,
    /// The plan that it was written by.
    pub plan: PlanNumber,
    /// How it is written.
    pub format: Format,
    /// Its name.
    pub file_name: String,
}

/// Counts the plans of a file: another choice of options is another plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanNumber(pub u32);
