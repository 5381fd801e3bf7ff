//! What to know before reading the overlap table: how it was judged, and where it could not be.

use report::units;

use super::sweep::SliceOverlap;
use super::table::{StageSums, is_judged};
use super::{Concurrency, OverlapOptions};
use crate::gpu::Gpu;
use crate::percent;
use crate::triage::site::Attribution;

/// The sentences above the table.
#[inline(never)]
pub(super) fn note(
    gpu: &Gpu<'_>,
    per_slice: &SliceOverlap,
    stages: &[StageSums],
    attribution: Option<&Attribution>,
    options: &OverlapOptions<'_>,
) -> String {
    if gpu.len() == 0 {
        return "No GPU slice is in this trace: there is nothing to overlap.".to_owned();
    }
    let mut sentences = Vec::new();
    let alone = |stage: &&StageSums| stage.n_streams < 2 && is_judged(stage, stages);
    let one: Vec<&str> = stages.iter().filter(alone).map(|stage| stage.stage.title()).collect();
    if !one.is_empty() {
        let all = stages.iter().all(|stage| stage.n_streams < 2);
        let place = if all { String::new() } else { format!(" in {}", one.join(", ")) };
        let busy = stages.iter().filter(alone).any(|stage| stage.n_used > 1);
        let with = if busy { " that does 1% of the work" } else { "" };
        sentences.push(format!(
            "No second stream{with}{place}: overlap cannot be judged, only candidates for moving to one \
             (communication and copies) are listed."
        ));
    }
    let Concurrency { busy_ns, overlapped_ns, peak_streams } = Concurrency::of(per_slice);
    if overlapped_ns > 0 {
        sentences.push(format!(
            "Two streams or more ran at once for {} of {} busy ({}), {peak_streams} at most.",
            units::time(overlapped_ns),
            units::time(busy_ns),
            units::percent(percent(overlapped_ns, busy_ns)),
        ));
    } else if stages.iter().any(|stage| stage.n_streams > 1) {
        sentences.push("No two streams ever ran at once.".to_owned());
    }
    let sites = attribution.map_or(&[][..], |attribution| &attribution.sites);
    sentences.push(
        if options.pair {
            "Times are the formal trace's, places in Python the mapping trace's."
        } else if options.captures {
            "Times are this trace's, places in Python of what graphs ran are their captures'."
        } else if sites.iter().any(|site| site.location.is_some()) {
            "Judged from a single trace: the times include what recording ops and stacks cost."
        } else if sites.iter().any(|site| site.cpu_op.is_some()) {
            "Judged from a single trace: the times include what recording ops cost."
        } else {
            "Judged from a single trace."
        }
        .to_owned(),
    );
    sentences.join(" ")
}
