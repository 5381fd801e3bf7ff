//! The line at the foot of the page. Screen readers announce it, so it changes at the ends of stages only.

use yew::prelude::*;

/// Its texts.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// About the selected file.
    pub file: AttrValue,
    /// The last action.
    pub announcement: AttrValue,
}

/// The status bar.
#[component]
pub fn StatusBar(props: &Props) -> Html {
    html! {
        <footer class="status-bar">
            <p role="status" data-testid="status">{ &props.file }</p>
            <p role="status" data-testid="announcement">{ &props.announcement }</p>
            <p class="version" data-testid="version">{ format!("Kinetoscope {} · build {}", crate::VERSION, crate::BUILD) }</p>
        </footer>
    }
}
