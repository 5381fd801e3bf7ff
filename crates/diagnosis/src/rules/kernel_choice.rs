//! Kernels that make little of the device or of the shapes: built for an earlier generation, with loads of one element, or of last
//! resort.

use std::collections::BTreeMap;

use catalog::Platform;
use catalog::kernel_choice::{NAIVE_REMEDY, NARROW_REMEDY, is_naive, is_narrow, older};
use host::rates::sizes;
use report::units::{percent, plural, time};
use timeline::device::platform;
use timeline::intervals::{Interval, length, union};
use trace::StringId;

use crate::facts::Device;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// Of the time from the first GPU work to the last, together.
const LEAST_SHARE: f64 = 0.05;
/// The same of kernels of last resort: any other takes a small part of their time.
const LEAST_NAIVE_SHARE: f64 = 0.01;
/// Letters of a kernel's name in the sentence.
const NAME: usize = 64;
/// Shapes of an op in the sentence.
const SHAPES: usize = 3;

/// Kernels of one concern on one device.
#[derive(Default)]
struct Sum {
    spans: Vec<Interval>,
    /// Time by op and sizes, and by kernel.
    ops: BTreeMap<(Option<StringId>, Option<StringId>), i64>,
    kernels: BTreeMap<StringId, i64>,
}

impl Sum {
    fn add(&mut self, facts: &Facts<'_>, one: &host::links::GpuSlice) {
        let op = one.owner.map(|owner| facts.slices.ops.slices[owner].row);
        let name = op.map(|row| facts.trace.name(row));
        let dims = op.and_then(|row| facts.details.inputs(row)).map(|inputs| inputs.dims);
        let kernel = facts.trace.name(one.slice.row);
        self.spans.push(one.slice.interval());
        for sum in
            [self.ops.entry((name, dims)).or_default(), self.kernels.entry(kernel).or_default()]
        {
            *sum = sum.saturating_add(one.slice.dur_ns());
        }
    }

    /// `op with most of it: aten::mm [64,1001] [1001,512] (1.2 ms); kernel with most of it: cutlass_80_... (1.1 ms)`. At least one of them runs
    /// for `ns`.
    fn most(&self, facts: &Facts<'_>, ns: i64) -> Option<String> {
        let ((op, dims), op_ns) = self.ops.iter().max_by_key(|(_, ns)| **ns)?;
        let (kernel, kernel_ns) = self.kernels.iter().max_by_key(|(_, ns)| **ns)?;
        let op = match op {
            Some(op) => {
                let dims = dims.map(|dims| sizes(facts.details.texts.get(dims), SHAPES));
                let text = format!("{} {}", facts.trace.strings.get(*op), dims.unwrap_or_default());
                format!("op with most of it: {} ({}); ", text.trim_end(), time(*op_ns))
            }
            None => String::new(),
        };
        let kernel = report::short_name(facts.trace.strings.get(*kernel), NAME);
        let in_all = if *kernel_ns > ns { " in all: several run at a time" } else { "" };
        Some(format!("{op}kernel with most of it: {kernel} ({}{in_all})", time(*kernel_ns)))
    }
}

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    match platform(facts.trace) {
        Platform::Cuda => {}
        Platform::Rocm => {
            let is_naive = facts.trace.strings.marked(&is_naive);
            return facts.devices().filter_map(|device| naive(facts, &device, &is_naive)).collect();
        }
        _ => return Vec::new(),
    }
    // (Rows of odd sizes are why: M14 names the sizes.)
    if super::flops::misaligned(facts).is_some() {
        return Vec::new();
    }
    let found = facts.devices();
    found.flat_map(|device| of_device(facts, &device, facts.capability(device.name))).collect()
}

/// Only a part of the time of such kernels would go away, so it is never more than the middle level.
fn level(share: f64) -> Level {
    Level::of_share(share).max(Level::Medium)
}

/// The time that these spans cover, and its share of the time from the first GPU work to the last.
fn share_of(spans: &[Interval], device: &Device<'_>) -> (i64, f64) {
    let ns = length(&union(spans.to_vec()));
    (ns, ns as f64 / device.span_ns().max(1) as f64)
}

