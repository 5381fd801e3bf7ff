//! How much of a table is visible, which only the browser knows, and what follows from that.

use gloo::timers::callback::Timeout;
use gloo::utils::window;
use kinetoscope::report::Table;
use web_sys::HtmlElement;
use yew::prelude::*;

use super::grid::Grid;
use crate::features::data_table::queries::panel;
use crate::features::data_table::queries::scroll::{self, Window};
use crate::shared::Shared;
use crate::state::Action;
use crate::tasks::Tasks;
use crate::tasks::browser::{AFTER_PAINT_MS, after, listen};

/// Longer than a key that is held down takes to repeat.
const FOLLOW_AFTER_MS: u32 = 150;

/// The visible rows, and the room for columns.
#[derive(Clone)]
pub struct Room {
    pub scroller: NodeRef,
    pub width_px: UseStateHandle<u32>,
    seen: UseStateHandle<Window>,
}

impl Room {
    /// The rows to draw. (Between a change of rows and the effect after it, what was seen may still be that of the old rows.)
    pub fn window(&self, n_rows: usize) -> Window {
        Window { end: self.seen.end.min(n_rows), first: self.seen.first.min(n_rows), ..*self.seen }
    }

    /// Asks the browser, for so many rows.
    pub fn measure(&self) -> Callback<usize> {
        let own = self.clone();
        Callback::from(move |n_rows: usize| {
            if let Some(element) = own.scroller.cast::<HtmlElement>() {
                let top = f64::from(element.scroll_top());
                own.seen.set(scroll::window(n_rows, top, f64::from(element.client_height())));
                // A table that is not drawn (in a closed part of the page) has no room; it keeps what it had.
                if let Ok(width @ 1..) = u32::try_from(element.client_width()) {
                    own.width_px.set(width);
                }
            }
        })
    }

    /// The same once what is new is drawn.
    fn measure_soon(&self, n_rows: usize) -> Timeout {
        let measure = self.measure();
        after(AFTER_PAINT_MS, Box::new(move || measure.emit(n_rows)))
    }
}

/// The room of a table with so many rows; measured again where the window changes.
#[hook]
pub fn use_room(n_rows: usize) -> Room {
    let room = Room {
        scroller: use_node_ref(),
        width_px: use_state_eq(first_width_px),
        seen: use_state_eq(|| scroll::window(n_rows, 0.0, 600.0)),
    };
    let measure = room.measure();
    use_effect_with(n_rows, move |n_rows| {
        let n_rows = *n_rows;
        let listener = listen(&window(), "resize", Box::new(move |_| measure.emit(n_rows)));
        move || drop(listener)
    });
    room
}

/// Other rows: from the top again.
#[hook]
pub fn use_new_rows(grid: &Grid, room: &Room) {
    let first_rows = use_mut_ref(|| true);
    let (own, room) = (grid.clone(), room.clone());
    use_effect_with((grid.shown.clone(), grid.table.clone()), move |(shown, _)| {
        // New ones are there already, and asking an element where it is before the browser has laid it out makes it do so at once.
        if !first_rows.replace(false) {
            if let Some(element) = own.scroller.cast::<HtmlElement>() {
                element.set_scroll_top(0);
            }
            // Whoever sorts by the keyboard stays on the header.
            let head = own.selection.head.then(|| (*own.selection).clone());
            own.selection.set(head.unwrap_or_default());
            own.details_open.set(false);
        }
        let timer = room.measure_soon(shown.rows.len());
        move || drop(timer)
    });
}

/// The least width of the columns; a stylesheet cannot know it, and the page's policy forbids style attributes, so it is set on the
/// element.
#[hook]
pub fn use_least_width(grid: &Grid) {
    let element = grid.element.clone();
    use_effect_with(grid.layout.clone(), move |layout| {
        if let Some(element) = element.cast::<HtmlElement>() {
            let width = format!("{}px", layout.least_px);
            let _set = element.style().set_property("min-width", &width);
        }
    });
}

/// Says whose details are open, and measures again: at the right they take room from the rows.
#[hook]
pub fn use_details(
    row: Option<u32>,
    on_details: Option<&Callback<Option<u32>>>,
    grid: &Grid,
    room: &Room,
) {
    use_effect_with((row, on_details.cloned()), move |(row, on_details)| {
        if let Some(on_details) = on_details {
            on_details.emit(*row);
        }
    });
    let (room, n_rows) = (room.clone(), grid.shown.rows.len());
    use_effect_with(row.is_some(), move |_| {
        let timer = room.measure_soon(n_rows);
        move || drop(timer)
    });
}

/// The timeline below the view shows what the active row is about, once a person stays on it.
#[hook]
pub fn use_follow(row: Option<u32>, table: &Shared<Table>, grid: &NodeRef, tasks: &Tasks) {
    let (grid, tasks) = (grid.clone(), tasks.clone());
    use_effect_with((row, table.clone()), move |(row, table)| {
        // (Tables of the timeline are outside of the view.)
        let in_view =
            grid.cast::<HtmlElement>().and_then(|grid| grid.closest("main").ok().flatten());
        let sought = row.and_then(|row| panel::sought(table, row as usize));
        let timer = sought.filter(|_| in_view.is_some()).map(|sought| {
            let follow = move || tasks.dispatch(Action::Followed(sought));
            after(FOLLOW_AFTER_MS, Box::new(follow))
        });
        move || drop(timer)
    });
}

/// The room for columns before the table is laid out: what the navigation and the padding of a view leave.
fn first_width_px() -> u32 {
    let screen = window().inner_width().ok().and_then(|width| width.as_f64()).unwrap_or(1280.0);
    let taken = if screen < 900.0 { 26.0 } else { 270.0 };
    (screen - taken).max(200.0) as u32
}
