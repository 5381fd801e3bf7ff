//! The overview: verdict and advice, four figures with their evidence, and the machine.

use kinetoscope::report::{Cell, Finding, units};
use kinetoscope::words;
use yew::prelude::*;

use crate::components::{Figure, Later, finding_card, stacked_bar, tiles};
use crate::features::host::view::step_picker;
use crate::protocol::{Analyses, Bar, Chapter, Part, Triage};
use crate::state::{Action, View};
use crate::views::{Props, heading, no_gpu};

/// Actions that come first.
const FIRST_ACTIONS: usize = 3;

pub fn view(props: &Props) -> Option<Html> {
    let report = props.file.report.as_ref()?;
    let chapter = report.chapter("overview")?;
    let table = |id: &str| chapter.table(id).filter(|table| !table.is_empty());
    let of_steps = report.chapter("steps");
    let steps = of_steps.and_then(|chapter| chapter.table("steps"));
    let step_notes = of_steps.map_or(&[][..], |chapter| &chapter.intro);
    let has_gpu = report.busy_pct.is_some();
    let triage = props.file.triage.as_deref();
    Some(html! {
        <>
            { heading(props.view.title(), &headline(props).unwrap_or_else(|| verdict(report, triage))) }
            { wall(props) }
            if has_gpu {
                { advice(props, chapter) }
                { figures(props, report) }
            } else {
                { no_gpu(props) }
            }
            if !report.parts.is_empty() {
                <section class="panel">
                    <div class="panel-head">
                        <h2>{ "Where the GPU time goes" }</h2>
                        <button class="link" onclick={show(props, View::Breakdown)}>{ "Breakdown" }</button>
                    </div>
                    { stacked_bar(&report.parts, "Share of GPU time", "gpu-time", true, None) }
                </section>
            }
            <Later>
                if let Some(streams) = table("streams") {
                    { props.table(streams, None) }
                }
                if let Some(devices) = table("devices").filter(|table| table.n_rows() > 1) {
                    { props.table(devices, None) }
                }
                if let Some(steps) = steps {
                    { for step_notes.iter().map(|sentence| html! { <p class="hint">{ sentence }</p> }) }
                    { props.table(steps, None) }
                }
                { facts(report) }
            </Later>
        </>
    })
}

/// The sentence that a person would repeat; it comes with the diagnosis. Until that of a step is there, no sentence about the
/// whole trace stands beside the name of the step.
fn headline(props: &Props) -> Option<String> {
    let (diagnosis, step) = (&props.file.diagnosis, props.file.step.as_ref());
    match step.filter(|_| diagnosis.pending().is_some()) {
        Some(step) => Some(format!("Analysing {} …", step.name)),
        None => diagnosis.ready()?.headline.clone(),
    }
}

/// Where the wall time goes, and what to do first.
fn wall(props: &Props) -> Html {
    // (The choice of a step stays while its diagnosis is made, and with it the focus.)
    let Some(diagnosis) = props.file.diagnosis.ready() else {
        return step_picker(props);
    };
    let bar = |bar: &Bar| {
        html! {
            <section class="panel" data-testid="wall">
                <div class="panel-head">
                    <h2>{ format!("Where the wall time goes: {}", bar.title) }</h2>
                    <button class="link" onclick={show(props, View::Diagnosis)}>{ "Diagnosis" }</button>
                </div>
                { stacked_bar(&bar.parts, "Share of the wall time", "wall-time", false, Some(&|part| show(props, evidence(&part.category)))) }
            </section>
        }
    };
    let card = |finding: &Finding| {
        finding_card(finding, Some((View::Diagnosis.title(), open(props, View::Diagnosis))))
    };
    let narrowed = props.narrowed();
    let has_stages = diagnosis.bars.iter().any(|bar| bar.stage.is_some());
    // (A stage without a bar of its own shows those of all.)
    let stage = narrowed
        .stage
        .filter(|stage| diagnosis.bars.iter().any(|bar| bar.stage.as_ref() == Some(stage)));
    let is_of = |bar: &&Bar| {
        bar.stage == stage && narrowed.device.as_ref().is_none_or(|device| *device == bar.device)
    };
    html! {
        <>
            if let Some(triage) = props.file.shown_triage().filter(|_| has_stages) {
                { props.pickers(triage) }
            }
            { step_picker(props) }
            { for diagnosis.bars.iter().filter(is_of).map(bar) }
            if !diagnosis.actions.is_empty() {
                <h2 class="first">{ "What to do first" }</h2>
            }
            { for diagnosis.actions.iter().take(FIRST_ACTIONS).map(card) }
            if diagnosis.actions.is_empty() && !diagnosis.bars.is_empty() {
                <p class="hint" data-testid="no-action">{ &diagnosis.without_actions }</p>
            }
            { props.whole("What follows is") }
        </>
    }
}

/// The verdict, with what limits its first figure.
fn verdict(report: &Analyses, triage: Option<&Triage>) -> String {
    let mut text = report.verdict.clone();
    if let Some(triage) = triage.filter(|triage| triage.blocked_ns > 0) {
        text.push_str(&format!(
            " Busy share is not meaningful here: the GPU is idle for {} with work queued.",
            units::time(triage.blocked_ns)
        ));
    }
    text
}

