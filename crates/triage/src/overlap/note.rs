//! The note above the overlap table: how it was made, and what it cannot tell.

use catalog::{Category, OverlapClass};
use report::units;

use super::groups::{StageSums, is_judged};
use super::sweep::SliceOverlap;
use super::verdict::at_least;
use super::{Concurrency, OverlapOptions, OverlapRow};
use crate::Stage;
use timeline::gpu::Gpu;
use timeline::percent;

/// Overlap of streams is told from this share of the busy time on, in percent.
const LEAST_TOLD_PCT: i64 = 1;
/// Communication and copies below this share of a stage with one stream are not worth a sentence, in percent.
const LEAST_PCT: i64 = 5;

/// Whether work of this category could move to a second stream.
fn can_move(category: Category) -> bool {
    category.overlap_class() == OverlapClass::Communication || category == Category::Memcpy
}

/// The time of communication and copies in a stage.
fn movable_ns(gpu: &Gpu<'_>, stage_of: &[Stage], stage: Stage) -> i64 {
    let of_stage = stage_of.iter().enumerate().filter(|(_, of)| **of == stage);
    let slices = of_stage.map(|(at, _)| gpu.slice(at));
    let moves = slices.filter(|slice| can_move(gpu.works[slice.work].category));
    moves.fold(0, |sum, slice| sum.saturating_add(slice.dur_ns))
}

/// Time in which copies from or to pageable memory run alone.
fn pageable_alone_ns(gpu: &Gpu<'_>, per_slice: &SliceOverlap) -> i64 {
    let is_pageable = |at: &usize| {
        let work = &gpu.works[gpu.slice(*at).work];
        work.category == Category::Memcpy && gpu.trace.strings.get(work.name).contains("Pageable")
    };
    let alone = (0..gpu.len()).filter(is_pageable).map(|at| per_slice.exclusive_ns[at]);
    alone.fold(0, i64::saturating_add)
}

/// The sentences above the table, which has these `rows`.
#[inline(never)]
pub(super) fn note(
    gpu: &Gpu<'_>,
    per_slice: &SliceOverlap,
    (stages, stage_of): (&[StageSums], &[Stage]),
    rows: &[OverlapRow],
    options: &OverlapOptions<'_>,
) -> String {
    let place_of = |stage: Stage| match stage {
        Stage::All => "work without a stage",
        stage => stage.title(),
    };
    if gpu.is_empty() {
        return "This trace has no GPU slices.".to_owned();
    }
    let mut sentences = Vec::new();
    let alone = |stage: &&StageSums| stage.n_streams < 2 && is_judged(stage, stages);
    let one: Vec<&str> = stages.iter().filter(alone).map(|stage| place_of(stage.stage)).collect();
    let moves = |stage: &StageSums| {
        let movable_ns = movable_ns(gpu, stage_of, stage.stage);
        movable_ns > 0 && at_least(movable_ns, LEAST_PCT, stage.total_ns)
    };
    if !one.is_empty()
        && (rows.iter().any(OverlapRow::is_advice) || stages.iter().filter(alone).any(moves))
    {
        let all = stages.iter().all(|stage| stage.n_streams < 2);
        let place = if all { String::new() } else { format!(" in {}", one.join(", ")) };
        let busy = stages.iter().filter(alone).any(|stage| stage.n_used > 1);
        let with = if busy { " that does 1% of the work" } else { "" };
        sentences.push(format!(
            "No second stream{with}{place}: only communication and copies are examined for overlap."
        ));
    }
    let Concurrency { busy_ns, overlapped_ns, peak_streams } = Concurrency::of(per_slice);
    let of = if gpu.n_beside() > 0 { " of the work launched while profiling" } else { "" };
    // (What is less than a hundredth changes nothing.)
    if at_least(overlapped_ns, LEAST_TOLD_PCT, busy_ns) {
        sentences.push(format!(
            "Two or more streams ran at the same time for {} of {} busy time{of} ({}); at most {peak_streams} streams did.",
            units::time(overlapped_ns),
            units::time(busy_ns),
            units::percent(percent(overlapped_ns, busy_ns)),
        ));
    } else if rows.iter().any(OverlapRow::is_advice)
        && stages.iter().any(|stage| stage.n_streams > 1)
    {
        sentences.push("Streams hardly ever ran at the same time.".to_owned());
    }
    let advised = rows.iter().any(OverlapRow::is_advice);
    if !advised {
        let pageable_ns = pageable_alone_ns(gpu, per_slice);
        if at_least(pageable_ns, LEAST_PCT, busy_ns) {
            sentences.push(format!(
                "Copies of pageable memory run alone for {}: only those of pinned memory can overlap kernels.",
                units::time(pageable_ns)
            ));
        }
    }
    if options.pair {
        sentences.push(
            "Times are from the measured trace, Python lines from the mapping trace.".to_owned(),
        );
    } else if options.captures {
        sentences.push(
            "Times are from this trace, Python lines of graph kernels from their capture traces."
                .to_owned(),
        );
    }
    sentences.join(" ")
}
