//! A picture that a worker draws on a canvas of the page: it forwards what a person does, and nothing is drawn here.

use std::rc::Rc;

use gloo::events::EventListener;
use gloo::utils::{document, window};
use kinetoscope::report::palette::Hue;
use kinetoscope::scene::{Input, Key, Pointer};
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use web_sys::{Event, HtmlCanvasElement, KeyboardEvent, PointerEvent, ResizeObserver, WheelEvent};
use yew::prelude::*;

use crate::protocol::{JobId, Surface};
use crate::state::Theme;
use crate::tasks::browser::listen;
use crate::tasks::{Tasks, late};

/// What it shows.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    pub job: JobId,
    pub surface: Surface,
    /// What lies below it, on a canvas of its own, of the same size.
    #[prop_or_default]
    pub under: Option<Surface>,
    /// What its file is called, for a picture that is saved.
    pub name: AttrValue,
    /// For people who do not see it.
    pub label: AttrValue,
    /// A buttons' label, its key, and what it does.
    pub buttons: &'static [(&'static str, &'static str, Key)],
    /// Which of them there is room for, by key; `None` for all.
    #[prop_or_default]
    pub only: Option<&'static [Key]>,
    pub theme: Theme,
    pub tasks: Tasks,
}

/// Keys of a picture, by what the browser calls them; Perfetto's where it has one.
const KEYS: &[(&str, Key)] = &[
    ("w", Key::ZoomIn),
    ("+", Key::ZoomIn),
    ("s", Key::ZoomOut),
    ("-", Key::ZoomOut),
    ("a", Key::PanLeft),
    ("d", Key::PanRight),
    ("arrowleft", Key::Back),
    ("arrowright", Key::Forward),
    ("arrowup", Key::Up),
    ("arrowdown", Key::Down),
    ("home", Key::First),
    ("end", Key::Last),
    ("0", Key::Whole),
    ("f", Key::Fit),
    ("p", Key::Peak),
    ("t", Key::Axis),
    ("l", Key::Layers),
    ("escape", Key::Clear),
    (",", Key::PreviousSame),
    (".", Key::NextSame),
    ("g", Key::Gap),
    ("[", Key::Cause),
    ("]", Key::Effect),
    ("r", Key::Range),
    ("i", Key::RangeStart),
    ("o", Key::RangeEnd),
    ("m", Key::Mark),
    ("enter", Key::Fold),
    ("b", Key::Pin),
    ("v", Key::Repaired),
    ("n", Key::Damage),
    ("u", Key::TrackUp),
    ("j", Key::TrackDown),
    ("h", Key::Hide),
    ("x", Key::ResetTracks),
];

/// Colours that are no hues of categories: class and name.
const TONES: [&str; 8] = ["ground", "text", "muted", "grid", "strong", "selected", "accent", "bad"];

/// The colours as the stylesheet has them now. A canvas understands no variables, so an element of each class is asked.
fn colours() -> Vec<(String, String)> {
    let Ok(probe) = document().create_element("i") else { return Vec::new() };
    let _added = document().body().map(|body| body.append_child(&probe));
    let mut found = Vec::new();
    let hues = Hue::ALL.map(|hue| ("hue", hue.id()));
    for (prefix, name) in hues.into_iter().chain(TONES.map(|tone| ("tone", tone))) {
        probe.set_class_name(&format!("{prefix}-{name}"));
        let style = window().get_computed_style(&probe).ok().flatten();
        let fill = style.and_then(|style| style.get_property_value("fill").ok());
        found.push((name.to_owned(), fill.unwrap_or_default()));
    }
    probe.remove();
    found
}

/// Everything that is heard as long as the picture is there.
struct Heard {
    _listeners: Vec<EventListener>,
    observer: ResizeObserver,
    _sized: Closure<dyn FnMut()>,
}

impl Drop for Heard {
    fn drop(&mut self) {
        self.observer.disconnect();
    }
}

type Send = Rc<dyn Fn(Input)>;

