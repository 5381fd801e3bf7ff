//! "Open in Perfetto": passes the repaired file to a Perfetto window by `postMessage`.
//!
//! Perfetto's side of it is `ui/src/frontend/post_message_handler.ts`: it answers `PING` with `PONG` once
//! it can take a trace, and takes one `{perfetto: {buffer, title, fileName}}`. The window must be opened
//! inside the click, so it is opened first and waits while the file is written.

use std::cell::Cell;
use std::rc::Rc;

use gloo::events::EventListener;
use gloo::timers::callback::Interval;
use gloo::utils::window;
use js_sys::{Array, ArrayBuffer, Object, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{Blob, Event, MessageEvent, Url, Window};

use super::Tasks;
use super::browser::{after, listen};
use crate::protocol::{Failure, JobId};
use crate::state::{Action, Dialog, PerfettoState};

/// Perfetto says 50 to 250 ms.
const PING_MS: u32 = 100;
/// A slow host and a person reading a dialog both fit into this.
const PATIENCE_PINGS: u32 = 120_000 / PING_MS;

/// A window that waits for a file. Dropping it stops the pinging.
pub struct Handover {
    window: Window,
    origin: String,
    _ping: Option<Interval>,
    _listener: Option<EventListener>,
}

impl Tasks {
    /// Opens Perfetto's window (call this inside the click) and hands the repaired file over when it is
    /// written. A stored address is shown first.
    pub fn open_in_perfetto(&self, job: JobId, url: &str) {
        self.0.perfetto_shows.set(None);
        self.go_to_perfetto(job, url);
    }

    /// The same, with this time shown, in ns on the clock of the file.
    pub fn show_in_perfetto(&self, job: JobId, url: &str, shown_ns: (i64, i64)) {
        self.0.perfetto_shows.set(Some(shown_ns));
        self.go_to_perfetto(job, url);
    }

    /// Opens the window for what was asked for last.
    pub fn go_to_perfetto(&self, job: JobId, url: &str) {
        let Some(origin) = origin_of(url) else {
            self.notice(Failure {
                title: "Invalid Perfetto address".into(),
                what: format!("“{url}” is not an http or https address."),
                advice: "Change it in “Keys and settings” (key ?).".into(),
                ..Failure::default()
            });
            return;
        };
        if !self.state().perfetto_known {
            self.dispatch(Action::DialogOpened(Dialog::HandOver(job)));
            return;
        }
        let shown = self.0.perfetto_shows.take();
        let url = shown.map_or_else(|| url.to_owned(), |shown_ns| at_time(url, shown_ns));
        let opened = window().open_with_url_and_target(&url, "_blank").ok().flatten();
        let blocked = opened.is_none();
        *self.0.perfetto.borrow_mut() =
            opened.map(|window| Handover { window, origin, _ping: None, _listener: None });
        self.dispatch(Action::PerfettoOpened { job, blocked });
    }

    /// Gives a written file to the waiting window.
    pub(super) fn hand_over(&self, job: JobId, file: &Blob, name: String) {
        if self.0.perfetto.borrow().is_none() {
            self.dispatch(Action::PerfettoMoved(PerfettoState::Blocked(job)));
            return;
        }
        self.dispatch(Action::PerfettoMoved(PerfettoState::Waiting(job)));
        let (tasks, file) = (self.clone(), file.clone());
        spawn_local(async move {
            let buffer = JsFuture::from(file.array_buffer()).await;
            let Some(buffer) = buffer.ok().and_then(|buffer| buffer.dyn_into().ok()) else {
                tasks.dispatch(Action::PerfettoMoved(PerfettoState::Lost(job)));
                return;
            };
            tasks.ping(job, buffer, &name);
        });
    }

    fn ping(&self, job: JobId, buffer: ArrayBuffer, name: &str) {
        let mut slot = self.0.perfetto.borrow_mut();
        let Some(handover) = slot.as_mut() else { return };
        let target = handover.window.clone();
        let answered = Rc::new(Cell::new(false));

        let listener = {
            let (tasks, target, origin) = (self.clone(), target.clone(), handover.origin.clone());
            let (answered, message) = (Rc::clone(&answered), trace_message(&buffer, name));
            let hear = move |event: &Event| {
                let Some(event) = event.dyn_ref::<MessageEvent>() else { return };
                let from_target = event
                    .source()
                    .is_some_and(|source| JsValue::from(source) == JsValue::from(target.clone()));
                if !from_target || event.data().as_string().as_deref() != Some("PONG") {
                    return;
                }
                if answered.replace(true) {
                    return;
                }
                // The trace goes to this origin only, whatever the window shows by now.
                let sent =
                    target.post_message_with_transfer(&message, &origin, &Array::of1(&buffer));
                tasks.perfetto_done(job, sent.is_ok());
            };
            listen(&window(), "message", Box::new(hear))
        };

        let tasks = self.clone();
        let pings = Cell::new(0);
        let interval = Interval::new(PING_MS, move || {
            if answered.get() {
                return;
            }
            pings.set(pings.get() + 1);
            if pings.get() > PATIENCE_PINGS || target.closed().unwrap_or(true) {
                answered.set(true);
                tasks.perfetto_done(job, false);
                return;
            }
            // "PING" says nothing, so it may go to any origin; the window is blank at first.
            let _sent = target.post_message(&"PING".into(), "*");
        });
        handover._ping = Some(interval);
        handover._listener = Some(listener);
    }

    fn perfetto_done(&self, job: JobId, sent: bool) {
        let next = if sent { PerfettoState::Sent(job) } else { PerfettoState::Lost(job) };
        self.dispatch(Action::PerfettoMoved(next));
        // Not at once: this runs inside the very timer and listener that are dropped here.
        let tasks = self.clone();
        let let_go = move || {
            tasks.0.perfetto.borrow_mut().take();
        };
        after(0, Box::new(let_go)).forget();
    }
}

fn trace_message(buffer: &ArrayBuffer, name: &str) -> Object {
    let inner = Object::new();
    for (key, value) in [
        ("buffer", JsValue::from(buffer.clone())),
        ("title", JsValue::from(name)),
        ("fileName", JsValue::from(name)),
    ] {
        let _set = Reflect::set(&inner, &key.into(), &value);
    }
    let outer = Object::new();
    let _set = Reflect::set(&outer, &"perfetto".into(), &inner);
    outer
}

/// The address with the time to show, by the parameters that Perfetto's documentation of deep links has.
fn at_time(url: &str, (from_ns, to_ns): (i64, i64)) -> String {
    let url = url.split('#').next().unwrap_or_default();
    format!("{url}#!/?visStart={from_ns}&visEnd={to_ns}")
}

/// The origin of an http or https address.
fn origin_of(url: &str) -> Option<String> {
    let url = Url::new(url).ok()?;
    matches!(url.protocol().as_str(), "https:" | "http:").then(|| url.origin())
}
