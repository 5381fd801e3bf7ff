//! M12: memory from `[memory]` events: the peak, and growth from step to step.

use catalog::remedies::RunType;
use host::memory::{OfDevice, by_device};
use report::units::{bytes, count, percent};

use crate::{Confidence, Facts, Finding, Level, Rule};

/// Steps in a row that must grow.
const FEWEST_STEPS: usize = 3;
/// Growth per step from this share of the allocated bytes on.
const LEAST_GROWTH: f64 = 0.01;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for row in &facts.host.memory {
        let Some(peak) = row.peak_total_allocated.filter(|peak| *peak > 0) else { continue };
        let of_gpu = row.device_type != Some(0);
        let device = if of_gpu {
            format!("Device {}", row.device_id.unwrap_or_default())
        } else {
            "The CPU".into()
        };
        let path = "memory";
        if of_gpu {
            let reserved = row.peak_total_reserved.unwrap_or_default();
            let flat = row.reserved_increases + row.reserved_decreases == 0;
            // (Engines reserve a part of the device by setting, for their cache of keys and values.)
            if flat && super::copies::serves(facts) {
                continue;
            }
            // (Nor does anything follow where a program that trains nothing does the same.)
            let is_set = flat && infers(facts);
            let flat = if flat { ", which does not change" } else { "" };
            // (What a graph allocates is a part of its pool, and has no events.)
            let allocated = match facts.has_graphs() {
                true => String::new(),
                false => format!("{} allocated, ", bytes(peak as u64)),
            };
            let text = format!(
                "{device}: at most {allocated}{} reserved{flat}.",
                bytes(reserved.max(0) as u64)
            );
            let of_device = row.device_id.and_then(|id| installed(facts, id));
            let finding = Finding::fact(Rule::Memory, "peak", text)
                .with(path, "peak allocated", bytes(peak as u64))
                .with(path, "events", count(row.n as u64));
            found.push(match of_device {
                Some(all) => {
                    let (share, room) = (share_of(reserved, all), room(facts, all, reserved));
                    finding
                        .with(path, "reserved share of the device", percent(share))
                        .aside(room.is_empty() || is_set && !room.contains(BATCH))
                        .means(room)
                }
                None => finding,
            });
        }
    }
    for ((kind, id), events) in by_device(facts.trace, facts.details) {
        found.extend(growth(facts, kind, id, &events));
    }
    found.extend(super::phases::check(facts));
    found
}

/// What follows from memory that is not reserved.
const BATCH: &str = " There is room for a larger batch.";

/// Whether nothing is trained.
fn infers(facts: &Facts<'_>) -> bool {
    facts.triage.run_facts.run == Some(RunType::Inference)
}

/// Of the wall time in percent: from this on a run waits for its data.
const LEAST_LOADING: f64 = 10.0;
/// Below this share of the device, in percent, memory does not keep a batch from being larger; below this share of the peak it pays.
const HALF: f64 = 50.0;

/// A GPU that stands still for more than the rest of its window waits for something else than a larger batch.
const BUSY: f64 = 0.8;

/// Memory of a device in bytes, as the file has it.
fn installed(facts: &Facts<'_>, id: i64) -> Option<u64> {
    facts.properties(&id.to_string())?.memory_bytes
}

/// Below this share of the device, in percent, memory is worth a word only where a batch can be larger.
const NOTABLE: f64 = 10.0;

fn share_of(bytes: i64, all: u64) -> f64 {
    100.0 * bytes.max(0) as f64 / all.max(1) as f64
}

/// How much of the device PyTorch leaves free; empty where it reserves little and that changes nothing. (Other processes, and
/// libraries beside PyTorch, may use a part of that.) Where the
/// ops with most time reach half of the peak already, a larger batch does little more work in the same time.
fn room(facts: &Facts<'_>, all: u64, reserved: i64) -> String {
    let share = share_of(reserved, all);
    let near_peak = facts.host.rates.rows.first().and_then(|row| row.peak_pct);
    // (Nor where the data loader keeps the GPU waiting.)
    let mut loading = facts.wall.iter().filter(|row| row.part == triage::WallPart::DataLoading);
    let gains = near_peak.is_none_or(|pct| pct < HALF)
        && facts.devices().all(|device| device.busy_share() >= BUSY)
        && !loading.any(|row| row.share_pct >= LEAST_LOADING);
    let batch = if share < HALF && gains { BATCH } else { "" };
    if share < NOTABLE && batch.is_empty() {
        return String::new();
    }
    format!("PyTorch reserves {} of the device's {}.{batch}", percent(share), bytes(all))
}

/// Allocated bytes at the end of each step grow, step after step.
fn growth(
    facts: &Facts<'_>,
    kind: Option<i64>,
    id: Option<i64>,
    events: &OfDevice,
) -> Option<Finding> {
    let mut sorted = events.clone();
    trace::sort_by_key(&mut sorted, |(at, _)| *at);
    let at_end = |step: &host::HostSlice| {
        let after = sorted.partition_point(|(at, _)| *at < step.end_ns);
        sorted.get(after.checked_sub(1)?)?.1.allocated_bytes
    };
    let levels: Vec<i64> = facts.slices.steps.iter().filter_map(at_end).collect();
    let grown: Vec<i64> = levels.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if grown.len() < FEWEST_STEPS - 1 || levels.len() < facts.slices.steps.len() {
        return None;
    }
    let least = *grown.iter().min()?;
    let first = *levels.first()?;
    if least <= 0 || (least as f64) < LEAST_GROWTH * first.max(1) as f64 {
        return None;
    }
    let mean = grown.iter().sum::<i64>() / grown.len() as i64;
    let same = grown.iter().all(|bytes| *bytes == mean);
    let device = if kind == Some(0) {
        "The CPU".to_owned()
    } else {
        format!("Device {}", id.unwrap_or_default())
    };
    let text = format!(
        "{device}: each of {} steps ends with {} {} more allocated than the one before.",
        count(levels.len() as u64),
        if same { "exactly" } else { "on average" },
        bytes(mean as u64)
    );
    Some(
        Finding::fact(Rule::Memory, "growth", text)
            .level(Level::High)
            .confidence(Confidence::Medium)
            .means("Something keeps tensors of each step: a list of losses with their graphs, or outputs that are stored.")
            .with("memory", "bytes per step", mean),
    )
}
