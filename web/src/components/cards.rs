//! Cards for failures, findings and problems: what, where, what to do.

use kinetoscope::report::{Finding, units};
use yew::prelude::*;

use super::icon;
use crate::protocol::{Failure, ProblemCard, Severity};
use crate::tasks::Tasks;

/// What a failure is about, and how to close or retry it.
#[derive(Default)]
pub struct About<'a> {
    /// The file, where there is one.
    pub file: Option<&'a str>,
    /// Tries again.
    pub on_retry: Option<Callback<()>>,
    /// Closes the card.
    pub on_close: Option<Callback<()>>,
}

/// The card of a failure.
pub fn failure_card(failure: &Failure, about: About<'_>, tasks: &Tasks) -> Html {
    let Failure { title, what, place, advice, excerpt } = failure;
    let copy = {
        let (tasks, text) = (tasks.clone(), details(failure));
        Callback::from(move |_: MouseEvent| {
            tasks.copy(text.clone(), "Copied the details".to_owned())
        })
    };
    let emit = |callback: Option<Callback<()>>| {
        callback.map(|callback| callback.reform(|_: MouseEvent| ()))
    };
    let About { file, on_retry, on_close } = about;
    html! {
        <section class="card failure" role="alert" data-testid="failure">
            <h2>{ icon("error") }{ title }</h2>
            if let Some(file) = file {
                <p class="card-file">{ file }</p>
            }
            <p>{ what }</p>
            if let Some(place) = place {
                <p><span class="label">{ "Where " }</span>{ place }</p>
            }
            if let Some(excerpt) = excerpt {
                <pre class="excerpt"><code>{ excerpt }</code></pre>
            }
            <p class="advice"><span class="label">{ "What to do " }</span>{ advice }</p>
            <p class="card-actions">
                if let Some(onclick) = emit(on_retry) {
                    <button {onclick}>{ icon("retry") }{ "Try again" }</button>
                }
                <button onclick={copy} data-testid="copy-details">{ icon("copy") }{ "Copy details" }</button>
                if let Some(onclick) = emit(on_close) {
                    <button {onclick} data-testid="close-notice">{ "Close" }</button>
                }
            </p>
        </section>
    }
}

/// The text of a bug report: without the name or path of a file.
fn details(failure: &Failure) -> String {
    let Failure { title, what, place, advice: _, excerpt } = failure;
    let mut text =
        format!("Kinetoscope {} (build {}): {title}\n{what}\n", crate::VERSION, crate::BUILD);
    for part in [place, excerpt].into_iter().flatten() {
        text.push_str(part);
        text.push('\n');
    }
    text
}

/// The card of a finding, with the title of the view that has the evidence and what shows it.
pub fn finding_card(finding: &Finding, evidence: Option<(&str, Callback<()>)>) -> Html {
    let (title, lines) = finding.lines();
    let rule = finding.rule.to_string();
    html! {
        <section class="card finding" data-testid="finding" data-rule={rule}>
            <h2>{ icon("note") }{ title }</h2>
            <dl>
                { for lines.iter().map(|(label, text)| html! { <><dt>{ *label }</dt><dd>{ text.as_ref() }</dd></> }) }
            </dl>
            <p class="card-meta">
                { format!("Confidence: {}", finding.confidence.id()) }
                if let Some((view, on_open)) = evidence {
                    { " · " }
                    <button class="link" onclick={on_open.reform(|_: MouseEvent| ())} data-testid="finding-open">
                        { format!("Open {view}") }
                    </button>
                }
            </p>
        </section>
    }
}

/// One card per kind of problem, the worst first.
pub fn problem_cards(problems: &[ProblemCard]) -> Html {
    let card = |problem: &ProblemCard| {
        let ProblemCard { kind, severity, title, help, count, first_offset, excerpt } = problem;
        let (class, shape, word) = match severity {
            Severity::Error => ("error", "error", "Data missing"),
            Severity::Warning => ("warning", "warning", "Warning"),
            Severity::Note => ("note", "note", "No data lost"),
        };
        html! {
            <li class={classes!("card", "problem", class)} data-testid="problem" data-kind={kind.clone()}>
                <h2>{ icon(shape) }{ title }</h2>
                <p class="card-meta">
                    { format!("{word} · {} · first at byte {} of the JSON", units::plural(*count, "time", "times"), units::count(*first_offset)) }
                </p>
                <p>{ help }</p>
                if !excerpt.is_empty() {
                    <pre class="excerpt"><code>{ excerpt }</code></pre>
                }
            </li>
        }
    };
    html! { <ul class="problem-cards">{ for problems.iter().map(card) }</ul> }
}
