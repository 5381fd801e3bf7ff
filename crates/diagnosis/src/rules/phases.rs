//! M12, by phase: in which part of a training step memory is taken. Phases are told by the autograd engine's ops and by
//! PyTorch's `Optimizer.step` annotations; without them nothing is said.

use host::HostSlice;
use host::memory::{OfDevice, by_device};
use report::units::{bytes, percent};
use timeline::device::devices;

use crate::{Facts, Finding, Level, Rule};

/// The engine's own ops (torch/csrc/autograd/engine.cpp).
const ENGINE_OP: &str = "autograd::engine::evaluate_function";
/// The annotation around an optimizer's step (torch/optim/optimizer.py).
const OPTIMIZER: &str = "Optimizer.step";
/// A phase that takes this share of the peak is told to take most.
const MOST: f64 = 0.3;
/// From this share of the device's memory on, a change pays.
const FULL: f64 = 0.8;

/// A step with its phases, as times of their ends.
struct Phases {
    start_ns: i64,
    backward_ns: i64,
    backward_end_ns: i64,
    optimizer_end_ns: Option<i64>,
}

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let steps = phases(facts);
    if steps.is_empty() {
        return Vec::new();
    }
    let events = by_device(facts.trace, facts.details);
    let of_gpu = events.iter().filter(|((kind, _), _)| *kind != Some(0));
    of_gpu.filter_map(|((_, id), events)| of_device(facts, &steps, *id, events)).collect()
}

/// The steps that have a backward pass.
fn phases(facts: &Facts<'_>) -> Vec<Phases> {
    let slices = facts.slices;
    let named = |all: &[HostSlice], part: &str| -> Vec<HostSlice> {
        let is = slices.names_with(part);
        let own = all.iter().filter(|one| is[facts.trace.name(one.row).0 as usize]);
        own.copied().collect()
    };
    let engine = named(&slices.ops.slices, ENGINE_OP);
    let mut optimizer = named(&slices.annotations, OPTIMIZER);
    optimizer.extend(named(&slices.ops.slices, OPTIMIZER));
    let of_step = |step: &HostSlice| {
        let own = || engine.iter().filter(|op| step.holds(op.start_ns));
        Some(Phases {
            start_ns: step.start_ns,
            backward_ns: own().map(|op| op.start_ns).min()?,
            backward_end_ns: own().map(|op| op.end_ns).max()?,
            optimizer_end_ns: optimizer
                .iter()
                .filter(|one| step.holds(one.start_ns))
                .map(|one| one.end_ns)
                .max(),
        })
    };
    slices.steps.iter().filter_map(of_step).collect()
}

fn of_device(
    facts: &Facts<'_>,
    steps: &[Phases],
    id: Option<i64>,
    events: &OfDevice,
) -> Option<Finding> {
    let mut sorted = events.clone();
    trace::sort_by_key(&mut sorted, |(at, _)| *at);
    let allocated = |at_ns: i64| {
        let after = sorted.partition_point(|(at, _)| *at <= at_ns);
        sorted.get(after.checked_sub(1)?)?.1.allocated_bytes
    };
    let peak = sorted.iter().filter_map(|(_, event)| event.allocated_bytes).max()?;
    // Of the step with the largest forward growth: others may run before memory is in its steady state.
    let grown = steps.iter().filter_map(|step| {
        let start = allocated(step.start_ns)?;
        let forward = allocated(step.backward_ns)?;
        let backward = allocated(step.backward_end_ns)?;
        let optimizer = step.optimizer_end_ns.and_then(allocated);
        Some((forward - start, backward - forward, optimizer.map(|ns| ns - backward), start))
    });
    let (forward, backward, optimizer, start) = grown.max_by_key(|(forward, ..)| *forward)?;
    let device = format!("Device {}", id.unwrap_or_default());
    let optimizer_text = optimizer
        .map_or_else(String::new, |grown| format!(", {} in the optimizer's step", signed(grown)));
    let text = format!(
        "{device}: a step begins with {} allocated; that changes by {} in the forward pass and {} in the backward pass{optimizer_text}. \
         The peak is {}.",
        bytes(start.max(0) as u64),
        signed(forward),
        signed(backward),
        bytes(peak.max(0) as u64),
    );
    let share = |part: i64| part as f64 / peak.max(1) as f64;
    let takers = [
        ("activations", forward, "What the forward pass keeps for the backward pass (activations)"),
        ("gradients", backward, "What the backward pass leaves (gradients)"),
        ("states", optimizer.unwrap_or(0), "What the optimizer's step leaves (states)"),
        ("before", start, ""),
    ];
    let of_peak = |verdict: &'static str, text: String| {
        let peak = bytes(peak.max(0) as u64);
        Finding::fact(Rule::Memory, verdict, text).with("memory", "peak allocated", peak)
    };
    let (verdict, most, what) = takers.into_iter().max_by_key(|(_, grown, _)| *grown)?;
    if share(most) < MOST || what.is_empty() {
        return Some(of_peak(if share(most) < MOST { "phases" } else { verdict }, text));
    }
    let (mut level, mut meaning) = (Level::Info, String::new());
    let text = format!("{text} {what} takes {} of it.", percent(100.0 * share(most)));
    if let Some(full) = fullness(facts, id, &sorted).filter(|full| *full >= FULL) {
        let lever = match verdict {
            "activations" => {
                "torch.utils.checkpoint trades them for time; a smaller batch has fewer"
            }
            "gradients" => {
                "accumulating them over smaller batches, or sharding them, makes them fewer"
            }
            _ => "an optimizer with fewer or 8-bit states, or sharding, makes them smaller",
        };
        level = Level::Medium;
        meaning = format!("{} of the device's memory is reserved: {lever}.", percent(100.0 * full));
    }
    Some(of_peak(verdict, text).means(meaning).level(level))
}

/// Reserved memory at most, as a share of the device's.
fn fullness(facts: &Facts<'_>, id: Option<i64>, sorted: &OfDevice) -> Option<f64> {
    let reserved = sorted.iter().filter_map(|(_, event)| event.reserved_bytes).max()?;
    let all = devices(facts.trace);
    let own = all.iter().find(|device| id.is_some_and(|id| device.id == id.to_string()))?;
    Some(reserved as f64 / own.memory_bytes.filter(|bytes| *bytes > 0)? as f64)
}

/// A change with its sign.
fn signed(change: i64) -> String {
    let sign = if change < 0 { "-" } else { "+" };
    format!("{sign}{}", bytes(change.unsigned_abs()))
}
