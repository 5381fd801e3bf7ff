//! What to do, from one ranking: by the wall time that goes away at most.

mod action;
mod communication;
mod graphs;
mod of_triage;

use catalog::cpu_work::CpuWork;
use catalog::remedies::{Execution, Parts, Phase, RunFacts, applicable};
use host::verdicts::Window;
use triage::{Stage, StageRow, WallPart, WallRow};

use crate::facts::Device;
use crate::rules::copies::small_reads;
use crate::rules::data_loader::takes_over;
use crate::rules::{allocator, between_graphs};
use crate::{Confidence, Facts, Finding, Rule};

use communication::{exchanges, has_own_kernels, is_matched, is_of_gradients};
use of_triage::of_triage;

pub use action::{Action, Place, Whole};

/// Remedies that compile and make graphs, and the one that only compiles.
const REDUCES_OVERHEAD: [&str; 2] = ["cuda-graph", "hip-graph"];
const COMPILE: &str = "torch-compile";
/// Those that put into graphs what is launched one by one, and what remains where no graph can launch it.
const NEW_GRAPHS: [&str; 3] = ["cuda-graph", "recurrent-graph", "hip-graph"];
const LARGER_GRAPHS: &str = "larger-graphs";
const LARGER_BATCH: &str = "larger-batch";
const FEWER_READS: &str = "fewer-reads";
const FIXED_SIZES: &str = "fixed-sizes";
const FEWER_LAUNCHES: &str = "fewer-launches";
/// The one for a cache that grows.
const STATIC_CACHE: &str = "static-cache";
/// The one that adapters switch off.
const PREFILL_GRAPH: &str = "sglang-prefill-graph";

/// The one that saves memory and no time.
const RELEASE_TENSORS: &str = "release-tensors";

/// Actions that save less than this share of the recording are left out.
const LEAST_SHARE: f64 = 0.01;

/// What to do, the most wall time first.
pub fn ranked(facts: &Facts<'_>, findings: &[Finding]) -> Vec<Action> {
    // Where the file does not tell what the GPU waited for, nothing shows that a change would pay. (Beside one pause it does.)
    let is_told = |device: &Device<'_>| device.is_told() || device.misses_one_pause();
    if facts.is_capture() || facts.devices().any(|device| !is_told(&device)) {
        return Vec::new();
    }
    let obstacle = graphs::obstacle(facts);
    let mut all: Vec<Action> =
        findings.iter().filter_map(|finding| of_finding(facts, finding, obstacle)).collect();
    // (Graphs by torch.compile(mode="reduce-overhead") compile, too, as does Transformers for a static cache.)
    let is_compiler = |id: &str| REDUCES_OVERHEAD.contains(&id) || id == STATIC_CACHE;
    let compiles = all.iter().any(|action| is_compiler(action.remedy));
    all.extend(
        of_triage(facts).into_iter().filter(|action| !(compiles && action.remedy == COMPILE)),
    );
    let whole = window(facts);
    let mut all: Vec<Action> =
        all.into_iter().filter_map(|action| worth_it(action, whole)).collect();
    trace::sort_by_key(&mut all, |action| std::cmp::Reverse(action.bound_ns));
    all
}

/// What to do about one finding, where that pays.
pub(crate) fn of_one(facts: &Facts<'_>, finding: &Finding) -> Option<Action> {
    worth_it(of_finding(facts, finding, graphs::obstacle(facts))?, window(facts))
}

/// The action with its share of the whole; `None` where that is too little. (A run that keeps the tensors of each step ends when
/// memory does, so its action needs no time that it saves.)
fn worth_it(action: Action, (span, whole): (i64, Whole)) -> Option<Action> {
    // (Nothing saves more than an iteration takes without the profiler.)
    let bound_ns = match whole {
        Whole::TimedIterations => action.bound_ns.min(span),
        _ => action.bound_ns,
    };
    let is_worth_it = bound_ns as f64 >= LEAST_SHARE * span as f64 || action.saves_memory_alone();
    let bound_pct = timeline::percent(bound_ns, span);
    is_worth_it.then_some(Action { bound_ns, bound_pct, bound_of: whole, ..action })
}

