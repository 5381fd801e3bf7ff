//! M3, where a single call of the runtime has the time: a sum over what the CPU does says nothing of it.

use dialect::calls::launches_graph;
use report::units::{percent, time};
use triage::Framework;

use crate::facts::Device;
use crate::{Facts, Finding, Level, Rule};

/// From this share of the window on.
const LEAST_SHARE: f64 = 0.01;

/// What the finding says of a device.
pub fn check(facts: &Facts<'_>, device: &Device<'_>) -> Option<Finding> {
    if !device.is_told() || device.cold().is_some() {
        return None;
    }
    let (_, window_ns) = device.busy_told()?;
    let (name, ns, is_first) = device.longest_call()?;
    let share = ns as f64 / window_ns as f64;
    // (A server replays its graphs at each step: no loop of the reader's has a first one, and most of such a call is the recording of the
    // graph's kernels, in each replay.)
    let is_server = matches!(
        facts.triage.framework.framework,
        Framework::Sglang | Framework::Vllm | Framework::Trtllm | Framework::Tokenspeed
    );
    if share < LEAST_SHARE || is_first && launches_graph(name) && is_server {
        return None;
    }
    let text = format!(
        "{} is idle for {} ({} of {}) within one call of {name}.",
        device.title(),
        time(ns),
        percent(100.0 * share),
        facts.whole(),
    );
    let finding = Finding::fact(Rule::HostBound, "in_one_call", text)
        .level(Level::of_share(share))
        .on(device.name)
        .with("wall", "idle time within that call", time(ns));
    // (CUDA driver API, `cuGraphUpload`: without it the first launch uploads the graph.)
    Some(match is_first && launches_graph(name) {
        true => finding.means(
            "It is the first launch of a graph in the file. A first launch also uploads the graph, unless that was done before: replay it \
             once before the loop.",
        ),
        false => finding,
    })
}
