//! What is said of an allocation that failed.

use report::units::{count, plural};
use report::{Confidence, Finding};

use super::peak::{LEAST_CLASS, LEVERS};
use super::{SHAPES, stable};
use crate::amounts::{percent, share, size};
use crate::claim::put;
use crate::classes::Class;
use crate::leader::{is_same_function, leader};
use crate::ooms::OomRow;
use crate::report::{SnapshotReport, Timeline};
use crate::site::{NO_STACK, is_line};
use crate::whatif::WhatIf;

/// From this share of reserved memory on, in percent, what is free and does not fit is fragmentation.
const LEAST_FREE: f64 = 10.0;

/// A setting of the allocator is no remedy where more of the reserved memory is in use, in percent.
const MOST_IN_USE: f64 = 90.0;

/// A finding for each allocation that failed.
pub(super) fn out_of_memory(
    report: &SnapshotReport,
    device: &str,
    timeline: &Timeline,
    to: &mut Vec<Finding>,
) {
    for oom in &timeline.ooms {
        one(report, device, oom, timeline, to);
    }
}

fn one(
    report: &SnapshotReport,
    device: &str,
    oom: &OomRow,
    timeline: &Timeline,
    to: &mut Vec<Finding>,
) {
    let mut observation = what_failed(report, device, oom, timeline);
    let found = Found::of(oom);
    let served = report.what_if.get(device).and_then(WhatIf::expandable);
    let is_served = served.is_some_and(|run| run.served_ooms.contains(&oom.index));
    let need = size(oom.live_requested.saturating_add(oom.size));
    let is_early = timeline.classes.is_before_backward;
    let early = match is_early {
        true => {
            " The record has no backward pass and no optimizer step: gradients, optimizer state and temporaries of backward that \
                 are not in use yet come on top."
        }
        false => "",
    };
    let mut validation = format!(
        "The run needs at least {need}: what was in use and requested at this event.{early}"
    );
    let (hypothesis, action) = if oom.is_limited() {
        validation.clear();
        at_limit(oom, timeline)
    } else if oom.size <= found.room {
        no_range(oom, &found, timeline, (is_served, is_early), &mut validation)
    } else {
        let texts = (&mut observation, &mut validation);
        too_little(report, device, oom, &found, timeline, texts)
    };
    // Events do not record the pool: only when all free ranges of the stream are too small, the pool does not matter.
    let is_certain = !oom.fits_if_defragmented && oom.device_free.is_some();
    let confidence = if is_certain { Confidence::High } else { Confidence::Medium };
    let evidence = format!("devices.{device}.ooms");
    put(
        to,
        "out-of-memory",
        confidence,
        [&observation, &hypothesis, &action, &validation, &evidence],
    );
}

/// The request, and what it found.
fn what_failed(report: &SnapshotReport, device: &str, oom: &OomRow, timeline: &Timeline) -> String {
    let granted = oom.device_free.map_or("an unrecorded amount".to_owned(), size);
    let mut observation = format!(
        "Device {device}, event {}: the request of {}{} found {granted} free on the device and {} in free ranges of its stream.",
        count(oom.index as u64),
        size(oom.size),
        at(oom),
        match oom.cached_free_same_stream {
            0 => "nothing".to_owned(),
            bytes if oom.is_exact => size(bytes),
            bytes => format!("at most {}", size(bytes)),
        }
    );
    if oom.cached_free_same_stream > 0 {
        let largest = size(oom.largest_cached_free);
        observation.push_str(&format!(" The largest free range has {largest}."));
    }
    // (Of the last failure the first sentence of the report says it.)
    if timeline.ooms.len() > 1 {
        observation.push_str(&format!(
            " {} of the {} reserved were in use.",
            size(oom.live_requested),
            size(oom.reserved)
        ));
    }
    if let Some((from, to, bytes)) = given_back(report, device, oom, timeline) {
        let (from, bytes) = (count(from as u64), size(bytes));
        observation.push_str(&match to == oom.index {
            true => format!(
                " Before it failed, the allocator returned {bytes} of its cache to the driver, from event {from} on."
            ),
            false => format!(
                " At event {from}, the allocator had already returned {bytes} of its cache to the driver."
            ),
        });
    }
    observation
}

/// The bytes that a request found free.
struct Found {
    /// In ranges of its stream and pool: the narrower test, with the default pool and segment type of the request.
    free: i64,
    /// On the device.
    granted: i64,
    /// Both.
    room: i64,
}

impl Found {
    fn of(oom: &OomRow) -> Self {
        let (free, granted) = (oom.gaps.bytes, oom.device_free.unwrap_or(0));
        Self { free, granted, room: free.saturating_add(granted) }
    }
}