/// The first sentences of the report, and its findings, each with a way to its view.
fn advice(props: &Props, overview: &Chapter) -> Html {
    let Some(triage) = props.file.triage.as_ref() else {
        return html! { <p class="hint" data-testid="advice-pending">{ "Mapping kernels to ops and lines…" }</p> };
    };
    let sentences = triage.chapter("triage").map_or(&[][..], |chapter| &chapter.intro);
    // (The actions above tell what the device waits for.)
    let is_told = props.file.diagnosis.ready().is_some_and(|found| !found.actions.is_empty());
    let is_new = |text: &&String| !is_told || !triage.idle_sentences.contains(*text);
    let sentences: Vec<&String> = sentences.iter().filter(is_new).collect();
    let card = |view: View, finding: &Finding| {
        html! {
            { finding_card(finding, Some((view.title(), open(props, view)))) }
        }
    };
    let of_triage = triage
        .chapters
        .iter()
        .flat_map(|chapter| chapter.findings.iter().map(|of| (view_of(&chapter.id), of)));
    let of_overview = overview.findings.iter().map(|of| (View::Triage, of));
    html! {
        <>
            if !sentences.is_empty() {
                <ul class="takeaways" data-testid="takeaways">
                    { for sentences.iter().map(|sentence| html! { <li>{ sentence }</li> }) }
                </ul>
            }
            { props.lacks(triage) }
            { for of_triage.chain(of_overview).map(|(view, finding)| card(view, finding)) }
        </>
    }
}

/// The view that shows a chapter of triage.
fn view_of(chapter: &str) -> View {
    match chapter {
        "overlap" => View::Overlap,
        "fuse" => View::Fuse,
        _ => View::Triage,
    }
}

/// The view that has what a part of the wall time is made of, by the part's id.
fn evidence(part: &str) -> View {
    match part {
        "compute" => View::Triage,
        "communication" => View::Overlap,
        "copies" => View::Memory,
        _ => View::Gaps,
    }
}

fn show(props: &Props, view: View) -> Callback<MouseEvent> {
    open(props, view).reform(|_: MouseEvent| ())
}

fn open(props: &Props, view: View) -> Callback<()> {
    let tasks = props.tasks.clone();
    Callback::from(move |()| tasks.dispatch(Action::Shown(view)))
}

fn figures(props: &Props, report: &Analyses) -> Html {
    let top = report.parts.first();
    let missing = "no GPU slice in this trace";
    let blocked_ns = props.file.triage.as_ref().map_or(0, |triage| triage.blocked_ns);
    let busy = match blocked_ns {
        0 if report.n_gpus > 1 => format!("of the spans of {} GPUs, summed", report.n_gpus),
        0 => format!("{} busy", units::time(report.busy_ns)),
        ns => format!("not meaningful: idle {} with work queued", units::time(ns)),
    };
    let span = Figure {
        id: "span",
        label: "GPU span",
        value: Cell::Ns(report.span_ns),
        note: "first start to last end".to_owned(),
        mood: None,
        on_open: open(props, View::Breakdown),
    };
    let busy = Figure {
        id: "busy",
        label: "GPU busy",
        value: Cell::or_missing(report.busy_pct, Cell::Percent, missing),
        note: busy,
        mood: (blocked_ns > 0).then_some("warning"),
        on_open: open(props, View::Breakdown),
    };
    let n_names = units::plural(report.n_kernel_names, "name", "names");
    let kernels = Figure {
        id: "kernels",
        label: "Kernels",
        value: Cell::Count(report.n_kernels),
        note: format!("{n_names}, {} in total", units::time(report.kernel_sum_ns)),
        mood: None,
        on_open: open(props, View::Triage),
    };
    let name = |part: &Part| words::category(&part.category).into_owned();
    let share = |part: &Part| format!("{} of GPU time", units::percent(part.share_pct));
    let top = Figure {
        id: "top",
        label: "Top category",
        value: top.map_or_else(|| Cell::missing(missing), name),
        note: top.map_or_else(String::new, share),
        mood: None,
        on_open: open(props, View::Breakdown),
    };
    tiles([span, busy, kernels, top])
}

/// Every figure of the report, with its definition.
fn facts(report: &Analyses) -> Html {
    let Some(figures) = report.chapter("overview").and_then(|chapter| chapter.table("figures"))
    else {
        return html! {};
    };
    html! {
        <details class="panel facts">
            <summary><h2>{ "All figures" }</h2></summary>
            <dl data-testid="facts">
                { for (0..figures.n_rows()).filter_map(|row| {
                    let cell = |key: &str| figures.cell(row, figures.column(key)?);
                    let (name, value, note) = (cell("figure")?, cell("value")?, cell("note")?);
                    Some(html! {
                        <div title={note.show()}>
                            <dt>{ name.show() }</dt>
                            <dd title={value.exact()} data-exact={value.raw()}>{ value.show() }</dd>
                        </div>
                    })
                }) }
            </dl>
        </details>
    }
}
