//! Keys of the whole page. Tables have their own.

use wasm_bindgen::JsCast;
use web_sys::{Element, KeyboardEvent};

use super::Tasks;
use crate::features::commands::queries::{Command, DOCK_KEY};
use crate::state::{Dialog, State, View};

/// Where a key is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the page.
    Page,
    /// In a text field, so letters are text.
    Field,
    /// In a dialog: below it, nothing moves.
    Dialog,
}

/// The command of a key.
#[must_use]
pub fn command(key: &str, modified: bool, place: Place, state: &State) -> Option<Command> {
    // In a field, the browser takes back what was typed.
    if key == "z" && place == Place::Page && (modified || state.keys_on) {
        return (!state.undo.is_empty()).then_some(Command::Undo);
    }
    if modified {
        return match key.to_ascii_lowercase().as_str() {
            "o" => Some(Command::OpenFiles),
            // Another dialog is not covered by this one.
            "k" if place != Place::Dialog => Some(Command::Open(Dialog::Commands)),
            _ => None,
        };
    }
    // Escape in a dialog and in a field is theirs.
    if place != Place::Page || !state.keys_on {
        return None;
    }
    match key {
        "?" => Some(Command::Open(Dialog::Help)),
        "/" => Some(Command::Filter),
        DOCK_KEY => state.selected_file().map(|_| Command::Dock(!state.docked)),
        _ => {
            state.selected_file()?;
            View::by_key(key).map(Command::Show)
        }
    }
}

/// Handles a key press; `true` if it was a command.
pub fn handle_key(event: &KeyboardEvent, tasks: &Tasks) -> bool {
    let modified = event.ctrl_key() || event.meta_key();
    if event.alt_key() {
        return false;
    }
    command(&event.key(), modified, place(event), &tasks.state())
        .is_some_and(|command| tasks.run(command))
}

/// Asked of the document: the state learns that a dialog is closed from an event, some time after the dialog is gone.
fn place(event: &KeyboardEvent) -> Place {
    let open = gloo::utils::document().query_selector("dialog[open]").ok().flatten();
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    let in_field = target.is_some_and(|target| {
        matches!(target.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT")
    });
    match (open, in_field) {
        (Some(_), _) => Place::Dialog,
        (None, true) => Place::Field,
        (None, false) => Place::Page,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::JobId;
    use crate::state::Action;
    use crate::state::testing::reduce;

    #[test]
    fn letters_are_text_in_a_field_and_can_be_switched_off() {
        let state = reduce(&State::default(), Action::Added(JobId(1), "a".into(), 1));
        assert_eq!(command("?", false, Place::Page, &state), Some(Command::Open(Dialog::Help)));
        assert_eq!(command("?", false, Place::Field, &state), None);
        assert_eq!(command("2", false, Place::Page, &state), Some(Command::Show(View::Triage)));
        assert_eq!(command("t", false, Place::Page, &state), Some(Command::Dock(true)));
        assert_eq!(command("8", false, Place::Page, &state), Some(Command::Show(View::Downloads)));
        assert_eq!(command("9", false, Place::Page, &state), None);
        assert_eq!(command("0", false, Place::Page, &state), None);
        assert_eq!(command("o", true, Place::Field, &state), Some(Command::OpenFiles));
        assert_eq!(command("c", true, Place::Page, &state), None);
        let commands = Some(Command::Open(Dialog::Commands));
        assert_eq!(command("k", true, Place::Field, &state), commands);
        assert_eq!(command("K", true, Place::Page, &state), commands);
        assert_eq!(command("k", true, Place::Dialog, &state), None);
        assert_eq!(command("k", false, Place::Page, &state), None);
        let off = reduce(&state, Action::KeysSet(false));
        assert_eq!(command("/", false, Place::Page, &off), None);
        assert_eq!(command("2", false, Place::Dialog, &state), None);
        assert_eq!(command("o", true, Place::Dialog, &state), Some(Command::OpenFiles));
    }

    #[test]
    fn a_filter_is_undone_outside_of_fields() {
        let state = reduce(&State::default(), Action::BeforeWindowSet(true));
        for modified in [false, true] {
            assert_eq!(command("z", modified, Place::Page, &state), Some(Command::Undo));
            assert_eq!(command("z", modified, Place::Field, &state), None);
            assert_eq!(command("Z", modified, Place::Page, &state), None, "redo");
            assert_eq!(command("z", modified, Place::Page, &State::default()), None);
        }
    }

    #[test]
    fn views_need_a_file() {
        assert_eq!(command("1", false, Place::Page, &State::default()), None);
    }
}
