//! Equal work that takes another time from some moment on: if it does for all matrix products and convolutions at once, the clock of the GPU
//! has changed. They keep its compute units busy, so that their time follows that clock; where no inputs are recorded, launches of one kernel
//! and launch config count as equal.

use report::units::time;
use timeline::device::platform;
use timeline::median;
use trace::StringId;

use super::equal_kernels::Launch;
use crate::facts::Device;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// Fewer launches on a side show nothing.
const LEAST_LAUNCHES: usize = 4;
/// A change of fewer kernels may be one of their inputs.
const LEAST_NAMES: usize = 3;
/// A smaller change is that of boost clocks.
const LEAST_RATIO: f64 = 1.3;
/// The ratios of kernels that follow one clock differ by less.
const ALIKE: f64 = 1.25;
/// Shorter kernels are mostly their own start and end.
const LONG_NS: i64 = 20_000;
/// Of the time of such kernels, those that change: the others have other inputs, or run in one part only.
const LEAST_SHARE: f64 = 0.8;
/// Of each side, so much is on its side of the other: stragglers are no other clock.
const CLEAR: usize = 10;
/// Letters of a kernel's name in the sentence.
const NAME: usize = 64;

/// What one kernel takes before and after a moment.
struct Change {
    kernel: StringId,
    before_ns: i64,
    after_ns: i64,
    total_ns: i64,
}

impl Change {
    /// How many times as fast it is afterwards.
    fn ratio(&self) -> f64 {
        self.before_ns as f64 / self.after_ns.max(1) as f64
    }

    /// `None` where the times of both sides overlap, or one has too few.
    fn of(launches: &[&Launch], at_ns: i64) -> Option<Self> {
        let kernel = launches.first()?.0.0;
        let (before, after) =
            launches.split_at(launches.partition_point(|(_, (start, _))| *start < at_ns));
        let sorted = |side: &[&Launch]| {
            let mut times: Vec<i64> = side.iter().map(|(_, (_, ns))| *ns).collect();
            trace::sort(&mut times);
            (times.len() >= LEAST_LAUNCHES).then_some(times)
        };
        let (mut before, mut after) = (sorted(before)?, sorted(after)?);
        let low = |times: &[i64]| times[times.len() / CLEAR];
        let high = |times: &[i64]| times[times.len() - 1 - times.len() / CLEAR];
        let is_clear = low(&before) > high(&after) || low(&after) > high(&before);
        let (before_ns, after_ns) = (median(&mut before)?, median(&mut after)?);
        let total_ns = total_ns(launches);
        is_clear.then_some(Self { kernel, before_ns, after_ns, total_ns })
    }
}

/// What the finding says of a device; `alone` are its matrix products and convolutions beside which nothing runs, sorted.
pub(super) fn of_device(
    facts: &Facts<'_>,
    device: &Device<'_>,
    alone: &[Launch],
) -> Option<Finding> {
    let long: Vec<&Launch> = alone.iter().filter(|(_, (_, ns))| *ns >= LONG_NS).collect();
    let groups = || long.chunk_by(|a, b| a.0 == b.0);
    let at_ns = change_of(groups().max_by_key(|launches| total_ns(launches))?)?;
    let changes = groups().filter_map(|launches| Change::of(launches, at_ns));
    let changes: Vec<Change> = changes.collect();
    let most = changes.iter().max_by_key(|change| change.total_ns)?;
    let ratio = most.ratio();
    let is_alike = |of: &&Change| of.ratio() < ratio * ALIKE && of.ratio() > ratio / ALIKE;
    let alike: Vec<&Change> = changes.iter().filter(is_alike).collect();
    let mut names: Vec<StringId> = alike.iter().map(|change| change.kernel).collect();
    names.dedup();
    let alike_ns = alike.iter().fold(0_i64, |sum, change| sum.saturating_add(change.total_ns));
    if ratio.max(1.0 / ratio) < LEAST_RATIO
        || names.len() < LEAST_NAMES
        || (alike_ns as f64) < LEAST_SHARE * total_ns(&long) as f64
    {
        return None;
    }
    let has_inputs = long.iter().all(|(key, _)| key.2.is_some());
    let first_ns = facts.gpu.busy(device.id()).first()?.0;
    let observation = format!(
        "Equal kernels {} from {} after the first work of {} on: {} takes {} before and {} after (medians), and {} more names of matrix \
         products and convolutions change as much.",
        match ratio > 1.0 {
            true => format!("run {ratio:.2} times as fast"),
            false => format!("take {:.2} times as long", 1.0 / ratio),
        },
        time(at_ns.saturating_sub(first_ns)),
        device.name_within(),
        report::short_name(facts.trace.strings.get(most.kernel), NAME),
        time(most.before_ns),
        time(most.after_ns),
        names.len() - 1,
    );
    let lock = match platform(facts.trace) {
        catalog::Platform::Cuda => {
            "lock the clocks while you measure (nvidia-smi --lock-gpu-clocks)"
        }
        _ => "fix the clocks while you measure",
    };
    let meaning = format!(
        "Their grids{} are the same. Probably the clock of the GPU changes: it rises after a start, and heat or a power limit lowers it. Another \
         process on the GPU does the same as it comes or goes. Compare times of one part only; record after a warm-up, or {lock}.",
        if has_inputs { " and inputs" } else { ", as far as the file tells," },
    );
    Some(
        Finding::fact(Rule::EqualKernels, "clock_changes", observation)
            .level(Level::Medium)
            .confidence(if has_inputs { Confidence::Medium } else { Confidence::Low })
            .on(device.name)
            .means(meaning)
            .with("triage", "times as fast", format!("{ratio:.2}")),
    )
}

fn total_ns(launches: &[&Launch]) -> i64 {
    launches.iter().fold(0_i64, |sum, (_, (_, ns))| sum.saturating_add(*ns))
}

/// The moment that parts launches best into two kinds: the one with the largest variance between the two (Otsu's method).
fn change_of(launches: &[&Launch]) -> Option<i64> {
    let sum = total_ns(launches) as f64;
    let (mut before, mut found) = (0.0, None);
    for (n, (_, (start, ns))) in launches.iter().enumerate() {
        let (own, others) = (n as f64, (launches.len() - n) as f64);
        let apart = before / own.max(1.0) - (sum - before) / others;
        let between = own * others * apart * apart;
        if found.is_none_or(|(most, _)| between > most) {
            found = Some((between, *start));
        }
        before += *ns as f64;
    }
    found.map(|(_, at_ns)| at_ns)
}