/// What bounds are shares of: the longest bar of a device, which is what the first sentence tells of; without bars the window of
/// its busy share; without a GPU the steps.
fn window(facts: &Facts<'_>) -> (i64, Whole) {
    if let Some(timed) = facts.devices().find_map(|device| device.timed_as_recorded()) {
        return (timed.all_ns().max(1), Whole::TimedIterations);
    }
    let warm = facts.left_out().is_some();
    let whole = |of_steps: bool| match of_steps {
        true if warm => Whole::WarmIterations,
        true => Whole::Steps,
        false => Whole::GpuSpan,
    };
    let bars = facts.wall.chunk_by(|a, b| a.device == b.device);
    let bars = bars.filter_map(|rows| {
        let sum = |of: &mut dyn Iterator<Item = &WallRow>| {
            of.fold(0_i64, |sum, row| sum.saturating_add(row.total_ns))
        };
        let ns = sum(&mut rows.iter());
        let of = |part| sum(&mut rows.iter().filter(|row| row.part == part));
        // (Beside what another run does not have, everything else looks small.)
        let is_much = |part_ns: &i64| part_ns.saturating_mul(10) >= ns;
        let set_up_ns = Some(of(WallPart::Loading)).filter(is_much);
        let queued_ns = Some(of(WallPart::Queued)).filter(is_much);
        let left_ns = ns - set_up_ns.unwrap_or(0) - queued_ns.unwrap_or(0);
        match (whole(rows.first()?.of_steps), set_up_ns, queued_ns) {
            (Whole::GpuSpan, Some(_), None) => Some((left_ns, Whole::WithoutSetUp)),
            (Whole::GpuSpan, None, Some(_)) => Some((left_ns, Whole::WithoutBlocked)),
            (Whole::GpuSpan, Some(_), Some(_)) => Some((left_ns, Whole::WithoutBoth)),
            (whole, ..) => Some((ns, whole)),
        }
    });
    let of_devices = facts.devices().filter_map(|device| {
        let (window, busy) = device.busy()?;
        Some((busy.window_ns, whole(window == Window::LaunchStepsLinked)))
    });
    let longest = bars.max_by_key(|(ns, _)| *ns).or_else(|| of_devices.max_by_key(|(ns, _)| *ns));
    let (ns, whole) = longest.unwrap_or_else(|| match facts.loading().1 {
        0 => (facts.host.cpu_ops.window_ns.unwrap_or(0), Whole::OpsSpan),
        steps_ns => (steps_ns, Whole::Steps),
    });
    (ns.max(1), whole)
}

/// What helps where launches limit a run.
const BY_LAUNCHES: &[&str] = &[
    "sglang-prefill-graph",
    "larger-graphs",
    "vllm-batch-graph",
    "vllm-compiled-graph",
    "sglang-batch-graph",
    "larger-calls",
    STATIC_CACHE,
    "cuda-graph",
    "recurrent-graph",
    "hip-graph",
    FEWER_READS,
    FIXED_SIZES,
    LARGER_BATCH,
    FEWER_LAUNCHES,
];

/// The same where most of them are those of the optimizer.
const BY_UPDATES: &[&str] = &["foreach-optimizer", "newer-optimizer", "foreach-update"];

/// Whether most of the late launches are those of an optimizer that updates its parameters one by one.
fn updates_late(facts: &Facts<'_>) -> bool {
    let late = |only: bool| -> i64 {
        let own = facts.triage.stages.iter().filter(|row| !only || row.stage == Stage::Optimizer);
        own.map(|row| row.late_ns).sum()
    };
    let of_updates = late(true);
    of_updates > 0
        && of_updates.saturating_mul(2) >= late(false)
        && BY_UPDATES.iter().any(|id| !applicable(&[id], &update_facts(facts)).is_empty())
}

/// What the gates of remedies for an optimizer ask for.
fn update_facts(facts: &Facts<'_>) -> RunFacts {
    RunFacts { phase: Some(Phase::Optimizer), parts: Some(Parts::Aten), ..gate_facts(facts) }
}

/// Whether reads of values keep most launches of an iteration apart: then the CPU is late after each, with the profiler and without.
pub(crate) fn is_held_by_reads(facts: &Facts<'_>) -> bool {
    matches!(
        graphs::obstacle(facts),
        Some(graphs::Obstacle::Reads(..) | graphs::Obstacle::LateReads(..))
    )
}

/// Whether most of the late launches of its device come in the gaps between launches, and not after work of the CPU.
fn launches_late(facts: &Facts<'_>, finding: &Finding) -> bool {
    facts.device_of(finding).is_some_and(|device| {
        let ns = |part| device.wall(part).map_or(0, |row| row.total_ns);
        ns(WallPart::Launch) > ns(WallPart::HostCompute)
    })
}

