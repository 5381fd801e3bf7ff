//! The form for run details that a trace does not record.

use std::collections::BTreeMap;

use kinetoscope::artifacts::{FACT_FIELDS, FactField, FactKind};
use kinetoscope::report::units;
use kinetoscope::words;
use wasm_bindgen::JsCast;
use web_sys::{File, HtmlInputElement};
use yew::prelude::*;

use super::queries::{Errors, SERVER_ARGS, error_of};
use crate::components::{Select, icon};
use crate::state::{Action, ArtifactForm, ServerArgs};
use crate::tasks::{Tasks, files};

/// The form and its errors.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The text in it.
    pub form: ArtifactForm,
    /// A `server_args.json`.
    pub server_args: Option<ServerArgs>,
    /// Errors, by key.
    pub errors: Errors,
    /// Effects.
    pub tasks: Tasks,
}

/// The form.
#[component]
pub fn FactsForm(props: &Props) -> Html {
    let Props { form, errors, tasks, .. } = props;
    let on_field = |key: &'static str| {
        let (tasks, form) = (tasks.clone(), form.clone());
        Callback::from(move |text: String| {
            // (Removing a member is more code than another map.)
            let mut facts = BTreeMap::new();
            facts.extend(form.facts.clone().into_iter().filter(|(of, _)| of != key));
            if !text.is_empty() {
                facts.insert(key.to_owned(), text);
            }
            let form = ArtifactForm { facts, ..form.clone() };
            tasks.dispatch(Action::FormSet(form));
        })
    };
    let on_remember = {
        let (tasks, form) = (tasks.clone(), form.clone());
        Callback::from(move |event: Event| {
            if let Some(field) = input_of(&event) {
                let form = ArtifactForm { remember: field.checked(), ..form.clone() };
                tasks.dispatch(Action::FormSet(form));
            }
        })
    };
    let clear = {
        let (tasks, form) = (tasks.clone(), form.clone());
        Callback::from(move |_: MouseEvent| {
            tasks
                .dispatch(Action::FormSet(ArtifactForm { facts: BTreeMap::new(), ..form.clone() }));
            tasks.dispatch(Action::ServerArgsCleared);
        })
    };
    let empty = form.facts.is_empty() && props.server_args.is_none();
    // Open where something was filled in before; after that it is the user who folds it.
    let open = use_memo((), |()| !empty || !errors.is_empty());
    html! {
        <details class="panel unfold" open={*open} data-testid="facts">
            <summary>
                <h2>{ "Run details (not in the trace)" }</h2>
                <span class="hint">{ "container, launch flags, experiment: for profile_metadata.json" }</span>
            </summary>
            <div class="facts-form">
            <p class="hint">
                { "The profiler does not record the container, the launch flags or your experiment. A field that you leave empty is null in profile_metadata.json, unless the trace contains the value. Nothing is guessed." }
            </p>
            <div class="facts-fields">
                { for FACT_FIELDS.iter().map(|field| fact(field, error_of(errors, field.key), on_field(field.key), form, tasks)) }
                { flags(props) }
            </div>
            <label class="check">
                <input type="checkbox" checked={form.remember} onchange={on_remember} data-testid="facts-remember" />
                <span>{ "Remember these fields in this browser (except the launch flags, which may contain keys)" }</span>
            </label>
            <p><button onclick={clear} disabled={empty} data-testid="facts-clear">{ "Clear all fields" }</button></p>
            </div>
        </details>
    }
}

fn input_of(event: &Event) -> Option<HtmlInputElement> {
    event.target()?.dyn_into().ok()
}

fn file_of(event: &Event) -> Option<File> {
    let input = input_of(event)?;
    let file = files::listed(input.files()).into_iter().next();
    // The same file can be chosen again.
    input.set_value("");
    file
}

/// The launch flags: a file, dropped or chosen.
fn flags(props: &Props) -> Html {
    let choose = {
        let tasks = props.tasks.clone();
        Callback::from(move |event: Event| {
            if let Some(file) = file_of(&event) {
                tasks.take_server_args(file);
            }
        })
    };
    let remove = {
        let tasks = props.tasks.clone();
        Callback::from(move |_: MouseEvent| tasks.dispatch(Action::ServerArgsCleared))
    };
    let error = error_of(&props.errors, SERVER_ARGS);
    let state = props.server_args.as_ref().map(|flags| {
        format!("{} of flags, used for all files", units::file_bytes(flags.text.len() as u64))
    });
    html! {
        <div class={classes!("fact", error.is_some().then_some("wrong"))} role="group" aria-labelledby="fact-flags" data-testid="fact-server_args">
            <span id="fact-flags" class="fact-title">{ "Launch flags" }</span>
            <div class="fact-file">
                <label class="file-button">
                    <input type="file" accept=".json,application/json" onchange={choose} aria-describedby="fact-flags-help" data-testid="choose-server-args" />
                    <span>{ "Choose server_args.json" }</span>
                </label>
                if let Some(state) = state {
                    <span class="fact-state" data-testid="server-args-state">{ state }</span>
                    <button class="icon-button" onclick={remove} aria-label="Remove the launch flags">{ icon("close") }</button>
                }
            </div>
            { help("fact-flags-help", "Or drop the file anywhere on the page. It also provides the model name and the tensor-parallel size, which some fused kernels depend on.", error) }
        </div>
    }
}

