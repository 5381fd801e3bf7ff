//! Which view: a column at the left, tabs at the top of a narrow window.

use yew::prelude::*;

use crate::state::{Action, View};
use crate::tasks::Tasks;

/// The views and what each has to say about itself.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The view shown.
    pub view: View,
    /// A number beside a view's name: problems found, slices lost.
    pub badges: Vec<(View, AttrValue, bool)>,
    /// Effects.
    pub tasks: Tasks,
}

/// The navigation.
#[component]
pub fn Nav(props: &Props) -> Html {
    let item = |(place, view): (usize, View)| {
        let tasks = props.tasks.clone();
        let onclick = Callback::from(move |_: MouseEvent| tasks.dispatch(Action::Shown(view)));
        let current = (view == props.view).then_some("page");
        let badge = props.badges.iter().find(|(of, ..)| *of == view);
        html! {
            <li>
                <button class="nav-item" aria-current={current} {onclick} data-testid={format!("nav-{}", view.id())}>
                    <span>{ view.title() }</span>
                    if let Some((_, text, bad)) = badge {
                        <span class={classes!("badge", bad.then_some("bad"))}>{ text }</span>
                    }
                    <kbd aria-hidden="true">{ (place + 1) % 10 }</kbd>
                </button>
            </li>
        }
    };
    html! {
        <nav class="nav" aria-label="Views">
            <ul>{ for View::ALL.into_iter().enumerate().map(item) }</ul>
        </nav>
    }
}
