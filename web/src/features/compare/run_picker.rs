//! The two runs of a comparison, and whether they are comparable.

use kinetoscope::report::Cell;
use yew::prelude::*;

use super::queries::{Other, reasons};
use crate::components::{Select, icon};
use crate::protocol::{Chapter, JobId, Verdict};
use crate::state::{Action, Role};
use crate::tasks::Tasks;

/// The choice of the other run: A is the file of the view, B is `chosen` among `others`.
pub fn run_picker(
    (job, name): (JobId, &str),
    others: &[Other],
    chosen: Option<JobId>,
    tasks: &Tasks,
) -> Html {
    let jobs: Vec<JobId> = others.iter().map(|other| other.job).collect();
    let place = jobs.iter().position(|job| chosen == Some(*job));
    let on_choice = {
        let tasks = tasks.clone();
        Callback::from(move |place: Option<usize>| {
            let other = place.and_then(|place| jobs.get(place)).copied();
            match (other, chosen) {
                (Some(other), _) => tasks.dispatch(Action::RoleSet(other, Role::Baseline(job))),
                (None, Some(chosen)) => tasks.dispatch(Action::RoleSet(chosen, Role::Own)),
                (None, None) => {}
            }
        })
    };
    html! {
        <dl class="runs">
            <div class="run">
                <dt><span class="run-letter">{ "A" }</span>{ " this trace" }</dt>
                <dd><bdi>{ name }</bdi></dd>
            </div>
            <div class="run">
                <dt><label for="compare-with"><span class="run-letter">{ "B" }</span>{ " compared with" }</label></dt>
                <dd>
                    <Select id="compare-with" chosen={place} {on_choice} none="Choose a trace…" test_id="compare-with">
                        { for others.iter().map(|other| html! { <option>{ &other.name }</option> }) }
                    </Select>
                </dd>
            </div>
        </dl>
    }
}

/// The banner at the top of the view: the verdict, and its reasons from its chapter.
pub fn guard_banner(verdict: Verdict, chapter: &Chapter) -> Html {
    let (mood, shape) = match verdict {
        Verdict::Comparable => ("good", "check"),
        Verdict::Conditional => ("warning", "warning"),
        Verdict::NotComparable => ("bad", "error"),
    };
    let mut sentences = chapter.intro.iter();
    let table = chapter.table("comparability");
    let (reasons, missed) = table.map(|table| reasons(table)).unwrap_or_default();
    html! {
        <section class={classes!("guard", mood)} data-testid="guard" aria-label="Comparability of the runs">
            <h2>{ icon(shape) }<span data-testid="guard-banner">{ sentences.next().map_or("", String::as_str) }</span></h2>
            if !reasons.is_empty() {
                <ul class="guard-reasons">
                    { for reasons.iter().map(|reason| html! {
                        <li class={classes!(reason.decides.then_some("decides"))} data-testid="guard-reason">
                            <span class="guard-fact">{ &reason.fact }</span>
                            { value("A", &reason.a) }
                            { value("B", &reason.b) }
                        </li>
                    }) }
                </ul>
            }
            if verdict == Verdict::NotComparable && !missed.is_empty() {
                <p>{ format!("Not recorded for both runs: {}.", missed.join(", ")) }</p>
            }
            { for sentences.map(|sentence| html! { <p>{ sentence }</p> }) }
            if !missed.is_empty() {
                <p>{ "The page compares only facts that are in the traces. To record more facts in a trace, call " }
                    <code>{ "prof.add_metadata(\"base_image\", …)" }</code>{ "." }</p>
            }
        </section>
    }
}

fn value(run: &'static str, cell: &Cell) -> Html {
    let text = match cell {
        Cell::Missing { .. } => "not recorded".to_owned(),
        cell if cell.show().is_empty() => "not recorded".to_owned(),
        cell => cell.show(),
    };
    html! { <span class="guard-value"><span class="run-letter">{ run }</span>{ " " }<bdi>{ text }</bdi></span> }
}