/// The remedies for a finding, the one that fits best first; empty where it is a fact, or where another finding has the cure.
fn remedies(facts: &Facts<'_>, finding: &Finding) -> &'static [&'static str] {
    let device = facts.device_of(finding).filter(|_| finding.verdict == "host_bound");
    if let Some(work) = device.as_ref().and_then(Device::one_work) {
        return work.kind.remedies();
    }
    match (finding.rule, finding.verdict) {
        (Rule::Bandwidth, "layouts") => &["one-layout"],
        (Rule::KnownCode, _) => crate::rules::known_code::remedies(finding),
        (Rule::HostBound, "random") => CpuWork::Random.remedies(),
        (Rule::HostBound, "in_one_call") => &[],
        (Rule::HostBound, "ddp_buffers") => &["own-buffers"],
        (Rule::HostBound, "without_launch") if in_pass(facts, finding) => &["not-on-cpu"],
        (Rule::HostBound, "without_launch") => &["not-in-step"],
        // (A pass cannot be moved, and nothing tells what it does.)
        (Rule::HostBound, "in_annotations") if in_range_of_pass(facts, finding) => {
            &["larger-graphs"]
        }
        (Rule::HostBound, "in_annotations") if works_beside(facts, finding) => &["several-inputs"],
        (Rule::HostBound, "in_annotations") => &["beside-graphs", "earlier-launches"],
        // (Ops may have their stacks as a text.)
        (Rule::HostBound, "unrecorded")
            if facts.host.python.n == 0 && !facts.details.ops_have_stacks =>
        {
            &["record-stacks"]
        }
        (Rule::HostBound, "unrecorded") => &["record-ranges"],
        (Rule::LaunchBound | Rule::HostBound, _) if updates_late(facts) => BY_UPDATES,
        (Rule::LaunchBound, _) => BY_LAUNCHES,
        (Rule::HostBound, "captures_again") if between_graphs::is_compiled(facts) => {
            &["graphs-once"]
        }
        (Rule::HostBound, "captures_again") => &[],
        (Rule::HostBound, "between_graphs") if schedules_ahead(facts) => &["larger-graphs"],
        (Rule::HostBound, "between_graphs") => &["vllm-async-scheduling", "larger-graphs"],
        // (What the CPU does before the launches is to launch, or little beside it.)
        (Rule::HostBound, _) if launches_late(facts, finding) => BY_LAUNCHES,
        (Rule::HostBound, _) => &[
            "sglang-prefill-graph",
            "vllm-batch-graph",
            "vllm-compiled-graph",
            "sglang-batch-graph",
            "beside-graphs",
            "earlier-launches",
        ],
        (Rule::Sync, "sync_bound") if small_reads(facts).is_some() => &["copy-once"],
        (Rule::Sync, "sync_bound") if waits_by_itself(facts) => &["fewer-synchronizations"],
        (Rule::Sync, "sync_bound") => &["fewer-waits"],
        (Rule::Copies, "h2d_pageable") if facts.advises_pinned() => &[],
        (Rule::Copies, "h2d_pageable") if has_loader(facts) => &["pin-loader-memory"],
        (Rule::Copies, "h2d_pageable") => &["pin-memory"],
        (Rule::DataLoader, _) if dialect::python::has_pipeline(&facts.trace.strings) => {
            &["pipeline-loader", "loader-capacity"]
        }
        (Rule::DataLoader, _) if facts.device_of(finding).is_some_and(|of| takes_over(&of)) => {
            &["loader-workers", "loader-transfer"]
        }
        (Rule::DataLoader, _) => &["loader-workers", "loader-capacity"],
        // (Kernels that are not NCCL's are the engine's all-reduce: it is on.)
        (Rule::Communication, "short_collectives") if has_own_kernels(facts, finding) => &[],
        (Rule::Communication, "short_collectives") => &["custom-all-reduce"],
        (Rule::LateRank, "late_cpu") => &["late-cpu"],
        (Rule::LateRank, _) => &["even-ranks"],
        (Rule::Communication, "waiting") => &[],
        (Rule::Communication, _) if exchanges(facts, finding) => &["split-exchange"],
        // (The reducer of DistributedDataParallel starts each all-reduce when a bucket is full: only fewer bytes take less time, as a row on overlap says.)
        (Rule::Communication, _) if is_of_gradients(facts, finding) => &[],
        // (What is waiting is told apart there.)
        (Rule::Communication, _) if is_matched(facts, finding) => &["earlier-transfer"],
        (Rule::Communication, _) => &["earlier-communication"],
        (Rule::Flops, "misaligned") => &["aligned-sizes"],
        (Rule::Flops, "slow_products") => &["tune-product", "autotune-product"],
        (Rule::Allocator, "uncached") => &["caching-allocator"],
        (Rule::Allocator, "retries") => &["lower-peak"],
        (Rule::Allocator, "grows") => &[],
        (Rule::Allocator, _) => &["steady-sizes"],
        (Rule::Doubles, _) => &["float32"],
        (Rule::GrowingCat, _) => &["one-cat"],
        (Rule::Memory, "growth") => &[RELEASE_TENSORS],
        _ => &[],
    }
}

/// Whether the function that launches nothing works in the middle of a forward pass: then it may need what the pass has computed, and nothing
/// shows that it can be done before.
fn in_pass(facts: &Facts<'_>, finding: &Finding) -> bool {
    let device = facts.device_of(finding);
    let place = device.as_ref().and_then(Device::without_launch);
    place.is_some_and(|place| place.in_pass_ns.saturating_mul(2) > place.total_ns)
}

/// Whether most of the waiting is in calls that do nothing but wait, and not for a value.
fn waits_by_itself(facts: &Facts<'_>) -> bool {
    let sync = &facts.host.runtime.sync;
    let reads: i64 = facts.host.copies.item_family.values().map(|row| row.reading_ns).sum();
    let named = sync.longest.iter().any(|call| dialect::calls::synchronizes_device(&call.name));
    named && sync.all.total_ns > reads.saturating_mul(2)
}

/// Whether vLLM schedules a pass while the one before it runs: its scheduler for that is among the frames.
fn schedules_ahead(facts: &Facts<'_>) -> bool {
    facts.slices.names_with("async_scheduler.py").contains(&true)
}

/// Whether most of that time is in a range that is named as a pass of the model, or as its optimizer.
fn in_range_of_pass(facts: &Facts<'_>, finding: &Finding) -> bool {
    let device = facts.device_of(finding);
    let most = device.as_ref().and_then(Device::in_ranges).map(|ranges| ranges.most());
    let most = most.unwrap_or_default().to_ascii_lowercase();
    ["forward", "backward", "optimizer"].iter().any(|pass| most.contains(pass))
}

/// What the gates of these remedies ask for.
fn gate_facts(facts: &Facts<'_>) -> RunFacts {
    let execution = if facts.has_graphs() {
        Execution::Graph
    } else if facts.is_compiled() {
        Execution::Compiled
    } else {
        Execution::Eager
    };
    RunFacts {
        execution: Some(execution),
        // (Every run has a forward pass, and these remedies act on the run as a whole.)
        phase: Some(Phase::Forward),
        prefill: Some(late_in_prefill(facts)),
        single_process_loader: Some(facts.loads_in_step()),
        pinned: Some(false),
        to_device: Some(true),
        ..facts.triage.run_facts
    }
}

/// Whether most of the late launches are those of prefills, none of which a graph launches.
fn late_in_prefill(facts: &Facts<'_>) -> bool {
    let stages = || facts.triage.stages.iter();
    let is_prefill = |row: &&StageRow| row.stage == Stage::Extend;
    let all_ns: i64 = stages().map(|row| row.late_ns).sum();
    let own_ns: i64 = stages().filter(is_prefill).map(|row| row.late_ns).sum();
    let by_graph = stages().filter(is_prefill).any(|row| row.graphs);
    own_ns > 0 && own_ns.saturating_mul(2) >= all_ns && !by_graph
}

/// What helps against a finding, if the gates of a remedy are open.
fn of_finding(
    facts: &Facts<'_>,
    finding: &Finding,
    obstacle: Option<graphs::Obstacle>,
) -> Option<Action> {
    let ids = remedies(facts, finding);
    let gates = if ids == BY_UPDATES { update_facts(facts) } else { gate_facts(facts) };
    // (Memory is short: a larger batch takes more, and where allocations fail the launches are late because of that.)
    let grows = [FIXED_SIZES, LARGER_BATCH, FEWER_LAUNCHES];
    let is_short = ids.iter().any(|id| grows.contains(id)) && allocator::is_short(facts);
    let is_possible = |id: &str| match obstacle {
        _ if is_short && grows.contains(&id) => false,
        _ if id == STATIC_CACHE => obstacle.is_none() && graphs::grows_cache(facts),
        _ if id == PREFILL_GRAPH => !graphs::has_lora(facts),
        Some(obstacle) if [FEWER_READS, FIXED_SIZES, LARGER_BATCH].contains(&id) => {
            obstacle.remedy() == Some(id)
        }
        Some(graphs::Obstacle::Few) if id == FEWER_LAUNCHES => false,
        // (What the graphs leave is launched between reads: no graph holds more of it.)
        Some(graphs::Obstacle::Reads(..) | graphs::Obstacle::LateReads(..))
            if id == LARGER_GRAPHS =>
        {
            false
        }
        Some(_) => !NEW_GRAPHS.contains(&id),
        None => ![LARGER_BATCH, FEWER_READS, FIXED_SIZES].contains(&id),
    };
    let remedy = applicable(ids, &gates).into_iter().find(|remedy| is_possible(remedy.id))?;
    let evidence = finding.evidence.first()?;
    let hypothesis = match (remedy.id, obstacle) {
        (id, _) if REDUCES_OVERHEAD.contains(&id) => {
            format!("{}{}", finding.meaning, graphs::broken_by_reads(facts))
        }
        (FEWER_READS | FIXED_SIZES | LARGER_BATCH, Some(obstacle)) => {
            let sentence = obstacle.sentence(facts.has_graphs()).unwrap_or_default();
            format!("{} {sentence}", finding.meaning).trim().to_owned()
        }
        _ => finding.meaning.clone(),
    };
    Some(Action {
        rule: finding.rule.id().to_owned(),
        device: finding.device.clone(),
        observation: finding.observation.clone(),
        first: measure_first(facts, finding),
        action: late_kernel(facts, finding, remedy.id).unwrap_or_else(|| remedy.action.to_owned()),
        remedy: remedy.id,
        hypothesis,
        bound_ns: match remedy.id {
            RELEASE_TENSORS => 0,
            _ => finding.bound_ns?,
        },
        bound_pct: 0.0,
        bound_of: Whole::Steps,
        confidence: finding.confidence.min(Confidence::Medium),
        place: place(facts, finding),
        validation: remedy.check.to_owned(),
        check: Place {
            path: evidence.path.clone(),
            what: evidence.what.clone(),
            now: evidence.value.clone(),
        },
    })
}

/// What to do about the kernel that most late launches are of, where a remedy is about the work before launches in general.
fn late_kernel(facts: &Facts<'_>, finding: &Finding, remedy: &str) -> Option<String> {
    let is_general = matches!(remedy, "earlier-launches" | "larger-graphs" | "beside-graphs");
    let device =
        facts.device_of(finding).filter(|_| finding.verdict == "host_bound" && is_general)?;
    Some(device.late_kernel()?.action())
}

/// What to measure before launches are made cheaper.
fn measure_first(facts: &Facts<'_>, finding: &Finding) -> String {
    let of_launches = matches!(finding.verdict, "launch_bound" | "host_bound");
    let device = facts.device_of(finding).filter(|_| of_launches);
    device.map_or_else(String::new, |device| device.measure_first())
}

/// Where the launching thread is for most of the time in which the device waits for it; empty where no place stands out.
fn place(facts: &Facts<'_>, finding: &Finding) -> String {
    if finding.rule != Rule::HostBound
        || matches!(finding.verdict, "between_graphs" | "ddp_buffers" | "unrecorded")
    {
        return String::new();
    }
    let Some(device) = facts.device_of(finding) else { return String::new() };
    match finding.verdict {
        "without_launch" => device.without_launch().map(|place| place.name.clone()),
        "in_annotations" => device.in_ranges().map(|ranges| ranges.most().to_owned()),
        _ => device.waits_at().map(|place| place.name.clone()),
    }
    .unwrap_or_default()
}

/// Whether the GPU works while the CPU does what it then waits for.
fn works_beside(facts: &Facts<'_>, finding: &Finding) -> bool {
    facts.device_of(finding).is_some_and(|device| device.works_beside_ranges())
}

/// Whether a data loader of PyTorch runs in the file.
fn has_loader(facts: &Facts<'_>) -> bool {
    facts.slices.names_with("DataLoader").contains(&true)
}
