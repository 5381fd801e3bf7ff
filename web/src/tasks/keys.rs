//! Keys of the whole page. Tables have their own.

use gloo::timers::callback::Timeout;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, KeyboardEvent};

use super::{Tasks, files};
use crate::state::{Action, Dialog, State, View};

/// What a key means, without its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Choose files.
    Open,
    /// Show help.
    Help,
    /// Go to the filter.
    Search,
    /// Go to a view.
    Show(View),
}

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
    if modified {
        return key.eq_ignore_ascii_case("o").then_some(Command::Open);
    }
    // Escape in a dialog and in a field is theirs.
    if place != Place::Page || !state.keys_on {
        return None;
    }
    match key {
        "?" => Some(Command::Help),
        "/" => Some(Command::Search),
        _ => {
            state.selected_file()?;
            View::by_key(key).map(Command::Show)
        }
    }
}

/// Handles a key press; `true` if it was a command.
pub fn handle_key(event: &KeyboardEvent, state: &State, tasks: &Tasks) -> bool {
    let modified = event.ctrl_key() || event.meta_key();
    if event.alt_key() {
        return false;
    }
    let Some(command) = command(&event.key(), modified, place(event), state) else { return false };
    match command {
        Command::Open => files::pick(),
        Command::Help => tasks.dispatch(Action::DialogSet(Some(Dialog::Help))),
        Command::Show(view) => {
            tasks.dispatch(Action::Shown(view));
            // The heading is there once the page has drawn the view.
            Timeout::new(0, focus_heading).forget();
        }
        Command::Search => return focus_filter(),
    }
    true
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

/// A screen reader goes on from the heading of the view, and Tab to what follows it.
fn focus_heading() {
    let heading = gloo::utils::document().query_selector("main h1").ok().flatten();
    if let Some(heading) = heading.and_then(|heading| heading.dyn_into::<HtmlElement>().ok()) {
        let _focused = heading.focus();
    }
}

fn focus_filter() -> bool {
    let field = gloo::utils::document().query_selector("main input[type=search]").ok().flatten();
    let field = field.and_then(|field| field.dyn_into::<HtmlElement>().ok());
    field.is_some_and(|field| field.focus().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::JobId;
    use crate::state::reduce;

    #[test]
    fn letters_are_text_in_a_field_and_can_be_switched_off() {
        let state = reduce(&State::default(), Action::Added(JobId(1), "a".into(), 1));
        assert_eq!(command("?", false, Place::Page, &state), Some(Command::Help));
        assert_eq!(command("?", false, Place::Field, &state), None);
        assert_eq!(command("2", false, Place::Page, &state), Some(Command::Show(View::Triage)));
        assert_eq!(command("8", false, Place::Page, &state), Some(Command::Show(View::Downloads)));
        assert_eq!(command("9", false, Place::Page, &state), None);
        assert_eq!(command("0", false, Place::Page, &state), None);
        assert_eq!(command("o", true, Place::Field, &state), Some(Command::Open));
        assert_eq!(command("c", true, Place::Page, &state), None);
        let off = reduce(&state, Action::KeysSet(false));
        assert_eq!(command("/", false, Place::Page, &off), None);
        assert_eq!(command("2", false, Place::Dialog, &state), None);
        assert_eq!(command("o", true, Place::Dialog, &state), Some(Command::Open));
    }

    #[test]
    fn views_need_a_file() {
        assert_eq!(command("1", false, Place::Page, &State::default()), None);
    }
}
