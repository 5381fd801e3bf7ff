//! The line at the top: name, adding files, privacy, theme, help.

use yew::prelude::*;

use super::Icon;
use crate::state::{Action, Dialog, Theme};
use crate::tasks::{Tasks, files};

/// What the header shows.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The theme in use.
    pub theme: Theme,
    /// Effects.
    pub tasks: Tasks,
}

/// The header.
#[component]
pub fn Header(props: &Props) -> Html {
    let dialog = |dialog: Dialog| {
        let tasks = props.tasks.clone();
        Callback::from(move |_: MouseEvent| tasks.dispatch(Action::DialogOpened(dialog)))
    };
    let next_theme = {
        let (tasks, theme) = (props.tasks.clone(), props.theme);
        Callback::from(move |_: MouseEvent| tasks.dispatch(Action::Themed(theme.next())))
    };
    let theme_icon = match props.theme {
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
                <Icon name="lock" /><span class="long">{ "Files stay on this machine" }</span>
                <span class="short">{ "Private" }</span>
            </button>
            <div class="header-tools">
                <button data-testid="add-files" onclick={Callback::from(|_: MouseEvent| files::pick())}
                    title="Add files (Ctrl+O or ⌘O)">
                    <Icon name="add" /><span class="long">{ "Add files" }</span>
                    <span class="visually-hidden short">{ "Add files" }</span>
                </button>
                <button class="icon-button" data-testid="add-folder" onclick={Callback::from(|_: MouseEvent| files::pick_folder())}
                    title="Add a folder" aria-label="Add a folder">
                    <Icon name="folder" />
                </button>
                <button class="icon-button" data-testid="find-command" onclick={dialog(Dialog::Commands)}
                    title="Find a command, a view or a file (Ctrl+K or ⌘K)" aria-label="Find a command">
                    <Icon name="search" />
                </button>
                <button class="icon-button" data-testid="theme" onclick={next_theme}
                    title={format!("{}. Switch to the {}", props.theme.title(), props.theme.next().title().to_lowercase())}
                    aria-label={format!("Theme: {}", props.theme.id())}>
                    <Icon name={theme_icon} />
                </button>
                <button class="icon-button" data-testid="help" onclick={dialog(Dialog::Help)}
                    title="Keys and settings (?)" aria-label="Help and settings">
                    <Icon name="help" />
                </button>
            </div>
        </header>
    }
}
