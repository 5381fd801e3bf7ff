//! Whether what was launched before the window counts.

use kinetoscope::report::units;
use wasm_bindgen::JsCast;
use web_sys::HtmlInputElement;
use yew::prelude::*;

use crate::protocol::BeforeWindowSum;
use crate::state::Action;
use crate::tasks::Tasks;

/// What was launched before the window, and whether it counts.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// How much there is.
    pub sum: BeforeWindowSum,
    /// Whether it is to count.
    pub count: bool,
    /// Effects.
    pub tasks: Tasks,
}

/// A switch, and beside it how much it is about. Without such work there is nothing to switch.
#[component]
pub fn BeforeWindow(props: &Props) -> Html {
    let Props { sum, count, tasks } = props;
    if sum.n_slices == 0 {
        return html! {};
    }
    let tasks = tasks.clone();
    let onchange = Callback::from(move |event: Event| {
        let field = event.target().and_then(|of| of.dyn_into::<HtmlInputElement>().ok());
        if let Some(field) = field {
            tasks.dispatch(Action::BeforeWindowSet(field.checked()));
        }
    });
    html! {
        <div class="before-window" data-testid="before-window">
            <label class="check">
                <input type="checkbox" checked={*count} {onchange} data-testid="count-before-window" />
                <span>{ "Count what was launched before the window" }</span>
            </label>
            <span class="before-window-sum" data-testid="before-window-sum" title={format!("{} ns", units::signed(sum.total_ns))}>
                { before_window_text(sum) }
            </span>
        </div>
    }
}

/// "463 GPU slices, 12.3 ms, are left out: such work belongs to an earlier step."
fn before_window_text(sum: &BeforeWindowSum) -> String {
    let what = units::plural(sum.n_slices, "GPU slice", "GPU slices");
    let told = match (sum.counted, sum.n_slices) {
        (true, 1) => "is counted",
        (true, _) => "are counted",
        (false, 1) => "is left out",
        (false, _) => "are left out",
    };
    format!("{what}, {}, {told}: such work belongs to an earlier step.", units::time(sum.total_ns))
}
