//! The command dialog: a field that filters, and the list of what can be done. The pattern is the combobox of WAI-ARIA: the
//! focus stays in the field, arrows move through the list.

use wasm_bindgen::JsCast;
use web_sys::{HtmlDialogElement, HtmlElement, HtmlInputElement, KeyboardEvent};
use yew::prelude::*;

use super::queries::{Command, Entry, matching};
use crate::components::icon;
use crate::state::{Action, Dialog};
use crate::tasks::Tasks;

const LIST: &str = "commands-list";

/// What can be done.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// Everything, by section.
    pub entries: Vec<Entry>,
    /// Effects.
    pub tasks: Tasks,
}

/// The open dialog.
#[component]
pub fn CommandDialog(props: &Props) -> Html {
    let (dialog, list) = (use_node_ref(), use_node_ref());
    let text = use_state_eq(String::new);
    let active = use_state_eq(|| 0_usize);
    {
        let dialog = dialog.clone();
        use_effect_with((), move |()| {
            if let Some(dialog) = dialog.cast::<HtmlDialogElement>() {
                let _shown = dialog.show_modal();
            }
        });
    }
    let shown = matching(&props.entries, &text);
    // Commands come and go while files are read.
    let at = (*active).min(shown.len().saturating_sub(1));
    {
        let list = list.clone();
        use_effect_with((at, text.clone()), move |(at, _)| bring_into_view(&list, *at));
    }
    let onclose = {
        let tasks = props.tasks.clone();
        Callback::from(move |_: Event| tasks.dispatch(Action::DialogClosed(Dialog::Commands)))
    };
    let oninput = {
        let (text, active) = (text.clone(), active.clone());
        Callback::from(move |event: InputEvent| {
            if let Some(field) = field_of(&event) {
                text.set(field.value());
                active.set(0);
            }
        })
    };
    // The dialog is closed first: it gives the focus back to where it was, from where a command may move it on.
    let run = {
        let (dialog, tasks) = (dialog.clone(), props.tasks.clone());
        Callback::from(move |command: Option<Command>| {
            if let Some(dialog) = dialog.cast::<HtmlDialogElement>() {
                dialog.close();
            }
            if let Some(command) = command {
                tasks.run(command);
            }
        })
    };
    let onkeydown = {
        let (run, active, n_shown) = (run.clone(), active.clone(), shown.len());
        let chosen = shown.get(at).map(|entry| entry.command.clone());
        // (Whoever types fast presses Enter before the list is drawn anew. The state has the new text by then.)
        let (entries, drawn) = (props.entries.clone(), (*text).clone());
        let chosen = move |event: &KeyboardEvent| {
            let typed = field_of(event).map(|field| field.value());
            match typed.filter(|typed| *typed != drawn) {
                Some(typed) => Some(matching(&entries, &typed).first()?.command.clone()),
                None => chosen.clone(),
            }
        };
        Callback::from(move |event: KeyboardEvent| {
            match event.key().as_str() {
                // Enter ends the composition of a word first.
                "Enter" if event.is_composing() => return,
                "Enter" => match chosen(&event) {
                    None => return,
                    command => run.emit(command),
                },
                "ArrowDown" if n_shown > 0 => active.set((at + 1) % n_shown),
                "ArrowUp" if n_shown > 0 => active.set((at + n_shown - 1) % n_shown),
                "k" | "K" if event.ctrl_key() || event.meta_key() => run.emit(None),
                _ => return,
            }
            event.prevent_default();
        })
    };
    let none = shown.is_empty();
    html! {
        <dialog ref={dialog} class="dialog commands" {onclose} aria-label="Commands" data-testid="commands">
            <div class="commands-field">
                { icon("search") }
                <input type="text" role="combobox" aria-label="Find a command" placeholder="Find a command" autocomplete="off" spellcheck="false"
                    aria-expanded={(!none).to_string()} aria-controls={LIST} aria-autocomplete="list"
                    aria-activedescendant={(!none).then(|| option_id(at))} value={(*text).clone()} {oninput} {onkeydown}
                    data-testid="commands-text" />
            </div>
            <div ref={list} id={LIST} class="commands-list" role="listbox" aria-label="Commands" hidden={none}>
                { sections(&shown, at, &run) }
            </div>
            <p class="commands-none" role="status">{ if none { "No command matches." } else { "" } }</p>
        </dialog>
    }
}

/// The field that an event is of.
fn field_of(event: &Event) -> Option<HtmlInputElement> {
    event.target().and_then(|of| of.dyn_into().ok())
}

/// The list, with a heading above the first line of each section.
fn sections(shown: &[Entry], active: usize, run: &Callback<Option<Command>>) -> Html {
    let mut first = 0;
    let groups = shown.chunk_by(|a, b| a.section == b.section).map(|lines| {
        let from = first;
        first += lines.len();
        let id = format!("commands-{from}");
        let section = lines.first().map_or("", |entry| entry.section);
        html! {
            <div role="group" aria-labelledby={id.clone()}>
                <p {id} class="commands-section" role="presentation">{ section }</p>
                { for lines.iter().enumerate().map(|(line, entry)| option(entry, from + line, from + line == active, run)) }
            </div>
        }
    });
    html! { <>{ for groups }</> }
}

fn option(entry: &Entry, at: usize, active: bool, run: &Callback<Option<Command>>) -> Html {
    let onclick = {
        let (run, command) = (run.clone(), entry.command.clone());
        Callback::from(move |_: MouseEvent| run.emit(Some(command.clone())))
    };
    html! {
        <div id={option_id(at)} role="option" aria-selected={active.to_string()} {onclick} data-testid="command">
            <span>{ &entry.title }</span>
            if let Some(keys) = &entry.keys {
                <kbd aria-hidden="true">{ keys }</kbd>
            }
        </div>
    }
}

fn option_id(at: usize) -> String {
    format!("command-{at}")
}

/// Scrolls the list, and nothing else, until a line of it is in sight.
fn bring_into_view(list: &NodeRef, at: usize) {
    let Some(list) = list.cast::<HtmlElement>() else { return };
    let line = list.query_selector(&format!("#{}", option_id(at))).ok().flatten();
    let Some(line) = line.and_then(|line| line.dyn_into::<HtmlElement>().ok()) else { return };
    // The heading of the first section belongs to its first line.
    let top = if at == 0 { 0 } else { line.offset_top() };
    let bottom = line.offset_top() + line.offset_height();
    if top < list.scroll_top() {
        list.set_scroll_top(top);
    } else if bottom > list.scroll_top() + list.client_height() {
        list.set_scroll_top(bottom - list.client_height());
    }
}
