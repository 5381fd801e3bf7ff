//! The buttons that save a chart as a picture.

use yew::prelude::*;

/// Buttons for the element around them that has `data-chart`, the name of its picture (`save` of `web/chart.js`).
pub fn chart_tools() -> Html {
    html! {
        <div class="chart-tools">
            <button class="link" data-call="chart save png" title="Save this chart as a PNG" data-testid="chart-png">{ "PNG" }</button>
            <button class="link" data-call="chart save svg" title="Save this chart as an SVG" data-testid="chart-svg">{ "SVG" }</button>
        </div>
    }
}
