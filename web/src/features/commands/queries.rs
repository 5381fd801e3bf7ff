//! What a person can do from the keyboard, and the list that the command dialog shows of it.

use crate::features::downloads::queries::wish;
use crate::features::files::queries::has_gpu;
use crate::protocol::{ArtifactWish, Format, JobId};
use crate::queries::page::narrowed;
use crate::shared::Shared;
use crate::state::{Dialog, FileEntry, State, Theme};
use crate::views::{Group, View};

/// The key that shows and removes the timeline below the views.
pub const DOCK_KEY: &str = "t";

/// Something to do, without its effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Choose files.
    OpenFiles,
    /// Choose a folder.
    OpenFolder,
    /// Open the example.
    OpenExample,
    /// Show a view.
    Show(View),
    /// Show another file.
    Select(JobId),
    /// Go to the filter of the table.
    Filter,
    /// Show the timeline below the other views, or no longer.
    Dock(bool),
    /// Take the last change of a filter back.
    Undo,
    /// Light, dark or the system's.
    Use(Theme),
    /// Open a dialog.
    Open(Dialog),
    /// Open the repaired file in the Perfetto of this address.
    Perfetto(JobId, String),
    /// Save the repaired file.
    Download(JobId, Format),
    /// Save the log of the repair.
    DownloadLog(JobId),
    /// Plan the repair again, with or without clipping impossible durations.
    Clip(JobId, bool),
    /// Save all artifacts as one file.
    Archive(JobId, Box<ArtifactWish>),
}

/// A line of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What it does.
    pub command: Command,
    /// The heading that it is listed under.
    pub section: &'static str,
    /// What a person reads.
    pub title: String,
    /// The keys that do the same.
    pub keys: Option<String>,
}

/// Everything that can be done now, by section.
#[must_use]
pub fn entries(state: &State) -> Vec<Entry> {
    let file = state.selected_file();
    let mut entries = file.map_or_else(Vec::new, views);
    entries.extend(file.map_or_else(Vec::new, |file| of_file(state, file)));
    entries.extend(other_files(state));
    entries.extend(of_page(state));
    entries
}

/// The lines that have every word of `text`, in order.
#[must_use]
pub fn matching(entries: &[Entry], text: &str) -> Vec<Entry> {
    let text = text.to_ascii_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let matches = |entry: &&Entry| {
        let line = format!("{} {}", entry.section, entry.title).to_ascii_lowercase();
        words.iter().all(|word| line.contains(word))
    };
    entries.iter().filter(matches).cloned().collect()
}

fn entry(section: &'static str, title: impl Into<String>, command: Command) -> Entry {
    Entry { command, section, title: title.into(), keys: None }
}

/// The views that the navigation lists.
fn views(file: &Shared<FileEntry>) -> Vec<Entry> {
    if !file.has_views() {
        return Vec::new();
    }
    let has_gpu = has_gpu(file);
    let shown = Group::ALL.into_iter().flat_map(Group::views);
    let shown = shown.filter(|view| has_gpu || !view.needs_gpu());
    let line = |view: View| Entry {
        keys: view.key().map(String::from),
        ..entry("Views", format!("Go to {}", view.title()), Command::Show(view))
    };
    shown.map(line).collect()
}

/// What the views of repair and downloads offer, where their buttons are enabled.
fn of_file(state: &State, file: &FileEntry) -> Vec<Entry> {
    const SECTION: &str = "This file";
    let job = file.job;
    let mut entries = Vec::new();
    let Some(plan) = file.plan.as_ref().filter(|_| file.opened.is_some() && !file.is_busy()) else {
        return entries;
    };
    let url = state.perfetto_url.clone();
    entries.push(entry(SECTION, "Open in Perfetto", Command::Perfetto(job, url)));
    for (format, title) in [
        (Format::Gzip, "Download the repaired file (.json.gz)"),
        (Format::Json, "Download the repaired file (.json)"),
    ] {
        entries.push(entry(SECTION, title, Command::Download(job, format)));
    }
    if file.is_written() {
        let title = "Download the log of the repair (.json)";
        entries.push(entry(SECTION, title, Command::DownloadLog(job)));
    }
    if !plan.impossible.is_empty() {
        let (title, clip) = match plan.clip_impossible {
            true => ("Keep impossible durations", false),
            false => ("Clip impossible durations", true),
        };
        entries.push(entry(SECTION, title, Command::Clip(job, clip)));
    }
    let wish = file.triage.as_ref().and_then(|_| {
        let counts = state.count_before_window;
        let narrowed = narrowed(file.triage.as_deref(), &state.chosen());
        wish(&state.form, state.server_args.as_ref(), &narrowed, counts, file).ok()
    });
    if let Some(wish) = wish {
        let title = "Download all artifacts as one .zip";
        entries.push(entry(SECTION, title, Command::Archive(job, Box::new(wish))));
    }
    entries
}

