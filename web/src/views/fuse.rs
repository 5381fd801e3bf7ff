//! What is fused, and what could be.

use yew::prelude::*;

use super::{Props, triage};
use crate::components::Rows;

/// The columns that answer "what, whether it is, how much, where".
const LEAD: &[&str] = &[
    "pattern",
    "status",
    "related_ns",
    "time_share_pct",
    "confidence",
    "current_location",
    "candidate_fused_path",
];

pub fn view(props: &Props) -> Option<Html> {
    triage::chapter(props, "fuse", &Rows::Plain, LEAD)
}
