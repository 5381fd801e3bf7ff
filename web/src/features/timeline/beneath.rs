//! Other files below the timeline, on its clock.

use web_sys::HtmlInputElement;
use yew::prelude::*;

use super::queries::clock::{Below, in_us, offset_ns};
use super::state::Change;
use super::view::{picture, unseen};
use crate::components::{file_picker, icon};
use crate::protocol::JobId;
use crate::state::{Action, Remote};
use crate::views::{Props, chapter};

/// A choice of another file to show below; nothing where there is none.
pub fn add_picker(props: &Props) -> Html {
    let change = changed(props);
    let add = Callback::from(move |other: Option<JobId>| {
        if let Some(other) = other {
            change.emit((other, Change::Added));
        }
    });
    let label = ("Another file on this clock", "Add a file…");
    file_picker("add-beneath", label, &props.together.others, None, add)
}

/// The files below, each with its offset and its picture.
pub fn beneath(props: &Props) -> Html {
    props.together.below.iter().map(|below| one(props, below)).collect()
}

/// What is selected in them.
pub fn seen_beneath(props: &Props) -> Html {
    let seen = props.together.below.iter().filter_map(|below| below.file.seen.as_deref());
    seen.flat_map(|seen| &seen.chapters).map(|of| chapter(props, of)).collect()
}

fn one(props: &Props, below: &Below) -> Html {
    let Below { file, offset_ns: offset, is_by_hand, said } = below;
    let (job, name) = (file.job, file.name.as_str());
    let change = changed(props);
    let button = |what: Change| {
        let change = change.clone();
        Callback::from(move |_: MouseEvent| change.emit((job, what)))
    };
    let (reset, remove) = (button(Change::Placed(None)), button(Change::Removed));
    let now_ns = offset.unwrap_or_default();
    let onchange = Callback::from(move |event: Event| {
        let Some(field) = event.target_dyn_into::<HtmlInputElement>() else { return };
        match offset_ns(field.value_as_number()) {
            Some(ns) => change.emit((job, Change::Placed(Some(ns)))),
            // (What is no number is no offset: the field has the last one again.)
            None => field.set_value(&in_us(now_ns)),
        }
    });
    let content = match &file.lanes {
        Remote::Ready(_) => picture(props, file, Some(&[])),
        _ => unseen(file, &props.tasks),
    };
    html! {
        <section key={job.0} class="beneath" aria-label={format!("{name} on the same clock")} data-testid="beneath">
            <div class="beneath-head">
                <h2><bdi>{ name }</bdi></h2>
                if let Some(offset) = offset {
                    <label class="step-picker" title="From the first slice of the file above to the first slice of this one">
                        <span>{ "Offset (µs)" }</span>
                        <input type="number" step="any" value={in_us(*offset)} {onchange} data-testid="offset" />
                    </label>
                    <button onclick={reset} disabled={!is_by_hand} data-testid="offset-reset">{ "Reset" }</button>
                    <p class="hint" data-testid="offset-said">{ said }</p>
                }
                <button class="icon-button" onclick={remove} aria-label={format!("Remove {name} from this clock")} data-testid="remove-beneath">{ icon("close") }</button>
            </div>
            { content }
        </section>
    }
}

/// Changes what is below the file of the view.
fn changed(props: &Props) -> Callback<(JobId, Change)> {
    let (own, tasks) = (props.file.job, props.tasks.clone());
    Callback::from(move |(other, what)| tasks.dispatch(Action::Beneath(own, other, what)))
}
