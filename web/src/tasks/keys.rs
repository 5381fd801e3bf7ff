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

/// The command of a key. `in_field`: a text field has the focus, so letters are text.
#[must_use]
pub fn command(key: &str, modified: bool, in_field: bool, state: &State) -> Option<Command> {
    if modified {
        return key.eq_ignore_ascii_case("o").then_some(Command::Open);
    }
    // Escape in a dialog and in a field is theirs; below a dialog, nothing moves.
    if in_field || !state.keys_on || state.dialog.is_some() {
        return None;
    }
    match key {
        "?" => Some(Command::Help),
        "/" => Some(Command::Search),
        _ => {
            let place = key.parse::<usize>().ok().filter(|digit| *digit < 10)?.checked_sub(1)?;
            state.selected_file()?;
            View::ALL.get(place).copied().map(Command::Show)
        }
    }
}

/// Handles a key press; `true` if it was a command.
pub fn handle_key(event: &KeyboardEvent, state: &State, tasks: &Tasks) -> bool {
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    let in_field = target.is_some_and(|target| {
        matches!(target.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT")
    });
    let modified = event.ctrl_key() || event.meta_key();
    if event.alt_key() {
        return false;
    }
    let Some(command) = command(&event.key(), modified, in_field, state) else { return false };
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
        assert_eq!(command("?", false, false, &state), Some(Command::Help));
        assert_eq!(command("?", false, true, &state), None);
        assert_eq!(command("2", false, false, &state), Some(Command::Show(View::Triage)));
        assert_eq!(command("8", false, false, &state), Some(Command::Show(View::Downloads)));
        assert_eq!(command("9", false, false, &state), None);
        assert_eq!(command("0", false, false, &state), None);
        assert_eq!(command("o", true, true, &state), Some(Command::Open));
        assert_eq!(command("c", true, false, &state), None);
        let off = reduce(&state, Action::KeysSet(false));
        assert_eq!(command("/", false, false, &off), None);
        let open = reduce(&state, Action::DialogSet(Some(Dialog::Help)));
        assert_eq!(command("2", false, false, &open), None);
    }

    #[test]
    fn views_need_a_file() {
        assert_eq!(command("1", false, false, &State::default()), None);
    }
}
