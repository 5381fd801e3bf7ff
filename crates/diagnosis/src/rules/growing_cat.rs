//! M25: a tensor that grows by `aten::cat`: each call copies the whole tensor again.

use host::doing::doing;
use host::rates::sizes;
use report::units::{count, plural, time};
use serde_json::Value;
use timeline::inputs::{entries, numbers};

use crate::{Confidence, Facts, Finding, Level, Rule};

/// Of the wall time: what all calls but the last one cost.
const LEAST_SHARE: f64 = 0.01;
/// Calls in a row.
const LEAST_CALLS: usize = 4;
/// Chains back to which a call is looked for: a loop has other calls, too.
const RECENT: usize = 1000;
/// Of the time of the longest chain: shorter ones are left out.
const LEAST_PART: i64 = 10;

/// The sizes of one tensor.
type Sizes = Vec<i64>;

/// Calls of which each takes the result of the one before: numbers of ops, and what the last one concatenates.
struct Chain {
    ops: Vec<usize>,
    parts: Vec<Sizes>,
    n_elements: i64,
}

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    if facts.is_capture() { Vec::new() } else { found(facts).into_iter().collect() }
}

fn found(facts: &Facts<'_>) -> Option<Finding> {
    let (slices, wall_ns) = (facts.slices, facts.wall_ns() as f64);
    let all = &slices.ops.slices;
    let gpu_ns = host::ops::device_of_each(&slices.ops, facts.gpu);
    let sum = |ops: &[usize]| -> i64 { ops.iter().map(|at| gpu_ns[*at]).sum() };
    let is_cat = |at: &usize| gpu_ns[*at] > 0 && slices.name(&all[*at]) == "aten::cat";
    let cats: Vec<usize> = (0..all.len()).filter(is_cat).collect();
    if (sum(&cats) as f64) < LEAST_SHARE * wall_ns {
        return None;
    }
    let mut chains = chains(cats.into_iter().map(|at| (at, parts(facts, at))));
    let most_ns = chains.iter().map(|chain| sum(&chain.ops)).max()?;
    chains.retain(|chain| sum(&chain.ops).saturating_mul(LEAST_PART) >= most_ns);
    let longest = chains.iter().find(|chain| sum(&chain.ops) == most_ns)?;
    let last = *longest.ops.last()?;
    let ops: Vec<usize> = chains.iter().flat_map(|chain| chain.ops.iter().copied()).collect();
    let again = chains.iter().filter_map(|chain| Some(chain.ops.split_last()?.1));
    let again: Vec<usize> = again.flatten().copied().collect();
    let saved = facts.devices().map(|device| device.saved_without_ops_ns(&again));
    let bound_ns = saved.max().unwrap_or_default();
    let share = bound_ns as f64 / wall_ns;
    if share < LEAST_SHARE {
        return None;
    }
    let place = doing(slices, &[(slices.thread(all[last].row), all[last].start_ns)]);
    let line = place.into_iter().find_map(|place| place.line);
    let text = format!(
        "{} aten::cat make {} that {}: {} of GPU time. The last of the longest{}, of {}, takes {}.",
        count(ops.len() as u64),
        plural(chains.len() as u64, "tensor", "tensors"),
        if chains.len() == 1 { "grows" } else { "grow" },
        time(sum(&ops)),
        line.map(|line| format!(" in {line}")).unwrap_or_default(),
        sizes(dims(facts, last), 1),
        time(gpu_ns[last])
    );
    let finding = Finding::fact(Rule::GrowingCat, "grows", text)
        .level(Level::of_share(share))
        .confidence(Confidence::Medium)
        .bound(bound_ns)
        .means("One call after the loop copies each part once.");
    Some(finding.with("copies.ops", "GPU time of such calls", time(sum(&ops))))
}

/// The sizes of an op's inputs, as JSON.
fn dims<'f>(facts: &Facts<'f>, at: usize) -> &'f str {
    let inputs = facts.details.inputs(facts.slices.ops.slices[at].row);
    inputs.map_or("", |inputs| facts.details.texts.get(inputs.dims))
}

/// What an `aten::cat` concatenates. (Some programs begin with an empty tensor.)
fn parts(facts: &Facts<'_>, at: usize) -> Vec<Sizes> {
    let all = entries(dims(facts, at));
    let parts = all.first().and_then(Value::as_array).into_iter().flatten();
    parts.filter_map(numbers).filter(|sizes: &Sizes| *sizes != [0]).collect()
}

/// The chains of calls.
fn chains(calls: impl Iterator<Item = (usize, Vec<Sizes>)>) -> Vec<Chain> {
    let n_of = |sizes: &Sizes| sizes.iter().copied().fold(1, i64::saturating_mul);
    let mut all: Vec<Chain> = Vec::new();
    for (at, parts) in calls {
        let numbers: Vec<i64> = parts.iter().map(n_of).collect();
        let n_elements = numbers.iter().copied().fold(0, i64::saturating_add);
        let mut recent = all.iter_mut().rev().take(RECENT);
        // (To compare numbers is fast, and mostly enough.)
        let found = recent
            .find(|chain| numbers.contains(&chain.n_elements) && appends(&parts, &chain.parts));
        match found {
            Some(chain) => {
                chain.ops.push(at);
                (chain.parts, chain.n_elements) = (parts, n_elements);
            }
            None => all.push(Chain { ops: vec![at], parts, n_elements }),
        }
    }
    all.retain(|chain| chain.ops.len() >= LEAST_CALLS);
    all
}

/// Whether one of these parts is what the parts of an earlier call made, and grows along the same dimension, the outermost one that counts:
/// then a tensor of the final size holds the whole at any time as it lies in memory. (Keys and values of a decoder grow by one token:
/// their remedy is a static cache.)
fn appends(parts: &[Sizes], before: &[Sizes]) -> bool {
    let sum = |parts: &[Sizes], at: usize| {
        parts.iter().fold(0_i64, |sum, part| sum.saturating_add(part[at]))
    };
    let grows = |whole: &Sizes| {
        let differs = |at: &usize| before.iter().any(|part| part.get(*at) != whole.get(*at));
        let Some(at) = (0..whole.len()).find(differs) else { return false };
        let is_alike = |part: &Sizes| {
            part.len() == whole.len() && (0..part.len()).all(|of| of == at || part[of] == whole[of])
        };
        let least = if at == 0 { 1 } else { 2 };
        whole[..at].iter().all(|n| *n == 1)
            && parts.iter().chain(before).all(is_alike)
            && sum(before, at) == whole[at]
            && sum(parts, at) >= whole[at].saturating_add(least)
    };
    // (Only one that has as many elements as the earlier call made: of many equal parts none is looked at twice.)
    let n_of = |sizes: &Sizes| sizes.iter().copied().fold(1, i64::saturating_mul);
    let made = before.iter().map(n_of).fold(0, i64::saturating_add);
    parts.iter().find(|whole| n_of(whole) == made).is_some_and(grows)
}
