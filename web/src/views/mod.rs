//! The views of a file.

mod chapter;
mod table;

use std::collections::BTreeMap;

pub(crate) use chapter::{chapter, sentence};
pub use table::{Group, View};

use kinetoscope::report::{Table, units};
use yew::prelude::*;

use crate::components::{About, failure_card, icon, record_link};
use crate::features::aside::queries::Described;
use crate::features::aside::view as aside;
use crate::features::compare::queries::Compare;
use crate::features::data_table::DataTable;
use crate::features::data_table::queries::grid::TableSettings;
use crate::features::host::view as host;
use crate::features::snapshot::view as snapshot;
use crate::features::timeline::queries::clock::Together;
use crate::features::timeline::view as timeline;
use crate::features::triage::before_window::before_window;
use crate::features::triage::queries::Narrowed;
use crate::features::triage::stages::{PickerKind, picker};
use crate::protocol::{Aside, JobId, Stage, Triage};
use crate::queries::page::narrowed;
use crate::queries::status::progress_text;
use crate::shared::Shared;
use crate::state::{ArtifactForm, FileEntry, PerfettoState, Phase, ServerArgs, Theme};
use crate::tasks::Tasks;

/// A file and which of its views.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The file.
    pub file: Shared<FileEntry>,
    /// The view.
    pub view: View,
    /// The comparison with another file.
    pub compare: Compare,
    /// What tables of triage show, as a person chose it.
    pub chosen: Narrowed,
    /// Whether what was launched before the window counts.
    pub count_before_window: bool,
    /// What the file is, if it is no trace.
    pub aside: Option<Described>,
    /// What a person told and chose, for artifacts.
    pub form: ArtifactForm,
    /// The other open snapshots, where the file is one.
    pub other_snapshots: Vec<(JobId, String)>,
    /// The open traces, where the file is a snapshot.
    pub traces_beside: Vec<(JobId, String)>,
    /// The files below its timeline, and those that could be.
    pub together: Together,
    /// A `server_args.json`.
    pub server_args: Option<ServerArgs>,
    /// How the tables are set.
    pub tables: BTreeMap<String, TableSettings>,
    /// What "Open in Perfetto" is doing.
    pub perfetto: PerfettoState,
    /// Where it leads.
    pub perfetto_url: AttrValue,
    /// The colours of pictures that a worker draws.
    pub theme: Theme,
    /// The height of the timeline below a view, in thousandths.
    pub dock_height: u16,
    /// Effects.
    pub tasks: Tasks,
}

impl Props {
    /// A table with what a person did to it.
    pub(crate) fn table(&self, table: &Shared<Table>, default_sort: Option<&'static str>) -> Html {
        self.table_with(table, default_sort, true, false)
    }

    /// What is shown of this file, or of the step that is chosen.
    pub(crate) fn narrowed(&self) -> Narrowed {
        narrowed(self.file.shown_triage(), &self.chosen)
    }

    /// What is not narrowed to the step that is chosen.
    pub(crate) fn whole(&self, what: &str) -> Html {
        self.file.step.as_ref().map_or_else(Html::default, |step| {
            html! { <p class="hint" data-testid="whole">{ format!("{what} of the whole trace, not of {} alone.", step.name) }</p> }
        })
    }

    /// The selectors, the switch and the note on the recording that all views of triage share.
    pub(crate) fn choices(&self, triage: &Triage) -> Html {
        html! {
            <>
                { self.lacks(self.file.triage.as_deref().unwrap_or(triage)) }
                { host::step_picker(self) }
                { self.pickers(triage) }
                if self.file.step.is_none() {
                    { before_window(&triage.before_window, self.count_before_window || triage.before_window.counted, &self.tasks) }
                }
            </>
        }
    }

    /// Work that tables over the whole file include and triage does not.
    pub(crate) fn counted_here(&self) -> Html {
        let before = self.file.triage.as_ref().map(|triage| triage.before_window);
        let Some(before) = before.filter(|before| before.n_slices > 0) else { return html! {} };
        html! {
            <p class="hint" data-testid="counted-here">
                { format!("Includes {} launched before profiling started ({}).",
                    units::plural(before.n_slices, "GPU slice", "GPU slices"), units::time(before.total_ns)) }
            </p>
        }
    }

    /// What was not recorded, and how to record it.
    pub(crate) fn lacks(&self, triage: &Triage) -> Html {
        let text = match (triage.lacks.stacks, triage.lacks.shapes) {
            (true, true) => {
                "Python lines and input shapes were not recorded (with_stack and record_shapes were off). "
            }
            (true, false) => "Python lines were not recorded (with_stack was off). ",
            (false, true) => "Input shapes were not recorded (record_shapes was off). ",
            (false, false) => return html! {},
        };
        html! {
            <p class="note-line" data-testid="lacks">
                { icon("note") }
                <span>{ text }{ record_link(&self.tasks) }</span>
            </p>
        }
    }

    /// The selectors.
    pub(crate) fn pickers(&self, triage: &Triage) -> Html {
        let narrowed = self.narrowed();
        if triage.stages.len() < 2 && triage.devices.len() < 2 {
            return html! {};
        }
        html! {
            <div class="pickers">
                { picker(PickerKind::Device, &triage.devices, narrowed.device.as_deref(), &self.tasks) }
                { picker(PickerKind::Stage, &triage.stages, narrowed.stage.as_deref(), &self.tasks) }
            </div>
        }
    }

