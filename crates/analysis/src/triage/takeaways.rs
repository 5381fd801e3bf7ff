//! What to know first, in sentences: the largest cause of lost wall time, then what the GPU time goes to, then what to do.

use catalog::Category;
use catalog::remedies::{Execution, Parts, Phase, RunFacts, applicable};
use report::units;

use super::DeviceTables;
use super::idle::cause::{Cause, Explained};
use super::report::Coverage;
use super::stages::{Stage, StageRow};
use crate::percent;

/// A share of GPU time from which communication gets a sentence, and a share of the GPU span from which it is lost time, in
/// percent.
const COMMUNICATION_PCT: f64 = 10.0;
/// From this sum of durations, in GPU spans, a sentence explains that shares are of the sum.
const PARALLEL: f64 = 1.15;
/// Advice of this priority or a better one is a takeaway: from 2% of the GPU span.
const HEADLINE: u8 = 2;
/// A stage's idle time from which its launches are worth a sentence, in percent of the GPU span.
const LIMIT_PCT: f64 = 10.0;
/// GPU time blocked from which the pace of launches says nothing, in percent of the span.
const BLOCKED_PCT: f64 = 10.0;

/// Figures of the whole trace.
pub(super) struct Seen<'a> {
    /// The GPU span of each device.
    pub spans_ns: &'a [i64],
    pub coverage: &'a Coverage,
    /// Tensor parallel size.
    pub tp: Option<u32>,
    pub run: &'a RunFacts,
}

/// The sentences.
pub(super) fn takeaways(
    tables: &DeviceTables,
    seen: &Seen<'_>,
    idle: Option<(Explained, String)>,
) -> Vec<String> {
    let Seen { spans_ns, coverage, run, .. } = seen;
    if coverage.total_ns == 0 {
        return Vec::new();
    }
    let span_ns = spans_ns.iter().copied().fold(0, i64::saturating_add);
    let cause = idle.as_ref().map(|(found, _)| found.cause);
    let (mut lost, mut rest): (Vec<(i64, String)>, Vec<String>) = (Vec::new(), Vec::new());
    lost.extend(idle.map(|(found, text)| (found.ns(), text)));
    rest.extend(composition(tables, coverage));
    if let Some((exposed_ns, text)) = communication(tables, seen, span_ns) {
        if percent(exposed_ns, span_ns) >= COMMUNICATION_PCT {
            lost.push((exposed_ns, text));
        } else {
            rest.push(text);
        }
    }
    trace::sort_by(&mut lost, |a, b| b.0.cmp(&a.0));
    let mut said: Vec<String> = lost.into_iter().map(|(_, text)| text).collect();
    said.append(&mut rest);
    let parallel = percent(coverage.total_ns, span_ns) / 100.0;
    if parallel >= PARALLEL {
        let windows = match spans_ns {
            [_] => "the GPU span".to_owned(),
            several => format!("the spans of {} GPUs", several.len()),
        };
        said.push(format!(
            "Kernels run concurrently: durations sum to {parallel:.2} times {windows}. Shares of GPU time are of that sum, \
             not of wall time."
        ));
    }
    let paced = percent(coverage.gpu_blocked_ns, span_ns) < BLOCKED_PCT
        && !matches!(cause, Some(Cause::Loading | Cause::Allocation | Cause::Queued));
    if paced {
        said.extend(launch_bound(&tables.stages, run, span_ns, spans_ns.len() > 1));
    }
    let blocked = coverage.gpu_blocked_ns > 0;
    let span = if blocked { "the GPU span without the blocked time" } else { "the GPU span" };
    let fusion =
        tables.fuse.iter().filter(|row| row.priority.is_some_and(|priority| priority <= HEADLINE));
    if let Some((best, saved_ns)) =
        fusion.filter_map(|row| Some((row, row.savings_bound_ns?))).max_by_key(|(_, ns)| *ns)
    {
        said.push(format!(
            "Top fusion candidate: {}. It saves at most {} ({} of {span}).",
            best.pattern,
            units::time(saved_ns),
            units::percent(best.savings_pct.unwrap_or_default()),
        ));
    }
    said
}

