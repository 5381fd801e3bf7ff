//! What to know first, in sentences: the largest cause of lost wall time, then what the GPU time goes to, then the largest fusion.

mod communication;
mod composition;
mod limits;

use catalog::Category;
use report::units;
use trace::Trace;

use super::cold_work::ColdWork;
use super::collectives::Waiting;
use super::device_time::DeviceTime;
use super::fuse::FuseRow;
use super::idle::cause::Cause;
use super::priority::Priority;
use super::report::{Coverage, TOP_FUSION};
use super::tables::DeviceTables;
use communication::communication;
use composition::composition;
use timeline::percent;

pub(super) use limits::{BLOCKED_PCT, Limits};
pub use limits::{LIMITING_SHARE, SLOWED_BY_STACKS};

/// A share of GPU time from which communication gets a sentence, and a share of the GPU span from which it is lost time, in
/// percent.
const COMMUNICATION_PCT: f64 = 10.0;
/// From this sum of durations, in GPU spans, a sentence explains that shares are of the sum.
const PARALLEL: f64 = 1.15;
/// Advice of this priority or a better one is a takeaway: from 2% of the GPU span.
const HEADLINE: Priority = Priority::P2;
/// Below this busy share neither the categories of GPU time nor communication that costs little get a sentence, in percent.
const IDLE_PCT: f64 = 25.0;
/// Beside graphs a fusion is a takeaway from this share of the GPU span on, in percent.
const FUSION_PCT: f64 = 2.0;
/// The same from which the busy share says nothing.
const UNREAL_PCT: f64 = 50.0;
/// Generated kernels without names of their own get a sentence from this share of GPU time on, in percent.
const BARE_PCT: f64 = 5.0;
/// Where set-up takes this share of the GPU span, what the GPU did is that of a first run, in percent.
const FIRST_RUN_PCT: f64 = 50.0;

/// How the takeaway on what comes before the first GPU work begins.
pub const LATE_START: &str = "The first GPU work begins";

/// From this time before the first GPU work on, and from this share of the recording on, it gets a sentence: in ns and percent.
const BEFORE_NS: i64 = 10_000_000;
const BEFORE_PCT: f64 = 50.0;

/// The time from the first event to the first GPU work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    pub ns: i64,
    /// Of it, the time in which the CPU is in a data loader.
    pub loader_ns: i64,
    /// Where the CPU is for most of it, in words; empty if nowhere.
    pub place: String,
}

/// Figures of the whole trace.
pub(super) struct Seen<'a> {
    pub trace: &'a Trace,
    /// What comes before the first GPU work.
    pub before: Before,
    /// The time of all devices.
    pub time: &'a DeviceTime,
    pub n_devices: usize,
    pub coverage: &'a Coverage,
    /// Tensor parallel size.
    pub tp: Option<u32>,
    /// What collectives wait for other ranks; `None` where their sizes are not recorded.
    pub waiting: Option<Waiting>,
}

/// What is said of idle time.
pub(super) struct IdleSaid {
    pub cause: Cause,
    /// The idle time of the cause.
    pub ns: i64,
    /// Whether the window is the profiler's steps.
    pub of_steps: bool,
    pub text: String,
}

/// The sentences.
pub(super) fn takeaways(
    tables: &DeviceTables,
    seen: &Seen<'_>,
    limits: Option<&Limits>,
    idle: Option<IdleSaid>,
) -> Vec<String> {
    let Seen { time, coverage, .. } = seen;
    if coverage.total_ns == 0 {
        return Vec::new();
    }
    let cause = idle.as_ref().map(|found| found.cause);
    let by_launches = cause == Some(Cause::Paced) && limits.is_some_and(|of| !of.has_graphs);
    let (mut lost, mut rest): (Vec<(i64, String)>, Vec<String>) = (Vec::new(), Vec::new());
    let communicates = communication(seen);
    // (What a first run does, a later one may not: a library tries several algorithms.)
    let repeats = communicates.is_some() && largest(time) == Some(Category::Communication);
    let first_run = idle.as_ref().is_some_and(|found| {
        found.cause == Cause::SetUp && percent(found.ns, time.span_ns) >= FIRST_RUN_PCT
    });
    // (Where the run waits for something else, a little communication is no lead.)
    let waits_elsewhere = cause == Some(Cause::Queued)
        && percent(coverage.gpu_blocked_ns, time.span_ns) >= UNREAL_PCT;
    // (What a GPU does that is hardly ever busy is no lead.)
    let is_idle = !waits_elsewhere && percent(time.busy_ns, time.span_ns) < IDLE_PCT;
    let communicates = communicates.filter(|(exposed_ns, _)| {
        let is_lost = percent(*exposed_ns, time.span_ns) >= COMMUNICATION_PCT;
        is_lost || !(waits_elsewhere || is_idle)
    });
    let is_displaced = tables.displaced.as_ref().is_some_and(|found| found.is_much(None));
    let warm = tables.warm.as_ref().map(|(warm, _)| warm);
    let cold_work = warm.and_then(|warm| ColdWork::of(&tables.merged, warm));
    if let Some(work) = cold_work.filter(|_| !is_displaced) {
        rest.push(work.sentence());
    } else if !first_run && !repeats && !is_idle && !is_displaced {
        let bare_ns = if without_names(coverage).is_some() { coverage.bare_ns } else { 0 };
        let gemm_ns = coverage.known_convolution_gemm_ns();
        rest.extend(composition(time, tables, gemm_ns, bare_ns));
    }
    lost.extend(late_start(seen));
    if let Some((exposed_ns, text)) = communicates {
        if percent(exposed_ns, time.span_ns) >= COMMUNICATION_PCT {
            lost.push((exposed_ns, text));
        } else {
            rest.push(text);
        }
    }
    lost.extend(idle.map(|found| (found.ns, found.text)));
    trace::sort_by(&mut lost, |a, b| b.0.cmp(&a.0));
    let mut said: Vec<String> = lost.into_iter().map(|(_, text)| text).collect();
    said.append(&mut rest);
    said.extend(without_names(coverage));
    said.extend(concurrent(seen));
    // (Where the launches are the largest cause, that sentence says it.)
    if cause.is_some_and(|cause| cause != Cause::Paced) {
        said.extend(limits.map(Limits::sentence));
    }
    said.extend(match by_launches {
        true => top_beside_launches(tables, seen),
        false => top_fusion(tables, coverage),
    });
    said
}

