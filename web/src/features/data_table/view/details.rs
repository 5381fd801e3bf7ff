//! One row in full: why and what to do first, then every column in the table's units, and what its words mean.

use kinetoscope::report::{Cell, RowKey, Table, Unit, units::Scale};
use web_sys::{Element, HtmlElement};
use yew::prelude::*;

use crate::components::icon;
use crate::features::data_table::queries::panel::{self, sought};
use crate::shared::Shared;
use crate::state::{Action, Sought};
use crate::tasks::Tasks;

#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    pub table: Shared<Table>,
    pub row: u32,
    /// Shown before the columns.
    pub extra: Html,
    /// A column that `extra` shows already.
    pub without: Option<&'static str>,
    pub on_close: Callback<()>,
    pub tasks: Tasks,
}

/// Longer values have a line of their own.
const WIDE_CHARS: usize = 48;

#[component]
pub fn RowDetails(props: &Props) -> Html {
    let panel = use_node_ref();
    {
        let panel = panel.clone();
        use_effect_with((), move |()| reveal(&panel));
    }
    let table = &props.table;
    let row = props.row as usize;
    if row >= table.n_rows() {
        return html! {};
    }
    let onkeydown = {
        let on_close = props.on_close.clone();
        Callback::from(move |event: KeyboardEvent| {
            if event.key() == "Escape" {
                event.prevent_default();
                on_close.emit(());
            }
        })
    };
    let columns = panel::details(table).into_iter();
    let columns =
        columns.filter(|at| props.without.is_none_or(|key| table.columns[*at].key != key));
    let entries = columns.filter_map(|at| {
        let (cell, column) = (table.cell(row, at)?, table.columns.get(at)?);
        let value = shown(&cell, table.scale(at));
        let exact = cell.exact();
        let title = (!cell.is_missing() && exact != value).then_some(exact);
        let wide = matches!(column.unit, Unit::Name) || value.chars().count() > WIDE_CHARS;
        let long_path = column.unit == Unit::Path && !value.is_empty() && !cell.is_missing();
        Some(html! {
            <div class={classes!(wide.then_some("wide"))}>
                <dt title={column.help.to_string()}>{ &*column.title }</dt>
                <dd {title} data-exact={cell.raw()} class={classes!(
                    matches!(column.unit, Unit::Name | Unit::Path).then_some("name"), cell.is_missing().then_some("missing"))}>
                    { if value.is_empty() { "–" } else { &value } }
                    if let Some(meaning) = cell.meaning() {
                        <span class="row-details-meaning">{ format!(": {meaning}") }</span>
                    }
                    if long_path {
                        { copy_button(&props.tasks, &column.title, &value) }
                    }
                </dd>
            </div>
        })
    });
    // A region that scrolls is reached by Tab, right after its table.
    html! {
        <section class="row-details" role="region" aria-label={format!("{}: row details", table.title)} tabindex="0" ref={panel} {onkeydown}
            data-testid={format!("details-{}", table.id)}>
            <button class="icon-button" aria-label="Close the details" onclick={props.on_close.reform(|_: MouseEvent| ())}>
                { icon("close") }
            </button>
            { props.extra.clone() }
            if let Some(RowKey::Op(op)) = table.key(row) {
                { benchmark_button(&props.tasks, op) }
            }
            if let Some(sought) = sought(table, row) {
                { timeline_button(&props.tasks, sought) }
            }
            <dl>{ for entries }</dl>
        </section>
    }
}

/// A value in the unit of its column, and the unit; for a missing value the reason.
fn shown(cell: &Cell, scale: Scale) -> String {
    match cell {
        Cell::Missing { reason } => reason.to_string(),
        Cell::Ns(_) | Cell::Bytes(_) | Cell::FileBytes(_) if !scale.suffix().is_empty() => {
            format!("{} {}", cell.show_in(scale), scale.suffix())
        }
        cell => cell.show(),
    }
}

/// A button that leads to the timeline.
fn timeline_button(tasks: &Tasks, sought: Sought) -> Html {
    let tasks = tasks.clone();
    let show = Callback::from(move |_: MouseEvent| tasks.show_in_timeline(sought.clone()));
    html! { <button onclick={show} data-testid="in-timeline">{ "Show in the timeline" }</button> }
}

/// A button that copies the script which times an op alone; a worker writes it.
fn benchmark_button(tasks: &Tasks, op: &str) -> Html {
    let (tasks, op) = (tasks.clone(), op.to_owned());
    let ask =
        Callback::from(move |_: MouseEvent| tasks.dispatch(Action::BenchmarkAsked(op.clone())));
    html! {
        <button onclick={ask} data-testid="copy-benchmark" title="A PyTorch script that times this op alone, as kinetoscope bench-op prints it">
            { "Copy a benchmark" }
        </button>
    }
}

/// A button that copies a value.
pub fn copy_button(tasks: &Tasks, title: &str, value: &str) -> Html {
    let copy = {
        let (tasks, title, value) = (tasks.clone(), title.to_owned(), value.to_owned());
        Callback::from(move |_: MouseEvent| tasks.copy(value.clone(), format!("Copied: {title}")))
    };
    html! {
        <button class="copy-value" onclick={copy} aria-label={format!("Copy {title}")} title={format!("Copy {title}")}>
            { icon("copy") }
        </button>
    }
}

/// Below its table, the panel may open out of sight.
fn reveal(panel: &NodeRef) {
    let Some(panel) = panel.cast::<HtmlElement>() else { return };
    let bottom = |element: &Element| element.get_bounding_client_rect().bottom();
    if let Ok(Some(part)) = panel.closest("main, .dock")
        && bottom(&panel) > bottom(&part)
    {
        panel.scroll_into_view_with_bool(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_unit_of_the_table() {
        let scale = Scale::time(2_960_957);
        assert_eq!(shown(&Cell::Ns(2_960_957), scale), "2.96 ms");
        assert_eq!(shown(&Cell::Ns(20_000), scale), "0.0200 ms");
        assert_eq!(shown(&Cell::missing("not recorded"), Scale::None), "not recorded");
        assert_eq!(shown(&Cell::Percent(43.04), Scale::None), "43.0%");
    }
}