/// The picture and its buttons.
#[component]
pub fn SurfaceView(props: &Props) -> Html {
    let canvas = use_node_ref();
    let below = use_node_ref();
    let Props { job, surface, under, name, label, buttons, only, theme, tasks } = props.clone();
    let send: Send = {
        let tasks = tasks.clone();
        Rc::new(move |input| {
            if let (Some(under), Input::Size { .. } | Input::Colours(_)) = (under, &input) {
                tasks.look(job, under, input.clone(), None);
            }
            tasks.look(job, surface, input, None);
        })
    };
    // A canvas is handed over once: another picture or another theme has a new one.
    let key = format!("{}-{}-{}", job.0, surface.id(), theme.id());
    {
        let (canvas, below, send) = (canvas.clone(), below.clone(), Rc::clone(&send));
        use_effect_with(key.clone(), move |_| {
            let hand_over = |surface, canvas: &HtmlCanvasElement| {
                if let Ok(handle) = canvas.transfer_control_to_offscreen() {
                    tasks.look(job, surface, Input::Colours(colours()), Some(handle.into()));
                }
            };
            if let (Some(under), Some(below)) = (under, below.cast()) {
                hand_over(under, &below);
            }
            let heard = canvas.cast::<HtmlCanvasElement>().map(|canvas| {
                hand_over(surface, &canvas);
                hear(&canvas, &send)
            });
            move || drop(heard)
        });
    }
    let stack = use_node_ref();
    let save = {
        // (`run.json.gz` is saved as `run-lanes.png`.)
        let of = name.trim_end_matches(".gz").trim_end_matches(".json");
        let (stack, name) = (stack.clone(), format!("{of}-{}.png", under.unwrap_or(surface).id()));
        Callback::from(move |_: MouseEvent| {
            if let Some(stack) = stack.cast() {
                late::save_canvases(&stack, &name);
            }
        })
    };
    let save_svg = under.map(|under| {
        let of = name.trim_end_matches(".gz").trim_end_matches(".json");
        let (send, name) = (Rc::clone(&send), format!("{of}-{}.svg", under.id()));
        let onclick = Callback::from(move |_: MouseEvent| send(Input::Picture(name.clone())));
        html! { <button {onclick} title="Save what is shown as an SVG: text stays text" data-testid="svg">{ "SVG" }</button> }
    });
    let has_room = |(_, _, key): &&(&'static str, &'static str, Key)| {
        only.is_none_or(|only| only.contains(key))
    };
    let button = |(text, title, key): &(&'static str, &'static str, Key)| {
        let (send, key) = (Rc::clone(&send), *key);
        let onclick = Callback::from(move |_: MouseEvent| send(Input::Key { key, shift: false }));
        html! { <button {onclick} title={*title}>{ *text }</button> }
    };
    html! {
        <div class="surface">
            <div class="surface-tools" role="toolbar" aria-label={label.clone()}>
                { for buttons.iter().filter(has_room).map(button) }
                <button onclick={save} title="Save what is shown as a PNG" data-testid={format!("picture-{}", surface.id())}>{ "Picture" }</button>
                { save_svg }
            </div>
            <div class="surface-stack" ref={stack}>
                if let Some(under) = under {
                    <canvas key={format!("{key}-{}", under.id())} ref={below} class={under.id()} aria-hidden="true" />
                }
                <canvas {key} ref={canvas} class={surface.id()} tabindex="0"
                    role="application" aria-label={label} data-testid={format!("surface-{}", surface.id())} />
            </div>
        </div>
    }
}

fn size(canvas: &HtmlCanvasElement) -> Input {
    let (width, height) = (canvas.client_width() as f32, canvas.client_height() as f32);
    Input::Size { width, height, scale: window().device_pixel_ratio() as f32 }
}

