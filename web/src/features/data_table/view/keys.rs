//! Keyboard commands of a table.

use wasm_bindgen::JsCast;
use web_sys::{Element, KeyboardEvent};

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Goes somewhere; `true` extends the selection (Shift).
    Move(Move, bool),
    /// Selects every row.
    All,
    /// Shows or hides the details of the row.
    Open,
    /// Closes the details and leaves one row selected.
    Clear,
    /// Copies the selected rows.
    Copy,
}

/// Where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// So many rows down.
    Rows(isize),
    /// So many columns to the right.
    Columns(isize),
    /// The first row.
    FirstRow,
    /// The last row.
    LastRow,
}

/// Whether the key was pressed on the grid itself.
pub fn on_grid(event: &KeyboardEvent) -> bool {
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    target.is_some_and(|target| target.tag_name() == "TABLE")
}

/// The step of a key press; a page has `page` rows.
pub fn step(event: &KeyboardEvent, page: usize) -> Option<Step> {
    if event.alt_key() {
        return None;
    }
    let modified = event.ctrl_key() || event.meta_key();
    step_of(&event.key(), modified, event.shift_key(), page)
}

fn step_of(key: &str, modified: bool, shift: bool, page: usize) -> Option<Step> {
    let page = page.saturating_sub(2).max(1) as isize;
    let to = match (key, modified) {
        ("c" | "C", true) => return Some(Step::Copy),
        ("a" | "A", true) => return Some(Step::All),
        ("Enter", false) => return Some(Step::Open),
        ("Escape", false) => return Some(Step::Clear),
        ("ArrowDown", false) => Move::Rows(1),
        ("ArrowUp", false) => Move::Rows(-1),
        ("ArrowRight", false) => Move::Columns(1),
        ("ArrowLeft", false) => Move::Columns(-1),
        ("PageDown", false) => Move::Rows(page),
        ("PageUp", false) => Move::Rows(-page),
        ("Home", _) => Move::FirstRow,
        ("End", _) => Move::LastRow,
        _ => return None,
    };
    Some(Step::Move(to, shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_grid() {
        assert_eq!(step_of("ArrowDown", false, true, 10), Some(Step::Move(Move::Rows(1), true)));
        assert_eq!(step_of("PageUp", false, false, 10), Some(Step::Move(Move::Rows(-8), false)));
        assert_eq!(step_of("PageUp", false, false, 0), Some(Step::Move(Move::Rows(-1), false)));
        assert_eq!(step_of("c", true, false, 10), Some(Step::Copy));
        // Typing a letter, or a browser's own key, is not for the table.
        assert_eq!(step_of("c", false, false, 10), None);
        assert_eq!(step_of("ArrowLeft", true, false, 10), None);
    }
}
