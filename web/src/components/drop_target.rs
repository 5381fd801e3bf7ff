//! Covers the window while a file is dragged over it.

use yew::prelude::*;

/// The cover.
pub fn drop_target() -> Html {
    html! {
        <div class="drop-target" aria-hidden="true" data-testid="drop-target">
            <p><strong>{ "Drop to open" }</strong></p>
            <p>{ "Traces as .json or .json.gz, one or several, or a folder" }</p>
        </div>
    }
}
