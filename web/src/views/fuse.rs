//! Fused kernels and fusion candidates.

use yew::prelude::*;

use super::{Props, triage};
use crate::components::Rows;

pub fn view(props: &Props) -> Option<Html> {
    triage::chapter(props, "fuse", &Rows::Plain)
}