/// MIOpen's convolutions of last resort.
fn naive(facts: &Facts<'_>, device: &Device<'_>, is_naive: &[bool]) -> Option<Finding> {
    let mut sum = Sum::default();
    let is_it = |one: &&host::links::GpuSlice| is_naive[facts.trace.name(one.slice.row).0 as usize];
    let own = device.slices().filter(|one| one.is_kernel).filter(is_it);
    let n = own.inspect(|one| sum.add(facts, one)).count();
    let (ns, share) = share_of(&sum.spans, device);
    let most = sum.most(facts, ns)?;
    if share < LEAST_NAIVE_SHARE {
        return None;
    }
    let text = format!(
        "{} of MIOpen's fallback convolution (naive_conv) take {} ({} of the time from the first GPU work to the last); {most}.",
        plural(n as u64, "launch", "launches"),
        time(ns),
        percent(100.0 * share)
    );
    Some(
        Finding::fact(Rule::KernelChoice, "naive_convolution", text)
            .level(level(share))
            .on(device.name)
            .confidence(Confidence::Medium)
            .means(NAIVE_REMEDY)
            .with("triage", "GPU time of such kernels", time(ns)),
    )
}

fn of_device(facts: &Facts<'_>, device: &Device<'_>, capability: Option<u32>) -> Vec<Finding> {
    let mut narrow = Sum::default();
    let mut old: BTreeMap<(&'static str, &'static str), Sum> = BTreeMap::new();
    // By name of a kernel: whether it is narrow, and what it was built for.
    let mut known = BTreeMap::new();
    // (An action on their number format replaces them, and says so with its bound.)
    let is_replaced = super::precision::is_advised(facts);
    for one in device.slices().filter(|one| one.is_kernel) {
        let (is_narrow, built) =
            *known.entry(facts.trace.name(one.slice.row)).or_insert_with(|| {
                let name = facts.slices.name(&one.slice);
                (is_narrow(name), capability.and_then(|capability| older(name, capability)))
            });
        if is_narrow {
            narrow.add(facts, one);
        }
        if let Some(built) = built.filter(|built| !is_replaced || !built.multiplies_floats()) {
            old.entry((built.generation, built.remedy)).or_default().add(facts, one);
        }
    }
    let mut found = Vec::new();
    let (ns, share) = share_of(&narrow.spans, device);
    if let Some(most) = narrow.most(facts, ns).filter(|_| share >= LEAST_SHARE) {
        let text = format!(
            "Tensor core kernels that load one element at a time (align1) take {} ({} of the time from the first GPU work to the last); {most}.",
            time(ns),
            percent(100.0 * share)
        );
        found.push(
            Finding::fact(Rule::KernelChoice, "narrow_loads", text)
                .level(level(share))
                .on(device.name)
                .confidence(Confidence::Medium)
                .means(NARROW_REMEDY)
                .with("triage", "GPU time of such kernels", time(ns)),
        );
    }
    // Every row counts for the gate, because a device waits for all of them; the sentences differ by what to try.
    let all: Vec<Interval> = old.values().flat_map(|sum| sum.spans.iter().copied()).collect();
    if share_of(&all, device).1 < LEAST_SHARE {
        return found;
    }
    // (Kernels for one generation differ by what to try.)
    let mut generations: Vec<&str> = old.keys().map(|(generation, _)| *generation).collect();
    generations.dedup();
    let is_one = generations.len() == 1;
    let largest = old.into_iter().max_by_key(|(_, sum)| share_of(&sum.spans, device).0);
    if let Some(((generation, remedy), sum)) = largest
        && let Some(most) = sum.most(facts, share_of(&sum.spans, device).0)
    {
        let ((all_ns, all_share), (ns, _)) = (share_of(&all, device), share_of(&sum.spans, device));
        let these = match ns < all_ns {
            true if !is_one => {
                format!("The largest part, {}, is of kernels for {generation}", time(ns))
            }
            _ => format!("They are kernels for {generation}"),
        };
        let text = format!(
            "Kernels built for an earlier GPU generation take {} ({} of the time from the first GPU work to the last). {these}; {most}.",
            time(all_ns),
            percent(100.0 * all_share)
        );
        found.push(
            Finding::fact(Rule::KernelChoice, "older_generation", text)
                .level(level(all_share))
                .on(device.name)
                // The name does not say whether a newer kernel exists: a measurement of what is advised settles it.
                .confidence(Confidence::Low)
                .means(remedy)
                .with("triage", "GPU time of such kernels", time(all_ns)),
        );
    }
    found
}
