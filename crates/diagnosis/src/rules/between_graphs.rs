//! M3, for graphs: the CPU waits for the result of a pass before it prepares the next one, and the GPU stands still until its graph
//! starts. The bar gives this time to waits, to launches and to work of the CPU, each below what is worth an action.

use host::HostSlice;
use host::class::Class;
use report::units::{percent, plural, time};
use timeline::intervals::{both, length, length_within, union, without};
use trace::StringId;
use triage::WallPart;

use crate::facts::{CapturesAgain, Device};
use crate::{Confidence, Facts, Finding, Level, Rule};

/// Passes from which on it is a pattern.
const LEAST_PASSES: usize = 3;
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

/// Graphs that are captured again ([`CapturesAgain`]).
pub(crate) fn captured_again(facts: &Facts<'_>, device: &Device<'_>) -> Option<Finding> {
    let CapturesAgain { n, own_ns, plain_ns } = device.captures_again()?;
    let bound_ns = own_ns.saturating_sub(plain_ns.saturating_mul(n as i64)).max(0);
    let (_, window_ns) = device.busy_told()?;
    let share = bound_ns as f64 / window_ns as f64;
    if share < LEAST_SHARE {
        return None;
    }
    let observation = format!(
        "{} is idle for {} ({} of {}) in {} between graphs in which the CPU captures a graph; without a capture such a pause has {} (median).",
        device.title(),
        time(own_ns),
        percent(100.0 * own_ns as f64 / window_ns as f64),
        facts.whole(),
        plural(n as u64, "pause", "pauses"),
        time(plain_ns),
    );
    let meaning = match is_compiled(facts) {
        true => {
            "torch.compile captures a graph anew where, for one, an output of its last run is still in use, or its backward pass has not run."
        }
        false => "",
    };
    let finding = Finding::fact(Rule::HostBound, "captures_again", observation)
        .level(Level::of_share(share))
        .confidence(Confidence::High)
        .on(device.name)
        .bound(bound_ns)
        .means(meaning)
        .with("wall", "idle while graphs are captured", time(own_ns));
    Some(finding)
}

/// Whether torch.compile works in the trace.
pub(crate) fn is_compiled(facts: &Facts<'_>) -> bool {
    let strings = &facts.trace.strings;
    let mut names = (0..strings.len() as u32).map(|id| strings.get(StringId(id)));
    names.any(dialect::inductor::is_compiled)
}

fn between(facts: &Facts<'_>, device: &Device<'_>) -> Option<Between> {
    let graphs = device.graphs();
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
    let gaps = without(&device.gaps_told(), &device.times(WallPart::Loading));
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
