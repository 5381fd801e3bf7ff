//! Plans changes to the document around the events, and counts events whose text must be rewritten.

use trace::{Flags, Trace};

use crate::types::{RepairPlan, Rule};

/// Counts the text and frame rules; [`crate::Applier`] finds the places again as it copies.
#[inline(never)]
pub(crate) fn count(trace: &Trace, plan: &mut RepairPlan) {
    if trace.seen_flags().has(Flags::TEXT) {
        let text = trace.rows().filter(|row| trace.flags(*row).has(Flags::TEXT)).count();
        plan.count(Rule::Text, text as u64);
    }
    let layout = &trace.layout;
    let places = [
        layout.start > 0,
        layout.prefix_needs_rewrite,
        layout.gaps_need_rewrite,
        layout.suffix_needs_rewrite || layout.end.is_none(),
        layout.documents > 1,
        layout.trailing_bytes > 0,
        layout.lost_tail_bytes > 0,
    ];
    plan.count(Rule::Frame, places.iter().filter(|place| **place).count() as u64);
}
