//! The health of the file: its problems, what Perfetto drops of it, the repair, and the repaired file.

use kinetoscope::report::units;
use wasm_bindgen::JsCast;
use web_sys::HtmlInputElement;
use yew::prelude::*;

use super::problems;
use crate::components::{About, Later, failure_card, icon, place_list};
use crate::protocol::{Format, Plan};
use crate::queries::status::{percent_read, progress_text};
use crate::state::{PerfettoState, Remote};
use crate::views::{Props, heading};

pub fn view(props: &Props) -> Option<Html> {
    let opened = props.file.opened.as_ref()?;
    let title = props.view.title();
    let size = html! {
        <p class="hint" data-testid="file-size">
            { format!("{} in {} of JSON.", units::plural(opened.n_events, "event", "events"), units::file_bytes(opened.json_bytes)) }
        </p>
    };
    let Some(plan) = props.file.plan.as_ref() else {
        return Some(html! {
            <>
                { heading(title, "") }
                { size }
                { problems::section(props, opened) }
            </>
        });
    };
    Some(html! {
        <>
            { heading(title, &plan.verdict) }
            { size }
            <div class="repair-top">
                { headline(plan) }
                { actions(props) }
            </div>
            { problems::section(props, opened) }
            if let Some(text) = &plan.time_base {
                <p class="note-line" data-testid="time-base">{ icon("note") }<span>{ text }</span></p>
            }
            { props.table(&plan.predictions, None) }
            { proof(props) }
            <Later>
                if !plan.places.is_empty() {
                    <section class="panel places" data-testid="places">
                        <div class="panel-head">
                            <h2>{ "Worst crossings, before and after" }</h2>
                            <p class="lane-legend">
                                <span class="lane-legend-dropped">{ "dropped" }</span>
                                <span class="lane-legend-moved">{ "moved to a new lane" }</span>
                            </p>
                        </div>
                        { place_list(&plan.places, &props.tasks) }
                    </section>
                }
                { impossible(props, plan) }
                if !plan.rules.is_empty() {
                    { props.table(&plan.rules, None) }
                }
                if !plan.lanes.is_empty() {
                    { props.table(&plan.lanes, None) }
                }
                if !plan.log.is_empty() {
                    { props.table(&plan.log, None) }
                    if plan.n_changes > plan.log.n_rows() as u64 {
                        <p class="hint">
                            { format!("First {} of {} lines. The JSON log has all of them.",
                                units::count(plan.log.n_rows() as u64), units::count(plan.n_changes)) }
                        </p>
                    }
                }
            </Later>
        </>
    })
}

/// Dropped slices before and after.
fn headline(plan: &Plan) -> Html {
    let mood = |bad: bool| if bad { "bad" } else { "good" };
    html! {
        <div class="before-after" role="group" aria-label="Slices that Perfetto v51 to v56 drop">
            <div class={mood(plan.drops_before > 0)}>
                <p class="before-after-label">{ "Dropped slices (original file)" }</p>
                <p class="before-after-count" data-testid="drops-before" data-exact={plan.drops_before.to_string()}>{ units::count(plan.drops_before) }</p>
            </div>
            <div class="before-after-arrow" aria-hidden="true">{ icon("arrow") }</div>
            <div class={mood(plan.drops_after > 0 || !plan.clean_after)}>
                <p class="before-after-label">{ "Dropped slices (repaired file)" }</p>
                <p class="before-after-count" data-testid="drops-after" data-exact={plan.drops_after.to_string()}>{ units::count(plan.drops_after) }</p>
            </div>
            <p class="before-after-note">{ "in Perfetto v51 to v56" }</p>
        </div>
    }
}

/// The repaired file: open, save.
fn actions(props: &Props) -> Html {
    let job = props.file.job;
    let tasks = &props.tasks;
    let busy = props.file.is_busy();
    let open = {
        let (tasks, url) = (tasks.clone(), props.perfetto_url.clone());
        Callback::from(move |_: MouseEvent| tasks.open_in_perfetto(job, &url))
    };
    let save = |format: Format| {
        let tasks = tasks.clone();
        Callback::from(move |_: MouseEvent| tasks.download(job, format))
    };
    let save_log = {
        let tasks = tasks.clone();
        Callback::from(move |_: MouseEvent| tasks.download_log(job))
    };
    let written = props.file.is_written();
    html! {
        <div class="repair-actions">
            <button class="primary" onclick={open.clone()} disabled={busy} data-testid="open-perfetto">
                { icon("external") }{ "Open in Perfetto" }
            </button>
            <div class="button-row">
                <button onclick={save(Format::Gzip)} disabled={busy} data-testid="download-gz">
                    { icon("download") }{ "Download .json.gz" }
                </button>
                <button onclick={save(Format::Json)} disabled={busy} data-testid="download-json">{ ".json" }</button>
                <button onclick={save_log} disabled={!written} data-testid="download-log"
                    title={(!written).then_some("Available once the repaired file is written")}>{ "Log .json" }</button>
            </div>
            { repair_state(props) }
            { perfetto_state(props, open) }
        </div>
    }
}

