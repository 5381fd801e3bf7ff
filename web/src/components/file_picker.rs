//! A choice of another open file.

use yew::prelude::*;

use crate::protocol::JobId;
use crate::tasks::browser::chosen_place;

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
    let chosen = chosen.filter(|chosen| others.iter().any(|(other, _)| other == chosen));
    let onchange = {
        let others = others.to_vec();
        Callback::from(move |event: Event| {
            let place = chosen_place(&event).and_then(|place| place.checked_sub(1));
            on_choice.emit(place.and_then(|place| others.get(place)).map(|(other, _)| *other));
        })
    };
    // (By their keys: where the chosen one leaves the list, the first one is chosen again.)
    let option = |(other, name): &(JobId, String)| {
        html! { <option key={other.0} selected={chosen == Some(*other)}>{ name }</option> }
    };
    html! {
        <label class="step-picker">
            <span>{ label }</span>
            <select {onchange} data-testid={id}>
                <option selected={chosen.is_none()}>{ none }</option>
                { for others.iter().map(option) }
            </select>
        </label>
    }
}
