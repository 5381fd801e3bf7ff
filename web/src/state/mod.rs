//! The state of the page: one [`State`], one [`Action`], one pure [`reduce`], which says the [`Effect`]s that `tasks` carries
//! out.

mod action;
mod benchmark;
mod effect;
mod file;
mod jobs;
mod kept;
pub(crate) mod lanes;
mod ledger;
pub(crate) mod next;
pub(crate) mod on_demand;
mod outputs;
mod reduce;
mod remote;
#[cfg(test)]
pub mod testing;
mod undo;
mod view;
pub(crate) mod workers;

use std::collections::BTreeMap;
use std::rc::Rc;

pub use action::Action;
pub use effect::{BlobKey, Effect, Purpose, Use};
pub use file::{CompanionEntry, CompanionPhase, FileEntry, Phase, Role};
pub use kept::Kept;
pub use lanes::Sought;
pub use reduce::reduce;
pub use remote::Remote;
pub use undo::Filtered;
pub use view::{Dialog, Theme};

use crate::features::data_table::queries::grid::TableSettings;
pub use crate::features::downloads::state::{ArtifactForm, ServerArgs};
use crate::features::timeline::queries as dock;
use crate::features::timeline::state::Followed;
use crate::features::triage::queries::Narrowed;
use crate::protocol::{Failure, JobId, RequestId};
use crate::shared::Shared;
pub use crate::views::View;

/// Where the repaired trace is opened when nothing else is set.
pub const PERFETTO_URL: &str = "https://ui.perfetto.dev";

/// Everything that the page shows follows from this.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The files, in the order they were added.
    pub files: Vec<Shared<FileEntry>>,
    /// The file whose views are shown.
    pub selected: Option<JobId>,
    /// Whether a person selected it, by its card.
    pub picked: bool,
    /// What the files seem to be for, by their contents; those not named stand for themselves.
    pub guesses: Vec<(JobId, Role)>,
    /// The launch flags of a server, as they were dropped (`server_args.json`). Never kept between visits: they may hold
    /// keys.
    pub server_args: Option<ServerArgs>,
    /// The view.
    pub view: View,
    /// Whether the timeline stands below the other views, too.
    pub docked: bool,
    /// Its height there, in thousandths.
    pub dock_height: u16,
    /// The order of tracks in the timeline, as its picture wrote it.
    pub tracks: String,
    /// What the row is about that was selected last, while no timeline shows that.
    pub followed: Option<Followed>,
    /// The range of the address that no timeline shows yet, in ns from the first slice.
    pub range: Option<(i64, i64)>,
    /// What filters were before they were changed, the latest change last.
    pub undo: Vec<Filtered>,
    /// The stage that the tables of triage show; `None` for all. Files without it show all.
    pub stage: Option<String>,
    /// The device that the tables of triage show; `None` for all.
    pub device: Option<String>,
    /// Whether what was launched before the window counts in triage and in artifacts.
    pub count_before_window: bool,
    /// Light, dark or the system's.
    pub theme: Theme,
    /// Order and filter of each table, by its id.
    pub tables: BTreeMap<String, TableSettings>,
    /// What a person told and chose, for artifacts.
    pub form: ArtifactForm,
    /// What is open above the page.
    pub dialog: Option<Dialog>,
    /// Whether a file is held over the window.
    pub drag_over: bool,
    /// Whether single letters and digits are keys (WCAG 2.1.4 asks for a way to switch them off).
    pub keys_on: bool,
    /// Whether opened files are kept in the browser for the next visit. Off unless a person wants it.
    pub keeps: bool,
    /// The files that are kept now.
    pub kept: Kept,
    /// Whether a newer build of the page is ready.
    pub is_newer: bool,
    /// Whether the page is about to be loaded again, with its files: nothing is lost.
    pub is_leaving: bool,
    /// Where "Open in Perfetto" leads.
    pub perfetto_url: String,
    /// Whether a person knows that address: it is Perfetto's own, or was typed or shown in this visit. A stored one could
    /// come from another page of the same origin.
    pub perfetto_known: bool,
    /// What "Open in Perfetto" is doing.
    pub perfetto: PerfettoState,
    /// Errors that belong to no file.
    pub notices: Vec<Rc<Failure>>,
    /// The number of the last request to a worker.
    pub last_request: RequestId,
    /// What was done last, for the status bar: "Copied 37 rows".
    pub announcement: String,
}

/// The way of a trace into a Perfetto window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PerfettoState {
    /// Nothing is under way.
    #[default]
    Idle,
    /// The window is open; the repaired file is being written.
    Writing(JobId),
    /// Waiting for the window to answer.
    Waiting(JobId),
    /// The browser refused to open the window; the file is ready for a second click.
    Blocked(JobId),
    /// The trace was handed over.
    Sent(JobId),
    /// The window did not answer or was closed.
    Lost(JobId),
}

impl Default for State {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            selected: None,
            picked: false,
            guesses: Vec::new(),
            server_args: None,
            view: View::Overview,
            docked: false,
            dock_height: dock::DEFAULT,
            tracks: String::new(),
            followed: None,
            range: None,
            undo: Vec::new(),
            stage: None,
            device: None,
            count_before_window: false,
            theme: Theme::System,
            tables: BTreeMap::new(),
            form: ArtifactForm::default(),
            dialog: None,
            drag_over: false,
            keys_on: true,
            keeps: false,
            kept: Kept::default(),
            is_newer: false,
            is_leaving: false,
            perfetto_url: PERFETTO_URL.to_owned(),
            perfetto_known: true,
            perfetto: PerfettoState::Idle,
            notices: Vec::new(),
            last_request: RequestId::default(),
            announcement: String::new(),
        }
    }
}

impl State {
    /// The file of a job.
    #[must_use]
    pub fn file(&self, job: JobId) -> Option<&Shared<FileEntry>> {
        self.files.iter().find(|file| file.job == job)
    }

    /// What tables of triage are narrowed to, as a person chose it.
    #[must_use]
    pub fn chosen(&self) -> Narrowed {
        Narrowed { stage: self.stage.clone(), device: self.device.clone() }
    }

    /// Whether the timeline of the shown file is on the page: as its view, or below another one.
    #[must_use]
    pub fn shows_timeline(&self) -> bool {
        self.view == View::Timeline || self.docked
    }

    /// The file whose views are shown.
    #[must_use]
    pub fn selected_file(&self) -> Option<&Shared<FileEntry>> {
        self.file(self.selected?)
    }
}
