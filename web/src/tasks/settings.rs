//! Settings that the browser stores between visits: theme, keys, the Perfetto address and, if enabled, run details. Nothing
//! from a trace is stored.

use std::collections::BTreeMap;

use gloo::storage::{LocalStorage, Storage};
use gloo::utils::{document_element, window};

use crate::state::{PERFETTO_URL, State, Theme};

const THEME: &str = "kinetoscope.theme";
const KEYS: &str = "kinetoscope.keys";
const COLUMNS: &str = "kinetoscope.columns";
const PERFETTO: &str = "kinetoscope.perfetto";

/// Some browsers refuse the store altogether (private windows, blocked cookies); then nothing is kept.
pub(super) fn allowed() -> bool {
    matches!(window().local_storage(), Ok(Some(_)))
}

/// The first state of the page.
#[must_use]
pub fn restored() -> State {
    let mut state = State::default();
    if allowed() {
        let theme: Option<String> = LocalStorage::get(THEME).ok();
        state.theme = theme.and_then(|id| Theme::by_id(&id)).unwrap_or_default();
        state.keys_on = LocalStorage::get(KEYS).unwrap_or(true);
        state.perfetto_url = LocalStorage::get(PERFETTO).unwrap_or(PERFETTO_URL.to_owned());
        state.perfetto_known = state.perfetto_url == PERFETTO_URL;
        state.form = super::artifacts::restored_form();
        for (table, columns) in kept_columns() {
            state.tables.entry(table).or_default().columns = Some(columns);
        }
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
    if allowed() {
        let _kept = LocalStorage::set(THEME, theme.id());
    }
}

/// Stores whether single keys are on.
pub fn keep_keys(on: bool) {
    if allowed() {
        let _kept = LocalStorage::set(KEYS, on);
    }
}

/// The chosen columns of each table, by its id.
fn kept_columns() -> BTreeMap<String, Vec<String>> {
    LocalStorage::get(COLUMNS).unwrap_or_default()
}

/// Stores the chosen columns of a table; `None` for the default ones.
pub fn keep_columns(table: &str, columns: Option<&[String]>) {
    if allowed() {
        let mut kept = kept_columns();
        match columns {
            Some(columns) => kept.insert(table.to_owned(), columns.to_vec()),
            None => kept.remove(table),
        };
        let _kept = LocalStorage::set(COLUMNS, kept);
    }
}

/// Stores the Perfetto address.
pub fn keep_perfetto_url(url: &str) {
    if allowed() {
        let _kept = LocalStorage::set(PERFETTO, url);
    }
}
