//! A memory snapshot: what is wrong, the pictures, and the tables.

use kinetoscope::report::{Finding, units};
use kinetoscope::scene::Key;
use yew::prelude::*;

use super::event_range::EventRangeForm;
use crate::components::{Later, Select, SurfaceView, file_picker, finding_card, swatch};
use crate::protocol::{Chapter, Charted, Input, JobId, MemoryPictures, Surface};
use crate::state::{Action, Remote};
use crate::views::{Props, chapter, heading, sentence, trouble};

/// Buttons of the chart of memory.
const OF_MEMORY: &[(&str, &str, Key)] = &[
    ("Zoom in", "W or +", Key::ZoomIn),
    ("Zoom out", "S or −", Key::ZoomOut),
    ("←", "Move left: A", Key::PanLeft),
    ("→", "Move right: D", Key::PanRight),
    ("All", "Show all: 0", Key::Whole),
    ("Peak", "Go to the peak, of the selection if there is one: P", Key::Peak),
    ("Fit", "Show the selection: F", Key::Fit),
    ("Events or time", "Another axis: T", Key::Axis),
    ("Clear", "Clear the selection: Escape", Key::Clear),
    // The last one: a memory timeline has it not.
    ("Site, purpose or phase", "Other layers: L", Key::Layers),
];

/// Buttons of the blocks.
const OF_BLOCKS: &[(&str, &str, Key)] = &[
    ("Previous event", "Left arrow; Shift for ten", Key::Back),
    ("Next event", "Right arrow; Shift for ten", Key::Forward),
    ("Previous block", "Select the block before: comma", Key::PreviousSame),
    ("Next block", "Select the block after: full stop", Key::NextSame),
    ("Zoom in", "W or +", Key::ZoomIn),
    ("Zoom out", "S or −", Key::ZoomOut),
    ("↑", "Scroll up: up arrow", Key::Up),
    ("↓", "Scroll down: down arrow", Key::Down),
];

/// Findings above the pictures.
const FIRST_CARDS: usize = 2;

pub fn view(props: &Props, chapters: &[Chapter], charts: &[Charted], is_timeline: bool) -> Html {
    let first = chapters.first().map_or(&[][..], |chapter| &chapter.intro);
    let finding = first.first().map_or("", String::as_str);
    let cards: Vec<_> = chapters.iter().flat_map(|chapter| &chapter.findings).collect();
    let (cards, more) = cards.split_at(cards.len().min(FIRST_CARDS));
    let card = |card: &&Finding| finding_card(card, None);
    let chapter = |of: &Chapter| chapter(props, of);
    html! {
        <article class="view view-snapshot" data-testid="view-snapshot">
            { heading("Memory", finding) }
            { trouble(&props.file, None, &props.tasks) }
            { for first.iter().skip(1).map(sentence) }
            { for cards.iter().map(card) }
            { changes(props) }
            { in_trace(props) }
            { pictures(props, charts, if is_timeline { Pictured::Categories } else { Pictured::Snapshot }) }
            { for more.iter().map(card) }
            <Later>
                { for chapters.iter().skip(1).map(chapter) }
                if !is_timeline {
                    <section>
                        <h2>{ "Read a part of it" }</h2>
                        <p class="hint">{ "What other events did to the memory in use stays exact." }</p>
                        { range(props, false) }
                    </section>
                }
            </Later>
        </article>
    }
}

fn range(props: &Props, asks: bool) -> Html {
    let file = &props.file;
    html! { <EventRangeForm job={file.job} events={file.events} {asks} tasks={props.tasks.clone()} /> }
}

/// How much of a large snapshot is to be read.
pub(crate) fn question(props: &Props) -> Html {
    html! {
        <section class="card" data-testid="large-snapshot">
            <h2>{ "How much of this snapshot is read?" }</h2>
            <p>
                {
                    format!(
                        "{} has {}. All of its events may not fit in the memory of a browser tab; a million take about 200 MB.",
                        props.file.name,
                        units::file_bytes(props.file.size)
                    )
                }
            </p>
            { range(props, true) }
        </section>
    }
}

/// A part of a snapshot that could not be read as a whole.
pub(crate) fn part_of_failed(props: &Props) -> Html {
    if !props.file.is_snapshot {
        return html! {};
    }
    html! {
        <section class="card" data-testid="part-of-failed">
            <h2>{ "Read a part of it" }</h2>
            { range(props, false) }
        </section>
    }
}

/// Which earlier snapshot to compare with, and what changed since.
fn changes(props: &Props) -> Html {
    let job = props.file.job;
    let changes = props.file.changes.as_ref();
    let chosen = changes.map(|(earlier, _)| *earlier);
    let found = changes.and_then(|(_, changes)| changes.ready());
    let others = &props.other_snapshots;
    let choose = {
        let tasks = props.tasks.clone();
        Callback::from(move |earlier| tasks.dispatch(Action::EarlierChosen(job, earlier)))
    };
    let label = "Compare with an earlier snapshot";
    let choice = file_picker("earlier", (label, "None"), others, chosen, choose);
    html! {
        <section data-testid="changes">
            { choice }
            // (The earlier one may have been closed.)
            if let Some(chapters) = found.filter(|_| is_open(others, chosen)) {
                { for chapters.iter().map(|of| chapter(props, of)) }
            }
        </section>
    }
}

