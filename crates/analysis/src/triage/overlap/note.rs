//! The note above the overlap table: how it was made, and what it cannot tell.

use catalog::{Category, OverlapClass};
use report::units;

use super::sweep::SliceOverlap;
use super::table::{StageSums, is_judged};
use super::{Concurrency, OverlapOptions};
use crate::gpu::Gpu;
use crate::percent;
use crate::triage::Stage;
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
    let place_of = |stage: Stage| match stage {
        Stage::All => "work without a stage",
        stage => stage.title(),
    };
    if gpu.len() == 0 {
        return "This trace has no GPU slices.".to_owned();
    }
    let mut sentences = Vec::new();
    let alone = |stage: &&StageSums| stage.n_streams < 2 && is_judged(stage, stages);
    let one: Vec<&str> = stages.iter().filter(alone).map(|stage| place_of(stage.stage)).collect();
    let can_move = |category: Category| {
        category.overlap_class() == OverlapClass::Communication || category == Category::Memcpy
    };
    if !one.is_empty() && gpu.works.iter().any(|work| can_move(work.category)) {
        let all = stages.iter().all(|stage| stage.n_streams < 2);
        let place = if all { String::new() } else { format!(" in {}", one.join(", ")) };
        let busy = stages.iter().filter(alone).any(|stage| stage.n_used > 1);
        let with = if busy { " that does 1% of the work" } else { "" };
        sentences.push(format!(
            "No second stream{with}{place}: only communication and copies are examined for overlap."
        ));
    }
    let Concurrency { busy_ns, overlapped_ns, peak_streams } = Concurrency::of(per_slice);
    if overlapped_ns > 0 {
        sentences.push(format!(
            "Two or more streams ran at the same time for {} of {} busy time ({}); at most {peak_streams} streams did.",
            units::time(overlapped_ns),
            units::time(busy_ns),
            units::percent(percent(overlapped_ns, busy_ns)),
        ));
    } else if stages.iter().any(|stage| stage.n_streams > 1) {
        sentences.push("Streams never ran at the same time.".to_owned());
    }
    let sites = attribution.map_or(&[][..], |attribution| &attribution.sites);
    sentences.push(
        if options.pair {
            "Times are from the measured trace, Python lines from the mapping trace."
        } else if options.captures {
            "Times are from this trace, Python lines of graph kernels from their capture traces."
        } else if sites.iter().any(|site| site.location.is_some()) {
            "Single trace: times include the overhead of recording ops and stacks."
        } else if sites.iter().any(|site| site.cpu_op.is_some()) {
            "Single trace: times include the overhead of recording ops."
        } else {
            "Single trace."
        }
        .to_owned(),
    );
    sentences.join(" ")
}
