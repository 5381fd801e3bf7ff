//! A select field.

use web_sys::HtmlSelectElement;
use yew::prelude::*;

/// What is chosen, what takes a choice, and the options.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The place of the chosen option among `children`, from 0.
    pub chosen: Option<usize>,
    /// Takes the place of the option that a person chose; none where they chose `none`.
    pub on_choice: Callback<Option<usize>>,
    /// Text of a first option that stands for no choice. Without it, a field with nothing chosen is empty.
    #[prop_or_default]
    pub none: Option<AttrValue>,
    /// For the `for` of a label.
    #[prop_or_default]
    pub id: Option<AttrValue>,
    #[prop_or_default]
    pub class: Classes,
    /// The accessible name, where no label is around the field or refers to it.
    #[prop_or_default]
    pub name: Option<AttrValue>,
    /// Id of the element that describes it.
    #[prop_or_default]
    pub described_by: Option<AttrValue>,
    /// Whether the choice is an error, where it can be one.
    #[prop_or_default]
    pub is_wrong: Option<bool>,
    pub test_id: AttrValue,
    /// The options, also in groups.
    pub children: Html,
}

/// The field. It is told which option is chosen after every rendering: the `selected` attribute of an option is only its
/// default, which Firefox ignores once a person has used the field.
#[component]
pub fn Select(props: &Props) -> Html {
    let Props {
        chosen,
        on_choice,
        none,
        id,
        class,
        name,
        described_by,
        is_wrong,
        test_id,
        children,
    } = props;
    let field = use_node_ref();
    let before = usize::from(none.is_some());
    let shown = shown_place(*chosen, before);
    {
        let field = field.clone();
        use_effect(move || {
            // Only where it differs: setting it can disturb a list that is open.
            if let Some(field) =
                field.cast::<HtmlSelectElement>().filter(|field| field.selected_index() != shown)
            {
                field.set_selected_index(shown);
            }
        });
    }
    let onchange = {
        let (field, on_choice) = (field.clone(), on_choice.clone());
        Callback::from(move |_: Event| {
            if let Some(field) = field.cast::<HtmlSelectElement>() {
                on_choice.emit(chosen_place(field.selected_index(), before));
            }
        })
    };
    html! {
        <select ref={field} {onchange} id={id.clone()} class={class.clone()} aria-label={name.clone()} aria-describedby={described_by.clone()}
            aria-invalid={is_wrong.map(|is_wrong| is_wrong.to_string())} data-testid={test_id.clone()}>
            { for none.iter().map(|none| html! { <option>{ none }</option> }) }
            { children.clone() }
        </select>
    }
}

/// The `selectedIndex` of a field with `before` options before the first one that can be chosen; -1 selects none.
fn shown_place(chosen: Option<usize>, before: usize) -> i32 {
    let place = chosen.map(|chosen| chosen + before).or_else(|| before.checked_sub(1));
    place.and_then(|place| i32::try_from(place).ok()).unwrap_or(-1)
}

/// What is chosen at a `selectedIndex`.
fn chosen_place(shown: i32, before: usize) -> Option<usize> {
    usize::try_from(shown).ok()?.checked_sub(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_back_as_it_was_shown() {
        for before in [0, 1] {
            for chosen in [None, Some(0), Some(2)] {
                assert_eq!(chosen_place(shown_place(chosen, before), before), chosen, "{before}");
            }
        }
        assert_eq!(shown_place(None, 0), -1, "empty");
        assert_eq!(shown_place(None, 1), 0, "the option that stands for no choice");
    }
}