/// Those on idle time, if they are said: a diagnosis tells that, too.
pub(super) fn of_idle(idle: Option<&IdleSaid>, limits: Option<&Limits>) -> Vec<String> {
    let idle = idle.map(|found| found.text.clone());
    idle.into_iter().chain(limits.map(Limits::sentence)).collect()
}

/// That generated kernels have no names of their own.
fn without_names(coverage: &Coverage) -> Option<String> {
    let share_pct = percent(coverage.bare_ns, coverage.total_ns);
    (share_pct >= BARE_PCT).then(|| {
        format!(
            "{} of the GPU time is in TorchInductor kernels without unique names (triton__...), so what they do is unknown. Set \
             torch._inductor.config.triton.unique_kernel_names = True, and record again.",
            units::percent(share_pct)
        )
    })
}

/// That durations sum to more than the GPU span.
fn concurrent(Seen { time, n_devices, .. }: &Seen<'_>) -> Option<String> {
    let parallel = percent(time.total_ns, time.span_ns) / 100.0;
    (parallel >= PARALLEL).then(|| {
        let windows = spans(*n_devices);
        format!(
            "Kernels run concurrently: durations sum to {parallel:.2} times {windows}. Shares of GPU time are of that sum, \
             not of wall time."
        )
    })
}

/// The fusion that saves most, if that is a takeaway.
fn top_fusion(tables: &DeviceTables, coverage: &Coverage) -> Option<String> {
    let is_headline = |row: &&FuseRow| row.priority.is_some_and(|priority| priority <= HEADLINE);
    let bound = |row: &FuseRow| match row.together {
        Some(all) => Some((all.saved_ns, all.saved_pct)),
        None => row.savings_bound_ns.zip(row.savings_pct),
    };
    let fusion = tables.fuse.iter().filter(is_headline);
    let bounds = fusion.filter_map(|row| Some((row, bound(row)?)));
    let (best, (saved_ns, saved_pct)) = bounds.max_by_key(|(_, (ns, _))| *ns)?;
    let bounded = || {
        format!(
            "{TOP_FUSION}: {}. It saves at most {} ({} of {}){}.",
            best.pattern,
            units::time(saved_ns),
            units::percent(saved_pct),
            tables.span.as_deref().unwrap_or("the GPU span"),
            match best.is_mostly_launches {
                true => ", most of it CPU time of launches, which profiling lengthens",
                false => "",
            },
        )
    };
    Some(unsized_attention(best, coverage).unwrap_or_else(bounded))
}

/// The sentence of an attention whose sizes were not read: its bound needs them, and what has read them would print another one.
fn unsized_attention(best: &FuseRow, coverage: &Coverage) -> Option<String> {
    (best.pattern_id == "K04" && !coverage.has_inputs).then(|| {
        format!(
            "{TOP_FUSION}: {}. Its kernels take {}.",
            best.pattern,
            units::time(best.related_ns)
        )
    })
}

