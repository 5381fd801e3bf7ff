//! A kernel in detail: its whole name, its category and why, its call sites, its launches.

use std::cmp::Ordering;

use kinetoscope::CategoryReason;
use kinetoscope::report::{Cell, Table, units};
use yew::prelude::*;

use crate::components::icon;
use crate::components::swatch;
use crate::features::data_table::copy_button;
use crate::features::data_table::queries::grid::{CopyAs, copied};
use crate::protocol::{CallSite, InstanceRow, KernelDetails, KernelKey};
use crate::queries::palette::title;
use crate::shared::Shared;
use crate::state::Sought;
use crate::tasks::Tasks;

/// Which kernel, and the worker's answer.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// Which.
    pub wanted: KernelKey,
    /// The last answer of the worker, for this kernel or another.
    pub found: Option<Shared<KernelDetails>>,
    /// Effects.
    pub tasks: Tasks,
}

/// The kernel.
#[component]
pub fn KernelPanel(props: &Props) -> Html {
    let name = &props.wanted.kernel_name;
    let copy = {
        let (tasks, name) = (props.tasks.clone(), name.clone());
        Callback::from(move |_: MouseEvent| {
            tasks.copy(name.clone(), "Copied the kernel name".to_owned());
        })
    };
    let found = props.found.as_ref().filter(|found| found.key == props.wanted);
    html! {
        <div class="kernel-panel" data-testid="kernel-panel">
            <div class="kernel-name">
                <h3>{ "Kernel" }</h3>
                <button onclick={copy} data-testid="copy-kernel-name" aria-label="Copy the whole kernel name">{ icon("copy") }{ "Copy" }</button>
                <code data-testid="kernel-name">{ name }</code>
            </div>
            { match found {
                Some(found) => details(found, &props.tasks),
                None => html! { <p class="hint" role="status" data-testid="kernel-pending">{ "Reading the launches…" }</p> },
            } }
        </div>
    }
}

fn details(found: &KernelDetails, tasks: &Tasks) -> Html {
    let KernelDetails { category, family, reason, sites, n_sites_left_out, .. } = found;
    let why = match reason {
        CategoryReason::Nothing => "no rule matches this name".to_owned(),
        CategoryReason::Op => "category from its op".to_owned(),
        CategoryReason::Rule(rule) => format!("rule {rule}"),
    };
    html! {
        <>
            <p class="kernel-class" data-testid="kernel-class">
                { swatch(category.id()) }<strong>{ title(category.id()) }</strong>
                if found.n > 0 {
                    { format!(" · {}", family.title()) }
                }
                <span class="hint">{ format!(" · {why}") }</span>
            </p>
            <section aria-labelledby="kernel-origin" data-testid="kernel-sites">
                <h3 id="kernel-origin">{ "Call sites" }</h3>
                { for sites.iter().enumerate().map(|(place, site)| call_site(place, site, sites.len() == 1, tasks)) }
                if *n_sites_left_out > 0 {
                    <p class="hint">{ format!("and {} with less time", units::plural(*n_sites_left_out, "call site", "call sites")) }</p>
                }
            </section>
            { launches(found, tasks) }
        </>
    }
}

/// The calls from the launch to the outermost one; the innermost line of user code is marked.
fn call_site(place: usize, site: &CallSite, only: bool, tasks: &Tasks) -> Html {
    let CallSite {
        n,
        share_pct,
        launch,
        cpu_op,
        location,
        full_path,
        modules,
        stack,
        forward_op,
        graph,
        ..
    } = site;
    let chosen = stack.iter().position(|call| Some(call) == location.as_ref()).unwrap_or(0);
    let head = html! {
        <>
            <strong>{ location.as_deref().or(cpu_op.as_deref()).or(launch.as_deref()).unwrap_or("not recorded") }</strong>
            <span class="hint">
                { format!(" {} of its time, {}", units::percent(*share_pct), units::plural(*n, "launch", "launches")) }
            </span>
        </>
    };
    let step = |kind: &'static str, text: Option<&String>| match text {
        Some(text) => {
            html! { <li><span class="chain-kind">{ kind }</span><code>{ text }</code></li> }
        }
        None => html! {},
    };
    let body = html! {
        <>
            <ol class="chain">
                if let Some(launch) = launch {
                    <li><span class="chain-kind">{ if *graph { "graph launch" } else { "launch" } }</span><code>{ launch }</code></li>
                }
                { step("op", cpu_op.as_ref()) }
                { step("forward op", forward_op.as_ref()) }
                { step("modules", modules.as_ref()) }
                if let Some(path) = full_path {
                    <li>
                        <span class="chain-kind">{ "file" }</span>
                        <span data-testid="full-path"><code>{ path }</code>{ copy_button(tasks, "full path", path) }</span>
                    </li>
                }
                { for stack.iter().enumerate().map(|(depth, call)| {
                    // Frames further in than the chosen line are of a library.
                    let kind = match depth.cmp(&chosen) {
                        Ordering::Less => "within",
                        Ordering::Equal => "Python",
                        Ordering::Greater => "called by",
                    };
                    html! {
                        <li class={classes!((depth == chosen).then_some("chosen"))}>
                            <span class="chain-kind">{ kind }</span><code>{ call }</code>
                        </li>
                    }
                }) }
            </ol>
            <p class="hint" data-testid="how-sure">{ format!("{}: {}.", site.confidence.label(), site.confidence.in_words()) }</p>
        </>
    };
    if only {
        return html! { <div class="call-site"><p>{ head }</p>{ body }</div> };
    }
    html! {
        <details class="call-site" open={place == 0}>
            <summary>{ head }</summary>
            { body }
        </details>
    }
}

