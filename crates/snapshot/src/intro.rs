//! The sentences before the tables: what a person would say first, the state of each device, what was not recorded or not read.

use report::units::{count, plural};

use crate::amounts::{percent, share, size};
use crate::headline::recurs;
use crate::model::{LeftOut, Reading};
use crate::ooms::OomRow;
use crate::report::{DeviceReport, SnapshotReport, Timeline};
use crate::site::{MOST_WORKSPACES, NO_STACK, WORKSPACE_BYTES};
use crate::steps::flat;

/// Free memory is told from this share of reserved memory on, in percent. (Only a failed allocation records how much the device has.)
const LEAST_FREE: f64 = 5.0;
/// Without a failed allocation or a retry, free memory is told where reserved memory exceeds what is in use at the peak by this part of
/// it, in percent, and by these bytes: else the peak needs it.
const LEAST_SPARE: f64 = 10.0;
const LEAST_SPARE_BYTES: i64 = 32 << 20;
/// The same after a failed allocation, and what a stream still uses.
const LEAST_PART: f64 = 0.5;
/// The state at the end is that at a failed allocation up to this change, in percent of reserved memory.
const MOST_CHANGE: f64 = 2.0;
/// The state at the end is told where less of what the peak needs is allocated, in percent.
const MOST_OF_PEAK: f64 = 80.0;
/// Reserved memory is told where less of it is allocated, in percent.
const NEARLY_ALL: f64 = 99.0;
/// A private pool is told from this share of reserved memory on, in percent.
const LEAST_PRIVATE: f64 = 50.0;
/// Blocks that are listed by size, where no stacks are recorded.
const MOST_BLOCKS: usize = 10;
/// Sizes of them.
const MOST_SIZES: usize = 4;

/// The sentences of the first chapter; `first` is that of a person, with its device.
pub(crate) fn intro(report: &SnapshotReport, first: Option<&(&str, String)>) -> Vec<String> {
    let SnapshotReport { devices, reading, is_complete, .. } = report;
    let mut lines = Vec::new();
    let mut gaps = gaps_of(reading);
    if reading.is_partial() {
        // Before any figure, because every figure is too small.
        lines.append(&mut gaps);
    }
    lines.extend(first.map(|first| first.1.clone()));
    lines.extend(reading.left_out.iter().map(|(device, left_out)| {
        let kept = report.n_events(&device.to_string());
        ranged(*device, *left_out, kept as u64)
    }));
    for (device, figures) in devices {
        let is_first = first.is_some_and(|first| first.0 == device);
        lines.extend(state(device, figures, report, is_first));
        lines.extend(spare(device, figures, report));
        lines.extend(private(device, figures).filter(|_| !report.is_bystander(figures)));
        let usable = figures.timeline.as_ref().filter(|it| it.is_usable() && !reading.is_partial());
        let grows = figures.leaks.as_ref().is_some_and(|leaks| !leaks.is_empty());
        let recurs = |it| if grows { None } else { recurs(device, it) };
        lines.extend(usable.and_then(|it| flat(device, &it.by_step).or_else(|| recurs(it))));
        lines.extend(by_size(device, figures));
    }
    lines.extend(not_recorded(report));
    if devices.is_empty() {
        lines.push(
            "The snapshot has no segment and no event: the process that wrote it held no GPU memory of PyTorch then. Write it in the \
             process that runs the model, after the model was loaded."
                .to_owned(),
        );
    }
    lines.append(&mut gaps);
    if !is_complete {
        lines.push("Findings and other allocator settings are being computed.".to_owned());
    }
    lines
}

/// Why there is no timeline, and how to record one; `None` where a device has one, and where events were left out or lost.
fn not_recorded(report: &SnapshotReport) -> Option<String> {
    let SnapshotReport { devices, reading, .. } = report;
    let is_known = |figures: &DeviceReport| figures.events > 1;
    if devices.is_empty()
        || devices.values().any(is_known)
        || reading.is_partial()
        || !reading.left_out.is_empty()
    {
        return None;
    }
    let has_stacks =
        devices.values().any(|it| it.live_sites.iter().any(|row| row.site != NO_STACK));
    let is_single = devices.values().any(|figures| figures.events > 0);
    let what = if reading.is_segment_list {
        "The file is the list of segments that torch.cuda.memory_snapshot() returns: it has no events."
    } else if is_single && reading.has_history {
        "The file records no timeline: it has a single event, as with trace_alloc_max_entries=1, the default of PyTorch 2.0."
    } else if is_single {
        "The file records no timeline: it has a single event, as with enabled=\"state\"."
    } else if has_stacks {
        return Some(
            "The file has stacks and no events: recording was on, and off when the snapshot was taken; turning it off discards the events. \
             For a peak and its causes, write the snapshot after the steps of interest and before \
             torch.cuda.memory._record_memory_history(enabled=None)."
                .to_owned(),
        );
    } else {
        "The file has no events and no stacks: recording was off (an observer of failed allocations alone does not turn it on)."
    };
    let missing = if has_stacks { "a peak" } else { "call sites, a peak" };
    // (Blocks have a history in PyTorch 2.0, whose function has other parameters.)
    let parameters = match reading.has_history {
        true => "True, trace_alloc_max_entries=100000, trace_alloc_record_context=True",
        false => "",
    };
    Some(format!(
        "{what} For {missing} and its causes, call torch.cuda.memory._record_memory_history({parameters}) at the start of the process, and \
         write torch.cuda.memory._snapshot() after the steps of interest."
    ))
}

