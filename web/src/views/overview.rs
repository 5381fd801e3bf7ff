//! The first screen: the verdict, five figures with their evidence, what is wrong, and who ran.

use kinetoscope::report::{Cell, units};
use yew::prelude::*;

use super::{Props, heading};
use crate::components::{Figures, FindingCard, Later, StackedBar, Tile};
use crate::protocol::{Analyses, Severity};
use crate::state::{Action, View};

pub fn view(props: &Props) -> Option<Html> {
    let report = props.file.report.as_ref()?;
    let chapter = report.chapter("overview")?;
    let table = |id: &str| chapter.table(id).filter(|table| !table.rows.is_empty());
    let steps = report.chapter("steps").and_then(|chapter| chapter.table("steps"));
    Some(html! {
        <>
            { heading("Overview", &report.verdict) }
            { figures(props, report) }
            { quality(props) }
            if !report.parts.is_empty() {
                <section class="panel">
                    <div class="panel-head">
                        <h2>{ "Where the GPU time goes" }</h2>
                        <button class="link" onclick={show(props, View::Breakdown)}>{ "Breakdown" }</button>
                    </div>
                    <StackedBar parts={report.parts.clone()} compact=true />
                </section>
            }
            { for chapter.findings.iter().map(|finding| html! { <FindingCard finding={finding.clone()} /> }) }
            <Later>
                if let Some(streams) = table("streams") {
                    { props.table(streams, None) }
                }
                if let Some(devices) = table("devices").filter(|table| table.rows.len() > 1) {
                    { props.table(devices, None) }
                }
                if let Some(steps) = steps {
                    { props.table(steps, None) }
                }
                { facts(report) }
            </Later>
        </>
    })
}

fn show(props: &Props, view: View) -> Callback<MouseEvent> {
    open(props, view).reform(|_: MouseEvent| ())
}

fn open(props: &Props, view: View) -> Callback<()> {
    let tasks = props.tasks.clone();
    Callback::from(move |()| tasks.dispatch(Action::Shown(view)))
}

fn figures(props: &Props, report: &Analyses) -> Html {
    let no_gpu = "no GPU slice is in this trace";
    let has_gpu = report.busy_pct.is_some();
    let of_gpu = |cell: Cell| if has_gpu { cell } else { Cell::missing(no_gpu) };
    let top = report.parts.first();
    let (lost, lost_note, mood) = match &props.file.plan {
        None => (Cell::missing("not checked yet"), "checking…".to_owned(), None),
        Some(plan) if plan.drops_before > 0 => (
            Cell::Count(plan.drops_before),
            format!("{} after the repair", units::count(plan.drops_after)),
            Some("bad"),
        ),
        Some(plan) if plan.damaged => {
            (Cell::Count(0), "other defects are repaired".to_owned(), None)
        }
        Some(_) => (Cell::Count(0), "nothing to repair".to_owned(), Some("good")),
    };
    html! {
        <Figures>
            <Tile id="span" label="GPU span" value={of_gpu(Cell::Ns(report.span_ns))}
                note="first start to last end" on_open={open(props, View::Breakdown)} />
            <Tile id="busy" label="GPU busy" value={Cell::or_missing(report.busy_pct, Cell::Percent, no_gpu)}
                note={if has_gpu { format!("{} of work", units::time(report.busy_ns)) } else { String::new() }}
                on_open={open(props, View::Breakdown)} />
            <Tile id="kernels" label="Kernels" value={Cell::Count(report.n_kernels)}
                note={format!("{}, {} in sum", units::plural(report.n_kernel_names, "name", "names"), units::time(report.kernel_sum_ns))}
                on_open={open(props, View::Kernels)} />
            <Tile id="top" label="Top category" value={Cell::or_missing(top.map(|part| part.category.clone()), Cell::Text, no_gpu)}
                note={top.map_or_else(String::new, |part| format!("{} of GPU time", units::percent(part.share_pct)))}
                on_open={open(props, View::Breakdown)} />
            <Tile id="lost" label="Lost in Perfetto v51–v56" value={lost} note={lost_note} {mood}
                on_open={open(props, View::Repair)} />
        </Figures>
    }
}

/// One line on the state of the file.
fn quality(props: &Props) -> Html {
    let Some(opened) = &props.file.opened else { return html! {} };
    let worst = opened.problems.iter().map(|problem| problem.severity).max();
    let mood = match worst {
        None => "good",
        Some(Severity::Note) => "note",
        Some(Severity::Warning) => "warning",
        Some(Severity::Error) => "error",
    };
    let n = opened.problems.len() as u64;
    html! {
        <p class={classes!("quality", mood)} data-testid="quality">
            <span>{ format!("{} in {} of JSON", units::plural(opened.n_events, "event", "events"), units::file_bytes(opened.json_bytes)) }</span>
            if n == 0 {
                <span>{ "The file is sound." }</span>
            } else {
                <button class="link" onclick={show(props, View::Problems)}>
                    { units::plural(n, "kind of problem in the file", "kinds of problems in the file") }
                </button>
            }
        </p>
    }
}

/// Every figure of the report, with how it was counted.
fn facts(report: &Analyses) -> Html {
    let Some(figures) = report.chapter("overview").and_then(|chapter| chapter.table("figures"))
    else {
        return html! {};
    };
    html! {
        <details class="panel facts">
            <summary><h2>{ "All figures" }</h2></summary>
            <dl data-testid="facts">
                { for figures.rows.iter().filter_map(|row| {
                    let [Cell::Text(name), value, Cell::Text(note)] = row.as_slice() else { return None };
                    Some(html! {
                        <div title={note.clone()}>
                            <dt>{ name }</dt>
                            <dd title={value.exact()} data-exact={value.raw()}>{ value.show() }</dd>
                        </div>
                    })
                }) }
            </dl>
        </details>
    }
}
