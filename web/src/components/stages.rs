//! Narrowing tables to a stage.

use kinetoscope::report::{Table, units};
use yew::prelude::*;

use super::DataTable;
use crate::protocol::StageChoice;
use crate::queries::grid::TableSettings;
use crate::queries::stages::of_stage;
use crate::shared::Shared;
use crate::state::Action;
use crate::tasks::Tasks;

/// The stages of a file, and the chosen one.
#[derive(Clone, PartialEq, Properties)]
pub struct PickerProps {
    /// The stages.
    pub stages: Shared<Vec<StageChoice>>,
    /// The chosen one; `None` for all.
    pub chosen: Option<String>,
    /// Effects.
    pub tasks: Tasks,
}

/// One button per stage, and one for all of them. A file of one stage needs none.
#[component]
pub fn StagePicker(props: &PickerProps) -> Html {
    if props.stages.len() < 2 {
        return html! {};
    }
    let button = |id: Option<&str>, title: &str, share_pct: Option<f64>| {
        let (tasks, stage) = (props.tasks.clone(), id.map(str::to_owned));
        let pressed = stage == props.chosen;
        let onclick = Callback::from(move |_: MouseEvent| {
            tasks.dispatch(Action::StageShown(stage.clone()));
        });
        html! {
            <button aria-pressed={pressed.to_string()} {onclick}
                data-testid={id.map_or_else(|| "stages-all".to_owned(), |id| format!("stage-{id}"))}>
                <span>{ title }</span>
                if let Some(share_pct) = share_pct {
                    <span class="stage-share">{ units::percent(share_pct) }</span>
                }
            </button>
        }
    };
    html! {
        <div class="stages" role="group" aria-label="Stage" data-testid="stages">
            { button(None, "All stages", None) }
            { for props.stages.iter().map(|stage| button(Some(&stage.id), &stage.title, Some(stage.share_pct))) }
        </div>
    }
}

/// A table that is narrowed to a stage.
#[derive(Clone, PartialEq, Properties)]
pub struct TableProps {
    /// All rows.
    pub table: Shared<Table>,
    /// The chosen stage; `None` for all.
    pub stage: Option<String>,
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
    let TableProps { table, stage, lead, settings, default_sort, tasks } = props;
    let narrowed = {
        let lead = *lead;
        use_memo((table.clone(), stage.clone()), move |(table, stage)| {
            Shared::new(of_stage(table, stage.as_deref(), lead))
        })
    };
    html! {
        <DataTable table={(*narrowed).clone()} settings={settings.clone()} default_sort={*default_sort}
            details_beside=true tasks={tasks.clone()} />
    }
}
