//! Work whose launches are missing in the middle of the recording.

use report::units::{count, time};

use super::Facts;

/// Of the GPU time: where the launches of more are missing, figures of what the recording launched are not those of the run.
const MUCH: f64 = 0.1;

/// The GPU slices whose launches are missing in the middle of the recording, and their time.
pub(crate) fn unseen(facts: &Facts<'_>) -> (u64, i64) {
    let (links, before) = (&facts.host.links, facts.triage.before_window);
    let n = (links.orphans as u64).saturating_sub(before.n_slices);
    (n, links.orphan_ns.saturating_sub(before.total_ns))
}

/// That figures of what iterations launched leave out work whose launches are missing, where that is much of the GPU time.
pub(crate) fn left_out(facts: &Facts<'_>) -> Option<String> {
    let (n, ns) = unseen(facts);
    let is_much = n > 0 && ns as f64 > MUCH * facts.busy_ns() as f64;
    is_much.then(|| {
        format!(
            "The launches of {} of {} GPU slices ({}) are not in the file: what an iteration launched, and the GPU span of it, leave them out.",
            count(n),
            count(facts.host.links.gpu as u64),
            time(ns)
        )
    })
}