/// The same where launches limit the run, which graphs make for all kernels at once: beside them a fusion saves GPU time.
fn top_beside_launches(tables: &DeviceTables, seen: &Seen<'_>) -> Option<String> {
    let is_headline = |row: &&FuseRow| row.priority.is_some_and(|priority| priority <= HEADLINE);
    let gone_ns = |row: &FuseRow| row.together.map_or(row.gone_ns, |all| all.gone_ns);
    let best = tables.fuse.iter().filter(is_headline).max_by_key(|row| gone_ns(row))?;
    let span_ns = tables.warm.as_ref().map_or(seen.time.span_ns, |(_, ns)| *ns);
    let pct = percent(gone_ns(best), span_ns);
    if let Some(text) = unsized_attention(best, seen.coverage) {
        return Some(text);
    }
    (pct >= FUSION_PCT).then(|| {
        format!(
            "{TOP_FUSION} once launches no longer limit the run: {}. It saves at most {} of GPU time ({} of {}).",
            best.pattern,
            units::time(gone_ns(best)),
            units::percent(pct),
            tables.span.as_deref().unwrap_or("the GPU span"),
        )
    })
}

/// What shares of the time of all devices are of.
fn spans(n_devices: usize) -> String {
    match n_devices {
        0 | 1 => "the GPU span".to_owned(),
        several => format!("the spans of {several} GPUs, summed"),
    }
}

/// The category with most of the GPU time.
fn largest(time: &DeviceTime) -> Option<Category> {
    time.shown.iter().max_by_key(|(_, ns)| *ns).map(|(category, _)| *category)
}

/// That most of the recording comes before the first GPU work, which no share counts.
fn late_start(seen: &Seen<'_>) -> Option<(i64, String)> {
    let Before { ns, loader_ns, ref place } = seen.before;
    let all_ns = ns.saturating_add(seen.time.span_ns);
    if ns < BEFORE_NS || percent(ns, all_ns) < BEFORE_PCT {
        return None;
    }
    let loader = match loader_ns {
        0 => String::new(),
        _ if place.contains("DataLoader") => String::new(),
        ns => format!(" For {} of it the CPU is in the data loader.", units::time(ns)),
    };
    let text = format!(
        "{LATE_START} {} after the first op, call or frame, {} of the time until the last{place}. No share below \
         counts that time.{loader}",
        units::time(ns),
        units::percent(percent(ns, all_ns)),
    );
    Some((ns, text))
}

