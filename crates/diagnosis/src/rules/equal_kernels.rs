//! Equal work that takes a different time: launches of one matrix product or convolution with inputs of one size and one grid, beside which
//! nothing else of the file runs. Their operations do not depend on the values, so what delays the slow ones is not in the file: another
//! process on the GPU, its clocks, or the recording.

use catalog::{Category, RawKind, classify};
use host::links::GpuSlice;
use report::units::{count, percent, time};
use timeline::device::platform;
use trace::{LaunchConfig, StringId};

use super::clock_change;
use crate::facts::Device;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// Fewer equal launches show no fast ones.
const LEAST_LAUNCHES: usize = 5;
/// Of equal launches those that are faster than all but so many percent show what the work costs.
const FAST_PCT: usize = 10;
/// So many times as long as the fast ones: caches and boost clocks make less of a difference.
const SLOW_TIMES: i64 = 3;
/// So many launches of a group are that slow: one alone may be a first launch.
const LEAST_SLOW: usize = 2;
/// Of the busy time, what slow launches take above the fast ones.
const LEAST_SHARE: f64 = 0.2;
/// Letters of a kernel's name in the sentence.
const NAME: usize = 64;

/// What equal launches have in common: kernel, launch config, sizes and number formats of the op's inputs, where these are recorded.
pub(super) type Key = (StringId, LaunchConfig, Option<(StringId, StringId)>);
/// A launch: when it starts, and how long it takes.
pub(super) type Launch = (Key, (i64, i64));

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let (names, platform) = (&facts.trace.strings, platform(facts.trace));
    let is_dense = names.marked(&|name| {
        let category = classify(RawKind::Kernel, name, platform).category;
        matches!(category, Category::Gemm | Category::Conv)
    });
    let mut found = Vec::from_iter(displaced(facts));
    for device in facts.devices() {
        let all = alone(facts, &device, &is_dense);
        // (A change of the clock makes launches differ, too.)
        let change = clock_change::of_device(facts, &device, &all);
        found.extend(change.or_else(|| of_device(facts, &device, &all)));
    }
    found
}

/// Names that do not belong to their times: equal names take other times, but not equal places.
fn displaced(facts: &Facts<'_>) -> Option<Finding> {
    let found = facts.triage.displaced.as_ref()?;
    Some(
        Finding::fact(Rule::EqualKernels, "names_displaced", found.observation())
            .level(if found.is_much(None) { Level::High } else { Level::Info })
            .means(found.meaning())
            .with("triage", "kernels", count(found.n_kernels)),
    )
}

/// Equal launches, fastest first.
struct Group {
    kernel: StringId,
    times: Vec<i64>,
}

impl Group {
    /// What one of them costs.
    fn fast_ns(&self) -> i64 {
        self.times.get(self.times.len() * FAST_PCT / 100).copied().unwrap_or_default()
    }

    fn total_ns(&self) -> i64 {
        self.times.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// What they take above the fast ones; 0 where they are alike.
    fn excess_ns(&self) -> i64 {
        let fast_ns = self.fast_ns();
        let is_slow = |ns: &&i64| **ns >= fast_ns.saturating_mul(SLOW_TIMES);
        let n_slow = self.times.iter().filter(is_slow).count();
        if self.times.len() < LEAST_LAUNCHES || n_slow < LEAST_SLOW || fast_ns == 0 {
            return 0;
        }
        self.times.iter().map(|ns| (ns - fast_ns).max(0)).sum()
    }
}

fn of_device(facts: &Facts<'_>, device: &Device<'_>, all: &[Launch]) -> Option<Finding> {
    let all = groups(all);
    let slow = || all.iter().filter(|group| group.excess_ns() > 0);
    let most = slow().max_by_key(|group| group.excess_ns())?;
    let excess_ns: i64 = slow().map(Group::excess_ns).sum();
    let total_ns: i64 = slow().map(Group::total_ns).sum();
    let busy_ns = timeline::intervals::length(facts.gpu.busy(device.id()));
    let share = excess_ns as f64 / busy_ns.max(1) as f64;
    if share < LEAST_SHARE {
        return None;
    }
    let (first, last) = (most.times.first()?, most.times.last()?);
    let range = format!("{} to {}", time(*first), time(*last));
    let observation = format!(
        "Equal launches differ on {}: {} of {} with the same grid and input sizes take {range}, and nothing else in this file runs \
         meanwhile.",
        device.name_within(),
        count(most.times.len() as u64),
        report::short_name(facts.trace.strings.get(most.kernel), NAME),
    );
    let meaning = format!(
        "Such kernels take {} in all ({} of the busy time); if each took as long as the fast ones of its kind, {}: an estimate. What \
         delays the others is not in this file: another process on the GPU, lower clocks, or the recording. Find out before you tune: \
         only the fast ones show what a kernel costs.",
        time(total_ns),
        percent(100.0 * total_ns as f64 / busy_ns.max(1) as f64),
        time(total_ns.saturating_sub(excess_ns)),
    );
    Some(
        Finding::fact(Rule::EqualKernels, "differ", observation)
            .level(Level::of_share(share))
            .confidence(Confidence::Medium)
            .on(device.name)
            .means(meaning)
            .with("triage", "equal launches", range),
    )
}

/// Launches of matrix products and convolutions on a device with recorded launch configs, beside which nothing runs; sorted.
fn alone(facts: &Facts<'_>, device: &Device<'_>, is_dense: &[bool]) -> Vec<Launch> {
    let mut own: Vec<&GpuSlice> = device.slices().collect();
    trace::sort_by_key(&mut own, |one| one.slice.interval());
    let mut found = Vec::new();
    let mut busy_until = i64::MIN;
    for (at, one) in own.iter().enumerate() {
        let next_ns = own.get(at + 1).map_or(i64::MAX, |next| next.slice.start_ns);
        let is_alone = busy_until <= one.slice.start_ns && one.slice.end_ns <= next_ns;
        busy_until = busy_until.max(one.slice.end_ns);
        let name = facts.trace.name(one.slice.row);
        if is_alone
            && is_dense.get(name.0 as usize) == Some(&true)
            && let Some(config) = config(facts, one)
        {
            let key = (name, config, inputs(facts, one));
            found.push((key, (one.slice.start_ns, one.slice.dur_ns())));
        }
    }
    trace::sort(&mut found);
    found
}

/// Those with recorded inputs, by what they have in common.
fn groups(all: &[Launch]) -> Vec<Group> {
    let groups = all.chunk_by(|a, b| a.0 == b.0).filter(|group| group[0].0.2.is_some());
    let group = |group: &[Launch]| {
        let mut times: Vec<i64> = group.iter().map(|(_, (_, ns))| *ns).collect();
        trace::sort(&mut times);
        Group { kernel: group[0].0.0, times }
    };
    groups.map(group).collect()
}

/// The sizes and formats of the inputs of a kernel's op.
fn inputs(facts: &Facts<'_>, one: &GpuSlice) -> Option<(StringId, StringId)> {
    let op = facts.slices.ops.slices.get(one.owner?)?;
    let inputs = facts.details.inputs(op.row)?;
    Some((inputs.dims, inputs.types))
}

/// The launch config of a kernel.
fn config(facts: &Facts<'_>, one: &GpuSlice) -> Option<LaunchConfig> {
    // (ROCm records it with the call.)
    let rows = [Some(one.slice.row), one.launch.map(|call| call.row)];
    rows.into_iter().flatten().find_map(|row| facts.details.launch(row)).copied()
}
