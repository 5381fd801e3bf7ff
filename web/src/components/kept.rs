//! Files that the browser keeps between visits, and the newer build of the page.

use kinetoscope::report::units;
use wasm_bindgen::JsCast;
use web_sys::HtmlInputElement;
use yew::prelude::*;

use super::icon;
use crate::state::{Action, Kept};
use crate::tasks::Tasks;

/// "2 files, 12.3 MB".
fn files(n: u64, bytes: u64) -> String {
    format!("{}, {}", units::plural(n, "file", "files"), units::file_bytes(bytes))
}

/// The files of the last visit, before any file is open.
pub fn offer(kept: Kept) -> Html {
    if kept.n_waiting == 0 {
        return html! {};
    }
    let text = format!("Open again: {}", files(kept.n_waiting, kept.waiting_bytes));
    // (What buttons call is in `web/late.js`.)
    html! {
        <div class="kept" role="group" aria-label="Files of your last visit" data-testid="kept">
            <p>{ "Kept in this browser from your last visit, on this machine." }</p>
            <button data-call="late reopen" data-testid="reopen">{ text }</button>
            { clear() }
        </div>
    }
}

fn clear() -> Html {
    html! { <button data-call="late clear" data-testid="clear">{ "Clear" }</button> }
}

/// A newer build is there.
pub fn newer(tasks: &Tasks) -> Html {
    let later = {
        let tasks = tasks.clone();
        Callback::from(move |_: MouseEvent| tasks.dispatch(Action::NewerFound(false)))
    };
    html! {
        <div class="kept newer" role="status" data-testid="newer">
            <p>{ "A newer version of Kinetoscope is ready. Open files are opened again." }</p>
            <button class="primary" data-call="late renew" data-testid="renew">{ "Reload" }</button>
            <button class="icon-button" onclick={later} aria-label="Not now">{ icon("close") }</button>
        </div>
    }
}

/// The setting, and what it keeps now.
pub fn setting(keeps: bool, kept: Kept, tasks: &Tasks) -> Html {
    let onchange = {
        let tasks = tasks.clone();
        Callback::from(move |event: Event| {
            let field = event.target().and_then(|of| of.dyn_into::<HtmlInputElement>().ok());
            if let Some(field) = field {
                tasks.dispatch(Action::KeepSet(field.checked()));
            }
        })
    };
    html! {
        <>
            <p><label class="check">
                <input type="checkbox" checked={keeps} {onchange} data-testid="setting-keep" />
                { "Keep opened files in this browser, to open them again on the next visit" }
            </label></p>
            if kept.n_files > 0 {
                <div class="kept" data-testid="kept-size">
                    <p>{ format!("Kept on this machine: {}.", files(kept.n_files, kept.bytes)) }</p>
                    { clear() }
                </div>
            }
        </>
    }
}
