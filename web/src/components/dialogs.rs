//! Keys and settings, how to check that files stay on the machine, how to record. Native dialogs: the browser traps the
//! focus in them, closes them by Escape and gives the focus back.

use wasm_bindgen::JsCast;
use web_sys::{HtmlDialogElement, HtmlInputElement};
use yew::prelude::*;

use super::icon;
use super::kept;
use super::record::record_help;
use crate::protocol::JobId;
use crate::state::{Action, Dialog, Kept, PERFETTO_URL, View};
use crate::tasks::Tasks;

/// Which dialog, and what it shows.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The dialog to show.
    pub dialog: Dialog,
    /// Whether single keys are on.
    pub keys_on: bool,
    /// Whether opened files are kept, and which are.
    pub keeps: bool,
    pub kept: Kept,
    /// The address that "Open in Perfetto" opens.
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
        let (tasks, dialog) = (props.tasks.clone(), props.dialog);
        Callback::from(move |_: Event| tasks.dispatch(Action::DialogClosed(dialog)))
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
        // `commands::CommandDialog` draws that one.
        Dialog::Commands => return html! {},
        Dialog::Help => ("Keys and settings", help(props)),
        Dialog::Privacy => ("Files stay on this machine", privacy()),
        Dialog::Record => ("How to record a trace", record_help(&props.tasks)),
        Dialog::HandOver(job) => ("Open in Perfetto", hand_over(props, job, &close)),
    };
    html! {
        <dialog ref={node} class={classes!("dialog", (props.dialog == Dialog::Record).then_some("wide"))} {onclose} aria-labelledby="dialog-title" data-testid="dialog">
            <div class="dialog-head">
                <h2 id="dialog-title">{ title }</h2>
                <button class="icon-button" onclick={close} aria-label="Close" data-testid="dialog-close">{ icon("close") }</button>
            </div>
            { body }
        </dialog>
    }
}

/// Where the trace goes, before it goes there.
fn hand_over(props: &Props, job: JobId, close: &Callback<MouseEvent>) -> Html {
    let open = {
        let (tasks, url, close) = (props.tasks.clone(), props.perfetto_url.clone(), close.clone());
        Callback::from(move |event: MouseEvent| {
            close.emit(event);
            tasks.dispatch(Action::PerfettoKnown);
            tasks.go_to_perfetto(job, &url);
        })
    };
    html! {
        <>
            <p>{ "The repaired trace will be passed to a window of the address in the settings of this browser:" }</p>
            <p><code data-testid="hand-over-url">{ &props.perfetto_url }</code></p>
            <p class="card-actions">
                <button class="primary" onclick={open} data-testid="hand-over">{ "Open this address" }</button>
                <button onclick={close.clone()}>{ "Cancel" }</button>
            </p>
        </>
    }
}

const KEYS: &[(&str, &str)] = &[
    ("Ctrl/⌘ K", "Find a command, a view or a file"),
    ("Ctrl/⌘ O", "Choose files"),
    ("/", "Filter the table"),
    ("Z, Ctrl/⌘ Z", "Undo the last change of a filter"),
    ("T", "Show or remove the timeline below the view"),
    ("?", "This help"),
    ("Esc", "Close, or clear the filter"),
    ("↑ ↓ ← →", "In a table: move; hold Shift to select rows"),
    ("Page ↑ ↓, Home, End", "In a table: move by a page, or to the first or last row"),
    ("Enter", "In a table: open the row; Esc closes it"),
    ("Ctrl/⌘ A, Ctrl/⌘ C", "In a table: select all, copy the selected rows"),
    ("Shift + click a header", "Sort by a second column"),
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
    let key = |keys: &str, what: &'static str| {
        html! { <tr><th scope="row"><kbd>{ keys.to_owned() }</kbd></th><td>{ what }</td></tr> }
    };
    html! {
        <>
            <table class="keys">
                <tbody>
                    { for KEYS.iter().map(|(keys, what)| key(keys, what)) }
                    { key(&View::keys(), "Go to a view") }
                </tbody>
            </table>
            <h3>{ "Settings" }</h3>
            <p><label class="check">
                <input type="checkbox" checked={props.keys_on} onchange={on_keys} data-testid="setting-keys" />
                { "Enable single-key shortcuts (digits, / and ?)" }
            </label></p>
            { kept::setting(props.keeps, props.kept, &props.tasks) }
            <p><label class="field">
                <span>{ "Perfetto address, for “Open in Perfetto”" }</span>
                <input type="url" value={props.perfetto_url.clone()} onchange={on_url} placeholder={PERFETTO_URL}
                    spellcheck="false" data-testid="setting-perfetto" />
            </label></p>
            <p class="hint">{ "Change it if you host Perfetto yourself. Settings are stored in this browser." }</p>
        </>
    }
}

fn privacy() -> Html {
    html! {
        <>
            <p>{ "A worker in this tab reads your trace. The page has no upload code and no analytics. To verify this:" }</p>
            <ol class="steps">
                <li><strong>{ "Read the policy. " }</strong>
                    { "The Content-Security-Policy in the head of the page source (Ctrl/⌘ U) contains " }<code>{ "default-src 'none'" }</code>
                    { " and " }<code>{ "connect-src 'self'" }</code>
                    { ": the page and its worker can exchange data only with the origin of this page." }</li>
                <li><strong>{ "Watch the network. " }</strong>
                    { "Open the Network tab of the developer tools (F12), then open a trace: no request contains it." }</li>
                <li><strong>{ "Go offline. " }</strong>
                    { "Disconnect from the network and open a trace: the analysis still works." }
                    <span class="no-copy" data-testid="no-copy">{ " (This browser keeps no copy of the page: load it, and open a file of each kind, before.)" }</span></li>
            </ol>
            <p class="hint">{ "Files are not stored unless you turn that on in “Keys and settings”. Then copies are kept on this machine, in this \
                browser's private storage for this page, until you clear them." }</p>
            <p class="hint">{ "When you click “Open in Perfetto”, the page passes the repaired file to a Perfetto window. The policy does not cover links and windows that the page opens." }</p>
        </>
    }
}
