//! The whole page: state, effects that follow from it, and the frame around the views.

use gloo::events::EventListener;
use gloo::utils::{document, window};
use wasm_bindgen::JsCast;
use web_sys::{DragEvent, HtmlElement, HtmlInputElement, KeyboardEvent};
use yew::prelude::*;

use super::bar::hatches;
use super::cards::{About, failure_card};
use super::dialogs::OpenDialog;
use super::drop_target::drop_target;
use super::empty_state::empty_state;
use super::header::header;
use super::kept::newer;
use super::nav::nav;
use super::status_bar::status_bar;
use crate::features::aside::queries::{described, other_snapshots, traces_beside};
use crate::features::commands::queries as commands;
use crate::features::commands::view::CommandDialog;
use crate::features::compare::queries::compare;
use crate::features::files::file_cards::FileCards;
use crate::features::files::queries::has_gpu;
use crate::features::several::queries::choices;
use crate::features::timeline::queries::clock::together;
use crate::queries::address::Address;
use crate::queries::page;
use crate::queries::status::spoken_text;
use crate::shared::Shared;
use crate::state::{Action, Dialog, FileEntry, State};
use crate::tasks::browser::listen;
use crate::tasks::{Tasks, artifacts, browser, files, keys, settings};
use crate::views::{self, FileView};

/// The page.
#[component]
pub fn App() -> Html {
    let redraw = use_force_update();
    let tasks = use_memo((), move |()| {
        let state = page::addressed(settings::restored(), &hash());
        Tasks::new(state, Callback::from(move |()| redraw.force_update()))
    });
    let tasks = (*tasks).clone();
    let state = tasks.state();

    use_listeners(&tasks);
    use_kept(&state);
    let selected = state.selected_file().cloned();
    let notices = state.notices.iter().enumerate().map(|(place, failure)| {
        let closing = tasks.clone();
        let on_close = Callback::from(move |()| closing.dispatch(Action::NoticeClosed(place)));
        failure_card(failure, About { on_close: Some(on_close), ..About::default() }, &tasks)
    });
    let shown = selected.as_ref().map(|file| props(&state, file.clone(), &tasks));
    let with_nav = selected.as_ref().is_some_and(|file| file.has_views());
    let dock = shown.as_ref().filter(|_| state.docked && with_nav).and_then(views::docked);
    use_effect_with((dock.is_some(), state.dock_height), |_| browser::fit_view());
    html! {
        <>
            <a class="skip-link" href="#main" onclick={Callback::from(skip)}>{ "Skip to the content" }</a>
            { hatches() }
            { header(state.theme, &tasks) }
            <section class="files" aria-label="Files">
                if state.is_newer {
                    { newer(&tasks) }
                }
                { pickers(&tasks) }
                if !state.files.is_empty() {
                    <FileCards files={state.files.clone()} selected={state.selected} choices={choices::all_choices(&state)} questions={choices::questions(&state)} tasks={tasks.clone()} />
                }
            </section>
            <div class={classes!("body", with_nav.then_some("with-nav"), dock.is_some().then_some("with-dock"))}>
                if let Some(file) = selected.as_ref().filter(|file| file.has_views()) {
                    { nav(state.view, has_gpu(file), &page::badges(file), &tasks) }
                }
                <main id="main" tabindex="-1">
                    { for notices }
                    if let Some(shown) = shown {
                        <FileView ..shown />
                    } else {
                        { empty_state(state.kept, &tasks) }
                    }
                </main>
                { dock.unwrap_or_default() }
            </div>
            { status_bar(&selected.as_ref().map_or_else(String::new, |file| spoken_text(file)), &state.announcement, !state.undo.is_empty(), &tasks) }
            { dialog(&state, &tasks) }
            if state.drag_over {
                { drop_target() }
            }
        </>
    }
}

/// Listeners of the window live as long as the page.
#[hook]
fn use_listeners(tasks: &Tasks) {
    let tasks = tasks.clone();
    use_effect_with((), move |()| {
        let listeners = listeners(&tasks);
        tasks.hear_late();
        move || drop(listeners)
    });
}

/// What follows from a change of the state outside of the views: settings are kept, title and address are those of the view, and the
/// browser asks before files are lost.
#[hook]
fn use_kept(state: &State) {
    use_effect_with(state.keys_on, |on| settings::keep_keys(*on));
    use_effect_with(state.dock_height, |height| settings::apply_dock_height(*height));
    use_effect_with(state.tracks.clone(), |tracks| settings::keep_tracks(tracks));
    use_effect_with(state.perfetto_url.clone(), |url| settings::keep_perfetto_url(url));
    use_effect_with(state.form.clone(), artifacts::keep_form);
    use_effect_with(page::title(state), |title| document().set_title(title));
    use_effect_with(page::address(state), show_address);
    use_effect_with((state.view, state.selected), |_| to_top());
    use_effect_with(!state.files.is_empty() && !state.is_leaving, |files| {
        let question = files.then(leaving_question);
        move || drop(question)
    });
}

/// What the view of a file is drawn from.
fn props(state: &State, file: Shared<FileEntry>, tasks: &Tasks) -> views::Props {
    let job = file.job;
    views::Props {
        file,
        view: state.view,
        compare: compare(state, job),
        chosen: state.chosen(),
        count_before_window: state.count_before_window,
        aside: described(state, job),
        form: state.form.clone(),
        other_snapshots: other_snapshots(state, job),
        traces_beside: traces_beside(state, job),
        together: together(state, job),
        server_args: state.server_args.clone(),
        tables: state.tables.clone(),
        perfetto: state.perfetto.clone(),
        perfetto_url: state.perfetto_url.clone().into(),
        theme: state.theme,
        dock_height: state.dock_height,
        tasks: tasks.clone(),
    }
}

