//! M17: whether graphs launch the kernels.

use host::class::Class;
use host::links::{DeviceId, GpuSlice};
use report::units::{count, percent, plural, time};
use trace::Row;

use crate::facts::again;
use crate::{Facts, Finding, Rule};

const MOST: f64 = 0.5;
/// A launch that takes this many times the median is told apart.
const OUTLIER: i64 = 20;
/// From so many launches that have not run on, the queue counts as full (CUDA holds 1024; other drivers hold fewer).
const QUEUE: usize = 512;

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
            let text = cost.map_or(text.clone(), |cost| format!("{text} {cost}"));
            Some(Finding::fact(Rule::Graphs, "no_graph", text).on(device.name).with(
                path,
                "launches of graphs",
                0,
            ))
        })
        .collect()
}

/// What the launching calls take, the slow ones apart: a mean over both describes neither.
fn cost(facts: &Facts<'_>, total_ns: i64, n: u64) -> String {
    let launches =
        facts.slices.calls.iter().filter(|call| facts.slices.class(call) == Class::Launch);
    let mut times: Vec<i64> = launches.map(|call| call.dur_ns()).collect();
    let median = timeline::median(&mut times).unwrap_or_default();
    let is_slow = |ns: i64| ns > OUTLIER.saturating_mul(median.max(1));
    let slow = times.iter().filter(|ns| is_slow(**ns));
    let (n_slow, slow_ns) =
        slow.fold((0_u64, 0_i64), |(n, sum), ns| (n + 1, sum.saturating_add(*ns)));
    let all = format!("The launching calls take the CPU {}", time(total_ns));
    if slow_ns.saturating_mul(2) < total_ns {
        return format!("{all}, {} each on average.", time(total_ns / n.max(1) as i64));
    }
    format!(
        "{all}: {} {} ({}), the others {} each (median).{}",
        count(n_slow),
        if n_slow == 1 { "takes most of it" } else { "take most of it" },
        time(slow_ns),
        time(median),
        why_slow(facts, &is_slow)
    )
}

/// What the slow launches may do, where the file tells: the first of a kernel loads its code; others wait where many are pending, or were
/// interrupted.
fn why_slow(facts: &Facts<'_>, is_slow: &dyn Fn(i64) -> bool) -> String {
    let again = again(facts.trace, facts.gpu);
    let kernels: Vec<&GpuSlice> = facts.gpu.linked().filter(|one| one.is_kernel).collect();
    // By device: when its kernels are launched, and when they end.
    let pending: Vec<(Vec<i64>, Vec<i64>)> = (0..facts.gpu.devices.len())
        .map(|device| {
            let own = || kernels.iter().filter(move |one| one.device as usize == device);
            let mut launches: Vec<i64> =
                own().filter_map(|one| Some(one.launch?.start_ns)).collect();
            let mut ends: Vec<i64> = own().map(|one| one.slice.end_ns).collect();
            trace::sort(&mut launches);
            trace::sort(&mut ends);
            (launches, ends)
        })
        .collect();
    let is_full = |device: DeviceId, at_ns: i64| {
        pending.get(device as usize).is_some_and(|(launches, ends)| {
            let launched = launches.partition_point(|ns| *ns < at_ns);
            launched.saturating_sub(ends.partition_point(|ns| *ns <= at_ns)) >= QUEUE
        })
    };
    // (A call may launch several kernels.)
    let mut slow: Vec<(Row, DeviceId, i64)> = kernels
        .iter()
        .filter_map(|one| Some((one.launch?, one.device)))
        .filter(|(call, _)| facts.slices.class(call) == Class::Launch && is_slow(call.dur_ns()))
        .map(|(call, device)| (call.row, device, call.start_ns))
        .collect();
    trace::sort(&mut slow);
    slow.dedup_by_key(|(row, ..)| *row);
    let (mut first, mut full, mut other) = (0_u64, 0_u64, 0_u64);
    for (row, device, start_ns) in slow {
        match again.binary_search(&row) {
            Err(_) => first += 1,
            Ok(_) if is_full(device, start_ns) => full += 1,
            Ok(_) => other += 1,
        }
    }
    let parts = [
        (
            first,
            "is the first launch of its kernel and loads its code",
            "are first launches of their kernels and load their code",
        ),
        (full, "finds the launch queue full", "find the launch queue full"),
        (
            other,
            "is of a kernel that ran before, with room in the queue: the thread was probably interrupted",
            "are of kernels that ran before, with room in the queue: the thread was probably interrupted",
        ),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|(n, ..)| *n > 0).collect();
    match parts[..] {
        [] => String::new(),
        [(1, one, _)] => format!(" It {one}."),
        _ => {
            let parts: Vec<String> =
                parts.into_iter().map(|(n, one, many)| plural(n, one, many)).collect();
            format!(" Of these {}.", parts.join(", "))
        }
    }
}