#[cfg(test)]
mod tests {
    use crate::{Sources, TriageOptions, triage};
    use fixture::{Fixture, kernel, slice};

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
        let mut one_long = Fixture::default();
        one_long.push(kernel(GEMM).at(0, 10 * MS));
        for n in 1..5 {
            let dur_ns = if n == 2 { 6 * MS } else { MS };
            one_long.push(kernel(REDUCE).at(10 * n * MS, dur_ns).on(0, 20));
        }
        let one_long = said(one_long);
        let longest = |said: &String| said.contains(" One of its 4 calls takes 6.00 ms.");
        assert!(one_long.iter().any(longest), "{one_long:?}");
        let mut hidden = Fixture::default();
        hidden.push(kernel(GEMM).at(0, 10 * MS));
        hidden.push(kernel(REDUCE).at(2 * MS, 5 * MS).on(0, 20));
        let hidden = said(hidden);
        assert!(hidden[0].starts_with("Most GPU time goes to GEMM"), "{hidden:?}");
        assert!(hidden[1].contains("none of it is exposed"), "{hidden:?}");
    }

    #[test]
    fn a_kernel_whose_few_launches_take_most_of_the_communication_is_named() {
        let with = |long_ns: i64| {
            let mut fixture = Fixture::default();
            fixture.push(kernel(GEMM).at(0, 10 * MS));
            for n in 0..20_i64 {
                let (name, dur_ns) =
                    if n < 3 { ("ncclKernel_Broadcast", long_ns) } else { (REDUCE, MS) };
                fixture.push(kernel(name).at((20 + 20 * n) * MS, dur_ns).on(0, 20));
            }
            said(fixture)
        };
        let few = " 3 launches of ncclKernel_Broadcast take 63.8% of that.";
        assert!(with(10 * MS).iter().any(|text| text.contains(few)), "{:?}", with(10 * MS));
        assert!(!with(5 * MS).iter().any(|text| text.contains("ncclKernel_Broadcast")));
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
    fn a_starved_gpu_is_told_with_the_phase() {
        let run = said(starved(None));
        let limits = run.iter().find(|text| text.starts_with("The CPU limits the run")).unwrap();
        assert!(
            limits.contains(
                "3.63 ms of it until the end of a late launch, in 39 gaps shorter than 1 ms"
            ),
            "{limits}"
        );
        let step = said(starved(Some("Optimizer.step#SGD.step")));
        let limits = step.iter().find(|text| text.starts_with("The CPU limits")).unwrap();
        assert!(limits.contains("stage optimizer"), "{limits}");
        let mut busy = starved(None);
        busy.push(kernel(GEMM).at(5 * MS, 400 * MS));
        let busy = said(busy);
        assert!(!busy.iter().any(|text| text.contains("The CPU limits")), "{busy:?}");
    }

    #[test]
    fn where_stacks_slow_the_cpu_the_gpu_may_be_the_limit() {
        let caution = |kernel_ns: i64| {
            let mut fixture = Fixture::default();
            fixture.push(slice("python_function", "train.py(1): main").on(1, 1).at(0, 4 * MS));
            for at in 0..40_i64 {
                let begun_ns = at * 100_000;
                let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(at + 1);
                fixture.push(launch.at(begun_ns + 1_000, 4_000));
                fixture.push(kernel(ADD).at(begun_ns + 7_000, kernel_ns).link(at + 1));
            }
            let said = said(fixture);
            said.into_iter().find(|text| text.starts_with("The CPU limits the run")).unwrap()
        };
        assert!(caution(30_000).ends_with("without stacks, the GPU's own work may be the limit."));
        assert!(caution(5_000).ends_with("confirm this in a trace without with_stack."));
    }

    #[test]
    fn what_a_first_run_does_is_not_told_as_the_run() {
        let said_after = |load_ns: i64| {
            let mut fixture = Fixture::default();
            for (link, at) in [(1, 0), (2, load_ns + 10 * MS)] {
                let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(link);
                fixture.push(launch.at(at, 5_000));
                fixture.push(kernel(GEMM).at(at + 10_000, 10 * MS).link(link));
            }
            fixture.push(slice("cuda_driver", "cuModuleLoadData").on(1, 1).at(10 * MS, load_ns));
            said(fixture)
        };
        let composed = |said: &[String]| said.iter().any(|text| text.contains("GPU time goes to"));
        assert!(composed(&said_after(5 * MS)), "{:?}", said_after(5 * MS));
        let long = said_after(100 * MS);
        assert!(long[0].contains("as in a first run") && !composed(&long), "{long:?}");
    }

    #[test]
    fn generated_kernels_without_names_are_told() {
        let mut fixture = Fixture::default();
        fixture.push(kernel(GEMM).at(0, 10 * MS));
        fixture.push(kernel("triton__0d1d2de").at(10 * MS, 30 * MS));
        let said = said(fixture);
        assert_eq!(
            said[0],
            "Of kernels with names of their own, most GPU time goes to GEMM (25.0% of all GPU time)."
        );
        assert!(
            said[1].starts_with("75.0% of the GPU time is in TorchInductor kernels"),
            "{said:?}"
        );
    }

    #[test]
    fn a_second_category_is_named_from_a_twentieth_on() {
        let with = |dur_ns: i64| {
            let mut fixture = Fixture::default();
            fixture.push(kernel(GEMM).at(0, 100 * MS));
            fixture.push(kernel(ADD).at(100 * MS, dur_ns));
            said(fixture).remove(0)
        };
        assert_eq!(with(2 * MS), "Most GPU time goes to GEMM (98.0%).");
        assert_eq!(with(10 * MS), "Most GPU time goes to GEMM (90.9%), then Elementwise (9.1%).");
    }

    #[test]
    fn shares_of_time_do_not_depend_on_what_the_tables_count() {
        let told = |without_before_window: bool| {
            let mut fixture = Fixture::default();
            fixture.push(kernel(REDUCE).at(0, 10 * MS).link(9).on(0, 20));
            fixture.push(slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(0, 10).link(1));
            fixture.push(kernel(GEMM).at(20 * MS, 10 * MS).link(1));
            let slices = timeline::Options { without_before_window, ..Default::default() };
            let options = TriageOptions { slices, ..TriageOptions::default() };
            let report = triage(&fixture.finish(), &options, &Sources::default());
            let coverage = report.coverage;
            (report.takeaways, coverage.window_ns, coverage.busy_ns)
        };
        let (said, window_ns, busy_ns) = told(true);
        assert_eq!((window_ns, busy_ns), (30 * MS, 20 * MS));
        assert!(
            said.iter().any(|text| text.contains("10.0 ms of it is exposed (33.3%")),
            "{said:?}"
        );
        let shown = "Of the work launched while profiling, all GPU time goes to GEMM.";
        assert!(said.iter().any(|text| text == shown), "{said:?}");
        let (counted, window, busy) = told(false);
        assert_eq!((window_ns, busy_ns), (window, busy));
        let all = "The largest part of GPU time goes to Communication (50.0%), then GEMM (50.0%).";
        assert!(counted.iter().any(|text| text == all), "{counted:?}");
        let early = ", including work launched before profiling";
        assert!(said[0].contains(early) != counted[0].contains(early), "{said:?} {counted:?}");
        assert_eq!(said[0].replace(early, ""), counted[0].replace(early, ""));
        assert_eq!(said[1], counted[1]);
    }
}
