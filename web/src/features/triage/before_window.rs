//! The switch that includes work launched before profiling started.

use kinetoscope::report::units;
use wasm_bindgen::JsCast;
use web_sys::HtmlInputElement;
use yew::prelude::*;

use crate::protocol::BeforeWindowSum;
use crate::state::Action;
use crate::tasks::Tasks;

/// A switch with the amount of work that it is about, and whether that is included (`count`). Without such work there is
/// no switch.
pub fn before_window(sum: &BeforeWindowSum, count: bool, tasks: &Tasks) -> Html {
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
                <input type="checkbox" checked={count} {onchange} data-testid="count-before-window" />
                <span>{ "Include kernels launched before profiling started" }</span>
            </label>
            <span class="before-window-sum" data-testid="before-window-sum" title={format!("{} ns", units::signed(sum.total_ns))}>
                { before_window_text(sum) }
            </span>
        </div>
    }
}

/// "463 GPU slices, 12.3 ms. Excluded by default: they belong to an earlier step."
fn before_window_text(sum: &BeforeWindowSum) -> String {
    let what = units::plural(sum.n_slices, "GPU slice", "GPU slices");
    let state = match sum.counted {
        true => "Included now.",
        false => "Excluded by default: this work belongs to an earlier step.",
    };
    format!("{what}, {}. {state}", units::time(sum.total_ns))
}
