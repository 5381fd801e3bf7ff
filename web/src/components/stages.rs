//! Narrowing tables to a stage and a device.

use kinetoscope::report::{Cell, Table, units};
use yew::prelude::*;

use super::{DataTable, KernelPanel, OverlapLanes};
use crate::protocol::{Choice, JobId, KernelDetails, KernelKey, OverlapWindow};
use crate::queries::grid::TableSettings;
use crate::queries::stages::{Narrowed, of_stage, text_of};
use crate::shared::Shared;
use crate::state::Action;
use crate::tasks::Tasks;

/// What is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickerKind {
    /// A stage.
    Stage,
    /// A device.
    Device,
}

/// What there is to choose from, and what is chosen.
#[derive(Clone, PartialEq, Properties)]
pub struct PickerProps {
    /// What is chosen.
    pub kind: PickerKind,
    /// What there is.
    pub choices: Shared<Vec<Choice>>,
    /// The chosen one; `None` for all.
    pub chosen: Option<String>,
    /// Effects.
    pub tasks: Tasks,
}

/// One button per stage or device, and one for all of them. A single one needs none.
#[component]
pub fn Picker(props: &PickerProps) -> Html {
    if props.choices.len() < 2 {
        return html! {};
    }
    let (label, all, id) = match props.kind {
        PickerKind::Stage => ("Stage", "All stages", "stage"),
        PickerKind::Device => ("Device", "All devices", "device"),
    };
    let button = |choice: Option<&Choice>| {
        let (tasks, kind) = (props.tasks.clone(), props.kind);
        let chosen = choice.map(|choice| choice.id.clone());
        let pressed = chosen == props.chosen;
        let onclick = Callback::from(move |_: MouseEvent| {
            tasks.dispatch(match kind {
                PickerKind::Stage => Action::StageShown(chosen.clone()),
                PickerKind::Device => Action::DeviceShown(chosen.clone()),
            });
        });
        let testid = choice.map_or_else(|| format!("{id}s-all"), |of| format!("{id}-{}", of.id));
        html! {
            <button aria-pressed={pressed.to_string()} {onclick} data-testid={testid}>
                <span>{ choice.map_or(all, |choice| choice.title.as_str()) }</span>
                if let Some(choice) = choice {
                    <span class="stage-share">{ units::percent(choice.share_pct) }</span>
                }
            </button>
        }
    };
    html! {
        <div class="stages" role="group" aria-label={label} data-testid={format!("{id}s")}>
            { button(None) }
            { for props.choices.iter().map(|choice| button(Some(choice))) }
        </div>
    }
}

/// What the rows of a table are, and so what there is to see of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// Nothing beyond the row.
    Plain,
    /// Kernels: their launches and places. What the worker said last.
    Kernels(Option<Shared<KernelDetails>>),
    /// Chances to overlap: what ran around the longest instance. What the worker said last.
    Overlaps(Option<Shared<OverlapWindow>>),
}

/// A table that is narrowed to a stage.
#[derive(Clone, PartialEq, Properties)]
pub struct TableProps {
    /// The file.
    pub job: JobId,
    /// All rows.
    pub table: Shared<Table>,
    /// What they are.
    pub rows: Rows,
    /// Which of them are shown.
    pub narrowed: Narrowed,
    /// Keys of the columns that come first.
    pub lead: &'static [&'static str],
    /// Order and filter as a person set them.
    pub settings: TableSettings,
    /// The column that orders it until a header is clicked.
    pub default_sort: Option<&'static str>,
    /// Effects.
    pub tasks: Tasks,
}

/// The table, with the details of a row beside it.
#[component]
pub fn StagedTable(props: &TableProps) -> Html {
    let TableProps { job, table, rows, narrowed, lead, settings, default_sort, tasks } = props;
    let shown = {
        let lead = *lead;
        use_memo((table.clone(), narrowed.clone()), move |(table, narrowed)| {
            let (table, source) = of_stage(table, narrowed, lead);
            (Shared::new(table), source)
        })
    };
    // The row that is shown in full, of the whole table.
    let row = use_state_eq(|| None::<u32>);
    let on_details = {
        let (shown, row) = (shown.clone(), row.clone());
        use_callback(shown, move |place: Option<u32>, shown| {
            row.set(place.and_then(|place| shown.1.get(place as usize).copied()));
        })
    };
    let key =
        row.and_then(|row| kernel_key(table, row)).filter(|_| matches!(rows, Rows::Kernels(_)));
    let event =
        row.and_then(|row| event_of(table, row)).filter(|_| matches!(rows, Rows::Overlaps(_)));
    {
        let (tasks, job) = (tasks.clone(), *job);
        // A triage that was made again answers anew.
        use_effect_with((key.clone(), event, table.clone()), move |(key, event, _)| {
            if let Some(key) = key.clone() {
                tasks.ask_kernel(job, key);
            }
            if let Some(event) = *event {
                tasks.ask_window(job, event);
            }
        });
    }
    let details = match (rows, key) {
        (Rows::Kernels(told), Some(key)) => {
            html! { <KernelPanel wanted={key} told={told.clone()} tasks={tasks.clone()} /> }
        }
        _ => html! {},
    };
    let below = match (rows, event, *row) {
        (Rows::Overlaps(told), Some(event), Some(row)) => {
            let kernel_name = text_of(table, row, "kernel_name").unwrap_or_default().to_owned();
            html! { <OverlapLanes {kernel_name} {event} told={told.clone()} settings={TableSettings::default()} tasks={tasks.clone()} /> }
        }
        _ => html! {},
    };
    html! {
        <>
            <DataTable table={shown.0.clone()} settings={settings.clone()} default_sort={*default_sort}
                details_beside=true {details} {on_details} tasks={tasks.clone()} />
            { below }
        </>
    }
}

fn kernel_key(table: &Table, row: u32) -> Option<KernelKey> {
    let text = |key: &str| text_of(table, row, key).map(str::to_owned);
    Some(KernelKey {
        stage: text("stage")?,
        device: text("device"),
        kernel_name: text("kernel_name")?,
    })
}

/// The event of the longest instance.
fn event_of(table: &Table, row: u32) -> Option<u32> {
    match table.cell(row as usize, table.column("representative")?)? {
        Cell::Count(event) => u32::try_from(*event).ok(),
        _ => None,
    }
}
