//! The slices around the longest instance of an overlap row: the streams of its device as lanes.

use kinetoscope::report::units;
use yew::prelude::*;

use super::window::{lanes, ruler};
use crate::components::{chart_tools, icon, lanes_under_ruler};
use crate::features::data_table::DataTable;
use crate::features::data_table::queries::grid::TableSettings;
use crate::protocol::OverlapWindow;
use crate::shared::Shared;
use crate::tasks::Tasks;

/// The chosen row, and the slices around its longest instance.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The name of the row's kernel.
    pub kernel_name: String,
    /// The event of its longest instance.
    pub event: u32,
    /// The last answer of the worker, for this event or another.
    pub found: Option<Shared<OverlapWindow>>,
    /// How the table of the same slices is set.
    pub settings: TableSettings,
    /// Effects.
    pub tasks: Tasks,
}

/// The drawing, and the same as a table.
#[component]
pub fn OverlapLanes(props: &Props) -> Html {
    let found = props.found.as_ref().filter(|found| found.representative == props.event).cloned();
    let drawn = use_memo(found.clone(), |found| {
        let window = found.as_ref()?;
        Some((Shared::new(lanes(window)), Shared::new(window.table())))
    });
    let (Some(window), Some((lanes, table))) = (found, &*drawn) else {
        return html! {
            <section class="panel" data-testid="window-pending"><p class="hint" role="status">{ "Reading the slices around it…" }</p></section>
        };
    };
    let streams = units::plural(window.lanes.len() as u64, "stream", "streams");
    let dur_ns = window.end_ns.saturating_sub(window.start_ns);
    let others = window.lanes.iter().flat_map(|lane| &lane.slices).any(|slice| slice.before_window);
    html! {
        <section class="panel window" data-chart="overlap" aria-labelledby="window-head" data-testid="window">
            <div class="panel-head">
                <h2 id="window-head">{ "Around the longest instance" }</h2>
                <p class="hint">
                    { format!("{} on {streams}", units::time(dur_ns)) }
                    if !window.device.is_empty() {
                        { format!(" of device {}", window.device) }
                    }
                </p>
            </div>
            <p class="window-name"><span class="label">{ "A" }</span><code>{ kinetoscope::report::short_name(&props.kernel_name, 160) }</code></p>
            { lanes_under_ruler(lanes, dur_ns, &ruler(&window)) }
            { chart_tools() }
            if window.n_left_out > 0 {
                <p class="hint">{ icon("note") }{ format!("The {} shortest slices are not drawn.", units::count(window.n_left_out)) }</p>
            }
            if others {
                <p class="hint">{ "Kernels launched before profiling started are also drawn; the tables exclude them by default." }</p>
            }
            <details class="as-table">
                <summary>{ "Show as a table" }</summary>
                <DataTable table={table.clone()} settings={props.settings.clone()} titled=false tasks={props.tasks.clone()} />
            </details>
        </section>
    }
}