/// Which trace may be of the same run, and what it says.
fn in_trace(props: &Props) -> Html {
    let job = props.file.job;
    let said = props.file.in_trace.as_ref();
    let chosen = said.map(|(trace, _)| *trace);
    let traces = &props.traces_beside;
    let choose = {
        let tasks = props.tasks.clone();
        Callback::from(move |trace| tasks.dispatch(Action::TraceChosen(job, trace)))
    };
    let label = "Find the ops in a trace of the same run";
    let choice = file_picker("trace", (label, "None"), traces, chosen, choose);
    let said = said.filter(|_| is_open(traces, chosen)).map(|(_, said)| said);
    html! {
        <section data-testid="in-trace">
            { choice }
            if said.is_some_and(|said| said.pending().is_some()) {
                <p class="hint">{ "Reading the trace." }</p>
            }
            if let Some(of) = said.and_then(Remote::ready) {
                { chapter(props, of) }
            }
        </section>
    }
}

fn is_open(others: &[(JobId, String)], chosen: Option<JobId>) -> bool {
    others.iter().any(|(other, _)| Some(*other) == chosen)
}

/// What the pictures are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pictured {
    /// A snapshot: events, and the blocks at each.
    Snapshot,
    /// A memory timeline of the profiler, by its categories.
    Categories,
    /// The `[memory]` events of a trace.
    Events,
}

/// The memory of a trace over time: the picture, and the figures of each device.
pub fn of_trace(props: &Props, memory: &MemoryPictures) -> Html {
    html! {
        <>
            { pictures(props, &memory.charts, Pictured::Events) }
            { for memory.chapters.iter().map(|of| chapter(props, of)) }
        </>
    }
}

/// What a person looks at: memory over the events, the blocks at the cursor, and the figures of both.
fn pictures(props: &Props, charts: &[Charted], what: Pictured) -> Html {
    let looked = props.file.looked.as_deref();
    let chosen = looked.map_or(0, |looked| looked.device as usize);
    let Some(legend) = charts.get(chosen).map(|of| &of.legend) else { return html! {} };
    let legend = looked.map_or(legend, |looked| &looked.legend);
    let stacked_by = looked.map_or("call site", |looked| &looked.stacked_by);
    let (job, tasks) = (props.file.job, props.tasks.clone());
    let on_choice = {
        let tasks = tasks.clone();
        Callback::from(move |place: Option<usize>| {
            if let Some(place) = place {
                tasks.look(job, Surface::Memory, Input::Device(place as u32), None);
            }
        })
    };
    let buttons = OF_MEMORY
        .split_last()
        .filter(|_| what != Pictured::Snapshot)
        .map_or(OF_MEMORY, |(_, rest)| rest);
    let surface = |surface, label: &'static str, buttons| {
        let tasks = props.tasks.clone();
        html! { <SurfaceView {job} {surface} name={props.file.name.clone()} {label} {buttons} theme={props.theme} {tasks} /> }
    };
    html! {
        <section class="looking" data-testid="looking">
            {
                match what {
                    Pictured::Categories => html! { <h2>{ "Memory over time, by category" }</h2> },
                    Pictured::Events => html! { <h2>{ "Memory over time, by call site" }</h2> },
                    Pictured::Snapshot => html! {
                        <h2 data-testid="stacked-by">{ "Memory over the recorded events, by " }{ stacked_by.to_owned() }</h2>
                    },
                }
            }
            <p class="hint">
                { "Drag to select a range, click to move the cursor. Ctrl and the wheel zoom." }
                { if what == Pictured::Categories { "" } else { " The line is reserved memory." } }
            </p>
            if charts.len() > 1 {
                <label class="step-picker">
                    <span>{ "Device" }</span>
                    <Select {chosen} {on_choice} test_id="charted">
                        { for charts.iter().map(|of| html! { <option>{ &of.device }</option> }) }
                    </Select>
                </label>
            }
            { surface(Surface::Memory, "Memory over the recorded events. Arrow keys move the cursor.", buttons) }
            <ul class="legend">
                { for legend.iter().map(|(category, label)| html! { <li>{ swatch(category) }<span>{ label }</span></li> }) }
            </ul>
            if what == Pictured::Snapshot {
                <h2>{ "Reserved memory and its blocks at the cursor" }</h2>
                <p class="hint">{ "Click a block: its size, its state and its stack are listed below." }</p>
                { surface(Surface::Blocks, "Blocks at the cursor. Arrow keys move the cursor.", OF_BLOCKS) }
            }
            if let Some(looked) = looked {
                { for looked.chapters.iter().map(|of| chapter(props, of)) }
            }
        </section>
    }
}
