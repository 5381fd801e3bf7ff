//! Navigation between views: a column at the left, or tabs at the top of a narrow window.

use yew::prelude::*;

use crate::state::{Action, View};
use crate::tasks::Tasks;
use crate::views::Group;

/// The navigation between the views of a file, of which `shown` is shown. `has_gpu`: whether the file has GPU slices, as
/// far as it is known; without them most views would be empty. `badges`: numbers beside the names of views.
pub fn nav(shown: View, has_gpu: bool, badges: &[(View, AttrValue, bool)], tasks: &Tasks) -> Html {
    let item = |view: View| {
        let tasks = tasks.clone();
        let onclick = Callback::from(move |_: MouseEvent| tasks.dispatch(Action::Shown(view)));
        let current = (view == shown).then_some("page");
        let badge = badges.iter().find(|(of, ..)| *of == view);
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
        let views = group.views().filter(|view| has_gpu || !view.needs_gpu());
        let items: Vec<Html> = views.map(item).collect();
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
