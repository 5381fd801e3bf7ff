//! The table of everything that can happen.

use std::rc::Rc;

use super::effect::{Purpose, Use};
use super::lanes::Sought;
use super::{ArtifactForm, Dialog, Kept, PerfettoState, Role, ServerArgs, Theme, View};
use crate::features::data_table::queries::grid::TableSettings;
use crate::features::timeline::state as timeline;
use crate::protocol::{
    ArtifactWish, EventRange, Failure, Format, JobId, KernelKey, RequestId, Response, StepWindow,
};
use crate::queries::address::Address;

/// Everything that can happen.
#[derive(Clone, Debug)]
pub enum Action {
    /// A file was dropped or picked.
    Added(JobId, String, u64),
    /// Another card was chosen.
    Selected(JobId),
    /// A card was closed.
    Removed(JobId),
    /// A person stopped a job.
    Cancelled(JobId),
    /// A stopped or failed file begins anew.
    Restarted(JobId),
    /// A person says what a file is for.
    RoleSet(JobId, Role),
    /// A companion that could not be read is tried again.
    CompanionRetried(JobId, JobId),
    /// The launch flags of a server were dropped.
    ServerArgsDropped(ServerArgs),
    /// A worker answered a request.
    Received(RequestId, Box<Response>),
    /// The first tables of a file are drawn.
    Drawn(JobId),
    /// A worker is gone: it could not be loaded, or ran out of memory.
    WorkerLost(JobId, Rc<Failure>),
    /// Another view.
    Shown(View),
    /// Another stage, or all.
    StageShown(Option<String>),
    /// Another step of a file, or all of it.
    StepShown(JobId, Option<StepWindow>),
    /// What an iteration of a file takes without the profiler, in ns.
    IterationTimed(JobId, Option<i64>),
    /// Something is to be shown in the timeline.
    InTimeline(Sought),
    /// The timeline stands below the other views, or no longer.
    Docked(bool),
    /// It has another height there, in thousandths.
    DockSized(u16),
    /// Something of the files below the timeline of one: that file, the other one, and what.
    Beneath(JobId, JobId, timeline::Change),
    /// A row of a table was selected that the timeline can show.
    Followed(Sought),
    /// Another device, or all.
    DeviceShown(Option<String>),
    /// What was launched before the window counts, or not.
    BeforeWindowSet(bool),
    /// The browser went back or forth in its history.
    Addressed(Address),
    /// Another theme.
    Themed(Theme),
    /// A table was sorted or filtered.
    TableSet(String, TableSettings),
    /// The last change of a filter is taken back.
    Undone,
    /// A dialog was opened.
    DialogOpened(Dialog),
    /// A dialog was closed. The browser says so some time later: by then another one may be open.
    DialogClosed(Dialog),
    /// A file entered or left the window.
    DragOver(bool),
    /// Single keys on or off.
    KeysSet(bool),
    /// Opened files are kept in the browser, or no longer.
    KeepSet(bool),
    /// What is kept now.
    KeptFound(Kept),
    /// A newer build of the page is ready; or a person does not want it now.
    NewerFound(bool),
    /// The page is about to be loaded again, with its files.
    Leaving,
    /// Another Perfetto.
    PerfettoUrlSet(String),
    /// A person saw the stored address and agreed to it.
    PerfettoKnown,
    /// "Open in Perfetto" went on.
    PerfettoMoved(PerfettoState),
    /// Impossible durations: clip or not. The plan is made again.
    Replanning(JobId, bool),
    /// The repaired file is asked for.
    RepairAsked(JobId, Format, Purpose),
    /// The log of the written repair is asked for.
    LogAsked(JobId),
    /// A window for Perfetto was opened; or the browser refused it.
    PerfettoOpened { job: JobId, blocked: bool },
    /// An artifact is asked for.
    ArtifactAsked(JobId, &'static str, Box<ArtifactWish>, Use),
    /// A kernel's launches and places are asked for.
    KernelAsked(JobId, KernelKey),
    /// What ran around an event is asked for.
    WindowAsked(JobId, u32),
    /// Events of a snapshot were chosen: it is read again.
    EventsChosen(JobId, EventRange),
    /// An earlier snapshot was chosen to compare with, or none.
    EarlierChosen(JobId, Option<JobId>),
    /// A trace was chosen that may say more of a snapshot, or none.
    TraceChosen(JobId, Option<JobId>),
    /// What a person told or chose for artifacts.
    FormSet(ArtifactForm),
    /// A benchmark's configuration was chosen; its digest is a run detail.
    BenchmarkConfigChosen(Vec<u8>),
    /// A benchmark of an op is to be copied.
    BenchmarkAsked(String),
    /// The launch flags of a server were taken away.
    ServerArgsCleared,
    /// Something failed that belongs to no file.
    Noticed(Rc<Failure>),
    /// A notice was closed.
    NoticeClosed(usize),
    /// Something worth saying was done.
    Announced(String),
}
