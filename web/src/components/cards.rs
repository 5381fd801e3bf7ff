//! Cards for failures, findings and problems: what, where, what to do.

use std::rc::Rc;

use kinetoscope::report::{Finding, units};
use yew::prelude::*;

use super::Icon;
use crate::protocol::{Failure, ProblemCard, Severity};
use crate::tasks::Tasks;

/// A failure and how to close or retry it.
#[derive(Clone, PartialEq, Properties)]
pub struct FailureProps {
    /// What went wrong.
    pub failure: Rc<Failure>,
    /// The file, where there is one.
    #[prop_or_default]
    pub file: Option<AttrValue>,
    /// Tries again.
    #[prop_or_default]
    pub on_retry: Option<Callback<()>>,
    /// Closes the card.
    #[prop_or_default]
    pub on_close: Option<Callback<()>>,
    /// Effects.
    pub tasks: Tasks,
}

/// The card of a failure.
#[component]
pub fn FailureCard(props: &FailureProps) -> Html {
    let Failure { title, what, place, advice, excerpt } = &*props.failure;
    let copy = {
        let (tasks, text) = (props.tasks.clone(), details(&props.failure));
        Callback::from(move |_: MouseEvent| {
            tasks.copy(text.clone(), "Copied the details".to_owned())
        })
    };
    let emit = |callback: &Option<Callback<()>>| {
        callback.clone().map(|callback| callback.reform(|_: MouseEvent| ()))
    };
    html! {
        <section class="card failure" role="alert" data-testid="failure">
            <h2><Icon name="error" />{ title }</h2>
            if let Some(file) = &props.file {
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
                if let Some(onclick) = emit(&props.on_retry) {
                    <button {onclick}><Icon name="retry" />{ "Try again" }</button>
                }
                <button onclick={copy} data-testid="copy-details"><Icon name="copy" />{ "Copy details" }</button>
                if let Some(onclick) = emit(&props.on_close) {
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

/// A finding.
#[derive(Clone, PartialEq, Properties)]
pub struct FindingProps {
    /// The claim and its reasons.
    pub finding: Finding,
    /// The view that has the evidence.
    #[prop_or_default]
    pub view: AttrValue,
    /// Shows that view.
    #[prop_or_default]
    pub on_open: Option<Callback<()>>,
}

/// The card of a finding.
#[component]
pub fn FindingCard(props: &FindingProps) -> Html {
    // (The evidence is ids, for programs.)
    let Finding { rule, observation, hypothesis, action, validation, confidence, evidence: _ } =
        &props.finding;
    let rows =
        [("Likely reason", hypothesis), ("What to do", action), ("How to check", validation)];
    html! {
        <section class="card finding" data-testid="finding" data-rule={rule.to_string()}>
            <h2><Icon name="note" />{ observation }</h2>
            <dl>
                { for rows.into_iter().filter(|(_, text)| !text.is_empty()).map(|(label, text)| html! {
                    <><dt>{ label }</dt><dd>{ text }</dd></>
                }) }
            </dl>
            <p class="card-meta">
                { format!("Confidence: {}", confidence.id()) }
                if let Some(on_open) = &props.on_open {
                    { " · " }
                    <button class="link" onclick={on_open.reform(|_: MouseEvent| ())} data-testid="finding-open">
                        { format!("Open {}", props.view) }
                    </button>
                }
            </p>
        </section>
    }
}

/// The problems of a file.
#[derive(Clone, PartialEq, Properties)]
pub struct ProblemProps {
    /// Worst first.
    pub problems: Vec<ProblemCard>,
}

/// One card per kind of problem.
#[component]
pub fn ProblemCards(props: &ProblemProps) -> Html {
    let card = |problem: &ProblemCard| {
        let ProblemCard { kind, severity, title, help, count, first_offset, excerpt } = problem;
        let (class, icon, word) = match severity {
            Severity::Error => ("error", "error", "Data missing"),
            Severity::Warning => ("warning", "warning", "Warning"),
            Severity::Note => ("note", "note", "No data lost"),
        };
        html! {
            <li class={classes!("card", "problem", class)} data-testid="problem" data-kind={kind.clone()}>
                <h2><Icon name={icon} />{ title }</h2>
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
    html! { <ul class="problem-cards">{ for props.problems.iter().map(card) }</ul> }
}