fn launches(found: &KernelDetails, tasks: &Tasks) -> Html {
    let table = found.table();
    let shown = found.instances.len() as u64;
    let note = if shown < found.n {
        format!(
            "{} of {}: the first few, the longest, the shortest and the median",
            units::count(shown),
            units::plural(found.n, "launch", "launches")
        )
    } else {
        units::plural(found.n, "launch", "launches")
    };
    let copy = {
        let (tasks, table) = (tasks.clone(), Shared::new(table));
        Callback::from(move |_: MouseEvent| copy(&tasks, &table))
    };
    let zero_ns = found.instances.iter().map(|row| row.start_ns).min().unwrap_or_default();
    let most_ns = found.instances.iter().map(|row| row.dur_ns).max().unwrap_or_default();
    html! {
        <section aria-labelledby="kernel-launches" data-testid="kernel-launches">
            <div class="launches-head">
                <h3 id="kernel-launches">{ "Launches" }</h3>
                <span class="hint">{ note }</span>
                <button onclick={copy} aria-label="Copy the launches as TSV" data-testid="copy-launches">{ icon("copy") }{ "TSV" }</button>
            </div>
            <div class="launches" role="region" tabindex="0" aria-label="Launches of the kernel">
                <table>
                    <thead><tr>
                        <th scope="col" class="right">{ "#" }</th>
                        <th scope="col" class="right" title="Time since the first launch">{ "Start" }</th>
                        <th scope="col">{ "Duration" }</th>
                        <th scope="col" class="right" title="From the start of the launch call to the start of the kernel">{ "Queue delay (from launch start)" }</th>
                        <th scope="col" class="right" title="Time during which no other stream of the device ran anything">{ "Exposed" }</th>
                        <th scope="col">{ "Stream" }</th>
                    </tr></thead>
                    <tbody>{ for found.instances.iter().map(|row| launch(row, zero_ns, most_ns, tasks)) }</tbody>
                </table>
            </div>
        </section>
    }
}

fn launch(row: &InstanceRow, zero_ns: i64, most_ns: i64, tasks: &Tasks) -> Html {
    let InstanceRow { number, start_ns, dur_ns, stream, queue_ns, exposed_ns, mark, event } = row;
    let cell = |cell: Cell| html! { <td class="right" title={cell.exact()}>{ cell.show() }</td> };
    let share = *dur_ns as f64 / most_ns.max(1) as f64;
    let show = {
        let (tasks, event) = (tasks.clone(), *event);
        Callback::from(move |_: MouseEvent| tasks.show_in_timeline(Sought::Event(event)))
    };
    let label = format!("Show launch {number} in the timeline");
    html! {
        <tr class={classes!((!mark.is_empty()).then_some("marked"))} data-testid="launch" data-mark={mark.clone()}>
            <td class="right" title={format!("event {} of the file", units::count(u64::from(*event)))}>
                <button class="link" onclick={show} aria-label={label} data-testid="show-slice">{ units::count(*number) }</button>
            </td>
            <td class="right" title={Cell::Instant(*start_ns).exact()}>{ format!("+{}", units::time(start_ns.saturating_sub(zero_ns))) }</td>
            <td title={Cell::Ns(*dur_ns).exact()} data-exact={dur_ns.to_string()}>
                <svg class="share" width="40" height="10" aria-hidden="true">
                    <rect class="share-track" width="40" height="10" rx="2" />
                    <rect class="share-fill" width={units::fixed(share * 40.0, 1)} height="10" rx="2" />
                </svg>
                { units::time(*dur_ns) }
                if !mark.is_empty() {
                    <span class="mark">{ mark }</span>
                }
            </td>
            { cell(Cell::or_missing(*queue_ns, Cell::Ns, "no launch call is recorded, or a graph launched it")) }
            { cell(Cell::Ns(*exposed_ns)) }
            <td>{ if stream.is_empty() { "–" } else { stream } }</td>
        </tr>
    }
}

fn copy(tasks: &Tasks, table: &Table) {
    let rows: Vec<u32> = (0..table.n_rows() as u32).collect();
    let text = units::plural(u64::from(rows.len() as u32), "launch", "launches");
    tasks.copy(copied(table, &rows, CopyAs::Tsv), format!("Copied {text} as tab-separated values"));
}
