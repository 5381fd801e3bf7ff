//! M17: whether graphs launch the kernels.

use host::class::Class;
use report::units::{count, percent, plural, time};

use crate::{Facts, Finding, Rule};

const MOST: f64 = 0.5;
/// A launch that takes this many times the median is told apart: it loads the code of its kernel, or waits for room in the launch queue.
const OUTLIER: i64 = 20;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    facts
        .devices()
        .filter_map(|device| {
            let graphs = &device.figures.graphs;
            let share = graphs.share_n?;
            let path = format!("verdicts.devices.{}.M17", device.name);
            if share >= MOST {
                let launches = plural(
                    graphs.graph_launch_calls,
                    "launch of a graph runs",
                    "launches of graphs run",
                );
                let text = format!("{launches} {} of the kernels.", percent(100.0 * share));
                return Some(
                    Finding::fact(Rule::Graphs, "graph_replay", text).on(device.name).with(
                        path,
                        "kernels in graphs",
                        percent(100.0 * share),
                    ),
                );
            }
            if graphs.graph_launch_calls > 0 || !device.is_starved() {
                return None;
            }
            let linked = graphs.kernels_linked;
            let all = device.slices().filter(|one| one.is_kernel).count();
            let text = if all == linked {
                format!(
                    "No graph runs: each of {} kernels has a launch of its own.",
                    count(all as u64)
                )
            } else {
                format!(
                    "No graph runs: the launches of {} of {} kernels are in the file, one each.",
                    count(linked as u64),
                    count(all as u64)
                )
            };
            let calls =
                facts.host.runtime.classes.get(&Class::Launch).filter(|calls| calls.count > 0);
            let cost = calls.map(|calls| cost(facts, calls.total_ns, calls.count));
            Some(
                Finding::fact(Rule::Graphs, "no_graph", text)
                    .on(device.name)
                    .means(cost.unwrap_or_default())
                    .with(path, "launches of graphs", 0),
            )
        })
        .collect()
}

/// What the launching calls take, the slow ones apart: a mean over both describes neither.
fn cost(facts: &Facts<'_>, total_ns: i64, n: u64) -> String {
    let launches =
        facts.slices.calls.iter().filter(|call| facts.slices.class(call) == Class::Launch);
    let mut times: Vec<i64> = launches.map(|call| call.dur_ns()).collect();
    let median = timeline::median(&mut times).unwrap_or_default();
    let slow = times.iter().filter(|ns| **ns > OUTLIER.saturating_mul(median.max(1)));
    let (n_slow, slow_ns) =
        slow.fold((0_u64, 0_i64), |(n, sum), ns| (n + 1, sum.saturating_add(*ns)));
    let all = format!("The launching calls take the CPU {}", time(total_ns));
    if slow_ns.saturating_mul(2) < total_ns {
        return format!("{all}, {} each on average.", time(total_ns / n.max(1) as i64));
    }
    format!(
        "{all}: {} {} ({}), the others {} each (median). Slow ones load code, or wait for room in the launch queue.",
        count(n_slow),
        if n_slow == 1 { "takes most of it" } else { "take most of it" },
        time(slow_ns),
        time(median)
    )
}
