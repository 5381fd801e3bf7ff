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
    let number = |field: &NodeRef| -> Option<u64> {
        field.cast::<HtmlInputElement>()?.value().trim().parse().ok()
    };
    let onsubmit = {
        let (tasks, from, to) = (tasks.clone(), from.clone(), to.clone());
        Callback::from(move |event: SubmitEvent| {
            event.prevent_default();
            let events = EventRange { from: number(&from).unwrap_or(0), to: number(&to) };
            tasks.dispatch(Action::EventsChosen(job, events));
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
        <form class="event-range" {onsubmit} data-testid="event-range">
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
