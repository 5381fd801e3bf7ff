//! The timeline below a view: it follows the row that is selected in a table of the view.

use crate::protocol::JobId;
use crate::state::next::Next;
use crate::state::{Sought, View, on_demand};

/// What a selected row is about, and the file and view of its table.
pub type Followed = (JobId, View, Sought);

/// A row of a table was selected.
pub(crate) fn follow(next: &mut Next, sought: Sought) {
    let view = next.state.view;
    next.state.followed = next.state.selected.map(|job| (job, view, sought));
    catch_up(next);
}

/// The timeline is below the views, or no longer.
pub(crate) fn dock(next: &mut Next, docked: bool) {
    next.state.docked = docked;
    catch_up(next);
}

/// Shows what was selected last, once, if that is in the view above the timeline.
fn catch_up(next: &mut Next) {
    let state = &next.state;
    // (A table of the timeline itself changes with every slice that is selected.)
    let shown = state.docked && state.view != View::Timeline;
    let place = (state.selected, state.view);
    if let Some((job, view, sought)) = next.state.followed.take_if(|_| shown)
        && place == (Some(job), view)
    {
        on_demand::show_in_timeline(next, sought);
    }
}
