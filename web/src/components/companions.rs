//! What other files tell of this one, one line each.

use kinetoscope::report::units;
use yew::prelude::*;

use super::{FailureCard, Icon};
use crate::protocol::{Beside, CaptureFacts, Companion, JobId};
use crate::state::{CompanionEntry, CompanionPhase};
use crate::tasks::Tasks;

/// The companions of a file.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The file.
    pub job: JobId,
    /// Its companions.
    pub companions: Vec<CompanionEntry>,
    /// Effects.
    pub tasks: Tasks,
}

/// The list, and a card for each that could not be read.
#[component]
pub fn Companions(props: &Props) -> Html {
    let Props { job, companions, tasks } = props;
    if companions.is_empty() {
        return html! {};
    }
    let failed = companions.iter().filter_map(|companion| {
        let CompanionPhase::Failed(failure) = &companion.phase else { return None };
        let (tasks, job, of) = (tasks.clone(), *job, companion.beside.job);
        let retry = { let tasks = tasks.clone(); Callback::from(move |()| tasks.retry_companion(job, of)) };
        Some(html! {
            <FailureCard key={of.0} failure={failure.clone()} file={companion.name.clone()} on_retry={retry} {tasks} />
        })
    });
    html! {
        <>
            <ul class="companions" aria-label="Files that tell of this one" data-testid="companions">
                { for companions.iter().map(line) }
            </ul>
            { for failed }
        </>
    }
}

fn line(companion: &CompanionEntry) -> Html {
    let Beside { role, listed, .. } = &companion.beside;
    let (mood, icon, what) = match (&companion.phase, role) {
        (CompanionPhase::Waiting, _) => ("waiting", "note", "is being read."),
        (CompanionPhase::Failed(_), _) => {
            ("failed", "error", "could not be read; the tables do without it.")
        }
        (CompanionPhase::Read, Companion::Capture) => {
            ("read", "check", "tells what the graphs replay, launch by launch.")
        }
        (CompanionPhase::Read, Companion::Mapping | Companion::Map) => {
            ("read", "check", "tells where kernels come from, by their names.")
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
            <Icon name={icon} />
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
