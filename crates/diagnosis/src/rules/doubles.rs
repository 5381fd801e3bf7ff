//! M24: work on 64-bit floats in a run whose products take fewer bits. A tensor of NumPy's default type makes that of all that is
//! computed with it. A number without dimensions does not.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use catalog::devices::Format;
use catalog::{CopyRoute, copy_route};
use host::HostSlice;
use host::doing::doing;
use host::links::GpuSlice;
use host::rates::sizes;
use report::units::{percent, time};
use serde_json::Value;
use timeline::inputs::entries;
use timeline::intervals::{both, length, union, without};

use crate::facts::Device;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// Of the wall time.
const LEAST_SHARE: f64 = 0.02;
/// A bound below this part of the wall time is none: the run waits for something else.
const LEAST_BOUND: f64 = 0.01;
/// Products on 64-bit floats that take this part of the time of the others show a program that means them.
const MEANT: i64 = 10;
/// Ops that the sentence names.
const NAMED: usize = 3;
/// Compute capabilities, times ten, of GPUs that compute on 64-bit floats half as fast as on 32-bit ones, or faster (CUDA C++ Programming
/// Guide, "Arithmetic Instructions"; gfx90a, gfx942 and gfx950 in the table of devices).
const HALF_AS_FAST: [u32; 7] = [60, 70, 80, 90, 94, 95, 100];

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    // (Of 32-bit floats not every row has a format: kernels may not tell whether they ran as TF32.)
    let products = |doubles: bool| -> i64 {
        let rows = facts.host.rates.rows.iter();
        let own = rows.filter(|row| (row.format == Some(Format::F64.id())) == doubles);
        own.map(|row| row.device_ns).sum()
    };
    if facts.is_capture() || products(true).saturating_mul(MEANT) >= products(false) {
        return Vec::new();
    }
    facts.devices().filter_map(|device| of_device(facts, &device)).collect()
}

fn of_device(facts: &Facts<'_>, device: &Device<'_>) -> Option<Finding> {
    let all = &facts.slices.ops.slices;
    let mut known: BTreeMap<usize, bool> = BTreeMap::new();
    let is_own = |one: &&GpuSlice| {
        let mut takes = |at| *known.entry(at).or_insert_with(|| takes_doubles(facts, &all[at]));
        one.owner.is_some_and(&mut takes)
    };
    let (own, others): (Vec<&GpuSlice>, Vec<&GpuSlice>) = device.slices().partition(is_own);
    let times = |of: &[&GpuSlice]| union(of.iter().map(|one| one.slice.interval()).collect());
    let exposed = both(&without(&times(&own), &times(&others)), &device.window());
    let (wall_ns, busy_ns) = (facts.wall_ns() as f64, length(facts.gpu.busy(device.id())));
    let total_ns = length(&times(&own));
    if (length(&exposed) as f64) < LEAST_SHARE * wall_ns || total_ns.saturating_mul(2) >= busy_ns {
        return None;
    }
    let text = format!(
        "Float64 ops take {} of GPU time ({} of the busy time): {}.",
        time(total_ns),
        percent(timeline::percent(total_ns, busy_ns)),
        most(facts, &own)
    );
    let finding = Finding::fact(Rule::Doubles, "float64", text)
        .on(device.name)
        .confidence(Confidence::Medium)
        .with("triage", "GPU time on float64", time(total_ns));
    let ops: Vec<(usize, f64)> = own.iter().filter_map(|one| Some((one.owner?, 0.5))).collect();
    let bound_ns = device.saved_by_faster_ns(&ops);
    let share = bound_ns as f64 / wall_ns;
    let first = origin(facts, &own).unwrap_or_default();
    if share < LEAST_BOUND {
        return Some(finding.means(first.trim_end()).aside(true));
    }
    let finding = finding.level(Level::of_share(share));
    let capability = facts.capability(device.name);
    Some(match capability.is_some_and(|of| HALF_AS_FAST.contains(&of)) {
        true => finding.bound(bound_ns).means(format!("{first}{HALF}")),
        false => finding.means(format!("{first}{SLOW}")),
    })
}

const HALF: &str = "In float32 they move half the bytes: the bound, an estimate, is by how much half of that time shortens the run.";
const SLOW: &str = "In float32 they move half the bytes; where the GPU computes float64 at a small part of its float32 rate, it saves more \
                    than half, so that no bound is known.";

/// Whether an op takes a tensor of 64-bit floats. (A compiled function takes many, and its kernels may not.)
fn takes_doubles(facts: &Facts<'_>, op: &HostSlice) -> bool {
    let Some(inputs) = facts.details.inputs(op.row) else { return false };
    let text = |id| facts.details.texts.get(id);
    if !text(inputs.types).contains("double") || !facts.slices.name(op).starts_with("aten::") {
        return false;
    }
    let is_double = |kind: &Value| kind.as_str() == Some("double");
    let has_sizes = |dims: &Value| dims.as_array().is_some_and(|dims| !dims.is_empty());
    let (types, dims) = (entries(text(inputs.types)), entries(text(inputs.dims)));
    types.iter().zip(&dims).any(|(kind, dims)| is_double(kind) && has_sizes(dims))
}

/// The ops with most of that time.
fn most(facts: &Facts<'_>, own: &[&GpuSlice]) -> String {
    let mut sums: Vec<(i64, &str)> = Vec::new();
    for one in own {
        let Some(owner) = one.owner else { continue };
        let name = facts.slices.name(&facts.slices.ops.slices[owner]);
        match sums.iter_mut().find(|(_, other)| *other == name) {
            Some((ns, _)) => *ns += one.slice.dur_ns(),
            None => sums.push((one.slice.dur_ns(), name)),
        }
    }
    trace::sort_by_key(&mut sums, |(ns, _)| Reverse(*ns));
    let named = sums.iter().take(NAMED).map(|(ns, name)| format!("{name} {}", time(*ns)));
    let mut named: Vec<String> = named.collect();
    if sums.len() > NAMED {
        named.push(format!("{} more", sums.len() - NAMED));
    }
    named.join(", ")
}

/// Where it begins.
fn origin(facts: &Facts<'_>, own: &[&GpuSlice]) -> Option<String> {
    let slices = facts.slices;
    let first = own.iter().min_by_key(|one| one.launch.map(|call| call.start_ns))?;
    let made_by = host::copies::made_by(slices, first.owner?);
    let op = &slices.ops.slices[made_by];
    let inputs = facts.details.inputs(slices.ops.slices[first.owner?].row)?;
    let sizes = sizes(facts.details.texts.get(inputs.dims), 1);
    let place = doing(slices, &[(slices.thread(op.row), op.start_ns)]);
    let line = place.into_iter().find_map(|place| place.line);
    let line = line.map(|line| format!(" in {line}")).unwrap_or_default();
    let from_cpu = match copy_route(slices.name(&first.slice)) == CopyRoute::HostToDevice {
        true => ", from the CPU: float64 is NumPy's default",
        false => "",
    };
    Some(format!("The first is {} of {sizes}{line}{from_cpu}. ", slices.name(op)))
}
