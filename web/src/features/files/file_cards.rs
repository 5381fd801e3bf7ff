//! One card per file: what it is, how far it is, its health, and ways to stop and close it.

use std::rc::Rc;

use kinetoscope::report::units;
use wasm_bindgen::JsCast;
use web_sys::HtmlInputElement;
use yew::prelude::*;

use super::queries::{
    CardState, MANY_FILES, Mood, SplitName, health, is_repeated, keeps, split_names,
};
use crate::components::{Select, icon};
use crate::features::several::companions::role_question;
use crate::features::several::queries::choices::{Choice, Question};
use crate::protocol::{Aside, JobId};
use crate::queries::status::{card_text, percent_read};
use crate::shared::Shared;
use crate::state::{Action, FileEntry, Phase, Role};
use crate::tasks::Tasks;

/// The files and which one is shown.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// All files.
    pub files: Vec<Shared<FileEntry>>,
    /// The one whose views are shown.
    pub selected: Option<JobId>,
    /// The roles that each file can have, in the same order.
    pub choices: Vec<Vec<Choice>>,
    /// The question on each card, in the same order.
    pub questions: Vec<Option<Question>>,
    /// Effects.
    pub tasks: Tasks,
}

/// All cards, and above many of them a filter.
#[component]
pub fn FileCards(props: &Props) -> Html {
    let Props { files, selected, choices, questions, tasks } = props;
    let text = use_state_eq(String::new);
    let shown = use_state_eq(CardState::default);
    let many = files.len() >= MANY_FILES;
    // Few files have no filter, so none is in force.
    let (state, words) = if many { (*shown, &**text) } else { (CardState::All, "") };
    let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
    let cards =
        files.iter().zip(choices.iter().zip(questions)).zip(split_names(&names)).enumerate();
    let cards = cards.filter(|(_, ((file, _), _))| keeps(file, state, words));
    let mut cards = cards.peekable();
    let none = cards.peek().is_none();
    let close_all = {
        let tasks = tasks.clone();
        Callback::from(move |_: MouseEvent| tasks.remove_all())
    };
    let close_all = html! {
        <button class="close-all" onclick={close_all} data-testid="remove-all">{ "Close all" }</button>
    };
    html! {
        <>
            if many {
                { filter(files, &text, &shown, &close_all) }
            }
            <ul class="file-cards" data-testid="file-cards">
                { for cards.map(|(at, ((file, (choices, question)), name))| html! {
                    <FileCard key={file.job.0} file={file.clone()} {name} repeated={is_repeated(files, at)}
                        selected={*selected == Some(file.job)} choices={choices.clone()} question={question.clone()}
                        tasks={tasks.clone()} />
                }) }
                if none {
                    <li class="file-cards-none">{ "No files match the filter." }</li>
                }
                if !many && files.len() > 1 {
                    <li class="file-cards-end">{ close_all.clone() }</li>
                }
            </ul>
        </>
    }
}

/// The line above many cards.
fn filter(
    files: &[Shared<FileEntry>],
    text: &UseStateHandle<String>,
    shown: &UseStateHandle<CardState>,
    close_all: &Html,
) -> Html {
    let oninput = {
        let text = text.clone();
        Callback::from(move |event: InputEvent| {
            let field = event.target().and_then(|of| of.dyn_into::<HtmlInputElement>().ok());
            if let Some(field) = field {
                text.set(field.value());
            }
        })
    };
    let state = |state: CardState| {
        let n = files.iter().filter(|file| state.keeps(file)).count();
        if n == 0 && state != **shown {
            return html! {};
        }
        let shown_now = **shown == state;
        let shown = shown.clone();
        let onclick = Callback::from(move |_: MouseEvent| shown.set(state));
        html! {
            <button class="chip" aria-pressed={shown_now.to_string()} {onclick} data-testid={format!("files-{}", state.id())}>
                { format!("{} {}", state.title(), units::count(n as u64)) }
            </button>
        }
    };
    html! {
        <div class="file-filter" role="search" aria-label="Files">
            <input type="search" value={(**text).clone()} {oninput} placeholder="Filter files" aria-label="Filter files by name"
                spellcheck="false" data-testid="filter-files" />
            { for CardState::EVERY.into_iter().map(state) }
            { close_all.clone() }
        </div>
    }
}

#[derive(Clone, PartialEq, Properties)]
struct CardProps {
    file: Shared<FileEntry>,
    name: SplitName,
    repeated: bool,
    selected: bool,
    choices: Vec<Choice>,
    question: Option<Question>,
    tasks: Tasks,
}

