//! Compares two runs: first whether they are comparable, then what differs.

use yew::prelude::*;

use super::queries::Standing;
use super::run_picker::{guard_banner, run_picker};
use crate::components::{About, Later, failure_card};
use crate::protocol::Comparison;
use crate::state::Remote;
use crate::tasks::files;
use crate::views::{Props, heading};

pub fn view(props: &Props) -> Option<Html> {
    props.file.opened.as_ref()?;
    let compare = &props.compare;
    let finding = match &compare.standing {
        Standing::Asked(Remote::Ready(comparison)) => {
            let chapter = comparison.chapter("comparison");
            chapter.and_then(|chapter| chapter.intro.first()).cloned().unwrap_or_default()
        }
        _ => String::new(),
    };
    Some(html! {
        <>
            { heading(props.view.title(), &finding) }
            if compare.standing != Standing::Alone {
                { run_picker((props.file.job, &props.file.name), &compare.others, compare.with, &props.tasks) }
            }
            { content(props) }
        </>
    })
}

fn content(props: &Props) -> Html {
    match &props.compare.standing {
        Standing::Alone => html! {
            <section class="panel compare-alone" data-testid="compare-alone">
                <h2>{ "A comparison needs a second trace" }</h2>
                <p>{ "Drop a second run of the same workload on this page, for example one from before a change. To measure the effect of a change, keep the hardware and the launch flags the same: Kinetoscope checks this first. Runs on different hardware or with different flags are also shown, but not as the effect of a change." }</p>
                <p class="card-actions">
                    <button onclick={Callback::from(|_: MouseEvent| files::pick())}>{ "Add a trace" }</button>
                </p>
            </section>
        },
        Standing::Unchosen => html! {
            <p class="hint">{ "Choose the run to compare this trace with. Every difference is B - A. Kernels launched before profiling started are excluded from both runs." }</p>
        },
        Standing::Waiting(name) => html! {
            <p class="note-line" role="status">{ format!("The comparison starts when both traces are ready. B is {name}.") }</p>
        },
        Standing::Gone(name) => html! {
            <p class="note-line bad" role="status">{ format!("{name} was stopped or could not be read. Click “Try again” on its card.") }</p>
        },
        Standing::Asked(Remote::Idle | Remote::Pending(_)) => html! {
            <div class="pending" data-testid="pending">
                <p>{ "Comparing…" }</p>
                <div class="skeleton" aria-hidden="true"></div>
            </div>
        },
        Standing::Asked(Remote::Failed(failure)) => html! {
            { failure_card(failure, About::default(), &props.tasks) }
        },
        Standing::Asked(Remote::Ready(comparison)) => tables(props, comparison),
    }
}

fn tables(props: &Props, comparison: &Comparison) -> Html {
    let guard = comparison.chapter("comparability");
    let moved = comparison.chapter("progress");
    let chapters = [moved, comparison.chapter("comparison")].into_iter().flatten();
    let tables = chapters.flat_map(|chapter| &chapter.tables);
    html! {
        <>
            if let Some(chapter) = guard {
                { guard_banner(comparison.verdict, chapter) }
            }
            { for moved.iter().flat_map(|chapter| &chapter.intro).map(|sentence| html! { <p>{ sentence }</p> }) }
            <Later>
                { for tables.map(|table| props.table(table, None)) }
                if let Some(keys) = guard.and_then(|chapter| chapter.table("comparability")) {
                    { props.table(keys, None) }
                }
            </Later>
        </>
    }
}
