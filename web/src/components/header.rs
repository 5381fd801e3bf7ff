//! The line at the top: name, adding files, privacy, theme, help.

use yew::prelude::*;

use super::icon;
use crate::state::{Action, Dialog, Theme};
use crate::tasks::{Tasks, files};

/// The header, with the theme in use.
pub fn header(theme: Theme, tasks: &Tasks) -> Html {
    let dialog = |dialog: Dialog| {
        let tasks = tasks.clone();
        Callback::from(move |_: MouseEvent| tasks.dispatch(Action::DialogOpened(dialog)))
    };
    let next_theme = {
        let tasks = tasks.clone();
        Callback::from(move |_: MouseEvent| tasks.dispatch(Action::Themed(theme.next())))
    };
    let theme_icon = match theme {
        Theme::System => "auto",
        Theme::Light => "sun",
        Theme::Dark => "moon",
    };
    html! {
        <header class="header">
            <p class="brand">
                <svg class="brand-mark" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
                    <rect x="3" y="5" width="26" height="6" rx="1.5" class="hue-norm" />
                    <rect x="8" y="13" width="14" height="6" rx="1.5" class="hue-memory" />
                    <rect x="14" y="21" width="15" height="6" rx="1.5" class="hue-elementwise" />
                </svg>
                <span class="brand-name">{ "Kinetoscope" }</span>
            </p>
            <button class="privacy-button" data-testid="privacy" onclick={dialog(Dialog::Privacy)}>
                { icon("lock") }<span class="long">{ "Files stay on this machine" }</span>
                <span class="short">{ "Private" }</span>
            </button>
            <div class="header-tools">
                <button data-testid="add-files" onclick={Callback::from(|_: MouseEvent| files::pick())}
                    title="Add files (Ctrl+O or ⌘O)">
                    { icon("add") }<span class="long">{ "Add files" }</span>
                    <span class="visually-hidden short">{ "Add files" }</span>
                </button>
                <button class="icon-button" data-testid="add-folder" onclick={Callback::from(|_: MouseEvent| files::pick_folder())}
                    title="Add a folder" aria-label="Add a folder">
                    { icon("folder") }
                </button>
                <button class="icon-button" data-testid="find-command" onclick={dialog(Dialog::Commands)}
                    title="Find a command, a view or a file (Ctrl+K or ⌘K)" aria-label="Find a command">
                    { icon("search") }
                </button>
                <button class="icon-button" data-testid="theme" onclick={next_theme}
                    title={format!("{}. Switch to the {}", theme.title(), theme.next().title().to_ascii_lowercase())}
                    aria-label={format!("Theme: {}", theme.id())}>
                    { icon(theme_icon) }
                </button>
                <button class="icon-button" data-testid="help" onclick={dialog(Dialog::Help)}
                    title="Keys and settings (?)" aria-label="Help and settings">
                    { icon("help") }
                </button>
            </div>
        </header>
    }
}
