//! One card per file: what it is, how far it is, and ways to stop and close it.

use std::rc::Rc;

use yew::prelude::*;

use super::Icon;
use crate::protocol::{JobId, Severity};
use crate::queries::roles::Choice;
use crate::queries::status::{card_text, percent_read};
use crate::shared::Shared;
use crate::state::{Action, FileEntry, Phase, Role};
use crate::tasks::Tasks;
use crate::tasks::browser::chosen_place;

/// The files and which one is shown.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// All files.
    pub files: Vec<Shared<FileEntry>>,
    /// The one whose views are shown.
    pub selected: Option<JobId>,
    /// What each file could be for, in the same order.
    pub choices: Vec<Vec<Choice>>,
    /// Effects.
    pub tasks: Tasks,
}

/// All cards.
#[component]
pub fn FileCards(props: &Props) -> Html {
    html! {
        <ul class="file-cards" data-testid="file-cards">
            { for props.files.iter().zip(&props.choices).map(|(file, choices)| html! {
                <FileCard key={file.job.0} file={file.clone()} tasks={props.tasks.clone()}
                    selected={props.selected == Some(file.job)} choices={choices.clone()} />
            }) }
        </ul>
    }
}

#[derive(Clone, PartialEq, Properties)]
struct CardProps {
    file: Shared<FileEntry>,
    selected: bool,
    choices: Vec<Choice>,
    tasks: Tasks,
}

#[component]
fn FileCard(props: &CardProps) -> Html {
    let CardProps { file, selected, choices, tasks } = props;
    let job = file.job;
    let act = |effect: Rc<dyn Fn(&Tasks)>| {
        let tasks = tasks.clone();
        Callback::from(move |_: MouseEvent| effect(&tasks))
    };
    let (mood, icon) = mood(file);
    let helps =
        choices.iter().any(|choice| choice.chosen && matches!(choice.role, Role::Companion(..)));
    let helps = helps || file.aside.is_some();
    let stopped = matches!(file.phase, Phase::Cancelled | Phase::Failed(_));
    html! {
        <li class={classes!("file-card", selected.then_some("selected"), helps.then_some("companion-card"), mood)} data-testid="file-card">
            <button class="file-card-main" aria-pressed={selected.to_string()} title={file.name.clone()}
                onclick={act(Rc::new(move |tasks| tasks.dispatch(Action::Selected(job))))}>
                <span class="file-card-name">
                    if let Some(icon) = icon {
                        <Icon name={icon} />
                    }
                    <bdi>{ &file.name }</bdi>
                </span>
                <span class="file-card-text" data-testid="file-status">{ card_text(file) }</span>
            </button>
            if file.is_busy() {
                <button class="icon-button" data-testid="cancel" aria-label={format!("Stop {}", file.name)}
                    title="Stop" onclick={act(Rc::new(move |tasks| tasks.cancel(job)))}>
                    <Icon name="stop" />
                </button>
            } else if stopped {
                <button class="icon-button" data-testid="retry" aria-label={format!("Try {} again", file.name)}
                    title="Try again" onclick={act(Rc::new(move |tasks| tasks.retry(job)))}>
                    <Icon name="retry" />
                </button>
            }
            <button class="icon-button" data-testid="remove" aria-label={format!("Close {}", file.name)}
                title="Close" onclick={act(Rc::new(move |tasks| tasks.remove(job)))}>
                <Icon name="close" />
            </button>
            { role_field(file, choices, tasks) }
            if let Some(progress) = file.progress() {
                <progress class="file-card-progress" max="100" value={format!("{:.1}", percent_read(&progress))}
                    aria-label={format!("{}: {}", file.name, progress.stage.label())} />
            }
        </li>
    }
}

/// What the file is for: guessed from its contents, and changed here.
fn role_field(file: &FileEntry, choices: &[Choice], tasks: &Tasks) -> Html {
    if choices.is_empty() {
        return html! {};
    }
    let roles: Vec<Role> = choices.iter().map(|choice| choice.role).collect();
    let (tasks, job) = (tasks.clone(), file.job);
    let onchange = Callback::from(move |event: Event| {
        if let Some(role) = chosen_place(&event).and_then(|place| roles.get(place)) {
            tasks.dispatch(Action::RoleSet(job, *role));
        }
    });
    html! {
        <select class="file-card-role" aria-label={format!("What {} is for", file.name)} {onchange} data-testid="role">
            { for choices.iter().map(|choice| html! {
                <option selected={choice.chosen}>{ &choice.text }</option>
            }) }
        </select>
    }
}

/// Class and icon of a card's state.
fn mood(file: &FileEntry) -> (Option<&'static str>, Option<&'static str>) {
    match &file.phase {
        Phase::Failed(_) => return (Some("failed"), Some("error")),
        Phase::Cancelled => return (Some("stopped"), None),
        Phase::Working(_) | Phase::Ready => {}
    }
    let worst = file
        .opened
        .as_ref()
        .and_then(|opened| opened.problems.iter().map(|problem| problem.severity).max());
    let drops = file.plan.as_ref().is_some_and(|plan| plan.drops_before > 0);
    match worst {
        Some(Severity::Error) => (Some("troubled"), Some("warning")),
        _ if drops => (Some("troubled"), Some("warning")),
        _ if matches!(file.phase, Phase::Ready) => (Some("ready"), Some("check")),
        _ => (None, None),
    }
}