fn repair_state(props: &Props) -> Html {
    match &props.file.repair {
        Remote::Idle => html! {},
        Remote::Pending(_) => html! {
            <p class="write-progress" data-testid="writing">
                <progress max="100" value={units::fixed(percent_read(&props.file.making), 1)} aria-label="Writing the repaired file" />
                <span>{ progress_text(&props.file.making) }</span>
            </p>
        },
        Remote::Ready(repaired) => html! {
            <p class="write-done" data-testid="written">
                { icon(if repaired.proven { "check" } else { "error" }) }
                <span>{ format!("{}, {}", repaired.file_name, units::file_bytes(repaired.bytes)) }</span>
            </p>
        },
        Remote::Failed(failure) => html! {
            { failure_card(failure, About::default(), &props.tasks) }
        },
    }
}

fn perfetto_state(props: &Props, open: Callback<MouseEvent>) -> Html {
    let job = props.file.job;
    let text = match &props.perfetto {
        PerfettoState::Writing(of) if *of == job => {
            "The Perfetto window is open. Writing the repaired file…"
        }
        PerfettoState::Waiting(of) if *of == job => "Waiting for Perfetto to load…",
        PerfettoState::Sent(of) if *of == job => {
            "Sent. Perfetto may ask whether to trust this page."
        }
        PerfettoState::Lost(of) if *of == job => {
            "The Perfetto window did not respond or was closed. Try again, or download the file and open it in Perfetto."
        }
        PerfettoState::Blocked(of) if *of == job => {
            return html! {
                <p class="perfetto-state" role="status" data-testid="perfetto-blocked">
                    { "The browser blocked the new window. The file is ready: " }
                    <button class="link" onclick={open} data-testid="open-perfetto-again">{ "open Perfetto" }</button>
                </p>
            };
        }
        _ => return html! {},
    };
    html! { <p class="perfetto-state" role="status" data-testid="perfetto-state">{ text }</p> }
}

/// The verification, once the file is written.
fn proof(props: &Props) -> Html {
    let Some(repaired) = props.file.repair.ready() else { return html! {} };
    html! {
        <>
            if repaired.proven {
                <p class="note-line good" data-testid="proof-holds">{ icon("check") }
                    <span>{ "Verified: the quantities listed below are the same in input and output." }</span>
                </p>
            } else {
                <p class="note-line bad" role="alert" data-testid="proof-fails">{ icon("error") }
                    <span>{ "Verification failed: input and output differ. This is a bug in Kinetoscope. Keep the original file and report the bug." }</span>
                </p>
            }
            { props.table(&repaired.proof, None) }
        </>
    }
}

/// Impossible durations, and the option to clip them.
fn impossible(props: &Props, plan: &Plan) -> Html {
    if plan.impossible.is_empty() {
        return html! {};
    }
    let (tasks, job) = (props.tasks.clone(), props.file.job);
    let onchange = Callback::from(move |event: Event| {
        let field = event.target().and_then(|target| target.dyn_into::<HtmlInputElement>().ok());
        if let Some(field) = field {
            tasks.replan(job, field.checked());
        }
    });
    html! {
        <section class="panel" data-testid="impossible">
            <h2>{ "Impossible durations" }</h2>
            if let Some(note) = &plan.impossible_note {
                <p>{ note }</p>
            }
            <label class="check">
                <input type="checkbox" checked={plan.clip_impossible} disabled={props.file.is_busy()} {onchange} data-testid="clip-impossible" />
                { "Clip each to the next start on its stream, and keep the original duration in the args of the event. No other \
                   repair changes a duration." }
            </label>
            { props.table(&plan.impossible, None) }
        </section>
    }
}
