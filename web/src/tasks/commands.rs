//! Carries out the commands of keys and of the command dialog.

use gloo::utils::document;
use kinetoscope::artifacts::ARCHIVE;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use super::browser::after;
use super::{Tasks, files};
use crate::features::commands::queries::Command;
use crate::state::{Action, Sought, Use};

impl Tasks {
    /// Does it; `false` if there was nothing to do.
    pub fn run(&self, command: Command) -> bool {
        match command {
            Command::OpenFiles => files::pick(),
            Command::OpenFolder => files::pick_folder(),
            Command::OpenExample => self.open_example(),
            Command::Show(view) => {
                self.dispatch(Action::Shown(view));
                to_heading();
            }
            Command::Select(job) => {
                self.dispatch(Action::Selected(job));
                to_heading();
            }
            Command::Filter => return focus("main input[type=search]"),
            Command::Dock(docked) => self.dispatch(Action::Docked(docked)),
            Command::Undo => self.dispatch(Action::Undone),
            Command::Use(theme) => self.dispatch(Action::Themed(theme)),
            Command::Open(dialog) => self.dispatch(Action::DialogOpened(dialog)),
            Command::Perfetto(job, url) => self.open_in_perfetto(job, &url),
            Command::Download(job, format) => self.download(job, format),
            Command::DownloadLog(job) => self.download_log(job),
            Command::Clip(job, clip) => self.replan(job, clip),
            Command::Archive(job, wish) => self.artifact(job, ARCHIVE, *wish, Use::Save),
        }
        true
    }
}

impl Tasks {
    /// Shows something in the timeline; keys go to its picture, unless it stands below the view.
    pub fn show_in_timeline(&self, sought: Sought) {
        self.dispatch(Action::InTimeline(sought));
        if !self.state().docked {
            to_picture(TRIES);
        }
    }
}

/// The picture is there once the slices are laid out: how often it is looked for, every 100 ms.
const TRIES: u32 = 50;

/// Gives the picture the focus, if nothing else has it by then.
fn to_picture(tries: u32) {
    let look = move || {
        let is_free = document().active_element().is_none_or(|active| active.tag_name() == "BODY");
        if is_free && !focus("main canvas.over") && tries > 0 {
            to_picture(tries - 1);
        }
    };
    after(100, Box::new(look)).forget();
}

/// A screen reader goes on from the heading of the view, and Tab to what follows it. The heading is there once the page
/// has drawn the view.
fn to_heading() {
    let move_on = || {
        focus("main h1");
    };
    after(0, Box::new(move_on)).forget();
}

fn focus(selector: &str) -> bool {
    let field = document().query_selector(selector).ok().flatten();
    let field = field.and_then(|field| field.dyn_into::<HtmlElement>().ok());
    field.is_some_and(|field| field.focus().is_ok())
}
