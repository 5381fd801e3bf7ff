//! The export: the files of a triage, their options, and run details that the trace does not record.

use kinetoscope::artifacts::{
    ARCHIVE, FIXED_TRACE, FUSE, KERNEL_MAP, KERNELS, METADATA, OVERLAP, REPORT_HTML, REPORT_JSON,
    REPORT_MD, SUMMARY, fact_field,
};
use kinetoscope::report::units;
use wasm_bindgen::JsCast;
use web_sys::HtmlInputElement;
use yew::prelude::*;

use super::facts_form::{FactsForm, TextField, text_field};
use super::queries::{CUTOFF, Errors, SERVER_ARGS, error_of, wish};
use crate::components::{About, failure_card, icon};
use crate::protocol::{ArtifactWish, Artifacts};
use crate::queries::page::narrowed;
use crate::queries::status::{percent_read, progress_text};
use crate::state::{Action, ArtifactForm, Remote, Use};
use crate::views::{Props, heading};

/// The files and what each contains, in the order of the archive.
const FILES: &[(&str, &str)] = &[
    (SUMMARY, "The report to read first: run, data quality, stages, top kernels, findings."),
    (METADATA, "The run: hardware, software, data quality, and the source of each fact."),
    (KERNELS, "Kernels by stage, with their Python line and its confidence."),
    (
        OVERLAP,
        "Kernels that could run concurrently with others, with the risk and an upper bound on the saving.",
    ),
    (FUSE, "Chains of kernels that are fused or could be fused."),
    (FIXED_TRACE, "The trace, repaired for Perfetto and verified to contain every event."),
];

/// Not in the archive: one report in three forms.
const REPORT: &[(&str, &str)] = &[
    (
        REPORT_HTML,
        "The diagnosis with its figures as one page to pass on or print. It has no scripts and loads nothing. Not in the .zip.",
    ),
    (REPORT_MD, "The same as Markdown. Not in the .zip."),
    (REPORT_JSON, "Its figures, findings and actions for programs. Not in the .zip."),
];

/// Not in the archive: it is for other runs. Made only where ops are recorded.
const MAP: (&str, &str) = (
    KERNEL_MAP,
    "Maps kernels to ops and Python lines for other runs of the same workload. Open it together with such a run. Not in the .zip.",
);

pub fn view(props: &Props) -> Option<Html> {
    let triage = props.file.triage.as_ref()?;
    let narrowed = narrowed(Some(triage), &props.chosen);
    let counts = props.count_before_window;
    let wanted = wish(&props.form, props.server_args.as_ref(), &narrowed, counts, &props.file);
    let none = Errors::new();
    let (wish, errors) = match &wanted {
        Ok(wish) => (Some(wish), &none),
        Err(errors) => (None, errors),
    };
    Some(html! {
        <>
            { heading(props.view.title(), "Export the results. The command line writes identical files.") }
            { props.pickers(triage) }
            { files(props, wish, errors) }
            { options(props, errors) }
            <FactsForm form={props.form.clone()} server_args={props.server_args.clone()} errors={errors.clone()} tasks={props.tasks.clone()} />
        </>
    })
}

/// The files that were generated, while they match the options.
fn made<'a>(props: &'a Props, wish: Option<&ArtifactWish>) -> Option<&'a Artifacts> {
    props
        .file
        .artifacts
        .ready()
        .filter(|artifacts| Some(&artifacts.wish) == wish)
        .map(|made| &**made)
}

fn files(props: &Props, wish: Option<&ArtifactWish>, errors: &Errors) -> Html {
    let made = made(props, wish);
    let has_ops = props.file.triage.as_ref().is_some_and(|triage| triage.has_ops);
    let locked = props.file.is_busy() || wish.is_none();
    let act = |name: &'static str, what: Use| {
        let (tasks, job, wish) = (props.tasks.clone(), props.file.job, wish.cloned());
        Callback::from(move |_: MouseEvent| {
            if let Some(wish) = wish.clone() {
                tasks.artifact(job, name, wish, what);
            }
        })
    };
    let size = |name: &str| made.and_then(|made| made.bytes_of(name));
    html! {
        <section class="panel downloads" aria-labelledby="downloads-head" data-testid="downloads">
            <div class="panel-head">
                <h2 id="downloads-head">{ "Artifacts" }</h2>
                <button class="primary" onclick={act(ARCHIVE, Use::Save)} disabled={locked} data-testid="artifact-zip">
                    { icon("download") }{ "All as one .zip" }
                    if let Some(bytes) = size(ARCHIVE) {
                        <span class="download-size" data-testid="size-zip" data-exact={bytes.to_string()}>{ units::file_bytes(bytes) }</span>
                    }
                </button>
            </div>
            { state(props, errors) }
            <ul>
                { for FILES.iter().chain(REPORT).chain(has_ops.then_some(&MAP)).map(|(name, what)| html! {
                    <li data-testid={format!("artifact-{name}")}>
                        <div class="download-what">
                            <code>{ name }</code>
                            <p>{ what }</p>
                        </div>
                        { match size(name) {
                            Some(bytes) => html! {
                                <span class="download-size" title={format!("{} bytes", units::count(bytes))} data-exact={bytes.to_string()}>{ units::file_bytes(bytes) }</span>
                            },
                            None => html! { <span class="download-size missing" title="Not generated yet">{ "–" }</span> },
                        } }
                        <div class="download-actions">
                            { extra(props, name, &act) }
                            <button onclick={act(name, Use::Save)} disabled={locked} aria-label={format!("Download {name}")}>
                                { icon("download") }{ "Download" }
                            </button>
                        </div>
                    </li>
                }) }
            </ul>
            <p class="hint">
                { "Generated in this tab on demand. Output is deterministic: same file and options, same bytes." }
            </p>
        </section>
    }
}

