//! What ran around the representative instance of an overlap row: its device's streams as lanes.

use kinetoscope::report::units;
use yew::prelude::*;

use super::lanes::Lanes;
use super::{DataTable, Icon};
use crate::protocol::OverlapWindow;
use crate::queries::grid::TableSettings;
use crate::queries::window::{lanes, ruler};
use crate::shared::Shared;
use crate::tasks::Tasks;

/// The chosen row, and what the worker said.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The name of the row's kernel.
    pub kernel_name: String,
    /// The event of its longest instance.
    pub event: u32,
    /// What the worker said last, of this event or of another.
    pub told: Option<Shared<OverlapWindow>>,
    /// How the table of the same slices is set.
    pub settings: TableSettings,
    /// Effects.
    pub tasks: Tasks,
}

/// The drawing, and the same as a table.
#[component]
pub fn OverlapLanes(props: &Props) -> Html {
    let told = props.told.as_ref().filter(|told| told.representative == props.event).cloned();
    let drawn = use_memo(told.clone(), |told| {
        let window = told.as_ref()?;
        Some((Shared::new(lanes(window)), Shared::new(window.table())))
    });
    let (Some(window), Some((lanes, table))) = (told, &*drawn) else {
        return html! {
            <section class="panel" data-testid="window-pending"><p class="hint" role="status">{ "Asking what ran around it…" }</p></section>
        };
    };
    let streams = units::plural(window.lanes.len() as u64, "stream", "streams");
    let dur_ns = window.end_ns.saturating_sub(window.start_ns);
    let others = window.lanes.iter().flat_map(|lane| &lane.slices).any(|slice| slice.before_window);
    html! {
        <section class="panel window" aria-labelledby="window-head" data-testid="window">
            <div class="panel-head">
                <h2 id="window-head">{ "Around its longest instance" }</h2>
                <p class="hint">
                    { format!("{} of {streams}", units::time(dur_ns)) }
                    if !window.device.is_empty() {
                        { format!(" of device {}", window.device) }
                    }
                </p>
            </div>
            <p class="window-name"><span class="label">{ "A" }</span><code>{ kinetoscope::report::short_name(&props.kernel_name, 160) }</code></p>
            <Lanes lanes={lanes.clone()} {dur_ns} ruler={ruler(&window)} />
            if window.n_left_out > 0 {
                <p class="hint"><Icon name="note" />{ format!("{} more are too many to draw: the shortest are left out.", units::count(window.n_left_out)) }</p>
            }
            if others {
                <p class="hint">{ "Work that was launched before the profiler's window is drawn, too, though no table counts it." }</p>
            }
            <details class="as-table">
                <summary>{ "The same as a table" }</summary>
                <DataTable table={table.clone()} settings={props.settings.clone()} titled=false tasks={props.tasks.clone()} />
            </details>
        </section>
    }
}
