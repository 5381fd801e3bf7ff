//! What covers the window while a file is held over it.

use yew::prelude::*;

/// The cover.
#[component]
pub fn DropTarget() -> Html {
    html! {
        <div class="drop-target" aria-hidden="true" data-testid="drop-target">
            <p><strong>{ "Drop to analyze and repair" }</strong></p>
            <p>{ "Traces as .json or .json.gz, several at once, or a folder of them. They stay on this machine." }</p>
        </div>
    }
}
