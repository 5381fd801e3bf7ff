//! Fused kernels and fusion candidates.

use yew::prelude::*;

use super::stages::Rows;
use super::view::chapter;
use crate::views::Props;

pub fn view(props: &Props) -> Option<Html> {
    chapter(props, "fuse", &Rows::Plain)
}
