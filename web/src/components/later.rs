//! Defers content below the first screen, so that the first screen is drawn sooner.

use yew::prelude::*;

use crate::tasks::browser::after;

/// What can wait.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The content.
    pub children: Children,
}

/// The content, one piece per turn of the browser's loop.
#[component]
pub fn Later(props: &Props) -> Html {
    let n_pieces = props.children.len();
    let n_shown = use_state_eq(|| 0_usize);
    {
        let n_shown = n_shown.clone();
        use_effect_with((*n_shown, n_pieces), move |(shown, n_pieces)| {
            let next = shown + 1;
            let timer = (next <= *n_pieces).then(|| after(0, Box::new(move || n_shown.set(next))));
            move || drop(timer)
        });
    }
    html! { <>{ for props.children.iter().take(*n_shown) }</> }
}