fn hear(canvas: &HtmlCanvasElement, send: &Send) -> Heard {
    let on = |name: &'static str, handle: fn(&Event, &HtmlCanvasElement) -> Option<Input>| {
        let (send, of) = (Rc::clone(send), canvas.clone());
        let hear = move |event: &Event| {
            if let Some(input) = handle(event, &of) {
                send(input);
            }
        };
        listen(canvas, name, Box::new(hear))
    };
    let mut listeners = vec![
        on("pointerdown", |event, canvas| pointer(event, canvas, Pointer::Down)),
        on("pointermove", |event, canvas| pointer(event, canvas, Pointer::Hover)),
        on("pointerup", |event, canvas| pointer(event, canvas, Pointer::Up)),
        on("pointercancel", |event, canvas| pointer(event, canvas, Pointer::Leave)),
        on("pointerleave", |event, canvas| pointer(event, canvas, Pointer::Leave)),
        on("dblclick", |event, canvas| pointer(event, canvas, Pointer::Double)),
        on("wheel", wheel),
        on("keydown", key),
    ];
    for query in ["(prefers-color-scheme: dark)", "(forced-colors: active)"] {
        if let Ok(Some(scheme)) = window().match_media(query) {
            let send = Rc::clone(send);
            let hear = move |_: &Event| send(Input::Colours(colours()));
            listeners.push(listen(&scheme, "change", Box::new(hear)));
        }
    }
    let sized = {
        let (send, canvas) = (Rc::clone(send), canvas.clone());
        Closure::<dyn FnMut()>::new(move || send(size(&canvas)))
    };
    // (It also says the first size.)
    let observer =
        ResizeObserver::new(sized.as_ref().unchecked_ref()).unwrap_or_else(|none| none.into());
    observer.observe(canvas);
    Heard { _listeners: listeners, observer, _sized: sized }
}

fn pointer(event: &Event, canvas: &HtmlCanvasElement, what: Pointer) -> Option<Input> {
    let event: &PointerEvent = event.unchecked_ref();
    let is_down = event.buttons() != 0;
    let what = match what {
        Pointer::Hover if is_down => Pointer::Drag,
        // While it is dragged, it is not left.
        Pointer::Leave if is_down => return None,
        what => what,
    };
    if what == Pointer::Down {
        let _captured = canvas.set_pointer_capture(event.pointer_id());
    }
    let (x, y) = (event.offset_x() as f32, event.offset_y() as f32);
    if canvas.class_name() == Surface::Over.id() && event.pointer_type() == "touch" {
        return Some(Input::Finger { id: event.pointer_id(), what, x, y });
    }
    Some(Input::Pointer { what, x, y, pans: pans(event) })
}

/// Whether a drag moves the picture: with Shift, with the middle button, and with a finger on a picture that takes all of them.
fn pans(event: &PointerEvent) -> bool {
    event.shift_key() || event.button() == 1 || event.pointer_type() == "touch"
}

fn wheel(event: &Event, canvas: &HtmlCanvasElement) -> Option<Input> {
    let event: &WheelEvent = event.unchecked_ref();
    let zooms = event.ctrl_key() || event.meta_key();
    let (dx, dy) = (event.delta_x() as f32, event.delta_y() as f32);
    let x = event.offset_x() as f32;
    // Without a key, the page scrolls down and the picture to the side.
    let input = if zooms {
        Input::Wheel { x, dx: 0.0, dy }
    } else if event.shift_key() && dx == 0.0 {
        Input::Wheel { x, dx: dy, dy: 0.0 }
    } else if dx.abs() > dy.abs() {
        Input::Wheel { x, dx, dy: 0.0 }
    } else if canvas.class_name() == Surface::Over.id() {
        // Its rows are more than it has room for.
        Input::Scroll(dy)
    } else {
        return None;
    };
    event.prevent_default();
    Some(input)
}

fn key(event: &Event, canvas: &HtmlCanvasElement) -> Option<Input> {
    let event: &KeyboardEvent = event.unchecked_ref();
    if event.ctrl_key() || event.meta_key() || event.alt_key() {
        return None;
    }
    let name = event.key().to_ascii_lowercase();
    let (_, key) = KEYS.iter().find(|(known, _)| *known == name)?;
    // (Lanes have one axis: the key removes them from below the view.)
    if *key == Key::Axis && canvas.class_name() == Surface::Over.id() {
        return None;
    }
    // The page has keys of its own.
    event.prevent_default();
    event.stop_propagation();
    Some(Input::Key { key: *key, shift: event.shift_key() })
}
