//! When everything ran: lanes that a worker draws, and what is selected in them.

use kinetoscope::scene::Key;
use web_sys::HtmlInputElement;
use yew::prelude::*;

use super::beneath::{add_picker, beneath, seen_beneath};
use super::dock::DockEdge;
use crate::components::{About, SurfaceView, failure_card, icon};
use crate::protocol::{Input, JobId, Looked, Surface};
use crate::state::{Action, FileEntry, Phase, Remote};
use crate::tasks::Tasks;
use crate::views::{Props, View, chapter, heading, trouble};

/// Buttons of the timeline. Keys are Perfetto's where it has one.
const BUTTONS: &[(&str, &str, Key)] = &[
    ("Zoom in", "W or +", Key::ZoomIn),
    ("Zoom out", "S or −", Key::ZoomOut),
    ("←", "Move left: A", Key::PanLeft),
    ("→", "Move right: D", Key::PanRight),
    ("All", "Show all: 0", Key::Whole),
    ("Fit", "Show the range, else the slice: F", Key::Fit),
    ("Previous", "Previous slice of the lane: left arrow; Shift for ten", Key::Back),
    ("Next", "Next slice of the lane: right arrow; Shift for ten", Key::Forward),
    ("Same name ←", "Previous slice of the same name: comma", Key::PreviousSame),
    ("Same name →", "Next slice of the same name: full stop", Key::NextSame),
    ("Launched by", "The call that launched it, else what encloses it: [", Key::Cause),
    ("Launches", "The first GPU slice that it launched: ]", Key::Effect),
    (
        "Next gap",
        "Select the next time in which a GPU is idle for two px or more: G; Shift for the one before",
        Key::Gap,
    ),
    ("Range", "Select the time of the slice: R", Key::Range),
    (
        "From here",
        "The range starts at the selected slice, or at the moment that you clicked: I",
        Key::RangeStart,
    ),
    (
        "To here",
        "The range ends at the selected slice, or at the moment that you clicked: O",
        Key::RangeEnd,
    ),
    ("Before / after", "The slices as in the file, or as in the repaired file: V", Key::Repaired),
    (
        "Next damage",
        "The next place that Perfetto damages or the repair changes: N; Shift for the one before",
        Key::Damage,
    ),
    ("Mark", "Mark the start of the slice, or remove its mark: M", Key::Mark),
    ("Fold", "Fold or unfold the track: Enter", Key::Fold),
    ("Pin", "Keep the track at the top, or no longer: B", Key::Pin),
    ("Track up", "Move the track up: U", Key::TrackUp),
    ("Track down", "Move the track down: J", Key::TrackDown),
    ("Hide", "Hide the track: H; Shift shows all that are hidden", Key::Hide),
    ("Reset tracks", "All tracks in their first order, none hidden or pinned: X", Key::ResetTracks),
    ("Clear", "Clear selection, range and marks: Escape", Key::Clear),
];

/// Those of the timeline below another view: what has no key that everybody knows, and what selects.
const FEW: &[Key] = &[
    Key::Whole,
    Key::Fit,
    Key::Back,
    Key::Forward,
    Key::Cause,
    Key::Effect,
    Key::Gap,
    Key::RangeStart,
    Key::RangeEnd,
    Key::Clear,
];

/// What a screen reader says of the picture.
const LABEL: &str = "Slices over time. Arrow keys select slices, W and S zoom.";

pub fn view(props: &Props) -> Option<Html> {
    let facts = match &props.file.lanes {
        Remote::Ready(facts) => facts,
        Remote::Failed(failure) => {
            return Some(html! {
                <>
                    { heading(props.view.title(), "") }
                    { failure_card(failure, About::default(), &props.tasks) }
                </>
            });
        }
        Remote::Idle | Remote::Pending(_) => return None,
    };
    let seen = props.file.seen.as_deref();
    let below = {
        let tasks = props.tasks.clone();
        Callback::from(move |_: MouseEvent| {
            tasks.dispatch(Action::Docked(true));
            tasks.dispatch(Action::Shown(View::Overview));
        })
    };
    Some(html! {
        <>
            { heading(props.view.title(), &facts.says) }
            <p class="hint">
                <button class="link" onclick={below} data-testid="dock-open">{ "Show it below the other views" }</button>{ " (T). " }
                { "Click to select a slice. Drag to select a range, or choose its ends (I, O). Shift and drag to move. The wheel scrolls; with Ctrl it zooms." }
            </p>
            <div class="pickers">
                <SoughtFields jobs={all(props)} tasks={props.tasks.clone()} />
                { add_picker(props) }
            </div>
            <div class="clock">
                { picture(props, &props.file, None) }
                { beneath(props) }
            </div>
            if let Some(seen) = seen {
                { in_perfetto(props, seen) }
                <div class="seen" data-testid="seen">{ for seen.chapters.iter().map(|of| chapter(props, of)) }</div>
            }
            <div class="seen" data-testid="seen-beneath">{ seen_beneath(props) }</div>
        </>
    })
}

/// The lanes of a file. `only`: the buttons that there is room for.
pub fn picture(props: &Props, file: &FileEntry, only: Option<&'static [Key]>) -> Html {
    let label = match file.job == props.file.job {
        true => LABEL.to_owned(),
        false => format!("{}: {LABEL}", file.name),
    };
    html! {
        <SurfaceView job={file.job} surface={Surface::Over} under={Some(Surface::Lanes)} name={file.name.clone()} buttons={BUTTONS} {only} theme={props.theme}
            tasks={props.tasks.clone()} {label} />
    }
}

