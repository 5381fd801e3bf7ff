//! The figures of the first screen, each a link to its evidence.

use kinetoscope::report::Cell;
use yew::prelude::*;

/// One figure.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// What it is.
    pub label: AttrValue,
    /// The value; a missing one says why in its title.
    pub value: Cell<'static>,
    /// A second line.
    #[prop_or_default]
    pub note: AttrValue,
    /// `good`, `bad` or nothing.
    #[prop_or_default]
    pub mood: Option<&'static str>,
    /// Stable name for tests.
    pub id: AttrValue,
    /// Leads to the evidence.
    pub on_open: Callback<()>,
}

/// Longer values are set smaller.
const ROOMY_CHARS: usize = 11;

/// A tile.
#[component]
pub fn Tile(props: &Props) -> Html {
    let Props { label, value, note, mood, id, on_open } = props;
    let shown = value.show();
    html! {
        <li class={classes!("tile", *mood)}>
            <button onclick={on_open.reform(|_: MouseEvent| ())} data-testid={format!("figure-{id}")}>
                <span class="tile-label">{ label }</span>
                <span class={classes!("tile-value", (shown.chars().count() > ROOMY_CHARS).then_some("long"))}
                    title={value.exact()} data-exact={value.raw()}>{ shown }</span>
                <span class="tile-note">{ note }</span>
            </button>
        </li>
    }
}

/// The row of tiles.
#[derive(Clone, PartialEq, Properties)]
pub struct RowProps {
    /// The tiles.
    pub children: Children,
}

/// All tiles.
#[component]
pub fn Figures(props: &RowProps) -> Html {
    html! { <ul class="figures" aria-label="Figures">{ for props.children.iter() }</ul> }
}
