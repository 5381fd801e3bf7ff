//! The line at the foot of the page. Screen readers announce it, so it changes at the ends of stages only.

use yew::prelude::*;

use crate::features::commands::queries::Command;
use crate::tasks::Tasks;

/// The status bar: a text about the selected file, and one about the last action; a button where a filter can be undone.
pub fn status_bar(file: &str, announcement: &str, can_undo: bool, tasks: &Tasks) -> Html {
    let tasks = tasks.clone();
    let undo = Callback::from(move |_: MouseEvent| {
        tasks.run(Command::Undo);
    });
    html! {
        <footer class="status-bar">
            <p role="status" data-testid="status">{ file }</p>
            <p role="status" data-testid="announcement">{ announcement }</p>
            if can_undo {
                <button class="link" onclick={undo} title="Undo the last change of a filter: Z" data-testid="undo">{ "Undo filter" }</button>
            }
            <p class="version" data-testid="version">{ format!("Kinetoscope {} · build {}", crate::VERSION, crate::BUILD) }</p>
        </footer>
    }
}