/// The browser's own dialogs for files and for a folder.
fn pickers(tasks: &Tasks) -> Html {
    let chosen = |open: fn(&Tasks, Vec<web_sys::File>)| {
        let tasks = tasks.clone();
        Callback::from(move |event: Event| {
            let input =
                event.target().and_then(|target| target.dyn_into::<HtmlInputElement>().ok());
            if let Some(input) = input {
                open(&tasks, files::listed(input.files()));
                // The same file can be chosen again.
                input.set_value("");
            }
        })
    };
    let on_files = chosen(|tasks, files| tasks.open(files));
    let on_folder = chosen(|tasks, files| tasks.open_folder(files));
    html! {
        <>
            <input id={files::INPUT_ID} class="visually-hidden" type="file" multiple=true tabindex="-1"
                aria-label="Trace files" accept=".json,.gz,application/json,application/gzip" onchange={on_files} data-testid="file-input" />
            <input id={files::FOLDER_INPUT_ID} class="visually-hidden" type="file" webkitdirectory=true multiple=true tabindex="-1"
                aria-label="Folder of trace files" onchange={on_folder} data-testid="folder-input" />
        </>
    }
}

fn dialog(state: &State, tasks: &Tasks) -> Html {
    match state.dialog {
        None => html! {},
        Some(Dialog::Commands) => {
            html! { <CommandDialog entries={commands::entries(state)} tasks={tasks.clone()} /> }
        }
        Some(dialog) => html! {
            <OpenDialog {dialog} keys_on={state.keys_on} keeps={state.keeps} kept={state.kept} perfetto_url={state.perfetto_url.clone()} tasks={tasks.clone()} />
        },
    }
}

fn hash() -> String {
    window().location().hash().unwrap_or_default()
}

/// Has the browser ask before the page is left: the files would have to be opened again. The listener is there only
/// while it is needed, since it keeps a page out of the browser's back-forward cache.
fn leaving_question() -> EventListener {
    listen(&window(), "beforeunload", Box::new(|event| event.prevent_default()))
}

/// Another view begins at its top.
fn to_top() {
    if let Some(main) = document().get_element_by_id("main") {
        main.set_scroll_top(0);
    }
}

/// The anchor's own way would overwrite the state in the address.
fn skip(event: MouseEvent) {
    event.prevent_default();
    let main = document().get_element_by_id("main");
    if let Some(main) = main.and_then(|main| main.dyn_into::<HtmlElement>().ok()) {
        let _focused = main.focus();
    }
}

/// Another view is a step in the browser's history; another order is not.
fn show_address(address: &Address) {
    let wanted = address.to_hash();
    let shown = hash();
    if wanted == shown || (shown.is_empty() && *address == Address::home()) {
        return;
    }
    let Ok(history) = window().history() else { return };
    let nothing = wasm_bindgen::JsValue::NULL;
    let _shown = if address.is_step_from(&shown) {
        history.push_state_with_url(&nothing, "", Some(&wanted))
    } else {
        history.replace_state_with_url(&nothing, "", Some(&wanted))
    };
}

fn listeners(tasks: &Tasks) -> Vec<EventListener> {
    let target = window();
    let drag = |name: &'static str, effect: fn(&Tasks, &DragEvent)| {
        let tasks = tasks.clone();
        let hear = move |event: &Event| {
            let Some(event) = event.dyn_ref::<DragEvent>() else { return };
            let carries_files =
                event.data_transfer().is_some_and(|data| data.types().includes(&"Files".into(), 0));
            if carries_files {
                event.prevent_default();
                effect(&tasks, event);
            }
        };
        listen(&target, name, Box::new(hear))
    };
    let dragover = {
        let tasks = tasks.clone();
        let hear = move |event: &Event| {
            let Some(drag) = event.dyn_ref::<DragEvent>() else { return };
            let files =
                drag.data_transfer().is_some_and(|data| data.types().includes(&"Files".into(), 0));
            if files {
                event.prevent_default();
                // A drag fires many times a second; only a change is a change.
                if !tasks.state().drag_over {
                    tasks.dispatch(Action::DragOver(true));
                }
            }
        };
        listen(&target, "dragover", Box::new(hear))
    };
    let keydown = {
        let tasks = tasks.clone();
        let hear = move |event: &Event| {
            let Some(event) = event.dyn_ref::<KeyboardEvent>() else { return };
            if !event.default_prevented() && keys::handle_key(event, &tasks) {
                event.prevent_default();
            }
        };
        listen(&target, "keydown", Box::new(hear))
    };
    let popstate = {
        let tasks = tasks.clone();
        let hear = move |_: &Event| {
            let address = Address::of_step(&hash());
            tasks.dispatch(Action::Addressed(address));
        };
        listen(&target, "popstate", Box::new(hear))
    };
    vec![
        dragover,
        drag("dragleave", |tasks, event| {
            // Leaving an element for another is no leaving of the window.
            if event.related_target().is_none() {
                tasks.dispatch(Action::DragOver(false));
            }
        }),
        drag("drop", |tasks, event| {
            tasks.dispatch(Action::DragOver(false));
            if let Some(data) = event.data_transfer() {
                tasks.open_dropped(&data);
            }
        }),
        keydown,
        popstate,
    ]
}
