//! Draws a time range before and after the repair: the slices that Perfetto drops, and their new lanes.

use kinetoscope::report::units;
use yew::prelude::*;

use super::Later;
use super::chart::chart_tools;
use crate::protocol::{DrawnLane, DrawnSlice, Fate, Place};
use crate::queries::palette::paint;
use crate::shared::Shared;
use crate::state::Sought;
use crate::tasks::Tasks;

/// The places, the worst first, drawn one after the other: each may have hundreds of slices, and drawing all at once
/// would block the page.
pub fn place_list(places: &[Shared<Place>], tasks: &Tasks) -> Html {
    html! {
        <Later>
            { for places.iter().map(|place| html! { <PlaceView place={place.clone()} tasks={tasks.clone()} /> }) }
        </Later>
    }
}

/// The place.
#[derive(Clone, PartialEq, Properties)]
struct Props {
    /// Its lanes before and after.
    place: Shared<Place>,
    /// Effects.
    tasks: Tasks,
}

/// Height of one level of nesting, gap included.
const LEVEL_PX: u32 = 20;
/// Narrower slices have no room for an edge.
const EDGE_FROM_PCT: f64 = 0.5;
/// Narrower slices have no room for a name.
const LABEL_FROM_PCT: f64 = 3.0;

/// Both drawings under one title.
#[component]
fn PlaceView(props: &Props) -> Html {
    let place = &props.place;
    let dropped = count(&place.before, Fate::Dropped);
    let moved = count(&place.after, Fate::Moved);
    let show = {
        let (tasks, event) = (props.tasks.clone(), place.event);
        Callback::from(move |_: MouseEvent| {
            tasks.show_in_timeline(Sought::Event(event));
        })
    };
    html! {
        <figure class="place" data-chart="repair" data-testid="place">
            <figcaption>
                <strong>{ &place.title }</strong>
                <span class="place-meta">
                    { format!("{} from {} µs", units::time(place.dur_ns), units::instant(place.start_ns)) }
                </span>
                <button class="link" onclick={show} data-testid="place-in-timeline">{ "Show in the timeline" }</button>
            </figcaption>
            { half("Before", &format!("Perfetto v51–v56 drop {}", units::plural(dropped, "slice", "slices")), &place.before, place.dur_ns) }
            { half("After", &format!("{} moved to a new lane, none dropped", units::plural(moved, "slice", "slices")), &place.after, place.dur_ns) }
            { chart_tools() }
        </figure>
    }
}

fn count(lanes: &[DrawnLane], fate: Fate) -> u64 {
    lanes.iter().flat_map(|lane| &lane.slices).filter(|slice| slice.fate == fate).count() as u64
}

fn half(title: &str, note: &str, lanes: &[DrawnLane], dur_ns: i64) -> Html {
    html! {
        <div class="place-half">
            <p class="place-title"><strong>{ title }</strong><span>{ note }</span></p>
            { for lanes.iter().map(|lane| row(lane, dur_ns)) }
        </div>
    }
}

/// Lanes under a ruler, which has moments at equal distances from the left end to the right one. The drawing is `dur_ns`
/// long.
pub fn lanes_under_ruler(lanes: &[DrawnLane], dur_ns: i64, ruler_ns: &[i64]) -> Html {
    let moment = |ns: &i64| match *ns {
        0 => "0".to_owned(),
        ns if ns < 0 => format!("\u{2212}{}", units::time(ns.saturating_neg())),
        ns => format!("+{}", units::time(ns)),
    };
    html! {
        <div class="lanes">
            <div class="lane ruler" aria-hidden="true">
                <span class="lane-name"></span>
                <p>{ for ruler_ns.iter().map(|ns| html! { <span>{ moment(ns) }</span> }) }</p>
            </div>
            { for lanes.iter().map(|lane| row(lane, dur_ns)) }
        </div>
    }
}

fn row(lane: &DrawnLane, dur_ns: i64) -> Html {
    let levels = lane.slices.iter().map(|slice| slice.depth).max().unwrap_or(0) + 1;
    let height = levels * LEVEL_PX;
    let words: Vec<String> = lane
        .slices
        .iter()
        .filter(|slice| slice.fate != Fate::Kept)
        .map(|slice| format!("{}: {}", slice.name, fate_word(slice.fate)))
        .collect();
    let label = match words.len() {
        0 => {
            format!("{}: {}", lane.name, units::plural(lane.slices.len() as u64, "slice", "slices"))
        }
        _ => format!("{}; {}", lane.name, words.join(", ")),
    };
    html! {
        <div class="lane">
            <span class="lane-name" title={lane.name.clone()}>{ &lane.name }</span>
            <svg width="100%" height={height.to_string()} role="img" aria-label={label}>
                // What is dropped lies over the rest, so that it can be read.
                { for lane.slices.iter().filter(|slice| slice.fate != Fate::Dropped).map(|slice| drawn(slice, dur_ns)) }
                { for lane.slices.iter().filter(|slice| slice.fate == Fate::Dropped).map(|slice| drawn(slice, dur_ns)) }
            </svg>
        </div>
    }
}

fn fate_word(fate: Fate) -> &'static str {
    match fate {
        Fate::Kept => "unchanged",
        Fate::Dropped => "dropped",
        Fate::Moved => "moved to this lane",
        Fate::Chosen => "selected",
    }
}

fn drawn(slice: &DrawnSlice, dur_ns: i64) -> Html {
    let whole = dur_ns.max(1) as f64;
    let from = units::between(slice.start_ns as f64 / whole * 100.0, 0.0, 100.0);
    let to = units::between((slice.start_ns + slice.dur_ns) as f64 / whole * 100.0, from, 100.0);
    let width = (to - from).max(0.15);
    let paint = paint(&slice.category);
    let (x, width_text) =
        (format!("{}%", units::fixed(from, 4)), format!("{}%", units::fixed(width, 4)));
    let (y, height) = (slice.depth * LEVEL_PX, LEVEL_PX - 2);
    let class = classes!("slice", paint.class());
    if slice.fate == Fate::Kept && width < EDGE_FROM_PCT {
        // There may be hundreds of these: one element each, and no title, since nobody can point at them.
        return html! {
            <rect {x} y={y.to_string()} width={width_text} height={height.to_string()} {class} />
        };
    }
    let said = match slice.fate {
        Fate::Kept | Fate::Chosen => String::new(),
        fate => format!(": {}", fate_word(fate)),
    };
    let title = format!("{}, {}{said}", slice.name, units::time(slice.dur_ns));
    let fate = match slice.fate {
        Fate::Kept => "kept",
        Fate::Dropped => "dropped",
        Fate::Moved => "moved",
        Fate::Chosen => "chosen",
    };
    html! {
        // An inner svg clips its text.
        <svg {x} y={y.to_string()} width={width_text} height={height.to_string()} class={fate}>
            <title>{ title }</title>
            <rect width="100%" height="100%" {class} />
            if slice.fate == Fate::Dropped {
                <rect width="100%" height="100%" fill="url(#hatch-dropped)" />
            }
            <rect width="100%" height="100%" class="slice-edge" />
            if width >= LABEL_FROM_PCT {
                <text x="5" y="13" class={classes!("slice-label", format!("on-{}", paint.hue.id()))}>
                    { kinetoscope::report::short_name(&slice.name, 60) }
                </text>
            }
        </svg>
    }
}