    pub(crate) fn table_with(
        &self,
        table: &Shared<Table>,
        default_sort: Option<&'static str>,
        titled: bool,
        tall: bool,
    ) -> Html {
        let settings = self.tables.get(&*table.id).cloned().unwrap_or_default();
        html! {
            <DataTable table={table.clone()} {settings} {default_sort} {titled} {tall} tasks={self.tasks.clone()} />
        }
    }
}

/// The view of a file.
#[component]
pub fn FileView(props: &Props) -> Html {
    let Props { file, view, tasks, .. } = props;
    if let Some(described) = &props.aside {
        return aside::view(described);
    }
    if let Some(Aside::Snapshot { is_timeline, chapters, charts, .. }) = file.aside.as_deref() {
        return snapshot::view(props, chapters, charts, *is_timeline);
    }
    let stopped = matches!(file.phase, Phase::Failed(_) | Phase::Cancelled | Phase::Asking);
    let content = empty_without_gpu(props).or_else(|| (view.def().render)(props));
    // Of what could not be read at all there is only the name.
    let bare = stopped && content.is_none();
    let rest = match &file.phase {
        Phase::Failed(_) => snapshot::part_of_failed(props),
        Phase::Asking => snapshot::question(props),
        Phase::Working(_) | Phase::Cancelled | Phase::Ready => html! {},
    };
    html! {
        <article class={classes!("view", format!("view-{}", view.id()))} data-testid={format!("view-{}", view.id())}>
            if bare {
                { heading(&file.name, "") }
            }
            { trouble(file, (!bare).then_some(&*file.name), tasks) }
            { rest }
            if matches!(view, View::Breakdown | View::Compare | View::Downloads) {
                { props.whole("This view is") }
            }
            { content.unwrap_or_else(|| if bare { html! {} } else { pending(props) }) }
        </article>
    }
}

/// Why a file was not read, or not to its end, and how to read it again. `name`: of the file, where it is not in sight.
pub(crate) fn trouble(file: &FileEntry, name: Option<&str>, tasks: &Tasks) -> Html {
    let (job, again) = (file.job, tasks.clone());
    let retry = Callback::from(move |()| again.retry(job));
    match &file.phase {
        Phase::Failed(failure) => {
            let about = About { file: name, on_retry: Some(retry), ..About::default() };
            failure_card(failure, about, tasks)
        }
        Phase::Cancelled => html! {
            <section class="card stopped" data-testid="stopped">
                <h2>{ "Stopped" }</h2>
                <p>{ format!("Reading {} was stopped.", file.name) }</p>
                <p class="card-actions"><button onclick={retry.reform(|_: MouseEvent| ())}>{ "Read it again" }</button></p>
            </section>
        },
        Phase::Working(_) | Phase::Asking | Phase::Ready => html! {},
    }
}

/// The timeline below the view of a trace; `None` where the view is the timeline, or there is none. (The view itself says why a file
/// was not read to its end.)
#[must_use]
pub fn docked(props: &Props) -> Option<Html> {
    let file = &props.file;
    let stopped = matches!(file.phase, Phase::Failed(_) | Phase::Cancelled);
    let shown = props.view != View::Timeline && file.opened.is_some() && !stopped;
    shown.then(|| timeline::dock(props))
}

/// A view about GPU slices of a trace that has none.
fn empty_without_gpu(props: &Props) -> Option<Html> {
    let report = props.file.report.as_ref()?;
    (props.view.needs_gpu() && report.busy_pct.is_none()).then(|| {
        html! {
            <>
                { heading(props.view.title(), &report.verdict) }
                { no_gpu(props) }
            </>
        }
    })
}

/// The way to the recording help, below the verdict that says what such a trace has.
pub(crate) fn no_gpu(props: &Props) -> Html {
    html! {
        <p data-testid="no-gpu">{ record_link(&props.tasks) }</p>
    }
}

/// A view whose stage has not ended.
fn pending(props: &Props) -> Html {
    let progress = props.file.progress();
    let text = progress.map_or_else(String::new, |progress| progress_text(&progress));
    let reading = progress.is_some_and(|progress| progress.stage == Stage::Reading);
    html! {
        <>
            { heading(props.view.title(), "") }
            <div class="pending" data-testid="pending">
                <p>{ text }</p>
                if reading {
                    <p class="hint">{ "Each view appears as soon as its data is ready. To stop, use the button on the file's card." }</p>
                }
                <div class="skeleton" aria-hidden="true"></div>
                <div class="skeleton" aria-hidden="true"></div>
                <div class="skeleton" aria-hidden="true"></div>
            </div>
        </>
    }
}

/// The heading of a view and its finding in one line.
pub(crate) fn heading(title: &str, finding: &str) -> Html {
    html! {
        <header class="view-head">
            <h1 tabindex="-1">{ title }</h1>
            if !finding.is_empty() {
                <p class="finding-line" data-testid="finding-line">{ finding }</p>
            }
        </header>
    }
}
