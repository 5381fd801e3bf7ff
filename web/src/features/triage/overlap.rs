//! Overlap candidates.

use yew::prelude::*;

use super::stages::Rows;
use super::view::chapter;
use crate::views::Props;

pub fn view(props: &Props) -> Option<Html> {
    let rows = Rows::Overlaps(props.file.window.ready().cloned());
    chapter(props, "overlap", &rows)
}
