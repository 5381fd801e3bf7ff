//! Help with settings, and how to check the promise. Native dialogs: the browser traps the focus in them,
//! closes them by Escape and gives the focus back.

use wasm_bindgen::JsCast;
use web_sys::{HtmlDialogElement, HtmlInputElement};
use yew::prelude::*;

use super::Icon;
use crate::state::{Action, Dialog, PERFETTO_URL};
use crate::tasks::Tasks;

/// Which dialog, and the settings it shows.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// Which one.
    pub dialog: Dialog,
    /// Whether single keys are on.
    pub keys_on: bool,
    /// Where "Open in Perfetto" leads.
    pub perfetto_url: AttrValue,
    /// Effects.
    pub tasks: Tasks,
}

/// The open dialog.
#[component]
pub fn OpenDialog(props: &Props) -> Html {
    let node = use_node_ref();
    {
        let node = node.clone();
        use_effect_with((), move |()| {
            if let Some(dialog) = node.cast::<HtmlDialogElement>() {
                let _shown = dialog.show_modal();
            }
        });
    }
    let onclose = {
        let tasks = props.tasks.clone();
        Callback::from(move |_: Event| tasks.dispatch(Action::DialogSet(None)))
    };
    let close = {
        let node = node.clone();
        Callback::from(move |_: MouseEvent| {
            if let Some(dialog) = node.cast::<HtmlDialogElement>() {
                dialog.close();
            }
        })
    };
    let (title, body) = match props.dialog {
        Dialog::Help => ("Keys and settings", help(props)),
        Dialog::Privacy => ("Nothing leaves this machine", privacy()),
    };
    html! {
        <dialog ref={node} class="dialog" {onclose} aria-labelledby="dialog-title" data-testid="dialog">
            <div class="dialog-head">
                <h2 id="dialog-title">{ title }</h2>
                <button class="icon-button" onclick={close} aria-label="Close" data-testid="dialog-close"><Icon name="close" /></button>
            </div>
            { body }
        </dialog>
    }
}

const KEYS: &[(&str, &str)] = &[
    ("Ctrl/⌘ O", "Choose files"),
    ("1 – 9, 0", "Go to a view"),
    ("/", "Filter the table"),
    ("?", "This help"),
    ("Esc", "Close, or clear the filter"),
    ("↑ ↓ ← →", "In a table: move; with Shift, select rows"),
    ("Page ↑ ↓, Home, End", "In a table: move far"),
    ("Enter", "In a table: the row in full; Esc closes it"),
    ("Ctrl/⌘ A, Ctrl/⌘ C", "In a table: select all, copy the selected rows"),
    ("Shift + click a header", "Second sort key"),
];

fn help(props: &Props) -> Html {
    let field = |event: &Event| {
        event.target().and_then(|target| target.dyn_into::<HtmlInputElement>().ok())
    };
    let on_keys = {
        let tasks = props.tasks.clone();
        Callback::from(move |event: Event| {
            if let Some(field) = field(&event) {
                tasks.dispatch(Action::KeysSet(field.checked()));
            }
        })
    };
    let on_url = {
        let tasks = props.tasks.clone();
        Callback::from(move |event: Event| {
            if let Some(field) = field(&event) {
                let url = field.value().trim().to_owned();
                let url = if url.is_empty() { PERFETTO_URL.to_owned() } else { url };
                tasks.dispatch(Action::PerfettoUrlSet(url));
            }
        })
    };
    html! {
        <>
            <table class="keys">
                <tbody>
                    { for KEYS.iter().map(|(keys, what)| html! {
                        <tr><th scope="row"><kbd>{ keys }</kbd></th><td>{ what }</td></tr>
                    }) }
                </tbody>
            </table>
            <h3>{ "Settings" }</h3>
            <p><label class="check">
                <input type="checkbox" checked={props.keys_on} onchange={on_keys} data-testid="setting-keys" />
                { "Use single keys (digits, / and ?)" }
            </label></p>
            <p><label class="field">
                <span>{ "Address of Perfetto, for “Open in Perfetto”" }</span>
                <input type="url" value={props.perfetto_url.clone()} onchange={on_url} placeholder={PERFETTO_URL}
                    spellcheck="false" data-testid="setting-perfetto" />
            </label></p>
            <p class="hint">{ "Change it when you host Perfetto yourself. Settings stay in this browser." }</p>
        </>
    }
}

fn privacy() -> Html {
    html! {
        <>
            <p>{ "Your trace is read by a worker of this tab. There is no server to send it to, no analytics, and no \
                  third party's code. You need not believe that:" }</p>
            <ol class="steps">
                <li><strong>{ "The browser forbids it. " }</strong>
                    { "This page's Content-Security-Policy says " }<code>{ "connect-src 'self'" }</code>
                    { " and " }<code>{ "default-src 'none'" }</code>
                    { ": neither page nor worker can reach another address. It is the first line in the page's source (Ctrl/⌘ U)." }</li>
                <li><strong>{ "Watch it. " }</strong>
                    { "Open the developer tools (F12), tab Network, and drop a trace: no request carries it." }</li>
                <li><strong>{ "Pull the plug. " }</strong>
                    { "Go offline now and drop a trace. Everything still works." }</li>
            </ol>
            <p class="hint">{ "“Open in Perfetto” is the one exception you make yourself: it hands the repaired file to the \
                Perfetto window by your click, from memory to memory; Perfetto does not upload it either." }</p>
        </>
    }
}