/// Why a request failed for which enough is free, though in no single range, and what makes room for it.
fn no_range(
    oom: &OomRow,
    &Found { free, granted, room }: &Found,
    timeline: &Timeline,
    (is_served, is_early): (bool, bool),
    validation: &mut String,
) -> (String, String) {
    let (holder, less) = less(timeline);
    let is_fragmented = oom.size <= free
        || oom.size <= room && percent(oom.cached_free_same_stream, oom.reserved) >= LEAST_FREE;
    // (A setting makes room only of what is reserved and free.)
    let is_enough =
        oom.size <= free && percent(oom.live_requested, oom.reserved) <= MOST_IN_USE && !is_early;
    let action = match (is_enough, is_served) {
        (true, true) => {
            let shapes = if timeline.has_varying_sizes { SHAPES } else { "" };
            format!(
                "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: a model that reproduces the run has room for the request (an \
                 estimate).{shapes}"
            )
        }
        (true, false) => stable(timeline.has_varying_sizes).to_owned(),
        (false, true) => format!(
            "{less} PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True makes room for this request, with {} to spare (an estimate): \
             no more than that is left for what follows.",
            size(room.saturating_sub(oom.size))
        ),
        (false, false) => less,
    };
    if is_enough {
        validation.clear();
    } else if granted > 0 {
        validation.push_str(&format!(
            " A segment for the request needs {} more than is free on the device.",
            size(oom.segment().saturating_sub(granted))
        ));
    }
    let granted = if oom.size <= free { 0 } else { granted };
    let hypothesis = match is_fragmented {
        true => {
            let largest = size(oom.gaps.largest);
            format!("Fragmentation: {}. The largest gap has {largest}.", would_fit(oom, granted))
        }
        false => format!(
            "Capacity: {}, {} more than the request, but {} of the reserved memory is in use: the device is full rather than \
             fragmented.{holder}",
            gaps(oom, granted),
            size(room.saturating_sub(oom.size)),
            share(oom.live_requested, oom.reserved)
        ),
    };
    (hypothesis, action)
}

/// The free ranges of the stream and pool of a request, and what the device would grant.
fn gaps(oom: &OomRow, granted: i64) -> String {
    let gaps = &oom.gaps;
    // (The rounded size of blocks that were freed later is not recorded.)
    let bound = if oom.is_exact { "" } else { "at most " };
    let mut text = format!(
        "{bound}{} free in {} on stream {}",
        size(gaps.bytes),
        plural(gaps.count, "gap", "gaps"),
        oom.stream
    );
    if granted > 0 {
        text.push_str(&format!(" and {} free on the device", size(granted)));
    }
    text
}

/// That a request fits into what is free, if that is in one piece.
fn would_fit(oom: &OomRow, granted: i64) -> String {
    format!("the {} request would have fit if defragmented: {}", size(oom.size), gaps(oom, granted))
}

/// Why a request failed for which the device has room, and what makes room for it.
fn at_limit(oom: &OomRow, timeline: &Timeline) -> (String, String) {
    let (_, less) = less(timeline);
    let free = size(oom.device_free.unwrap_or_default());
    // (Expandable segments are mapped in pages beyond the limit, so what is reserved is no lower bound of it.)
    let limit = size(oom.reserved.saturating_add(oom.segment()));
    let gaps = match oom.size <= oom.gaps.bytes {
        true => format!(" Below the limit, {}.", would_fit(oom, 0)),
        false => String::new(),
    };
    (
        format!(
            "A limit of the process refused it (torch.cuda.set_per_process_memory_fraction), because the device had {free} free and the \
             segment for the request has {}.{gaps}",
            size(oom.segment())
        ),
        format!(
            "Raise the limit, which is below {limit}, to that at least, or remove it. If it is intended: {less}"
        ),
    )
}

/// Why a request failed that is larger than all that is free, and what makes room for it.
fn too_little(
    report: &SnapshotReport,
    device: &str,
    oom: &OomRow,
    found: &Found,
    timeline: &Timeline,
    (observation, validation): (&mut String, &mut String),
) -> (String, String) {
    let (holder, less) = less(timeline);
    let mut action = less;
    if oom.device_free.is_some() {
        validation.push_str(&format!(
            " At least {} of it must go.",
            size(oom.size.saturating_sub(found.room))
        ));
    }
    if let Some(uneven) = uneven(report, device, timeline) {
        observation.push_str(&uneven.what);
        validation.push_str(&uneven.need);
        action = format!("Give each device an equal part of the input. {action}");
    }
    let free = match oom.device_free {
        Some(_) => "the free ranges of the same stream and pool and what is free on the device",
        None => "the free ranges of the same stream and pool together",
    };
    (format!("Capacity: {free} are smaller than the request.{holder}"), action)
}

