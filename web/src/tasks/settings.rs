//! Settings that the browser stores between visits: theme, keys, columns, heights, the Perfetto address, whether files are kept and, if
//! enabled, run details. Nothing from a trace is in them; the files that are kept have a place of their own (`late`).

use gloo::utils::document_element;
use js_sys::Array;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::HtmlElement;

use super::storage;
use crate::features::timeline::queries as dock;
use crate::state::{PERFETTO_URL, State, Theme};

const THEME: &str = "kinetoscope.theme";
const KEYS: &str = "kinetoscope.keys";
const COLUMNS: &str = "kinetoscope.columns";
const PERFETTO: &str = "kinetoscope.perfetto";
const DOCK: &str = "kinetoscope.dock";
const TRACKS: &str = "kinetoscope.tracks";
const KEEP: &str = "kinetoscope.keep";

/// The first state of the page.
#[must_use]
pub fn restored() -> State {
    let mut state = State::default();
    let text = |key: &str| storage::get(key)?.as_string();
    state.theme = text(THEME).and_then(|id| Theme::by_id(&id)).unwrap_or_default();
    apply_theme(state.theme);
    state.keys_on = storage::get(KEYS).and_then(|on| on.as_bool()).unwrap_or(true);
    state.keeps = storage::get(KEEP).and_then(|keeps| keeps.as_bool()).unwrap_or(false);
    let height = storage::get(DOCK).and_then(|height| height.as_f64());
    state.dock_height = height.map_or(dock::DEFAULT, |height| dock::bounded(height as u16));
    state.tracks = text(TRACKS).unwrap_or_default();
    state.perfetto_url = text(PERFETTO).unwrap_or(PERFETTO_URL.to_owned());
    state.perfetto_known = state.perfetto_url == PERFETTO_URL;
    state.form = super::artifacts::restored_form();
    for (table, columns) in kept_columns() {
        state.tables.entry(table).or_default().columns = Some(columns);
    }
    state
}

/// Stores the theme and applies it: the stylesheet depends on `data-theme` of the root.
pub fn apply_theme(theme: Theme) {
    let root = document_element();
    let _shown = match theme {
        Theme::System => root.remove_attribute("data-theme"),
        Theme::Light | Theme::Dark => root.set_attribute("data-theme", theme.id()),
    };
    storage::set(THEME, &theme.id().into());
}

/// Stores whether single keys are on.
pub fn keep_keys(on: bool) {
    storage::set(KEYS, &on.into());
}

/// Applies the height of the timeline below a view: the stylesheet reads it from a property of the root.
pub fn apply_dock_height(height: u16) {
    if let Some(root) = document_element().dyn_ref::<HtmlElement>() {
        let share = format!("{}.{}%", height / 10, height % 10);
        let _applied = root.style().set_property("--dock", &share);
    }
}

/// Stores the height of the timeline below a view.
pub fn keep_dock_height(height: u16) {
    storage::set(DOCK, &height.into());
}

/// The chosen columns of each table, by its id.
fn kept_columns() -> Vec<(String, Vec<String>)> {
    let columns = |columns: &JsValue| {
        let columns = columns.dyn_ref::<Array>()?;
        columns.iter().map(|key| key.as_string()).collect()
    };
    storage::get(COLUMNS).map(|kept| storage::members(&kept, columns)).unwrap_or_default()
}

/// Stores the chosen columns of a table; `None` for the default ones.
pub fn keep_columns(table: &str, columns: Option<&[String]>) {
    let mut kept = kept_columns();
    kept.retain(|(of, _)| of != table);
    kept.extend(columns.map(|columns| (table.to_owned(), columns.to_vec())));
    let array = |columns: &Vec<String>| columns.iter().map(JsValue::from).collect::<Array>().into();
    let members = kept.iter().map(|(table, columns)| (table, array(columns)));
    storage::set(COLUMNS, &storage::object(members));
}

/// Stores the order of tracks in the timeline.
pub fn keep_tracks(tracks: &str) {
    storage::set(TRACKS, &tracks.into());
}

/// Stores whether opened files are kept.
pub fn keep_files(keeps: bool) {
    storage::set(KEEP, &keeps.into());
}

/// Stores the Perfetto address.
pub fn keep_perfetto_url(url: &str) {
    storage::set(PERFETTO, &url.into());
}
