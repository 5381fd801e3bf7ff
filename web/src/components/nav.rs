//! Navigation between views: a column at the left, or tabs at the top of a narrow window.

use yew::prelude::*;

use crate::state::{Action, View};
use crate::tasks::Tasks;
use crate::views::Group;

/// The views and the number beside each.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The view shown.
    pub view: View,
    /// Whether the file has GPU slices, as far as it is known; without them most views would be empty.
    pub has_gpu: bool,
    /// A number beside a view's name: slices that Perfetto drops.
    pub badges: Vec<(View, AttrValue, bool)>,
    /// Effects.
    pub tasks: Tasks,
}

/// The navigation.
#[component]
pub fn Nav(props: &Props) -> Html {
    let item = |view: View| {
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
                    <kbd aria-hidden="true">{ for view.key() }</kbd>
                </button>
            </li>
        }
    };
    let group = |group: Group| {
        let shown = group.views().filter(|view| props.has_gpu || !view.needs_gpu());
        let items: Vec<Html> = shown.map(item).collect();
        if items.is_empty() {
            return html! {};
        }
        html! {
            <div class="nav-group" role="group" aria-label={group.title()}>
                if let Some(title) = group.title() {
                    <p class="nav-title" aria-hidden="true">{ title }</p>
                }
                <ul>{ for items }</ul>
            </div>
        }
    };
    html! {
        <nav class="nav" aria-label="Views">{ for Group::ALL.into_iter().map(group) }</nav>
    }
}
