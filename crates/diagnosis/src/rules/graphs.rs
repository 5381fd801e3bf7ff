//! M17: whether graphs launch the kernels.

use host::class::Class;
use report::units::{count, percent, plural, time};

use crate::{Facts, Finding, Rule};

const MOST: f64 = 0.5;

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
            let text = format!(
                "No graph runs: each of {} kernels has a launch of its own.",
                count(graphs.kernels_linked as u64)
            );
            let calls =
                facts.host.runtime.classes.get(&Class::Launch).filter(|calls| calls.count > 0);
            let cost = calls.map(|calls| {
                let mean = calls.total_ns / calls.count as i64;
                format!(
                    "The launching calls take the CPU {}, {} each on average.",
                    time(calls.total_ns),
                    time(mean)
                )
            });
            Some(
                Finding::fact(Rule::Graphs, "no_graph", text)
                    .on(device.name)
                    .means(cost.unwrap_or_default())
                    .with(path, "launches of graphs", 0),
            )
        })
        .collect()
}
