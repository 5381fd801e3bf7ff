//! What the browser remembers between visits: theme, keys, where Perfetto is, and what a person told about runs, if
//! that is wanted. Never anything of a trace.

use gloo::storage::{LocalStorage, Storage};
use gloo::utils::{document_element, window};

use crate::state::{PERFETTO_URL, State, Theme};

const THEME: &str = "kinetoscope.theme";
const KEYS: &str = "kinetoscope.keys";
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
        state.form = super::artifacts::restored_form();
    }
    state
}

/// Remembers the theme and shows it: the stylesheet goes by the root's `data-theme`.
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

/// Remembers whether single keys are on.
pub fn keep_keys(on: bool) {
    if allowed() {
        let _kept = LocalStorage::set(KEYS, on);
    }
}

/// Remembers where Perfetto is.
pub fn keep_perfetto_url(url: &str) {
    if allowed() {
        let _kept = LocalStorage::set(PERFETTO, url);
    }
}
