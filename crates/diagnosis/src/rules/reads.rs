//! M6: ops that read a value from the GPU and wait for it. `aten::item` and the op inside it are one event, and only those with
//! a copy on the GPU wait.

use std::collections::BTreeMap;

use host::HostSlice;
use report::units::{count, plural, time};
use timeline::intervals::{Interval, both, holds, length, union};
use triage::WallPart;

use crate::{Facts, Finding, Level, Rule};

/// Below this share of the window, the reads cost nothing that matters.
const LEAST_SHARE: f64 = 0.01;

/// Where the GPU is idle during them, or after waits, for a smaller part of its span, nothing is worth changing.
const LEAST_IDLE: f64 = 0.02;

/// The ops that read, each event in one row.
fn rows<'f>(facts: &'f Facts<'_>) -> Vec<(&'static str, &'f host::copies::Reads)> {
    let reads = &facts.host.copies.item_family;
    let of = |name: &str| reads.get(name);
    let item = of("aten::item").or_else(|| of("aten::_local_scalar_dense"));
    [
        ("aten::item", item),
        ("aten::nonzero", of("aten::nonzero")),
        ("aten::masked_select", of("aten::masked_select")),
    ]
    .into_iter()
    .filter_map(|(name, row)| Some((name, row?)))
    // (`aten::masked_select` calls `aten::nonzero`.)
    .filter(|(name, _)| *name != "aten::nonzero" || of("aten::masked_select").is_none())
    .collect()
}

/// Those of a row that wait for a copy.
fn n_waiting((_, row): &(&str, &host::copies::Reads)) -> u64 {
    row.with_gpu_memcpy - row.compiling
}

/// How many values this rule counts as read from the GPU.
pub fn n_read(facts: &Facts<'_>) -> u64 {
    rows(facts).iter().map(n_waiting).sum()
}

/// What reads do that the GPU works through.
const AFTER: &str = "Each waits for its stream: the GPU works until then, and has nothing to run until the next launch.";

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let rows = rows(facts);
    let on_gpu: u64 = rows.iter().map(n_waiting).sum();
    let n_steps = facts.slices.steps.len().max(1) as u64;
    if facts.has_gpu() {
        if on_gpu == 0 {
            return Vec::new();
        }
        let spent: i64 = rows.iter().map(|(_, row)| row.reading_ns).sum();
        let window: i64 =
            facts.devices().map(|device| device.figures.idle.window_ns).max().unwrap_or(1);
        let share = spent as f64 / window.max(1) as f64;
        let times = union(rows.iter().flat_map(|(_, row)| row.times.iter().copied()).collect());
        let idle = |device: crate::facts::Device<'_>| length(&both(&device.gaps_told(), &times));
        let idle_ns = facts.devices().map(idle).max().unwrap_or_default();
        let names: Vec<String> = rows
            .iter()
            .map(|(name, row)| (name, row.with_gpu_memcpy - row.compiling))
            .filter(|(_, n)| *n > 0)
            .map(|(name, n)| format!("{} {name}", count(n)))
            .collect();
        let text = format!(
            "{} read from the GPU{}: {}.",
            names.join(" and "),
            places(&rows),
            match idle_ns {
                0 => "the GPU has work throughout".to_owned(),
                ns => format!("the GPU is idle for {} during these reads", time(ns)),
            }
        );
        let finding = Finding::fact(
            Rule::Reads,
            if share < LEAST_SHARE { "negligible" } else { "reads_gpu" },
            text,
        );
        // (Where the GPU has work all the while, they cost the run nothing. After them it may stand still, too.)
        let after =
            |device: crate::facts::Device<'_>| device.wall(WallPart::HostWaits)?.share_pct.into();
        let after_pct: Option<f64> = facts.devices().filter_map(after).reduce(f64::max);
        let idle_share = idle_ns as f64 / window.max(1) as f64;
        let is_idle = facts.wall.is_empty()
            || idle_share >= LEAST_IDLE
            || after_pct.is_some_and(|pct| pct >= 100.0 * LEAST_IDLE);
        let finding = match (share < LEAST_SHARE, is_idle) {
            (true, _) => finding,
            (false, true) => finding
                .level(Level::of_share(idle_share))
                .means("Each blocks until all earlier work on its stream is done."),
            (false, false) => finding.means(AFTER).aside(true),
        };
        return vec![finding.with("copies.item_family", "reads with a copy", count(on_gpu))];
    }
    let steps = optimizer_steps(facts);
    let counts: Vec<(&str, u64)> = rows
        .iter()
        .map(|(name, row)| (*name, row.count.saturating_sub(within(facts, &steps, name))))
        .filter(|(_, n)| *n > 0)
        .collect();
    let calls: u64 = counts.iter().map(|(_, n)| n).sum();
    if calls < n_steps || facts.slices.steps.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> =
        counts.iter().map(|(name, n)| format!("{} {name}", count(*n))).collect();
    let text = format!("{} in {} steps.", names.join(" and "), count(n_steps));
    vec![
        Finding::fact(Rule::Reads, "reads", text)
            .means("On a GPU each would wait for all earlier work.")
            .with("copies.item_family", "reads", count(calls)),
    ]
}

/// When optimizers step. An optimizer reads how many steps it has made, which it keeps in the CPU's memory on a machine with a GPU, too
/// (`_get_value` in `torch/optim/optimizer.py`, PyTorch 2.15).
fn optimizer_steps(facts: &Facts<'_>) -> Vec<Interval> {
    let slices = facts.slices;
    let is_step = |range: &&HostSlice| slices.name(range).starts_with("Optimizer.step");
    union(slices.annotations.iter().filter(is_step).map(HostSlice::interval).collect())
}

/// Ops of this name that begin within `times`.
fn within(facts: &Facts<'_>, times: &[Interval], name: &str) -> u64 {
    let slices = facts.slices;
    let own = slices.ops.slices.iter().filter(|op| slices.name(op) == name);
    own.filter(|op| holds(times, op.start_ns)).count() as u64
}

/// Places that the sentence names.
const PLACES: usize = 2;

/// Where they are made.
fn places(rows: &[(&str, &host::copies::Reads)]) -> String {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (place, n) in
        rows.iter().flat_map(|(_, row)| &row.places).filter(|(place, _)| !place.is_empty())
    {
        *sums.entry(place).or_default() += n;
    }
    let mut all: Vec<(&str, u64)> = sums.into_iter().collect();
    trace::sort_by_key(&mut all, |(_, n)| std::cmp::Reverse(*n));
    let named: Vec<&str> = all.iter().take(PLACES).map(|(place, _)| *place).collect();
    let n: u64 = rows.iter().map(|(_, row)| row.with_gpu_memcpy - row.compiling).sum();
    let placed: u64 = all.iter().map(|(_, n)| *n).sum();
    // (Of reads without a frame or an op around them no place is known.)
    let mostly = if placed < n { "mostly " } else { "" };
    match (placed.saturating_mul(2) < n, all.len().saturating_sub(PLACES)) {
        _ if named.is_empty() => String::new(),
        (true, _) => String::new(),
        (false, 0) => format!(", {mostly}in {}", named.join(" and ")),
        (false, more) => {
            let more = plural(more as u64, "other place", "other places");
            format!(", {mostly}in {} and {more}", named.join(", "))
        }
    }
}
