//! The upper edge of the timeline below a view: a separator that a pointer or the arrow keys move.

use web_sys::HtmlElement;
use yew::prelude::*;

use super::queries::{DEFAULT, LEAST, MOST, after_key, from_y};
use crate::state::Action;
use crate::tasks::{Tasks, settings};

#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The height of the timeline, in thousandths.
    pub height: u16,
    pub tasks: Tasks,
}

/// The separator. It takes the whole head of the timeline: the buttons lie over it.
#[component]
pub fn DockEdge(props: &Props) -> Html {
    let Props { height, tasks } = props.clone();
    // How far below the edge the pointer went down.
    let held_at = use_mut_ref(|| 0.0);
    let keep = {
        let tasks = tasks.clone();
        move || settings::keep_dock_height(tasks.state().dock_height)
    };
    let set = move |height| tasks.dispatch(Action::DockSized(height));
    let onkeydown = {
        let (set, keep) = (set.clone(), keep.clone());
        Callback::from(move |event: KeyboardEvent| {
            if let Some(height) = after_key(&event.key(), height) {
                event.prevent_default();
                set(height);
                keep();
            }
        })
    };
    let onpointerdown = {
        let held_at = held_at.clone();
        Callback::from(move |event: PointerEvent| {
            let edge: HtmlElement = event.target_unchecked_into();
            let _captured = edge.set_pointer_capture(event.pointer_id());
            held_at.replace(f64::from(event.client_y()) - edge.get_bounding_client_rect().top());
        })
    };
    let onpointermove = {
        let set = set.clone();
        Callback::from(move |event: PointerEvent| {
            let edge: HtmlElement = event.target_unchecked_into();
            if event.buttons() == 0 || !edge.has_pointer_capture(event.pointer_id()) {
                return;
            }
            if let Ok(Some(both)) = edge.closest(".body") {
                let both = both.get_bounding_client_rect();
                let y = f64::from(event.client_y()) - *held_at.borrow();
                set(from_y(y, both.top(), both.bottom()));
            }
        })
    };
    let ondblclick = {
        let keep = keep.clone();
        Callback::from(move |_: MouseEvent| {
            set(DEFAULT);
            keep();
        })
    };
    // A drag changes the height with every move of the pointer; it is kept once, when the pointer lets go.
    let onlostpointercapture = Callback::from(move |_: PointerEvent| keep());
    let percent = |height: u16| (height / 10).to_string();
    html! {
        <div class="dock-edge" role="separator" tabindex="0" aria-orientation="horizontal" aria-label="Height of the timeline"
            aria-valuenow={percent(height)} aria-valuemin={percent(LEAST)} aria-valuemax={percent(MOST)}
            title="Drag, or press the up and down arrow keys. Double-click for the default height."
            {onkeydown} {onpointerdown} {onpointermove} {onlostpointercapture} {ondblclick} data-testid="dock-edge"></div>
    }
}
