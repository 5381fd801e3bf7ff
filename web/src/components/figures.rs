//! The figures of the first screen, each a link to its evidence.

use kinetoscope::report::Cell;
use yew::prelude::*;

/// One figure.
pub struct Figure {
    /// What it is.
    pub label: &'static str,
    /// The value; a missing one says why in its title.
    pub value: Cell<'static>,
    /// A second line.
    pub note: String,
    /// `warning` or nothing.
    pub mood: Option<&'static str>,
    /// Stable name for tests.
    pub id: &'static str,
    /// Leads to the evidence.
    pub on_open: Callback<()>,
}

/// Longer values are set smaller.
const ROOMY_CHARS: usize = 11;

fn tile(figure: Figure) -> Html {
    let Figure { label, value, note, mood, id, on_open } = figure;
    let shown = value.show();
    html! {
        <li class={classes!("tile", mood)}>
            <button onclick={on_open.reform(|_: MouseEvent| ())} data-testid={format!("figure-{id}")}>
                <span class="tile-label">{ label }</span>
                <span class={classes!("tile-value", (shown.chars().count() > ROOMY_CHARS).then_some("long"))}
                    title={value.exact()} data-exact={value.raw()}>{ shown }</span>
                <span class="tile-note">{ note }</span>
            </button>
        </li>
    }
}

/// The row of tiles, one per figure.
pub fn tiles(figures: impl IntoIterator<Item = Figure>) -> Html {
    html! { <ul class="figures" aria-label="Figures">{ for figures.into_iter().map(tile) }</ul> }
}
