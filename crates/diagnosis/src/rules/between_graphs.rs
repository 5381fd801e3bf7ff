//! M3, for graphs: the CPU waits for the result of a pass before it prepares the next one, and the GPU stands still until its graph
//! starts. The bar gives this time to waits, to launches and to work of the CPU, each below what is worth an action.

use host::HostSlice;
use host::class::Class;
use host::links::GpuSlice;
use report::units::{percent, plural, time};
use timeline::intervals::{both, length, length_within, union};

use crate::facts::Device;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// Passes from which on it is a pattern.
const LEAST_PASSES: usize = 3;
/// Captures between runs of graphs from which on it is none of a start.
const LEAST_AGAIN: usize = 2;
/// From this share of the window on.
const LEAST_SHARE: f64 = 0.05;
/// A shorter wait found its work done.
const LEAST_WAIT_NS: i64 = 20_000;

/// The passes that begin after a wait, with the time in which the device stands still between the two.
struct Between {
    /// The name of the call that waits.
    wait: String,
    /// By pass with any: the idle time from the end of the wait to the first kernel of the next graph, in ns.
    idle_ns: Vec<i64>,
    /// All of it together.
    total_ns: i64,
}

/// What the finding says of a device; `None` where there is too little of it.
pub fn check(facts: &Facts<'_>, device: &Device<'_>) -> Option<Finding> {
    if let Some(found) = captured_again(facts, device) {
        return Some(found);
    }
    let mut between = between(facts, device)?;
    let total_ns = between.total_ns;
    let share = total_ns as f64 / device.without_set_up_ns().max(1) as f64;
    let (late_ns, _) = device.late();
    // (Where most of the late launches lie elsewhere, they are told as such.)
    if share < LEAST_SHARE || total_ns.saturating_mul(2) < late_ns {
        return None;
    }
    let n = between.idle_ns.len();
    let median_ns = timeline::median(&mut between.idle_ns)?;
    let observation = format!(
        "{} is idle for {} ({} of its time without set-up) after {} of the CPU for a result, until the next graph starts: {} each (median).",
        device.title(),
        time(total_ns),
        percent(100.0 * share),
        plural(n as u64, "wait", "waits"),
        time(median_ns),
    );
    let finding = Finding::fact(Rule::HostBound, "between_graphs", observation)
        .level(Level::of_share(share))
        .confidence(Confidence::High)
        .on(device.name)
        .bound(total_ns)
        .means(
            "The CPU prepares the next pass only once it has the result of the last one; until then the GPU has nothing to run.",
        )
        .with("wall", "idle from waits to graphs", time(total_ns))
        .with("runtime.sync.longest", "the call that waits", between.wait);
    Some(finding)
}

/// Graphs that are captured between the runs of others: the recording then is no start of the program.
fn captured_again(facts: &Facts<'_>, device: &Device<'_>) -> Option<Finding> {
    let begins = facts.slices.calls.iter();
    let begins = begins.filter(|call| dialect::calls::begins_capture(facts.slices.name(call)));
    let mut begins: Vec<i64> = begins.map(|call| call.start_ns).collect();
    trace::sort(&mut begins);
    let graphs = graphs(facts, device);
    let windows = graphs.windows(2).filter_map(|pair| {
        let [(_, before_ns), (_, start_ns)] = pair else { return None };
        let next = begins.get(begins.partition_point(|ns| ns < before_ns))?;
        (next < start_ns).then_some((*before_ns, *start_ns))
    });
    let windows: Vec<_> = windows.collect();
    let idle_ns = length(&both(&device.gaps_told(), &windows));
    let share = idle_ns as f64 / device.without_set_up_ns().max(1) as f64;
    if windows.len() < LEAST_AGAIN || share < LEAST_SHARE {
        return None;
    }
    let observation = format!(
        "{} is idle for {} ({} of its time without set-up) between graphs, while the CPU captures another one, {}.",
        device.title(),
        time(idle_ns),
        percent(100.0 * share),
        plural(windows.len() as u64, "time", "times"),
    );
    let finding = Finding::fact(Rule::HostBound, "captures_again", observation)
        .level(Level::of_share(share))
        .confidence(Confidence::High)
        .on(device.name)
        .bound(idle_ns)
        .means(
            "torch.compile captures a graph anew where, for one, an output of its last run is still in use, or its backward pass has not run.",
        )
        .with("wall", "idle while graphs are captured", time(idle_ns));
    Some(finding)
}

/// When each graph is launched, and when its first work starts.
fn graphs(facts: &Facts<'_>, device: &Device<'_>) -> Vec<(HostSlice, i64)> {
    let of_graph = |one: &GpuSlice| {
        let launch = one.launch.filter(|call| facts.slices.class(call) == Class::GraphLaunch)?;
        Some((launch, one.slice.start_ns))
    };
    let mut graphs: Vec<(HostSlice, i64)> = device.slices().filter_map(of_graph).collect();
    trace::sort_by_key(&mut graphs, |(launch, start_ns)| (launch.start_ns, *start_ns));
    graphs.dedup_by_key(|(launch, _)| launch.row);
    graphs
}

fn between(facts: &Facts<'_>, device: &Device<'_>) -> Option<Between> {
    let graphs = graphs(facts, device);
    let waits =
        facts.slices.calls.iter().filter(|call| {
            facts.slices.class(call) == Class::Sync && call.dur_ns() >= LEAST_WAIT_NS
        });
    let mut waits: Vec<&HostSlice> = waits.collect();
    trace::sort_by_key(&mut waits, |call| call.end_ns);
    let windows = graphs.windows(2).filter_map(|pair| {
        let [(before, _), (next, start_ns)] = pair else { return None };
        let at = waits.partition_point(|wait| wait.end_ns <= next.start_ns);
        // (Of the thread that launches: others may wait beside it.)
        let thread = facts.slices.thread(next.row);
        let since = waits.get(..at)?.iter().rev().take_while(|wait| wait.end_ns > before.end_ns);
        let wait = *since.into_iter().find(|wait| facts.slices.thread(wait.row) == thread)?;
        (wait.start_ns >= before.end_ns).then_some((wait, (wait.end_ns, *start_ns)))
    });
    let windows: Vec<(&HostSlice, (i64, i64))> = windows.collect();
    let gaps = device.gaps_told();
    let idle_ns: Vec<i64> = windows
        .iter()
        .map(|(_, window)| length_within(&gaps, *window))
        .filter(|ns| *ns > 0)
        .collect();
    let (longest, _) = windows.iter().max_by_key(|(wait, _)| wait.dur_ns())?;
    let all = union(windows.iter().map(|(_, window)| *window).collect());
    let total_ns = length(&both(&gaps, &all));
    let wait = facts.slices.name(longest).to_owned();
    (idle_ns.len() >= LEAST_PASSES).then_some(Between { wait, idle_ns, total_ns })
}
