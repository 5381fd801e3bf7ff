//! Overlap candidates.

use yew::prelude::*;

use super::{Props, triage};
use crate::components::Rows;

pub fn view(props: &Props) -> Option<Html> {
    let rows = Rows::Overlaps(props.file.window.ready().cloned());
    triage::chapter(props, "overlap", &rows)
}