/// Further actions on a file.
fn extra(
    props: &Props,
    name: &'static str,
    act: &dyn Fn(&'static str, Use) -> Callback<MouseEvent>,
) -> Html {
    let locked = props.file.is_busy();
    match name {
        SUMMARY => html! {
            <button onclick={act(name, Use::Copy)} disabled={locked} data-testid="copy-summary">
                { icon("copy") }{ "Copy" }
            </button>
        },
        FIXED_TRACE => {
            let (tasks, job, url) =
                (props.tasks.clone(), props.file.job, props.perfetto_url.clone());
            let open = Callback::from(move |_: MouseEvent| tasks.open_in_perfetto(job, &url));
            html! {
                <button onclick={open} disabled={locked}>{ icon("external") }{ "Open in Perfetto" }</button>
            }
        }
        _ => html! {},
    }
}

/// Progress, or why there are no files.
fn state(props: &Props, errors: &Errors) -> Html {
    if !errors.is_empty() {
        let title = |(key, _): &(&'static str, String)| match *key {
            SERVER_ARGS => "Launch flags",
            CUTOFF => "Cutoff",
            key => fact_field(key).map_or(key, |field| field.title),
        };
        let names: Vec<&str> = errors.iter().map(title).collect();
        return html! {
            <p class="note-line bad" role="alert" data-testid="downloads-locked">{ icon("error") }
                <span>{ format!("Fix these fields below to continue: {}.", names.join(", ")) }</span>
            </p>
        };
    }
    match &props.file.artifacts {
        Remote::Pending(_) => html! {
            <p class="write-progress" data-testid="making">
                <progress max="100" value={units::fixed(percent_read(&props.file.making), 1)} aria-label="Generating the files" />
                <span>{ progress_text(&props.file.making) }</span>
            </p>
        },
        Remote::Failed(failure) => html! {
            { failure_card(failure, About::default(), &props.tasks) }
        },
        Remote::Idle | Remote::Ready(_) => html! {},
    }
}

fn options(props: &Props, errors: &Errors) -> Html {
    let set = |change: fn(&mut ArtifactForm, &HtmlInputElement)| {
        let (tasks, form) = (props.tasks.clone(), props.form.clone());
        move |field: HtmlInputElement| {
            let mut form = form.clone();
            change(&mut form, &field);
            tasks.dispatch(Action::FormSet(form));
        }
    };
    let on_cutoff = set(|form, field| form.cutoff = field.value());
    let on_check = |change: fn(&mut ArtifactForm, &HtmlInputElement)| {
        let change = set(change);
        Callback::from(move |event: Event| {
            let field = event.target().and_then(|of| of.dyn_into::<HtmlInputElement>().ok());
            if let Some(field) = field {
                change(field);
            }
        })
    };
    let on_keep = on_check(|form, field| form.keep_names = field.checked());
    let on_count = {
        let tasks = props.tasks.clone();
        Callback::from(move |event: Event| {
            let field = event.target().and_then(|of| of.dyn_into::<HtmlInputElement>().ok());
            if let Some(field) = field {
                tasks.dispatch(Action::BeforeWindowSet(field.checked()));
            }
        })
    };
    let cutoff = TextField {
        id: "cutoff",
        title: "Cutoff of the summary (%)",
        value: &props.form.cutoff,
        placeholder: "",
        help: "profile_summary.md merges kernels below this share of their stage into one row. The tables list all of them.",
        error: error_of(errors, CUTOFF),
        on_input: Callback::from(on_cutoff),
        button: None,
    };
    html! {
        <details class="panel unfold download-options" data-testid="download-options">
            <summary><h2>{ "Options" }</h2><span class="hint">{ "cutoff, excluded kernels, names of hosts and users" }</span></summary>
            <div class="unfolded">
            { text_field(cutoff) }
            <div class="privacy">
                <label class="check">
                    <input type="checkbox" checked={props.count_before_window} onchange={on_count} data-testid="count-before-window" />
                    <span>{ "Include kernels launched before profiling started" }</span>
                </label>
                <p class="hint">{ "Excluded by default: they belong to an earlier step. The tables show their total." }</p>
                <label class="check">
                    <input type="checkbox" checked={props.form.keep_names} onchange={on_keep} data-testid="keep-names" />
                    <span>{ "Keep names of hosts and users" }</span>
                </label>
                <p class="hint">
                    { "By default, host names, user names, environment variables, home folders and addresses in the launch flags are removed from the five text files. Keys, passwords and tokens in the flags are always removed. The repaired trace keeps everything that your trace contains, including names." }
                </p>
            </div>
            </div>
        </details>
    }
}
