//! A choice of another open file.

use yew::prelude::*;

use super::Select;
use crate::protocol::JobId;

/// The choice; nothing where there is no other file. `none` is what it says where none is chosen.
pub fn file_picker(
    id: &'static str,
    (label, none): (&'static str, &'static str),
    others: &[(JobId, String)],
    chosen: Option<JobId>,
    on_choice: Callback<Option<JobId>>,
) -> Html {
    if others.is_empty() {
        return html! {};
    }
    let jobs: Vec<JobId> = others.iter().map(|(job, _)| *job).collect();
    let chosen = jobs.iter().position(|job| chosen == Some(*job));
    let on_choice = on_choice
        .reform(move |place: Option<usize>| place.and_then(|place| jobs.get(place)).copied());
    html! {
        <label class="step-picker">
            <span>{ label }</span>
            <Select {chosen} {on_choice} {none} test_id={id}>
                { for others.iter().map(|(_, name)| html! { <option>{ name }</option> }) }
            </Select>
        </label>
    }
}
