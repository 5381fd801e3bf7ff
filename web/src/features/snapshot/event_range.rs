//! Which events of a memory snapshot are read.

use web_sys::HtmlInputElement;
use yew::prelude::*;

use crate::protocol::{EventRange, JobId};
use crate::state::Action;
use crate::tasks::Tasks;

/// Properties of [`EventRangeForm`].
#[derive(Properties, PartialEq)]
pub struct Props {
    /// The snapshot.
    pub job: JobId,
    /// The events that it was read with.
    pub events: Option<EventRange>,
    /// Whether nothing of it is read yet.
    pub asks: bool,
    /// The page's tasks.
    pub tasks: Tasks,
}

/// Two numbers, and buttons that read these events or all of them.
#[component]
pub fn EventRangeForm(props: &Props) -> Html {
    let (from, to) = (use_node_ref(), use_node_ref());
    let Props { job, events, asks, tasks } = props;
    let job = *job;
    // `Ok(None)`: nothing is written there.
    let number = |field: &NodeRef| -> Result<Option<u64>, HtmlInputElement> {
        let Some(field) = field.cast::<HtmlInputElement>() else { return Ok(None) };
        let is_empty = field.value().trim().is_empty() && !field.validity().bad_input();
        match field.value().trim().parse() {
            Ok(n) => Ok(Some(n)),
            Err(_) if is_empty => Ok(None),
            Err(_) => Err(field),
        }
    };
    let onsubmit = {
        let (tasks, from, to) = (tasks.clone(), from.clone(), to.clone());
        Callback::from(move |event: SubmitEvent| {
            event.prevent_default();
            let refused = |field: &HtmlInputElement, why: &str| {
                field.set_custom_validity(why);
                let _shown = field.report_validity();
                field.set_custom_validity("");
            };
            match (number(&from), number(&to)) {
                (Ok(from), Ok(Some(last))) if from.unwrap_or(0) >= last => {
                    if let Some(field) = to.cast::<HtmlInputElement>() {
                        refused(&field, "This must be above the first number.");
                    }
                }
                (Ok(from), Ok(to)) => {
                    let events = EventRange { from: from.unwrap_or(0), to };
                    tasks.dispatch(Action::EventsChosen(job, events));
                }
                (Err(field), _) | (_, Err(field)) => refused(&field, "Write a whole number."),
            }
        })
    };
    let all = {
        let tasks = tasks.clone();
        Callback::from(move |_: MouseEvent| {
            tasks.dispatch(Action::EventsChosen(job, EventRange::default()));
        })
    };
    let shown = events.unwrap_or_default();
    let to_shown = shown.to.map(|to| to.to_string()).unwrap_or_default();
    let is_part = !shown.is_all();
    html! {
        <form class="event-range" novalidate={true} {onsubmit} data-testid="event-range">
            <label>
                <span>{ "Events from" }</span>
                <input ref={from} type="number" min="0" step="1" value={shown.from.to_string()} data-testid="events-from" />
            </label>
            <label>
                <span>{ "up to, not with" }</span>
                <input ref={to} type="number" min="1" step="1" placeholder="the last" value={to_shown} data-testid="events-to" />
            </label>
            <button data-testid="read-events">{ "Read these events" }</button>
            if is_part || *asks {
                <button type="button" onclick={all} data-testid="read-all">{ "Read all events" }</button>
            }
        </form>
    }
}
