//! The line at the foot of the page. It is spoken politely, so it changes at the ends of stages only.

use yew::prelude::*;

/// What it says.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// About the selected file.
    pub file: AttrValue,
    /// What was done last.
    pub announcement: AttrValue,
}

/// The status bar.
#[component]
pub fn StatusBar(props: &Props) -> Html {
    html! {
        <footer class="status-bar">
            <p role="status" data-testid="status">{ &props.file }</p>
            <p role="status" data-testid="announcement">{ &props.announcement }</p>
            <p class="version">{ format!("Kinetoscope {}", crate::VERSION) }</p>
        </footer>
    }
}