/// Why there is no picture of a file, or not yet.
pub fn unseen(file: &FileEntry, tasks: &Tasks) -> Html {
    match (&file.lanes, &file.phase) {
        (Remote::Failed(failure), _) => failure_card(failure, About::default(), tasks),
        (_, Phase::Failed(_) | Phase::Cancelled) => trouble(file, None, tasks),
        _ => html! { <p class="hint">{ "Laying out the slices …" }</p> },
    }
}

/// The file of the view and those below it, as far as they are read.
fn all(props: &Props) -> Vec<JobId> {
    let below = props.together.below.iter().map(|below| &below.file);
    let below = below.filter(|file| file.lanes.ready().is_some()).map(|file| file.job);
    std::iter::once(props.file.job).chain(below).collect()
}

/// The timeline below another view.
pub fn dock(props: &Props) -> Html {
    let tasks = props.tasks.clone();
    let close = {
        let tasks = tasks.clone();
        Callback::from(move |_: MouseEvent| tasks.dispatch(Action::Docked(false)))
    };
    let whole = {
        let tasks = tasks.clone();
        Callback::from(move |_: MouseEvent| tasks.dispatch(Action::Shown(View::Timeline)))
    };
    let content = match &props.file.lanes {
        Remote::Ready(_) => html! {
            <div class="dock-body">
                <div class="clock">
                    { picture(props, &props.file, Some(FEW)) }
                    { beneath(props) }
                </div>
                <div class="dock-side" data-testid="dock-seen" tabindex="0" role="region" aria-label="What is selected in the timeline">
                    if let Some(seen) = props.file.seen.as_deref() {
                        { in_perfetto(props, seen) }
                        { for seen.chapters.iter().map(|of| chapter(props, of)) }
                    } else {
                        <p class="hint">{ "Select a slice. Drag a range, or choose its ends: From here, To here." }</p>
                    }
                    { seen_beneath(props) }
                </div>
            </div>
        },
        _ => unseen(&props.file, &props.tasks),
    };
    html! {
        <section class="dock" aria-label="Timeline below the view" data-testid="dock">
            <DockEdge height={props.dock_height} tasks={props.tasks.clone()} />
            <div class="dock-head">
                <h2>{ View::Timeline.title() }</h2>
                <button class="link" onclick={whole}>{ "As a view" }</button>
                <button class="icon-button" onclick={close} aria-label="Remove the timeline below the view" data-testid="dock-close">{ icon("close") }</button>
            </div>
            { content }
        </section>
    }
}

/// A button that shows the selected time in Perfetto, in the repaired file.
fn in_perfetto(props: &Props, seen: &Looked) -> Html {
    let Some(times) = seen.times else { return html! {} };
    let (job, tasks, url) = (props.file.job, props.tasks.clone(), props.perfetto_url.clone());
    let show = Callback::from(move |_: MouseEvent| tasks.show_in_perfetto(job, &url, times));
    html! {
        <p class="card-actions"><button onclick={show} data-testid="perfetto-at">{ "Show this time in Perfetto" }</button></p>
    }
}

#[derive(Clone, PartialEq, Properties)]
struct SoughtProps {
    jobs: Vec<JobId>,
    tasks: Tasks,
}

/// A search by name, and which tracks are shown: all of them once the field is gone.
#[component]
fn SoughtFields(props: &SoughtProps) -> Html {
    let SoughtProps { jobs, tasks } = props.clone();
    let (find, tracks) = (use_node_ref(), use_node_ref());
    {
        let (find, tracks, tasks) = (find.clone(), tracks.clone(), tasks.clone());
        // A file that comes later, or is read again, is told both texts as well.
        use_effect_with(jobs.clone(), move |jobs| {
            let text = |field: &NodeRef| {
                field.cast::<HtmlInputElement>().map(|field| field.value()).unwrap_or_default()
            };
            look_at_all(&tasks, jobs, &Input::Tracks(text(&tracks)));
            look_at_all(&tasks, jobs, &Input::Find(text(&find)));
            let jobs = jobs.clone();
            move || look_at_all(&tasks, &jobs, &Input::Tracks(String::new()))
        });
    }
    let first = props.jobs.first().copied();
    let on_text = |input: fn(String) -> Input| {
        let (jobs, tasks) = (jobs.clone(), tasks.clone());
        Callback::from(move |event: InputEvent| {
            if let Some(field) = event.target_dyn_into::<HtmlInputElement>() {
                look_at_all(&tasks, &jobs, &input(field.value()));
            }
        })
    };
    let (on_find, on_tracks) = (on_text(Input::Find), on_text(Input::Tracks));
    let onkeydown = Callback::from(move |event: KeyboardEvent| {
        if let Some(job) = first.filter(|_| event.key() == "Enter") {
            let found = Input::Key { key: Key::Found, shift: event.shift_key() };
            tasks.look(job, Surface::Over, found, None);
        }
    });
    html! {
        <>
            <label class="step-picker">
                <span>{ "Find" }</span>
                <input ref={find} type="search" oninput={on_find} {onkeydown} placeholder="Part of a name" data-testid="find-slice" />
            </label>
            <label class="step-picker">
                <span>{ "Tracks" }</span>
                <input ref={tracks} type="search" oninput={on_tracks} placeholder="Part of a track's name" data-testid="find-track" />
            </label>
        </>
    }
}

/// Does something to the lanes of several files.
fn look_at_all(tasks: &Tasks, jobs: &[JobId], input: &Input) {
    jobs.iter().for_each(|job| tasks.look(*job, Surface::Over, input.clone(), None));
}