/// A fact with its field, what is wrong with it, and what takes its new text.
fn fact(
    field: &'static FactField,
    error: Option<&String>,
    on_input: Callback<String>,
    form: &ArtifactForm,
    tasks: &Tasks,
) -> Html {
    let value = form.facts.get(field.key).map_or("", String::as_str);
    let choices: &'static [&str] = match field.kind {
        FactKind::Choice(words) => words,
        FactKind::YesNo => &["yes", "no"],
        _ => {
            return text_field(TextField {
                id: field.key,
                title: field.title,
                value,
                placeholder: field.example,
                help: field.help,
                error,
                on_input: on_input.reform(|field: HtmlInputElement| field.value()),
                button: (field.kind == FactKind::Digest).then(|| config_button(tasks)),
            });
        }
    };
    let id = format!("fact-{}", field.key);
    let on_choice = on_input.reform(move |place: Option<usize>| {
        place.and_then(|place| choices.get(place)).copied().unwrap_or_default().to_owned()
    });
    let chosen = choices.iter().position(|word| *word == value);
    let help_id = format!("{id}-help");
    html! {
        <div key={field.key} class={classes!("fact", error.is_some().then_some("wrong"))}>
            <label class="fact-title" for={id.clone()}>{ field.title }</label>
            <Select id={id.clone()} {chosen} {on_choice} none="not set" described_by={help_id.clone()} is_wrong={error.is_some()} test_id={id}>
                { for choices.iter().map(|word| html! { <option value={*word}>{ words::stage(word).show() }</option> }) }
            </Select>
            { help(&help_id, field.help, error) }
        </div>
    }
}

/// Fills in the digest of a file.
fn config_button(tasks: &Tasks) -> Html {
    let choose = {
        let tasks = tasks.clone();
        Callback::from(move |event: Event| {
            if let Some(file) = file_of(&event) {
                tasks.take_benchmark_config(&file);
            }
        })
    };
    html! {
        <label class="file-button">
            <input type="file" onchange={choose} data-testid="choose-benchmark-config" />
            <span>{ "Load from file" }</span>
        </label>
    }
}

/// A text field with its label, its help and its error.
pub struct TextField<'a> {
    /// Key of the field.
    pub id: &'static str,
    /// The label.
    pub title: &'static str,
    /// The text in it.
    pub value: &'a str,
    /// An example.
    pub placeholder: &'static str,
    /// Its purpose.
    pub help: &'static str,
    /// Its error.
    pub error: Option<&'a String>,
    /// The field, when something was typed.
    pub on_input: Callback<HtmlInputElement>,
    /// A button beside it.
    pub button: Option<Html>,
}

/// The field.
pub fn text_field(field: TextField<'_>) -> Html {
    let TextField { id: key, title, value, placeholder, help: purpose, error, on_input, button } =
        field;
    let id = format!("fact-{key}");
    let help_id = format!("{id}-help");
    let oninput = Callback::from(move |event: InputEvent| {
        let field = event.target().and_then(|of| of.dyn_into::<HtmlInputElement>().ok());
        if let Some(field) = field {
            on_input.emit(field);
        }
    });
    html! {
        <div {key} class={classes!("fact", error.is_some().then_some("wrong"))}>
            <label class="fact-title" for={id.clone()}>{ title }</label>
            <div class="fact-file">
                <input type="text" id={id.clone()} value={value.to_owned()} {placeholder} {oninput} spellcheck="false"
                    autocomplete="off" aria-describedby={help_id.clone()} aria-invalid={error.is_some().to_string()}
                    data-testid={id} />
                { for button }
            </div>
            { help(&help_id, purpose, error) }
        </div>
    }
}

/// The purpose of a field, or its error.
fn help(id: &str, help: &str, error: Option<&String>) -> Html {
    match error {
        Some(error) => {
            html! { <p id={id.to_owned()} class="fact-error" role="alert">{ error }</p> }
        }
        None => html! { <p id={id.to_owned()} class="hint">{ help }</p> },
    }
}