/// What a chosen range leaves out, and what that means for the figures.
fn ranged(device: usize, LeftOut { before, behind }: LeftOut, kept: u64) -> String {
    let all = count(before + kept + behind);
    if kept == 0 {
        return format!("Device {device}: no event of its {all} is in the chosen range.");
    }
    format!(
        "Device {device}: only events {} to {} of {all} were kept, {} before and {} after them left out. Peak, states, call sites and \
         findings are those of this range; its events are numbered from 0, its steps from 1. Segments and blocks are those at the time of \
         the snapshot.",
        count(before),
        count(before + kept - 1),
        count(before),
        count(behind)
    )
}

/// The state of a device at the end; `None` where it says nothing of the run, because an error freed what was in use.
/// `is_first`: the first sentence is on this device.
fn state(
    device: &str,
    figures: &DeviceReport,
    report: &SnapshotReport,
    is_first: bool,
) -> Option<String> {
    let (totals, timeline) = (&figures.totals, figures.timeline.as_ref());
    if report.is_bystander(figures) {
        let usable = timeline.filter(|it| it.is_usable());
        return Some(match usable.map(|it| &it.replay) {
            Some(replay) => format!(
                "Device {device} did not run out of memory: {} are in use at its peak, {} reserved.",
                size(replay.peak_requested),
                size(replay.peak_reserved)
            ),
            None => format!(
                "Device {device} did not run out of memory: {} are reserved.",
                size(totals.reserved)
            ),
        });
    }
    if timeline.is_some_and(Timeline::is_unwound) {
        return None;
    }
    // (The sentences on the failed allocation have the same figures.)
    let last = timeline.and_then(|it| it.ooms.last());
    let is_same = |oom: &OomRow| {
        let change = totals.allocated.saturating_sub(oom.live_requested).saturating_abs();
        oom.reserved == totals.reserved && percent(change, totals.reserved) < MOST_CHANGE
    };
    if last.is_some_and(is_same) && is_first {
        return None;
    }
    let mut parts = String::new();
    let least = if figures.has_failed() { LEAST_PART } else { LEAST_FREE };
    let is_needed = timeline.is_some_and(needs_all) && !report.is_pressed(device);
    let cached = if is_needed { f64::INFINITY } else { least };
    for (bytes, least, what) in [
        (figures.free.releasable, cached, "free and returnable"),
        (figures.free.hard, cached, "free and not returnable"),
        (figures.free.private, least, "free in private pools (as of CUDA graphs, which keep them)"),
        (totals.pending_free, LEAST_PART, "freed by the program and still in use by a stream"),
    ] {
        if percent(bytes, totals.reserved) >= least {
            parts.push_str(&format!(", {} {what}", size(bytes)));
        }
    }
    // (The first sentence has what is in use: nearly all, or a peak that is hardly more.)
    let most = match timeline.is_some_and(Timeline::is_usable) {
        true if is_needed => MOST_OF_PEAK,
        true => 100.0 - LEAST_FREE,
        false => NEARLY_ALL,
    };
    if is_first && parts.is_empty() && percent(totals.allocated, totals.reserved) >= most {
        return None;
    }
    Some(format!(
        "Device {device} at the time of the snapshot: {} reserved, {} allocated ({} of reserved){parts}.",
        size(totals.reserved),
        size(totals.allocated),
        share(totals.allocated, totals.reserved),
    ))
}

/// Why no other setting is compared where more is reserved than the recorded peak needs.
fn spare(device: &str, figures: &DeviceReport, report: &SnapshotReport) -> Option<String> {
    let timeline = figures.timeline.as_ref().filter(|it| it.is_usable() && !needs_all(it))?;
    let what_if = report.what_if.get(device).filter(|it| it.reproduced)?;
    let why = what_if.withheld.as_ref().filter(|_| !report.is_pressed(device))?;
    let replay = &timeline.replay;
    Some(format!(
        "Device {device}: {} are reserved, {} more than are in use at the recorded peak. Other settings of the allocator are not compared: {why}.",
        size(replay.peak_reserved),
        size(replay.peak_reserved.saturating_sub(replay.peak_requested))
    ))
}