/// Where an allocation failed, as a part of a sentence; empty where its stack was not recorded.
#[inline(never)]
pub(crate) fn at(oom: &OomRow) -> String {
    if oom.site == NO_STACK { String::new() } else { format!(" at {}", oom.site) }
}

/// The last time that the allocator gave its cache back before a failed allocation: the event, the next allocation, and the bytes.
fn given_back(
    report: &SnapshotReport,
    device: &str,
    oom: &OomRow,
    timeline: &Timeline,
) -> Option<(usize, usize, i64)> {
    let places = &report.cache_releases.get(device)?.retry_places;
    let (from, to) = *places.iter().rfind(|(_, next)| *next <= oom.index)?;
    let level = |at: usize| timeline.levels.reserved.get(at).copied().unwrap_or_default();
    Some((from, to, level(from).saturating_sub(level(to))))
}

/// A call site whose blocks are much larger on one device.
struct Uneven {
    what: String,
    /// What the device would need for as many blocks as another has.
    need: String,
}

/// What the call site with most bytes at the peak of a device holds at the peaks of the others, where its blocks are less than half as
/// large on each of them.
fn uneven(report: &SnapshotReport, device: &str, timeline: &Timeline) -> Option<Uneven> {
    let sites = &timeline.replay.peak_sites;
    let top = sites.first().filter(|top| !top.site.starts_with('<') && top.count > 0)?;
    let mean = |bytes: i64, count: u64| bytes / i64::try_from(count.max(1)).unwrap_or(i64::MAX);
    let own = mean(top.bytes, top.count);
    let blocks = |count: u64| plural(count, "block", "blocks");
    let (mut others, mut most) = (String::new(), 0);
    for (other, figures) in report.devices.iter().filter(|(other, _)| *other != device) {
        let sites = &figures.timeline.as_ref()?.replay.peak_sites;
        let row = sites.iter().find(|row| row.site == top.site)?;
        let each = mean(row.bytes, row.count);
        if each.saturating_mul(2) > own {
            return None;
        }
        most = most.max(row.count);
        others.push_str(&format!(
            ", {} of {} at that of device {other}",
            blocks(row.count),
            size(each)
        ));
    }
    if others.is_empty() {
        return None;
    }
    let what = format!(
        " {} makes larger blocks on this device: {} of {} on average at its peak{others}.",
        top.site,
        blocks(top.count),
        size(own)
    );
    let mut need = String::new();
    if most > top.count {
        let of_it = sites.iter().filter(|row| is_same_function(&row.site, &top.site));
        let bytes = of_it.fold(0_i64, |sum, row| sum.saturating_add(row.bytes)).max(top.bytes);
        let scaled = bytes / i64::try_from(top.count).unwrap_or(i64::MAX);
        need = format!(
            " With {} of that line, as on another device, its function would hold about {} (an estimate: {} now, with {}).",
            blocks(most),
            size(scaled.saturating_mul(i64::try_from(most).unwrap_or(i64::MAX))),
            size(bytes),
            blocks(top.count)
        );
    }
    Some(Uneven { what, need })
}

/// What most of the memory in use is for, as a sentence, and what makes it smaller, as far as the file tells.
fn less(timeline: &Timeline) -> (String, String) {
    let replay = &timeline.replay;
    if let Some((class, bytes, ..)) = timeline.classes.largest(true)
        && percent(bytes, replay.peak_requested) >= LEAST_CLASS
        && let Some(lever) = LEVERS.iter().find(|lever| lever.class == class)
    {
        let holder = format!(
            " {} of the {} in use at the peak are {} (confidence: {}).",
            size(bytes),
            size(replay.peak_requested),
            class.label(),
            timeline.classes.confidence(class).id()
        );
        let checkpointed = timeline.classes.checkpointed;
        let action = match class {
            Class::Activation if checkpointed > 0 => format!(
                "Checkpoint the layers that are not checkpointed yet: {} of the activations were allocated outside \
                 torch.utils.checkpoint, {} inside. Or reduce the batch or the sequence length.",
                size(bytes.saturating_sub(checkpointed)),
                size(checkpointed)
            ),
            _ => lever.action.to_owned(),
        };
        return (holder, action);
    }
    // (Nobody changes what a library keeps for itself.)
    let lines = replay.peak_sites.iter().filter(|row| is_line(&row.site));
    let action = match leader(&mut lines.map(|row| (&*row.site, row.bytes))) {
        Some(top) => format!(
            "Reduce the memory in use, first what {} holds: {} at the peak.",
            top.text(),
            size(top.bytes)
        ),
        None => "Reduce the memory in use: a smaller batch, or shorter sequences.".to_owned(),
    };
    (String::new(), action)
}
