//! What the CPU did, and why the run is slow: chapters of the diagnosis.

use web_sys::HtmlInputElement;
use yew::prelude::*;

use crate::components::{Later, Select, drawing, finding_card};
use crate::features::snapshot::view as snapshot;
use crate::features::timeline::queries::clock::in_us;
use crate::protocol::{Chapter, Diagnosis};
use crate::state::Action;
use crate::views::{Props, heading};

/// Everything that the rules found, after what to do.
pub fn diagnosis(props: &Props) -> Option<Html> {
    let diagnosis = props.file.diagnosis.ready()?;
    let finding = |[title, observation, meaning]: &[String; 3]| {
        html! { <><dt>{ title }</dt><dd>{ observation }{ " " }{ meaning }</dd></> }
    };
    Some(html! {
        <>
            { heading(props.view.title(), diagnosis.headline.as_deref().unwrap_or_default()) }
            <div class="pickers">
                { step_picker(props) }
                { iteration_field(props) }
            </div>
            <h2>{ "What to do first" }</h2>
            if diagnosis.actions.is_empty() {
                <p>{ &*diagnosis.without_actions }</p>
            }
            { for diagnosis.actions.iter().map(|action| finding_card(action, None)) }
            if !diagnosis.findings.is_empty() {
                <section class="card finding" data-testid="findings">
                    <h2>{ "What else costs time" }</h2>
                    <dl>{ for diagnosis.findings.iter().map(finding) }</dl>
                </section>
            }
            { of_files(props, diagnosis, "ranks") }
            { of_files(props, diagnosis, "scaling") }
            <section class="card finding" data-testid="baseline">
                <h2>{ "Also note" }</h2>
                if diagnosis.baseline.is_empty() {
                    <p>{ "Nothing beyond the wall time and the actions." }</p>
                } else {
                    <dl>{ for diagnosis.baseline.iter().map(finding) }</dl>
                }
            </section>
        </>
    })
}

/// What several open files show together: ranks of one run, or runs with batches of other sizes.
fn of_files(props: &Props, diagnosis: &Diagnosis, id: &'static str) -> Html {
    let Some(chapter) = diagnosis.chapter(id) else { return html! {} };
    html! {
        <section class="view" data-testid={id}>
            <h2>{ &*chapter.title }</h2>
            { for chapter.intro.iter().map(|sentence| html! { <p>{ sentence }</p> }) }
            { for chapter.drawings.iter().map(drawing) }
            <Later>{ for chapter.tables.iter().map(|table| props.table(table, None)) }</Later>
        </section>
    }
}

/// The steps that the diagnosis can be narrowed to, where there are several.
pub fn step_picker(props: &Props) -> Html {
    let (job, steps, chosen) = (props.file.job, &props.file.steps, props.file.step.as_ref());
    if steps.len() < 2 {
        return html! {};
    }
    let (tasks, known) = (props.tasks.clone(), steps.clone());
    let on_choice = Callback::from(move |place: Option<usize>| {
        let step = place.and_then(|place| known.get(place).cloned());
        tasks.dispatch(Action::StepShown(job, step));
    });
    let chosen = steps.iter().position(|step| chosen == Some(step));
    html! {
        <label class="step-picker">
            <span>{ "Step" }</span>
            <Select {chosen} {on_choice} none="All" test_id="step">
                { for steps.iter().map(|step| html! { <option>{ &step.name }</option> }) }
            </Select>
        </label>
    }
}

/// From so many ms on a number is no time of an iteration.
const MOST_MS: f64 = 1e9;

/// What an iteration takes without the profiler, of which a person knows more than the file.
fn iteration_field(props: &Props) -> Html {
    let (job, tasks) = (props.file.job, props.tasks.clone());
    if props.file.steps.is_empty() {
        return html! {};
    }
    let onchange = Callback::from(move |event: Event| {
        let Some(field) = event.target_dyn_into::<HtmlInputElement>() else { return };
        // (What is no number is no time, as nothing is.)
        let ms = Some(field.value_as_number()).filter(|ms| (0.0..MOST_MS).contains(ms));
        let iteration_ns = ms.map(|ms| (ms * 1e6).round() as i64).filter(|ns| *ns > 0);
        tasks.dispatch(Action::IterationTimed(job, iteration_ns));
    });
    // (`in_us` writes thousandths: of µs those are ms.)
    let value = props.file.iteration_ns.map(|ns| in_us((ns + 500) / 1_000)).unwrap_or_default();
    html! {
        <label class="step-picker" title="The wall time of many iterations, divided by their number">
            <span>{ "Iteration time without the profiler (ms)" }</span>
            <input type="number" min="0" step="any" {value} {onchange} data-testid="iteration-ms" />
        </label>
    }
}

/// Gaps of the GPU.
pub fn gaps(props: &Props) -> Option<Html> {
    chapters(props, &["gaps"])
}

/// Ops, threads and calls.
pub fn cpu(props: &Props) -> Option<Html> {
    chapters(props, &["cpu", "calls"])
}

/// Functions of Python.
pub fn python(props: &Props) -> Option<Html> {
    chapters(props, &["frames"])
}

/// Steps.
pub fn steps(props: &Props) -> Option<Html> {
    chapters(props, &["iterations", "steps"])
}

/// Modules and floating point operations.
pub fn modules(props: &Props) -> Option<Html> {
    chapters(props, &["module_tree", "modules", "flops"])
}

/// Copies and memory.
pub fn memory(props: &Props) -> Option<Html> {
    let of_trace = chapters(props, &["copies", "memory"])?;
    let pictures = props.file.memory.ready().map(|memory| snapshot::of_trace(props, memory));
    Some(html! { <>{ of_trace }{ pictures.unwrap_or_default() }</> })
}

/// Some chapters as a view: the first sentence of the first is the finding.
fn chapters(props: &Props, ids: &[&str]) -> Option<Html> {
    let diagnosis: &Diagnosis = props.file.diagnosis.ready()?;
    let chapters: Vec<&Chapter> = ids.iter().filter_map(|id| diagnosis.chapter(id)).collect();
    let mut intro = chapters.iter().flat_map(|chapter| &chapter.intro);
    let finding = intro.next().map_or("", String::as_str);
    let rest: Vec<Html> =
        intro.map(|sentence| html! { <p class="hint">{ sentence }</p> }).collect();
    let drawings = chapters.iter().flat_map(|chapter| chapter.drawings.iter());
    let tables = chapters.iter().flat_map(|chapter| &chapter.tables);
    Some(html! {
        <>
            { heading(props.view.title(), finding) }
            { step_picker(props) }
            { for rest }
            { for drawings.map(drawing) }
            <Later>{ for tables.map(|table| props.table(table, None)) }</Later>
        </>
    })
}
