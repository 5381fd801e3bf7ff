//! Narrowing tables to a stage and a device.

use kinetoscope::report::{RowKey, Table, units};
use yew::prelude::*;

use super::kernel_panel::KernelPanel;
use super::overlap_lanes::OverlapLanes;
use super::queries::{KERNELS, MERGED, Narrowed, of_stage, share_of_shown};
use crate::features::data_table::DataTable;
use crate::features::data_table::queries::grid::TableSettings;
use crate::protocol::{Choice, JobId, KernelDetails, KernelKey, OverlapWindow};
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

/// One button per stage or device, and one for all of them (`chosen` is `None`). A single one needs none.
pub fn picker(kind: PickerKind, choices: &[Choice], chosen: Option<&str>, tasks: &Tasks) -> Html {
    if choices.len() < 2 {
        return html! {};
    }
    let (label, all, id) = match kind {
        PickerKind::Stage => ("Stage", "All stages", "stage"),
        PickerKind::Device => ("Device", "All devices", "device"),
    };
    let button = |choice: Option<&Choice>| {
        let (tasks, own) = (tasks.clone(), choice.map(|choice| choice.id.clone()));
        let pressed = own.as_deref() == chosen;
        let onclick = Callback::from(move |_: MouseEvent| {
            tasks.dispatch(match kind {
                PickerKind::Stage => Action::StageShown(own.clone()),
                PickerKind::Device => Action::DeviceShown(own.clone()),
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
            { for choices.iter().map(|choice| button(Some(choice))) }
            <span class="hint">{ "of GPU time" }</span>
        </div>
    }
}

/// What the rows of a table are, and so what there is to see of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// The row alone.
    Plain,
    /// Kernels: their launches and call sites, of the kernel that the worker answered last.
    Kernels(Option<Shared<KernelDetails>>),
    /// Overlap opportunities: the slices around the longest instance, of the row that the worker answered last.
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
    let TableProps { job, table, rows, narrowed, settings, default_sort, tasks } = props;
    let of_kernels = matches!(rows, Rows::Kernels(_));
    let shown = use_memo((table.clone(), narrowed.clone()), move |(table, narrowed)| {
        let (mut table, source) = of_stage(table, narrowed);
        if of_kernels {
            share_of_shown(&mut table);
        }
        if table.id == MERGED {
            table.id = KERNELS.into();
        }
        (Shared::new(table), source)
    });
    // The row that is shown in full, of the whole table.
    let row = use_state_eq(|| None::<u32>);
    let on_details = {
        let (shown, row) = (shown.clone(), row.clone());
        use_callback(shown, move |place: Option<u32>, shown| {
            row.set(place.and_then(|place| shown.1.get(place as usize).copied()));
        })
    };
    let key = row.and_then(|row| kernel_key(table, row));
    let event = row.and_then(|row| event_of(table, row));
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
    let (details, without) = match (rows, key) {
        (Rows::Kernels(found), Some(key)) => {
            let panel =
                html! { <KernelPanel wanted={key} found={found.clone()} tasks={tasks.clone()} /> };
            (panel, Some("kernel_name"))
        }
        _ => (html! {}, None),
    };
    let below = match (rows, event, *row) {
        (Rows::Overlaps(found), Some(event), Some(row)) => {
            let kernel_name = table
                .column("kernel_name")
                .and_then(|column| table.cell(row as usize, column))
                .map_or_else(String::new, |cell| cell.show());
            html! { <OverlapLanes {kernel_name} {event} found={found.clone()} settings={TableSettings::default()} tasks={tasks.clone()} /> }
        }
        _ => html! {},
    };
    html! {
        <>
            <DataTable table={shown.0.clone()} settings={settings.clone()} default_sort={*default_sort}
                details_beside=true {details} details_without={without} {on_details} tasks={tasks.clone()} />
            { below }
        </>
    }
}

/// The switch between a row per kernel name and a row per name and stage, where all stages are shown; `settings` are
/// those of the table.
pub fn kernel_scope(settings: &TableSettings, tasks: &Tasks) -> Html {
    let button = |by_stage: bool, title: &'static str, id: &'static str| {
        let (tasks, settings) = (tasks.clone(), settings.clone());
        let pressed = settings.by_stage == by_stage;
        let onclick = Callback::from(move |_: MouseEvent| {
            let settings = TableSettings { by_stage, ..settings.clone() };
            tasks.dispatch(Action::TableSet(KERNELS.to_owned(), settings));
        });
        html! { <button aria-pressed={pressed.to_string()} {onclick} data-testid={id}>{ title }</button> }
    };
    html! {
        <div class="stages" role="group" aria-label="Rows of the kernel table" data-testid="kernel-scope">
            { button(false, "Merge stages", "kernels-merged") }
            { button(true, "Split by stage", "kernels-by-stage") }
        </div>
    }
}

/// The kernel that a row is about.
fn kernel_key(table: &Table, row: u32) -> Option<KernelKey> {
    match table.key(row as usize)? {
        RowKey::Kernel { stage, device, name } => Some(KernelKey {
            stage: stage.to_owned(),
            device: device.map(str::to_owned),
            kernel_name: name.to_owned(),
        }),
        RowKey::Event(_) | RowKey::Op(_) => None,
    }
}

/// The event that a row is about.
fn event_of(table: &Table, row: u32) -> Option<u32> {
    match table.key(row as usize)? {
        RowKey::Event(event) => Some(event),
        RowKey::Kernel { .. } | RowKey::Op(_) => None,
    }
}
