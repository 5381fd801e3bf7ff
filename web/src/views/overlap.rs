//! What could run beside something else.

use yew::prelude::*;

use super::{Props, triage};
use crate::components::Rows;

/// The columns that answer "what, how much, at what risk".
const LEAD: &[&str] = &[
    "priority",
    "kernel_name",
    "verdict",
    "exclusive_ns",
    "savings_bound_ns",
    "dependency_risk",
    "recommendation",
];

pub fn view(props: &Props) -> Option<Html> {
    let rows = Rows::Overlaps(props.file.window.clone());
    triage::chapter(props, "overlap", &rows, LEAD)
}