/// Whether the recorded peak needs about all of the memory that was reserved.
fn needs_all(timeline: &Timeline) -> bool {
    let replay = &timeline.replay;
    let spare = replay.peak_reserved.saturating_sub(replay.peak_requested);
    let is_spare =
        spare >= LEAST_SPARE_BYTES && percent(spare, replay.peak_reserved) >= LEAST_SPARE;
    timeline.is_usable() && !is_spare
}

/// The private pool that holds half of the reserved memory or more.
fn private(device: &str, figures: &DeviceReport) -> Option<String> {
    let whole = figures.totals.reserved;
    let mut pools = figures.by_pool.iter().filter(|(pool, _)| *pool != "(0, 0)");
    let (pool, totals) = pools.find(|(_, it)| percent(it.reserved, whole) >= LEAST_PRIVATE)?;
    Some(format!(
        "Device {device}: {} ({}) of the reserved memory are in private pool {pool}, as CUDA graphs and torch.cuda.MemPool make them (the \
         cache of an inference engine, for example): other pools cannot use what is free in it.",
        size(totals.reserved),
        share(totals.reserved, whole)
    ))
}

/// The few blocks that hold half of the memory in use, where no stack tells who allocated it.
fn by_size(device: &str, figures: &DeviceReport) -> Option<String> {
    let whole = figures.totals.active;
    if figures.events > 1 || figures.live_sites.iter().any(|row| row.site != NO_STACK) {
        return None;
    }
    let largest = figures.largest_blocks.get(..MOST_BLOCKS).unwrap_or(&figures.largest_blocks);
    let (mut n, mut sum) = (0, 0_i64);
    // (Sizes with the number of their blocks.)
    let mut sizes: Vec<(i64, u64)> = Vec::new();
    for bytes in largest.iter().take_while(|bytes| **bytes > 0) {
        if sum.saturating_mul(2) >= whole && sizes.last().is_none_or(|last| last.0 != *bytes) {
            break;
        }
        n += 1;
        sum = sum.saturating_add(*bytes);
        match sizes.last_mut().filter(|last| last.0 == *bytes) {
            Some(last) => last.1 += 1,
            None => sizes.push((*bytes, 1)),
        }
    }
    if whole == 0 || sum.saturating_mul(2) < whole || sizes.len() > MOST_SIZES {
        return None;
    }
    let list: Vec<String> = sizes
        .iter()
        .map(|(bytes, n)| match n {
            1 => size(*bytes),
            n => format!("{n} of {}", size(*bytes)),
        })
        .collect();
    let n_blocks = figures.live_sites.iter().fold(0, |sum, row| sum + row.count);
    let list = if n == 1 { String::new() } else { format!(" ({})", list.join(", ")) };
    let workspace = match sizes
        .iter()
        .any(|it| it.0 == WORKSPACE_BYTES && it.1 <= MOST_WORKSPACES as u64)
    {
        true => format!(
            " A block of {} bytes is probably a workspace of cuBLAS, which it keeps until the process ends: that is the size of PyTorch's default before Hopper.",
            count(WORKSPACE_BYTES as u64)
        ),
        false => String::new(),
    };
    Some(format!(
        "Device {device}: {} of {} hold {} of the {} in use{list}.{workspace}",
        n,
        plural(n_blocks, "block", "blocks"),
        size(sum),
        size(whole),
    ))
}

/// What was not read.
fn gaps_of(reading: &Reading) -> Vec<String> {
    let mut lines = Vec::new();
    if reading.is_cut {
        lines.push(
            "The file is cut: what precedes the cut is shown, and the totals are too small."
                .to_owned(),
        );
    }
    let list = |counts: &std::collections::BTreeMap<String, u64>| {
        counts
            .iter()
            .map(|(name, n)| format!("{name} ({})", count(*n)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    for (n, what) in [
        (reading.damaged_elements, "objects could be read only in part or not at all"),
        (reading.unreadable_numbers, "sizes are missing or unreadable and count as 0"),
        (reading.compression_faults, "faults in the compressed data"),
        (reading.bytes_after, "bytes after the end of the document were ignored"),
    ] {
        if n > 0 {
            lines.push(format!("{} {what}.", count(n)));
        }
    }
    if !reading.unknown_keys.is_empty() {
        lines.push(format!("Keys that were not used: {}.", list(&reading.unknown_keys)));
    }
    if !reading.unknown_states.is_empty() {
        lines.push(format!(
            "Unknown states of blocks, counted as active: {}.",
            list(&reading.unknown_states)
        ));
    }
    if !reading.unknown_actions.is_empty() {
        lines
            .push(format!("Unknown events, only counted: {}.", reading.unknown_actions.join(", ")));
    }
    lines
}
