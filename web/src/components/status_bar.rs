//! The line at the foot of the page. Screen readers announce it, so it changes at the ends of stages only.

use yew::prelude::*;

/// The status bar: a text about the selected file, and one about the last action.
pub fn status_bar(file: &str, announcement: &str) -> Html {
    html! {
        <footer class="status-bar">
            <p role="status" data-testid="status">{ file }</p>
            <p role="status" data-testid="announcement">{ announcement }</p>
            <p class="version" data-testid="version">{ format!("Kinetoscope {} · build {}", crate::VERSION, crate::BUILD) }</p>
        </footer>
    }
}
