//! Files that belong to this one, one line each, and the question what two runs are to each other.

use kinetoscope::report::units;
use yew::prelude::*;

use super::queries::choices::Question;
use super::queries::maps_nothing;
use crate::components::{About, failure_card, icon};
use crate::protocol::{Beside, CaptureFacts, Companion};
use crate::state::{Action, CompanionEntry, CompanionPhase, FileEntry, Phase, Role, View};
use crate::tasks::Tasks;

/// The list of related files, and a card for each that could not be read.
pub fn companions(file: &FileEntry, tasks: &Tasks) -> Html {
    let companions = &file.companions;
    if companions.is_empty() {
        return html! {};
    }
    let failed = companions.iter().filter_map(|companion| {
        let CompanionPhase::Failed(failure) = &companion.phase else { return None };
        let (tasks, job, of) = (tasks.clone(), file.job, companion.beside.job);
        let retry = {
            let tasks = tasks.clone();
            Callback::from(move |()| tasks.retry_companion(job, of))
        };
        let (file, on_retry) = (Some(&*companion.name), Some(retry));
        let about = About { file, on_retry, ..About::default() };
        Some(html! { <key={of.0}>{ failure_card(failure, about, &tasks) }</> })
    });
    html! {
        <>
            <ul class="companions" aria-label="Related files" data-testid="companions">
                { for companions.iter().map(|companion| line(file, companion)) }
            </ul>
            { for failed }
        </>
    }
}

fn line(file: &FileEntry, companion: &CompanionEntry) -> Html {
    let Beside { role, listed, .. } = &companion.beside;
    let nothing = maps_nothing(file, companion);
    let (mood, shape, what) = match (&companion.phase, role, nothing) {
        (CompanionPhase::Waiting, ..) => ("waiting", "note", "is being read.".to_owned()),
        (CompanionPhase::Failed(_), ..) => {
            ("failed", "error", "could not be read; the tables do not use it.".to_owned())
        }
        (CompanionPhase::Read, ..) if file.phase != Phase::Ready => {
            ("waiting", "note", "is loaded.".to_owned())
        }
        (CompanionPhase::Read, _, Some(why)) => {
            ("unused", "warning", format!("maps no kernel: {why}."))
        }
        (CompanionPhase::Read, Companion::Capture, None) => {
            ("read", "check", "maps the kernels of graph launches, in launch order.".to_owned())
        }
        (CompanionPhase::Read, Companion::Mapping | Companion::Map, None) => {
            ("read", "check", "maps kernels to ops and Python lines, by kernel name.".to_owned())
        }
    };
    let kind = match role {
        Companion::Capture => "Capture",
        Companion::Mapping => "Mapping",
        Companion::Map => "Kernel map",
    };
    let known = listed.as_ref().map(CaptureFacts::in_words).filter(|words| !words.is_empty());
    html! {
        <li class={classes!("companion", mood)} data-testid="companion">
            { icon(shape) }
            <span class="companion-role">{ kind }</span>
            <bdi class="companion-name" title={companion.name.clone()}>{ &companion.name }</bdi>
            if let Some(known) = known {
                <span class="companion-graph" data-testid="companion-graph">{ known }</span>
            }
            <span class="companion-size">{ units::file_bytes(companion.size) }</span>
            <span class="companion-what">{ what }</span>
        </li>
    }
}

/// The question on the card of a run: compare two runs, or use one as the mapping of the other? Both fit, and only a
/// person knows which is meant.
pub fn role_question(question: &Question, tasks: &Tasks) -> Html {
    let Question { job, of, of_name } = question;
    let (job, of) = (*job, *of);
    let answer = |role: Role, shown: bool| {
        let tasks = tasks.clone();
        Callback::from(move |_: MouseEvent| {
            tasks.dispatch(Action::RoleSet(job, role));
            if shown {
                tasks.dispatch(Action::Selected(of));
                tasks.dispatch(Action::Shown(View::Compare));
            }
        })
    };
    html! {
        <div class="file-card-question" role="group" aria-label="Compare or map" data-testid="role-question">
            <p>{ "Compare these runs, or use this file as the mapping trace of " }<bdi>{ of_name }</bdi>{ "?" }</p>
            <p class="file-card-answers">
                <button data-testid="answer-compare" onclick={answer(Role::Baseline(of), true)}>{ "Compare" }</button>
                <button data-testid="answer-mapping" onclick={answer(Role::Companion(Companion::Mapping, of), false)}>{ "Use as mapping" }</button>
                <button data-testid="answer-neither" onclick={answer(Role::Own, false)}>{ "Neither" }</button>
            </p>
        </div>
    }
}
