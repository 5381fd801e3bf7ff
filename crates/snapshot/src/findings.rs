//! What follows from the figures of a snapshot.
//!
//! The thresholds are heuristics of this project: no project publishes a level at which fragmentation matters. Each needs a gate in
//! bytes, because the ratio alone is high on healthy runs.

use report::units::count;
use report::{Confidence, Finding};

use crate::amounts::{percent, size};
use crate::model::Snapshot;
use crate::report::{DeviceReport, OomRow, SnapshotReport, Timeline};
use crate::site::{NO_STACK, Phase};
use crate::whatif::WhatIf;

const GIB: i64 = 1 << 30;

/// Every finding, the worst first per device.
pub(crate) fn findings(snapshot: &Snapshot, report: &SnapshotReport) -> Vec<Finding> {
    let settings = snapshot.settings.as_deref().unwrap_or_default();
    let is_expandable = report.format.expandable
        || settings.replace(' ', "").contains("\"expandable_segments\":true");
    let mut findings = Vec::new();
    if report.reading.is_partial() {
        // Sums and levels of a part of a file would be read as those of the run.
        return findings;
    }
    for (device, figures) in &report.devices {
        if let Some(timeline) = &figures.timeline {
            inconsistent(device, timeline, &mut findings);
            for oom in &timeline.ooms {
                findings.push(out_of_memory(device, oom));
            }
            if timeline.replay.trace_matches_snapshot && timeline.replay.timeline_usable {
                peak(device, timeline, &mut findings);
            }
        }
        leaking(device, figures, &mut findings);
        let what_if = report.what_if.get(device);
        fragmentation(device, figures, is_expandable, what_if, &mut findings);
        cached(device, figures, &mut findings);
        rounding(device, figures, &mut findings);
        if let Some(what_if) = what_if {
            findings.extend(crate::whatif::advice(device, what_if, is_windows(snapshot)));
        }
    }
    // A failed allocation is why the snapshot was written: the state at its end is that after unwinding.
    findings.sort_by_key(|finding| finding.rule != "out-of-memory");
    findings
}