fn title(id: &str) -> &str {
    Category::ALL
        .iter()
        .find(|category| category.id() == id)
        .map_or(id, |category| category.title())
}

/// What the GPU time goes to.
fn composition(tables: &DeviceTables, coverage: &Coverage) -> Option<String> {
    let mut categories: Vec<(&str, i64)> = Vec::new();
    for row in &tables.kernels {
        match categories.iter_mut().find(|(id, _)| *id == row.category) {
            Some((_, ns)) => *ns = ns.saturating_add(row.total_ns),
            None => categories.push((&row.category, row.total_ns)),
        }
    }
    trace::sort_by(&mut categories, |a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let share = |ns: i64| units::percent(percent(ns, coverage.total_ns));
    match categories.as_slice() {
        [(first, ns), (second, more), ..] => {
            let begin =
                if percent(*ns, coverage.total_ns) > 50.0 { "Most" } else { "The largest part of" };
            Some(format!(
                "{begin} GPU time goes to {} ({}), then {} ({}).",
                title(first),
                share(*ns),
                title(second),
                share(*more)
            ))
        }
        [(first, _)] => Some(format!("All GPU time goes to {}.", title(first))),
        [] => None,
    }
}

/// Communication with what of it is exposed: that is what overlap could hide.
fn communication(
    tables: &DeviceTables,
    Seen { coverage, tp, .. }: &Seen<'_>,
    span_ns: i64,
) -> Option<(i64, String)> {
    let id = Category::Communication.id();
    let rows = || tables.kernels.iter().filter(|row| row.category == id);
    let total_ns = rows().fold(0_i64, |sum, row| sum.saturating_add(row.total_ns));
    let exposed_ns = rows().fold(0_i64, |sum, row| sum.saturating_add(row.exposed_ns));
    if percent(total_ns, coverage.total_ns) < COMMUNICATION_PCT {
        return None;
    }
    let ranks = match tp {
        Some(tp) if *tp > 1 => format!(" over {tp} tensor-parallel ranks"),
        _ => String::new(),
    };
    let exposed = if exposed_ns == 0 {
        "none of it is exposed".to_owned()
    } else {
        format!(
            "{} of it is exposed ({} of the GPU span)",
            units::time(exposed_ns),
            units::percent(percent(exposed_ns, span_ns))
        )
    };
    let text = format!(
        "Communication{ranks} takes {} ({} of GPU time); {exposed}. It may include waiting for the slowest rank, which the \
         trace of one rank cannot show.",
        units::time(total_ns),
        units::percent(percent(total_ns, coverage.total_ns)),
    );
    Some((exposed_ns, text))
}

/// The stages whose limit is the CPU's launches. What belongs to no stage is named only where there are no stages.
fn launch_bound(
    stages: &[StageRow],
    run: &RunFacts,
    span_ns: i64,
    several: bool,
) -> Option<String> {
    let staged = stages.iter().any(|row| !matches!(row.stage, Stage::All | Stage::Capture));
    let bound: Vec<&StageRow> = stages
        .iter()
        .filter(|row| row.launch_bound == Some(true) && row.stage != Stage::Capture)
        .filter(|row| row.stage != Stage::All || !staged)
        .filter(|row| {
            let idle_ns = row.span_ns as f64 * (100.0 - row.gpu_busy_pct) / 100.0;
            idle_ns * 100.0 >= span_ns as f64 * LIMIT_PCT
        })
        .collect();
    let figures = |row: &StageRow| {
        Some(format!(
            "the GPU is busy {} of its span, the median kernel takes {}, median launch-to-start: {}",
            units::percent(row.gpu_busy_pct),
            units::time(row.kernel_p50_ns?),
            signed(row.wait_p50_ns?),
        ))
    };
    let named = |row: &StageRow| {
        let device = if several { format!(" on device {}", row.device) } else { String::new() };
        match row.stage {
            Stage::All => format!("the run{device}"),
            stage => format!("stage {}{device}", stage.title()),
        }
    };
    let parts: Vec<String> = bound
        .iter()
        .filter_map(|row| Some(format!("{} ({})", named(row), figures(row)?)))
        .collect();
    if parts.is_empty() {
        return None;
    }
    // (The pace is known only where single kernels are launched, not graphs.)
    let update = bound.iter().all(|row| row.stage == Stage::Optimizer);
    let phase = Some(if update { Phase::Optimizer } else { Phase::Forward });
    let of = update.then_some(Parts::Aten);
    let facts = RunFacts { execution: Some(Execution::Eager), phase, parts: of, ..*run };
    let ids = ["cuda-graph", "hip-graph", "server-graph", "foreach-optimizer"];
    let remedy = applicable(&ids, &facts);
    let action = remedy.first().map(|remedy| format!(" {}", remedy.action)).unwrap_or_default();
    Some(format!(
        "The CPU limits {}: it launches kernels more slowly than the GPU runs them.{action}",
        parts.join("; ")
    ))
}

/// A time with its sign.
fn signed(ns: i64) -> String {
    match ns {
        0.. => units::time(ns),
        _ => format!("-{}", units::time(ns.saturating_neg())),
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{Fixture, kernel, slice};
    use crate::{Sources, TriageOptions, triage};

    const MS: i64 = 1_000_000;
    const GEMM: &str = "ampere_sgemm_128x64_tn";
    const REDUCE: &str =
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    const ADD: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)";

    fn said(fixture: Fixture) -> Vec<String> {
        triage(&fixture.finish(), &TriageOptions::default(), &Sources::default()).takeaways
    }

    #[test]
    fn communication_is_said_with_what_of_it_is_exposed() {
        let mut exposed = Fixture::default();
        exposed.push(kernel(GEMM).at(0, 10 * MS));
        exposed.push(kernel(REDUCE).at(10 * MS, 5 * MS).on(0, 20));
        let exposed = said(exposed);
        let first = "Communication takes 5.00 ms (33.3% of GPU time); 5.00 ms of it is exposed (33.3% of the GPU span).";
        assert!(exposed[0].starts_with(first), "lost time comes first: {exposed:?}");
        assert_eq!(exposed[1], "Most GPU time goes to GEMM (66.7%), then Communication (33.3%).");
        let mut hidden = Fixture::default();
        hidden.push(kernel(GEMM).at(0, 10 * MS));
        hidden.push(kernel(REDUCE).at(2 * MS, 5 * MS).on(0, 20));
        let hidden = said(hidden);
        assert!(hidden[0].starts_with("Most GPU time goes to GEMM"), "{hidden:?}");
        assert!(hidden[1].contains("none of it is exposed"), "{hidden:?}");
    }

    /// 40 kernels, each launched long after the one before was done.
    fn starved(annotation: Option<&str>) -> Fixture {
        let mut fixture = Fixture::default();
        if let Some(name) = annotation {
            fixture.push(slice("user_annotation", name).on(1, 1).at(0, 40 * 100_000));
        }
        for at in 0..40_i64 {
            let begun_ns = at * 100_000;
            fixture.push(slice("cpu_op", "aten::add").on(1, 1).at(begun_ns, 90_000));
            let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(at + 1);
            fixture.push(launch.at(begun_ns + 1_000, 4_000));
            fixture.push(kernel(ADD).at(begun_ns + 7_000, 5_000).link(at + 1));
        }
        fixture
    }

    #[test]
    fn a_starved_gpu_is_told_with_what_to_do_in_that_phase() {
        let run = said(starved(None));
        let limits = run.iter().find(|text| text.starts_with("The CPU limits the run")).unwrap();
        assert!(limits.contains("median launch-to-start: 2.00 µs"), "{limits}");
        assert!(limits.contains("Use CUDA graphs"), "{limits}");
        let step = said(starved(Some("Optimizer.step#SGD.step")));
        let limits = step.iter().find(|text| text.starts_with("The CPU limits")).unwrap();
        assert!(limits.contains("stage optimizer"), "{limits}");
        assert!(limits.contains("foreach=True or fused=True"), "{limits}");
        assert!(!limits.contains("graphs"), "{limits}");
        let mut busy = starved(None);
        busy.push(kernel(GEMM).at(5 * MS, 400 * MS));
        let busy = said(busy);
        assert!(!busy.iter().any(|text| text.contains("The CPU limits")), "{busy:?}");
    }
}
