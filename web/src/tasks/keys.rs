//! Keys of the whole page. Tables have their own.

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
            // As on the keyboard, 0 comes after 9.
            let digit = key.parse::<usize>().ok().filter(|digit| *digit < 10)?;
            let place = (digit + 9) % 10;
            state.selected_file()?;
            View::ALL.get(place).copied().map(Command::Show)
        }
    }
}

/// Obeys a key press; `true` if it was a command.
pub fn obey(event: &KeyboardEvent, state: &State, tasks: &Tasks) -> bool {
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
        Command::Show(view) => tasks.dispatch(Action::Shown(view)),
        Command::Search => return focus_filter(),
    }
    true
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
        assert_eq!(command("2", false, false, &state), Some(Command::Show(View::Kernels)));
        assert_eq!(command("9", false, false, &state), Some(Command::Show(View::Compare)));
        assert_eq!(command("0", false, false, &state), Some(Command::Show(View::Downloads)));
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