#[component]
fn FileCard(props: &CardProps) -> Html {
    let CardProps { file, name, repeated, selected, choices, question, tasks } = props;
    let job = file.job;
    let act = |effect: Rc<dyn Fn(&Tasks)>| {
        let tasks = tasks.clone();
        Callback::from(move |_: MouseEvent| effect(&tasks))
    };
    let (mood, shape) = mood(file);
    let helps =
        choices.iter().any(|choice| choice.chosen && matches!(choice.role, Role::Companion(..)));
    let is_read = |aside: &Aside| !matches!(aside, Aside::Snapshot { .. });
    let helps = helps || file.aside.as_deref().is_some_and(is_read);
    let stopped = matches!(file.phase, Phase::Cancelled | Phase::Failed(_));
    html! {
        <li class={classes!("file-card", selected.then_some("selected"), helps.then_some("companion-card"), mood)} data-testid="file-card">
            <button class="file-card-main" aria-pressed={selected.to_string()} title={file.name.clone()}
                onclick={act(Rc::new(move |tasks| tasks.dispatch(Action::Selected(job))))}>
                <span class="file-card-name">
                    if let Some(shape) = shape {
                        { icon(shape) }
                    }
                    <bdi><span class="name-head">{ &name.head }</span><span class="name-tail">{ &name.tail }</span></bdi>
                </span>
                <span class="file-card-text">
                    <span data-testid="file-status">{ card_text(file) }</span>
                    if *repeated {
                        <span data-testid="file-repeated">{ " · opened twice?" }</span>
                    }
                </span>
                { badge(file) }
            </button>
            if file.is_busy() {
                <button class="icon-button" data-testid="cancel" aria-label={format!("Stop {}", file.name)}
                    title="Stop" onclick={act(Rc::new(move |tasks| tasks.cancel(job)))}>
                    { icon("stop") }
                </button>
            } else if stopped {
                <button class="icon-button" data-testid="retry" aria-label={format!("Try {} again", file.name)}
                    title="Try again" onclick={act(Rc::new(move |tasks| tasks.retry(job)))}>
                    { icon("retry") }
                </button>
            }
            <button class="icon-button" data-testid="remove" aria-label={format!("Close {}", file.name)}
                title="Close" onclick={act(Rc::new(move |tasks| tasks.remove(job)))}>
                { icon("close") }
            </button>
            { role_field(file, choices, tasks) }
            if let Some(question) = question {
                { role_question(question, tasks) }
            }
            if let Some(progress) = file.progress() {
                <progress class="file-card-progress" max="100" value={units::fixed(percent_read(&progress), 1)}
                    aria-label={format!("{}: {}", file.name, progress.stage.label())} />
            }
        </li>
    }
}

/// The health of the file, once it is checked.
fn badge(file: &FileEntry) -> Html {
    let Some((text, mood)) = health(file).filter(|_| !matches!(file.phase, Phase::Failed(_)))
    else {
        return html! {};
    };
    let class = match mood {
        Mood::Good => "good",
        Mood::Warning => "warning",
        Mood::Bad => "bad",
    };
    html! { <span class={classes!("badge", "file-health", class)} data-testid="file-health">{ text }</span> }
}

/// The role of the file: guessed from its contents, and changed here. Grouped by the file that a role is about.
fn role_field(file: &FileEntry, choices: &[Choice], tasks: &Tasks) -> Html {
    if choices.is_empty() {
        return html! {};
    }
    let roles: Vec<Role> = choices.iter().map(|choice| choice.role).collect();
    let (tasks, job) = (tasks.clone(), file.job);
    let on_choice = Callback::from(move |place: Option<usize>| {
        if let Some(role) = place.and_then(|place| roles.get(place)) {
            tasks.dispatch(Action::RoleSet(job, *role));
        }
    });
    let chosen = choices.iter().position(|choice| choice.chosen);
    let option = |choice: &Choice| html! { <option>{ &choice.text }</option> };
    let groups = choices.chunk_by(|a, b| a.role.of() == b.role.of());
    let group = |group: &[Choice]| match group {
        [first, ..] if first.role.of().is_some() => html! {
            <optgroup label={first.about.clone()}>{ for group.iter().map(option) }</optgroup>
        },
        _ => html! { { for group.iter().map(option) } },
    };
    html! {
        <Select class="file-card-role" name={format!("Role of {}", file.name)} {chosen} {on_choice} test_id="role">
            { for groups.map(group) }
        </Select>
    }
}

/// Class and icon of a card's state.
fn mood(file: &FileEntry) -> (Option<&'static str>, Option<&'static str>) {
    match &file.phase {
        Phase::Failed(_) => (Some("failed"), Some("error")),
        Phase::Cancelled => (Some("stopped"), None),
        Phase::Ready => (Some("ready"), None),
        Phase::Working(_) | Phase::Asking => (None, None),
    }
}
