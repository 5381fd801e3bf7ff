//! A button that opens a small panel: the columns of a table, the ways to copy it.

use gloo::utils::document;
use wasm_bindgen::JsCast;
use web_sys::{Event, HtmlElement, Node};
use yew::prelude::*;

use crate::components::icon;
use crate::tasks::browser::listen;

#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The button's text.
    pub label: AttrValue,
    /// What a screen reader says of the button.
    pub name: AttrValue,
    /// The button's icon.
    pub icon: &'static str,
    pub testid: AttrValue,
    pub children: Html,
}

/// The button, and its panel while that is open. Escape, a click elsewhere and a step out of it with Tab close it.
#[component]
pub fn Menu(props: &Props) -> Html {
    let open = use_state_eq(|| false);
    let (root, button) = (use_node_ref(), use_node_ref());
    {
        let (open, root) = (open.clone(), root.clone());
        use_effect_with(*open, move |is_open| {
            let listener = is_open.then(|| {
                let hear = move |event: &Event| {
                    let target = event.target().and_then(|of| of.dyn_into::<Node>().ok());
                    if !contains(&root, target.as_ref()) {
                        open.set(false);
                    }
                };
                listen(&document(), "pointerdown", Box::new(hear))
            });
            move || drop(listener)
        });
    }
    let toggle = {
        let open = open.clone();
        Callback::from(move |_: MouseEvent| open.set(!*open))
    };
    let onkeydown = {
        let (open, button) = (open.clone(), button.clone());
        Callback::from(move |event: KeyboardEvent| {
            if *open && event.key() == "Escape" {
                event.prevent_default();
                event.stop_propagation();
                open.set(false);
                if let Some(button) = button.cast::<HtmlElement>() {
                    let _focused = button.focus();
                }
            }
        })
    };
    let onfocusout = {
        let (open, root) = (open.clone(), root.clone());
        Callback::from(move |event: FocusEvent| {
            let to = event.related_target().and_then(|of| of.dyn_into::<Node>().ok());
            if to.is_some() && !contains(&root, to.as_ref()) {
                open.set(false);
            }
        })
    };
    html! {
        <div class="table-menu" ref={root} {onkeydown} {onfocusout}>
            <button ref={button} onclick={toggle} aria-expanded={open.to_string()} aria-label={props.name.clone()}
                data-testid={props.testid.clone()}>
                { icon(props.icon) }{ &props.label }
            </button>
            if *open {
                <div class="menu-panel" role="group" aria-label={props.name.clone()} tabindex="-1">{ props.children.clone() }</div>
            }
        </div>
    }
}

fn contains(root: &NodeRef, node: Option<&Node>) -> bool {
    root.cast::<Node>().is_some_and(|root| root.contains(node))
}