fn other_files(state: &State) -> Vec<Entry> {
    let others = state.files.iter().filter(|file| state.selected != Some(file.job));
    let line = |file: &Shared<FileEntry>| {
        entry("Files", format!("Switch to {}", file.name), Command::Select(file.job))
    };
    others.map(line).collect()
}

fn of_page(state: &State) -> Vec<Entry> {
    const SECTION: &str = "Page";
    let keyed = |title: &str, command: Command, keys: &str| Entry {
        keys: Some(keys.to_owned()),
        ..entry(SECTION, title, command)
    };
    let mut entries = vec![
        keyed("Open files", Command::OpenFiles, "Ctrl/⌘ O"),
        entry(SECTION, "Open a folder", Command::OpenFolder),
        entry(SECTION, "Open the example trace", Command::OpenExample),
    ];
    if state.selected.is_some() {
        entries.push(keyed("Filter the table", Command::Filter, "/"));
    }
    if !state.undo.is_empty() {
        entries.push(keyed("Undo the last change of a filter", Command::Undo, "Z"));
    }
    if state.selected_file().is_some_and(|file| file.has_views()) {
        let title = match state.docked {
            true => "Remove the timeline below the views",
            false => "Show the timeline below the views",
        };
        entries.push(keyed(title, Command::Dock(!state.docked), DOCK_KEY));
    }
    let themes = Theme::ALL.into_iter().filter(|theme| *theme != state.theme);
    entries.extend(themes.map(|theme| {
        entry(
            SECTION,
            format!("Use the {}", theme.title().to_ascii_lowercase()),
            Command::Use(theme),
        )
    }));
    entries.extend([
        keyed("Keys and settings", Command::Open(Dialog::Help), "?"),
        entry(SECTION, "How to record a trace", Command::Open(Dialog::Record)),
        entry(SECTION, "Files stay on this machine: how to check", Command::Open(Dialog::Privacy)),
    ]);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Analyses, Opened, Plan, Response, Triage};
    use crate::state::Action;
    use crate::state::testing::{reduce, said};

    const JOB: JobId = JobId(1);

    fn after(actions: impl IntoIterator<Item = Action>) -> State {
        actions.into_iter().fold(State::default(), |state, action| reduce(&state, action))
    }

    fn ready() -> State {
        let report = Analyses { busy_pct: Some(50.0), ..Analyses::default() };
        after([
            Action::Added(JOB, "run.json".into(), 10),
            Action::Added(JobId(2), "other.json".into(), 10),
            said(Response::Opened { job: JOB, opened: Opened::default() }),
            said(Response::Report { job: JOB, report }),
            said(Response::RepairPlanned { job: JOB, plan: Plan::default() }),
            said(Response::Triage { job: JOB, triage: Triage::default() }),
        ])
    }

    fn titles(state: &State, text: &str) -> Vec<String> {
        matching(&entries(state), text).into_iter().map(|entry| entry.title).collect()
    }

    #[test]
    fn without_a_file_there_are_the_commands_of_the_page() {
        let entries = entries(&State::default());
        assert!(entries.iter().all(|entry| entry.section == "Page"), "{entries:?}");
        assert!(!entries.iter().any(|entry| entry.command == Command::Filter));
    }

    #[test]
    fn every_word_must_be_there_in_any_order_and_case() {
        let state = ready();
        assert_eq!(titles(&state, "HEALTH go"), ["Go to File health"]);
        assert_eq!(titles(&state, "other"), ["Switch to other.json"]);
        assert_eq!(titles(&state, "theme dark"), ["Use the dark theme"]);
        assert!(titles(&state, "moon").is_empty());
        assert_eq!(titles(&state, "  "), titles(&state, ""));
    }

    #[test]
    fn a_file_that_is_worked_on_offers_no_downloads() {
        let state = ready();
        assert!(titles(&state, "download").len() >= 3, "two files and the archive");
        assert!(titles(&state, "log").is_empty(), "nothing is written yet");
        let busy = reduce(&state, Action::Replanning(JOB, true));
        assert_eq!(titles(&busy, "download"), ["Go to Downloads"]);
    }

    #[test]
    fn a_trace_without_gpu_slices_has_no_views_about_them() {
        let none = Response::Report { job: JOB, report: Analyses::default() };
        let state = reduce(&ready(), said(none));
        let found = titles(&state, "go to");
        assert!(found.contains(&"Go to Ops and calls".to_owned()), "{found:?}");
        for view in View::ALL.iter().filter(|view| view.needs_gpu()) {
            assert!(!found.contains(&format!("Go to {}", view.title())), "{found:?}");
        }
    }
}