/// Whether a stack has a path with a drive letter. (The file records no platform.)
fn is_windows(snapshot: &Snapshot) -> bool {
    let blocks = snapshot.blocks.iter().map(|block| block.stack);
    let events = snapshot.traces.iter().flatten().map(|event| event.stack);
    let mut stacks: Vec<_> = blocks.chain(events).collect();
    stacks.sort_unstable();
    stacks.dedup();
    stacks.iter().flat_map(|stack| snapshot.stacks.frames(*stack)).any(|frame| {
        let path = snapshot.stacks.text(frame.filename).as_bytes();
        matches!(path, [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic())
    })
}

fn finding(rule: &'static str, confidence: Confidence, observation: String) -> Finding {
    Finding {
        rule: rule.into(),
        observation,
        hypothesis: String::new(),
        action: String::new(),
        validation: String::new(),
        confidence,
        evidence: Vec::new(),
    }
}

/// A trace that contradicts the segments.
fn inconsistent(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let replay = &timeline.replay;
    if replay.trace_matches_snapshot || !replay.timeline_usable {
        return;
    }
    let observation = format!(
        "Device {device}: the events contradict the segments. {} of {} allocations alive at the end match a block; live \
         memory exceeds reserved memory by up to {}; {} allocations without an end, {} double allocations, {} double \
         frees, {} size mismatches, {} negative levels.",
        count(replay.agree),
        count(replay.trace_live_end),
        size(replay.max_live_over_reserved),
        count(replay.backward_orphan_allocs),
        count(replay.double_alloc),
        count(replay.backward_double_frees),
        count(replay.size_mismatch),
        count(replay.negative_levels),
    );
    to.push(Finding {
        hypothesis: "The file was edited, cut or assembled from several runs, or actions were skipped while recording. The \
                     timeline and the peak are not reliable; the totals of the segments do not depend on the events."
            .to_owned(),
        action: "Record the snapshot again in one process with torch.cuda.memory._record_memory_history().".to_owned(),
        validation: "trace_matches_snapshot is true.".to_owned(),
        evidence: vec![format!("devices.{device}.replay")],
        ..finding("inconsistent-trace", Confidence::High, observation)
    });
}

fn out_of_memory(device: &str, oom: &OomRow) -> Finding {
    let free = oom.device_free.map_or("an unrecorded amount".to_owned(), size);
    let observation = format!(
        "Device {device}, event {}: an allocation of {} failed at {}. Live (requested bytes): {}, reserved: {}, free on the device: \
         {free}, largest free range: {}, free ranges of the stream: at most {}.",
        oom.index,
        size(oom.size),
        oom.site,
        size(oom.live_requested),
        size(oom.reserved),
        size(oom.largest_cached_free),
        size(oom.cached_free_same_stream),
    );
    // The narrower test: default pool and segment type of the request.
    let fits = oom.size <= oom.cached_free_same_pool.saturating_add(oom.device_free.unwrap_or(0));
    // Events do not record the pool: only when all free ranges of the stream are too small, the pool does not matter.
    let is_certain = !oom.fits_if_defragmented && oom.device_free.is_some();
    let (hypothesis, action) = if fits {
        (
            "Fragmentation: the free ranges of the same stream and pool would hold the request if they were one range (upper \
             bound: the rounded size of blocks that were freed later is not recorded).",
            "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or keep tensor shapes stable.",
        )
    } else {
        (
            "Capacity: the free ranges of the same stream and pool together are smaller than the request.",
            "Reduce live memory: a smaller batch, activation checkpointing, or sharded or offloaded optimizer state.",
        )
    };
    Finding {
        hypothesis: hypothesis.to_owned(),
        action: action.to_owned(),
        validation: "The trace has no oom event.".to_owned(),
        evidence: vec![format!("devices.{device}.ooms")],
        ..finding(
            "out-of-memory",
            if is_certain { Confidence::High } else { Confidence::Medium },
            observation,
        )
    }
}

fn peak(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let replay = &timeline.replay;
    let peak = replay.peak_requested;
    if let Some(top) = replay.peak_by_site.first()
        && percent(top.bytes, peak) >= 30.0
        && top.site != NO_STACK
    {
        let observation = format!(
            "Device {device}: {} allocated {} of the {} alive at the peak ({:.0}%) in {} blocks.",
            top.site,
            size(top.bytes),
            size(peak),
            percent(top.bytes, peak),
            count(top.count)
        );
        to.push(Finding {
            hypothesis: "One site dominates the peak.".to_owned(),
            action: "Reduce what this line keeps alive, first.".to_owned(),
            validation: format!("peak_requested falls below {}.", size(peak)),
            evidence: vec![format!("devices.{device}.replay.peak_by_site")],
            ..finding("dominant-site", Confidence::High, observation)
        });
    }
    let largest = replay.peak_by_phase.iter().max_by_key(|(_, bytes)| **bytes);
    let Some((phase, bytes)) = largest else { return };
    let action = match phase {
        Phase::Forward => "Checkpoint activations, or reduce the batch or the sequence length.",
        Phase::Backward => "Shard or accumulate gradients, and free them with set_to_none=True.",
        Phase::Optimizer => "Use 8-bit or sharded optimizer states.",
        Phase::Unknown | Phase::Other => return,
    };
    let observation = format!(
        "Device {device}: stacks of the {} phase allocated {} of the {} alive at the peak ({:.0}%).",
        phase.label(),
        size(*bytes),
        size(peak),
        percent(*bytes, peak)
    );
    to.push(Finding {
        hypothesis: "The phase is read from the allocating stack (an estimate: stacks without Python frames are unknown)."
            .to_owned(),
        action: action.to_owned(),
        validation: format!("peak_requested falls below {}.", size(peak)),
        evidence: vec![format!("devices.{device}.replay.peak_by_phase")],
        ..finding("peak-phase", Confidence::Medium, observation)
    });
}

fn leaking(device: &str, figures: &DeviceReport, to: &mut Vec<Finding>) {
    for leak in figures.leaks.iter().flatten().take(3) {
        let observation = format!(
            "Device {device}: live memory of {} grew in each of {} consecutive steps, by {} per step ({} in all).",
            leak.site,
            leak.steps,
            size(leak.bytes_per_step),
            size(leak.total)
        );
        to.push(Finding {
            hypothesis: "References to its tensors accumulate: for example a list of losses that keep their graphs. Caches that \
                         fill up look the same."
                .to_owned(),
            action: "Store detached values (loss.item(), tensor.detach().cpu()), or bound the container.".to_owned(),
            validation: "bytes_per_step is 0.".to_owned(),
            evidence: vec![format!("devices.{device}.leaks")],
            ..finding("growing-memory", Confidence::Medium, observation)
        });
    }
}

fn fragmentation(
    device: &str,
    figures: &DeviceReport,
    expandable: bool,
    what_if: Option<&WhatIf>,
    to: &mut Vec<Finding>,
) {
    let (reserved, hard) = (figures.totals.reserved, figures.free.hard);
    let share = percent(hard, reserved);
    // Below 1 GiB the ratio is high on healthy runs.
    if reserved < GIB || share < 10.0 {
        return;
    }
    let observation = format!(
        "Device {device}: {} of {} reserved ({share:.0}%) are free ranges that empty_cache cannot return, because other blocks \
         of their segments are in use. The largest free block has {}.",
        size(hard),
        size(reserved),
        size(figures.totals.largest_free)
    );
    let action = if expandable {
        "Expandable segments are already on: keep tensor shapes stable, or allocate long-lived tensors first. Do not add \
         max_split_size_mb: together they can grow reserved memory without bound (pytorch#193400)."
    } else if what_if.is_some_and(WhatIf::rules_out_expandable) {
        "Keep tensor shapes stable, or allocate long-lived tensors first. (A replay of this run under \
         expandable_segments:True reserves as much.)"
    } else {
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or keep tensor shapes stable."
    };
    let level = if share >= 30.0 { "High" } else { "Medium" };
    to.push(Finding {
        hypothesis: format!("{level} fragmentation at the time of the snapshot (heuristic: 10% and 30% of reserved)."),
        action: action.to_owned(),
        validation: format!("inactive_split falls below {}.", size(figures.totals.inactive_split)),
        evidence: vec![format!("devices.{device}.totals.inactive_split")],
        ..finding("fragmentation", Confidence::Medium, observation)
    });
}

fn cached(device: &str, figures: &DeviceReport, to: &mut Vec<Finding>) {
    let (reserved, free) = (figures.totals.reserved, figures.free.releasable);
    if reserved < GIB || percent(free, reserved) < 20.0 {
        return;
    }
    // After a failure the tensors of the step are gone: the cache says nothing about the run.
    if figures.timeline.as_ref().is_some_and(|timeline| !timeline.ooms.is_empty()) {
        return;
    }
    let observation = format!(
        "Device {device}: {} of {} reserved ({:.0}%) are cache that empty_cache returns to the driver.",
        size(free),
        size(reserved),
        percent(free, reserved)
    );
    to.push(Finding {
        hypothesis: "This is the allocator's cache, not a leak.".to_owned(),
        action: "Call torch.cuda.empty_cache() at a change of phase only if another process or library needs the memory."
            .to_owned(),
        validation: "reserved falls.".to_owned(),
        evidence: vec![format!("devices.{device}.totals.inactive")],
        ..finding("returnable-cache", Confidence::High, observation)
    });
}

fn rounding(device: &str, figures: &DeviceReport, to: &mut Vec<Finding>) {
    let (active, waste) = (figures.totals.active, figures.totals.rounding_waste);
    if waste < 256 << 20 || percent(waste, active) < 10.0 {
        return;
    }
    let observation = format!(
        "Device {device}: blocks in use are {} larger than what was requested ({:.0}% of {}).",
        size(waste),
        percent(waste, active),
        size(active)
    );
    to.push(Finding {
        hypothesis: "Sizes are rounded to 512 bytes, and remainders up to 1 MiB of the large pool are not split off."
            .to_owned(),
        action: "Allocate many tensors of similar size as one and use views, or choose sizes that are multiples of 2 MiB."
            .to_owned(),
        validation: format!("rounding_waste falls below {}.", size(waste)),
        evidence: vec![format!("devices.{device}.totals.rounding_waste")],
        ..finding("rounding", Confidence::Medium, observation)
    });
}
